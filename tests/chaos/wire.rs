//! The frontend/backend protocol of Postgres, as far as a bystander needs it: whole messages, the text of
//! statements, what a statement was bound to, and how it ended.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Larger than any message of this program; a length beyond it means that we lost the thread.
const LONGEST: usize = 64 * 1024 * 1024;

/// Codes of the first packet of a connection.
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// What a connection begins with.
#[derive(Debug, PartialEq, Eq)]
pub enum Opening {
    /// Wants encryption first; answer `N`.
    Encryption,
    /// Ends another connection's statement; no answer.
    Cancel,
    /// A session.
    Session,
}

/// Reads the first packet, whole.
pub async fn opening(from: &mut (impl AsyncRead + Unpin)) -> io::Result<(Opening, Vec<u8>)> {
    let mut head = [0; 8];
    from.read_exact(&mut head).await?;
    let length = usize::try_from(u32::from_be_bytes([head[0], head[1], head[2], head[3]]))
        .ok()
        .filter(|length| (8..=LONGEST).contains(length))
        .ok_or_else(|| out_of_step("a first packet"))?;
    let mut packet = head.to_vec();
    packet.resize(length, 0);
    from.read_exact(&mut packet[8..]).await?;
    let kind = match u32::from_be_bytes([head[4], head[5], head[6], head[7]]) {
        SSL_REQUEST | GSS_REQUEST => Opening::Encryption,
        CANCEL_REQUEST => Opening::Cancel,
        _ => Opening::Session,
    };
    Ok((kind, packet))
}

/// One message after the first packet: its letter and all of its bytes, head included.
#[derive(Debug, Clone)]
pub struct Message {
    pub letter: u8,
    pub bytes: Vec<u8>,
}

impl Message {
    /// The next message; `None` when the other side closed in between.
    pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let mut head = [0; 5];
        match from.read_exact(&mut head).await {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let length = usize::try_from(u32::from_be_bytes([head[1], head[2], head[3], head[4]]))
            .ok()
            .filter(|length| (4..=LONGEST).contains(length))
            .ok_or_else(|| out_of_step("a message"))?;
        let mut bytes = head.to_vec();
        bytes.resize(length + 1, 0);
        from.read_exact(&mut bytes[5..]).await?;
        Ok(Some(Self {
            letter: head[0],
            bytes,
        }))
    }

    /// What follows the head.
    pub fn body(&self) -> &[u8] {
        self.bytes.get(5..).unwrap_or_default()
    }
}

fn out_of_step(what: &str) -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        format!("{what} of an impossible length"),
    )
}

/// A statement on its way, with what it was bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    pub text: Arc<str>,
    pub values: Arc<[Option<Vec<u8>>]>,
}

/// The prepared statements and portals of one connection, followed from the client's messages.
#[derive(Debug, Default)]
pub struct Session {
    statements: HashMap<String, Arc<str>>,
    portals: HashMap<String, Bound>,
}

impl Session {
    /// Takes in one message of the client. What it makes the server run, if anything.
    pub fn client(&mut self, message: &Message) -> Option<Bound> {
        let mut body = Body(message.body());
        match message.letter {
            b'P' => {
                let (name, text) = (body.text()?, body.text()?);
                self.statements.insert(name, text.into());
                None
            }
            b'B' => {
                let (portal, statement) = (body.text()?, body.text()?);
                for _ in 0..body.number16()? {
                    body.number16()?;
                }
                let count = body.number16()?;
                let values: Option<Vec<_>> = (0..count).map(|_| body.value()).collect();
                let bound = Bound {
                    text: self.statements.get(&statement)?.clone(),
                    values: values?.into(),
                };
                self.portals.insert(portal, bound);
                None
            }
            b'E' => self.portals.get(&body.text()?).cloned(),
            b'Q' => Some(Bound {
                text: body.text()?.into(),
                values: Arc::default(),
            }),
            _ => None,
        }
    }
}

struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn text(&mut self) -> Option<String> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = String::from_utf8_lossy(self.0.get(..end)?).into_owned();
        self.0 = self.0.get(end + 1..)?;
        Some(text)
    }

    fn number16(&mut self) -> Option<usize> {
        let (number, rest) = self.0.split_first_chunk::<2>()?;
        self.0 = rest;
        Some(usize::from(u16::from_be_bytes(*number)))
    }

    fn value(&mut self) -> Option<Option<Vec<u8>>> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            return Some(None);
        };
        let (value, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(Some(value.to_vec()))
    }
}

/// How what was sent up to one Sync ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    /// One a completed statement, such as `UPDATE 1`.
    pub tags: Vec<String>,
    pub rows: usize,
    /// The first value of the first row, when it is a whole number of eight bytes.
    pub id: Option<i64>,
    pub failed: bool,
    /// Whether a transaction stays open.
    pub open: bool,
}

impl Ending {
    /// Takes in one message of the server; true when it is the last of its group.
    pub fn server(&mut self, message: &Message) -> bool {
        match message.letter {
            b'D' => {
                self.rows += 1;
                let mut body = Body(message.body());
                let first = body.number16().and_then(|_| body.value()).flatten();
                let id = first.and_then(|value| Some(i64::from_be_bytes(value.try_into().ok()?)));
                self.id = self.id.or(id);
            }
            b'C' => self.tags.extend(Body(message.body()).text()),
            b'E' => self.failed = true,
            b'Z' => {
                self.open = message.body().first() != Some(&b'I');
                return true;
            }
            _ => {}
        }
        false
    }

    /// Rows that the last completed statement touched.
    pub fn touched(&self) -> Option<u64> {
        self.tags.last()?.rsplit(' ').next()?.parse().ok()
    }
}
