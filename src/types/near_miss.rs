//! "Did you mean …?": the known names nearest to one nobody knows.

/// The known name nearest to `written`, when it is near enough to be a slip of the hand: at most a
/// third of its characters changed, transpositions counted once, case ignored.
#[must_use]
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within((written.chars().count() / 3).clamp(1, 3), written, known)
}

/// The known name nearest to `written`, when at most `allowed` characters differ.
#[must_use]
pub fn nearest_within<'a>(
    allowed: usize,
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let written = written.to_lowercase();
    let length = written.chars().count();
    known
        .into_iter()
        .filter(|name| name.chars().count().abs_diff(length) <= allowed)
        .map(|name| {
            (
                strsim::damerau_levenshtein(&written, &name.to_lowercase()),
                name,
            )
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// At most `most` of `known`, nearest first, that differ from `name` by few enough letters to be a slip
/// of the pen (a third of its length, at least two), or contain it, or are contained in it.
///
/// Letter case and `_` are ignored; the given order breaks ties.
#[must_use]
pub fn near_misses<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let wanted = plain(name);
    let limit = (wanted.len() / 3).max(2);
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| {
            let other = plain(candidate);
            if wanted.len().abs_diff(other.len()) <= limit {
                let distance = strsim::generic_damerau_levenshtein(&wanted, &other);
                if distance <= limit && distance < wanted.len().max(1) {
                    return Some((distance, candidate));
                }
            }
            let (wanted, other) = (text(&wanted), text(&other));
            let contained = wanted.len() >= 3 && other.len() >= 3;
            (contained && (other.contains(&wanted) || wanted.contains(&other)))
                .then_some((limit + 1, candidate))
        })
        .collect();
    found.sort_by_key(|(distance, _)| *distance);
    found.truncate(most);
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

fn plain(name: &str) -> Vec<char> {
    name.chars()
        .filter(|c| *c != '_')
        .flat_map(char::to_lowercase)
        .collect()
}

fn text(chars: &[char]) -> String {
    chars.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_pen_are_recognised_nearest_first() {
        let known = ["age", "age_calculated", "ecog_score", "enroll_date", "体重"];
        assert_eq!(near_misses("enrol_date", known, 3), ["enroll_date"]);
        assert_eq!(near_misses("ecogscore", known, 3), ["ecog_score"]);
        assert_eq!(near_misses("AGE_calc", known, 3), ["age", "age_calculated"]);
        assert!(near_misses("zzz", known, 3).is_empty());
        assert!(near_misses("x", ["y", "z"], 3).is_empty());
    }

    #[test]
    fn a_slip_of_the_hand_finds_its_name_and_another_word_does_not() {
        let known = ["on_pass", "on_fail", "check_history"];
        assert_eq!(nearest("on_fial", known), Some("on_fail"));
        assert_eq!(nearest("chek_history", known), Some("check_history"));
        assert_eq!(nearest("On_Pass", known), Some("on_pass"));
        assert_eq!(nearest("medication", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(
            nearest("年龄检查", ["年龄检查一", "病史"]),
            Some("年龄检查一")
        );
    }
}
