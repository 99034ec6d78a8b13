//! From the ids people write to the ids the EDC has. Exact, or exact but for case and width; anything
//! looser is asked about: the wrong patient is worse than a question.

use crate::types::text::half_width;

/// Near ids offered at most.
const MAX_NEAR: usize = 5;

/// What became of the ids in a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// As the EDC writes them, each once, in the order written.
    pub found: Vec<String>,
    /// As the person wrote them.
    pub unknown: Vec<String>,
    /// Ids of the EDC that an unknown one may mean.
    pub near: Vec<String>,
}

/// Resolves the ids `written` in `text` among `known` ids.
#[must_use]
pub fn resolve(text: &str, written: &[String], known: &[String]) -> Named {
    let text = folded(text);
    let mut named = Named::default();
    for id in written {
        let id = whole(&text, id, known).unwrap_or(id);
        match find(id, known) {
            Some(found) if named.found.contains(found) => {}
            Some(found) => named.found.push(found.clone()),
            None => {
                named.unknown.push(id.clone());
            }
        }
    }
    // One id is a slip worth a question. Many are the holes of a range, or another study's list: what is
    // near one of them is a patient nobody spoke of.
    if let [id] = named.unknown.as_slice() {
        let near = known.iter().filter(|candidate| is_near(id, candidate));
        named.near = near.take(MAX_NEAR).cloned().collect();
    }
    named
}

/// The known id that `id` is only a piece of, as the text has it: in “质控 甲001” the id is 甲001, also where
/// there is a 001. Where the piece stands by itself as well, it means itself.
fn whole<'a>(text: &str, id: &str, known: &'a [String]) -> Option<&'a String> {
    let piece = folded(id);
    known
        .iter()
        .map(|candidate| (candidate, folded(candidate)))
        .filter(|(_, other)| {
            other.len() > piece.len() && other.contains(&piece) && text.contains(other.as_str())
        })
        .filter(|(_, other)| !text.replace(other.as_str(), " ").contains(&piece))
        .max_by_key(|(_, other)| other.len())
        .map(|(candidate, _)| candidate)
}

fn find<'a>(id: &str, known: &'a [String]) -> Option<&'a String> {
    if let Some(exact) = known.iter().find(|candidate| *candidate == id) {
        return Some(exact);
    }
    let mut alike = known
        .iter()
        .filter(|candidate| folded(candidate) == folded(id));
    match (alike.next(), alike.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// An id as it is compared: half-width, upper case, without blanks around it.
#[must_use]
pub fn folded(id: &str) -> String {
    half_width(id.trim()).to_uppercase()
}

/// `12` may mean `0012`, `P012` or `01-701-12`; `1015` may mean `01-701-1015`.
fn is_near(id: &str, candidate: &str) -> bool {
    let (id, candidate) = (folded(id), folded(candidate));
    let (digits, others) = (last_number(&id), last_number(&candidate));
    let same_number = !digits.is_empty() && digits == others;
    same_number || (id.chars().count() >= 3 && candidate.ends_with(&id))
}

fn last_number(id: &str) -> &str {
    let start = id.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| {
        at + id[at..].chars().next().map_or(1, char::len_utf8)
    });
    id.get(start..).unwrap_or_default().trim_start_matches('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(list: &[&str]) -> Vec<String> {
        list.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn exact_ids_are_found_and_leading_zeros_never_guessed_away() {
        let known = ids(&["001017", "1017", "P001"]);
        let named = resolve("", &ids(&["001017", "1017"]), &known);
        assert_eq!(named.found, ids(&["001017", "1017"]));
        let named = resolve("", &ids(&["01017"]), &known);
        assert!(named.found.is_empty());
        assert_eq!(named.near, ids(&["001017", "1017"]));
    }

    #[test]
    fn case_and_width_do_not_matter_unless_two_ids_differ_only_by_them() {
        assert_eq!(
            resolve("", &ids(&["ｐ００１"]), &ids(&["P001"])).found,
            ids(&["P001"])
        );
        let named = resolve("", &ids(&["P001"]), &ids(&["p001", "ｐ001"]));
        assert!(named.found.is_empty(), "{named:?}");
    }

    #[test]
    fn a_short_number_is_asked_about_not_assumed() {
        let named = resolve("", &ids(&["1015"]), &ids(&["01-701-1015", "01-702-1082"]));
        assert!(named.found.is_empty());
        assert_eq!(named.near, ids(&["01-701-1015"]));
    }

    #[test]
    fn a_piece_of_a_known_id_means_the_whole_id_that_was_written() {
        let known = ids(&["甲001", "001", "12", "2"]);
        assert_eq!(
            resolve("质控 甲001", &ids(&["001"]), &known).found,
            ids(&["甲001"])
        );
        assert_eq!(
            resolve("质控 001", &ids(&["001"]), &known).found,
            ids(&["001"])
        );
        assert_eq!(
            resolve("质控 2 和 12", &ids(&["2", "12"]), &known).found,
            ids(&["2", "12"])
        );
        assert_eq!(
            resolve("质控甲001和001", &ids(&["001"]), &known).found,
            ids(&["001"])
        );
    }

    #[test]
    fn the_holes_of_a_range_bring_up_no_patient_of_another_site() {
        let known = ids(&["01-701-1015", "01-701-1017", "01-704-1016"]);
        let named = resolve(
            "",
            &ids(&["01-701-1015", "01-701-1016", "01-701-1018"]),
            &known,
        );
        assert_eq!(named.unknown.len(), 2);
        assert!(named.near.is_empty(), "{named:?}");
    }

    #[test]
    fn a_repeated_id_is_checked_once() {
        let named = resolve("", &ids(&["P1", "p1"]), &ids(&["P1"]));
        assert_eq!(named.found, ids(&["P1"]));
        assert!(named.unknown.is_empty());
    }
}
