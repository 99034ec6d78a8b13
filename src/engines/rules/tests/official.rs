//! The official JSON Logic suite, restricted to the operators rules may use.

use serde_json::{Value, json};

use crate::engines::rules::{
    Study,
    eval::Eval,
    expr::Expr,
    frame::{Fields, Frame},
    moment::Moment,
    names::Names,
    parse::Parser,
    value::V,
};

fn suite() -> Vec<(Value, Value, Value)> {
    let text = include_str!("../../../../tests/data/jsonlogic/official.json");
    let entries: Vec<Value> = serde_json::from_str(text).unwrap();
    entries
        .into_iter()
        .filter_map(|entry| match entry {
            Value::Array(case) => {
                let [logic, data, expected] = <[Value; 3]>::try_from(case).unwrap();
                Some((logic, data, expected))
            }
            _ => None,
        })
        .collect()
}

/// Compiles any expression, and not only what can be a rule.
fn compile(logic: &Value) -> Result<(Expr, Fields), Vec<String>> {
    let mut names = Names::new(Study::default());
    let mut parser = Parser::new(&mut names);
    let (expr, _) = parser.expr(logic, "logic", 1);
    let faults: Vec<String> = parser.faults.into_iter().map(|(_, what)| what).collect();
    if faults.is_empty() {
        let fields = Fields {
            slots: names.slots,
            refs: names.refs,
            ..Fields::default()
        };
        Ok((expr, fields))
    } else {
        Err(faults)
    }
}

fn json_of(value: &V<'_>) -> Value {
    match value {
        V::Unknown => json!("unknown"),
        V::Null => Value::Null,
        V::Bool(b) => json!(b),
        V::Num(x) if x.fract() == 0.0 => json!(*x as i64),
        V::Num(x) => json!(x),
        V::Str(s) => json!(s),
        V::Loose(s) | V::Code(s) => json!(s),
        V::List(items) => items.iter().map(json_of).collect(),
        V::Span(..) | V::Codes(_) | V::Date(_) | V::Time(_) => panic!("no JSON for {value:?}"),
    }
}

#[test]
fn the_official_suite_gives_the_listed_results_and_those_of_the_reference() {
    let (mut ran, mut blanks, mut defaults, mut indices, mut refused) = (0, 0, 0, 0, Vec::new());
    for (logic, data, expected) in suite() {
        let (expr, fields) = match compile(&logic) {
            Ok(compiled) => compiled,
            Err(faults) => {
                refused.push(faults.join("; "));
                continue;
            }
        };
        let today = Moment::parse_date("2026-11-30").unwrap();
        let eval = Eval::new(Frame::Json(&fields, &data), today);
        let value = eval.value(&expr);
        if value == V::Unknown {
            // A blank is unknown where the suite has null, and its default does not stand in for it.
            if expected == Value::Null {
                blanks += 1;
            } else if data.is_array() {
                // A record is an object; places in a list are no fields.
                indices += 1;
            } else {
                assert_eq!(
                    logic["var"].as_array().map(Vec::len),
                    Some(2),
                    "{logic} {data}"
                );
                defaults += 1;
            }
            continue;
        }
        let ours = json_of(&value);
        assert_eq!(ours, expected, "{logic} over {data}");
        let reference = jsonlogic_rs::apply(&logic, &data).unwrap();
        assert_eq!(ours, normal(&reference), "{logic} over {data}");
        assert_eq!(eval.truth(&expr), value.truthy(), "{logic} over {data}");
        ran += 1;
    }
    // These counts may only change together with the list of operators: the suite has 275 cases.
    assert_eq!(
        (ran, blanks, defaults, indices, refused.len()),
        (209, 8, 3, 2, 53)
    );
    refused.sort();
    refused.dedup();
    insta::assert_debug_snapshot!("refused", refused);
}

fn normal(value: &Value) -> Value {
    match value.as_f64() {
        Some(x) if x.fract() == 0.0 => json!(x as i64),
        _ => value.clone(),
    }
}
