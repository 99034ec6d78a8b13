//! A message as clauses, each with what its words say and whom it names.

use super::{
    clause, command, cues,
    cues::Cue,
    entities, ids,
    message::{Message, patterns},
    reference, resolve,
};

patterns! {
    /// A record right after a word that leaves it out: 除了P003.
    EXCEPT = r"(?x)
        (?:(?:^|[^删免清去解移])除了?|除开|除去|不包括|不包含|不含|排除|(?-u:\b)(?:except(?:\ for)?
        |excluding|but\ not|without)(?-u:\b))\s*(?:患者|病人|受试者|编号|id)?\s*[:=]?\s*$";
    /// 除外 right after a record.
    EXCEPTED = r"^\s*(?:除外|不算|不计|排除在外|不包括在内)";
    /// What joins the members of a list.
    JOINT = r"^\s*(?:[、,/&]|和|与|及|跟|and)?\s*$";
    /// 吗 at the end.
    ASKS_AT_END = r"(?:吗|么|没有|不)$";
    /// 不是P001: the record named was the wrong one.
    WRONG = r"^\s*(?:不是|不对|错了)";
}

/// A clause with what its words say.
pub(super) struct Part {
    pub start: usize,
    pub end: usize,
    pub cue: Cue,
    /// Named and wanted.
    pub ids: Vec<String>,
    /// Named and not wanted.
    pub without: Vec<String>,
    /// The first 他, when it stands before every id of the clause.
    pub reference: Option<(usize, usize)>,
    pub trouble: Option<(ids::Trouble, usize, usize)>,
    pub whole: bool,
    pub plural: bool,
    pub wrong: bool,
    pub needs_patient: bool,
    pub forbids: bool,
    /// It ended with a question mark.
    pub asked: bool,
}

/// The clauses of a message, each read by itself.
pub(super) fn parts(message: &Message) -> Vec<Part> {
    let plain = message.plain();
    let mentions = ids::mentions(plain);
    let mut left_out: Vec<bool> = Vec::with_capacity(mentions.len());
    for (at, mention) in mentions.iter().enumerate() {
        let before = super::message::tail(message.part(0, mention.start), 16);
        let listed = at.checked_sub(1).is_some_and(|last| {
            left_out.get(last) == Some(&true)
                && mentions
                    .get(last)
                    .is_some_and(|m| JOINT.is_match(message.part(m.end, mention.start)))
        });
        let after = super::message::head(message.part(mention.end, plain.len()), 8);
        left_out.push(EXCEPT.is_match(before) || EXCEPTED.is_match(after) || listed);
    }
    let mut next = 0;
    let mut found = Vec::new();
    for clause in clause::clauses(plain) {
        let (start, end) = (clause.start, clause.end);
        while mentions.get(next).is_some_and(|m| m.end <= start) {
            next += 1;
        }
        let first = next;
        while mentions.get(next).is_some_and(|m| m.start < end) {
            next += 1;
        }
        let named = mentions.get(first..next).unwrap_or_default();
        let text = message.part(start, end);
        let references = reference::references(text);
        let mut bare = text.to_owned();
        let mut spans: Vec<(usize, usize)> = named
            .iter()
            .map(|m| {
                (
                    m.start.saturating_sub(start),
                    m.end.min(end).saturating_sub(start),
                )
            })
            .chain(references.iter().map(|r| (r.start, r.end)))
            .collect();
        spans.sort_unstable();
        for (from, to) in spans.iter().rev() {
            if bare.is_char_boundary(*from) && bare.is_char_boundary(*to) && from <= to {
                bare.replace_range(from..to, "");
            }
        }
        let about_patient = !named.is_empty() || !references.is_empty();
        let (cue, cut) = cues::read(text, &bare, clause.asked, about_patient);
        let unwanted_from = match cue {
            Cue::Negated | Cue::Excluded => Some(0),
            _ => cut,
        };
        let (mut ids, mut without) = (Vec::new(), Vec::new());
        for (mention, out) in named
            .iter()
            .zip(left_out.get(first..next).unwrap_or_default())
        {
            let unwanted = *out || unwanted_from.is_some_and(|from| mention.start >= start + from);
            let list = if unwanted { &mut without } else { &mut ids };
            for id in &mention.ids {
                if !list.contains(id) {
                    list.push(id.clone());
                }
            }
        }
        let reference = references
            .first()
            .filter(|r| named.first().is_none_or(|m| start + r.start < m.start))
            .map(|r| (start + r.start, start + r.end));
        found.push(Part {
            start,
            end,
            cue,
            ids,
            without,
            reference,
            trouble: named
                .iter()
                .find_map(|m| m.trouble.clone().map(|t| (t, m.start, m.end))),
            whole: entities::whole_project(text),
            plural: reference::is_plural(text),
            wrong: WRONG.is_match(&bare),
            needs_patient: resolve::needs_patient(&bare),
            forbids: command::forbids_what_follows(text),
            asked: clause.asked || ASKS_AT_END.is_match(text),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_pattern_compiles() {
        super::compile_all();
    }
}
