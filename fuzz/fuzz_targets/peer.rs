//! A peer of a running node: messages of every kind in any order, on both versions of the transport and on connections that
//! either side makes. The node answers a ping behind them or ends the connection, what it sends is well formed, and it ends a
//! connection that the peer has ended.

#![no_main]

use std::io;

use assay_fuzz::Input;
use assay_fuzz::messages;
use assay_fuzz::peer::{Manner, Talk, node};
use assay_wire::Header;
use assay_wire::p2p::Command;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let (manner, key, words) = (Manner(input.byte()), input.byte(), input.byte());
    let garbage = input.counted();
    let Some(mut talk) = Talk::open(manner, key, garbage) else { return };
    if !manner.is_correct() && talk.send_raw(garbage).is_err() {
        return;
    }
    let said = say(&mut talk, manner, words, &mut input);
    if matches!(said, Ok(true)) {
        // An error is the node's way of ending it.
        let _ = talk.settle();
    }
    talk.close();
});

/// Says everything; whether the node can tell where messages begin and end.
fn say(talk: &mut Talk, manner: Manner, words: u8, input: &mut Input<'_>) -> io::Result<bool> {
    if manner.opens() {
        talk.greet(words)?;
    }
    let mut is_framed = manner.opens() && manner.is_correct();
    while !input.0.is_empty() {
        let kind = input.byte();
        let payload = input.counted();
        let command = messages::command(kind & 0x3f);
        match kind >> 6 {
            1 => talk.send(command, &on_tip(payload, command), false)?,
            2 => talk.send(command, payload, true)?,
            3 if kind & 0x3f == 0x3f => {
                is_framed = false;
                talk.send_raw(payload)?;
            }
            _ => talk.send(command, payload, false)?,
        }
    }
    Ok(is_framed)
}

/// With the header in a payload on the node's tip and with proof of work, which no mutation would find.
fn on_tip(payload: &[u8], command: Command) -> Vec<u8> {
    let mut payload = payload.to_vec();
    let start = usize::from(command.as_str() == "headers");
    let Some(header) = payload.get_mut(start..start + 80) else { return payload };
    let tip = node().engine().tip();
    header[4..36].copy_from_slice(&tip.hash.0);
    header[68..72].copy_from_slice(&(tip.time + 1).to_le_bytes());
    header[72..76].copy_from_slice(&0x207f_ffff_u32.to_le_bytes());
    for nonce in 0..64_u32 {
        header[76..80].copy_from_slice(&nonce.to_le_bytes());
        let bytes: &[u8; 80] = (&*header).try_into().expect("80 bytes");
        if Header::parse(bytes).hash().0[31] < 0x7f {
            break;
        }
    }
    payload
}
