//! What is wrong with a skill, and where: every fault names a place a person can go to.

use std::fmt;

use crate::types::near_miss::nearest;

/// A place in the file as written, both counted from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// The kind of a fault: stable, for code that branches; [`FaultKind::label`] is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// Not UTF-8, too large, holds NUL.
    Unreadable,
    /// Not JSON (with comments).
    Syntax,
    /// One object has the same key twice.
    DuplicateKey,
    /// Nested deeper than anything a person writes.
    TooDeep,
    /// A value of the wrong JSON type.
    WrongType,
    /// A key nobody reads.
    UnknownKey,
    /// A key that must be there is not.
    MissingKey,
    /// A key or value that cannot be right.
    BadValue,
    /// `type` of a node is missing or not one of the node types.
    NodeType,
    /// `start_node` is missing or names no node.
    StartNode,
    /// A node whose name is a final state's.
    ReservedName,
    /// A branch to a node that is not there.
    UnknownNode,
    /// A node no branch leads to.
    Unreachable,
    /// A branch the node type needs is missing.
    MissingBranch,
    /// A cycle none of whose nodes has `max_visits`.
    Cycle,
    /// A node from which no branch ever reaches an end.
    NoEnd,
    /// A tool that does not exist.
    UnknownTool,
    /// A hard node without rules, or a rule without logic.
    EmptyRule,
    /// Two rules with one id.
    DuplicateRule,
    /// A severity that does not exist.
    Severity,
    /// A rule the evaluator refuses: unknown operator, wrong arity, unknown field.
    Rule,
    /// A schedule that is no five-field cron expression.
    Schedule,
}

impl FaultKind {
    /// What people read, Chinese first.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Unreadable => "文件无法读取 unreadable",
            Self::Syntax => "JSON 语法错误 syntax error",
            Self::DuplicateKey => "键重复 duplicate key",
            Self::TooDeep => "嵌套过深 nested too deep",
            Self::WrongType => "类型不对 wrong type",
            Self::UnknownKey => "未知的键 unknown key",
            Self::MissingKey => "缺少键 missing key",
            Self::BadValue => "取值不对 bad value",
            Self::NodeType => "节点类型不对 node type",
            Self::StartNode => "起始节点不对 start node",
            Self::ReservedName => "节点名被保留 reserved name",
            Self::UnknownNode => "未知节点 unknown node",
            Self::Unreachable => "节点不可达 unreachable node",
            Self::MissingBranch => "缺少分支 missing branch",
            Self::Cycle => "循环没有次数上限 cycle without a visit cap",
            Self::NoEnd => "走不到终点 no path to an end",
            Self::UnknownTool => "未知工具 unknown tool",
            Self::EmptyRule => "规则为空 empty rule",
            Self::DuplicateRule => "规则编号重复 duplicate rule id",
            Self::Severity => "严重程度不对 bad severity",
            Self::Rule => "规则有误 faulty rule",
            Self::Schedule => "定时表达式不对 bad schedule",
        }
    }
}

/// One thing wrong with a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind.
    pub kind: FaultKind,
    /// JSON path from the root of the file (`nodes.check_age.on_fail`); empty for the file as a whole.
    pub path: String,
    /// Line and column, when the skill came from text.
    pub place: Option<Place>,
    /// What is wrong, with the offending name or value.
    pub what: String,
    /// What to write instead.
    pub hint: Option<String>,
}

impl Fault {
    /// A fault at `path`.
    #[must_use]
    pub fn new(kind: FaultKind, path: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            kind,
            path: path.into(),
            place: None,
            what: what.into(),
            hint: None,
        }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Hints at the known name nearest to `written`; with nothing near, lists what there is.
    #[must_use]
    pub fn hint_near<'a>(self, written: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        match nearest(written, known.iter().copied()) {
            Some(near) => self.hint(format!("是否想写 did you mean `{near}`?")),
            None if known.is_empty() => self,
            None => self.hint(format!("可用 known: {}", known.join(", "))),
        }
    }

    /// Puts the fault at a place of the text.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }
}

impl fmt::Display for Fault {
    /// One line: `LINE:COLUMN PATH: label: what (hint)`, with the parts that are known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{}:{} ", place.line, place.column)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{}: {}", self.kind.label(), self.what)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}
