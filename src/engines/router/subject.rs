//! Whom a clause is about: those it names, those its 他 stands for, else those named before.

use super::{Memory, ids::Trouble, parts::Part, resolve};

/// Whom a request is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Subject {
    /// Named in the clause, or carried over from an earlier one.
    pub ids: Vec<String>,
    /// Named by the clause itself.
    pub own: bool,
    /// A 他 that nobody was found for: where it stands.
    pub unresolved: Option<(usize, usize)>,
    /// A range to ask about: where it stands.
    pub trouble: Option<(Trouble, usize, usize)>,
    /// Several people meant, none named (他们).
    pub plural: bool,
}

impl Subject {
    /// Takes in whom another clause is about.
    pub(super) fn join(&mut self, other: Self) {
        self.add(&other.ids);
        self.own |= other.own;
        self.unresolved = self.unresolved.or(other.unresolved);
        self.trouble = self.trouble.take().or(other.trouble);
        self.plural |= other.plural;
    }

    /// Adds ids, each once.
    pub(super) fn add(&mut self, ids: &[String]) {
        for id in ids {
            if !self.ids.contains(id) {
                self.ids.push(id.clone());
            }
        }
    }
}

/// Whom `part` is about. `before` is whom the message was about so far, and moves on.
pub(super) fn subject_of(part: &Part, before: &mut Subject, memory: &Memory<'_>) -> Subject {
    let mut subject = Subject {
        trouble: part.trouble.clone(),
        plural: part.plural,
        ..Subject::default()
    };
    if let Some(span) = part.reference {
        match (before.ids.as_slice(), memory.resolved()) {
            ([one], _) => subject.ids.push(one.clone()),
            ([], Some(id)) if before.unresolved.is_none() => subject.ids.push(resolve::normal(id)),
            ([], _) => subject.unresolved = Some(span),
            (several, _) => {
                subject.ids = several.to_vec();
                subject.unresolved = Some(span);
            }
        }
    }
    subject.add(&part.ids);
    subject.own = !part.ids.is_empty() || part.reference.is_some() || part.trouble.is_some();
    if subject.own {
        *before = subject.clone();
    } else if part.plural {
        *before = Subject::default();
    }
    subject
}
