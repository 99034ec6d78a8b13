//! A SOP as read: what is missing is still missing, so that the graph check can name every fault.

use std::collections::BTreeMap;

use super::{
    final_state::FinalState,
    model::{Node, Routes, Sop, Target, Work},
};

/// A SOP before the graph check.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// JSON path of the configuration.
    pub(super) path: String,
    /// As written.
    pub(super) start_node: Option<String>,
    /// Nodes by name.
    pub(super) nodes: BTreeMap<String, DraftNode>,
}

/// A node before the graph check.
#[derive(Debug, Default)]
pub(super) struct DraftNode {
    /// `None` when it could not be read.
    pub(super) work: Option<Work>,
    /// Branches as written.
    pub(super) branches: BTreeMap<&'static str, String>,
    /// Most visits in one run.
    pub(super) max_visits: Option<u32>,
}

impl DraftNode {
    /// Names of the nodes and final states the written branches lead to.
    pub(super) fn targets(&self) -> impl Iterator<Item = Target> + '_ {
        self.branches.values().map(|name| Target::parse(name))
    }

    /// The node with every default filled in.
    fn finish(self) -> Option<Node> {
        let branch = |name: &str| self.branches.get(name).map(|target| Target::parse(target));
        let work = self.work?;
        let review = Target::End(FinalState::ReviewRequired);
        let on_pass = branch("on_pass")?;
        let on_error = branch("on_error").unwrap_or_else(|| review.clone());
        let on_fail = match (branch("on_fail"), &work) {
            (Some(target), _) => target,
            // A tool that says no without being told where to go is never a pass.
            (None, Work::Tool { .. } | Work::Notify { .. }) => on_error.clone(),
            (None, _) => return None,
        };
        let on_not_evaluable = match (branch("on_not_evaluable"), &work) {
            (Some(target), _) => target,
            // A model that could not tell leaves the judgement to a person.
            (None, Work::SoftInstruction { .. }) => review,
            (None, _) => on_fail.clone(),
        };
        Some(Node {
            work,
            routes: Routes {
                on_pass,
                on_fail,
                on_error,
                on_not_evaluable,
            },
            max_visits: self.max_visits,
        })
    }
}

impl Draft {
    /// The SOP; `None` when something is missing, which the check has then named.
    pub(super) fn finish(self, name: &str) -> Option<Sop> {
        let nodes = self
            .nodes
            .into_iter()
            .map(|(id, node)| Some((id, node.finish()?)))
            .collect::<Option<BTreeMap<_, _>>>()?;
        let start_node = self.start_node.filter(|start| nodes.contains_key(start))?;
        Some(Sop {
            name: name.to_owned(),
            start_node,
            nodes,
        })
    }
}
