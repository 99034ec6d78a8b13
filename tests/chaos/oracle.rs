//! The judge. It knows what must have come of the run from the study and the messages alone, and compares
//! that with the tables, with what the model and WeCom were asked, and with what was seen on the wire.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use serde::Serialize;
use sqlx::{PgPool, Row};
use uuid::Uuid;

use crate::fake_llm::Call;
use crate::fake_wecom::Delivered;
use crate::history::Wire;
use crate::study::{self, SKILL, Study, Verdict, member, record_id};

/// Faults of one kind that are shown.
const SHOWN: usize = 8;

/// What was seen outside the tables.
pub struct Seen {
    pub messages: usize,
    pub calls: Vec<Call>,
    pub odd_calls: Vec<String>,
    /// Calls beyond one a step that the faults account for.
    pub calls_allowed_beyond: usize,
    pub delivered: Vec<Delivered>,
    pub wire: Wire,
}

/// One thing that must hold.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    pub what: &'static str,
    pub faults: usize,
    /// The first of them.
    pub shown: Vec<String>,
}

impl Check {
    pub fn of(what: &'static str, faults: Vec<String>) -> Self {
        Self {
            what,
            faults: faults.len(),
            shown: faults.into_iter().take(SHOWN).collect(),
        }
    }

    pub fn holds(&self) -> bool {
        self.faults == 0
    }
}

/// What stands in the tables.
struct Tables {
    inbox: Vec<(String, String)>,
    runs: Vec<Run>,
    steps: HashMap<Uuid, Vec<(i32, String, String)>>,
    parts: Vec<Part>,
    findings: Vec<(String, String, String, i64)>,
    jobs: Vec<String>,
    journal: HashSet<(Uuid, i32, i32)>,
    reserved: Vec<String>,
}

struct Run {
    id: Uuid,
    record: String,
    status: String,
    final_state: Option<String>,
    standing: Option<String>,
    error: Option<String>,
}

struct Part {
    recipient: String,
    text: String,
    state: String,
    message_state: String,
    jobs: String,
}

/// Judges a run that came to rest.
pub async fn judge(pool: &PgPool, study: &Study, seen: &Seen) -> Result<Vec<Check>> {
    let tables = Tables::read(pool).await?;
    Ok(vec![
        tables.messages(seen),
        tables.finished(study, seen),
        tables.committed_once(study, seen),
        tables.replies(seen),
        nothing_twice(seen),
        tables.right_words(study, seen),
        tables.ledger(study, seen),
        tables.at_rest(),
        tables.asked_for_each_step(study, seen),
        not_paid_twice(study, seen),
        never_again_after_an_answer(seen),
        tables.journaled(seen),
        Check::of(
            "no settlement goes on without its lease",
            seen.wire.unfenced.clone(),
        ),
        Check::of(
            "no transaction is left open for the next to use its connection",
            seen.wire.left_open.clone(),
        ),
        Check::of(
            "nothing stays reserved in a budget",
            tables.reserved.clone(),
        ),
    ])
}

impl Tables {
    async fn read(pool: &PgPool) -> Result<Self> {
        let inbox = sqlx::query_as("SELECT lower(sender), status FROM iit_inbox")
            .fetch_all(pool)
            .await?;
        let runs = sqlx::query(
            "SELECT id, record, status, final_state, standing, error FROM iit_task_run ORDER BY id",
        )
        .fetch_all(pool)
        .await?;
        let runs = runs
            .into_iter()
            .map(|row| Run {
                id: row.get(0),
                record: row.get(1),
                status: row.get(2),
                final_state: row.get(3),
                standing: row.get(4),
                error: row.get(5),
            })
            .collect();
        let rows: Vec<(Uuid, i32, String, String)> =
            sqlx::query_as("SELECT run_id, no, node, outcome FROM iit_task_step ORDER BY no")
                .fetch_all(pool)
                .await?;
        let mut steps: HashMap<_, Vec<_>> = HashMap::new();
        for (run, no, node, outcome) in rows {
            steps.entry(run).or_default().push((no, node, outcome));
        }
        let parts = sqlx::query(
            "SELECT lower(o.recipient), p.text, p.state, o.state,
                    o.id::text || ', ' || (SELECT string_agg(concat_ws(' ', 'job', j.id, j.state, 'attempt', j.attempt,
                               'started', j.started_at, 'finished', j.finished_at, j.last_error), ', ')
                     FROM iit_jobs j WHERE j.kind = 'deliver' AND j.payload->>'outbox' = o.id::text)
             FROM iit_outbox o JOIN iit_outbox_parts p ON p.outbox_id = o.id ORDER BY o.id, p.no",
        )
        .fetch_all(pool)
        .await?;
        let parts = parts
            .into_iter()
            .map(|row| Part {
                recipient: row.get(0),
                text: row.get(1),
                state: row.get(2),
                message_state: row.get(3),
                jobs: row.get(4),
            })
            .collect();
        let findings = sqlx::query_as(
            "SELECT a.record, a.rule, a.outcome || ' ' || a.status,
                    (SELECT count(*) FROM iit_pending_action_history h
                     WHERE h.action_id = a.id AND h.from_status IS NULL)
             FROM iit_pending_actions a",
        )
        .fetch_all(pool)
        .await?;
        let jobs = sqlx::query_scalar(
            "SELECT concat_ws(' ', 'job', id, kind, state, 'attempt', attempt, 'crashes', crashes, payload::text,
                              last_error)
             FROM iit_jobs WHERE state <> 'done' OR lease_token IS NOT NULL ORDER BY id",
        )
        .fetch_all(pool)
        .await?;
        let journal: Vec<(Uuid, i32, i32)> =
            sqlx::query_as("SELECT run_id, step_no, ask FROM iit_llm_calls")
                .fetch_all(pool)
                .await?;
        Ok(Self {
            inbox,
            runs,
            steps,
            parts,
            findings,
            jobs,
            journal: journal.into_iter().collect(),
            reserved: reserved(pool).await?,
        })
    }

    fn messages(&self, seen: &Seen) -> Check {
        let mut faults = Vec::new();
        let mut by_sender: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (sender, status) in &self.inbox {
            by_sender.entry(sender).or_default().push(status);
        }
        for record in 0..seen.messages {
            let sender = member(record);
            match by_sender.remove(sender.as_str()).as_deref() {
                Some(["answered"]) => {}
                other => faults.push(format!("{sender}: {other:?}")),
            }
        }
        faults.extend(
            by_sender
                .keys()
                .map(|sender| format!("{sender} wrote nothing")),
        );
        Check::of("every message is stored once and answered", faults)
    }

    fn finished(&self, study: &Study, seen: &Seen) -> Check {
        let mut faults = Vec::new();
        let mut left: HashSet<String> = (0..seen.messages).map(record_id).collect();
        for run in &self.runs {
            if !left.remove(&run.record) {
                faults.push(format!("a second run of {}", run.record));
            }
            let wrong = number(&run.record).is_some_and(|record| findings_of(study, record) > 0);
            let standing = if wrong { "violation" } else { "clean" };
            let right = run.status == "done"
                && run.final_state.as_deref() == Some("end_success")
                && run.standing.as_deref() == Some(standing);
            if !right {
                faults.push(format!(
                    "run {} of {}: {} {} {}, should be done end_success {standing} {}",
                    run.id,
                    run.record,
                    run.status,
                    run.final_state.as_deref().unwrap_or("-"),
                    run.standing.as_deref().unwrap_or("-"),
                    run.error.as_deref().unwrap_or_default()
                ));
            }
        }
        faults.extend(left.into_iter().map(|record| format!("{record}: no run")));
        Check::of("every run finished in its right state", faults)
    }

    fn committed_once(&self, study: &Study, seen: &Seen) -> Check {
        let mut faults = Vec::new();
        for run in &self.runs {
            let record = number(&run.record).filter(|record| *record < seen.messages);
            let expected: Vec<(i32, String, String)> = (0_i32..)
                .zip(0..study.steps())
                .map(|(no, step)| {
                    let outcome = match record.and_then(|record| study.verdict(record, step)) {
                        Some(Verdict::Fail) => "fail",
                        _ => "pass",
                    };
                    (no, study::node(step), outcome.to_owned())
                })
                .collect();
            let steps = self.steps.get(&run.id).map(Vec::as_slice).unwrap_or(&[]);
            if steps != expected {
                faults.push(format!("{} {}: {steps:?}", run.record, run.id));
            }
        }
        Check::of(
            "every step is committed once, in order, with its right outcome",
            faults,
        )
    }

    fn replies(&self, seen: &Seen) -> Check {
        let mut log: HashMap<(String, &str), usize> = HashMap::new();
        for one in &seen.delivered {
            *log.entry((one.to.to_lowercase(), one.content.as_str()))
                .or_default() += 1;
        }
        let mut faults = Vec::new();
        for part in &self.parts {
            let times = log
                .remove(&(part.recipient.clone(), part.text.as_str()))
                .unwrap_or(0);
            let right = match (part.message_state.as_str(), part.state.as_str()) {
                ("sent", "sent") => times == 1,
                ("unknown", "unknown") => times <= 1,
                ("unknown", "sent") => times == 1,
                _ => false,
            };
            if !right {
                faults.push(format!(
                    "to {}: message {}, part {}, delivered {times} times ({})",
                    part.recipient, part.message_state, part.state, part.jobs
                ));
            }
        }
        faults.extend(
            log.keys()
                .map(|(to, _)| format!("to {to}: delivered, and in no row")),
        );
        if self.parts.len() != seen.messages {
            faults.push(format!(
                "{} replies to {} messages",
                self.parts.len(),
                seen.messages
            ));
        }
        Check::of(
            "every reply is delivered once, or its row says unknown",
            faults,
        )
    }

    fn right_words(&self, study: &Study, seen: &Seen) -> Check {
        let mut faults = Vec::new();
        for one in &seen.delivered {
            let Some(record) =
                (0..seen.messages).find(|r| one.to.eq_ignore_ascii_case(&member(*r)))
            else {
                faults.push(format!("a message to {}", one.to));
                continue;
            };
            let about = format!("受试者 {}", record_id(record));
            let says_clean = one.content.contains("未发现问题");
            if !one.content.contains(&about) || says_clean != (findings_of(study, record) == 0) {
                faults.push(format!("to {}: {}", one.to, one.content));
            }
        }
        Check::of(
            "every reply goes to its sender and says what was found",
            faults,
        )
    }

    fn ledger(&self, study: &Study, seen: &Seen) -> Check {
        let mut expected: HashSet<(String, String)> = HashSet::new();
        for record in 0..seen.messages {
            for step in 0..study.steps() {
                if study.verdict(record, step) == Some(Verdict::Fail) {
                    expected.insert((record_id(record), format!("{SKILL}/{}", study::node(step))));
                }
            }
        }
        let mut faults = Vec::new();
        for (record, rule, state, opened) in &self.findings {
            if !expected.remove(&(record.clone(), rule.clone())) {
                faults.push(format!("{record} {rule}: unexpected or twice ({state})"));
            } else if state != "fail open" || *opened != 1 {
                faults.push(format!("{record} {rule}: {state}, opened {opened} times"));
            }
        }
        faults.extend(
            expected
                .into_iter()
                .map(|(record, rule)| format!("{record} {rule}: missing")),
        );
        Check::of("the ledger holds each finding once, and no other", faults)
    }

    fn at_rest(&self) -> Check {
        Check::of("no job is left, given up or leased", self.jobs.clone())
    }

    fn asked_for_each_step(&self, study: &Study, seen: &Seen) -> Check {
        let mut faults = seen.odd_calls.clone();
        let record_of: HashMap<Uuid, &str> = self
            .runs
            .iter()
            .map(|run| (run.id, run.record.as_str()))
            .collect();
        let mut asked: HashSet<(usize, usize)> = HashSet::new();
        let mut keys: HashSet<&str> = HashSet::new();
        for call in &seen.calls {
            asked.insert((call.record, call.step));
            let record = record_id(call.record);
            let fits = record_of.get(&call.run) == Some(&record.as_str())
                && i32::try_from(call.step) == Ok(call.step_no);
            if !fits {
                faults.push(format!(
                    "{} asked about {record}, step {}",
                    call.key,
                    call.step + 1
                ));
            }
            if !keys.insert(&call.key) {
                faults.push(format!("the key {} came twice", call.key));
            }
        }
        for record in 0..seen.messages {
            for step in 0..study.steps() {
                if !asked.contains(&(record, step)) {
                    faults.push(format!(
                        "{}, step {}: never asked",
                        record_id(record),
                        step + 1
                    ));
                }
            }
        }
        Check::of(
            "the model is asked about each step, under a new key each time",
            faults,
        )
    }

    fn journaled(&self, seen: &Seen) -> Check {
        let faults = seen
            .calls
            .iter()
            .filter(|call| !self.journal.contains(&(call.run, call.step_no, call.ask)))
            .map(|call| format!("{} was asked and is in no row", call.key))
            .collect();
        Check::of("every call has its row in the journal", faults)
    }
}

fn nothing_twice(seen: &Seen) -> Check {
    let mut times: BTreeMap<&Delivered, usize> = BTreeMap::new();
    for one in &seen.delivered {
        *times.entry(one).or_default() += 1;
    }
    let faults = times
        .iter()
        .filter(|(_, times)| **times > 1)
        .map(|(one, times)| format!("to {}: {times} times", one.to))
        .collect();
    Check::of("nothing is sent twice", faults)
}

fn not_paid_twice(study: &Study, seen: &Seen) -> Check {
    let most = seen.messages * study.steps() + seen.calls_allowed_beyond;
    let faults = if seen.calls.len() > most {
        vec![format!("{} calls, at most {most}", seen.calls.len())]
    } else {
        Vec::new()
    };
    Check::of("no more calls than steps and faults account for", faults)
}

/// An ask that was begun after an answer to the same step was known to be committed.
fn never_again_after_an_answer(seen: &Seen) -> Check {
    let mut faults = Vec::new();
    for call in &seen.calls {
        let step = (call.run, call.step_no);
        let begun = seen
            .wire
            .asks
            .get(&(step, call.ask))
            .copied()
            .unwrap_or(call.at);
        if seen
            .wire
            .answered
            .get(&step)
            .is_some_and(|answered| begun > *answered)
        {
            faults.push(format!(
                "{} was asked although an answer was committed",
                call.key
            ));
        }
    }
    Check::of("what was answered is never asked again", faults)
}

/// What is still held back in the day's budgets.
async fn reserved(pool: &PgPool) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(
        "SELECT concat_ws(' ', scope, owner, day, 'reserved', reserved_tokens, 'tokens')
         FROM iit_llm_spend WHERE reserved_tokens <> 0 OR reserved_cost <> 0
         UNION ALL
         SELECT concat_ws(' ', 'call', run_id::text || '/' || step_no || '/' || ask, state, 'is not settled')
         FROM iit_llm_calls WHERE NOT settled",
    )
    .fetch_all(pool)
    .await?)
}

fn number(record: &str) -> Option<usize> {
    record
        .strip_prefix('R')?
        .parse::<usize>()
        .ok()?
        .checked_sub(1)
}

fn findings_of(study: &Study, record: usize) -> usize {
    (0..study.steps())
        .filter(|step| study.verdict(record, *step) == Some(Verdict::Fail))
        .count()
}
