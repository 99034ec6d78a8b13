//! Between one process and Postgres: a port of its own, so that whatever comes through is known to be
//! that process's. Statements can be stopped before or after Postgres does them, connections cut, and
//! the line made dark for a while.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::history::{History, StepKey};
use crate::statements::{Open, Statement};
use crate::traps::{Moment, Traps, Verdict};
use crate::wire::{self, Bound, Ending, Message, Opening, Session};

/// The line of one process. Cheap to clone.
#[derive(Clone)]
pub struct Line(Arc<Inner>);

struct Inner {
    slot: usize,
    port: u16,
    socket: PathBuf,
    traps: Traps,
    history: History,
    cut: Mutex<CancellationToken>,
    dark: watch::Sender<bool>,
}

impl Line {
    /// Opens a port for the process of `slot`.
    pub async fn open(
        slot: usize,
        socket: &Path,
        traps: Traps,
        history: History,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let line = Self(Arc::new(Inner {
            slot,
            port: listener.local_addr()?.port(),
            socket: socket.to_owned(),
            traps,
            history,
            cut: Mutex::default(),
            dark: watch::Sender::new(false),
        }));
        let serving = line.clone();
        tokio::spawn(async move {
            loop {
                if let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(serving.clone().carry(client));
                }
            }
        });
        Ok(line)
    }

    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// Resets every connection there is.
    pub fn cut(&self) {
        std::mem::take(&mut *lock(&self.0.cut)).cancel();
    }

    /// From now on, or no longer, nothing comes through, and nobody is told.
    pub fn dark(&self, dark: bool) {
        self.0.dark.send_replace(dark);
    }

    async fn lit(&self) {
        // The sender lives as long as the line.
        let _ = self.0.dark.subscribe().wait_for(|dark| !dark).await;
    }

    async fn carry(self, mut client: TcpStream) {
        let cut = lock(&self.0.cut).clone();
        let _ = client.set_nodelay(true);
        let ended = cut.run_until_cancelled(self.session(&mut client)).await;
        if !matches!(ended, Some(Ok(()))) {
            // A reset instead of an orderly end.
            let _ = client.set_zero_linger();
        }
    }

    async fn session(&self, client: &mut TcpStream) -> io::Result<()> {
        self.lit().await;
        let first = loop {
            match wire::opening(client).await? {
                (Opening::Encryption, _) => client.write_all(b"N").await?,
                (_, packet) => break packet,
            }
        };
        let mut server = UnixStream::connect(&self.0.socket).await?;
        server.write_all(&first).await?;
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let shared = Mutex::new(Shared::default());
        // Whichever side ends takes the other with it.
        tokio::select! {
            ended = self.up(&shared, from_client, to_server) => ended,
            ended = self.down(&shared, from_server, to_client) => ended,
        }
    }

    /// From the process to Postgres.
    async fn up(
        &self,
        shared: &Mutex<Shared>,
        client: impl AsyncRead + Unpin,
        server: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let (mut client, mut server) = (BufReader::new(client), BufWriter::new(server));
        let mut session = Session::default();
        while let Some(message) = Message::read(&mut client).await? {
            let known = session
                .client(&message)
                .and_then(|bound| Some((Statement::of(&bound.text)?, bound)));
            if let Some((statement, bound)) = known {
                let (before, is_clean) = lock(shared).before(statement);
                if !is_clean {
                    let what = format!("process {} at {statement:?}", self.0.slot);
                    self.0
                        .history
                        .note(format!("a transaction left open: {what}"));
                    self.0.history.wire().left_open.push(what);
                }
                if self.0.traps.reach(self.0.slot, before).await == Verdict::Swallow {
                    return Ok(());
                }
                self.sent(statement, lock(shared).open);
                let at = self.0.history.next();
                lock(shared).start(statement, bound, at);
            }
            let ends = matches!(message.letter, b'S' | b'Q');
            if ends {
                lock(shared).close_group();
            }
            self.lit().await;
            server.write_all(&message.bytes).await?;
            if ends || client.buffer().is_empty() {
                server.flush().await?;
            }
        }
        Ok(())
    }

    /// From Postgres to the process.
    async fn down(
        &self,
        shared: &Mutex<Shared>,
        server: impl AsyncRead + Unpin,
        mut client: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut server = BufReader::new(server);
        let (mut out, mut ending) = (Vec::new(), Ending::default());
        while let Some(message) = Message::read(&mut server).await? {
            out.extend_from_slice(&message.bytes);
            if ending.server(&message) {
                let group = lock(shared).inflight.pop_front().unwrap_or_default();
                for running in group {
                    if self.ended(shared, &running, &ending)
                        && self.0.traps.reach(self.0.slot, running.after).await == Verdict::Swallow
                    {
                        return Ok(());
                    }
                }
                ending = Ending::default();
            } else if !server.buffer().is_empty() || self.is_held(shared) {
                continue;
            }
            self.lit().await;
            client.write_all(&out).await?;
            out.clear();
        }
        Ok(())
    }

    /// Whether the answer under way must not be seen before it is whole.
    fn is_held(&self, shared: &Mutex<Shared>) -> bool {
        let shared = lock(shared);
        let group = shared.inflight.front();
        group.is_some_and(|group| group.iter().any(|one| self.0.traps.waits_at(one.after)))
    }

    /// A settlement whose fence found no row has nothing left to do but to roll back: what it still writes may
    /// find its run moved on, and then again it may not.
    fn sent(&self, statement: Statement, open: Open) {
        if open.fence_missed && matches!(statement, Statement::Commit | Statement::Advance) {
            let what = format!("process {} sent {statement:?}", self.0.slot);
            self.0.history.note(format!(
                "a settlement without its lease: {what} though its fence found no row"
            ));
            self.0.history.wire().unfenced.push(what);
        }
    }

    /// Takes note of how a statement ended; whether it came to something.
    fn ended(&self, shared: &Mutex<Shared>, running: &Running, ending: &Ending) -> bool {
        if ending.failed {
            return false;
        }
        match running.statement {
            Statement::Claim => ending.rows > 0,
            Statement::Ask => {
                // One that made no row asks nothing: of two attempts at a step the second is turned away, under
                // the number that the first one asked with.
                if let (Some(id), Some((step, ask))) = (ending.id, journal_key(&running.bound)) {
                    let mut wire = self.0.history.wire();
                    wire.calls.insert(id, step);
                    wire.asks.insert((step, ask), running.at);
                }
                true
            }
            Statement::Answer => {
                let stored = ending.touched() == Some(1) && !ending.open;
                let id = running.bound.values.first().cloned().flatten();
                let id = id.and_then(|value| Some(i64::from_be_bytes(value.try_into().ok()?)));
                if let (true, Some(id)) = (stored, id) {
                    let at = self.0.history.next();
                    let mut wire = self.0.history.wire();
                    if let Some(step) = wire.calls.get(&id).copied() {
                        wire.answered.entry(step).or_insert(at);
                    }
                }
                stored
            }
            Statement::Fence => {
                let missed = ending.touched() == Some(0);
                if missed {
                    lock(shared).open.fence_missed = true;
                    self.0.history.wire().fenced_off += 1;
                }
                !missed
            }
            _ => true,
        }
    }
}

/// What both directions of a connection know.
#[derive(Default)]
struct Shared {
    open: Open,
    group: Vec<Running>,
    inflight: VecDeque<Vec<Running>>,
}

/// A statement that Postgres has and whose answer is not back.
struct Running {
    statement: Statement,
    bound: Bound,
    after: Moment,
    /// Place in the order at which it was sent.
    at: u64,
}

impl Shared {
    fn before(&mut self, statement: Statement) -> (Moment, bool) {
        let is_clean = self.open.follow(statement);
        let moment = match statement {
            Statement::Commit if self.open.settles => Moment::BeforeSettled,
            Statement::Commit if self.open.receives => Moment::BeforeReceived,
            other => Moment::Before(other),
        };
        (moment, is_clean)
    }

    fn start(&mut self, statement: Statement, bound: Bound, at: u64) {
        let after = match statement {
            Statement::Commit if self.open.settles => Moment::AfterSettled,
            Statement::Commit if self.open.receives => Moment::AfterReceived,
            other => Moment::After(other),
        };
        self.group.push(Running {
            statement,
            bound,
            after,
            at,
        });
    }

    fn close_group(&mut self) {
        let group = std::mem::take(&mut self.group);
        self.inflight.push_back(group);
    }
}

/// The row of the journal that a statement is about: its first uuid, and the two numbers after it.
fn journal_key(bound: &Bound) -> Option<(StepKey, i32)> {
    let mut values = bound.values.iter().flatten();
    let run = values.find_map(|value| Uuid::from_slice(value).ok())?;
    let mut numbers =
        values.filter_map(|value| Some(i32::from_be_bytes(value.as_slice().try_into().ok()?)));
    Some(((run, numbers.next()?), numbers.next()?))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
