//! The router that needs no model: clause by clause, by the words of the field.

use super::{
    Conversation, Intent, IntentKind, Routing, answer,
    answer::Answer,
    clause, cues,
    cues::Cue,
    entities, ids,
    message::{Message, patterns},
    reference, resolve,
    resolve::{Draft, Subject, ask_what, choice},
    texts,
};

patterns! {
    /// A record right after a word that leaves it out: 除了P003.
    EXCEPT = r"(?:(?:^|[^删免清去解移])除了?|除开|除去|不包括|不包含|不含|排除|(?-u:\b)(?:except(?: for)?|excluding|but not|without)(?-u:\b))\s*(?:患者|病人|受试者|编号|id)?\s*[:=]?\s*$";
    /// What joins the members of a list.
    JOINT = r"^\s*(?:[、,/&]|和|与|及|跟|and)?\s*$";
    /// 不是P001: the record named was the wrong one.
    WRONG = r"^\s*(?:不是|不对|错了)";
}

/// Decides what a message wants, by keywords. Never fails, never panics, always at least one intent.
#[must_use]
pub fn route(text: &str, conversation: &Conversation<'_>) -> Routing {
    let intents = route_message(&Message::new(text), conversation);
    Routing {
        intents,
        degraded: true,
    }
}

/// The patient the history named last, when the turn that did named just one: what a memory that was
/// kept along with it would hold.
#[must_use]
pub fn last_patient(conversation: &Conversation<'_>) -> Option<String> {
    resolve::last_patient(conversation)
}

fn route_message(message: &Message, conversation: &Conversation<'_>) -> Vec<Intent> {
    if let Some(pending) = conversation.pending {
        let answered = Conversation {
            pending: None,
            ..*conversation
        };
        match answer::read(message, pending) {
            Answer::Means(text) => return route_message(&Message::new(&text), &answered),
            Answer::OtherPatient => {
                let resume = pending.resume.as_deref().unwrap_or(super::PATIENT_SLOT);
                return vec![resolve::ask_for_id(message, resume)];
            }
            Answer::NoSuchChoice => {
                let question = texts::no_such_choice(&pending.question, pending.choices.len());
                let mut again = ask_what(message, question, pending.choices.clone(), Vec::new());
                if let Some(clarification) = &mut again.clarification {
                    clarification.resume.clone_from(&pending.resume);
                }
                return vec![again];
            }
            Answer::NotAnAnswer => {}
        }
    }
    let plain = message.plain();
    if cues::is_injection(plain) {
        return vec![plain_intent(message, IntentKind::OutOfScope, 0.9)];
    }
    let mut folding = Folding::new(message, conversation);
    for part in parts(message) {
        folding.take(part);
    }
    let intents = folding.finish();
    if intents.is_empty() {
        vec![ask_what(
            message,
            texts::what_do_you_need(),
            vec![choice(texts::HELP_CHIP, "帮助")],
            Vec::new(),
        )]
    } else {
        intents
    }
}

fn plain_intent(message: &Message, kind: IntentKind, confidence: f32) -> Intent {
    let end = message.plain().len();
    let draft = Draft {
        kind,
        write: false,
        confidence,
        start: 0,
        end,
        subject: Subject::default(),
        whole: false,
        remark: false,
    };
    resolve::finish(&draft, message, &Conversation::default(), &[])
}

/// A clause with what its words say.
struct Part {
    start: usize,
    end: usize,
    cue: Cue,
    /// Named and wanted.
    ids: Vec<String>,
    /// Named and not wanted.
    without: Vec<String>,
    /// The first 他, when it stands before every id of the clause.
    reference: Option<(usize, usize)>,
    trouble: Option<(ids::Trouble, usize, usize)>,
    whole: bool,
    plural: bool,
    wrong: bool,
    needs_patient: bool,
    forbids: bool,
}

/// The clauses of a message, each read by itself.
fn parts(message: &Message) -> Vec<Part> {
    let plain = message.plain();
    let mentions = ids::mentions(plain);
    let mut left_out: Vec<bool> = Vec::with_capacity(mentions.len());
    for (at, mention) in mentions.iter().enumerate() {
        let before = super::message::tail(message.part(0, mention.start), 16);
        let listed = at.checked_sub(1).is_some_and(|last| {
            left_out.get(last) == Some(&true)
                && mentions
                    .get(last)
                    .is_some_and(|m| JOINT.is_match(message.part(m.end, mention.start)))
        });
        left_out.push(EXCEPT.is_match(before) || listed);
    }
    let mut next = 0;
    let mut found = Vec::new();
    for clause in clause::clauses(plain) {
        let (start, end) = (clause.start, clause.end);
        while mentions.get(next).is_some_and(|m| m.end <= start) {
            next += 1;
        }
        let first = next;
        while mentions.get(next).is_some_and(|m| m.start < end) {
            next += 1;
        }
        let named = mentions.get(first..next).unwrap_or_default();
        let text = message.part(start, end);
        let references = reference::references(text);
        let mut bare = text.to_owned();
        let mut spans: Vec<(usize, usize)> = named
            .iter()
            .map(|m| {
                (
                    m.start.saturating_sub(start),
                    m.end.min(end).saturating_sub(start),
                )
            })
            .chain(references.iter().map(|r| (r.start, r.end)))
            .collect();
        spans.sort_unstable();
        for (from, to) in spans.iter().rev() {
            if bare.is_char_boundary(*from) && bare.is_char_boundary(*to) && from <= to {
                bare.replace_range(from..to, "");
            }
        }
        let about_patient = !named.is_empty() || !references.is_empty();
        let (cue, cut) = cues::read(text, &bare, clause.asked, about_patient);
        let unwanted_from = match cue {
            Cue::Negated | Cue::Excluded => Some(0),
            _ => cut,
        };
        let (mut ids, mut without) = (Vec::new(), Vec::new());
        for (mention, out) in named
            .iter()
            .zip(left_out.get(first..next).unwrap_or_default())
        {
            let unwanted = *out || unwanted_from.is_some_and(|from| mention.start >= start + from);
            let list = if unwanted { &mut without } else { &mut ids };
            for id in &mention.ids {
                if !list.contains(id) {
                    list.push(id.clone());
                }
            }
        }
        let reference = references
            .first()
            .filter(|r| named.first().is_none_or(|m| start + r.start < m.start))
            .map(|r| (start + r.start, start + r.end));
        found.push(Part {
            start,
            end,
            cue,
            ids,
            without,
            reference,
            trouble: named
                .iter()
                .find_map(|m| m.trouble.clone().map(|t| (t, m.start, m.end))),
            whole: entities::whole_project(text),
            plural: reference::is_plural(text),
            wrong: WRONG.is_match(&bare),
            needs_patient: resolve::needs_patient(&bare),
            forbids: cues::forbids_what_follows(text),
        });
    }
    found
}

/// The clauses read one after the other.
struct Folding<'a> {
    message: &'a Message,
    conversation: &'a Conversation<'a>,
    drafts: Vec<Draft>,
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
    fn new(message: &'a Message, conversation: &'a Conversation<'a>) -> Self {
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

    fn take(&mut self, part: Part) {
        let subject = self.subject_of(&part);
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

    /// Whom a clause is about: those it names, those its 他 stands for, else those named before.
    fn subject_of(&mut self, part: &Part) -> Subject {
        let mut subject = Subject {
            trouble: part.trouble.clone(),
            plural: part.plural,
            ..Subject::default()
        };
        if let Some(span) = part.reference {
            let before = &self.subject.ids;
            match (before.as_slice(), self.conversation.memory.resolved()) {
                ([one], _) => subject.ids.push(one.clone()),
                ([], Some(id)) if self.subject.unresolved.is_none() => {
                    subject.ids.push(resolve::normal(id));
                }
                ([], _) => subject.unresolved = Some(span),
                (several, _) => {
                    subject.ids = several.to_vec();
                    subject.unresolved = Some(span);
                }
            }
        }
        for id in &part.ids {
            if !subject.ids.contains(id) {
                subject.ids.push(id.clone());
            }
        }
        subject.own = !part.ids.is_empty() || part.reference.is_some() || part.trouble.is_some();
        if subject.own {
            self.subject = subject.clone();
        } else if part.plural {
            self.subject = Subject::default();
        }
        subject
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

    fn push(&mut self, part: &Part, mut subject: Subject, kind: IntentKind, confidence: f32) {
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

    fn finish(mut self) -> Vec<Intent> {
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
    fn drop_remarks(&mut self) {
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
        if let Some(ids) = &self.taken_back {
            let mut choices: Vec<_> = ids
                .iter()
                .take(1)
                .map(|id| choice(format!("查看 {id} 的情况"), format!("{id}的情况怎么样")))
                .collect();
            choices.push(choice(texts::HELP_CHIP, "帮助"));
            return ask_what(message, texts::nothing_started(ids), choices, Vec::new());
        }
        if self.subject.own {
            return self.follow_up();
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

    /// `P002呢`: the same as was asked last, about somebody else.
    fn follow_up(&self) -> Intent {
        let message = self.message;
        let mut draft = Draft {
            kind: IntentKind::QaQuery,
            write: false,
            confidence: 0.7,
            start: 0,
            end: message.plain().len(),
            subject: self.subject.clone(),
            whole: false,
            remark: false,
        };
        if self.subject.unresolved.is_some() || self.subject.trouble.is_some() {
            return resolve::finish(&draft, message, self.conversation, &self.without);
        }
        let earlier = self
            .conversation
            .history
            .iter()
            .rev()
            .filter(|turn| turn.role == super::Speaker::User)
            .take(super::HISTORY_TURNS)
            .find_map(|turn| asked_before(&turn.text));
        // What was asked long ago is not asked again.
        if let Some(before) = earlier
            && (self.conversation.memory.fresh || before.kind != IntentKind::QcTask)
        {
            draft.kind = before.kind;
            let mut intent = resolve::finish(&draft, message, self.conversation, &self.without);
            let entities = &mut intent.entities;
            entities.visit = entities.visit.take().or(before.entities.visit);
            entities.form = entities.form.take().or(before.entities.form);
            entities.field = entities.field.take().or(before.entities.field);
            intent.about_past |= before.about_past;
            return intent;
        }
        let ids = self.subject.ids.clone();
        let choices = ids
            .first()
            .map(|id| {
                vec![
                    choice(format!("质控 {id}"), format!("质控 {id}")),
                    choice(format!("{id} 的总体情况"), format!("{id}的情况怎么样")),
                ]
            })
            .unwrap_or_default();
        ask_what(message, texts::what_about(&ids), choices, ids)
    }
}

/// A check or a question an earlier turn asked for; `None` when that turn was itself a follow-up.
fn asked_before(text: &str) -> Option<Intent> {
    let message = Message::new(text);
    if cues::is_injection(message.plain()) {
        return None;
    }
    let parts = parts(&message);
    let asks = parts
        .iter()
        .any(|part| !matches!(part.cue, Cue::Silent | Cue::Unknown));
    if !asks {
        return None;
    }
    let nobody = Conversation::default();
    let mut folding = Folding::new(&message, &nobody);
    for part in parts {
        folding.take(part);
    }
    folding.drop_remarks();
    let draft = folding.drafts.into_iter().next_back()?;
    let usable = matches!(draft.kind, IntentKind::QcTask | IntentKind::QaQuery) && !draft.write;
    usable.then(|| Intent {
        kind: draft.kind,
        ..resolve::finish(&draft, &message, &nobody, &[])
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_pattern_compiles() {
        super::compile_all();
    }
}
