//! Skill text to JSON: comments and trailing commas are accepted, everything doubtful is refused with
//! its line and column.

use std::collections::HashMap;

use jsonc_parser::{CollectOptions, ParseOptions, ast, common::Ranged};
use serde_json::{Map, Number, Value};

use super::{
    fault::{Fault, FaultKind, Place},
    lexis::{Region, regions},
    markdown::{self, Unescaped},
};

/// Most bytes of a skill file.
pub const MAX_BYTES: usize = 1024 * 1024;
/// Most faults that are listed; nobody reads further before mending these.
pub const MAX_FAULTS: usize = 200;
/// Deepest nesting of a skill file.
pub const MAX_DEPTH: usize = 64;

/// Parsed text that still knows where everything stood.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The value.
    pub value: Value,
    text: String,
    positions: HashMap<String, usize>,
}

impl Document {
    /// A value that never was text (it comes from the database), so nothing has a place.
    #[must_use]
    pub fn from_value(value: Value) -> Self {
        Self {
            value,
            ..Self::default()
        }
    }

    /// Where the value at `path` stands; for a key that is not there, where its object stands.
    #[must_use]
    pub fn place(&self, path: &str) -> Option<Place> {
        let mut path = path;
        loop {
            if let Some(position) = self.positions.get(path) {
                return Some(place(&self.text, *position));
            }
            path = match path.rfind(['.', '[']) {
                Some(end) => path.get(..end)?,
                None if path.is_empty() => return None,
                None => "",
            };
        }
    }
}

/// Line and column of a byte position. Counted when somebody asks: a file has many values, few faults.
fn place(text: &str, position: usize) -> Place {
    let before = text.get(..position).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Place {
        line: before.matches('\n').count() + 1,
        column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
    }
}

/// Reads the bytes of a skill file.
///
/// A byte-order mark and CRLF line ends are accepted. Text pasted out of Markdown is understood, see
/// [`markdown`].
///
/// # Errors
/// One fault for what cannot be read or parsed; all duplicate keys at once.
pub fn parse(bytes: &[u8]) -> Result<Document, Vec<Fault>> {
    let text = decode(bytes).map_err(|fault| vec![fault])?;
    match parse_plain(text, |position| position, text) {
        Ok(document) => Ok(document),
        Err(faults) if faults.iter().any(|f| f.kind == FaultKind::Syntax) => {
            parse_pasted(text).unwrap_or(Err(faults))
        }
        Err(faults) => Err(faults),
    }
}

fn decode(bytes: &[u8]) -> Result<&str, Fault> {
    let unreadable = |what: String| Fault::new(FaultKind::Unreadable, "", what);
    if bytes.len() > MAX_BYTES {
        return Err(unreadable(format!(
            "文件有 {} 字节，超过 1 MB 上限",
            bytes.len()
        )));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = line_of(bytes, error.valid_up_to());
        unreadable(format!("第 {line} 行起不是 UTF-8 编码"))
            .hint("请另存为 UTF-8 save the file as UTF-8")
    })?;
    if let Some(position) = text.find('\0') {
        let line = line_of(bytes, position);
        return Err(unreadable(format!("第 {line} 行含有 NUL 字符")).hint("请删除 delete it"));
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn line_of(bytes: &[u8], position: usize) -> usize {
    1 + bytes
        .iter()
        .take(position)
        .filter(|byte| **byte == b'\n')
        .count()
}

/// `None` when the text is not from Markdown, so that the first parse's fault stands.
fn parse_pasted(text: &str) -> Option<Result<Document, Vec<Fault>>> {
    match markdown::unescape(text) {
        Ok(None) => None,
        Ok(Some(plain)) => Some(parse_unescaped(text, &plain)),
        Err(ambiguous) => Some(Err(vec![
            Fault::new(
                FaultKind::Syntax,
                "",
                "文本从 Markdown 粘贴而来，其中的 `\\\\` 有两种读法",
            )
            .hint("请从代码块粘贴原文 paste it from a code block")
            .at(Some(place(text, ambiguous.position))),
        ])),
    }
}

fn parse_unescaped(text: &str, plain: &Unescaped) -> Result<Document, Vec<Fault>> {
    parse_plain(&plain.text, |position| plain.origin(position), text)
}

/// Parses `text`, whose positions `origin` maps to `original`, the text as the person sees it.
fn parse_plain(
    text: &str,
    origin: impl Fn(usize) -> usize,
    original: &str,
) -> Result<Document, Vec<Fault>> {
    let place = |position: usize| Some(place(original, origin(position)));
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options());
    let root = match parsed {
        Ok(parsed) => parsed.value,
        Err(error) => return Err(vec![syntax_fault(text, &error, &place)]),
    };
    let Some(root) = root else {
        return Err(vec![
            Fault::new(FaultKind::Syntax, "", "文件是空的").hint("写入一个技能 write a skill"),
        ]);
    };
    let mut builder = Builder {
        origin,
        original,
        positions: HashMap::new(),
        faults: Vec::new(),
    };
    let value = builder.value(&root, "", 1);
    if builder.faults.is_empty() {
        Ok(Document {
            value,
            text: original.to_owned(),
            positions: builder.positions,
        })
    } else {
        Err(builder.faults)
    }
}

/// Comments and trailing commas are habits; every other extension could hide a slip.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn syntax_fault(
    text: &str,
    error: &jsonc_parser::errors::ParseError,
    place: &impl Fn(usize) -> Option<Place>,
) -> Fault {
    if let Some((position, c)) = look_alike(text) {
        return Fault::new(
            FaultKind::Syntax,
            "",
            format!("全角或特殊字符 `{c}`（U+{:04X}）不能用在这里", u32::from(c)),
        )
        .hint("请改用半角英文标点 use the ASCII character")
        .at(place(position));
    }
    use jsonc_parser::errors::ParseErrorKind as Kind;
    let fault =
        Fault::new(FaultKind::Syntax, "", error.kind().to_string()).at(place(error.range().start));
    match error.kind() {
        Kind::String(_) => {
            fault.hint("字符串里的反斜杠要写成 `\\\\` double a backslash in a string")
        }
        Kind::NestingDepthExceeded => Fault {
            kind: FaultKind::TooDeep,
            ..fault
        },
        _ => fault,
    }
}

/// The first character outside strings and comments that looks like JSON punctuation or a blank.
fn look_alike(text: &str) -> Option<(usize, char)> {
    regions(text)
        .into_iter()
        .filter(|(region, _)| *region == Region::Outside)
        .find_map(|(_, range)| {
            let start = range.start;
            text.get(range)?
                .char_indices()
                .find(|(_, c)| !c.is_ascii() && (!c.is_alphanumeric() || is_full_width(*c)))
                .map(|(at, c)| (start + at, c))
        })
}

fn is_full_width(c: char) -> bool {
    ('\u{ff01}'..='\u{ff5e}').contains(&c)
}

struct Builder<'t, O> {
    origin: O,
    original: &'t str,
    positions: HashMap<String, usize>,
    faults: Vec<Fault>,
}

impl<O: Fn(usize) -> usize> Builder<'_, O> {
    fn fault(&mut self, fault: Fault, position: usize) {
        if self.faults.len() < MAX_FAULTS {
            let place = place(self.original, (self.origin)(position));
            self.faults.push(fault.at(Some(place)));
        }
    }

    fn value(&mut self, node: &ast::Value<'_>, path: &str, depth: usize) -> Value {
        let start = node.range().start;
        self.positions.insert(path.to_owned(), (self.origin)(start));
        if depth > MAX_DEPTH {
            let what = format!("超过 {MAX_DEPTH} 层");
            self.fault(Fault::new(FaultKind::TooDeep, path, what), start);
            return Value::Null;
        }
        match node {
            ast::Value::StringLit(text) => self.text(&text.value, path, start),
            ast::Value::NumberLit(number) => self.number(number.value, path, start),
            ast::Value::BooleanLit(flag) => Value::Bool(flag.value),
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::Array(array) => Value::Array(
                (array.elements.iter().enumerate())
                    .map(|(at, element)| self.value(element, &format!("{path}[{at}]"), depth + 1))
                    .collect(),
            ),
            ast::Value::Object(object) => self.object(object, path, depth),
        }
    }

    fn object(&mut self, object: &ast::Object<'_>, path: &str, depth: usize) -> Value {
        let mut map = Map::new();
        for property in &object.properties {
            let key = property.name.as_str();
            let inner = join(path, key);
            let start = property.range.start;
            let value = self.value(&property.value, &inner, depth + 1);
            self.text(key, &inner, start);
            if map.insert(key.to_owned(), value).is_some() {
                let what = format!("`{key}` 在同一对象里出现两次");
                let fault = Fault::new(FaultKind::DuplicateKey, inner, what);
                self.fault(fault.hint("保留一个 keep one of them"), start);
            }
        }
        Value::Object(map)
    }

    fn text(&mut self, text: &str, path: &str, start: usize) -> Value {
        if text.contains('\0') {
            let fault = Fault::new(FaultKind::BadValue, path, "字符串里含有 \\u0000");
            self.fault(fault.hint("请删除 delete it"), start);
        }
        Value::String(text.to_owned())
    }

    fn number(&mut self, text: &str, path: &str, start: usize) -> Value {
        match text.parse::<Number>() {
            Ok(number) => Value::Number(number),
            Err(_) => {
                let what = format!("`{text}` 不是 JSON 数字");
                self.fault(Fault::new(FaultKind::Syntax, path, what), start);
                Value::Null
            }
        }
    }
}

/// The path of `key` inside the object at `path`.
#[must_use]
pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
