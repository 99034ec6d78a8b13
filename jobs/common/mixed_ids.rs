//! Ids with Chinese characters in them. The keyword router reads ids of letters and digits; where a study has
//! others, only the plainest request is taken as read, and everything else is a question. The wrong
//! patient is worse than one.

use super::records::{Named, folded};

/// What may stand right before an id without being part of it.
const BEFORE_AN_ID: &str =
    "控查验检者人号是对和与及跟把给为看到至下要做再了过将让请帮在从比先跑遍案例份位名叫个共含括除";
/// Words by which something is left out.
const LEAVES_OUT: [&str; 7] = ["不", "除", "别", "勿", "排除", "except", "without"];

/// A question, when `text` may mean another patient than `named` says; `None` when it is plain.
#[must_use]
pub fn doubt(text: &str, named: &Named, known: &[String]) -> Option<String> {
    // An id in these brackets is written to the letter.
    if text.contains('「') {
        return None;
    }
    let text = folded(text);
    let mixed = mentioned(&text, known);
    if let Some(first) = mixed.first() {
        let plain = mixed.len() == 1
            && named.found == [(*first).clone()]
            && named.unknown.is_empty()
            && !LEAVES_OUT.iter().any(|word| text.contains(word));
        return (!plain).then(|| {
            format!(
                "编号 {first} 含有汉字，为避免认错人，请每次只写一位受试者，例如“质控 编号「{first}」”。"
            )
        });
    }
    let pieces: Vec<String> = named
        .found
        .iter()
        .filter_map(|id| longer_id(&text, &folded(id)))
        .collect();
    (!pieces.is_empty()).then(|| {
        format!(
            "研究中没有受试者 {}。请核对编号（编号须与 EDC 中一致）。",
            pieces.join("、")
        )
    })
}

/// The known ids with a Chinese character that the text holds, longest first where they overlap.
fn mentioned<'a>(text: &str, known: &'a [String]) -> Vec<&'a String> {
    let mut candidates: Vec<&String> = known.iter().filter(|id| !id.is_ascii()).collect();
    candidates.sort_by_key(|id| std::cmp::Reverse(id.len()));
    let mut rest = text.to_owned();
    let mut found = Vec::new();
    for id in candidates {
        let id_text = folded(id);
        if rest.contains(&id_text) {
            rest = rest.replace(&id_text, " ");
            found.push(id);
        }
    }
    found
}

/// The id that `id` is only the tail of, when it stands nowhere by itself: 乙001 for 001.
fn longer_id(text: &str, id: &str) -> Option<String> {
    let mut longer = None;
    for (at, _) in text.match_indices(id) {
        let head = text.get(..at).unwrap_or_default();
        let bare = head.trim_end_matches(['-', '_', '.', '/']);
        let before = bare.chars().next_back();
        match before {
            Some(c) if is_ideograph(c) && !BEFORE_AN_ID.contains(c) => {
                let joint = head.get(bare.len()..).unwrap_or_default();
                longer = Some(format!("{c}{joint}{id}"));
            }
            _ => return None,
        }
    }
    longer
}

fn is_ideograph(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c) || ('\u{3400}'..='\u{4dbf}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::common::records::resolve;

    fn asked(text: &str, read: &[&str]) -> Option<String> {
        let known: Vec<String> = ["001", "甲001", "甲-002", "002", "A001", "P001"]
            .map(str::to_owned)
            .to_vec();
        let read: Vec<String> = read.iter().map(|id| (*id).to_owned()).collect();
        doubt(text, &resolve(text, &read, &known), &known)
    }

    #[test]
    fn one_id_written_plainly_is_no_question() {
        for (text, read) in [
            ("质控甲001", vec!["001"]),
            ("质控 001", vec!["001"]),
            ("质控001和002", vec!["001", "002"]),
            ("对受试者P001做入排质控", vec!["P001"]),
            ("质控 编号「甲001」", vec!["甲001"]),
            ("质控 A001", vec!["A001"]),
        ] {
            assert_eq!(asked(text, &read), None, "{text}");
        }
    }

    #[test]
    fn whatever_the_router_may_have_misread_is_asked_about() {
        for (text, read) in [
            ("质控所有人但不包括甲001", vec!["001"]),
            ("质控全部，除了甲-002", vec![]),
            ("质控乙001", vec!["001"]),
            ("质控 乙-002", vec!["002"]),
            ("质控001和甲001", vec!["001"]),
            ("质控甲001到甲003", vec!["001", "003"]),
            ("质控001，不要质控甲001", vec!["001"]),
        ] {
            assert!(asked(text, &read).is_some(), "{text}");
        }
        assert!(
            asked("质控乙001", &["001"]).is_some_and(|question| question.contains("乙001")),
            "the id that was written is named"
        );
    }
}
