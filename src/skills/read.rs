//! From JSON to a draft of a skill, collecting every fault on the way.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    draft::{Draft, DraftNode},
    fault::{Fault, FaultKind},
    model::{Report, TOOLS, Work},
    node_type::{self, NodeType},
    rules::read_rules,
    schedule::Timing,
    text::{Document, MAX_FAULTS, join},
};

/// Most visits a skill may allow one node in one run.
const MAX_VISITS: u64 = 100;

/// Most nodes of one SOP. A node is a phase of a protocol and holds many rules, so real ones have few.
const MAX_NODES: usize = 500;

/// Collects faults while values are taken out of a document.
pub(super) struct Reader<'d> {
    document: &'d Document,
    /// Faults so far.
    pub(super) faults: Vec<Fault>,
}

impl<'d> Reader<'d> {
    /// A reader of `document`.
    pub(super) fn new(document: &'d Document) -> Self {
        Self {
            document,
            faults: Vec::new(),
        }
    }

    /// Notes a fault, at its place in the text.
    pub(super) fn fault(&mut self, fault: Fault) {
        if self.faults.len() >= MAX_FAULTS {
            return;
        }
        let place = fault.place.or_else(|| self.document.place(&fault.path));
        self.faults.push(fault.at(place));
    }

    /// `value` as an object; any other type is a fault.
    pub(super) fn object<'v>(
        &mut self,
        value: &'v Value,
        path: &str,
    ) -> Option<&'v Map<String, Value>> {
        if let Value::Object(map) = value {
            return Some(map);
        }
        self.wrong_type(path, "对象 {…}", value);
        None
    }

    /// Notes every key that nobody would read.
    pub(super) fn only_keys(&mut self, map: &Map<String, Value>, path: &str, known: &[&str]) {
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let fault = Fault::new(FaultKind::UnknownKey, join(path, key), format!("`{key}`"));
            self.fault(fault.hint_near(key, known.iter().copied()));
        }
    }

    /// An optional text. One that is there but blank is a fault.
    pub(super) fn text(
        &mut self,
        map: &Map<String, Value>,
        path: &str,
        key: &str,
    ) -> Option<String> {
        let inner = join(path, key);
        match map.get(key)? {
            Value::String(text) if text.trim().is_empty() => {
                self.fault(Fault::new(
                    FaultKind::BadValue,
                    inner,
                    format!("`{key}` 是空的"),
                ));
                None
            }
            Value::String(text) => Some(text.clone()),
            other => {
                self.wrong_type(&inner, "文本 \"…\"", other);
                None
            }
        }
    }

    /// A text that must be there.
    fn needed_text(&mut self, map: &Map<String, Value>, path: &str, key: &str) -> Option<String> {
        if !map.contains_key(key) {
            self.missing(path, key);
        }
        self.text(map, path, key)
    }

    /// An optional list of texts; a single text counts as a list of one.
    fn texts(&mut self, map: &Map<String, Value>, path: &str, key: &str) -> Option<Vec<String>> {
        let inner = join(path, key);
        let items = match map.get(key)? {
            Value::String(text) => return Some(vec![text.clone()]),
            Value::Array(items) => items,
            other => {
                self.wrong_type(&inner, "文本列表 [\"…\"]", other);
                return None;
            }
        };
        let mut texts = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                other => self.wrong_type(&format!("{inner}[{at}]"), "文本 \"…\"", other),
            }
        }
        Some(texts)
    }

    pub(super) fn missing(&mut self, path: &str, key: &str) {
        self.fault(Fault::new(
            FaultKind::MissingKey,
            join(path, key),
            format!("没有写 `{key}`"),
        ));
    }

    pub(super) fn wrong_type(&mut self, path: &str, wanted: &str, found: &Value) {
        let found = match found {
            Value::Null => "null",
            Value::Bool(_) => "布尔 boolean",
            Value::Number(_) => "数字 number",
            Value::String(_) => "文本 string",
            Value::Array(_) => "列表 array",
            Value::Object(_) => "对象 object",
        };
        let what = format!("应为 {wanted}，写的是 {found}");
        self.fault(Fault::new(FaultKind::WrongType, path, what));
    }

    /// The whole file: a bare SOP, or a wrapper around a configuration.
    pub(super) fn file<'v>(&mut self, root: &'v Value, given_type: &str) -> Option<Envelope<'v>> {
        let map = self.object(root, "")?;
        let is_wrapped = ["skillType", "skill_type", "config"]
            .iter()
            .any(|key| map.contains_key(*key));
        if !is_wrapped {
            return Some(Envelope {
                skill_type: given_type.to_owned(),
                name: None,
                timing: Timing::default(),
                config: root,
                path: "",
                is_file: true,
            });
        }
        const KEYS: [&str; 9] = [
            "skillType",
            "skill_type",
            "name",
            "schedule",
            "catchup",
            "catchup_window",
            "config",
            "description",
            "$schema",
        ];
        self.only_keys(map, "", &KEYS);
        let skill_type = self
            .text(map, "", "skillType")
            .or_else(|| self.text(map, "", "skill_type"));
        let name = self.text(map, "", "name");
        let timing = self.timing(map, "");
        let Some(config) = map.get("config") else {
            self.missing("", "config");
            return None;
        };
        Some(Envelope {
            skill_type: skill_type.unwrap_or_else(|| given_type.to_owned()),
            name,
            timing,
            config,
            path: "config",
            is_file: true,
        })
    }

    /// A configuration: an SOP when it has nodes, a report when it has what reports have.
    pub(super) fn config(&mut self, config: &Value, path: &str) -> Option<Config> {
        let map = self.object(config, path)?;
        let has = |keys: &[&str]| keys.iter().any(|key| map.contains_key(*key));
        let timing = self.timing(map, path);
        let name = self.text(map, path, "name");
        let content = if !has(&["nodes", "start_node"]) && has(&["recipients", "sections"]) {
            const KEYS: [&str; 7] = [
                "name",
                "schedule",
                "catchup",
                "catchup_window",
                "recipients",
                "sections",
                "description",
            ];
            self.only_keys(map, path, &KEYS);
            Content::Report(Report {
                recipients: self.texts(map, path, "recipients").unwrap_or_default(),
                sections: self.texts(map, path, "sections").unwrap_or_default(),
            })
        } else {
            const KEYS: [&str; 8] = [
                "name",
                "schedule",
                "catchup",
                "catchup_window",
                "start_node",
                "nodes",
                "description",
                "$schema",
            ];
            self.only_keys(map, path, &KEYS);
            Content::Sop(Draft {
                path: path.to_owned(),
                start_node: self.text(map, path, "start_node"),
                nodes: self.nodes(map, path),
            })
        };
        Some(Config {
            name,
            timing,
            content,
        })
    }

    fn nodes(&mut self, map: &Map<String, Value>, path: &str) -> BTreeMap<String, DraftNode> {
        let inner = join(path, "nodes");
        let Some(nodes) = map.get("nodes") else {
            self.missing(path, "nodes");
            return BTreeMap::new();
        };
        let Some(nodes) = self.object(nodes, &inner) else {
            return BTreeMap::new();
        };
        if nodes.len() > MAX_NODES {
            let what = format!("有 {} 个节点，最多 {MAX_NODES} 个", nodes.len());
            let fault = Fault::new(FaultKind::BadValue, inner, what);
            self.fault(fault.hint("把规则合并到 `rules` put rules together in `rules`"));
            return BTreeMap::new();
        }
        nodes
            .iter()
            .map(|(id, node)| (id.clone(), self.node(node, &join(&inner, id))))
            .collect()
    }

    fn node(&mut self, value: &Value, path: &str) -> DraftNode {
        let mut draft = DraftNode::default();
        let Some(map) = self.object(value, path) else {
            return draft;
        };
        draft.branches = self.branches(map, path);
        draft.max_visits = self.max_visits(map, path);
        let Some(node_type) = self.node_type(map, path) else {
            return draft;
        };
        self.only_keys(map, path, &node_type.keys());
        for branch in node_type.branches().0 {
            if !map.contains_key(*branch) {
                let what = format!("节点没有写 `{branch}`");
                self.fault(Fault::new(
                    FaultKind::MissingBranch,
                    join(path, branch),
                    what,
                ));
            }
        }
        draft.work = self.work(node_type, map, path);
        draft
    }

    fn node_type(&mut self, map: &Map<String, Value>, path: &str) -> Option<NodeType> {
        let inner = join(path, "type");
        if !map.contains_key("type") {
            let what = "节点没有写 `type`";
            let hint = format!("可用 known: {}", node_type::NAMES.join(", "));
            self.fault(Fault::new(FaultKind::NodeType, inner, what).hint(hint));
            return None;
        }
        let name = self.text(map, path, "type")?;
        let known = NodeType::parse(&name);
        if known.is_none() {
            let fault = Fault::new(
                FaultKind::NodeType,
                inner,
                format!("没有 `{name}` 这种节点"),
            );
            self.fault(fault.hint_near(&name, node_type::NAMES));
        }
        known
    }

    fn branches(&mut self, map: &Map<String, Value>, path: &str) -> BTreeMap<&'static str, String> {
        ["on_pass", "on_fail", "on_error", "on_not_evaluable"]
            .into_iter()
            .filter_map(|branch| Some((branch, self.text(map, path, branch)?)))
            .collect()
    }

    fn max_visits(&mut self, map: &Map<String, Value>, path: &str) -> Option<u32> {
        let value = map.get("max_visits")?;
        let visits = value
            .as_u64()
            .filter(|visits| (1..=MAX_VISITS).contains(visits))
            .and_then(|visits| u32::try_from(visits).ok());
        if visits.is_none() {
            let what = format!("`max_visits` 应为 1 到 {MAX_VISITS} 的整数，写的是 {value}");
            self.fault(Fault::new(
                FaultKind::BadValue,
                join(path, "max_visits"),
                what,
            ));
        }
        visits
    }

    fn work(&mut self, node_type: NodeType, map: &Map<String, Value>, path: &str) -> Option<Work> {
        Some(match node_type {
            NodeType::HardRule => Work::HardRule {
                rules: read_rules(self, map, path),
            },
            NodeType::SoftInstruction => {
                let tools = self
                    .texts(map, path, "tools")
                    .unwrap_or_else(|| vec!["read_clinical_data".to_owned()]);
                for (at, tool) in tools.iter().enumerate() {
                    self.tool(tool, &format!("{}[{at}]", join(path, "tools")));
                }
                Work::SoftInstruction {
                    instruction: self.needed_text(map, path, "instruction")?,
                    tools,
                }
            }
            NodeType::HumanReview => Work::HumanReview {
                message: self
                    .text(map, path, "message")
                    .unwrap_or_else(|| "请人工复核".to_owned()),
            },
            NodeType::Tool => {
                let tool = self.needed_text(map, path, "tool")?;
                self.tool(&tool, &join(path, "tool"));
                let args = match map.get("args") {
                    Some(args) => self.object(args, &join(path, "args"))?.clone(),
                    None => Map::new(),
                };
                Work::Tool { tool, args }
            }
            NodeType::Notify => Work::Notify {
                message: self.needed_text(map, path, "message")?,
                to: self.texts(map, path, "to").unwrap_or_default(),
            },
        })
    }

    fn tool(&mut self, name: &str, path: &str) {
        if !TOOLS.contains(&name) {
            let fault = Fault::new(FaultKind::UnknownTool, path, format!("没有工具 `{name}`"));
            self.fault(fault.hint_near(name, TOOLS));
        }
    }
}

/// What stands around a configuration.
pub(super) struct Envelope<'v> {
    /// The skill's type.
    pub(super) skill_type: String,
    /// Its name, when the envelope says one.
    pub(super) name: Option<String>,
    /// When it runs, as far as the envelope says.
    pub(super) timing: Timing,
    /// The configuration.
    pub(super) config: &'v Value,
    /// Where the configuration stands.
    pub(super) path: &'static str,
    /// It came from a file, which holds all there is to say; a row has columns beside it.
    pub(super) is_file: bool,
}

/// A configuration, read but not checked.
pub(super) struct Config {
    /// Its name, when it says one.
    pub(super) name: Option<String>,
    /// When it runs, as far as the configuration says.
    pub(super) timing: Timing,
    /// SOP or report.
    pub(super) content: Content,
}

/// SOP or report.
pub(super) enum Content {
    /// A graph, not checked yet.
    Sop(Draft),
    /// A report.
    Report(Report),
}
