//! Random graphs, random outcomes: every walk follows its graph and ends.

#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    CompiledSkill, FinalState, Found, Next, NodeResult, Standing,
    tests::{record, rule, today},
};
use crate::{
    engines::rules::Study,
    skills::{Target, Work, from_config},
};

const ENDS: [&str; 6] = [
    "end_success",
    "end_with_violation",
    "end_with_error",
    "review_required",
    "end_incomplete",
    "end_screened",
];

fn node_json(kind: u8, targets: [&str; 4], cap: Option<u32>) -> Value {
    let [pass, fail, error, not_evaluable] = targets;
    let mut node = match kind % 5 {
        0 => json!({ "type": "hard_rule", "logic": rule() }),
        1 => json!({ "type": "soft_instruction", "instruction": "x" }),
        2 => json!({ "type": "human_review" }),
        3 => json!({ "type": "tool", "tool": "aggregate" }),
        _ => json!({ "type": "notify", "message": "x" }),
    };
    node["on_pass"] = json!(pass);
    if kind % 5 != 4 {
        node["on_fail"] = json!(fail);
    }
    if kind >= 128 {
        node["on_error"] = json!(error);
        if matches!(kind % 5, 0 | 1 | 3) {
            node["on_not_evaluable"] = json!(not_evaluable);
        }
    }
    if let Some(cap) = cap {
        node["max_visits"] = json!(cap);
    }
    node
}

type Draw = (u8, [u8; 4], Option<u32>);

fn draws(most: usize) -> impl Strategy<Value = Vec<Draw>> {
    let cap = proptest::option::of(1_u32..4);
    proptest::collection::vec((any::<u8>(), any::<[u8; 4]>(), cap), 1..most)
}

/// Any graph at all over `n0`, `n1`, … and the final states.
fn wild(draws: &[Draw]) -> Value {
    let names: Vec<String> = (0..draws.len()).map(|at| format!("n{at}")).collect();
    let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
    all.extend(ENDS);
    let nodes: BTreeMap<&str, Value> = names
        .iter()
        .zip(draws)
        .map(|(name, (kind, targets, cap))| {
            let targets = targets.map(|t| all[usize::from(t) % all.len()]);
            (name.as_str(), node_json(*kind, targets, *cap))
        })
        .collect();
    json!({ "start_node": "n0", "nodes": nodes })
}

/// A sound graph: `on_pass` leads to the next node, other branches on, to an end, or back to a capped one.
fn sound(draws: &[Draw]) -> Value {
    let names: Vec<String> = (0..draws.len()).map(|at| format!("n{at}")).collect();
    let nodes: BTreeMap<&str, Value> = names
        .iter()
        .zip(draws)
        .enumerate()
        .map(|(at, (name, (kind, targets, cap)))| {
            let mut choices: Vec<&str> = ENDS.to_vec();
            choices.extend(names.iter().skip(at + 1).map(String::as_str));
            choices.extend(
                names
                    .iter()
                    .zip(draws)
                    .filter(|(_, draw)| draw.2.is_some())
                    .map(|(name, _)| name.as_str()),
            );
            let mut targets = targets.map(|t| choices[usize::from(t) % choices.len()]);
            targets[0] = names.get(at + 1).map_or("end_success", String::as_str);
            (name.as_str(), node_json(*kind, targets, *cap))
        })
        .collect();
    json!({ "start_node": "n0", "nodes": nodes })
}

const RESULTS: [NodeResult; 5] = [
    NodeResult::Pass,
    NodeResult::Fail,
    NodeResult::NotEvaluable,
    NodeResult::Incomplete,
    NodeResult::Error,
];

/// Walks with the given results (then passes) to the end, checking each step against the declared graph.
fn walk_through(skill: &CompiledSkill, results: &[u8]) -> Result<(), TestCaseError> {
    let nodes = &skill.sop().nodes;
    let caps: u32 = nodes.values().filter_map(|node| node.max_visits).sum();
    let bound = (usize::try_from(caps).unwrap() + 1) * (nodes.len() + 1);
    let mut results = results
        .iter()
        .map(|r| RESULTS[usize::from(*r) % RESULTS.len()]);
    let mut visits: BTreeMap<String, u32> = BTreeMap::new();
    let mut walk = skill.begin();
    let mut raised = false;
    let mut steps = 0;
    while let Some(id) = walk.node().map(ToOwned::to_owned) {
        steps += 1;
        prop_assert!(steps <= bound, "{steps} steps, at most {bound}");
        let node = nodes.get(&id);
        prop_assert!(node.is_some(), "`{id}` is not declared");
        let node = node.unwrap();
        *visits.entry(id.clone()).or_default() += 1;
        let result = results.next().unwrap_or(NodeResult::Pass);
        raised |= !matches!(result, NodeResult::Pass | NodeResult::Incomplete);
        let next = skill
            .settle(&mut walk, id, Found::only(result, String::new()))
            .next;
        let declared = match result {
            NodeResult::Pass => node.routes.on_pass.clone(),
            NodeResult::Fail => node.routes.on_fail.clone(),
            NodeResult::NotEvaluable => node.routes.on_not_evaluable.clone(),
            NodeResult::Error => node.routes.on_error.clone(),
            NodeResult::Incomplete => Target::End(FinalState::Incomplete),
        };
        match (&next, declared) {
            (Next::Node(went), Target::Node(said)) => prop_assert_eq!(went, &said),
            (Next::End(went), Target::End(said)) => prop_assert_eq!(went, &said),
            (Next::End(went), Target::Node(said)) => {
                prop_assert_eq!(went, &FinalState::ReviewRequired);
                let most = nodes.get(&said).and_then(|node| node.max_visits);
                prop_assert_eq!(most, visits.get(&said).copied(), "the cap was used up");
            }
            (went, said) => prop_assert!(false, "went to {:?}, declared {:?}", went, said),
        }
    }
    prop_assert!(!(raised && walk.standing() <= Some(Standing::Incomplete)));
    Ok(())
}

proptest! {
    #[test]
    fn every_graph_the_check_accepts_ends_and_stays_inside(
        draws in draws(6),
        results in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        if let Ok(skill) = from_config("wild", "wild", None, &wild(&draws)) {
            let skill = CompiledSkill::compile(&skill, &Study::default()).unwrap();
            walk_through(&skill, &results)?;
        }
    }

    #[test]
    fn a_graph_with_caps_on_its_ways_back_is_accepted_and_ends(
        draws in draws(9),
        results in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let skill = from_config("sound", "sound", None, &sound(&draws));
        prop_assert!(skill.is_ok(), "{:?}", skill.err());
        let skill = CompiledSkill::compile(&skill.unwrap(), &Study::default()).unwrap();
        walk_through(&skill, &results)?;
    }

    #[test]
    fn leading_hard_nodes_stop_at_the_first_other_node(draws in draws(9)) {
        let Ok(skill) = from_config("sound", "sound", None, &sound(&draws)) else {
            return Ok(());
        };
        let skill = CompiledSkill::compile(&skill, &Study::default()).unwrap();
        let mut walk = skill.begin();
        let outcomes = skill.run_leading(&mut walk, &record(&[("age", "30")]), today()).unwrap();
        let all_hard = outcomes.iter().all(|outcome| {
            matches!(skill.sop().nodes.get(&outcome.node).map(|n| &n.work), Some(Work::HardRule { .. }))
        });
        prop_assert!(all_hard);
        let stands_at_hard = matches!(skill.work(&walk), Some(Work::HardRule { .. }));
        prop_assert!(!stands_at_hard);
        for pair in outcomes.windows(2) {
            prop_assert_eq!(&pair[0].next, &Next::Node(pair[1].node.clone()));
        }
    }
}
