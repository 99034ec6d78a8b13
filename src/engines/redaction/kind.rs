//! The kinds of personal data, and what a placeholder looks like.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

/// What a model is told about placeholders, in a prompt of its own kind.
pub const NOTE: &str = "〔〕里的“姓名”“电话”“出生日期”等类别加编号，是不予显示的身份信息的代号：同一代号是同一个值；引用或填写参数时连同〔〕原样照抄，不要猜测或改写。";

/// What a value that is not shown is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A person's name.
    Name,
    /// Identity card, passport, permits.
    Certificate,
    /// Telephone, WeChat, QQ.
    Phone,
    /// E-mail address.
    Email,
    /// A number the hospital knows a patient by.
    Hospital,
    /// Where somebody lives.
    Address,
    /// Date of birth.
    Birth,
    /// Bank card.
    Bank,
    /// Anything else a study calls identifying.
    Identifier,
    /// No personal data: text that looks like a placeholder and is none.
    Literal,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Name,
        Self::Certificate,
        Self::Phone,
        Self::Email,
        Self::Hospital,
        Self::Address,
        Self::Birth,
        Self::Bank,
        Self::Identifier,
        Self::Literal,
    ];

    /// What stands in a placeholder, and what the database keeps.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Name => "姓名",
            Self::Certificate => "证件号",
            Self::Phone => "电话",
            Self::Email => "邮箱",
            Self::Hospital => "病案号",
            Self::Address => "地址",
            Self::Birth => "出生日期",
            Self::Bank => "银行卡",
            Self::Identifier => "标识",
            Self::Literal => "原文",
        }
    }

    /// The kind of that label.
    #[must_use]
    pub fn of_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.label() == label)
    }

    /// The `no`th placeholder of this kind.
    #[must_use]
    pub fn placeholder(self, no: usize) -> String {
        format!("〔{}{no}〕", self.label())
    }

    /// What somebody sees who may not see the value.
    #[must_use]
    pub fn mask(self) -> String {
        format!("〔{}〕", self.label())
    }
}

/// One value found in a text: where, in bytes, and of what kind.
pub type Span = (Range<usize>, Kind);

/// A pattern of ours. `None` would be a fault in the program, which every test would show; whoever needs the
/// pattern then refuses to work (see [`super::Redactor::new`]).
pub(super) type Pattern = LazyLock<Option<Regex>>;

/// Exactly our placeholders.
pub(super) static PLACEHOLDER: Pattern =
    LazyLock::new(|| Regex::new(&format!("〔({})([0-9]{{1,6}})〕", labels())).ok());

/// What a model could take for one: other brackets, blanks, other digits.
pub(super) static LOOKALIKE: Pattern = LazyLock::new(|| {
    let source = format!(
        r"[〔﹝［【\[〖]\s*(?:{})\s*\p{{Nd}}{{1,6}}\s*[〕﹞］】\]〗]",
        labels()
    );
    Regex::new(&source).ok()
});

fn labels() -> String {
    Kind::ALL.map(Kind::label).join("|")
}
