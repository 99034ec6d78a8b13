//! Personal data out of what a model is shown, and back into what it answers.
//!
//! Redaction is done on the way out, at one gate, on every string of a request; nothing that was stored is
//! changed. A value becomes a placeholder such as `〔姓名1〕`, the same in every turn of a run.
//!
//! | file | thought |
//! |---|---|
//! | [`kind`] | the kinds of personal data, and what a placeholder looks like |
//! | [`folded`] | text as it is compared: half-width, without invisible characters, with the way back |
//! | [`certificates`] | 身份证, passports, bank cards: numbers that prove themselves |
//! | [`contacts`] | telephones, e-mail, accounts |
//! | [`hospital`] | 住院号, 病案号 and their like |
//! | [`address`] | where somebody lives |
//! | [`birth`] | when somebody was born |
//! | [`names`] | what somebody is called, by the words around it |
//! | [`surnames`] | the surnames that takes, and words that only look like names |
//! | [`fields`] | which fields of a dictionary identify a person |
//! | [`known`] | the values of those fields, found wherever they stand |
//! | [`hidden`] | a run's placeholders, and the way back |
//! | [`redactor`] | all of it over one text |
//! | [`seal`] | all of it over one request, and a last look at its bytes |

pub mod address;
pub mod birth;
pub mod certificates;
pub mod contacts;
pub mod fields;
pub mod folded;
pub mod hidden;
pub mod hospital;
pub mod kind;
pub mod known;
pub mod names;
pub mod redactor;
pub mod seal;
pub mod surnames;
#[cfg(test)]
mod tests;

pub use hidden::{Hidden, Placeholder};
pub use kind::{Kind, NOTE};
pub use redactor::{Redactor, RedactorFault, Study, Whose};
pub use seal::{NotSealed, seal};
