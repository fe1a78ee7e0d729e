//! The ciphers of a session: one for the lengths of packets, one for the packets themselves, both with keys that are replaced
//! every 224 packets, so that a key found later does not open what went before (BIP324, "Overall packet encryption").

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};

use super::{HEAD_BYTES, LENGTH_BYTES, TAG_BYTES};

/// Encrypts packets.
pub struct Sealer {
    lengths: LengthCipher,
    packets: PacketCipher,
}

/// Decrypts packets.
pub struct Opener {
    lengths: LengthCipher,
    packets: PacketCipher,
}

/// A packet was changed on the way, or was encrypted with another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packet decryption failure")]
pub struct Undecryptable;

impl Sealer {
    pub(super) fn new(length_key: [u8; 32], packet_key: [u8; 32]) -> Self {
        Self { lengths: LengthCipher::new(length_key), packets: PacketCipher::new(&packet_key) }
    }

    /// Makes a packet of `buffer[start..]` in place. Its first [`HEAD_BYTES`] are overwritten, the contents follow them, and the
    /// tag is appended. A decoy is ignored by the receiver. `aad` is authenticated and not sent.
    ///
    /// # Panics
    /// When there is no room for the head, or the contents have 2^24 bytes or more.
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

    /// Bytes of the contents of the next packet, which starts with `length`. Nothing vouches for it before the packet is opened.
    /// To be called once for each packet.
    pub fn length(&mut self, mut length: [u8; LENGTH_BYTES]) -> usize {
        self.lengths.apply(&mut length);
        let [low, middle, high] = length.map(usize::from);
        low | middle << 8 | high << 16
    }

    /// Decrypts what follows the length of a packet, in place, and gives the contents; `None` for a decoy.
    ///
    /// # Errors
    /// When packet or `aad` are not what the sender had; no later packet opens then.
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

/// `FSChaCha20`: one key stream for the lengths of 224 packets; its next bytes are the next key.
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

/// `FSChaCha20Poly1305`: ChaCha20-Poly1305 of RFC 8439 with the number of the packet as nonce.
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
            // The key stream from its second block on is what zeros are encrypted to.
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

/// Packets that are encrypted with one key (BIP324, `REKEY_INTERVAL`).
const REKEY_INTERVAL: u32 = 224;
/// Bit of a packet's header (BIP324, `IGNORE_BIT_POS`).
const DECOY: u8 = 1 << 7;
