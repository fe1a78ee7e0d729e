//! The encrypted transport (BIP324): two sides agree whatever their keys and garbage are and however the bytes are cut, packets
//! come out as they went in, and what was changed on the way, or never was a packet, does not open.

#![no_main]

use assay_fuzz::Input;
use assay_node::bip324::{
    GARBAGE_BYTES_MAX, HEAD_BYTES, Handshake, KEY_BYTES, LENGTH_BYTES, Session, TAG_BYTES,
    TERMINATOR_BYTES, name_bytes, split,
};
use libfuzzer_sys::fuzz_target;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let garbage = input.counted();
    let garbage = garbage[..garbage.len().min(GARBAGE_BYTES_MAX)].to_vec();
    let Some(one) = Handshake::new(input.array(), input.array(), garbage.clone(), true) else { return };
    let Some(two) = Handshake::new(input.array(), input.array(), Vec::new(), false) else { return };
    let opening = one.opening();
    let keys = [&opening, &two.opening()].map(|sent| *sent.first_chunk::<KEY_BYTES>().unwrap());
    let (mut one, mut two) = (one.finish(keys[1], MAGIC), two.finish(keys[0], MAGIC));
    assert_eq!(one.id, two.id);

    let version = one.version_packet();
    let sent = [&opening[KEY_BYTES..], &version].concat();
    let aad = find_garbage(&two, &sent, usize::from(input.byte()).max(1));
    assert_eq!(aad, garbage);
    let opened = open(&mut two, &aad, &mut version[TERMINATOR_BYTES..].to_vec());
    assert_eq!(opened, Some(Some(Vec::new())));

    while !input.0.is_empty() {
        let (kind, contents) = (input.byte(), input.counted());
        if let Some((command, payload)) = split(contents)
            && !command.as_str().is_empty()
        {
            let (name, length) = name_bytes(command);
            let again = [&name[..length], payload].concat();
            assert_eq!(split(&again), Some((command, payload)));
        }
        let mut packet = [&[0; HEAD_BYTES], contents].concat();
        one.sealer.seal(&mut packet, 0, &[], kind & 1 != 0);
        if kind & 2 != 0 {
            let at = LENGTH_BYTES + usize::from(kind >> 2) % (packet.len() - LENGTH_BYTES);
            packet[at] ^= 1;
            assert_eq!(open(&mut two, &[], &mut packet), None, "a changed packet opens");
            return;
        }
        let expected = (kind & 1 == 0).then(|| contents.to_vec());
        assert_eq!(open(&mut two, &[], &mut packet), Some(expected));
    }
});

fn find_garbage(session: &Session, sent: &[u8], piece: usize) -> Vec<u8> {
    let mut garbage = session.garbage();
    let mut at = 0;
    loop {
        let end = sent.len().min(at + piece);
        let (taken, is_over) = garbage.push(&sent[at..end]).expect("there is a terminator");
        at += taken;
        if is_over {
            return garbage.into_aad();
        }
    }
}

/// The contents of a packet, `None` within for a decoy; `None` where it does not open.
fn open(session: &mut Session, aad: &[u8], packet: &mut [u8]) -> Option<Option<Vec<u8>>> {
    let (length, rest) = packet.split_first_chunk_mut::<LENGTH_BYTES>().expect("a length");
    let length = session.opener.length(*length);
    assert_eq!(length + HEAD_BYTES - LENGTH_BYTES + TAG_BYTES, rest.len());
    let opened = session.opener.open(aad, rest).ok()?;
    Some(opened.map(<[u8]>::to_vec))
}
