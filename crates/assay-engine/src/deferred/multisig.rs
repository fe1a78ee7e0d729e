//! Which keys a CHECKMULTISIG's signatures belong to.
//!
//! The opcode tries pairs until it knows, and each pair that does not match costs a check that proves nothing. Matching is
//! possible in any way exactly when trying in order finds one, so it is enough to guess the keys and to have the guess
//! confirmed. Wallets sign with the same keys most of the time, so what usually matched is a good guess.

use std::sync::atomic::{AtomicU32, Ordering};

/// Most keys of a CHECKMULTISIG.
pub(super) const KEYS_MAX: usize = 20;

/// A set of keys: bit 0 is the first that the opcode tries.
pub(super) type Keys = u32;

/// For each number of signatures and keys, the keys that usually match, found by the majority vote of Boyer and Moore: the
/// candidate in the low bits, above it how far it is ahead.
///
/// One table serves the whole process, because batches are short-lived. It decides which pairs are tried first, never what
/// comes out.
static HABITS: [[AtomicU32; KEYS_MAX + 1]; KEYS_MAX + 1] =
    [const { [const { AtomicU32::new(0) }; KEYS_MAX + 1] }; KEYS_MAX + 1];

const LEAD_SHIFT: u32 = 24;
/// A habit is given up after so many others in a row.
const LEAD_MAX: u32 = 15;

/// The keys to try first.
pub(super) fn guess(sigs: usize, keys: usize) -> Keys {
    match HABITS[sigs][keys].load(Ordering::Relaxed) & low_bits(KEYS_MAX) {
        // The keys that a script names first, which the opcode tries last.
        0 => low_bits(sigs) << keys.saturating_sub(sigs),
        guess => guess,
    }
}

/// Counts a matching. A vote that another thread overwrites is no loss.
pub(super) fn learn(sigs: usize, keys: usize, matched: Keys) {
    let habit = &HABITS[sigs][keys];
    let old = habit.load(Ordering::Relaxed);
    let (candidate, lead) = (old & low_bits(KEYS_MAX), old >> LEAD_SHIFT);
    let (candidate, lead) = match lead {
        _ if candidate == matched => (matched, LEAD_MAX.min(lead + 1)),
        0 => (matched, 1),
        _ => (candidate, lead - 1),
    };
    let new = candidate | lead << LEAD_SHIFT;
    // In the long run nothing changes, and then no cache line has to move between cores.
    if new != old {
        habit.store(new, Ordering::Relaxed);
    }
}

fn low_bits(count: usize) -> Keys {
    (1 << count) - 1
}

/// The pairs of signature and key in a guess: the first signature has the first key.
pub(super) fn guessed_pairs(guess: Keys) -> impl Iterator<Item = (usize, usize)> {
    (0..KEYS_MAX).filter(move |key| guess >> key & 1 == 1).enumerate()
}

/// Every pair that can be part of a matching and is not in the guess.
pub(super) fn other_pairs(
    sigs: usize,
    keys: usize,
    guess: Keys,
) -> impl Iterator<Item = (usize, usize)> {
    (0..sigs).flat_map(move |sig| {
        let guessed = guessed_pairs(guess).nth(sig).map(|(_, key)| key);
        (sig..=sig + keys - sigs)
            .filter(move |key| Some(*key) != guessed)
            .map(move |key| (sig, key))
    })
}

/// The keys of the matching that giving each signature the first key that fits leads to; `fits` has the keys that fit each
/// signature. `None` when there is no matching at all.
pub(super) fn matching(fits: &[Keys]) -> Option<Keys> {
    let mut matched = 0;
    let mut open = Keys::MAX;
    for fits in fits {
        let first = fits & open;
        if first == 0 {
            return None;
        }
        let bit = first & first.wrapping_neg();
        matched |= bit;
        // Only keys above this one are left.
        open = !(bit | (bit - 1));
    }
    Some(matched)
}

/// As [`matching`] where keys may fit that are not in `fits`: `verify` decides about such pairs.
pub(super) fn try_in_order(
    fits: &[Keys],
    keys: usize,
    mut verify: impl FnMut((usize, usize)) -> bool,
) -> Option<Keys> {
    let mut matched = 0;
    let mut key = 0;
    for (sig, known) in fits.iter().enumerate() {
        // Each of the signatures left needs a key.
        while key + fits.len() - sig <= keys && known >> key & 1 == 0 && !verify((sig, key)) {
            key += 1;
        }
        if key + fits.len() - sig > keys {
            return None;
        }
        matched |= 1 << key;
        key += 1;
    }
    Some(matched)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the opcode does (Core `EvalScript`, `OP_CHECKMULTISIG`).
    fn by_trying(fits: &[Keys], keys: usize) -> bool {
        let (mut sigs_left, mut keys_left) = (fits.len(), keys);
        while sigs_left > 0 {
            if sigs_left > keys_left {
                return false;
            }
            if fits[fits.len() - sigs_left] >> (keys - keys_left) & 1 == 1 {
                sigs_left -= 1;
            }
            keys_left -= 1;
        }
        true
    }

    /// Every table of fitting keys for up to four keys.
    #[test]
    fn finds_what_trying_finds() {
        for keys in 1..=4usize {
            for sigs in 1..=keys {
                for table in 0..1u32 << (sigs * keys) {
                    let fits: Vec<Keys> =
                        (0..sigs).map(|sig| table >> (sig * keys) & low_bits(keys)).collect();
                    let found = matching(&fits);
                    assert_eq!(
                        found.is_some(),
                        by_trying(&fits, keys),
                        "{sigs} of {keys}: {fits:?}"
                    );
                    let verify = |(sig, key): (usize, usize)| fits[sig] >> key & 1 == 1;
                    for known in [0, 0b0101, 0b0110, Keys::MAX] {
                        let known: Vec<Keys> = fits.iter().map(|fits| fits & known).collect();
                        assert_eq!(try_in_order(&known, keys, verify), found);
                    }
                    let Some(found) = found else { continue };
                    assert_eq!(found.count_ones() as usize, sigs);
                    assert!(guessed_pairs(found).all(|(sig, key)| fits[sig] >> key & 1 == 1));
                }
            }
        }
    }

    /// With numbers that no other test uses: the table is the whole process's.
    #[test]
    fn follows_the_majority() {
        let (often, seldom) = (0b101, 0b110);
        for round in 0..40 {
            learn(2, 19, if round % 3 == 2 { seldom } else { often });
            assert!(round < 3 || guess(2, 19) == often);
        }
        for _ in 0..40 {
            learn(2, 19, seldom);
        }
        assert_eq!(guess(2, 19), seldom);
    }

    #[test]
    fn pairs_are_those_of_all_matchings() {
        for keys in 1..=6usize {
            for sigs in 1..=keys {
                let guess = guess(sigs, keys);
                let mut pairs: Vec<_> =
                    guessed_pairs(guess).chain(other_pairs(sigs, keys, guess)).collect();
                pairs.sort_unstable();
                let mut expected: Vec<_> = (0..1 << keys)
                    .filter(|set: &Keys| set.count_ones() as usize == sigs)
                    .flat_map(guessed_pairs)
                    .collect();
                expected.sort_unstable();
                expected.dedup();
                assert_eq!(pairs, expected, "{sigs} of {keys}");
            }
        }
    }
}
