//! Message framing: transport version 1, a header with a checksum, or version 2, encrypted packets (BIP324).
//!
//! The reader thread detects the version before anything else is sent. Messages are encoded behind room for the
//! transport header, so both versions frame them in place.

use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};

use assay_wire::p2p::{Command, FrameHeader, Message};
use rustix::net::SendFlags;

use super::ended::{Ended, TransportError, is_timeout};
use super::outbox::{ROOM, with_room};
use super::peers::{Framing, Peer, Peers};
use super::rng::nonce;
use crate::bip324::{
    self, GARBAGE_BYTES_MAX, HEAD_BYTES, Handshake, KEY_BYTES, LENGTH_BYTES, NAME_BYTES_MAX,
    Opener, Session, TAG_BYTES, TERMINATOR_BYTES,
};

pub(super) enum Incoming {
    /// With the bytes already read of the first message.
    V1(Vec<u8>),
    V2(Box<Opener>),
}

impl Peer {
    /// Frames the payload behind [`ROOM`] in place; returns the start of the message.
    pub(super) fn frame(&self, magic: [u8; 4], command: Command, buffer: &mut Vec<u8>) -> usize {
        let Some(Framing::V2 { sealer, .. }) = self.framing.get() else {
            let (head, payload) = buffer.split_at_mut(ROOM);
            head.copy_from_slice(&FrameHeader::of(magic, command, payload).to_bytes());
            return 0;
        };
        let (name, length) = bip324::name_bytes(command);
        buffer[ROOM - length..ROOM].copy_from_slice(&name[..length]);
        let start = ROOM - length - HEAD_BYTES;
        let mut sealer = sealer.lock().unwrap_or_else(PoisonError::into_inner);
        sealer.seal(buffer, start, &[], false);
        start
    }

    /// Writes a message without blocking; returns the unwritten rest. The writer thread must be idle.
    pub(super) fn write_some(&self, magic: [u8; 4], message: &Message<'_>) -> Vec<u8> {
        let command = message.command();
        let mut buffer = with_room(message);
        let start = self.frame(magic, command, &mut buffer);
        let framed = &buffer[start..];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        // The writer handles errors with the rest.
        let written = rustix::net::send(self.stream(), framed, flags).unwrap_or(0);
        self.traffic.sent(written);
        self.traffic.sent_message(command, framed.len());
        framed[written..].to_vec()
    }

    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.framing.get(), Some(Framing::V2 { .. }))
    }

    /// Core's name (`node/connection_types.cpp`), and the id of an encrypted session.
    pub(crate) fn transport(&self) -> (&'static str, Option<[u8; 32]>) {
        match self.framing.get() {
            None => ("detecting", None),
            Some(Framing::V1) => ("v1", None),
            Some(Framing::V2 { session, .. }) => ("v2", Some(*session)),
        }
    }

    fn set_framing(&self, framing: Framing) {
        assert!(self.framing.set(framing).is_ok(), "one thread finds out the transport, once");
    }

    pub(super) fn fill(&self, out: &mut [u8]) -> Result<(), Ended> {
        let mut filled = 0;
        while filled < out.len() {
            filled += self.read(&mut out[filled..])?;
        }
        Ok(())
    }

    fn read(&self, out: &mut [u8]) -> Result<usize, Ended> {
        // The inactivity timeout disconnects silent peers, which ends this wait.
        let mut stream = self.stream();
        let count = retried(|| stream.read(out))?;
        self.traffic.received(count);
        Ok(count)
    }

    /// Reads a packet and returns its contents; `None` for a decoy. Memory grows with received data, not the announced length.
    pub(super) fn packet<'a>(
        &self,
        opener: &mut Opener,
        aad: &[u8],
        contents_max: usize,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Option<&'a [u8]>, Ended> {
        let mut head = [0; LENGTH_BYTES];
        self.fill(&mut head)?;
        let length = opener.length(head);
        if length > contents_max {
            return Err(TransportError::TooLong { length }.into());
        }
        buffer.clear();
        self.append(buffer, PACKET_EXPANSION - LENGTH_BYTES + length)?;
        let opened = opener.open(aad, buffer);
        opened.map_err(|fault| TransportError::Packet { length, fault }.into())
    }

    pub(super) fn append(&self, buffer: &mut Vec<u8>, count: usize) -> Result<(), Ended> {
        let end = buffer.len() + count;
        while buffer.len() < end {
            let start = buffer.len();
            buffer.resize((start + PIECE).min(end), 0);
            self.fill(&mut buffer[start..])?;
        }
        Ok(())
    }
}

impl Peers {
    /// Detects the transport version and performs the key exchange.
    pub(super) fn agree_on_transport(&self, peer: &Peer) -> Result<Incoming, Ended> {
        if peer.connection.is_inbound() {
            if !self.has_encryption() {
                return Ok(version_one(peer, Vec::new()));
            }
            let mut begun = Vec::with_capacity(V1_PREFIX_BYTES);
            while self.is_version_one(&begun) {
                if begun.len() == V1_PREFIX_BYTES {
                    return Ok(version_one(peer, begun));
                }
                let mut more = [0; V1_PREFIX_BYTES];
                let count = peer.read(&mut more[begun.len()..])?;
                let start = begun.len();
                begun.extend_from_slice(&more[start..start + count]);
            }
            return self.encrypt(peer, &begun);
        }
        if peer.starts_encrypted {
            self.encrypt(peer, &[])
        } else {
            Ok(version_one(peer, Vec::new()))
        }
    }

    /// True if version 2 is enabled and any block of the chain fits into a packet.
    pub(crate) fn has_encryption(&self) -> bool {
        self.services() & super::NODE_P2P_V2 != 0
    }

    /// True if the bytes may begin a version 1 `version` message.
    fn is_version_one(&self, begun: &[u8]) -> bool {
        [&self.magic[..], &V1_NAME].concat().starts_with(begun)
    }

    /// Version 2 handshake, with `begun` of the peer's key read.
    fn encrypt(&self, peer: &Peer, begun: &[u8]) -> Result<Incoming, Ended> {
        let handshake = handshake(!peer.connection.is_inbound())?;
        net!("start sending v2 handshake to peer={}", peer.id);
        self.write(peer, &handshake.opening())?;
        let theirs = their_key(peer, begun)?;
        let mut session = handshake.finish(theirs, self.magic);
        self.write(peer, &session.version_packet())?;
        let mut aad = their_garbage(peer, &session)?;
        let mut buffer = Vec::new();
        // Decoys may come first; the first packet authenticates the garbage.
        while peer.packet(&mut session.opener, &aad, self.contents_max(), &mut buffer)?.is_none() {
            aad.clear();
        }
        let Session { id, sealer, opener, .. } = session;
        peer.set_framing(Framing::V2 { session: id, sealer: Box::new(Mutex::new(sealer)) });
        Ok(Incoming::V2(Box::new(opener)))
    }

    /// Maximum length of a packet's contents: the longest message type and payload.
    pub(super) fn contents_max(&self) -> usize {
        NAME_BYTES_MAX + self.message_bytes_max.max(self.block_bytes_max) as usize
    }

    /// Writes to the peer, subject to the rate limit.
    pub(super) fn write(&self, peer: &Peer, bytes: &[u8]) -> Result<(), Ended> {
        let mut stream = peer.stream();
        for piece in bytes.chunks(self.rate.piece(bytes.len()).max(1)) {
            if !self.rate.pay(piece.len(), || peer.outbox.is_closed()) {
                return Err(Ended::Stopping);
            }
            stream.write_all(piece).map_err(|error| {
                let patience = self.config.timeouts.stall;
                if is_timeout(&error) { Ended::Stalled { patience } } else { Ended::Io(error) }
            })?;
            peer.traffic.sent(piece.len());
        }
        Ok(())
    }
}

fn version_one(peer: &Peer, begun: Vec<u8>) -> Incoming {
    peer.set_framing(Framing::V1);
    Incoming::V1(begun)
}

fn handshake(is_initiator: bool) -> Result<Handshake, Ended> {
    let (mut secret, mut encoding) = ([0; 32], [0; 32]);
    let mut garbage = vec![0; nonce().map_err(Ended::Io)? as usize % (GARBAGE_BYTES_MAX + 1)];
    for bytes in [&mut secret[..], &mut encoding, &mut garbage] {
        getrandom::fill(bytes).map_err(|error| Ended::Io(io::Error::other(error.to_string())))?;
    }
    let handshake = Handshake::new(secret, encoding, garbage, is_initiator);
    handshake.ok_or_else(|| Ended::Io(io::Error::other("random bytes that are no secret key")))
}

/// Reads the peer's key, of which `begun` is read.
fn their_key(peer: &Peer, begun: &[u8]) -> Result<[u8; KEY_BYTES], Ended> {
    let mut key = [0; KEY_BYTES];
    key[..begun.len()].copy_from_slice(begun);
    let (prefix, rest) = key.split_at_mut(V1_PREFIX_BYTES);
    peer.fill(&mut prefix[begun.len()..])?;
    if peer.connection.is_inbound()
        && let Some((magic, name)) = prefix.split_first_chunk()
        && *name == V1_NAME
    {
        return Err(TransportError::WrongMagic { magic: *magic }.into());
    }
    peer.fill(rest)?;
    Ok(key)
}

/// Reads up to the terminator and nothing after it.
fn their_garbage(peer: &Peer, session: &Session) -> Result<Vec<u8>, Ended> {
    let mut garbage = session.garbage();
    let mut ahead = [0; GARBAGE_BYTES_MAX + TERMINATOR_BYTES];
    loop {
        let seen = retried(|| peer.stream().peek(&mut ahead))?;
        let pushed = garbage.push(&ahead[..seen]);
        let taken = pushed.map_or(seen, |(taken, _)| taken);
        peer.fill(&mut ahead[..taken])?;
        if pushed.map_err(TransportError::from)?.1 {
            return Ok(garbage.into_aad());
        }
    }
}

/// Number of bytes read, at least one; retries interrupted reads.
fn retried(mut read: impl FnMut() -> io::Result<usize>) -> Result<usize, Ended> {
    loop {
        match read() {
            Ok(0) => return Err(Ended::Gone),
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Ended::Io(error)),
        }
    }
}

const _: () = assert!(HEAD_BYTES + NAME_BYTES_MAX <= ROOM);
/// Bytes of a packet without its contents.
pub(super) const PACKET_EXPANSION: usize = HEAD_BYTES + TAG_BYTES;
pub(super) const PIECE: usize = 64 << 10;
/// Follows the magic of a version 1 `version` message.
const V1_NAME: [u8; 12] = *b"version\0\0\0\0\0";
const V1_PREFIX_BYTES: usize = 4 + V1_NAME.len();
