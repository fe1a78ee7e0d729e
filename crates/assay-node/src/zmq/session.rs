//! Subscriber connection (ZMTP 3.0 and 3.1, mechanism NULL).

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::message::{COMMAND, LONG, MORE, Message, push_frame};

/// Subscriptions and queue of a connection.
pub(super) struct Subscriber {
    /// Topic prefixes with their subscription counts.
    wanted: Mutex<HashMap<Vec<u8>, usize>>,
    queue: mpsc::Sender<Arc<Message>>,
    waiting_bytes: AtomicUsize,
}

impl Subscriber {
    pub(super) fn new(queue: mpsc::Sender<Arc<Message>>) -> Self {
        Self { wanted: Mutex::default(), queue, waiting_bytes: AtomicUsize::new(0) }
    }

    pub(super) fn wants(&self, topic: &str) -> bool {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.keys().any(|prefix| topic.as_bytes().starts_with(prefix))
    }

    /// Adds or removes a topic prefix; `false` at the limit.
    fn subscribe(&self, prefix: &[u8], is_wanted: bool) -> bool {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if is_wanted {
            let has_room = wanted.len() < SUBSCRIPTIONS_MAX || wanted.contains_key(prefix);
            if has_room {
                *wanted.entry(prefix.to_vec()).or_default() += 1;
            }
            return has_room;
        }
        if let Some(count) = wanted.get_mut(prefix) {
            *count -= 1;
            if *count == 0 {
                wanted.remove(prefix);
            }
        }
        true
    }

    /// Subtracts a sent message from the queued bytes.
    fn was_sent(&self, message: &Message) {
        self.waiting_bytes.fetch_sub(message.bytes().len(), Ordering::Relaxed);
    }

    /// Queues a message, or drops it if the queue is full, as in ZeroMQ.
    pub(super) fn offer(&self, message: &Arc<Message>) {
        let bytes = message.bytes().len();
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let is_full = before > 0 && before + bytes > WAITING_BYTES_MAX;
        if is_full || self.queue.try_send(Arc::clone(message)).is_err() {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// Performs the handshake, then sends subscribed messages until the connection ends.
///
/// # Errors
/// The reason for the end.
pub(super) async fn run<S: AsyncRead + AsyncWrite>(
    stream: S,
    subscriber: &Subscriber,
    mut messages: mpsc::Receiver<Arc<Message>>,
) -> io::Result<()> {
    let (mut reader, mut writer) = split(stream);
    timeout(HANDSHAKE, shake_hands(&mut reader, &mut writer)).await??;
    let (pongs, mut answers) = mpsc::channel(PONGS_MAX);
    let reading = read(&mut reader, subscriber, pongs);
    let writing = async {
        loop {
            tokio::select! {
                biased;
                Some(pong) = answers.recv() => writer.write_all(&pong).await?,
                message = messages.recv() => match message {
                    Some(message) => {
                        let sent = writer.write_all(message.bytes()).await;
                        subscriber.was_sent(&message);
                        sent?;
                    }
                    None => return Ok(()),
                },
            }
        }
    };
    tokio::select! {
        ended = reading => ended,
        ended = writing => ended,
    }
}

async fn shake_hands<S: AsyncRead + AsyncWrite>(
    reader: &mut ReadHalf<S>,
    writer: &mut WriteHalf<S>,
) -> io::Result<()> {
    writer.write_all(&greeting()).await?;
    let mut theirs = [0; 64];
    reader.read_exact(&mut theirs).await?;
    let is_known = theirs[0] == 0xff && theirs[9] & 1 == 1 && theirs[10] >= 3;
    if !is_known || &theirs[12..32] != mechanism().as_slice() {
        return Err(invalid("not ZMTP 3 with the mechanism NULL"));
    }
    let mut ready = vec![5];
    ready.extend(b"READY");
    push_property(&mut ready, b"Socket-Type", b"PUB");
    let mut frame = Vec::new();
    push_frame(&mut frame, COMMAND, &ready);
    writer.write_all(&frame).await?;
    let (flags, body) = read_frame(reader).await?;
    let kind = body.strip_prefix(b"\x05READY").and_then(socket_type);
    let is_subscriber = kind.is_some_and(|kind| kind == b"SUB" || kind == b"XSUB");
    if flags & COMMAND != 0 && is_subscriber { Ok(()) } else { Err(invalid("not a subscriber")) }
}

/// Version 3.0: newer peers then downgrade.
fn greeting() -> [u8; 64] {
    let mut out = [0; 64];
    (out[0], out[9], out[10]) = (0xff, 0x7f, 3);
    out[12..32].copy_from_slice(&mechanism());
    out
}

fn mechanism() -> [u8; 20] {
    let mut out = [0; 20];
    out[..4].copy_from_slice(b"NULL");
    out
}

fn push_property(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.push(name.len() as u8);
    out.extend(name);
    out.extend((value.len() as u32).to_be_bytes());
    out.extend(value);
}

/// Socket type in the properties of a READY command.
pub(super) fn socket_type(mut rest: &[u8]) -> Option<&[u8]> {
    while let Some((&length, after)) = rest.split_first() {
        let (name, after) = after.split_at_checked(length.into())?;
        let (length, after) = after.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (value, after) = after.split_at_checked(length)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return Some(value);
        }
        rest = after;
    }
    None
}

async fn read<R: AsyncRead + Unpin>(
    reader: &mut R,
    subscriber: &Subscriber,
    pongs: mpsc::Sender<Vec<u8>>,
) -> io::Result<()> {
    loop {
        let (flags, body) = read_frame(reader).await?;
        let wish = if flags & COMMAND == 0 {
            match body.split_first() {
                Some((1, prefix)) => Some((prefix, true)),
                Some((0, prefix)) => Some((prefix, false)),
                // Publishers accept no other messages.
                _ => None,
            }
        } else if let Some(ping) = body.strip_prefix(b"\x04PING") {
            // Two bytes of TTL, then the context to return, at most 16 bytes.
            let context = ping.get(2..).filter(|context| context.len() <= 16);
            let context = context.ok_or_else(|| invalid("PING is malformed"))?;
            let mut frame = Vec::new();
            push_frame(&mut frame, COMMAND, &[b"\x04PONG", context].concat());
            // A peer that does not read its pongs gets fewer.
            let _ = pongs.try_send(frame);
            None
        } else if let Some(prefix) = body.strip_prefix(b"\x09SUBSCRIBE") {
            Some((prefix, true))
        } else {
            body.strip_prefix(b"\x06CANCEL").map(|prefix| (prefix, false))
        };
        let is_single = flags & MORE == 0;
        if let Some((prefix, is_wanted)) = wish.filter(|_| is_single)
            && !subscriber.subscribe(prefix, is_wanted)
        {
            return Err(invalid("too many subscriptions"));
        }
    }
}

/// Reads a frame; returns its flags and contents.
pub(super) async fn read_frame<R: AsyncRead + Unpin>(reader: &mut R) -> io::Result<(u8, Vec<u8>)> {
    let flags = reader.read_u8().await?;
    let length = match flags & LONG {
        0 => u64::from(reader.read_u8().await?),
        _ => reader.read_u64().await?,
    };
    if length > FRAME_BYTES_MAX {
        return Err(invalid("a frame is too long"));
    }
    let mut body = vec![0; length as usize];
    reader.read_exact(&mut body).await?;
    Ok((flags, body))
}

fn invalid(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

const HANDSHAKE: Duration = Duration::from_secs(30);
/// Subscribers send topic names only.
const FRAME_BYTES_MAX: u64 = 1024;
const PONGS_MAX: usize = 8;
const SUBSCRIPTIONS_MAX: usize = 1000;
/// Limit of queued bytes per subscriber; a single message may exceed it. Subscribers share message memory.
const WAITING_BYTES_MAX: usize = 256 << 20;
