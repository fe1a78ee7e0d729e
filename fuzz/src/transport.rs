//! The encrypted transport.

use assay_node::bip324::{
    GARBAGE_BYTES_MAX, HEAD_BYTES, Handshake, KEY_BYTES, LENGTH_BYTES, Session, TAG_BYTES,
    TERMINATOR_BYTES, name_bytes, split,
};

use crate::input::Input;
use crate::messages::MAGIC;

/// The encrypted transport (BIP324). Two correct sides agree for any keys, any garbage and any cuts of the bytes;
/// packets come out as they went in, in both directions and through many changes of keys; what was changed on the way does not
/// open. To a side that is not correct, the rest of the input, nothing opens, and how its bytes are cut makes no difference.
pub fn transport(data: &[u8]) {
    let mut input = Input(data);
    let manner = input.byte();
    let piece = usize::from(input.byte()).max(1);
    let is_initiator = manner & 1 != 0;
    let own = side(&mut input, is_initiator, manner & 2 != 0);
    if manner & 4 != 0 {
        return stranger(own, &mut input, piece);
    }
    let other = side(&mut input, !is_initiator, manner & 8 != 0);
    let openings = [own.opening(), other.opening()];
    let keys = [&openings[0], &openings[1]].map(|sent| *sent.first_chunk::<KEY_BYTES>().unwrap());
    let mut sides = [own.finish(keys[1], MAGIC), other.finish(keys[0], MAGIC)];
    assert_eq!(sides[0].id, sides[1].id);

    for (from, opening) in openings.iter().enumerate() {
        let garbage = &opening[KEY_BYTES..];
        let version = sides[from].version_packet();
        let sent = [garbage, &version].concat();
        let found = find_garbage(&sides[1 - from], &sent, piece);
        let (aad, taken) = found.expect("there is a terminator");
        assert_eq!((aad.as_slice(), taken), (garbage, garbage.len() + TERMINATOR_BYTES));
        let mut packet = version[TERMINATOR_BYTES..].to_vec();
        assert_eq!(open(&mut sides[1 - from], &aad, &mut packet), Some(Some(Vec::new())));
    }
    while !input.0.is_empty() {
        let (kind, times, contents) = (input.byte(), input.byte(), input.counted());
        names(contents);
        let from = usize::from(kind & 1);
        // Keys change every 224 packets.
        for _ in 0..=times {
            if !pass(&mut sides, from, kind >> 1, contents) {
                return;
            }
        }
    }
}

/// One side: any bytes become a key, and garbage can be longer than the input.
fn side(input: &mut Input<'_>, is_initiator: bool, has_long_garbage: bool) -> Handshake {
    let mut secret: [u8; 32] = input.array();
    // Neither zero nor above the order.
    secret[0] &= 0x7f;
    secret[31] |= 1;
    let encoding = input.array();
    let mut garbage = input.counted().to_vec();
    if has_long_garbage && !garbage.is_empty() {
        garbage = garbage.iter().copied().cycle().take(GARBAGE_BYTES_MAX).collect();
    }
    garbage.truncate(GARBAGE_BYTES_MAX);
    Handshake::new(secret, encoding, garbage, is_initiator).expect("a secret key")
}

/// Sends a packet; `false` where it was changed on the way, after which nothing opens.
fn pass(sides: &mut [Session; 2], from: usize, kind: u8, contents: &[u8]) -> bool {
    let (is_decoy, is_changed) = (kind & 1 != 0, kind & 6 == 6);
    let mut packet = [&[0; HEAD_BYTES], contents].concat();
    sides[from].sealer.seal(&mut packet, 0, &[], is_decoy);
    if is_changed {
        let at = LENGTH_BYTES + usize::from(kind >> 3) % (packet.len() - LENGTH_BYTES);
        packet[at] ^= 1;
        assert_eq!(open(&mut sides[1 - from], &[], &mut packet), None, "a changed packet opens");
        return false;
    }
    let expected = (!is_decoy).then(|| contents.to_vec());
    assert_eq!(open(&mut sides[1 - from], &[], &mut packet), Some(expected));
    true
}

/// The name in contents is the same after writing and reading.
fn names(contents: &[u8]) {
    if let Some((command, payload)) = split(contents)
        && !command.as_str().is_empty()
    {
        let (name, length) = name_bytes(command);
        let again = [&name[..length], payload].concat();
        assert_eq!(split(&again), Some((command, payload)));
    }
}

/// The other side is the input: a key, then arbitrary bytes.
fn stranger(own: Handshake, input: &mut Input<'_>, piece: usize) {
    let key = input.array();
    let mut session = own.finish(key, MAGIC);
    let long = input.byte() & 1 != 0;
    let mut sent = input.counted().to_vec();
    if long && !sent.is_empty() {
        sent = sent.iter().copied().cycle().take(GARBAGE_BYTES_MAX + 100).collect();
    }
    let in_pieces = find_garbage(&session, &sent, piece);
    assert_eq!(in_pieces, find_garbage(&session, &sent, usize::MAX));
    assert_eq!(in_pieces, None, "a terminator by chance");
    while !input.0.is_empty() {
        let head = input.array();
        let _ = session.opener.length(head);
        let mut rest = input.counted().to_vec();
        rest.resize(rest.len().max(HEAD_BYTES - LENGTH_BYTES + TAG_BYTES), 0);
        assert!(session.opener.open(&[], &mut rest).is_err(), "a packet by chance");
    }
}

/// The garbage, and the number of bytes consumed with its terminator; `None` without one.
fn find_garbage(session: &Session, sent: &[u8], piece: usize) -> Option<(Vec<u8>, usize)> {
    let mut garbage = session.garbage();
    let mut at = 0;
    while at < sent.len() {
        let end = sent.len().min(at.saturating_add(piece));
        let (taken, is_over) = garbage.push(&sent[at..end]).ok()?;
        at += taken;
        if is_over {
            return Some((garbage.into_aad(), at));
        }
    }
    None
}

/// Contents of a packet, `Some(None)` for a decoy; `None` if it does not open.
fn open(session: &mut Session, aad: &[u8], packet: &mut [u8]) -> Option<Option<Vec<u8>>> {
    let (length, rest) = packet.split_first_chunk_mut::<LENGTH_BYTES>().expect("a length");
    let length = session.opener.length(*length);
    assert_eq!(length + HEAD_BYTES - LENGTH_BYTES + TAG_BYTES, rest.len());
    let opened = session.opener.open(aad, rest).ok()?;
    Some(opened.map(<[u8]>::to_vec))
}
