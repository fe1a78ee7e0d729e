//! What wrong passwords cost: time, to those who send them.
//!
//! Each is answered after a delay, and those of one address (IPv6: one /64) one after the other, so that guessing does not go faster in parallel.
//! An answer that is delayed occupies a connection. So few of them wait at a time, and when an address has its
//! share of them, its passwords are not looked at until one has been answered: neither a right nor a wrong one, or whoever guesses would
//! learn which it was without the delay. Connections over which a right password came are not concerned, and neither are other
//! addresses.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use assay_electrum::address::customer;

/// Wrong passwords cost this much time each (Bitcoin Core: 250 ms, `httprpc.cpp`).
const DELAY: Duration = Duration::from_millis(250);
/// Delayed answers of one address, and of all.
const PER_ADDRESS_MAX: usize = 8;
const ALL_MAX: usize = 64;
/// Addresses that are remembered although none of their answers is delayed.
const ADDRESSES_MAX: usize = 4096;

/// Those who sent wrong passwords lately.
#[derive(Debug, Default)]
pub(super) struct Penalties {
    guessers: Mutex<Guessers>,
}

#[derive(Debug, Default)]
struct Guessers {
    by_address: HashMap<IpAddr, Guesser>,
    /// Answers that are delayed.
    waiting: usize,
}

#[derive(Debug)]
struct Guesser {
    waiting: usize,
    /// When the last of its answers is due.
    due: Instant,
}

/// A delayed answer; dropping it makes room for another.
#[derive(Debug)]
pub(super) struct Delay<'a> {
    penalties: &'a Penalties,
    address: IpAddr,
    /// How long to wait.
    pub(super) time: Duration,
}

impl Penalties {
    /// Whether passwords of this address are looked at.
    pub(super) fn allow(&self, peer: IpAddr, now: Instant) -> bool {
        let guessers = self.lock();
        guessers.by_address.get(&customer(peer)).is_none_or(|guesser| {
            // Without a delayed answer it is one that was turned away, for as long as the delay would have taken.
            if guesser.waiting == 0 {
                guesser.due <= now
            } else {
                guesser.waiting < PER_ADDRESS_MAX
            }
        })
    }

    /// A wrong password came. `None` where so many answers are delayed already that this one must not be given.
    pub(super) fn delay(&self, peer: IpAddr, now: Instant) -> Option<Delay<'_>> {
        let address = customer(peer);
        let mut guessers = self.lock();
        let Guessers { by_address, waiting } = &mut *guessers;
        if by_address.len() >= ADDRESSES_MAX {
            by_address.retain(|_, guesser| guesser.waiting > 0 || guesser.due > now);
        }
        let is_full = *waiting >= ALL_MAX;
        if is_full && by_address.len() >= ADDRESSES_MAX {
            return None;
        }
        let guesser = by_address.entry(address).or_insert(Guesser { waiting: 0, due: now });
        guesser.due = guesser.due.max(now);
        if guesser.waiting >= PER_ADDRESS_MAX {
            return None;
        }
        guesser.due += DELAY;
        if is_full {
            return None;
        }
        guesser.waiting += 1;
        *waiting += 1;
        Some(Delay { penalties: self, address, time: guesser.due - now })
    }

    fn lock(&self) -> MutexGuard<'_, Guessers> {
        // Whatever panicked, the counts were changed in one go.
        self.guessers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Delay<'_> {
    fn drop(&mut self) {
        let mut guessers = self.penalties.lock();
        guessers.waiting -= 1;
        if let Some(guesser) = guessers.by_address.get_mut(&self.address) {
            guesser.waiting -= 1;
            if guesser.waiting == 0 {
                guessers.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn wrong_passwords_of_one_address_wait_for_one_another() {
        let (penalties, now) = (Penalties::default(), Instant::now());
        let first = penalties.delay(ip("10.0.0.1"), now).unwrap();
        let second = penalties.delay(ip("10.0.0.1"), now).unwrap();
        let other = penalties.delay(ip("10.0.0.2"), now).unwrap();
        assert_eq!([first.time, second.time, other.time], [DELAY, 2 * DELAY, DELAY]);
        drop((first, second, other));
        assert!(penalties.lock().by_address.is_empty());
        assert_eq!(penalties.lock().waiting, 0);
    }

    #[test]
    fn an_address_with_its_share_is_not_heard_and_others_are() {
        let (penalties, now) = (Penalties::default(), Instant::now());
        let network = "2001:db8:1:2::";
        let all: Vec<_> = (0..PER_ADDRESS_MAX)
            .map(|number| {
                let peer = ip(&format!("{network}{number:x}"));
                assert!(penalties.allow(peer, now));
                penalties.delay(peer, now).unwrap()
            })
            .collect();
        let next = ip("2001:db8:1:2::ffff");
        assert!(!penalties.allow(next, now) && penalties.delay(next, now).is_none());
        assert!(penalties.allow(ip("2001:db8:1:3::1"), now));
        drop(all);
        assert!(penalties.allow(next, now));
    }

    #[test]
    fn many_addresses_delay_no_more_than_all_may() {
        let (penalties, now) = (Penalties::default(), Instant::now());
        let peer = |number: u32| IpAddr::V4((0x0a00_0000 + number).into());
        let all: Vec<_> =
            (0..ALL_MAX as u32).map(|n| penalties.delay(peer(n), now).unwrap()).collect();
        // Whoever comes now is not delayed, and not heard for the same time.
        let late = peer(1000);
        assert!(penalties.allow(late, now) && penalties.delay(late, now).is_none());
        assert!(!penalties.allow(late, now) && penalties.allow(late, now + DELAY));
        for number in 0..10 * ADDRESSES_MAX as u32 {
            assert!(penalties.delay(peer(2000 + number), now).is_none());
        }
        assert!(penalties.lock().by_address.len() <= ADDRESSES_MAX);
        drop(all);
        assert!(penalties.delay(peer(5), now).is_some());
    }
}
