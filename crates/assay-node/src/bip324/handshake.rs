//! BIP324 handshake. Each side sends a public key in `ElligatorSwift` encoding and up to 4,095 random bytes, then a
//! terminator derived from the shared secret and an encrypted packet that authenticates those bytes.

use hmac::{Hmac, KeyInit, Mac};
use secp256k1::SecretKey;
use secp256k1::ellswift::{ElligatorSwift, Party};
use sha2::Sha256;

use super::cipher::{Opener, Sealer};
use super::{GARBAGE_BYTES_MAX, HEAD_BYTES, KEY_BYTES, TERMINATOR_BYTES};

/// Local side of a handshake, before the public key of the remote side has arrived.
pub struct Handshake {
    key: SecretKey,
    own: ElligatorSwift,
    garbage: Vec<u8>,
    is_initiator: bool,
}

/// State of both directions after the key exchange.
pub struct Session {
    /// Session id, equal on both sides. Comparing it over another channel rules out a man in the middle.
    pub id: [u8; 32],
    pub sealer: Sealer,
    pub opener: Opener,
    pub terminator: [u8; TERMINATOR_BYTES],
    /// Garbage that we sent; AAD of our first packet.
    pub garbage: Vec<u8>,
    peer_terminator: [u8; TERMINATOR_BYTES],
}

/// Scans the remote side's garbage for its terminator.
pub struct Garbage {
    terminator: [u8; TERMINATOR_BYTES],
    received: Vec<u8>,
}

/// The terminator does not follow the longest possible garbage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("missing garbage terminator")]
pub struct MissingTerminator;

impl Handshake {
    /// `auxiliary` randomness (32 bytes) randomizes the public key's encoding; `garbage` is sent. `None` if
    /// `secret` is not a valid secret key, which has negligible probability for random bytes.
    ///
    /// # Panics
    /// If the garbage is too long.
    pub fn new(
        secret: [u8; 32],
        encoding: [u8; 32],
        garbage: Vec<u8>,
        is_initiator: bool,
    ) -> Option<Self> {
        assert!(garbage.len() <= GARBAGE_BYTES_MAX, "garbage has 4,095 bytes at most");
        let key = SecretKey::from_secret_bytes(secret).ok()?;
        let own = ElligatorSwift::from_seckey(key, Some(encoding));
        Some(Self { key, own, garbage, is_initiator })
    }

    /// First bytes to send: our public key and the garbage.
    pub fn opening(&self) -> Vec<u8> {
        [&self.own.to_array()[..], &self.garbage].concat()
    }

    /// Derives the session for a remote key (all 64-byte strings are valid). The network `magic` enters the key derivation.
    pub fn finish(self, theirs: [u8; KEY_BYTES], magic: [u8; 4]) -> Session {
        let theirs = ElligatorSwift::from_array(theirs);
        let session = Session::new(self.key, self.own, theirs, self.is_initiator, magic);
        Session { garbage: self.garbage, ..session }
    }
}

impl Session {
    fn new(
        key: SecretKey,
        own: ElligatorSwift,
        theirs: ElligatorSwift,
        is_initiator: bool,
        magic: [u8; 4],
    ) -> Self {
        let (initiator, responder, party) = if is_initiator {
            (own, theirs, Party::Initiator)
        } else {
            (theirs, own, Party::Responder)
        };
        let shared = ElligatorSwift::shared_secret(initiator, responder, key, party);
        let salt = [b"bitcoin_v2_shared_secret", &magic[..]].concat();
        let prk = hmac(&salt, &[&shared.to_secret_bytes()]);
        // HKDF of RFC 5869 with a single output block.
        let derive = |info: &str| hmac(&prk, &[info.as_bytes(), &[1]]);
        let ours_first = |ours, theirs| if is_initiator { (ours, theirs) } else { (theirs, ours) };
        let (own_l, peer_l) = ours_first(derive("initiator_L"), derive("responder_L"));
        let (own_p, peer_p) = ours_first(derive("initiator_P"), derive("responder_P"));
        let terminators = derive("garbage_terminators");
        let (first, second) = terminators.split_at(TERMINATOR_BYTES);
        let terminator = |bytes: &[u8]| bytes.try_into().expect("two halves of 16 bytes");
        let (own, peer) = if is_initiator { (first, second) } else { (second, first) };
        Self {
            id: derive("session_id"),
            sealer: Sealer::new(own_l, own_p),
            opener: Opener::new(peer_l, peer_p),
            terminator: terminator(own),
            garbage: Vec::new(),
            peer_terminator: terminator(peer),
        }
    }

    /// Bytes to send after our garbage: the terminator and the version packet, with empty contents.
    pub fn version_packet(&mut self) -> Vec<u8> {
        let mut sent = self.terminator.to_vec();
        sent.resize(TERMINATOR_BYTES + HEAD_BYTES, 0);
        let garbage = std::mem::take(&mut self.garbage);
        self.sealer.seal(&mut sent, TERMINATOR_BYTES, &garbage, false);
        sent
    }

    /// Scanner for the bytes after the remote side's key.
    pub fn garbage(&self) -> Garbage {
        Garbage { terminator: self.peer_terminator, received: Vec::new() }
    }
}

impl Garbage {
    /// Scans for the terminator. Returns the number of bytes consumed, and true if they end with it; later bytes are packets.
    ///
    /// # Errors
    /// No terminator within the longest garbage.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(usize, bool), MissingTerminator> {
        let before = self.received.len();
        let wanted = (GARBAGE_BYTES_MAX + TERMINATOR_BYTES).saturating_sub(before);
        let taken = bytes.len().min(wanted);
        self.received.extend_from_slice(&bytes[..taken]);
        let unseen = before.saturating_sub(TERMINATOR_BYTES - 1);
        let mut windows = self.received[unseen..].windows(TERMINATOR_BYTES);
        if let Some(at) = windows.position(|window| window == self.terminator) {
            let end = unseen + at + TERMINATOR_BYTES;
            self.received.truncate(end - TERMINATOR_BYTES);
            return Ok((end - before, true));
        }
        if taken == wanted { Err(MissingTerminator) } else { Ok((taken, false)) }
    }

    /// Garbage before the terminator: AAD of the first packet.
    pub fn into_aad(self) -> Vec<u8> {
        self.received
    }
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use assay_testkit::hex::{array, decode};

    use super::*;
    use crate::bip324::{LENGTH_BYTES, TAG_BYTES, Undecryptable};

    const MAINNET: [u8; 4] = [0xf9, 0xbe, 0xb4, 0xd9];

    /// One row of BIP324's `packet_encoding_test_vectors.csv`.
    fn check_vector(line: &str) {
        let fields: Vec<&str> = line.split(',').collect();
        let [index, secret, own, theirs, initiating, contents, times, aad, ignore, ..] = fields[..]
        else {
            panic!("a line of 14 fields: {line}");
        };
        let [own_terminator, peer_terminator, id, ciphertext, ends_with] = fields[9..] else {
            panic!("a line of 14 fields: {line}");
        };
        let key = SecretKey::from_secret_bytes(array(secret)).unwrap();
        let [own, theirs] = [own, theirs].map(|key| ElligatorSwift::from_array(array(key)));
        let mut session = Session::new(key, own, theirs, initiating == "1", MAINNET);
        assert_eq!(session.id, array(id));
        assert_eq!(session.terminator, array(own_terminator));
        assert_eq!(session.peer_terminator, array(peer_terminator));
        for _ in 0..index.parse().unwrap() {
            session.sealer.seal(&mut vec![0; HEAD_BYTES], 0, &[], true);
        }
        let mut packet = vec![0; HEAD_BYTES];
        packet.extend(decode(contents).repeat(times.parse().unwrap()));
        session.sealer.seal(&mut packet, 0, &decode(aad), ignore == "1");
        if !ciphertext.is_empty() {
            assert_eq!(packet, decode(ciphertext));
        }
        assert!(packet.ends_with(&decode(ends_with)));
    }

    #[test]
    fn published_vectors() {
        let table = include_str!("packet_encoding_test_vectors.csv");
        let mut count = 0;
        for line in table.lines().skip(1) {
            check_vector(line);
            count += 1;
        }
        assert_eq!(count, 7);
    }

    fn pair(garbage: usize) -> (Session, Session, Vec<u8>) {
        let side = |seed: u8, length, is_initiator| {
            Handshake::new([seed; 32], [seed; 32], vec![seed; length], is_initiator).unwrap()
        };
        let (one, two) = (side(1, garbage, true), side(2, 7, false));
        let key = |side: &Handshake| *side.opening().first_chunk().unwrap();
        let (one_key, two_key) = (key(&one), key(&two));
        let (mut one, two) = (one.finish(two_key, MAINNET), two.finish(one_key, MAINNET));
        let sent = one.version_packet();
        (one, two, sent)
    }

    /// Opens one packet; returns its contents unless it is a decoy.
    fn open(
        opener: &mut Opener,
        aad: &[u8],
        packet: &[u8],
    ) -> Result<Option<Vec<u8>>, Undecryptable> {
        let (length, rest) = packet.split_first_chunk::<LENGTH_BYTES>().unwrap();
        assert_eq!(opener.length(*length) + HEAD_BYTES + TAG_BYTES, packet.len());
        opener.open(aad, &mut rest.to_vec()).map(|plain| plain.map(<[u8]>::to_vec))
    }

    #[test]
    fn packets_survive_key_rotation() {
        let (mut one, mut two, sent) = pair(100);
        assert_eq!(one.id, two.id);
        let mut garbage = two.garbage();
        let stream = [&[1; 100][..], &sent].concat();
        assert_eq!(garbage.push(&stream), Ok((100 + TERMINATOR_BYTES, true)));
        let aad = garbage.into_aad();
        assert_eq!(aad, [1; 100]);
        assert_eq!(open(&mut two.opener, &aad, &sent[TERMINATOR_BYTES..]), Ok(Some(Vec::new())));
        for number in 0..1000_u16 {
            let contents = vec![number as u8; usize::from(number % 70)];
            let mut packet = vec![0; HEAD_BYTES];
            packet.extend_from_slice(&contents);
            let is_decoy = number % 3 == 0;
            one.sealer.seal(&mut packet, 0, &[], is_decoy);
            let opened = open(&mut two.opener, &[], &packet);
            assert_eq!(opened, Ok((!is_decoy).then_some(contents)));
        }
    }

    #[test]
    fn modified_packets_and_garbage_fail_authentication() {
        for changed in 0..=HEAD_BYTES - LENGTH_BYTES + TAG_BYTES {
            let (_, mut two, sent) = pair(3);
            let mut packet = sent[TERMINATOR_BYTES..].to_vec();
            let mut aad = vec![1; 3];
            match packet.get_mut(LENGTH_BYTES + changed) {
                Some(byte) => *byte ^= 1,
                None => aad[0] ^= 1,
            }
            assert_eq!(open(&mut two.opener, &aad, &packet), Err(Undecryptable));
        }
    }

    #[test]
    fn finds_terminator_across_reads() {
        let (_, two, sent) = pair(GARBAGE_BYTES_MAX);
        let stream = [&[1; GARBAGE_BYTES_MAX][..], &sent].concat();
        for piece in [1, 15, 16, 17, 4096, stream.len()] {
            let mut garbage = two.garbage();
            let mut at = 0;
            loop {
                let end = (at + piece).min(stream.len());
                let (taken, is_over) = garbage.push(&stream[at..end]).unwrap();
                at += taken;
                if is_over {
                    break;
                }
            }
            assert_eq!(at, GARBAGE_BYTES_MAX + TERMINATOR_BYTES);
            assert_eq!(garbage.into_aad().len(), GARBAGE_BYTES_MAX);
        }
        let mut garbage = two.garbage();
        let most = GARBAGE_BYTES_MAX + TERMINATOR_BYTES;
        assert_eq!(garbage.push(&vec![0; most - 1]), Ok((most - 1, false)));
        assert_eq!(garbage.push(&[0]), Err(MissingTerminator));
        assert_eq!(garbage.push(&[0]), Err(MissingTerminator));
    }

    #[test]
    fn session_depends_on_network_magic() {
        let side =
            |is_initiator| Handshake::new([5; 32], [6; 32], Vec::new(), is_initiator).unwrap();
        let key = *side(true).opening().first_chunk().unwrap();
        let one = side(true).finish(key, MAINNET);
        let two = side(true).finish(key, [1, 2, 3, 4]);
        assert_ne!(one.id, two.id);
        assert!(Handshake::new([0; 32], [6; 32], Vec::new(), true).is_none());
    }
}
