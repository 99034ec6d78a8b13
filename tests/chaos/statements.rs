//! The statements at which processes are struck, known by their text: the one place that follows the
//! program's SQL. A text that changes is noticed, since then its phase is never reached and the run fails.

/// A statement the chaos knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Statement {
    /// Takes jobs out of the queue.
    Claim,
    /// Notes that a model is about to be asked.
    Ask,
    /// Stores a model's answer.
    Answer,
    /// Opens the transaction that ends an attempt.
    OpenSettlement,
    /// Its first statement: the job's row, if the lease still holds.
    Fence,
    /// Moves a run on by one step.
    Advance,
    /// Stores an inbound message.
    Receive,
    /// Notes that a part of a message was accepted.
    NoteSent,
    /// Opens any other transaction.
    Begin,
    Commit,
    Rollback,
}

impl Statement {
    /// The statement of that text, if it is one of these.
    pub fn of(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let begins = |with: &str| {
            let mut with = with.split(' ');
            let mut words = words.iter();
            with.all(|word| words.next() == Some(&word))
        };
        let holds = |part: &str| text.contains(part);
        if begins("WITH next AS") && holds("UPDATE iit_jobs") && holds("FOR UPDATE SKIP LOCKED") {
            return Some(Self::Claim);
        }
        if holds("INSERT INTO iit_llm_calls") {
            return Some(Self::Ask);
        }
        if begins("UPDATE iit_llm_calls SET state =") && holds("'answered'") {
            return Some(Self::Answer);
        }
        if begins("UPDATE iit_jobs SET state") && holds("WHERE id = $1 AND lease_token = $2") {
            return Some(Self::Fence);
        }
        if begins("UPDATE iit_task_run SET step_no") {
            return Some(Self::Advance);
        }
        if begins("INSERT INTO iit_inbox") {
            return Some(Self::Receive);
        }
        if begins("UPDATE iit_outbox_parts SET state =") && holds("= 'sent'") {
            return Some(Self::NoteSent);
        }
        if begins("BEGIN;") && holds("idle_in_transaction_session_timeout") {
            return Some(Self::OpenSettlement);
        }
        match words.first().map(|word| word.trim_end_matches(';')) {
            Some("BEGIN") => Some(Self::Begin),
            Some("COMMIT") => Some(Self::Commit),
            Some("ROLLBACK") if words.len() == 1 => Some(Self::Rollback),
            _ => None,
        }
    }
}

/// The open transaction of one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Open {
    /// There is one.
    pub begun: bool,
    /// Ends an attempt at a job.
    pub settles: bool,
    /// Stores an inbound message.
    pub receives: bool,
    /// Its fence found that the lease is somebody else's.
    pub fence_missed: bool,
}

impl Open {
    /// Follows a statement that is about to run. False: it begins a transaction where one was left open,
    /// which commits what somebody else gave up.
    pub fn follow(&mut self, statement: Statement) -> bool {
        match statement {
            Statement::OpenSettlement | Statement::Begin => {
                let was_open = self.begun;
                *self = Self {
                    begun: true,
                    settles: statement == Statement::OpenSettlement,
                    ..Self::default()
                };
                return !was_open;
            }
            Statement::Receive => self.receives = true,
            // What it was is still asked for.
            Statement::Commit | Statement::Rollback => self.begun = false,
            _ => {}
        }
        true
    }
}
