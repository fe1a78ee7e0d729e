//! Deleting signatures from script codes, as messages from before `SegWit` require (Core `FindAndDelete`).

use assay_hash::sha256d;

use super::opcode::{op, push_prefix, read_instruction};
use super::sighash::CodeKey;

/// A script code without the signatures of a check.
///
/// Scripts may repeat a check as often as they have operations, so the code is kept for the next one: with the same script code
/// and the same signature it is the same.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    code: Vec<u8>,
    hash: Option<[u8; 32]>,
    /// The script code that `sig` alone was looked for in, by script and start, and whether it was there.
    last: Option<(u8, usize, bool)>,
    sig: Vec<u8>,
    spare: Vec<u8>,
}

impl Deletions {
    /// Another input has other scripts under the same numbers.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.last = None;
    }

    /// The script code without the deleted signatures.
    pub(super) fn code(&self) -> &[u8] {
        &self.code
    }

    /// The key under which its messages are kept.
    pub(super) fn key(&mut self, fork: bool) -> CodeKey {
        let hash = *self.hash.get_or_insert_with(|| sha256d(&self.code));
        CodeKey::Deleted { hash, fork }
    }

    /// Deletes the signature of a CHECKSIG from the code of script number `script` that begins at `start`. Returns `true` if it
    /// was there.
    pub(super) fn delete_one(&mut self, script: u8, start: usize, code: &[u8], sig: &[u8]) -> bool {
        if let Some((last_script, last_start, was_there)) = self.last
            && (last_script, last_start) == (script, start)
            && self.sig == sig
        {
            return was_there;
        }
        let mut is_there = false;
        self.delete(code, sig, &mut is_there);
        self.sig.clear();
        self.sig.extend_from_slice(sig);
        self.last = Some((script, start, is_there));
        is_there
    }

    /// Deletes one of several signatures from `code`, or from the rest of it if `deleted`. Sets `deleted` if it was there.
    pub(super) fn delete(&mut self, code: &[u8], sig: &[u8], deleted: &mut bool) {
        self.last = None;
        let from = if *deleted { &self.code } else { code };
        if copy_without(from, sig, &mut self.spare) {
            std::mem::swap(&mut self.code, &mut self.spare);
            self.hash = None;
            *deleted = true;
        }
    }
}

/// The next position of the push `prefix data`, at `pos` or an instruction after it.
fn find(code: &[u8], mut pos: usize, prefix: &[u8], data: &[u8]) -> Option<usize> {
    while let Some(&opcode) = code.get(pos) {
        if opcode > op::PUSHDATA4 {
            pos += 1;
            continue;
        }
        if code[pos..].strip_prefix(prefix).is_some_and(|rest| rest.starts_with(data)) {
            return Some(pos);
        }
        read_instruction(code, &mut pos)?;
    }
    None
}

/// Copies `code` without the pushes of `data`; nothing and `false` where there are none. Behind a match the next bytes are compared
/// before an instruction is read, as in Core.
fn copy_without(code: &[u8], data: &[u8], out: &mut Vec<u8>) -> bool {
    let (prefix, used) = push_prefix(data.len());
    let prefix = &prefix[..used];
    let Some(mut at) = find(code, 0, prefix, data) else { return false };
    out.clear();
    let mut from = 0;
    loop {
        out.extend_from_slice(&code[from..at]);
        from = at + prefix.len() + data.len();
        match find(code, from, prefix, data) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.extend_from_slice(&code[from..]);
    true
}

#[cfg(test)]
mod tests {
    use assay_testkit::random::Random;

    use super::*;
    use crate::script::asm;

    fn delete(code: &[u8], sig: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if copy_without(code, sig, &mut out) { out } else { code.to_vec() }
    }

    /// Cases of Core's `script_FindAndDelete` test.
    #[test]
    fn deletes_like_core() {
        // Only whole pushes at instruction boundaries.
        assert_eq!(delete(&[3, 2, 0xff, 3], &[0xff, 3]), [3, 2, 0xff, 3]);
        assert_eq!(delete(&[2, 0xff, 3, 2, 0xff, 3], &[0xff, 3]), [0; 0]);
        assert_eq!(delete(&[op::PUSH1, 1, 7, op::PUSH1, 1, 7], &[7]), [op::PUSH1, op::PUSH1]);
        // The empty signature is a push of nothing.
        assert_eq!(delete(&[op::PUSH1, 0, 0, op::PUSH1], &[]), [op::PUSH1, op::PUSH1]);
        // Pushes with another opcode stay.
        let other = [op::PUSHDATA1, 1, 7];
        assert_eq!(delete(&other, &[7]), other);
        // A cut-off tail is kept unchanged.
        assert_eq!(delete(&[1, 7, 5, 1], &[7]), [5, 1]);
    }

    /// Core's loop, word for word: what is kept is copied instruction by instruction.
    fn find_and_delete(code: &[u8], data: &[u8]) -> Vec<u8> {
        let mut push = Vec::new();
        asm::push(&mut push, data);
        let (mut out, mut pc, mut pc2) = (Vec::new(), 0, 0);
        loop {
            out.extend_from_slice(&code[pc2..pc]);
            while code[pc..].starts_with(&push) {
                pc += push.len();
            }
            pc2 = pc;
            if pc == code.len() || read_instruction(code, &mut pc).is_none() {
                break;
            }
        }
        out.extend_from_slice(&code[pc2..]);
        out
    }

    /// Random scripts of few different bytes, in which signatures occur often; one check after another, with what is kept.
    #[test]
    fn a_kept_code_is_that_of_a_new_search() {
        const BYTES: [u8; 6] = [0, 1, 2, 3, op::PUSHDATA1, op::PUSH1];
        let mut random = Random(1);
        let mut deletions = Deletions::default();
        let (mut found, mut kept) = (0, 0);
        for input in 0..300 {
            deletions.clear();
            let script: Vec<u8> =
                (0..random.below(40)).map(|_| BYTES[random.below(BYTES.len())]).collect();
            let starts = [0, script.len() / 2];
            for _ in 0..40 {
                let (number, start) = (random.below(2) as u8, starts[random.below(2)]);
                let sigs: Vec<Vec<u8>> = (0..=random.below(3) / 2)
                    .map(|_| (0..random.below(3)).map(|_| BYTES[random.below(4)]).collect())
                    .collect();
                let code = &script[start..];
                let is_kept =
                    deletions.last.is_some_and(|last| (last.0, last.1) == (number, start));
                let mut deleted = false;
                if let [sig] = &sigs[..] {
                    kept += usize::from(is_kept && deletions.sig == *sig);
                    deleted = deletions.delete_one(number, start, code, sig);
                } else {
                    for sig in &sigs {
                        deletions.delete(code, sig, &mut deleted);
                    }
                }
                let expected =
                    sigs.iter().fold(code.to_vec(), |code, sig| find_and_delete(&code, sig));
                found += usize::from(deleted);
                assert_eq!(deleted, expected != code, "{input} {code:?} {sigs:?}");
                if deleted {
                    assert_eq!(deletions.code(), expected, "{input} {code:?} {sigs:?}");
                    let hash = sha256d(&expected);
                    assert_eq!(deletions.key(false), CodeKey::Deleted { hash, fork: false });
                }
            }
        }
        assert!(found > 1_000 && kept > 100, "{found} {kept}");
    }
}
