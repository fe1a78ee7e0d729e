//! Stateless SHRINCS, from the draft of August 2026 (`SHRINCS.md` of SHRINCS/shrincs-bip).
//!
//! A key has a second root, of a tree with one-time leaves. A signature whose first byte is 255 does not use it: it is an SLH-DSA
//! signature with other parameters, over that root and the message. Stateful signatures are deliberately absent, since the draft
//! still changes them.

use crate::lanes::verify;
use crate::params::ParameterSet;
use crate::{Check, Message};

/// Seed, stateless root, stateful root.
pub const KEY_BYTES: usize = 48;
pub const STATELESS_BYTES: usize = 1 + ParameterSet::SHRINCS_STATELESS.signature_bytes();

/// First byte of a stateless signature, in place of a leaf's height.
const STATELESS: u8 = 255;

/// True for a valid stateless signature (context of at most 255 bytes); false for stateful ones, unchecked, and wrong lengths.
pub fn verify_stateless(key: &[u8], message: &[u8], context: &[u8], signature: &[u8]) -> bool {
    let Some((&STATELESS, signature)) = signature.split_first() else { return false };
    let Some((key, root)) = key.split_first_chunk::<32>().filter(|(_, root)| root.len() == 16)
    else {
        return false;
    };
    let bound = [root, message].concat();
    let message = Message::Pure { context, message: &bound };
    verify(&ParameterSet::SHRINCS_STATELESS, &Check { key, message, signature })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_key::TestKey;

    #[test]
    fn both_roots_are_bound() {
        let test_key = TestKey::new(ParameterSet::SHRINCS_STATELESS, 1);
        let key = [test_key.public(), &[7; 16]].concat();
        let bound = [&[7; 16][..], b"message"].concat();
        let inner = test_key.sign(&Message::Pure { context: b"c", message: &bound });
        let signature = [&[STATELESS][..], &inner].concat();
        assert_eq!((key.len(), signature.len()), (KEY_BYTES, STATELESS_BYTES));
        assert!(verify_stateless(&key, b"message", b"c", &signature));
        for place in [0, 20, 40] {
            let mut other = key.clone();
            other[place] ^= 1;
            assert!(!verify_stateless(&other, b"message", b"c", &signature), "{place}");
        }
        for place in [0, 1, 17, 3_000, STATELESS_BYTES - 1] {
            let mut other = signature.clone();
            other[place] ^= 1;
            assert!(!verify_stateless(&key, b"message", b"c", &other), "{place}");
        }
        assert!(!verify_stateless(&key, b"massage", b"c", &signature));
        assert!(!verify_stateless(&key, b"message", b"d", &signature));
        assert!(!verify_stateless(&key[..47], b"message", b"c", &signature));
        assert!(!verify_stateless(&key, b"message", b"c", &[]));
    }
}
