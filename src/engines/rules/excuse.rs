//! Whether a broken rule is broken only because what branching logic hides is blank.

use super::{
    eval::{Doubt, Eval, distinct},
    expr::Expr,
    result::Reason,
};

/// What a failure comes to once hidden blanks are taken for filled in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Excuse {
    /// It fails all the same.
    Stands,
    /// It would hold.
    Excused,
    /// Something else is unknown that would have to be known first.
    Open(Vec<Doubt>),
}

impl<'a> Eval<'_, 'a> {
    /// Excuses a condition that was found false.
    pub(super) fn excuse(&self, failed: &'a Expr) -> Excuse {
        let mut excuse = self.excuse_for(failed, true);
        if let Excuse::Open(doubts) = &mut excuse {
            distinct(doubts);
        }
        excuse
    }

    /// Excuses a condition that was found to be the contrary of `wanted`. A conjunction is excused when
    /// every failing part of it is *and the others hold*: a hidden blank must not swallow an unknown beside it.
    fn excuse_for(&self, failed: &'a Expr, wanted: bool) -> Excuse {
        match (failed, wanted) {
            (Expr::Not(inner), _) => self.excuse_for(inner, !wanted),
            (Expr::Truth(inner), _) => self.excuse_for(inner, wanted),
            (Expr::And(items), true) | (Expr::Or(items), false) => self.every(items, wanted),
            (Expr::Or(items), true) | (Expr::And(items), false) => self.any_of(items, wanted),
            _ => self.single(failed, wanted),
        }
    }

    fn every(&self, items: &'a [Expr], wanted: bool) -> Excuse {
        let mut open = Vec::new();
        for item in items {
            match self.truth(item) {
                Some(answer) if answer == wanted => {}
                Some(_) => match self.excuse_for(item, wanted) {
                    Excuse::Stands => return Excuse::Stands,
                    Excuse::Excused => {}
                    Excuse::Open(doubts) => open.extend(doubts),
                },
                None => open.extend(self.explain(item)),
            }
        }
        excused_unless(open)
    }

    fn any_of(&self, items: &'a [Expr], wanted: bool) -> Excuse {
        let mut open = Vec::new();
        for item in items {
            match self.excuse_for(item, wanted) {
                Excuse::Excused => return Excuse::Excused,
                Excuse::Stands => {}
                Excuse::Open(doubts) => open.extend(doubts),
            }
        }
        if open.is_empty() {
            Excuse::Stands
        } else {
            Excuse::Open(open)
        }
    }

    fn single(&self, failed: &'a Expr, wanted: bool) -> Excuse {
        let filled = self.hidden_as_filled();
        match filled.truth(failed) {
            Some(answer) if answer == wanted => Excuse::Excused,
            Some(_) => Excuse::Stands,
            None => {
                let doubts = filled.explain(failed);
                match failed {
                    // Its author wrote what holds for a blank, and that is what failed.
                    Expr::If(parts) if doubts.iter().all(|doubt| self.is_hidden(doubt)) => self
                        .taken(parts)
                        .map_or(Excuse::Stands, |branch| self.excuse_for(branch, wanted)),
                    _ => Excuse::Open(doubts),
                }
            }
        }
    }

    /// Whether branching logic hides what is in doubt.
    pub(super) fn is_hidden(&self, doubt: &Doubt) -> bool {
        matches!(doubt.reason, Reason::Missing | Reason::CodedMissing)
            && doubt.field.is_some_and(|id| self.frame.is_hidden(id))
    }

    /// The branch an `if` took.
    fn taken(&self, parts: &'a [Expr]) -> Option<&'a Expr> {
        parts.chunks(2).find_map(|pair| match pair {
            [condition, then] => (self.truth(condition) == Some(true)).then_some(then),
            rest => rest.first(),
        })
    }
}

fn excused_unless(open: Vec<Doubt>) -> Excuse {
    if open.is_empty() {
        Excuse::Excused
    } else {
        Excuse::Open(open)
    }
}
