//! One step of a run: do the node, take the branch.

use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::{
    compile::CompiledSkill,
    notice::{Notice, render},
    outcome::{Next, NodeOutcome, NodeResult},
    walk::Walk,
};
use crate::{
    engines::rules::{Outcome, RuleResult},
    skills::{FinalState, Target, Work},
    types::{
        finding::{Finding, FindingOutcome, Severity},
        record::Record,
        text::ellipsis,
    },
};

/// Why a soft node did not run when no language model is configured.
pub const NO_MODEL: &str = "未配置大模型，软规则未执行，转人工复核";

/// What a person says to a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing is wrong.
    Dismiss,
    /// It is as suspected.
    Confirm,
}

/// A step that does not fit the run. It is a fault of the caller or of stored state, not of the data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The run is over.
    #[error("the run already ended `{0}`; it takes no further step")]
    Over(FinalState),
    /// The run stands at a node the skill does not have.
    #[error("skill `{skill}` has no node `{node}`; the run was made by another version of it")]
    NoSuchNode {
        /// The skill.
        skill: String,
        /// The node.
        node: String,
    },
    /// The node is of another type.
    #[error("node `{node}` is a {found}, which cannot take a {wanted} step")]
    OtherType {
        /// The node.
        node: String,
        /// Its type.
        found: &'static str,
        /// The type the step is for.
        wanted: &'static str,
    },
}

impl CompiledSkill {
    /// Decides the hard node `walk` stands at. `today` is the project's calendar day.
    ///
    /// # Errors
    /// [`StepError`] when `walk` does not stand at a hard node of this skill.
    pub fn check(
        &self,
        walk: &mut Walk,
        record: &Record,
        today: NaiveDate,
    ) -> Result<NodeOutcome, StepError> {
        let node = self.here(walk, "hard_rule")?;
        let Some(rules) = self.rules.get(&node) else {
            return Err(self.no_such_node(&node));
        };
        if record.rows.is_empty() {
            let note = format!("记录 {} 没有任何数据", record.id);
            return Ok(self.settle(walk, node, Found::only(NodeResult::Incomplete, note)));
        }
        let results = rules.evaluate(record, today);
        // The node did its work, so an earlier query that it could not is settled as well.
        let mut rules_checked = answered(&results);
        rules_checked.push(self.node_key(&node));
        let found = Found {
            result: judge(&results),
            findings: results
                .iter()
                .filter_map(|result| result.to_finding(&record.id))
                .collect(),
            rules_checked,
            note: results
                .is_empty()
                .then(|| "没有适用的数据行，规则均未执行".to_owned()),
        };
        Ok(self.settle(walk, node, found))
    }

    /// Decides hard nodes one after the other until a node of another type or the end is next. One
    /// settlement can hold them all.
    ///
    /// # Errors
    /// [`StepError::NoSuchNode`] when `walk` belongs to another skill.
    pub fn run_leading(
        &self,
        walk: &mut Walk,
        record: &Record,
        today: NaiveDate,
    ) -> Result<Vec<NodeOutcome>, StepError> {
        let mut outcomes = Vec::new();
        while let Some(Work::HardRule { .. }) = self.work(walk) {
            outcomes.push(self.check(walk, record, today)?);
        }
        Ok(outcomes)
    }

    /// Takes what a soft rule or a tool came to. Its findings are known by [`CompiledSkill::node_key`],
    /// which is added to the rules checked unless the node could not do its work.
    ///
    /// # Errors
    /// [`StepError`] when `walk` does not stand at a soft rule or a tool of this skill.
    pub fn conclude(&self, walk: &mut Walk, mut found: Found) -> Result<NodeOutcome, StepError> {
        let node = self
            .here(walk, "soft_instruction")
            .or_else(|_| self.here(walk, "tool"))?;
        if found.result != NodeResult::Error {
            found.rules_checked.push(self.node_key(&node));
        }
        Ok(self.settle(walk, node, found))
    }

    /// Takes a person's decision on the review `walk` stands at.
    ///
    /// # Errors
    /// [`StepError`] when `walk` does not stand at a review of this skill.
    pub fn decide(&self, walk: &mut Walk, decision: Decision) -> Result<NodeOutcome, StepError> {
        let node = self.here(walk, "human_review")?;
        let found = match decision {
            Decision::Dismiss => {
                walk.dismiss();
                Found::only(NodeResult::Pass, "人工复核：排除".to_owned())
            }
            Decision::Confirm => Found::only(NodeResult::Fail, "人工复核：确认".to_owned()),
        };
        Ok(self.settle(walk, node, found))
    }

    /// Renders the notice `walk` stands at, from what the run has found so far, and goes on.
    ///
    /// # Errors
    /// [`StepError`] when `walk` does not stand at a notice of this skill.
    pub fn notify(
        &self,
        walk: &mut Walk,
        record: &str,
        findings: &[Finding],
    ) -> Result<(Notice, NodeOutcome), StepError> {
        let node = self.here(walk, "notify")?;
        let Some(Work::Notify { message, to }) = self.work(walk) else {
            return Err(self.no_such_node(&node));
        };
        let notice = Notice {
            to: to.clone(),
            text: render(message, record, findings),
        };
        let next = self.take(walk, &node, NodeResult::Pass);
        let outcome = NodeOutcome {
            node,
            result: NodeResult::Pass,
            findings: Vec::new(),
            rules_checked: Vec::new(),
            note: next.1,
            next: next.0,
        };
        Ok((notice, outcome))
    }

    /// Takes `on_error` out of the node `walk` stands at, because what it needs is not available, and
    /// leaves a query in the ledger: a check that was not made must not look like one that passed.
    ///
    /// `why` is one sentence for people, such as [`NO_MODEL`].
    ///
    /// # Errors
    /// [`StepError`] when the run is over or `walk` belongs to another skill.
    pub fn unavailable(
        &self,
        walk: &mut Walk,
        record: &str,
        why: &str,
    ) -> Result<NodeOutcome, StepError> {
        let node = self.current(walk)?;
        let about = match self.work(walk) {
            Some(Work::SoftInstruction { instruction, .. }) => {
                format!("：{}", ellipsis(instruction, 80))
            }
            Some(Work::Tool { tool, .. }) => format!("：工具 {tool}"),
            _ => String::new(),
        };
        let finding = Finding {
            record: record.to_owned(),
            event: None,
            instance: None,
            rule: self.node_key(&node),
            field: String::new(),
            outcome: FindingOutcome::NotEvaluable,
            severity: Severity::Query,
            message: format!("{why}（节点 {node}{about}）"),
            values: Vec::new(),
        };
        let found = Found {
            result: NodeResult::Error,
            findings: vec![finding],
            rules_checked: Vec::new(),
            note: Some(why.to_owned()),
        };
        Ok(self.settle(walk, node, found))
    }

    /// The current node, which must be of type `wanted`.
    fn here(&self, walk: &Walk, wanted: &'static str) -> Result<String, StepError> {
        let node = self.current(walk)?;
        match self.work(walk).map(Work::type_name) {
            Some(found) if found == wanted => Ok(node),
            Some(found) => Err(StepError::OtherType {
                node,
                found,
                wanted,
            }),
            None => Err(self.no_such_node(&node)),
        }
    }

    fn current(&self, walk: &Walk) -> Result<String, StepError> {
        match walk.next() {
            Next::End(state) => Err(StepError::Over(state.clone())),
            Next::Node(node) if self.node(node).is_some() => Ok(node.clone()),
            Next::Node(node) => Err(self.no_such_node(node)),
        }
    }

    fn no_such_node(&self, node: &str) -> StepError {
        StepError::NoSuchNode {
            skill: self.skill_type.clone(),
            node: node.to_owned(),
        }
    }

    pub(super) fn settle(&self, walk: &mut Walk, node: String, found: Found) -> NodeOutcome {
        walk.remember(&node, found.result);
        let (next, capped) = self.take(walk, &node, found.result);
        NodeOutcome {
            node,
            result: found.result,
            findings: found.findings,
            rules_checked: found.rules_checked,
            note: capped.or(found.note),
            next,
        }
    }

    /// Takes the branch `result` asks for; the sentence says why a visit cap ended the run instead.
    fn take(&self, walk: &mut Walk, node: &str, result: NodeResult) -> (Next, Option<String>) {
        let target = match self.node(node).map(|node| (&node.routes, result)) {
            Some((routes, NodeResult::Pass)) => routes.on_pass.clone(),
            Some((routes, NodeResult::Fail)) => routes.on_fail.clone(),
            Some((routes, NodeResult::NotEvaluable)) => routes.on_not_evaluable.clone(),
            Some((routes, NodeResult::Error)) => routes.on_error.clone(),
            Some((_, NodeResult::Incomplete)) => Target::End(FinalState::Incomplete),
            None => Target::End(FinalState::ReviewRequired),
        };
        let (next, most) = match target {
            Target::End(state) => (Next::End(state), None),
            Target::Node(id) => {
                let most = self.node(&id).and_then(|node| node.max_visits);
                (Next::Node(id), most)
            }
        };
        let wanted = match &next {
            Next::Node(id) => id.clone(),
            Next::End(_) => String::new(),
        };
        let note = walk
            .go(next, most)
            .then(|| format!("节点 {wanted} 已达访问次数上限，转人工复核"));
        (walk.next().clone(), note)
    }
}

/// What a node found, before the branch is taken; the parts are those of [`NodeOutcome`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// How it came out.
    pub result: NodeResult,
    /// What goes into the ledger.
    pub findings: Vec<Finding>,
    /// Keys of the rules that were answered.
    pub rules_checked: Vec<String>,
    /// One sentence for the trace.
    pub note: Option<String>,
}

impl Found {
    pub(super) fn only(result: NodeResult, note: String) -> Self {
        Self {
            result,
            findings: Vec::new(),
            rules_checked: Vec::new(),
            note: Some(note),
        }
    }
}

pub(super) fn judge(results: &[RuleResult]) -> NodeResult {
    let any = |wanted: fn(&Outcome) -> bool| results.iter().any(|result| wanted(&result.outcome));
    if any(|outcome| matches!(outcome, Outcome::Fail)) {
        NodeResult::Fail
    } else if any(|outcome| matches!(outcome, Outcome::NotEvaluable { .. })) {
        NodeResult::NotEvaluable
    } else if any(|outcome| matches!(outcome, Outcome::FormNotOpened)) {
        NodeResult::Incomplete
    } else {
        NodeResult::Pass
    }
}

/// Keys of the rules that got an answer from the data: it holds, it is broken, or it does not apply.
pub(super) fn answered(results: &[RuleResult]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    results
        .iter()
        .filter(|result| {
            matches!(
                result.outcome,
                Outcome::Pass | Outcome::Fail | Outcome::Hidden
            )
        })
        .filter(|result| seen.insert(result.rule_index))
        .map(|result| result.rule.to_string())
        .collect()
}
