//! A skill made ready for one study: rules compiled once per skill version.

use std::collections::BTreeMap;

use super::walk::Walk;
use crate::{
    engines::rules::{RuleFault, RuleSet, Study},
    skills::{Body, Fault, FaultKind, Node, Skill, Sop, Work, text::join},
    types::rule::RuleSpec,
};

/// An SOP whose rules are compiled. Immutable; share it by `Arc`.
#[derive(Debug)]
pub struct CompiledSkill {
    pub(super) skill_type: String,
    pub(super) sop: Sop,
    pub(super) rules: BTreeMap<String, RuleSet>,
}

impl CompiledSkill {
    /// Compiles every hard node of `skill` for `study`.
    ///
    /// # Errors
    /// Every fault of every rule, with its path in the skill; one fault when the skill is no SOP.
    pub fn compile(skill: &Skill, study: &Study<'_>) -> Result<Self, Vec<Fault>> {
        let sop = match &skill.body {
            Body::Sop(sop) => sop,
            Body::Report(_) => {
                let what = format!("`{}` 是报告技能，没有质控流程", skill.skill_type);
                return Err(vec![Fault::new(FaultKind::BadValue, "", what)]);
            }
        };
        let mut rules = BTreeMap::new();
        let mut faults = Vec::new();
        for (id, node) in &sop.nodes {
            let Work::HardRule { rules: specs } = &node.work else {
                continue;
            };
            match RuleSet::compile(specs, study) {
                Ok(set) => {
                    rules.insert(id.clone(), set);
                }
                Err(found) => faults.extend(
                    found
                        .into_iter()
                        .map(|fault| rule_fault(skill, id, specs, fault)),
                ),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self {
            skill_type: skill.skill_type.clone(),
            sop: sop.clone(),
            rules,
        })
    }

    /// The skill's type.
    #[must_use]
    pub fn skill_type(&self) -> &str {
        &self.skill_type
    }

    /// The graph.
    #[must_use]
    pub fn sop(&self) -> &Sop {
        &self.sop
    }

    /// How many rules all hard nodes have together.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        self.rules.values().map(RuleSet::len).sum()
    }

    /// A new run, at the start node.
    #[must_use]
    pub fn begin(&self) -> Walk {
        Walk::begin(&self.sop.start_node)
    }

    /// What has to be done next; `None` once the run is over, or when `walk` belongs to another skill.
    #[must_use]
    pub fn work(&self, walk: &Walk) -> Option<&Work> {
        self.node(walk.node()?).map(|node| &node.work)
    }

    /// What findings of a node that has no rules of its own are known by in the ledger.
    #[must_use]
    pub fn node_key(&self, node: &str) -> String {
        format!("{}/{node}", self.skill_type)
    }

    pub(super) fn node(&self, id: &str) -> Option<&Node> {
        self.sop.nodes.get(id)
    }
}

/// Puts a rule's fault at its path in the skill file.
fn rule_fault(skill: &Skill, node: &str, specs: &[RuleSpec], fault: RuleFault) -> Fault {
    let node_path = join(&join(&skill.config_path, "nodes"), node);
    let is_list = skill
        .config
        .get("nodes")
        .and_then(|nodes| nodes.get(node)?.get("rules"))
        .is_some();
    let position = match fault.rule.strip_prefix('#').and_then(|n| n.parse().ok()) {
        Some(counted_from_one) => usize::checked_sub(counted_from_one, 1),
        None => specs
            .iter()
            .position(|spec| spec.id.as_deref().map(str::trim) == Some(&fault.rule)),
    };
    let rule_path = match position.filter(|_| is_list) {
        Some(at) => format!("{node_path}.rules[{at}]"),
        None => node_path,
    };
    Fault::new(FaultKind::Rule, join(&rule_path, &fault.path), fault.what)
}
