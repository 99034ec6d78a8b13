//! What people read about a result. Built for non-passes only.

use std::collections::BTreeMap;

use super::{
    cell::Cell,
    eval::{Doubt, Eval},
    expr::Expr,
    names::RefId,
    result::Reason,
};
use crate::types::{finding::FieldValue, text::ellipsis};

/// Longest value shown in a message, in characters.
const SHOWN_CHARS: usize = 60;

/// A rule's message, with the places to fill in.
#[derive(Debug, Default)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(String),
    /// `{field}`
    Value(RefId),
}

impl Template {
    /// `{name}` becomes the value of the field `known` finds under that name; other braces stay as they are.
    pub(super) fn parse(text: &str, known: &BTreeMap<String, RefId>) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        let mut plain = String::new();
        while let Some((before, after)) = rest.split_once('{') {
            plain.push_str(before);
            match after.split_once('}') {
                Some((name, tail)) if known.contains_key(name.trim()) => {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                    parts.extend(known.get(name.trim()).copied().map(Part::Value));
                    rest = tail;
                }
                _ => {
                    plain.push('{');
                    rest = after;
                }
            }
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Self { parts }
    }

    fn fill(&self, eval: &Eval<'_, '_>) -> String {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.clone(),
                Part::Value(id) => value(eval, *id),
            })
            .collect()
    }

    fn shows(&self, id: RefId) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Value(shown) if *shown == id))
    }
}

/// The names in braces.
pub(super) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{')
        .skip(1)
        .filter_map(|part| part.split_once('}'))
        .map(|(name, _)| name.trim())
}

fn value(eval: &Eval<'_, '_>, id: RefId) -> String {
    match eval.frame.text(id) {
        Some(text) => ellipsis(&text, SHOWN_CHARS),
        None => "空".to_owned(),
    }
}

fn name<'a>(eval: &Eval<'_, 'a>, id: RefId) -> &'a str {
    &eval.frame.fields().refs[id].name
}

/// `年龄（age）`, or the bare name when the dictionary has no label.
fn titled(eval: &Eval<'_, '_>, id: RefId) -> String {
    let fields = eval.frame.fields();
    let (label, name) = (&fields.slots[fields.refs[id].slot].label, name(eval, id));
    if label.is_empty() || label == name {
        name.to_owned()
    } else {
        format!("{}（{name}）", ellipsis(label, SHOWN_CHARS))
    }
}

/// `年龄<18岁（age=16）`: the message, and the values it rests on that it doesn't show itself.
pub(super) fn failed(
    eval: &Eval<'_, '_>,
    expr: &Expr,
    template: &Template,
    has_own_message: bool,
    refs: &[RefId],
) -> String {
    let text = template.fill(eval);
    if let Expr::Function(function) = expr {
        let detail = function.detail(eval);
        return if has_own_message {
            format!("{text}（{detail}）")
        } else {
            detail
        };
    }
    let values: Vec<String> = refs
        .iter()
        .filter(|id| !template.shows(**id))
        .map(|id| format!("{}={}", name(eval, *id), value(eval, *id)))
        .collect();
    if values.is_empty() {
        text
    } else {
        format!("{text}（{}）", values.join("，"))
    }
}

/// `缺失: 年龄（age），无法判定“年龄<18岁”`.
pub(super) fn not_evaluable(
    eval: &Eval<'_, '_>,
    expr: &Expr,
    template: &Template,
    doubts: &[Doubt],
) -> String {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for doubt in doubts {
        let (kind, what) = described(eval, expr, *doubt);
        match groups.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, items)) => items.push(what),
            None => groups.push((kind, vec![what])),
        }
    }
    let reasons: Vec<String> = groups
        .into_iter()
        .map(|(kind, items)| format!("{kind}: {}", items.join("、")))
        .collect();
    format!("{}，无法判定“{}”", reasons.join("；"), template.fill(eval))
}

fn described(eval: &Eval<'_, '_>, expr: &Expr, doubt: Doubt) -> (&'static str, String) {
    let Some(id) = doubt.field else {
        return ("无法计算", "结果不是数".to_owned());
    };
    let role = match expr {
        Expr::Function(function) => function.role(id),
        _ => None,
    };
    let title = match role {
        Some(role) => format!("{role} {}", titled(eval, id)),
        None => titled(eval, id),
    };
    let with_value = |title: String| format!("{title}=“{}”", value(eval, id));
    match doubt.reason {
        Reason::Missing => ("缺失", title),
        Reason::CodedMissing => match eval.frame.cell(id) {
            Cell::Coded(code) => ("缺失", format!("{title}，缺失代码 {code}")),
            _ => ("缺失", title),
        },
        Reason::NotExported => ("缺失", format!("{title}，导出中没有这一列")),
        Reason::Invalid => ("无效值", with_value(title)),
        Reason::PartialDate => ("日期不完整", with_value(title)),
        Reason::AmbiguousEvent => ("多个访视都有此字段，规则没有指明", title),
        Reason::Undefined => ("无法计算", with_value(title)),
    }
}

/// Why nothing is asked of a hidden field.
pub(super) fn hidden(eval: &Eval<'_, '_>, fields: &[RefId]) -> String {
    format!("分支逻辑隐藏: {}", list(eval, fields))
}

/// Why nothing is asked of an unopened form.
pub(super) fn not_opened(eval: &Eval<'_, '_>, fields: &[RefId]) -> String {
    format!("表单尚未填写: {}", list(eval, fields))
}

fn list(eval: &Eval<'_, '_>, fields: &[RefId]) -> String {
    let titles: Vec<String> = fields.iter().map(|id| titled(eval, *id)).collect();
    titles.join("、")
}

/// The values of the fields, for the finding.
pub(super) fn values(eval: &Eval<'_, '_>, refs: &[RefId]) -> Vec<FieldValue> {
    refs.iter()
        .map(|id| FieldValue {
            field: name(eval, *id).to_owned(),
            value: eval.frame.text(*id),
        })
        .collect()
}
