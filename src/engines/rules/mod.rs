//! Hard rules: JSON Logic syntax, three-valued answers.
//!
//! A blank passes an upper limit in every JSON Logic engine (`age <= 75` is true when age is missing), and
//! an unknown operator is silently truthy in some. Neither may happen to a trial. So a rule is *compiled*
//! against the study's data dictionary, which rejects what could only be a slip of the pen, and *evaluated*
//! in Kleene's three-valued logic: pass, fail, or not evaluable; not evaluable is never a pass.
//!
//! # Operators
//!
//! Standard, as in JSON Logic: `var` (a name written out), `== === != !== < <= > >=` (orderings also with
//! three operands), `and or ! !! if ?:`, `in`, `+ - * / % min max`, `cat substr`, `missing missing_some`.
//!
//! | ours | |
//! |---|---|
//! | `{"is_blank": field}` | nothing in it, or a missing-data code; unknown of what can't be read |
//! | `{"between": [x, low, high, "[]"]}` | bounds inclusive unless `"[)"`, `"(]"` or `"()"` says else |
//! | `{"in_codes": [field, codes]}` | the code, or any checked code, is on the list |
//! | `{"date_before": [a, b]}`, `date_after` | strictly; a date and a date with time are compared by day |
//! | `{"date_diff_days": [from, to]}` | days, negative when `to` is earlier |
//! | `{"age_at": [born, day]}` | completed years |
//! | `{"matches": [x, pattern]}` | the whole text; no look-around |
//! | `{"today": []}`, or `"today"` where a date stands | the day of the evaluation |
//! | `{"function_name": name, "args": {…}}` | `visit_window`, `informed_consent`, `age_requirement` |
//!
//! Only `is_blank`, `missing`, `missing_some` and `== ""` look at a blank. The default of a `var` is read and
//! never used: it would answer in the place of a blank. Write `{"if": [{"is_blank": x}, …, …]}` instead.
//!
//! # Names
//!
//! A field of the dictionary, else an alias, else a role of the study; also `<form>_complete`,
//! `<checkbox>___<code>`, `redcap_event_name`, `redcap_repeat_instance`, `redcap_data_access_group`.
//! `event.field` reads the base row of another event.
//!
//! # Rows
//!
//! A rule is asked on every row its form stands on: at each event, on each instance. A field of another form
//! is read from the same row, from the event's base row, or from the one event of the arm its form stands at.
//! When a rule reads several forms, it is asked along the one that stands wherever the others do, so that no
//! value is passed over; where none does, or it is unclear which event's value is meant, it does not compile.
//! A rule on a repeating form is about its instances. A rule that only names its events is asked once.
//!
//! An event the subject has not come to is silent once the rule was asked at another, and else one
//! `FormNotOpened` in all. It has no row, or a base row at which no form was opened and no instance exists:
//! exports differ in whether they write such rows, and the standing must not. As soon as anything at the event
//! is filled in, the event is reached and an unopened form of the rule is told as such; on an opened form a
//! blank is a blank.
//!
//! Pure: no I/O, no clock (`today` is an argument).

pub mod branching;
mod cell;
mod eval;
mod eval_values;
mod excuse;
mod expr;
mod fault;
mod flat;
mod frame;
mod functions;
mod key;
mod layout;
mod message;
mod moment;
mod names;
mod number;
mod operation;
mod operation_clinical;
mod parse;
mod query;
mod reading;
mod record_view;
mod result;
mod rule;
mod scope;
mod scope_choice;
mod set;
mod study;
#[cfg(test)]
mod tests;
mod typing;
mod value;
mod words;

pub use fault::RuleFault;
pub use functions::Window;
pub use key::rule_key;
pub use parse::operators;
pub use query::{Answer, Place, Query, Standing, Verdict};
pub use reading::{Reading, Seen};
pub use result::{Outcome, Reason, RuleResult};
pub use set::RuleSet;
pub use study::Study;
