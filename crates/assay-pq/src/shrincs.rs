//! SHRINCS, the part without state, of the draft of August 2026 (`SHRINCS.md` of SHRINCS/shrincs-bip).
//!
//! A key has a second root, of a tree whose leaves must not be used twice. A signature that says 255 does
//! without it: it is one of SLH-DSA with other parameters, over that root and the message. Signatures with
//! state are deliberately absent, since the draft still changes them.

use crate::check::{Check, Message};
use crate::lanes::verify;
use crate::params::ParameterSet;

/// Bytes of a public key: seed, root without state, root with state.
pub const KEY_BYTES: usize = 48;
/// Bytes of a signature without state.
pub const STATELESS_BYTES: usize = 1 + ParameterSet::SHRINCS_STATELESS.signature_bytes();

/// The first byte of a signature without state, in the place of a leaf's height.
const STATELESS: u8 = 255;

/// Whether this is a valid signature without state; the context has at most 255 bytes. False for one
/// with state, which is not looked at, and for wrong lengths.
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
