//! What a Word file's styles and lists say: which style is a heading, and which list it counts in.

use std::collections::HashMap;

use super::{
    DocumentError,
    docx::{Part, attribute, elements},
    numbering::{LEVELS, Numbering},
};

/// Styles may rest on styles.
const DEEPEST: usize = 16;

/// One style of paragraphs.
#[derive(Debug, Clone, Default)]
pub(super) struct Style {
    /// The name, in lower case.
    pub name: String,
    /// The style it rests on.
    pub based_on: Option<String>,
    /// Outline level, from 0; 9 is body text.
    pub outline: Option<u8>,
    /// Its list; `0` is none.
    pub list: Option<String>,
    /// The level in its list.
    pub level: Option<usize>,
}

/// All styles by id.
#[derive(Debug, Default)]
pub(super) struct Styles(HashMap<String, Style>);

impl Styles {
    /// A style and those it rests on, nearest first.
    fn lineage<'a>(&'a self, id: &str) -> impl Iterator<Item = (&'a str, &'a Style)> {
        let mut next = self.0.get_key_value(id);
        std::iter::from_fn(move || {
            let (id, style) = next?;
            next = style
                .based_on
                .as_ref()
                .and_then(|base| self.0.get_key_value(base));
            Some((id.as_str(), style))
        })
        .take(DEEPEST)
    }

    /// How deep a heading paragraphs of this style are, from 1.
    pub fn heading(&self, id: &str) -> Option<u8> {
        self.lineage(id).find_map(|(_, style)| {
            let named = ["heading ", "标题 "]
                .iter()
                .find_map(|word| style.name.strip_prefix(word)?.trim().parse().ok());
            match style.outline {
                Some(outline) => Some((outline < 9).then_some(outline + 1)),
                None => named.map(Some),
            }
        })?
    }

    /// Whether paragraphs of this style are lines of a table of contents.
    pub fn is_contents(&self, id: &str) -> bool {
        self.0
            .get(id)
            .is_some_and(|style| style.name.starts_with("toc ") || style.name == "table of figures")
    }

    /// The list paragraphs of this style count in, the level if it is said, and the style that says so.
    pub fn list(&self, id: &str) -> Option<(&str, Option<usize>, &str)> {
        self.lineage(id)
            .find_map(|(id, style)| Some((style.list.as_deref()?, style.level, id)))
    }
}

/// Reads `styles.xml`.
pub(super) fn styles(xml: &str) -> Result<Styles, DocumentError> {
    let mut styles = Styles::default();
    let mut open: Option<(String, Style)> = None;
    elements(xml, |part| match part {
        Part::Begin("style", tag) => {
            open = attribute(tag, "styleId").map(|id| (id, Style::default()));
        }
        Part::End("style") => styles.0.extend(open.take()),
        Part::Begin(name, tag) => {
            let (Some((_, style)), Some(value)) = (&mut open, attribute(tag, "val")) else {
                return;
            };
            match name {
                "name" => style.name = value.to_lowercase(),
                "basedOn" => style.based_on = Some(value),
                "outlineLvl" => style.outline = value.parse().ok(),
                "numId" => style.list = Some(value),
                "ilvl" => style.level = value.parse().ok(),
                _ => {}
            }
        }
        _ => {}
    })?;
    Ok(styles)
}

/// Reads `numbering.xml`.
pub(super) fn numbering(xml: &str) -> Result<Numbering, DocumentError> {
    let mut all = Numbering::default();
    let (mut kind, mut list, mut level) = (None::<String>, None::<String>, None::<usize>);
    elements(xml, |part| {
        let (name, tag) = match part {
            Part::Begin(name, tag) => (name, tag),
            Part::End("abstractNum") => return kind = None,
            Part::End("num") => return list = None,
            Part::End("lvl" | "lvlOverride") => return level = None,
            _ => return,
        };
        match name {
            "abstractNum" => {
                kind = attribute(tag, "abstractNumId");
                if let Some(kind) = &kind {
                    all.kinds.insert(kind.clone(), Default::default());
                }
            }
            "num" => list = attribute(tag, "numId"),
            "lvl" | "lvlOverride" => {
                level = attribute(tag, "ilvl")
                    .and_then(|level| level.parse().ok())
                    .filter(|level| *level < LEVELS);
            }
            _ => {
                let Some(value) = attribute(tag, "val") else {
                    return;
                };
                if let (Some(list), "abstractNumId") = (&list, name) {
                    all.lists.insert(list.clone(), value);
                } else if let (Some(list), Some(level), "startOverride") = (&list, level, name) {
                    all.restarts.extend(
                        value
                            .parse()
                            .ok()
                            .map(|start| ((list.clone(), level), start)),
                    );
                } else if let (Some(kind), Some(level)) = (&kind, level)
                    && let Some(level) = all
                        .kinds
                        .get_mut(kind)
                        .and_then(|levels| levels.get_mut(level))
                {
                    match name {
                        "start" => level.start = value.parse().ok(),
                        "numFmt" => level.format = value,
                        "lvlText" => level.text = value,
                        "pStyle" => level.style = Some(value),
                        "isLgl" => level.legal = value != "0" && value != "false",
                        _ => {}
                    }
                }
            }
        }
        // Without a value it is on.
        if let ("isLgl", Some(kind), Some(level), None) =
            (name, &kind, level, attribute(tag, "val"))
            && let Some(level) = all
                .kinds
                .get_mut(kind)
                .and_then(|levels| levels.get_mut(level))
        {
            level.legal = true;
        }
    })?;
    Ok(all)
}
