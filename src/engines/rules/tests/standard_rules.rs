//! Rules of the standard operators, at random, for properties to hold over.
//!
//! A rule is grown in levels: each level's expressions stand on those of the level below, so that any
//! operator comes to stand inside any other. What the generator leaves out, because rules mean something
//! else by it on purpose (the snapshots of `differential.rs` list them, case by case):
//!
//! - two texts that are numbers side by side: ours compares them as numbers, JSON Logic letter by letter.
//!   A field of such text (`NUMERAL`) stands beside a number or in arithmetic;
//! - the truth of such a text, and `===` or `in` of it: `"0"` is a "no", and `"4"` is 4;
//! - a number beside text that is none, and `<` on text that is neither number, date nor time of day: ours
//!   has no answer;
//! - dates that are partial, or with a time of day beside one without: letters don't tell their order;
//! - `===` between a yes/no field and a truth value: a typed field has no JSON type to be strict about.
//!
//! And because the reference departs from JSON Logic: `+` and `*` of a truth value (it fails), computed
//! items of a list (it takes them literally), `substr` of a number (it fails) or of text that is not ASCII
//! (it counts bytes), `cat` of what is no short decimal (it writes exponents).

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

use super::populated::{clock, day, number, prose, word};

/// The fields a rule may read, by what stands in them.
#[derive(Clone, Copy)]
pub struct Vocabulary {
    /// JSON numbers.
    numbers: &'static [&'static str],
    /// 0 or 1: to the dictionary a code that is true or false.
    yes_no: &'static [&'static str],
    /// JSON truth values; a dictionary has none.
    truths: &'static [&'static str],
    /// Whether what compares two literals compiles.
    literal_pairs: bool,
    /// `missing` and `missing_some`, which are made to look at a blank.
    asks_for_blanks: bool,
}

impl Vocabulary {
    /// The same without the operators that are made to look at a blank.
    pub const fn blind_to_blanks(self) -> Self {
        Self {
            asks_for_blanks: false,
            ..self
        }
    }
}

/// What the dictionary `one_form` types.
pub const TYPED: Vocabulary = Vocabulary {
    numbers: &["age", "weight", "bmi"],
    yes_no: &["preg"],
    truths: &[],
    literal_pairs: false,
    asks_for_blanks: true,
};

/// Any JSON object.
pub const UNTYPED: Vocabulary = Vocabulary {
    numbers: &["age", "weight", "bmi", "lab.hb"],
    yes_no: &["preg"],
    truths: &["yes", "no"],
    literal_pairs: true,
    asks_for_blanks: true,
};

const NUMERAL: &str = "ecog";
const DATES: [&str; 3] = ["icf_date", "enroll_date", "birth"];
const CHOICES: [(&str, &[&str]); 3] = [
    ("arm", &["A", "B"]),
    ("ecog", &["0", "1", "2", "3", "4"]),
    ("symptoms___1", &["0", "1"]),
];
/// Every field but the checkbox, of which `[]` is a value to one and a blank to the other.
pub const FILLED: [&str; 11] = [
    "age",
    "weight",
    "bmi",
    "preg",
    "ecog",
    "arm",
    "icf_date",
    "enroll_date",
    "birth",
    "initials",
    "history",
];

const EQUALITY: [&str; 4] = ["==", "!=", "===", "!=="];
const LOOSE_EQUALITY: [&str; 2] = ["==", "!="];
const ORDER: [&str; 4] = ["<", "<=", ">", ">="];

type Logic = BoxedStrategy<Value>;

/// The three ways to write the field's name.
fn var(name: &'static str) -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(json!({"var": name})),
        1 => Just(json!({"var": [name]})),
        1 => Just(json!({"var": [name, 7]})),
    ]
}

fn any_var(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    select(names).prop_flat_map(var)
}

fn pair(ops: &'static [&'static str], a: Logic, b: Logic) -> Logic {
    (select(ops), a, b, any::<bool>())
        .prop_map(|(op, a, b, swap)| {
            if swap {
                json!({op: [b, a]})
            } else {
                json!({op: [a, b]})
            }
        })
        .boxed()
}

/// `if` with one or two conditions and an `else`, `?:`, and the values of `and` and `or`.
fn either(condition: &Logic, value: &Logic) -> Logic {
    let (c, v) = (condition, value);
    prop_oneof![
        (c.clone(), v.clone(), v.clone()).prop_map(|(c, a, b)| json!({"if": [c, a, b]})),
        (c.clone(), v.clone(), v.clone()).prop_map(|(c, a, b)| json!({"?:": [c, a, b]})),
        (c.clone(), v.clone(), c.clone(), v.clone(), v.clone())
            .prop_map(|(c, a, d, b, e)| json!({"if": [c, a, d, b, e]})),
        (select(&["and", "or"][..]), vec(v.clone(), 1..4)).prop_map(|(op, vs)| json!({op: vs})),
    ]
    .boxed()
}

/// Expressions of one level, by what they come to.
#[derive(Clone)]
struct Level {
    /// A number, not written out.
    number: Logic,
    /// A text, not written out.
    text: Logic,
    /// The same of letters `substr` can count.
    ascii: Logic,
    /// A date, not written out.
    date: Logic,
    /// `true` or `false`, not written out.
    truth: Logic,
    /// Anything whose truth can be asked for.
    condition: Logic,
}

impl Level {
    fn leaves(words: Vocabulary) -> Self {
        let number = any_var(words.numbers).boxed();
        let ascii = var("initials").boxed();
        let text = prop_oneof![var("initials"), var("history")].boxed();
        let date = any_var(&DATES).boxed();
        let truth = comparison(words, &number, &text, &date);
        let condition = truth.clone();
        Self {
            number,
            text,
            ascii,
            date,
            truth,
            condition,
        }
    }

    fn above(&self, words: Vocabulary) -> Self {
        let number = prop_oneof![self.number.clone(), self.arithmetic(words)].boxed();
        let short = prop_oneof![number_literal(), any_var(words.numbers)].boxed();
        let ascii_piece = prop_oneof![
            2 => self.ascii.clone(),
            2 => word().prop_map(Value::from),
            1 => short,
            1 => self.truth.clone(),
        ];
        let ascii = prop_oneof![
            vec(ascii_piece, 1..4).prop_map(|parts| json!({"cat": parts})),
            (self.ascii.clone(), -3i64..4, prop::option::of(-2i64..3)).prop_map(
                |(text, from, length)| match length {
                    Some(length) => json!({"substr": [text, from, length]}),
                    None => json!({"substr": [text, from]}),
                }
            ),
            either(&self.condition, &self.ascii),
        ]
        .boxed();
        let piece = prop_oneof![self.text.clone(), prose().prop_map(Value::from)];
        let text = prop_oneof![
            ascii.clone(),
            vec(piece, 1..4).prop_map(|parts| json!({"cat": parts})),
            either(&self.condition, &self.text),
        ]
        .boxed();
        let date = prop_oneof![self.date.clone(), either(&self.condition, &self.date)].boxed();
        let truth = prop_oneof![
            2 => comparison(words, &number, &text, &date),
            1 => pair(&EQUALITY, self.truth.clone(), self.truth.clone()),
            1 => pair(&LOOSE_EQUALITY, self.truth.clone(), number.clone()),
            1 => either(&self.condition, &self.truth),
            1 => (select(&["!", "!!"][..]), self.condition.clone()).prop_map(|(op, a)| json!({op: [a]})),
            1 => (select(&["!", "!!"][..]), self.condition.clone()).prop_map(|(op, a)| json!({op: a})),
        ]
        .boxed();
        let operands = || vec(self.condition.clone(), 1..4);
        let condition = prop_oneof![
            3 => truth.clone(),
            3 => (select(&["and", "or"][..]), operands()).prop_map(|(op, all)| json!({op: all})),
            // With and without an `else`, and alone.
            2 => vec(self.condition.clone(), 1..6).prop_map(|parts| json!({"if": parts})),
            1 => self.number.clone(),
            1 => self.text.clone(),
            1 => self.date.clone(),
            1 => any_var(words.yes_no),
            1 => var("symptoms"),
            1 => any::<bool>().prop_map(Value::from),
        ]
        .boxed();
        Self {
            number,
            text,
            ascii,
            date,
            truth,
            condition,
        }
    }

    fn arithmetic(&self, words: Vocabulary) -> Logic {
        let operand = prop_oneof![
            3 => self.number.clone(),
            1 => number_literal(),
            1 => any_var(words.yes_no),
            1 => var(NUMERAL),
        ]
        .boxed();
        let with_truths = prop_oneof![3 => operand.clone(), 1 => self.truth.clone()].boxed();
        // Small factors: a number beyond the whole numbers of the reference says nothing about rules.
        let factor = prop_oneof![number_literal(), any_var(words.numbers), var(NUMERAL)];
        // Never zero: that has no answer with us, and infinity is no JSON.
        let divisor = prop_oneof![
            (1i64..6).prop_map(Value::from),
            (-5i64..0).prop_map(|n| Value::from(n as f64 + 0.5)),
            self.number.clone().prop_map(|x| json!({"max": [x, 1]})),
        ];
        prop_oneof![
            vec(operand.clone(), 1..4).prop_map(|all| json!({"+": all})),
            (operand.clone(), factor).prop_map(|(a, b)| json!({"*": [a, b]})),
            operand.prop_map(|a| json!({"*": [a]})),
            (with_truths.clone(), with_truths.clone()).prop_map(|(a, b)| json!({"-": [a, b]})),
            with_truths.clone().prop_map(|a| json!({"-": a})),
            (select(&["/", "%"][..]), with_truths.clone(), divisor)
                .prop_map(|(op, a, b)| json!({op: [a, b]})),
            (select(&["min", "max"][..]), vec(with_truths, 1..4))
                .prop_map(|(op, all)| json!({op: all})),
            either(&self.condition, &self.number),
        ]
        .boxed()
    }
}

fn number_literal() -> Logic {
    number().boxed()
}

/// What compares, over these expressions.
fn comparison(words: Vocabulary, number: &Logic, text: &Logic, date: &Logic) -> Logic {
    let (number, text, date) = (number.clone(), text.clone(), date.clone());
    let any_number = prop_oneof![3 => number.clone(), 2 => number_literal()].boxed();
    let any_text = prop_oneof![
        text.clone(),
        word().prop_map(Value::from),
        prose().prop_map(Value::from)
    ]
    .boxed();
    let any_date = prop_oneof![date.clone(), day().prop_map(Value::from)].boxed();
    let any_clock = prop_oneof![var("slept_at"), clock().prop_map(Value::from)].boxed();
    let chain = |a: Logic, b: Logic| {
        (select(&ORDER[..]), a, b.clone(), b)
            .prop_map(|(op, a, b, c)| json!({op: [b, a, c]}))
            .boxed()
    };
    let code = || select(&CHOICES[..]);
    let mut kinds = vec![
        pair(&ORDER, number.clone(), any_number.clone()),
        chain(number.clone(), any_number.clone()),
        pair(&ORDER, date.clone(), any_date.clone()),
        chain(date.clone(), any_date.clone()),
        pair(&ORDER, var("slept_at").boxed(), any_clock.clone()),
        chain(var("slept_at").boxed(), any_clock),
        // Text that is a number, beside numbers.
        pair(&ORDER, var(NUMERAL).boxed(), any_number.clone()),
        chain(var(NUMERAL).boxed(), any_number.clone()),
        pair(&LOOSE_EQUALITY, var(NUMERAL).boxed(), number.clone()),
        pair(
            &LOOSE_EQUALITY,
            var(NUMERAL).boxed(),
            (0i64..5).prop_map(Value::from).boxed(),
        ),
        pair(&ORDER, any_var(words.yes_no).boxed(), any_number.clone()),
        pair(&EQUALITY, any_var(words.yes_no).boxed(), number.clone()),
        pair(
            &EQUALITY,
            any_var(words.yes_no).boxed(),
            (0i64..2).prop_map(Value::from).boxed(),
        ),
        pair(&EQUALITY, number.clone(), any_number),
        pair(&EQUALITY, text.clone(), any_text.clone()),
        pair(&EQUALITY, date, any_date),
        (
            select(&EQUALITY[..]),
            code().prop_flat_map(|(field, codes)| (var(field), select(codes))),
        )
            .prop_map(|(op, (field, code))| json!({op: [field, code]}))
            .boxed(),
        code()
            .prop_flat_map(|(field, codes)| (var(field), vec(select(codes), 1..4)))
            .prop_map(|(field, list)| json!({"in": [field, list]}))
            .boxed(),
        (number, vec(number_literal(), 1..4))
            .prop_map(|(a, list)| json!({"in": [a, list]}))
            .boxed(),
        (text.clone(), vec(word(), 1..4))
            .prop_map(|(a, list)| json!({"in": [a, list]}))
            .boxed(),
        (any_text, text)
            .prop_map(|(part, all)| json!({"in": [part, all]}))
            .boxed(),
        (select(&["1", "2", "fever"][..]), var("symptoms"))
            .prop_map(|(code, field)| json!({"in": [code, field]}))
            .boxed(),
    ];
    if words.asks_for_blanks {
        kinds.push(asking_for_blanks());
    }
    if words.literal_pairs {
        let truths = any_var(words.truths).boxed();
        kinds.extend([
            truths.clone(),
            pair(
                &EQUALITY,
                truths,
                any::<bool>().prop_map(Value::from).boxed(),
            ),
            pair(&ORDER, number_literal(), number_literal()),
            pair(&EQUALITY, number_literal(), number_literal()),
            pair(
                &EQUALITY,
                word().prop_map(Value::from).boxed(),
                word().prop_map(Value::from).boxed(),
            ),
            (word(), vec(word(), 1..3))
                .prop_map(|(a, list)| json!({"in": [a, list]}))
                .boxed(),
        ]);
    }
    prop::strategy::Union::new(kinds).boxed()
}

fn asking_for_blanks() -> Logic {
    let names = || prop::sample::subsequence(FILLED.to_vec(), 1..4);
    let lists = prop_oneof![
        names().prop_map(|names| json!({"missing": names})),
        names().prop_map(|names| json!({"missing": [names]})),
        select(&FILLED[..]).prop_map(|name| json!({"missing": name})),
        names()
            .prop_flat_map(|names| (0..=names.len(), Just(names)))
            .prop_map(|(least, names)| json!({"missing_some": [least, names]})),
    ]
    .boxed();
    prop_oneof![
        (select(&["!", "!!"][..]), lists.clone()).prop_map(|(op, list)| json!({op: [list]})),
        (select(&FILLED[..]), lists).prop_map(|(name, list)| json!({"in": [name, list]})),
    ]
    .boxed()
}

fn level(words: Vocabulary, levels: u32) -> Level {
    let ground = Level::leaves(words);
    (0..levels).fold(ground, |below, _| below.above(words))
}

fn reads_a_field(logic: &Value) -> bool {
    let text = logic.to_string();
    text.contains("\"var\"") || text.contains("\"missing")
}

/// A rule: an operation that reads a field.
pub fn rule_logic(words: Vocabulary, levels: u32) -> impl Strategy<Value = Value> {
    level(words, levels)
        .condition
        .prop_filter("a rule is an operation on a field", |logic| {
            logic.is_object() && reads_a_field(logic)
        })
}

/// An expression that comes to a number, a text, a date, or true or false.
pub fn expression(words: Vocabulary, levels: u32) -> impl Strategy<Value = Value> {
    let level = level(words, levels);
    prop_oneof![3 => level.number, 2 => level.text, 1 => level.date, 2 => level.truth].prop_filter(
        "without a field it is the same for everybody",
        reads_a_field,
    )
}
