//! Where a run stands in its graph: stored with the run between steps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::outcome::{Next, NodeResult};
use crate::skills::{FinalState, Standing};

/// A run's place, what it has visited, and what it has come across. Stored as JSON with the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walk {
    /// The node to do next, or the end.
    next: Next,
    /// Visits by node, the pending one included.
    visits: BTreeMap<String, u32>,
    /// What nodes raised and no person dismissed.
    #[serde(default)]
    raised: Vec<Raised>,
    /// Whether the last deciding step is what the last entry of `raised` came from.
    #[serde(default)]
    just_raised: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Raised {
    node: String,
    failed: bool,
}

impl Walk {
    /// At the beginning: the start node is next.
    pub(super) fn begin(start: &str) -> Self {
        Self {
            next: Next::Node(start.to_owned()),
            visits: BTreeMap::from([(start.to_owned(), 1)]),
            raised: Vec::new(),
            just_raised: false,
        }
    }

    /// The node to do next; `None` once the run is over.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        match &self.next {
            Next::Node(id) => Some(id),
            Next::End(_) => None,
        }
    }

    /// How often the run has come to `node`, the pending visit included.
    #[must_use]
    pub fn visits(&self, node: &str) -> u32 {
        self.visits.get(node).copied().unwrap_or(0)
    }

    /// How the run ended; `None` while it goes on.
    #[must_use]
    pub fn final_state(&self) -> Option<&FinalState> {
        match &self.next {
            Next::Node(_) => None,
            Next::End(state) => Some(state),
        }
    }

    /// What the ended run amounts to for people; `None` while it goes on.
    #[must_use]
    pub fn standing(&self) -> Option<Standing> {
        let failed = self.raised.iter().any(|raised| raised.failed);
        let undecided = self.raised.iter().any(|raised| !raised.failed);
        self.final_state()
            .map(|end| Standing::of(end, failed, undecided))
    }

    /// Remembers how a deciding node came out.
    pub(super) fn remember(&mut self, node: &str, result: NodeResult) {
        let raised = match result {
            NodeResult::Fail => Some(true),
            NodeResult::NotEvaluable | NodeResult::Error => Some(false),
            NodeResult::Pass | NodeResult::Incomplete => None,
        };
        self.just_raised = raised.is_some();
        if let Some(failed) = raised {
            let node = node.to_owned();
            self.raised.push(Raised { node, failed });
        }
    }

    /// A person found nothing in what led here: the step before no longer counts against the run.
    /// What earlier steps raised stays, because the person was not asked about it.
    pub(super) fn dismiss(&mut self) {
        if self.just_raised {
            self.raised.pop();
            self.just_raised = false;
        }
    }

    /// Goes on to `next`, unless that node has had all its visits; returns whether it had.
    pub(super) fn go(&mut self, next: Next, max_visits: Option<u32>) -> bool {
        if let Next::Node(id) = &next {
            let visits = self.visits.entry(id.clone()).or_insert(0);
            if max_visits.is_some_and(|most| *visits >= most) {
                self.next = Next::End(FinalState::ReviewRequired);
                return true;
            }
            *visits = visits.saturating_add(1);
        }
        self.next = next;
        false
    }

    /// Where the run goes.
    #[must_use]
    pub fn next(&self) -> &Next {
        &self.next
    }
}
