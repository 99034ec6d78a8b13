//! `search_records`: which subjects a condition holds for. Those it can't be decided for are counted, not
//! dropped: a list of the others alone would read as the whole.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    bounded,
    fields::Names,
    filter, lenient,
    scope::Scope,
    show,
    tally::Undecided,
    tool::{Effect, Observation, Tool, ToolError},
};
use crate::engines::rules::{Place, Query, Reading, Verdict};

/// Rows of a result unless more are asked for.
const ROWS: usize = 20;
/// Most fields of one call.
const MOST_FIELDS: usize = 12;
/// Most places of one field shown for a subject.
const MOST_PLACES: usize = 8;

/// Finds subjects.
#[derive(Debug, Clone, Copy)]
pub struct SearchRecords;

/// Which subjects, what of them, in which order.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// 筛选条件（JSON Logic），如 {"and":[{"==":[{"var":"sex"},"2"]},{">=":[{"var":"age"},60]}]}；省略则为全部受试者
    #[serde(default, deserialize_with = "lenient::optional_logic")]
    #[schemars(with = "Option<Map<String, Value>>")]
    filter: Option<Value>,
    /// 要显示的字段（字段名、别名或标签）
    #[serde(default, deserialize_with = "lenient::texts")]
    fields: Vec<String>,
    /// 按此日期或数值字段排序；"recent" 表示按入组日期从新到旧
    #[serde(default, deserialize_with = "lenient::optional_text")]
    sort: Option<String>,
    /// 升序 asc 或降序 desc（默认 desc）
    #[serde(default)]
    order: Option<Order>,
    /// 最多返回多少例，默认 20，至多 50
    #[serde(default, deserialize_with = "lenient::optional_number")]
    #[schemars(with = "Option<u32>")]
    limit: Option<usize>,
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Smallest or oldest first.
    Asc,
    /// Largest or newest first.
    Desc,
}

impl Tool for SearchRecords {
    type Args = Args;
    const NAME: &'static str = "search_records";
    const DESCRIPTION: &'static str = "按条件查找受试者并列出字段，可按日期或数值排序（sort=\"recent\" 为最近入组）。条件无法判定的受试者单独计数。只要人数或统计数时用 aggregate。";
    const EFFECT: Effect = Effect::Read;

    async fn run(&self, scope: &Scope<'_>, mut args: Args) -> Result<Observation, ToolError> {
        let mut names = Names::of(scope);
        if let Some(logic) = &mut args.filter {
            filter::understand(logic, &mut names)?;
        }
        let sort = sort_field(&args, scope, &mut names)?;
        let mut fields = match args.fields.is_empty() {
            true => Vec::new(),
            false => names.fields(&args.fields)?,
        };
        if let Some(sort) = sort.as_ref().filter(|sort| !fields.contains(sort)) {
            fields.insert(0, sort.clone());
        }
        if fields.len() > MOST_FIELDS {
            return Err(ToolError::Arguments(format!(
                "一次最多显示 {MOST_FIELDS} 个字段；请少选一些，或用 read_clinical_data 读取单个受试者"
            )));
        }
        let columns: Vec<[&str; 1]> = fields.iter().map(|field| [field.as_str()]).collect();
        let columns: Vec<&[&str]> = columns.iter().map(<[&str; 1]>::as_slice).collect();
        let study = names.study();
        let query = Query::compile(args.filter.as_ref(), &columns, &study)
            .map_err(|faults| filter::refusal(&faults))?;
        let sorted_by = sort
            .as_ref()
            .and_then(|s| fields.iter().position(|f| f == s));
        let order = args.order.unwrap_or(Order::Desc);

        let mut undecided = Undecided::default();
        let mut matched = Vec::new();
        for (at, record) in scope.records().enumerate() {
            let answer = query.ask(record, scope.today);
            if answer.verdict == Verdict::Holds {
                let key = sorted_by.and_then(|column| key(answer.columns.get(column)?, order));
                matched.push((key, at, record));
            } else {
                undecided.count(answer.verdict, &record.id);
            }
        }
        if sorted_by.is_some() {
            matched.sort_by(|(a, at, _), (b, bt, _)| compare(*a, *b, order).then(at.cmp(bt)));
        }
        let unsorted = match sorted_by {
            Some(_) => matched.iter().filter(|(key, ..)| key.is_none()).count(),
            None => 0,
        };

        let limit = args.limit.unwrap_or(ROWS).clamp(1, bounded::MOST_ROWS);
        let rows: Vec<Value> = matched
            .iter()
            .take(limit)
            .map(|(_, _, record)| {
                let answer = query.ask(record, scope.today);
                let mut row = Map::new();
                row.insert("record_id".to_owned(), json!(record.id));
                for (field, places) in fields.iter().zip(&answer.columns) {
                    row.insert(field.clone(), shown(field, places, &names));
                }
                Value::Object(row)
            })
            .collect();
        let rows = bounded::rows(rows, limit);
        let total = matched.len();
        let mut observation = Observation::of(json!({
            "matched": total,
            "shown": rows.len(),
            "not_evaluable": undecided.total(),
            "searched": scope.records().count(),
        }));
        observation.records = matched
            .iter()
            .take(rows.len())
            .map(|(_, _, record)| record.id.clone())
            .collect();
        observation.identifiers = fields
            .iter()
            .filter(|field| {
                names
                    .definition(field)
                    .is_some_and(|field| field.identifier)
            })
            .cloned()
            .collect();
        let labels: Map<String, Value> = fields
            .iter()
            .map(|field| (field.clone(), json!(names.label(field))))
            .collect();
        let cut = total - rows.len();
        observation.value["labels"] = Value::Object(labels);
        observation.value["rows"] = Value::Array(rows);
        if total == 0 {
            observation =
                observation.note("没有符合条件的受试者；请如实告知提问者，或放宽条件再查");
        }
        observation.notes.extend(undecided.note());
        if cut > 0 {
            observation = observation.note(format!(
                "共 {total} 例符合，还有 {cut} 例没有显示；可加 filter 缩小范围，或调整 limit（至多 {}）与 fields；求总数或均值请用 aggregate",
                bounded::MOST_ROWS
            ));
        }
        if unsorted > 0 {
            observation = observation.note(format!("其中 {unsorted} 例没有可排序的值，排在最后"));
        }
        observation
            .notes
            .append(&mut told_places(&query, &fields, sorted_by, order, &names));
        observation.notes.append(&mut names.notes);
        observation.unmapped = names.unmapped;
        Ok(observation)
    }
}

/// Which field to sort by, when one is asked for and can be sorted by.
fn sort_field(
    args: &Args,
    scope: &Scope<'_>,
    names: &mut Names<'_>,
) -> Result<Option<String>, ToolError> {
    let Some(written) = args.sort.as_deref() else {
        return Ok(None);
    };
    let recent = ["recent", "最近", "最近入组"].contains(&written);
    let field = if recent {
        scope
            .project
            .file
            .field_for("enrollment_date")
            .map(str::to_owned)
            .ok_or_else(|| {
                ToolError::Arguments(
                    "项目没有配置入组日期字段（enrollment_date），无法按入组先后排序".to_owned(),
                )
            })?
    } else {
        names.field(written.trim_start_matches(['-', '+']))?
    };
    use crate::types::dictionary::ValueType::{Code, Codes, Text};
    match names.definition(&field).map(|field| field.value_type()) {
        Some(Text | Code | Codes) => Err(ToolError::Arguments(format!(
            "{} 不是日期或数值字段，不能用来排序",
            names.shown(&field)
        ))),
        _ => Ok(Some(field)),
    }
}

/// What a subject is sorted by: the last of its values going down, the first going up. A partial date counts
/// from its first day.
fn key(places: &[Place<'_>], order: Order) -> Option<f64> {
    let keys = places
        .iter()
        .filter_map(|place| match place.seen.first()?.reading {
            Reading::Number(x) => Some(x),
            #[allow(
                clippy::cast_precision_loss,
                reason = "seconds since 1970 are far below 2^52"
            )]
            Reading::Date { first, .. } => Some(first.and_utc().timestamp() as f64),
            Reading::Time(seconds) => Some(f64::from(seconds)),
            _ => None,
        });
    match order {
        Order::Desc => keys.max_by(f64::total_cmp),
        Order::Asc => keys.min_by(f64::total_cmp),
    }
}

/// Those without a value come last, whichever way.
fn compare(a: Option<f64>, b: Option<f64>, order: Order) -> Ordering {
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => match order {
            Order::Asc => a.total_cmp(&b),
            Order::Desc => b.total_cmp(&a),
        },
    }
}

fn shown(name: &str, places: &[Place<'_>], names: &Names<'_>) -> Value {
    let (field, dictionary) = (names.definition(name), names.dictionary());
    let mut lines: Vec<Value> = places
        .iter()
        .take(MOST_PLACES)
        .filter_map(|place| {
            let line = show::line(place.seen.first()?, field, dictionary);
            let at = show::place(place.event, place.instance, dictionary);
            Some(json!(match at.as_str() {
                "" => line,
                at => format!("{at}：{line}"),
            }))
        })
        .collect();
    if places.len() > MOST_PLACES {
        lines.push(json!(format!("…共 {} 处", places.len())));
    }
    match lines.len() {
        0 => json!("没有数据"),
        1 => lines.remove(0),
        _ => Value::Array(lines),
    }
}

/// What has to be known of fields that stand at several places.
fn told_places(
    query: &Query,
    fields: &[String],
    sorted_by: Option<usize>,
    order: Order,
    names: &Names<'_>,
) -> Vec<String> {
    let several = |at: usize| {
        let standing = query.standing(at);
        standing.repeats || standing.several_events
    };
    let mut told = Vec::new();
    if let Some(at) = sorted_by.filter(|at| several(*at))
        && let Some(field) = fields.get(at)
    {
        let which = match order {
            Order::Desc => "最大（最晚）",
            Order::Asc => "最小（最早）",
        };
        told.push(format!(
            "{} 一名受试者可有多个值，按其{which}值排序",
            names.shown(field)
        ));
    }
    let following: Vec<String> = (0..fields.len())
        .filter(|at| several(*at) && query.follows_filter(*at))
        .filter_map(|at| fields.get(at).cloned())
        .collect();
    if !following.is_empty() {
        told.push(format!(
            "{} 只列出符合筛选条件的那些记录行",
            following.join("、")
        ));
    }
    told
}
