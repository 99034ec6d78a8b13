//! What several job kinds share. Not a job itself: each file is a step of the same use case.
//!
//! | file | thought |
//! |---|---|
//! | [`services`] | what a job works with |
//! | [`study`] | a study at hand: settings, data source, compiled skills |
//! | [`records`] | from the ids people write to the ids the EDC has |
//! | [`mixed_ids`] | ids the keyword router can't read, asked about |
//! | [`parts`] | from what a message wants to the parts of its reply |
//! | [`page`] | one page of a batch |
//! | [`review`] | a person's decision, and the run that goes on by it |
//! | [`starts`] | runs that start at their first node |
//! | [`model`] | the language model, and what a study allows |
//! | [`privacy`] | what of a study is personal, and who may see it |
//! | [`ask`] | one question to it, by the journal: never paid twice |
//! | [`soft_step`] | the judgement of a soft rule |
//! | [`questions`] | a question reasoned about: begun by a message, ended with a part of its reply |
//! | [`tool_calls`] | the tool calls of one turn |
//! | [`transcript`] | a thread's rows, and what was said in it |
//! | [`judgements`] | tool calls that a judgement answers, in a run of its own |
//! | [`tool_step`] | a node that is one tool call |
//! | [`steps`] | what a step came to, written with the ledger in one settlement |
//! | [`reply`] | from finished work to the message that leaves |
//! | [`answer`] | the words of a QC answer |
//! | [`which_skills`] | which skills a message asks for |
//! | [`click`] | from a click on a card to the choice it made |
//! | [`understand`] | what a message wants: at once, by the model, or by keywords |
//! | [`understood`] | what came of that, written with the message |
//! | [`consent`] | what is only proposed, and the yes to it |
//! | [`whose`] | whose study a message is about |
//! | [`cron`] | the scheduler: from a time that has come to a firing and its job |
//! | [`proposals`] | what a skill's tools proposed, written with their step |
//! | [`notice`] | telling people of a study something they did not ask for |
//! | [`cancel`] | ending a job that nobody wants any more |
//! | [`until_noted`] | noting an answer over a moment without a database |
//! | [`tokens`] | the WeCom token, kept in Postgres |
//! | [`way_out`] | may a part leave for WeCom, and what its answer means |

pub mod answer;
pub mod ask;
pub mod cancel;
pub mod click;
pub mod consent;
pub mod cron;
pub mod judgements;
pub mod mixed_ids;
pub mod model;
pub mod notice;
pub mod page;
pub mod parts;
pub mod privacy;
pub mod proposals;
pub mod protocol_reply;
pub mod questions;
pub mod records;
pub mod reply;
pub mod review;
pub mod services;
pub mod soft_step;
pub mod starts;
pub mod steps;
pub mod study;
pub mod tokens;
pub mod tool_calls;
pub mod tool_step;
pub mod transcript;
pub mod understand;
pub mod understood;
pub mod until_noted;
pub mod way_out;
pub mod which_skills;
pub mod whose;
