//! "Did you mean …?": the known names nearest to one nobody knows.

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
                let distance = edit_distance(&wanted, &other);
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

/// Levenshtein's distance.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut previous = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b) {
            let above = *cell;
            let value = (previous + usize::from(x != y))
                .min(above + 1)
                .min(left + 1);
            previous = above;
            left = value;
            *cell = value;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
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
    fn the_distance_counts_insertions_deletions_and_changes() {
        let distance = |a: &str, b: &str| {
            edit_distance(
                &a.chars().collect::<Vec<_>>(),
                &b.chars().collect::<Vec<_>>(),
            )
        };
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("年龄", "年"), 1);
    }
}
