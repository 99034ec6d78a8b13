//! Which known name a mistyped one was meant to be.

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

#[cfg(test)]
mod tests {
    use super::nearest;

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
