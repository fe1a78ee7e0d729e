//! Connection slots, limited per address so that one address cannot take all of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::address::customer;

/// A pool of slots. An address (IPv6: a /64) gets another one only while it holds no more than are free: a single address gets
/// half of them, and the next one half of the rest.
#[derive(Debug)]
pub struct Places {
    max: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A slot; freed on drop.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Places {
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, taken: Mutex::default() })
    }

    /// A slot for a connection of `peer`, if one is free and its address is within its share.
    pub fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let address = customer(peer);
        let mut taken = self.taken.lock();
        let Taken { total, by_address } = &mut *taken;
        let own = by_address.get(&address).copied().unwrap_or(0);
        let free = self.max - *total;
        if free == 0 || own > free {
            return None;
        }
        *total += 1;
        by_address.insert(address, own + 1);
        Some(Place { places: Arc::clone(self), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.total -= 1;
        if let Some(own) = taken.by_address.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                taken.by_address.remove(&self.address);
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

    fn all(places: &Arc<Places>, peer: &str) -> Vec<Place> {
        std::iter::from_fn(|| places.take(ip(peer))).collect()
    }

    #[test]
    fn one_address_cannot_take_all_slots() {
        let places = Places::new(256);
        let peers = ["10.0.0.1", "10.0.0.2", "2001:db8::1", "10.0.0.4"];
        let held = peers.map(|peer| all(&places, peer));
        assert_eq!(held.each_ref().map(Vec::len), [129, 64, 32, 16]);
        assert!(places.take(ip("2001:db8::2")).is_none(), "the same /64");
        assert!(places.take(ip("::ffff:10.0.0.1")).is_none(), "the same address");
        drop(held);
        assert_eq!(places.taken.lock().total, 0);
        assert!(places.taken.lock().by_address.is_empty());
    }

    #[test]
    fn never_exceeds_the_maximum() {
        for max in 0..20 {
            let places = Places::new(max);
            let held: Vec<_> = (1..=64).map(|n| all(&places, &format!("10.0.0.{n}"))).collect();
            assert_eq!(held.iter().map(Vec::len).sum::<usize>(), max);
        }
    }
}
