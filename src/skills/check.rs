//! The graph check: whether a run over this SOP always knows where to go, and always ends.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    draft::Draft,
    fault::{Fault, FaultKind},
    final_state::{FinalState, KNOWN},
    model::{Target, Work},
    text::join,
};
use crate::types::near_miss::nearest_within;

/// Every fault of the graph at once.
pub(super) fn check(draft: &Draft) -> Vec<Fault> {
    let graph = Graph {
        draft,
        nodes_path: join(&draft.path, "nodes"),
    };
    let mut faults = graph.start();
    faults.extend(graph.names());
    faults.extend(graph.branches());
    faults.extend(graph.unreachable());
    faults.extend(graph.cycles());
    faults.extend(graph.endless());
    faults.extend(graph.duplicate_rules());
    faults
}

struct Graph<'d> {
    draft: &'d Draft,
    nodes_path: String,
}

impl<'d> Graph<'d> {
    fn path(&self, id: &str) -> String {
        join(&self.nodes_path, id)
    }

    fn ids(&self) -> impl Iterator<Item = &'d str> {
        self.draft.nodes.keys().map(String::as_str)
    }

    /// Nodes that `id` leads to, as far as they exist.
    fn next(&self, id: &str) -> Vec<&'d str> {
        let Some(node) = self.draft.nodes.get(id) else {
            return Vec::new();
        };
        node.branches
            .values()
            .filter_map(|name| self.draft.nodes.get_key_value(name))
            .map(|(id, _)| id.as_str())
            .collect()
    }

    fn start(&self) -> Vec<Fault> {
        let path = join(&self.draft.path, "start_node");
        match &self.draft.start_node {
            None => vec![Fault::new(
                FaultKind::StartNode,
                path,
                "没有写 `start_node`",
            )],
            Some(start) if !self.draft.nodes.contains_key(start) => {
                let fault = Fault::new(FaultKind::StartNode, path, format!("没有节点 `{start}`"));
                vec![fault.hint_near(start, self.ids())]
            }
            Some(_) => Vec::new(),
        }
    }

    fn names(&self) -> Vec<Fault> {
        self.ids()
            .filter_map(|id| {
                let what = match FinalState::parse(id) {
                    Some(_) => format!("`{id}` 是终点的名字，不会被当作节点执行"),
                    None if id.trim().is_empty() => "节点名是空的".to_owned(),
                    None => return None,
                };
                let fault = Fault::new(FaultKind::ReservedName, self.path(id), what);
                Some(fault.hint(
                    "换一个不以 `end` 开头的名字 choose a name that does not begin with `end`",
                ))
            })
            .collect()
    }

    fn branches(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (id, node) in &self.draft.nodes {
            for (branch, name) in &node.branches {
                let path = join(&self.path(id), branch);
                match Target::parse(name) {
                    Target::Node(name) if self.draft.nodes.contains_key(&name) => {}
                    Target::Node(name) => {
                        let what = format!("没有节点 `{name}`");
                        let known = self.ids().chain(KNOWN).chain(["review_required"]);
                        let fault = Fault::new(FaultKind::UnknownNode, path, what);
                        faults.push(fault.hint_near(&name, known));
                    }
                    Target::End(end) => faults.extend(self.mistyped_end(&end, path)),
                }
            }
        }
        faults
    }

    /// Any `end…` is a final state, so a slip in a known one or in a node's name would go unseen.
    fn mistyped_end(&self, end: &FinalState, path: String) -> Option<Fault> {
        let FinalState::Other(name) = end else {
            return None;
        };
        let near = nearest_within(2, name, KNOWN.into_iter().chain(self.ids()))?;
        if near == name || name == "end" {
            return None;
        }
        let what = format!("`{name}` 不是已知的终点，却和 `{near}` 很像");
        let hint = format!("是否想写 did you mean `{near}`?");
        Some(Fault::new(FaultKind::UnknownNode, path, what).hint(hint))
    }

    fn unreachable(&self) -> Vec<Fault> {
        let Some((start, _)) = (self.draft.start_node.as_ref())
            .and_then(|start| self.draft.nodes.get_key_value(start))
        else {
            return Vec::new();
        };
        let mut reached = BTreeSet::from([start.as_str()]);
        let mut waiting = vec![start.as_str()];
        while let Some(id) = waiting.pop() {
            waiting.extend(
                self.next(id)
                    .into_iter()
                    .filter(|next| reached.insert(next)),
            );
        }
        self.ids()
            .filter(|id| !reached.contains(id))
            .map(|id| {
                let what = format!("从 `{start}` 出发没有分支走到 `{id}`");
                Fault::new(FaultKind::Unreachable, self.path(id), what)
                    .hint("接上分支或删除节点 lead a branch here or delete the node")
            })
            .collect()
    }

    /// Cycles that no cap interrupts: those left when capped nodes are taken out.
    fn cycles(&self) -> Vec<Fault> {
        let is_capped = |id: &str| {
            let node = self.draft.nodes.get(id);
            node.is_some_and(|node| node.max_visits.is_some())
        };
        // A node that leads to nothing uncapped lies on no such cycle; peel those off again and again.
        let mut left: BTreeSet<&str> = self.ids().filter(|id| !is_capped(id)).collect();
        loop {
            let leads_on = |id: &&str| self.next(id).iter().any(|next| left.contains(next));
            let kept: BTreeSet<&str> = left.iter().copied().filter(leads_on).collect();
            if kept.len() == left.len() {
                break;
            }
            left = kept;
        }
        let mut named: BTreeSet<&str> = BTreeSet::new();
        let mut faults = Vec::new();
        for id in &left {
            if named.contains(id) {
                continue;
            }
            let Some(cycle) = self.way_back(id, &left) else {
                continue;
            };
            named.extend(cycle.iter().copied());
            let way = cycle.iter().chain([id]).copied().collect::<Vec<_>>();
            let what = way.join(" → ");
            let hint = "给其中一个节点写 `max_visits` give one of them `max_visits`";
            faults.push(Fault::new(FaultKind::Cycle, self.path(id), what).hint(hint));
        }
        faults
    }

    /// The shortest way from `id` back to itself inside `within`, without the return.
    fn way_back(&self, id: &'d str, within: &BTreeSet<&'d str>) -> Option<Vec<&'d str>> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut wave = vec![id];
        while !wave.is_empty() {
            let mut following = Vec::new();
            for from in wave {
                for next in self.next(from).into_iter().filter(|n| within.contains(n)) {
                    if next == id {
                        let mut way = vec![from];
                        let mut at = from;
                        while at != id {
                            at = came_from.get(at)?;
                            way.push(at);
                        }
                        way.reverse();
                        return Some(way);
                    }
                    if let std::collections::btree_map::Entry::Vacant(entry) = came_from.entry(next)
                    {
                        entry.insert(from);
                        following.push(next);
                    }
                }
            }
            wave = following;
        }
        None
    }

    fn may_end(&self, target: &Target) -> bool {
        match target {
            Target::End(_) => true,
            Target::Node(name) => !self.draft.nodes.contains_key(name),
        }
    }

    /// Nodes from which no written branch ever leads to a final state. A branch that is missing or
    /// mistyped has its own fault and may have been meant to lead to one.
    fn endless(&self) -> Vec<Fault> {
        let mut ending: BTreeSet<&str> = self
            .draft
            .nodes
            .iter()
            .filter(|(_, node)| {
                node.branches.is_empty() || node.targets().any(|target| self.may_end(&target))
            })
            .map(|(id, _)| id.as_str())
            .collect();
        loop {
            let more: Vec<&str> = self
                .ids()
                .filter(|id| !ending.contains(id))
                .filter(|id| self.next(id).iter().any(|next| ending.contains(next)))
                .collect();
            if more.is_empty() {
                break;
            }
            ending.extend(more);
        }
        self.ids()
            .filter(|id| !ending.contains(id))
            .map(|id| {
                let what = format!("从 `{id}` 出发走不到任何终点");
                Fault::new(FaultKind::NoEnd, self.path(id), what)
                    .hint("让某个分支通向 lead a branch to `end_success`, `end_with_violation`, …")
            })
            .collect()
    }

    /// Rule ids identify findings over re-runs, so one id for two rules would mix up their findings.
    fn duplicate_rules(&self) -> Vec<Fault> {
        let mut first: BTreeMap<&str, String> = BTreeMap::new();
        let mut faults = Vec::new();
        for (node_id, node) in &self.draft.nodes {
            let Some(Work::HardRule { rules }) = &node.work else {
                continue;
            };
            for (at, rule) in rules.iter().enumerate() {
                let Some(id) = rule.id.as_deref() else {
                    continue;
                };
                let path = format!("{}.rules[{at}].id", self.path(node_id));
                match first.get(id) {
                    Some(earlier) => {
                        let what = format!("`{id}` 已用于 {earlier}");
                        faults.push(Fault::new(FaultKind::DuplicateRule, path, what));
                    }
                    None => {
                        first.insert(id, path);
                    }
                }
            }
        }
        faults
    }
}
