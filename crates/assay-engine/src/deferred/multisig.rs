//! Matches the signatures of a CHECKMULTISIG to keys.
//!
//! The opcode tries pairs in order, and each pair that does not match costs a check that proves nothing. A matching exists
//! exactly if trying in order finds one, so it is sufficient to guess the keys and to confirm the guess. Wallets mostly sign with
//! the same keys, so the usual matching is a good guess.

use std::sync::atomic::{AtomicU32, Ordering};

pub(super) const KEYS_MAX: usize = 20;

/// A set of keys: bit 0 is the first that the opcode tries.
pub(super) type Keys = u32;

/// For each number of signatures and keys, the keys that usually match, by the majority vote of Boyer and Moore: the candidate in
/// the low bits, above it its lead.
///
/// One table serves the whole process, because batches are short-lived. It affects only the order of the pairs tried, never the
/// outcome.
static HABITS: [[AtomicU32; KEYS_MAX + 1]; KEYS_MAX + 1] =
    [const { [const { AtomicU32::new(0) }; KEYS_MAX + 1] }; KEYS_MAX + 1];

const LEAD_SHIFT: u32 = 24;
/// Maximum lead, and so the number of other matchings in a row that replace a candidate.
const LEAD_MAX: u32 = 15;

/// The keys to try first.
pub(super) fn guess(sigs: usize, keys: usize) -> Keys {
    match HABITS[sigs][keys].load(Ordering::Relaxed) & low_bits(KEYS_MAX) {
        // The keys that a script lists first, which the opcode tries last.
        0 => low_bits(sigs) << keys.saturating_sub(sigs),
        guess => guess,
    }
}

/// Counts a matching. A vote lost in a race is harmless.
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
    // Usually nothing changes, and then no cache line has to move between cores.
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

/// Keys of the greedy matching, in which each signature has the first key that fits; `fits` has the fitting keys of each
/// signature. `None` if there is no matching.
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
        // Only keys above this one remain.
        open = !(bit | (bit - 1));
    }
    Some(matched)
}

/// As [`matching`], with pairs that are not in `fits` decided by `verify`.
pub(super) fn try_in_order(
    fits: &[Keys],
    keys: usize,
    mut verify: impl FnMut((usize, usize)) -> bool,
) -> Option<Keys> {
    let mut matched = 0;
    let mut key = 0;
    for (sig, known) in fits.iter().enumerate() {
        // Each of the remaining signatures needs a key.
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

    /// The opcode's algorithm (Core `EvalScript`, `OP_CHECKMULTISIG`).
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
    fn matches_the_opcodes_algorithm() {
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

    /// With numbers that no other test uses: the table is process-wide.
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
