//! The clauses of a message folded, one after the other, into requests: lists go on, a subject is carried
//! over, a correction replaces, a command taken back is gone.

use super::{
    Conversation, Intent, IntentKind, cues,
    cues::Cue,
    follow_up::follow_up,
    keyword::plain_intent,
    message::Message,
    parts::Part,
    resolve,
    resolve::{Draft, ask_what, choice},
    subject::{Subject, subject_of},
    texts,
};

/// The clauses read one after the other.
pub(super) struct Folding<'a> {
    message: &'a Message,
    conversation: &'a Conversation<'a>,
    pub drafts: Vec<Draft>,
    /// Whom the message talked about last.
    subject: Subject,
    /// A clause before said "all of them" and nothing else.
    whole: bool,
    /// Where a clause that only named somebody began.
    lead: Option<usize>,
    without: Vec<String>,
    /// Ids of commands taken back; `Some` when there was one.
    taken_back: Option<Vec<String>>,
    correcting: bool,
    /// The clause before forbids what this one commands.
    forbidden: bool,
    greeted: bool,
    thanked: bool,
    unknown: Option<(usize, usize)>,
    last_cue: Option<Cue>,
}

impl<'a> Folding<'a> {
    /// Nothing read yet.
    pub(super) fn new(message: &'a Message, conversation: &'a Conversation<'a>) -> Self {
        Self {
            message,
            conversation,
            drafts: Vec::new(),
            subject: Subject::default(),
            whole: false,
            lead: None,
            without: Vec::new(),
            taken_back: None,
            correcting: false,
            forbidden: false,
            greeted: false,
            thanked: false,
            unknown: None,
            last_cue: None,
        }
    }

    /// Reads the next clause.
    pub(super) fn take(&mut self, part: Part) {
        let subject = subject_of(&part, &mut self.subject, &self.conversation.memory);
        let forbidden = std::mem::replace(&mut self.forbidden, part.forbids);
        let cue = match part.cue {
            Cue::Unknown if part.needs_patient => Cue::Data { asks: true },
            Cue::Check | Cue::Write if forbidden => Cue::Negated,
            cue => cue,
        };
        match cue {
            Cue::Greeting => self.greeted = true,
            Cue::Thanks => self.thanked = true,
            Cue::Unknown => {
                self.unknown.get_or_insert((part.start, part.end));
            }
            Cue::Silent => self.name(&part, &subject),
            Cue::Correction => self.correct(&part, &subject),
            Cue::Excluded => self.without.extend(part.without.iter().cloned()),
            Cue::Cancel | Cue::Negated => self.take_back(&part, &subject),
            Cue::Check => self.push(&part, subject, IntentKind::QcTask, 0.9),
            Cue::Write => {
                self.push(&part, subject, IntentKind::QcTask, 0.85);
                if let Some(draft) = self.drafts.last_mut() {
                    draft.write = true;
                }
            }
            Cue::Report => self.push(&part, subject, IntentKind::Report, 0.8),
            Cue::Protocol => self.protocol(&part, subject),
            Cue::Help => self.push(&part, subject, IntentKind::Help, 0.9),
            Cue::Feedback => self.push(&part, subject, IntentKind::Feedback, 0.8),
            Cue::OffTopic => self.push(&part, subject, IntentKind::OutOfScope, 0.85),
            Cue::Data { asks } => self.data(&part, subject, asks),
        }
        if !part.without.is_empty() && !matches!(cue, Cue::Negated | Cue::Excluded) {
            self.without.extend(part.without.iter().cloned());
        }
        self.last_cue = Some(cue);
    }

    /// A clause that only names somebody: one more of a list, or the subject of what follows.
    fn name(&mut self, part: &Part, subject: &Subject) {
        self.whole |= part.whole;
        if !subject.own {
            return;
        }
        let correcting = std::mem::take(&mut self.correcting);
        let goes_on = matches!(self.last_cue, Some(Cue::Check | Cue::Write | Cue::Silent));
        if let Some(last) = self.drafts.last_mut()
            && last.kind == IntentKind::QcTask
            && (correcting || goes_on && self.lead.is_none())
        {
            if correcting {
                last.subject = Subject::default();
            }
            for id in &subject.ids {
                if !last.subject.ids.contains(id) {
                    last.subject.ids.push(id.clone());
                }
            }
            last.subject.own = true;
            last.subject.unresolved = last.subject.unresolved.or(subject.unresolved);
            if last.subject.trouble.is_none() {
                last.subject.trouble.clone_from(&subject.trouble);
            }
            last.end = part.end;
        } else {
            self.lead.get_or_insert(part.start);
        }
    }

    fn correct(&mut self, part: &Part, subject: &Subject) {
        let Some(last) = self.drafts.last_mut() else {
            return;
        };
        if !subject.own {
            self.correcting = true;
        } else if part.wrong {
            self.correcting = true;
            last.subject.ids.retain(|id| !part.ids.contains(id));
            self.subject = last.subject.clone();
        } else {
            last.subject = subject.clone();
            last.end = part.end;
        }
    }

    /// A command taken back: what it names is no longer wanted, or, naming nobody, nothing before it is.
    fn take_back(&mut self, part: &Part, subject: &Subject) {
        let names: Vec<String> = part.without.iter().chain(&subject.ids).cloned().collect();
        for draft in &mut self.drafts {
            if draft.kind == IntentKind::QcTask {
                if names.is_empty() || draft.whole {
                    draft.subject = Subject::default();
                } else {
                    draft.subject.ids.retain(|id| !names.contains(id));
                }
            }
        }
        let (kept, dropped): (Vec<Draft>, Vec<Draft>) = std::mem::take(&mut self.drafts)
            .into_iter()
            .partition(|draft| {
                draft.kind != IntentKind::QcTask
                    || !(names.is_empty() || draft.subject.ids.is_empty())
            });
        self.drafts = kept;
        let told = self.taken_back.get_or_insert_default();
        for id in names
            .iter()
            .chain(dropped.iter().flat_map(|d| &d.subject.ids))
        {
            if !told.contains(id) {
                told.push(id.clone());
            }
        }
        if !names.is_empty() {
            self.subject = Subject {
                ids: names,
                own: true,
                ..Subject::default()
            };
        }
        self.lead = None;
        self.whole = false;
    }

    fn push(&mut self, part: &Part, mut subject: Subject, kind: IntentKind, confidence: f64) {
        let carries = kind == IntentKind::QcTask;
        if carries && !subject.own && !part.whole && !self.whole && !subject.plural {
            let before = self.subject.clone();
            subject = Subject {
                own: false,
                ..before
            };
        }
        let whole = carries && (part.whole || std::mem::take(&mut self.whole));
        if whole && !subject.own {
            subject = Subject::default();
        }
        if kind == IntentKind::OutOfScope || kind == IntentKind::Help {
            subject = Subject::default();
        }
        self.drafts.push(Draft {
            kind,
            write: false,
            confidence,
            start: self.lead.take().unwrap_or(part.start),
            end: part.end,
            subject,
            whole,
            remark: false,
        });
    }

    fn protocol(&mut self, part: &Part, subject: Subject) {
        let text = self.message.part(part.start, part.end);
        if let Some(last) = self.drafts.last_mut()
            && last.kind == IntentKind::QaQuery
            && cues::points_at_protocol(text)
        {
            last.kind = IntentKind::ProtocolQa;
            last.remark = false;
            last.end = part.end;
        } else {
            self.push(part, subject, IntentKind::ProtocolQa, 0.8);
        }
    }

    /// A question or a remark about data; neighbours become one, so that one answer covers them.
    fn data(&mut self, part: &Part, mut subject: Subject, asks: bool) {
        if !subject.own && part.needs_patient && !self.subject.ids.is_empty() {
            subject.ids.clone_from(&self.subject.ids);
        }
        if let Some(last) = self.drafts.last_mut() {
            let joins =
                last.kind == IntentKind::QaQuery || last.kind == IntentKind::Feedback && !asks;
            if joins {
                for id in subject.ids {
                    if !last.subject.ids.contains(&id) {
                        last.subject.ids.push(id);
                    }
                }
                last.subject.unresolved = last.subject.unresolved.or(subject.unresolved);
                last.subject.trouble = last.subject.trouble.take().or(subject.trouble);
                last.end = part.end;
                last.remark &= !asks;
                return;
            }
        }
        if subject.ids.is_empty() && self.lead.is_some() && !part.whole {
            subject = Subject {
                own: false,
                ..self.subject.clone()
            };
        }
        self.push(part, subject, IntentKind::QaQuery, 0.75);
        // 所有患者，质控一遍
        self.whole |= part.whole && !asks;
        if let Some(draft) = self.drafts.last_mut() {
            draft.remark = !asks;
        }
    }

    /// What the message wants; never empty.
    pub(super) fn finish(mut self) -> Vec<Intent> {
        self.drop_remarks();
        if self.drafts.is_empty() {
            return vec![self.without_request()];
        }
        let mut intents: Vec<Intent> = Vec::with_capacity(self.drafts.len());
        for draft in &self.drafts {
            let named_only_unwanted = draft.kind == IntentKind::QcTask
                && draft.subject.trouble.is_none()
                && !draft.subject.ids.is_empty()
                && draft.subject.ids.iter().all(|id| self.without.contains(id));
            if named_only_unwanted {
                self.taken_back
                    .get_or_insert_default()
                    .extend(draft.subject.ids.iter().cloned());
                continue;
            }
            let intent = resolve::finish(draft, self.message, self.conversation, &self.without);
            let repeats = intents.iter().any(|other| {
                other.kind == intent.kind
                    && other.entities == intent.entities
                    && other.wishes_write == intent.wishes_write
                    && other.clarification.is_none()
                    && intent.clarification.is_none()
            });
            if !repeats {
                intents.push(intent);
            }
        }
        if intents.is_empty() {
            intents.push(self.without_request());
        }
        intents
    }

    /// Remarks beside a request are context; a request that names nobody takes whom they name.
    pub(super) fn drop_remarks(&mut self) {
        let firm = self.drafts.iter().any(|draft| !draft.remark);
        if !firm {
            return;
        }
        let mut named: Option<Subject> = None;
        for draft in self.drafts.iter_mut().rev() {
            if draft.remark {
                if !draft.subject.ids.is_empty() {
                    named = Some(draft.subject.clone());
                }
            } else if draft.kind == IntentKind::QcTask
                && draft.subject == Subject::default()
                && !draft.whole
                && let Some(subject) = named.take()
            {
                draft.subject = subject;
            }
        }
        self.drafts.retain(|draft| !draft.remark);
    }

    /// The message asked for nothing by itself.
    fn without_request(&self) -> Intent {
        let message = self.message;
        let only_unwanted = (!self.without.is_empty()).then_some(&self.without);
        if let Some(ids) = self.taken_back.as_ref().or(only_unwanted) {
            let mut choices: Vec<_> = ids
                .iter()
                .take(1)
                .map(|id| choice(format!("查看 {id} 的情况"), format!("{id}的情况怎么样")))
                .collect();
            choices.push(choice(texts::HELP_CHIP, "帮助"));
            return ask_what(message, texts::nothing_started(ids), choices, Vec::new());
        }
        if self.subject.own {
            return follow_up(
                self.message,
                self.conversation,
                &self.subject,
                &self.without,
            );
        }
        if let Some((start, end)) = self.unknown {
            let words = message.part(start, end);
            let letters = words.chars().filter(|c| c.is_alphabetic()).count();
            let sentence = letters >= 5 || words.is_ascii() && words.contains(' ') && letters >= 6;
            if sentence {
                return plain_intent(message, IntentKind::OutOfScope, 0.6);
            }
        }
        if self.greeted {
            return plain_intent(message, IntentKind::Help, 0.8);
        }
        if self.thanked {
            return plain_intent(message, IntentKind::Feedback, 0.7);
        }
        ask_what(
            message,
            texts::what_do_you_need(),
            vec![choice(texts::HELP_CHIP, "帮助")],
            Vec::new(),
        )
    }
}
