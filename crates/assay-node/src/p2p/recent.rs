//! Bounded memory of recent hashes and other items.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, RandomState};

/// Remembers at least the latest `count_max` hashes and at most twice as many. It keeps 64 bits of each under a
/// secret key, so that a false positive occurs once in many years.
pub(super) struct Recent {
    key: RandomState,
    young: HashSet<u64>,
    old: HashSet<u64>,
    count_max: usize,
}

impl Recent {
    pub(super) fn new(count_max: usize) -> Self {
        let key = RandomState::new();
        Self { key, young: HashSet::new(), old: HashSet::new(), count_max }
    }

    pub(super) fn insert(&mut self, hash: &impl Hash) {
        if self.young.len() >= self.count_max {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(self.key.hash_one(hash));
    }

    pub(super) fn contains(&self, hash: &impl Hash) -> bool {
        if self.young.is_empty() && self.old.is_empty() {
            return false;
        }
        let hash = self.key.hash_one(hash);
        self.young.contains(&hash) || self.old.contains(&hash)
    }

    pub(super) fn clear(&mut self) {
        self.young = HashSet::new();
        self.old = HashSet::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_hashes_are_forgotten() {
        let mut recent = Recent::new(10);
        let hash = |number: u8| [number; 32];
        for number in 0..100 {
            recent.insert(&hash(number));
            for seen in number.saturating_sub(9)..=number {
                assert!(recent.contains(&hash(seen)), "{seen} after {number}");
            }
            assert!(recent.young.len() + recent.old.len() <= 20);
        }
        assert!(!recent.contains(&hash(50)) && !recent.contains(&hash(200)));
        recent.clear();
        assert!(!recent.contains(&hash(99)));
    }
}
