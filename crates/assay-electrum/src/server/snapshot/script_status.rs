//! The status of a script: a hash over its history.

use std::sync::Arc;

use assay_hash::Sha256;
use assay_wire::Txid;

use super::published::Published;
use crate::index::{Limits, ScriptHash};
use crate::server::protocol::Out;
use crate::server::protocol::error::CallError;

/// The status of a script: the hash of its history, none where there is none.
pub(in crate::server) type Status = Option<[u8; 32]>;

/// The hash over the confirmed history of a script, as far as it goes: new blocks add to it,
/// nothing is hashed twice.
#[derive(Clone, Debug)]
pub(in crate::server) struct StatusHasher {
    hasher: Sha256,
    empty: bool,
    /// Height from which on blocks have not been hashed.
    next: u32,
    /// Number of reorganisations that this was computed under.
    reorganisations: u64,
}

impl Default for StatusHasher {
    fn default() -> Self {
        Self { hasher: Sha256::new(), empty: true, next: 0, reorganisations: 0 }
    }
}

impl StatusHasher {
    /// The status now: hashes the blocks that were added since the last call, and the mempool.
    pub(in crate::server) fn status(
        &mut self,
        published: &Published,
        script: &ScriptHash,
        entries_max: usize,
    ) -> Result<Status, CallError> {
        let read = published
            .read(|snapshot, pool| (Arc::clone(snapshot), pool.history(script, entries_max)));
        let Some((snapshot, unconfirmed)) = read else { return Ok(None) };
        let unconfirmed = unconfirmed?.sorted();
        if self.reorganisations != snapshot.reorganisations {
            *self = Self { reorganisations: snapshot.reorganisations, ..Self::default() };
        }
        if self.next <= snapshot.tip.height {
            let limits = Limits { entries_max };
            let confirmed = snapshot.view.history(script, self.next, limits)?;
            let lines = confirmed.iter().map(|entry| (entry.txid, i64::from(entry.height)));
            self.empty &= confirmed.is_empty();
            hash_lines(&mut self.hasher, lines);
            self.next = snapshot.tip.height + 1;
        }
        if self.empty && unconfirmed.is_empty() {
            return Ok(None);
        }
        let mut hasher = self.hasher.clone();
        let lines = unconfirmed.iter().map(|entry| (entry.txid, i64::from(entry.height())));
        hash_lines(&mut hasher, lines);
        Ok(Some(hasher.finalize()))
    }
}

/// Writes a status: digits in the order of the hash function, or null.
pub(in crate::server) fn write_status(out: &mut Out, status: &Status) {
    match status {
        Some(status) => out.hex(status),
        None => out.raw("null"),
    };
}

/// Hashes `txid:height:` for each line.
pub(in crate::server) fn hash_lines(hasher: &mut Sha256, lines: impl Iterator<Item = (Txid, i64)>) {
    const FULL: usize = 4096;
    let mut text = Vec::with_capacity(FULL + 128);
    for (txid, height) in lines {
        let mut reversed = txid.0;
        reversed.reverse();
        let start = text.len();
        text.resize(start + 64, 0);
        faster_hex::hex_encode(&reversed, &mut text[start..]).expect("64 digits");
        text.push(b':');
        push_decimal(&mut text, height);
        text.push(b':');
        if text.len() >= FULL {
            hasher.update(&text);
            text.clear();
        }
    }
    hasher.update(&text);
}

fn push_decimal(text: &mut Vec<u8>, number: i64) {
    let mut digits = [0u8; 20];
    let mut rest = number.unsigned_abs();
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        text.push(b'-');
    }
    text.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_the_specification() {
        // Protocol basics, "Status Example".
        let lines = [
            ("a6c9c361bd0bc536d6a22648efbf8f9b200e425ef6c3a7a9669dc444c532a347", 2472),
            ("9c42f84b2fcdaff676ba25d9d4941741cc0d1a01cce0c23fdc4c0b2afa38431c", 2473),
            ("770f2d4371b3fabb902dd9a103e2dd005fcd3971181078fca4a2a1d6ff127b30", 2473),
            ("80b19848aed792565ab7c5a79b7c2a00fbf985741579396ebe0ab6098e607311", 0),
            ("e02a1dadfa83b996b24175df807b271ea5d02937ef5b35c195fac1e1bdc3198f", 0),
            ("bb4c8ab438c13b89ca80d1d5bee25b0b6b7f55673f4d801998ba97db161d9e85", -1),
        ];
        let mut hasher = Sha256::new();
        let lines = lines.map(|(txid, height)| (txid.parse::<Txid>().unwrap(), height));
        hash_lines(&mut hasher, lines.into_iter());
        let mut text = [0; 64];
        let status = faster_hex::hex_encode(&hasher.finalize(), &mut text).unwrap().to_owned();
        assert_eq!(status, "78e96c6562cafa71c115503b9411fdfdc595a45031e2ab76ff75162fe1b0590d");
    }

    #[test]
    fn numbers_are_written_as_they_are_printed() {
        for number in [0, 7, -1, 10, 840_000, i64::from(u32::MAX), i64::MIN, i64::MAX] {
            let mut text = Vec::new();
            push_decimal(&mut text, number);
            assert_eq!(String::from_utf8(text).unwrap(), number.to_string());
        }
    }
}
