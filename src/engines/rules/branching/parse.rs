//! REDCap logic to a tree.
//!
//! Understood: `[field]`, `[event][field]`, `[field(code)]`, numbers, quoted text, `= <> != < > <= >=`,
//! `and` `or` `not` (any case), parentheses, `//` and `#` comments. Everything else is [`Unsupported`],
//! by name: logic that can't be read is reported, never guessed.

/// A logic expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// `5`, `-2.5`
    Number(f64),
    /// `'1'`, `"abc"`
    Text(String),
    /// `[field]`, `[event][field]`, `[field(code)]`
    Field {
        /// Unique event name; `None` for the row's own event.
        event: Option<String>,
        /// Variable name.
        field: String,
        /// The choice of a checkbox.
        code: Option<String>,
    },
    /// `not x`
    Not(Box<Expr>),
    /// `a op b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
}

/// Operators between two expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    /// `or`
    Or,
    /// `and`
    And,
    /// `=`
    Equal,
    /// `<>`, `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

/// Logic this parser doesn't understand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at character {at}")]
pub struct Unsupported {
    /// What was met: `function datediff`, `smart variable [user-name]`, `+`, …
    pub what: String,
    /// Where, counted from 1.
    pub at: usize,
}

/// Deepest nesting; logic people write stays far below.
const MAX_DEPTH: usize = 64;

/// Most `and`s and `or`s; a chain of them is as deep a tree as it is long.
const MAX_CHAIN: usize = 2_000;

/// Parses logic; `Ok(None)` when there is none.
///
/// # Errors
/// The first thing not understood.
pub fn parse(text: &str) -> Result<Option<Expr>, Unsupported> {
    let mut parser = Parser {
        chars: text.chars().collect(),
        at: 0,
        depth: 0,
        chain: 0,
    };
    parser.skip_space();
    if parser.peek().is_none() {
        return Ok(None);
    }
    let expr = parser.or()?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(Some(expr)),
        Some(_) => Err(parser.unsupported_here()),
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    chain: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn unsupported(&self, what: impl Into<String>) -> Unsupported {
        Unsupported {
            what: what.into(),
            at: self.at + 1,
        }
    }

    /// Names what stands at the present place.
    fn unsupported_here(&self) -> Unsupported {
        let Some(c) = self.peek() else {
            return self.unsupported("the end of the logic where a value should be");
        };
        let word = self.word();
        if word.is_empty() {
            return self.unsupported(format!("`{c}`"));
        }
        let after = self.chars.iter().skip(self.at + word.chars().count());
        if after.into_iter().find(|c| !c.is_whitespace()) == Some(&'(') {
            self.unsupported(format!("function `{word}`"))
        } else {
            self.unsupported(format!("`{word}`"))
        }
    }

    fn skip_space(&mut self) {
        loop {
            match self.peek() {
                Some(c) if c.is_whitespace() || c == '\u{feff}' => self.at += 1,
                Some('#') => self.skip_line(),
                Some('/') if self.peek_at(1) == Some('/') => self.skip_line(),
                _ => return,
            }
        }
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    fn word(&self) -> String {
        self.chars
            .iter()
            .skip(self.at)
            .take_while(|c| c.is_alphanumeric() || **c == '_')
            .collect()
    }

    fn take_keyword(&mut self, keyword: &str) -> bool {
        self.skip_space();
        let found = self.word().eq_ignore_ascii_case(keyword);
        if found {
            self.at += keyword.chars().count();
        }
        found
    }

    fn or(&mut self) -> Result<Expr, Unsupported> {
        let mut left = self.and()?;
        while self.take_keyword("or") {
            self.longer()?;
            let right = self.and()?;
            left = Expr::Binary(BinaryOp::Or, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, Unsupported> {
        let mut left = self.not()?;
        while self.take_keyword("and") {
            self.longer()?;
            let right = self.not()?;
            left = Expr::Binary(BinaryOp::And, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, Unsupported> {
        if self.take_keyword("not") {
            return self.deeper(|p| Ok(Expr::Not(Box::new(p.not()?))));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr, Unsupported> {
        let left = self.operand()?;
        let Some(op) = self.take_comparison() else {
            return Ok(left);
        };
        let right = self.operand()?;
        if self.take_comparison().is_some() {
            return Err(self.unsupported("a chain of comparisons"));
        }
        Ok(Expr::Binary(op, Box::new(left), Box::new(right)))
    }

    fn take_comparison(&mut self) -> Option<BinaryOp> {
        self.skip_space();
        let (op, length) = match (self.peek()?, self.peek_at(1)) {
            ('<', Some('>')) | ('!', Some('=')) => (BinaryOp::NotEqual, 2),
            ('<', Some('=')) => (BinaryOp::LessEqual, 2),
            ('>', Some('=')) => (BinaryOp::GreaterEqual, 2),
            ('<', _) => (BinaryOp::Less, 1),
            ('>', _) => (BinaryOp::Greater, 1),
            ('=', _) => (BinaryOp::Equal, 1),
            _ => return None,
        };
        self.at += length;
        Some(op)
    }

    fn operand(&mut self) -> Result<Expr, Unsupported> {
        self.skip_space();
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let inner = self.deeper(Self::or)?;
                self.skip_space();
                if self.peek() != Some(')') {
                    return Err(self.unsupported_here());
                }
                self.at += 1;
                Ok(inner)
            }
            Some('[') => self.field(),
            Some(quote @ ('\'' | '"')) => self.text(quote),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '.' | '+') => self.number(),
            _ => Err(self.unsupported_here()),
        }
    }

    fn longer(&mut self) -> Result<(), Unsupported> {
        self.chain += 1;
        if self.chain > MAX_CHAIN {
            return Err(self.unsupported(format!("more than {MAX_CHAIN} `and`s and `or`s")));
        }
        Ok(())
    }

    fn deeper(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Expr, Unsupported>,
    ) -> Result<Expr, Unsupported> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.unsupported(format!("nesting deeper than {MAX_DEPTH}")));
        }
        let expr = parse(self)?;
        self.depth -= 1;
        Ok(expr)
    }

    fn text(&mut self, quote: char) -> Result<Expr, Unsupported> {
        self.at += 1;
        let start = self.at;
        while let Some(c) = self.peek() {
            if c == quote {
                let text = self.chars.get(start..self.at).unwrap_or_default();
                let text = text.iter().collect();
                self.at += 1;
                return Ok(Expr::Text(text));
            }
            self.at += 1;
        }
        self.at = start - 1;
        Err(self.unsupported("a quote that is never closed"))
    }

    fn number(&mut self) -> Result<Expr, Unsupported> {
        let signed = usize::from(matches!(self.peek(), Some('-' | '+')));
        let digits = self
            .chars
            .iter()
            .skip(self.at + signed)
            .take_while(|c| c.is_ascii_digit() || **c == '.')
            .count();
        let end = self.at + signed + digits;
        let text: String = self
            .chars
            .get(self.at..end)
            .unwrap_or_default()
            .iter()
            .collect();
        match super::super::number::parse(&text) {
            Some(x) => {
                self.at = end;
                Ok(Expr::Number(x))
            }
            None => Err(self.unsupported_here()),
        }
    }

    fn bracketed(&mut self) -> Result<String, Unsupported> {
        let start = self.at + 1;
        let length = self.chars.iter().skip(start).position(|c| *c == ']');
        let Some(length) = length else {
            return Err(self.unsupported("a `[` that is never closed"));
        };
        let inner: String = self
            .chars
            .get(start..start + length)
            .unwrap_or_default()
            .iter()
            .collect();
        self.at = start + length + 1;
        Ok(inner.trim().to_owned())
    }

    fn field(&mut self) -> Result<Expr, Unsupported> {
        let start = self.at;
        let first = self.bracketed()?;
        let second = match self.peek() {
            Some('[') => Some(self.bracketed()?),
            _ => None,
        };
        let after = self.at;
        self.at = start;
        if self.chars.get(after) == Some(&'[') {
            return Err(self.unsupported("an instance number `[…][…][…]`"));
        }
        let (event, inner) = match second {
            Some(second) => (Some(first), second),
            None => (None, first),
        };
        if let Some(event) = &event
            && !is_name(event)
        {
            return Err(self.unsupported(format!("smart variable `[{event}]`")));
        }
        let (field, code) = match inner.split_once('(') {
            Some((field, rest)) => {
                let Some(code) = rest.strip_suffix(')') else {
                    return Err(self.unsupported(format!("`[{inner}]`")));
                };
                let code = code.trim().trim_matches(['\'', '"']);
                (field.trim().to_owned(), Some(code.to_owned()))
            }
            None => (inner, None),
        };
        if !is_name(&field) {
            let kind = if field.chars().all(|c| c.is_ascii_digit()) {
                "an instance number"
            } else {
                "smart variable"
            };
            return Err(self.unsupported(format!("{kind} `[{field}]`")));
        }
        self.at = after;
        Ok(Expr::Field { event, field, code })
    }
}

/// A variable or unique event name; smart variables have a `-` or `:` in theirs.
fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(char::is_alphabetic)
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
