//! Ciphers of a session: one for packet lengths, one for packets. Both replace their keys every 224 packets
//! (forward secrecy; BIP324, "Overall packet encryption").

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};

use super::{HEAD_BYTES, LENGTH_BYTES, TAG_BYTES};

pub struct Sealer {
    lengths: LengthCipher,
    packets: PacketCipher,
}

pub struct Opener {
    lengths: LengthCipher,
    packets: PacketCipher,
}

/// Authentication failure: the packet was modified or encrypted with another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packet decryption failure")]
pub struct Undecryptable;

impl Sealer {
    pub(super) fn new(length_key: [u8; 32], packet_key: [u8; 32]) -> Self {
        Self { lengths: LengthCipher::new(length_key), packets: PacketCipher::new(&packet_key) }
    }

    /// Encrypts `buffer[start..]` in place into a packet: overwrites the first [`HEAD_BYTES`], encrypts the
    /// contents behind them, appends the tag. The receiver ignores a decoy. `aad` is authenticated but not sent.
    ///
    /// # Panics
    /// Without room for the head, or with contents of 2^24 bytes or more.
    pub fn seal(&mut self, buffer: &mut Vec<u8>, start: usize, aad: &[u8], is_decoy: bool) {
        buffer.reserve_exact(TAG_BYTES);
        let packet = &mut buffer[start..];
        let length = packet.len() - HEAD_BYTES;
        assert!(length < 1 << (8 * LENGTH_BYTES), "the length of a packet has three bytes");
        let (head, body) = packet.split_at_mut(LENGTH_BYTES);
        head.copy_from_slice(&length.to_le_bytes()[..LENGTH_BYTES]);
        self.lengths.apply(head);
        body[0] = if is_decoy { DECOY } else { 0 };
        let tag = self.packets.seal(aad, body);
        buffer.extend_from_slice(tag.as_ref());
    }
}

impl Opener {
    pub(super) fn new(length_key: [u8; 32], packet_key: [u8; 32]) -> Self {
        Self { lengths: LengthCipher::new(length_key), packets: PacketCipher::new(&packet_key) }
    }

    /// Decrypts the length prefix, the contents' length, not authenticated until the packet is opened. Call once per packet.
    pub fn length(&mut self, mut length: [u8; LENGTH_BYTES]) -> usize {
        self.lengths.apply(&mut length);
        let [low, middle, high] = length.map(usize::from);
        low | middle << 8 | high << 16
    }

    /// Decrypts a packet without its length prefix in place and returns the contents; `None` for a decoy.
    ///
    /// # Errors
    /// Packet or `aad` differ from those of the sender. No later packet opens then.
    pub fn open<'a>(
        &mut self,
        aad: &[u8],
        packet: &'a mut [u8],
    ) -> Result<Option<&'a [u8]>, Undecryptable> {
        let plain = self.packets.open(aad, packet)?;
        let (head, contents) = plain.split_first().ok_or(Undecryptable)?;
        Ok((head & DECOY == 0).then_some(contents))
    }
}

/// `FSChaCha20`: one key stream covers the lengths of 224 packets; its next bytes are the next key.
struct LengthCipher {
    stream: ChaCha20,
    count: u32,
    rekeyed: u64,
}

impl LengthCipher {
    fn new(key: [u8; 32]) -> Self {
        Self { stream: stream(key, 0), count: 0, rekeyed: 0 }
    }

    fn apply(&mut self, length: &mut [u8]) {
        self.stream.apply_keystream(length);
        self.count += 1;
        if self.count == REKEY_INTERVAL {
            let mut key = [0; 32];
            self.stream.apply_keystream(&mut key);
            self.rekeyed += 1;
            self.stream = stream(key, self.rekeyed);
            self.count = 0;
        }
    }
}

fn stream(key: [u8; 32], rekeyed: u64) -> ChaCha20 {
    ChaCha20::new(&key.into(), &nonce(0, rekeyed).into())
}

/// `FSChaCha20Poly1305`: ChaCha20-Poly1305 of RFC 8439 with the packet number as nonce.
struct PacketCipher {
    key: LessSafeKey,
    count: u32,
    rekeyed: u64,
}

impl PacketCipher {
    fn new(key: &[u8; 32]) -> Self {
        Self { key: packet_key(key), count: 0, rekeyed: 0 }
    }

    fn seal(&mut self, aad: &[u8], in_out: &mut [u8]) -> Tag {
        let nonce = Nonce::assume_unique_for_key(nonce(self.count, self.rekeyed));
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(aad), in_out);
        self.advance();
        tag.expect("a packet is shorter than 256 GiB")
    }

    fn open<'a>(&mut self, aad: &[u8], packet: &'a mut [u8]) -> Result<&'a [u8], Undecryptable> {
        let nonce = Nonce::assume_unique_for_key(nonce(self.count, self.rekeyed));
        let plain = self.key.open_in_place(nonce, Aad::from(aad), packet);
        self.advance();
        plain.map(|plain| &*plain).map_err(|_| Undecryptable)
    }

    fn advance(&mut self) {
        self.count += 1;
        if self.count == REKEY_INTERVAL {
            // Encrypting zeros yields the key stream from its second block on.
            let mut key = [0; 32];
            let nonce = Nonce::assume_unique_for_key(nonce(u32::MAX, self.rekeyed));
            let tag = self.key.seal_in_place_separate_tag(nonce, Aad::empty(), &mut key);
            assert!(tag.is_ok(), "32 bytes are few");
            self.key = packet_key(&key);
            self.rekeyed += 1;
            self.count = 0;
        }
    }
}

fn packet_key(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).expect("a key has 32 bytes"))
}

fn nonce(count: u32, rekeyed: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&count.to_le_bytes());
    nonce[4..].copy_from_slice(&rekeyed.to_le_bytes());
    nonce
}

/// Packets per key (BIP324, `REKEY_INTERVAL`).
const REKEY_INTERVAL: u32 = 224;
/// Decoy bit in the packet header (BIP324, `IGNORE_BIT_POS`).
const DECOY: u8 = 1 << 7;
