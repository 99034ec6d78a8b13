//! `read_clinical_data`: what stands in some fields of one subject.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    bounded,
    fields::Names,
    filter, lenient,
    scope::Scope,
    show,
    tool::{Effect, Observation, Tool, ToolError},
};
use crate::{
    engines::rules::{Answer, Query},
    types::{dictionary::FieldKind, record::Record},
};

/// Most fields of one call; a form has fewer.
const MOST_FIELDS: usize = 60;

/// Reads fields of one subject.
#[derive(Debug, Clone, Copy)]
pub struct ReadClinicalData;

/// Which subject, which fields.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// 受试者编号
    #[serde(deserialize_with = "lenient::text")]
    record_id: String,
    /// 字段名、别名、字段标签或表单名；省略则读取有值的全部字段
    #[serde(default, deserialize_with = "lenient::texts")]
    fields: Vec<String>,
    /// 只看这个访视（事件名或其标签）；省略则看全部
    #[serde(default, deserialize_with = "lenient::optional_text")]
    event: Option<String>,
}

impl Tool for ReadClinicalData {
    type Args = Args;
    const NAME: &'static str = "read_clinical_data";
    const DESCRIPTION: &'static str = "读取一名受试者的临床数据：各字段在每个访视、每条重复记录上的值及其含义。空白会明确说明。查多名受试者用 search_records，算统计数用 aggregate。";
    const EFFECT: Effect = Effect::Read;

    async fn run(&self, scope: &Scope<'_>, args: Args) -> Result<Observation, ToolError> {
        let record = scope.find_record(&args.record_id)?;
        let mut names = Names::of(scope);
        let all = args.fields.is_empty();
        let mut wanted = match all {
            true => filled(record, &names),
            false => names.fields(&args.fields)?,
        };
        let event = match args.event.as_deref() {
            None => None,
            Some(written) => Some(event(written, &names)?),
        };
        let left_out = wanted.split_off(wanted.len().min(MOST_FIELDS));
        let columns: Vec<[&str; 1]> = wanted.iter().map(|field| [field.as_str()]).collect();
        let columns: Vec<&[&str]> = columns.iter().map(<[&str; 1]>::as_slice).collect();
        let study = names.study();
        let query = Query::compile(None, &columns, &study).map_err(|f| filter::refusal(&f))?;
        let answer = query.ask(record, scope.today);
        let mut seen = Reader {
            names: &names,
            event,
            all,
            empty: true,
            identifiers: Vec::new(),
        };
        let rows = seen.rows(&wanted, &answer);
        let (empty, identifiers) = (seen.empty, seen.identifiers);
        let (total, shown) = (rows.len(), bounded::rows(rows, MOST_FIELDS));
        let cut = total - shown.len() + left_out.len();
        let mut observation = Observation::of(json!({
            "record_id": record.id,
            "fields": shown,
        }));
        observation.records.push(record.id.clone());
        observation.identifiers = identifiers;
        if empty {
            observation = observation.note(nothing(&record.id, event, &names));
        }
        if cut > 0 {
            observation = observation.note(format!(
                "还有 {cut} 个字段没有显示；请在 fields 中写明需要的字段，或用 event 限定访视"
            ));
        }
        observation.notes.append(&mut names.notes);
        observation.unmapped = names.unmapped;
        Ok(observation)
    }
}

fn event<'s>(written: &str, names: &Names<'s>) -> Result<&'s str, ToolError> {
    names.event(written).ok_or_else(|| {
        let events = &names.dictionary().events;
        let known: Vec<String> = events
            .iter()
            .map(|event| format!("{}（{}）", event.unique_name, event.label))
            .collect();
        ToolError::Arguments(match events.is_empty() {
            true => "本研究没有划分访视事件，请不要写 event".to_owned(),
            false => format!(
                "没有名为“{written}”的访视；有 {}",
                bounded::names(&known, 12)
            ),
        })
    })
}

/// The fields of a record that have a value anywhere, in dictionary order.
fn filled(record: &Record, names: &Names<'_>) -> Vec<String> {
    let dictionary = names.dictionary();
    let is_filled = |column: &str, blank: &[&str]| {
        record.rows.iter().any(|row| {
            row.get(column)
                .map(str::trim)
                .is_some_and(|text| !text.is_empty() && !blank.contains(&text))
        })
    };
    dictionary
        .fields()
        .iter()
        .skip(1)
        .filter(|field| match field.kind {
            FieldKind::Descriptive => false,
            // An unticked box of a form nobody opened is exported as 0.
            FieldKind::Checkbox => field
                .choices
                .iter()
                .chain(&dictionary.missing_codes)
                .any(|choice| is_filled(&field.checkbox_column(&choice.code), &["0"])),
            _ => is_filled(&field.name, &[]),
        })
        .map(|field| field.name.clone())
        .collect()
}

fn nothing(record: &str, event: Option<&str>, names: &Names<'_>) -> String {
    let at = event.map_or_else(String::new, |event| {
        format!(
            "在访视 {}",
            show::place(Some(event), None, names.dictionary())
        )
    });
    format!(
        "受试者 {record}{at}的这些字段目前没有任何数据，可能尚未录入；请如实告知提问者，不要推测数值"
    )
}

struct Reader<'n, 's> {
    names: &'n Names<'s>,
    event: Option<&'s str>,
    /// All filled fields were asked for, so places without a value are left out.
    all: bool,
    empty: bool,
    identifiers: Vec<String>,
}

impl Reader<'_, '_> {
    fn rows(&mut self, wanted: &[String], answer: &Answer<'_>) -> Vec<Value> {
        wanted
            .iter()
            .zip(&answer.columns)
            .filter_map(|(name, places)| {
                let field = self.names.definition(name);
                let dictionary = self.names.dictionary();
                let mut values = Vec::new();
                for place in places {
                    let Some(seen) = place.seen.first() else {
                        continue;
                    };
                    let elsewhere = self.event.is_some_and(|event| place.event != Some(event));
                    let nothing = seen.text.is_none() && !show::has_value(&seen.reading);
                    if elsewhere || (self.all && nothing) {
                        continue;
                    }
                    self.empty &= nothing;
                    let mut shown = show::value(seen, field, dictionary);
                    let at = show::place(place.event, place.instance, dictionary);
                    if !at.is_empty() {
                        shown.insert("at".to_owned(), json!(at));
                    }
                    if let Some(event) = place.event {
                        shown.insert("event".to_owned(), json!(event));
                    }
                    if let Some(instance) = place.instance {
                        shown.insert("instance".to_owned(), json!(instance));
                    }
                    values.push(Value::Object(shown));
                }
                if self.all && values.is_empty() {
                    return None;
                }
                let mut row = json!({ "field": name, "label": self.names.label(name) });
                if values.is_empty() {
                    row["state"] = json!("没有任何一条记录（该访视或该表单还没有数据）");
                }
                row["values"] = Value::Array(values);
                if field.is_some_and(|field| field.identifier) {
                    row["identifier"] = json!(true);
                    self.identifiers.push(name.clone());
                }
                Some(row)
            })
            .collect()
    }
}
