//! Which keys a CHECKMULTISIG's signatures belong to.
//!
//! The opcode tries pairs until it knows, and each pair that does not match costs a check that proves nothing. Matching is
//! possible in any way exactly when trying in order finds one, so it is enough to guess the keys and to have the guess
//! confirmed. Wallets sign with the same keys every time, so what came last is a good guess.

/// Most keys of a CHECKMULTISIG.
pub(super) const KEYS_MAX: usize = 20;

/// A set of keys: bit 0 is the first that the opcode tries.
pub(super) type Keys = u32;

/// For each number of signatures and keys, the keys that last matched.
pub(super) struct Habits([[Keys; KEYS_MAX + 1]; KEYS_MAX + 1]);

impl Default for Habits {
    /// The keys that a script names first, which the opcode tries last.
    fn default() -> Self {
        Self(std::array::from_fn(|sigs| {
            std::array::from_fn(|keys| low_bits(sigs) << keys.saturating_sub(sigs))
        }))
    }
}

impl Habits {
    pub(super) fn guess(&self, sigs: usize, keys: usize) -> Keys {
        self.0[sigs][keys]
    }

    pub(super) fn learn(&mut self, sigs: usize, keys: usize, matched: Keys) {
        self.0[sigs][keys] = matched;
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

    #[test]
    fn pairs_are_those_of_all_matchings() {
        for keys in 1..=6usize {
            for sigs in 1..=keys {
                let guess = Habits::default().guess(sigs, keys);
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
