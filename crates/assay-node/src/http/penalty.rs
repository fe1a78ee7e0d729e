//! Delay after wrong passwords, per client address.
//!
//! Each wrong password delays the checks of later passwords from its address (IPv6: its /64), including right ones.
//! Parallel guessing, or disconnecting before the response, is therefore no faster. The delay is limited and no
//! client is rejected, so other users of the address still get in. Connections that have authenticated once, and
//! other addresses, do not wait.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use assay_electrum::address::customer;

/// Delay per wrong password (Bitcoin Core: 250 ms, `httprpc.cpp`).
const DELAY: Duration = Duration::from_millis(250);
/// Maximum delay. An address has at most about 128 connections and so at most 64 guesses a second, as many as
/// Core's 16 threads allow to all addresses together.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Maximum number of tracked addresses. Beyond it, a client waits only for the response to its own wrong password.
const ADDRESSES_MAX: usize = 4096;

/// End of the delay by address.
#[derive(Debug, Default)]
pub(super) struct Penalties(Mutex<HashMap<IpAddr, Instant>>);

impl Penalties {
    /// Delay before a password of this address is checked.
    pub(super) fn wait(&self, peer: IpAddr, now: Instant) -> Duration {
        let until = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let until = until.get(&customer(peer)).copied();
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// Records a wrong password; returns the delay of its response.
    pub(super) fn add(&self, peer: IpAddr, now: Instant) -> Duration {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ADDRESSES_MAX {
            known.retain(|_, until| *until > now);
        }
        let address = customer(peer);
        if known.len() >= ADDRESSES_MAX && !known.contains_key(&address) {
            return DELAY;
        }
        let until = known.entry(address).or_insert(now);
        *until = ((*until).max(now) + DELAY).min(now + WAIT_MAX);
        *until - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn wrong_passwords_delay_their_address() {
        let (penalties, now) = (Penalties::default(), Instant::now());
        let (guesser, neighbour) = (ip("2001:db8:1:2::1"), ip("2001:db8:1:2::ffff"));
        assert_eq!(penalties.wait(guesser, now), Duration::ZERO);
        assert_eq!(penalties.add(guesser, now), DELAY);
        assert_eq!(penalties.add(neighbour, now), 2 * DELAY);
        assert_eq!(penalties.wait(neighbour, now), 2 * DELAY);
        assert_eq!(penalties.wait(neighbour, now + DELAY), DELAY);
        assert_eq!(penalties.wait(neighbour, now + 2 * DELAY), Duration::ZERO);
        assert_eq!(penalties.wait(ip("2001:db8:1:3::1"), now), Duration::ZERO);
    }

    #[test]
    fn delay_is_bounded() {
        let (penalties, now) = (Penalties::default(), Instant::now());
        for _ in 0..1000 {
            assert!(penalties.add(ip("10.0.0.1"), now) <= WAIT_MAX);
        }
        assert_eq!(penalties.wait(ip("10.0.0.1"), now), WAIT_MAX);
    }

    #[test]
    fn tracked_addresses_are_bounded() {
        let (penalties, now) = (Penalties::default(), Instant::now());
        let peer = |number: u32| IpAddr::V4((0x0a00_0000 + number).into());
        for number in 0..2 * ADDRESSES_MAX as u32 {
            assert_eq!(penalties.add(peer(number), now), DELAY);
        }
        assert_eq!(penalties.0.lock().unwrap().len(), ADDRESSES_MAX);
        penalties.add(peer(0), now + WAIT_MAX);
        assert_eq!(penalties.0.lock().unwrap().len(), 1);
    }
}
