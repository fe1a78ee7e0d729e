//! Messages and frames (ZMTP 3.1, `rfc.zeromq.org/spec/37`).

/// Message of three parts (topic, contents and sequence number), serialized.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    topic: &'static str,
    bytes: Vec<u8>,
}

impl Message {
    pub(super) fn new(topic: &'static str, body: &[u8], sequence: u32) -> Self {
        let mut bytes = Vec::with_capacity(body.len() + 64);
        push_frame(&mut bytes, MORE, topic.as_bytes());
        push_frame(&mut bytes, MORE, body);
        push_frame(&mut bytes, 0, &sequence.to_le_bytes());
        Self { topic, bytes }
    }

    pub(super) fn topic(&self) -> &'static str {
        self.topic
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Appends a frame: flags, length in one or eight bytes, contents.
pub(super) fn push_frame(out: &mut Vec<u8>, flags: u8, body: &[u8]) {
    if let Ok(length) = u8::try_from(body.len()) {
        out.extend([flags, length]);
    } else {
        out.push(flags | LONG);
        out.extend((body.len() as u64).to_be_bytes());
    }
    out.extend(body);
}

/// Hash in display order, last byte first.
pub(super) fn shown(hash: &[u8; 32]) -> [u8; 32] {
    let mut out = *hash;
    out.reverse();
    out
}

/// Block hash and label of the event.
pub(super) fn labelled(hash: &[u8; 32], label: u8) -> Vec<u8> {
    let mut out = shown(hash).to_vec();
    out.push(label);
    out
}

/// Txid, label and mempool sequence of the event.
pub(super) fn change(txid: &[u8; 32], label: u8, sequence: u64) -> Vec<u8> {
    let mut out = labelled(txid, label);
    out.extend(sequence.to_le_bytes());
    out
}

/// Flag: more frames of the message follow.
pub(super) const MORE: u8 = 1;
/// Flag: eight-byte length.
pub(super) const LONG: u8 = 2;
/// Flag: command frame.
pub(super) const COMMAND: u8 = 4;
