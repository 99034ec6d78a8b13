//! When a skill runs by itself: `schedule`, and beside it what becomes of missed times, `catchup` and
//! `catchup_window`. They stand in the envelope or in the configuration.

use serde_json::{Map, Value};

use super::{
    fault::{Fault, FaultKind},
    read::{Config, Envelope, Reader},
    text::join,
};
use crate::types::{
    catch_up::{CatchUp, Policy, Window},
    cron::Expression,
};

/// Checks a schedule, including that it fires at all.
///
/// # Errors
/// What is wrong, as one sentence.
pub fn check(written: &str) -> Result<(), String> {
    Expression::parse(written).map(|_| ())
}

/// What one place of a file says about when a skill runs.
#[derive(Debug, Default)]
pub(super) struct Timing {
    /// Five-field cron.
    pub(super) schedule: Option<String>,
    /// Which missed times are caught up with.
    pub(super) catchup: Option<Policy>,
    /// How late they may be.
    pub(super) window: Option<Window>,
}

impl Reader<'_> {
    /// Reads what `map` says about when a skill runs, and notes what could not be meant.
    pub(super) fn timing(&mut self, map: &Map<String, Value>, path: &str) -> Timing {
        let policy = self.text(map, path, "catchup");
        let window = self.text(map, path, "catchup_window");
        Timing {
            schedule: self.text(map, path, "schedule"),
            catchup: policy.and_then(|written| {
                let policy = Policy::parse(&written);
                if policy.is_none() {
                    let what = format!("没有 `{written}` 这种补跑方式");
                    let fault = Fault::new(FaultKind::BadValue, join(path, "catchup"), what);
                    self.fault(fault.hint_near(&written, Policy::NAMES));
                }
                policy
            }),
            window: window.and_then(|written| match written.parse() {
                Ok(window) => Some(window),
                Err(what) => {
                    let path = join(path, "catchup_window");
                    self.fault(Fault::new(FaultKind::BadValue, path, what));
                    None
                }
            }),
        }
    }

    /// Notes a schedule that would never fire as meant.
    fn schedule(&mut self, written: &str, path: &str) {
        if let Err(what) = check(written) {
            let fault = Fault::new(FaultKind::Schedule, join(path, "schedule"), what);
            self.fault(
                fault.hint("五段：分 时 日 月 周，周一 = 1，周日 = 0 或 7，如 \"0 9 * * 1\""),
            );
        }
    }
}

/// The schedule and its catch-up, out of the two places they may stand in.
pub(super) fn merge(
    reader: &mut Reader<'_>,
    envelope: &Envelope<'_>,
    config: &Config,
) -> (Option<String>, CatchUp) {
    let (outer, inner) = (&envelope.timing, &config.timing);
    if let Some(written) = &outer.schedule {
        reader.schedule(written, "");
    }
    if let Some(written) = &inner.schedule {
        reader.schedule(written, envelope.path);
    }
    let schedule = one(reader, "schedule", &outer.schedule, &inner.schedule);
    let names = |policy: Option<Policy>| policy.map(|policy| policy.as_str().to_owned());
    let policy = one(
        reader,
        "catchup",
        &names(outer.catchup),
        &names(inner.catchup),
    )
    .and_then(|name| Policy::parse(&name));
    let texts = |window: Option<Window>| window.map(|window| window.to_string());
    let window = one(
        reader,
        "catchup_window",
        &texts(outer.window),
        &texts(inner.window),
    )
    .and_then(|text| text.parse::<Window>().ok());
    // What is written and has no effect is a mistake.
    let place = |key: &str, is_outer: bool| match is_outer {
        true => key.to_owned(),
        false => join(envelope.path, key),
    };
    if policy == Some(Policy::None) && window.is_some() {
        let path = place("catchup_window", outer.window.is_some());
        let what = "`catchup` 为 `none` 时没有补跑，也就没有期限";
        let fault = Fault::new(FaultKind::BadValue, path, what);
        reader.fault(fault.hint("去掉它，或改用 `last` remove it, or use `last`"));
    }
    if envelope.is_file && schedule.is_none() {
        for (key, is_outer, is_written) in [
            ("catchup", outer.catchup.is_some(), policy.is_some()),
            ("catchup_window", outer.window.is_some(), window.is_some()),
        ] {
            if is_written {
                let what = format!("写了 `{key}` 却没有 `schedule`");
                let fault = Fault::new(FaultKind::BadValue, place(key, is_outer), what);
                reader.fault(fault.hint("加上 `schedule`，或去掉它 add a schedule, or remove it"));
            }
        }
    }
    let catch_up = CatchUp {
        policy: policy.unwrap_or_default(),
        window: window.unwrap_or_default(),
    };
    (schedule, catch_up)
}

/// What is written once, or twice the same.
fn one(
    reader: &mut Reader<'_>,
    key: &str,
    outer: &Option<String>,
    inner: &Option<String>,
) -> Option<String> {
    if let (Some(outer), Some(inner)) = (outer, inner)
        && outer != inner
    {
        let what = format!("`{key}` 写了两次且不同：`{outer}` 和 `{inner}`");
        let fault = Fault::new(FaultKind::BadValue, key, what);
        reader.fault(fault.hint("保留一个 keep one of them"));
        return None;
    }
    outer.as_ref().or(inner.as_ref()).cloned()
}
