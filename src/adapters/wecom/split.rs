//! Long text in parts that WeCom shows whole: it cuts silently at 2048 bytes, in the middle of a character.

use unicode_segmentation::UnicodeSegmentation as _;

/// WeCom's limit for the content of a text message, in bytes of UTF-8.
pub const MAX_TEXT_BYTES: usize = 2048;

/// Splits `text` into parts of at most `max_bytes` each (not under 64), numbered `(1/3)` on a line of
/// its own when there is more than one.
///
/// Nothing is trimmed: the parts without their first line, put together, are `text` byte for byte.
/// Cuts fall after a blank line if there is one in the second half of a part, else after a line, a
/// sentence, a word; never inside a character as people see it (an emoji of several code points, a
/// letter with its accents) unless that alone is longer than a part.
///
/// Each part costs one of 30 messages a minute that WeCom delivers to one person.
#[must_use]
pub fn split_text(text: &str, max_bytes: usize) -> Vec<String> {
    let max_bytes = max_bytes.max(64);
    if text.len() <= max_bytes {
        return vec![text.to_owned()];
    }
    // The number of digits in the total decides the room for text, and the room decides the total.
    let mut digits = 1;
    loop {
        let pieces = cut(text, max_bytes - "(/)\n".len() - 2 * digits);
        let needed = pieces.len().to_string().len();
        if needed <= digits {
            let total = pieces.len();
            return pieces
                .iter()
                .enumerate()
                .map(|(index, piece)| format!("({}/{total})\n{piece}", index + 1))
                .collect();
        }
        digits = needed;
    }
}

fn cut(mut rest: &str, room: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    while rest.len() > room {
        let (piece, after) = rest.split_at(border(rest, room));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// Where to cut `text`, which is longer than `room`: above 0, at most `room`, at a character border.
fn border(text: &str, room: usize) -> usize {
    let window = &text[..text.floor_char_boundary(room)];
    // A cluster that begins in the window may reach beyond it, so the first one outside is looked at too.
    let whole = text
        .grapheme_indices(true)
        .map(|(start, cluster)| start + cluster.len())
        .take_while(|end| *end <= room)
        .last();
    let Some(longest) = whole else {
        return window.len();
    };
    let ends = |is_border: fn(&str, &str) -> bool| {
        text.grapheme_indices(true)
            .map(|(start, cluster)| start + cluster.len())
            .take_while(|end| *end <= longest)
            .filter(|end| *end * 2 > room && is_border(&text[..*end], &text[*end..]))
            .last()
    };
    ends(|before, _| before.ends_with("\n\n") || before.ends_with("\n\r\n"))
        .or_else(|| ends(|before, _| before.ends_with('\n')))
        .or_else(|| ends(ends_sentence))
        .or_else(|| {
            ends(|before, _| before.ends_with([' ', '\u{3000}', '\t', '，', '、', '：', ',']))
        })
        .unwrap_or(longest)
}

fn ends_sentence(before: &str, after: &str) -> bool {
    let closes_next = after.starts_with(['”', '’', '」', '』', '）', ')', '"']);
    let chinese = before
        .trim_end_matches(['”', '’', '」', '』', '）'])
        .ends_with(['。', '！', '？', '；', '…']);
    (chinese && !closes_next)
        || [". ", "! ", "? ", "; "]
            .iter()
            .any(|end| before.ends_with(end))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use proptest::prelude::*;

    use super::*;

    /// What the reader gets back by dropping the first line of each part.
    fn joined(parts: &[String]) -> String {
        match parts {
            [only] => only.clone(),
            many => many
                .iter()
                .map(|part| part.split_once('\n').unwrap().1)
                .collect(),
        }
    }

    #[test]
    fn a_short_text_stays_as_it_is() {
        assert_eq!(split_text("质控完成", MAX_TEXT_BYTES), ["质控完成"]);
        assert_eq!(split_text("", MAX_TEXT_BYTES), [""]);
        let exact = "字".repeat(682) + "ab";
        assert_eq!(exact.len(), MAX_TEXT_BYTES);
        assert_eq!(split_text(&exact, MAX_TEXT_BYTES), [exact.as_str()]);
        assert_eq!(split_text(&format!("{exact}c"), MAX_TEXT_BYTES).len(), 2);
    }

    #[test]
    fn cuts_prefer_blank_lines_then_lines_then_sentences_then_words() {
        let filler = "a".repeat(60);
        for (text, ends_with) in [
            (
                format!("一二三四五六七八九十甲乙\n\n丙\n丁。{filler}"),
                "甲乙\n\n",
            ),
            (
                format!("一二三四五六七八九十甲乙\n丙。丁{filler}"),
                "甲乙\n",
            ),
            (
                format!("一二三四五六七八九十甲乙。”丙丁{filler}"),
                "甲乙。”",
            ),
            (format!("twelve letters and more of them {filler}"), "them "),
        ] {
            let parts = split_text(&text, 64);
            let piece = parts[0].split_once('\n').unwrap().1;
            assert!(piece.ends_with(ends_with), "{piece:?}");
            assert_eq!(joined(&parts), text);
        }
    }

    #[test]
    fn an_emoji_of_several_code_points_is_not_torn() {
        let family = "👨‍👩‍👧‍👦";
        for part in split_text(&family.repeat(200), MAX_TEXT_BYTES) {
            let piece = part.split_once('\n').unwrap().1;
            assert_eq!(piece.len() % family.len(), 0);
        }
    }

    #[test]
    fn one_endless_cluster_is_cut_at_characters_rather_than_never() {
        let endless = format!("a{}", "\u{301}".repeat(3000));
        let parts = split_text(&endless, MAX_TEXT_BYTES);
        assert!(parts.iter().all(|part| part.len() <= MAX_TEXT_BYTES));
        assert_eq!(joined(&parts), endless);
    }

    #[test]
    fn numbering_with_more_digits_still_fits() {
        let long = "随访窗口超出。".repeat(2000);
        let parts = split_text(&long, MAX_TEXT_BYTES);
        assert!(parts.len() > 9 && parts.iter().all(|part| part.len() <= MAX_TEXT_BYTES));
        assert!(parts[0].starts_with(&format!("(1/{})\n", parts.len())));
        assert_eq!(joined(&parts), long);
    }

    proptest! {
        #[test]
        fn parts_fit_and_lose_nothing(text in "(\\PC|\n|[。，a-z ]|👩‍🔬|é){0,400}", max in 64_usize..300) {
            let parts = split_text(&text, max);
            prop_assert!(parts.iter().all(|part| part.len() <= max));
            prop_assert_eq!(joined(&parts), text);
            for (index, part) in parts.iter().enumerate().filter(|_| parts.len() > 1) {
                let expected = format!("({}/{})\n", index + 1, parts.len());
                prop_assert!(part.starts_with(&expected));
            }
        }
    }
}
