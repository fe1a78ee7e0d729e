//! Hostile peers on a thread of their own.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use assay_report::stats::random::SplitMix64;

use super::attack::{Attack, Tip, act};
use crate::swarm::link::Link;
use crate::swarm::{self, AttackReport, Deed, Hostile, Server, Turn, source};

struct Peers {
    tip: Arc<Mutex<Tip>>,
    random: SplitMix64,
}

impl Hostile for Peers {
    type Attack = Attack;

    const RETRY: Duration = Duration::from_millis(200);
    const UNSENT_MAX: usize = 4 << 20;

    fn name(attack: Attack) -> &'static str {
        attack.name()
    }

    fn is_deaf(attack: Attack) -> bool {
        attack == Attack::Deaf
    }

    fn read(link: &mut Link) -> [u64; 2] {
        link.discard();
        [0, 0]
    }

    fn act(&mut self, turn: Turn<Attack>, out: &mut Vec<u8>) -> Deed {
        let tip = *self.tip.lock().unwrap_or_else(PoisonError::into_inner);
        act(turn.attack, turn.tick, &tip, &mut self.random, out)
    }
}

/// The running peers; dropping it stops them.
pub(crate) struct Swarm {
    stop: Arc<AtomicBool>,
    tip: Arc<Mutex<Tip>>,
    thread: Option<JoinHandle<Vec<AttackReport>>>,
}

impl Swarm {
    /// Starts `count` peers with these attacks in equal parts.
    pub(crate) fn start(
        address: SocketAddr,
        (count, attacks): (usize, &[Attack]),
        tip: Tip,
        seed: u64,
    ) -> Self {
        let (stop, tip) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(tip)));
        let peers = Peers { tip: Arc::clone(&tip), random: SplitMix64::new(seed) };
        let has_sources = source::is_possible(address);
        let server = Server { address, tls: None, has_sources };
        let swarm = swarm::Swarm::new(peers, server, count, attacks);
        let stopped = Arc::clone(&stop);
        let thread = Some(thread::spawn(move || swarm.run(&stopped)));
        Self { stop, tip, thread }
    }

    /// Sets the tip that the peers build on.
    pub(crate) fn show_tip(&self, tip: Tip) {
        *self.tip.lock().unwrap_or_else(PoisonError::into_inner) = tip;
    }

    /// Stops the peers and returns their results.
    pub(super) fn finish(mut self) -> Vec<AttackReport> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
