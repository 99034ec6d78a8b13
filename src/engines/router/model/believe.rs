//! From the model's reading to intents. The model says what is wanted; whom it is about is read here, from
//! the words people wrote, as the keyword router reads them.
//!
//! | both say | then |
//! |---|---|
//! | check, same records | it starts |
//! | check, only the model, or other records | it is proposed; a person confirms |
//! | check or change the message takes back | nothing starts; asked back |
//! | a question, a report, … | the model is believed: nothing of it changes anything |
//! | anything under the threshold | asked back, with what it may have been |

use super::Claim;
use crate::engines::router::{
    Choice, Consent, Conversation, Entities, Intent, IntentKind, Routing,
    cues::Cue,
    entities, explicit, ids, keyword,
    message::Message,
    parts::{Part, parts},
    resolve::{self, Draft, ask_what, choice},
    subject::{Subject, subject_of},
    texts,
};
use crate::types::text::ellipsis;

/// A patient is what is missing.
const PATIENT_WORDS: [&str; 8] = [
    "患者",
    "病人",
    "受试者",
    "谁",
    "哪位",
    "编号",
    "指代",
    "record",
];
/// The longest part of a message a choice repeats, in characters.
const LONGEST_CHOICE: usize = 200;

/// The intents of a message by the model's claims about it, which [`super::read`] let through. Never empty.
#[must_use]
pub fn believe(
    claims: &[Claim],
    text: &str,
    conversation: &Conversation<'_>,
    threshold: f64,
) -> Routing {
    let message = Message::new(text);
    let asked = Conversation {
        pending: None,
        ..*conversation
    };
    let reading = Reading {
        keyword: keyword::route_message(&message, &asked),
        parts: parts(&message),
        sole: claims.len() == 1,
        message: &message,
        conversation: &asked,
        threshold,
    };
    let mut so_far = Subject::default();
    let mut intents: Vec<Intent> = Vec::new();
    for claim in claims {
        for intent in reading.intents(claim, &mut so_far) {
            let repeats = intents.iter().any(|other| {
                other.kind == intent.kind
                    && other.entities == intent.entities
                    && other.wishes_write == intent.wishes_write
                    && other.clarification == intent.clarification
            });
            if !repeats {
                intents.push(intent);
            }
        }
    }
    reading.add_what_was_passed_over(claims, &mut intents);
    if intents.is_empty() {
        intents.clone_from(&reading.keyword);
    }
    Routing {
        intents,
        degraded: false,
    }
}

struct Reading<'a> {
    message: &'a Message,
    conversation: &'a Conversation<'a>,
    parts: Vec<Part>,
    /// What the keyword router makes of the message.
    keyword: Vec<Intent>,
    /// The model found one intent.
    sole: bool,
    threshold: f64,
}

impl Reading<'_> {
    fn intents(&self, claim: &Claim, so_far: &mut Subject) -> Vec<Intent> {
        let (draft, without) = self.draft(claim, so_far);
        match claim.kind {
            IntentKind::Unclear => self.unclear(claim, &draft),
            _ if claim.confidence < self.threshold => vec![self.not_sure(&draft)],
            IntentKind::OutOfScope if !draft.subject.ids.is_empty() => {
                // Whoever names a subject of the study is not sent away on a model's word.
                vec![self.not_sure(&draft)]
            }
            IntentKind::QcTask => vec![self.command(claim, &draft, &without)],
            _ => vec![self.finished(claim, &draft, &[])],
        }
    }

    /// What the claim wants as the resolver takes it, and the records it does not want.
    fn draft(&self, claim: &Claim, so_far: &mut Subject) -> (Draft, Vec<String>) {
        // A change is a task, whatever the model calls it.
        let write = claim.write && matches!(claim.kind, IntentKind::QcTask | IntentKind::QaQuery);
        let kind = if write {
            IntentKind::QcTask
        } else {
            claim.kind
        };
        let (mut start, mut end) = claim.span;
        let before = so_far.clone();
        let (mut subject, mut without) = (Subject::default(), Vec::new());
        let mut whole = false;
        for part in self.within(claim.span) {
            start = start.min(part.start);
            end = end.max(part.end);
            whole |= part.whole;
            subject.join(subject_of(part, so_far, &self.conversation.memory));
            without.extend(part.without.iter().cloned());
        }
        if kind == IntentKind::QcTask {
            whole |= claim.whole_project;
            if !subject.own && !whole && !subject.plural {
                subject = Subject {
                    own: false,
                    ..before
                };
            }
        } else {
            subject.add(&without);
        }
        if subject.ids.is_empty() && subject.unresolved.is_none() && subject.trouble.is_none() {
            let unread = claim.record_ids.iter().filter(|id| self.is_unread_id(id));
            let unread: Vec<String> = unread.cloned().collect();
            subject.own |= !unread.is_empty();
            subject.add(&unread);
        }
        if matches!(kind, IntentKind::Help | IntentKind::Feedback) {
            subject = Subject::default();
        }
        let draft = Draft {
            kind,
            write,
            confidence: claim.confidence,
            start,
            end,
            subject,
            whole: whole && kind == IntentKind::QcTask,
            remark: false,
        };
        (draft, without)
    }

    fn within(&self, span: (usize, usize)) -> impl Iterator<Item = &Part> {
        let meets = move |part: &&Part| part.start < span.1 && span.0 < part.end;
        self.parts.iter().filter(meets)
    }

    /// An id in a shape our reader does not know, which stands in this very message.
    fn is_unread_id(&self, id: &str) -> bool {
        let long = id.chars().any(char::is_alphabetic) || id.len() >= 3;
        let lower = id.to_ascii_lowercase();
        long && self.message.plain().contains(&lower) && entities::visit(&lower).is_none()
    }

    fn finished(&self, claim: &Claim, draft: &Draft, without: &[String]) -> Intent {
        let mut intent = resolve::finish(draft, self.message, self.conversation, without);
        intent.about_past |= claim.past && intent.clarification.is_none();
        let entities = &mut intent.entities;
        for (ours, theirs) in [
            (&mut entities.visit, &claim.visit),
            (&mut entities.form, &claim.form),
            (&mut entities.field, &claim.field),
        ] {
            if ours.is_none() {
                ours.clone_from(theirs);
            }
        }
        intent
    }

    /// A check or a change.
    fn command(&self, claim: &Claim, draft: &Draft, without: &[String]) -> Intent {
        let mut draft = draft.clone();
        // What our own reader takes for a change is no check, whatever the model says.
        draft.write |= self.keyword.iter().any(|own| {
            own.wishes_write
                && self
                    .place(own)
                    .is_some_and(|(from, to)| from < draft.end && draft.start < to)
        });
        let mut intent = self.finished(claim, &draft, without);
        if intent.clarification.is_some() {
            return intent;
        }
        let same = self.keyword.iter().find(|other| {
            other.kind == IntentKind::QcTask
                && other.wishes_write == intent.wishes_write
                && other.entities.whole_project == intent.entities.whole_project
                && same_ids(&other.entities.record_ids, &intent.entities.record_ids)
        });
        let believed = self.same_as_claimed(claim, &intent);
        match same {
            Some(same) if believed => intent.consent = same.consent,
            Some(_) => intent.consent = Consent::Needed,
            None if self.takes_back() => return self.taken_back(&intent),
            None => intent.consent = Consent::Needed,
        }
        intent
    }

    /// Whether the model named the records we read, or none.
    fn same_as_claimed(&self, claim: &Claim, intent: &Intent) -> bool {
        claim.record_ids.is_empty() || same_ids(&claim.record_ids, &intent.entities.record_ids)
    }

    /// Whether the message holds a negation, whatever it is about.
    fn takes_back(&self) -> bool {
        self.parts.iter().any(|part| {
            part.forbids
                || !part.without.is_empty()
                || matches!(part.cue, Cue::Negated | Cue::Cancel | Cue::Excluded)
        })
    }

    fn taken_back(&self, intent: &Intent) -> Intent {
        let ids = &intent.entities.record_ids;
        let mut choices = Vec::new();
        if !intent.wishes_write && !ids.is_empty() {
            let label = format!("质控 {}", ids.join("、"));
            choices.push(choice(label, explicit::confirmed_check(ids, None)));
        }
        choices.push(choice(texts::HELP_CHIP, "帮助"));
        ask_what(
            self.message,
            texts::nothing_started(ids),
            choices,
            Vec::new(),
        )
    }

    /// The model finds something missing.
    fn unclear(&self, claim: &Claim, draft: &Draft) -> Vec<Intent> {
        let asks_back = |intent: &Intent| intent.clarification.is_some();
        let wants_patient = claim
            .missing
            .as_deref()
            .is_some_and(|missing| PATIENT_WORDS.iter().any(|word| missing.contains(word)));
        // Whom 他 means we know better: the memory is ours.
        let found = self
            .keyword
            .iter()
            .all(|intent| !asks_back(intent) && !intent.entities.record_ids.is_empty());
        if self.sole && found && (wants_patient || claim.missing.is_none()) {
            return self
                .keyword
                .iter()
                .map(|intent| self.proposed(intent))
                .collect();
        }
        let own = self.keyword.iter().filter(|intent| asks_back(intent));
        let own: Vec<Intent> = own.cloned().collect();
        let about_nothing = |intent: &Intent| {
            intent
                .clarification
                .as_ref()
                .is_some_and(|c| c.question == texts::what_do_you_need())
        };
        if self.sole && !own.is_empty() && !own.iter().all(about_nothing) {
            return own;
        }
        if draft.subject.unresolved.is_some() || wants_patient && draft.subject.ids.is_empty() {
            let checks = self.within(claim.span).any(|part| part.cue == Cue::Check);
            let draft = Draft {
                kind: if checks {
                    IntentKind::QcTask
                } else {
                    IntentKind::QaQuery
                },
                ..draft.clone()
            };
            let reference = draft.subject.unresolved;
            let among = &draft.subject.ids;
            return vec![resolve::ask_patient(
                &draft,
                self.message,
                self.conversation,
                reference,
                among,
            )];
        }
        let named = draft.subject.ids.clone();
        let mut choices: Vec<_> = named
            .first()
            .map(|id| {
                vec![
                    choice(format!("质控 {id}"), format!("质控 {}", resolve::named(id))),
                    choice(format!("{id} 的总体情况"), format!("{id}的情况怎么样")),
                ]
            })
            .unwrap_or_default();
        choices.push(choice(texts::HELP_CHIP, "帮助"));
        let question = claim.question.as_deref().and_then(|q| self.fit_to_ask(q));
        let question = question.unwrap_or_else(|| match named.as_slice() {
            [] => texts::what_do_you_need(),
            ids => texts::what_about(ids),
        });
        vec![ask_what(self.message, question, choices, named)]
    }

    /// A question in the model's words, when it is one plain sentence that names nobody the person did not.
    fn fit_to_ask(&self, question: &str) -> Option<String> {
        let plain = Message::new(question);
        let here = ids::mentions(self.message.plain());
        let named: Vec<&String> = here.iter().flat_map(|m| &m.ids).collect();
        let invents = ids::mentions(plain.plain())
            .iter()
            .flat_map(|m| &m.ids)
            .any(|id| !named.contains(&id));
        let odd = question.contains(['\n', '<', '>', '{', '}', '`', '[', ']'])
            || question.contains("://")
            || question.chars().count() > super::schema::MAX_QUESTION;
        let asks = question.ends_with(['？', '?']);
        (asks && !odd && !invents).then(|| question.to_owned())
    }

    /// The same, but for a check that it is only proposed.
    fn proposed(&self, intent: &Intent) -> Intent {
        let mut intent = intent.clone();
        if intent.kind == IntentKind::QcTask && intent.consent == Consent::NotNeeded {
            intent.consent = Consent::Needed;
        }
        intent
    }

    /// Too uncertain: what it may have been is offered, the model's reading first.
    fn not_sure(&self, draft: &Draft) -> Intent {
        let text = self.message.written(draft.start, draft.end).trim();
        let part = ellipsis(text, LONGEST_CHOICE);
        let mut choices: Vec<Choice> = Vec::new();
        let mut add = |new: Option<Choice>| {
            let new = new.filter(|new| !choices.contains(new));
            choices.extend(new);
        };
        if !self.takes_back() {
            let subject = &draft.subject;
            add(offer(
                draft.kind,
                draft.write,
                &subject.ids,
                draft.whole,
                &part,
            ));
            for other in self.keyword.iter().filter(|i| i.clarification.is_none()) {
                let Entities {
                    record_ids,
                    whole_project,
                    ..
                } = &other.entities;
                let write = other.wishes_write;
                add(offer(other.kind, write, record_ids, *whole_project, &part));
            }
        }
        add(offer(IntentKind::QaQuery, false, &[], false, &part));
        choices.push(choice(texts::HELP_CHIP, "帮助"));
        let question = texts::not_sure().to_owned();
        ask_what(self.message, question, choices, draft.subject.ids.clone())
    }

    /// Where the part of the message stands that our own reader took an intent from.
    fn place(&self, own: &Intent) -> Option<(usize, usize)> {
        let text = Message::new(&own.text);
        let at = self.message.plain().find(text.plain())?;
        Some((at, at + text.plain().len()))
    }

    /// A command in a part of the message the model says nothing about is proposed: a request must not be
    /// lost.
    fn add_what_was_passed_over(&self, claims: &[Claim], intents: &mut Vec<Intent>) {
        for own in &self.keyword {
            let is_command = own.kind == IntentKind::QcTask && own.consent == Consent::NotNeeded;
            if !is_command || intents.len() >= super::MAX_INTENTS {
                continue;
            }
            let Some((at, end)) = self.place(own) else {
                continue;
            };
            let seen = claims.iter().any(|claim| {
                let spans = self.within(claim.span).map(|p| (p.start, p.end));
                spans
                    .chain([claim.span])
                    .any(|(from, to)| from < end && at < to)
            });
            if !seen {
                intents.push(self.proposed(own));
            }
        }
    }
}

/// What a reading is offered as; a request that can't be said in one way only is not.
fn offer(kind: IntentKind, write: bool, ids: &[String], whole: bool, part: &str) -> Option<Choice> {
    match kind {
        IntentKind::QcTask if write => Some(choice("修改数据", explicit::confirmed_change(part))),
        IntentKind::QcTask if !ids.is_empty() => Some(choice(
            format!("质控 {}", ids.join("、")),
            explicit::confirmed_check(ids, None),
        )),
        IntentKind::QcTask if whole => {
            Some(choice("质控全项目", explicit::confirmed_check(&[], None)))
        }
        kind => explicit::of_kind(kind, part).map(|(label, text)| choice(label, text)),
    }
}

fn same_ids(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && one.iter().all(|id| other.contains(id))
}
