//! Eviction of an inbound peer when all inbound slots are taken (Core `node/eviction.cpp`).
//!
//! Some peers are protected for each of several properties that are hard to fake: an attacker has to be better than
//! all others in every one. Of the rest, the largest address group loses its youngest peer.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use assay_wire::p2p::NetworkKind;

use super::P2p;
use super::peers::Peer;
use super::permissions::Permissions;

#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is another merit")]
struct Candidate {
    id: u64,
    connected_us: u64,
    /// `None` before the first pong.
    ping_min: Option<Duration>,
    /// Last useful block, seconds since 1970; 0 for never.
    block_at_s: u64,
    /// Last admitted transaction, seconds since 1970; 0 for never.
    tx_at_s: u64,
    /// True if the peer offers the desired services.
    has_services: bool,
    relays_txs: bool,
    /// Keyed hash of the address group, so that attackers cannot choose protected groups.
    group: u64,
    is_discouraged: bool,
    is_local: bool,
    network: NetworkKind,
}

impl P2p {
    /// Disconnects one peer to make room; `false` if no peer can be evicted. With `relays_txs` only peers with
    /// transaction relay are candidates; `kept` stays.
    pub(super) fn evict(&self, relays_txs: bool, kept: Option<u64>) -> bool {
        let peers = self.peers.list();
        let candidates = peers.iter().filter(|peer| {
            peer.connection.is_inbound()
                && !peer.outbox.is_closed()
                && !peer.permissions.has(Permissions::NO_BAN)
                && Some(peer.id) != kept
                && (!relays_txs || peer.relays_txs())
        });
        let chosen = choose(candidates.map(|peer| self.candidate(peer)).collect());
        let Some(peer) = peers.iter().find(|peer| Some(peer.id) == chosen) else { return false };
        net!(
            "selected {} connection for eviction, disconnecting peer={}",
            peer.connection.name(),
            peer.id
        );
        peer.close();
        true
    }

    /// True if a peer may have transaction relay after its handshake; evicts another one at the limit (Core
    /// `net_processing.cpp`, `MaybeDisconnectForTxRelayCapacity`).
    pub(super) fn has_room_for_relay(&self, peer: &Peer, command: &str, kept: Option<u64>) -> bool {
        if !peer.connection.is_inbound() || !peer.relays_txs() {
            return true;
        }
        let peers = self.peers.list();
        let count = peers.iter().filter(|peer| {
            peer.connection.is_inbound() && peer.relays_txs() && !peer.outbox.is_closed()
        });
        let has_room =
            count.count() <= self.peers.config.inbound_relay_max() || self.evict(true, kept);
        if !has_room {
            net!(
                "failed to find a tx-relaying eviction candidate - connection dropped after {command} message, peer={}",
                peer.id
            );
        }
        has_room
    }

    fn candidate(&self, peer: &Peer) -> Candidate {
        let facts = peer.facts();
        let host = peer.address.host;
        let wanted = self.peers.desirable_services(facts.services);
        Candidate {
            id: peer.id,
            connected_us: peer.connected_us,
            ping_min: facts.ping_time_min,
            block_at_s: peer.traffic.block_at_s.load(Relaxed),
            tx_at_s: peer.traffic.tx_at_s.load(Relaxed),
            has_services: facts.services & wanted == wanted,
            relays_txs: peer.relays_txs(),
            group: self.addresses.group_name(&host),
            is_discouraged: peer.is_discouraged,
            is_local: host.is_local(),
            network: peer.network(),
        }
    }
}

/// Selects the peer to evict; all candidates are inbound and lack `noban`.
fn choose(mut candidates: Vec<Candidate>) -> Option<u64> {
    let all = |_: &Candidate| true;
    keep(&mut candidates, GROUPS_KEPT, |one| one.group, all);
    keep(&mut candidates, PINGS_KEPT, quickness, all);
    keep(&mut candidates, TX_SENDERS_KEPT, |one| (one.tx_at_s, one.relays_txs, age(one)), all);
    keep(
        &mut candidates,
        BLOCK_PEERS_KEPT,
        |one| (!one.relays_txs, one.block_at_s, one.has_services, age(one)),
        |one| !one.relays_txs && one.has_services,
    );
    keep(
        &mut candidates,
        BLOCK_SENDERS_KEPT,
        |one| (one.block_at_s, one.has_services, age(one)),
        all,
    );
    keep_half(&mut candidates);
    if candidates.iter().any(|one| one.is_discouraged) {
        candidates.retain(|one| one.is_discouraged);
    }
    // Youngest first, also within each group.
    candidates.sort_by_key(age);
    let mut groups: BTreeMap<u64, Vec<Candidate>> = BTreeMap::new();
    for one in candidates {
        groups.entry(one.group).or_default().push(one);
    }
    let largest = groups.values().max_by_key(|group| (group.len(), group[0].connected_us))?;
    Some(largest[0].id)
}

/// Protects the `count` best candidates that `may_keep` admits.
fn keep<M: Ord>(
    candidates: &mut Vec<Candidate>,
    count: usize,
    merit: impl Fn(&Candidate) -> M,
    may_keep: impl Fn(&Candidate) -> bool,
) {
    candidates.sort_by_key(merit);
    let mut position = 0;
    let first_kept = candidates.len().saturating_sub(count);
    candidates.retain(|one| {
        position += 1;
        position <= first_kept || !may_keep(one)
    });
}

/// Protects half of the rest: up to half of these slots for slower or rarer networks, the others for the longest uptime.
fn keep_half(candidates: &mut Vec<Candidate>) {
    let all = candidates.len();
    let half = all / 2;
    let by_network_max = half / 2;
    let mut networks =
        RARE.map(|network| (network, candidates.iter().filter(|one| network.has(one)).count()));
    // Smaller networks first; unused slots pass to the others.
    networks.sort_by_key(|(_, count)| *count);
    let mut kept = 0;
    while kept < by_network_max {
        let present = networks.iter().filter(|(_, count)| *count > 0).count();
        if present == 0 {
            break;
        }
        let each = ((by_network_max - kept) / present).max(1);
        let before_round = kept;
        for (network, left) in &mut networks {
            if *left == 0 {
                continue;
            }
            let before = candidates.len();
            keep(candidates, each, |one| (network.has(one), age(one)), |one| network.has(one));
            let taken = before - candidates.len();
            kept += taken;
            if kept >= by_network_max {
                break;
            }
            *left -= taken;
        }
        if kept == before_round {
            break;
        }
    }
    keep(candidates, half - (all - candidates.len()), age, |_| true);
}

/// Higher for longer connections.
fn age(one: &Candidate) -> std::cmp::Reverse<u64> {
    std::cmp::Reverse(one.connected_us)
}

/// Higher for faster pongs; lowest without a pong.
fn quickness(one: &Candidate) -> std::cmp::Reverse<Duration> {
    std::cmp::Reverse(one.ping_min.unwrap_or(Duration::MAX))
}

/// Networks that the other criteria disadvantage.
#[derive(Clone, Copy, Debug)]
enum Rare {
    Network(NetworkKind),
    ThisMachine,
}

impl Rare {
    fn has(self, one: &Candidate) -> bool {
        match self {
            Self::Network(network) => one.network == network,
            Self::ThisMachine => one.is_local,
        }
    }
}

const RARE: [Rare; 4] = [
    Rare::Network(NetworkKind::Cjdns),
    Rare::Network(NetworkKind::I2p),
    Rare::ThisMachine,
    Rare::Network(NetworkKind::Onion),
];
/// Protected peers per criterion (Core `node/eviction.cpp`, `SelectNodeToEvict`).
const GROUPS_KEPT: usize = 4;
const PINGS_KEPT: usize = 8;
const TX_SENDERS_KEPT: usize = 4;
const BLOCK_PEERS_KEPT: usize = 8;
const BLOCK_SENDERS_KEPT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Peers in different groups, without protection; the highest id is the youngest.
    fn strangers(count: u64) -> Vec<Candidate> {
        (0..count)
            .map(|id| Candidate {
                id,
                connected_us: 1000 + id,
                ping_min: None,
                block_at_s: 0,
                tx_at_s: 0,
                has_services: false,
                relays_txs: true,
                group: id,
                is_discouraged: false,
                is_local: false,
                network: NetworkKind::Ipv4,
            })
            .collect()
    }

    /// True if none of these is evicted, for any change to the others.
    fn stay(candidates: &[Candidate], ids: impl IntoIterator<Item = u64>) -> bool {
        let mut left = candidates.to_vec();
        let ids: Vec<u64> = ids.into_iter().collect();
        while let Some(id) = choose(left.clone()) {
            if ids.contains(&id) {
                return false;
            }
            // Protected peers are evicted once the others are gone.
            left.retain(|one| one.id != id);
            if left.len() < 29 {
                break;
            }
        }
        true
    }

    #[test]
    fn protects_all_of_few_peers() {
        for count in 0..=20 {
            assert_eq!(choose(strangers(count)), None, "{count}");
        }
        assert!(choose(strangers(21)).is_some());
    }

    /// Sets a protected property.
    type Give = fn(&mut Candidate);

    #[test]
    fn each_criterion_protects_peers() {
        let mut peers = strangers(60);
        let merits: [(usize, Give); 4] = [
            (8, |one| one.ping_min = Some(Duration::from_millis(1))),
            (4, |one| one.tx_at_s = 5),
            (4, |one| one.block_at_s = 5),
            (8, |one| (one.relays_txs, one.has_services) = (false, true)),
        ];
        let mut first = 30;
        for (count, give) in merits {
            peers[first..first + count].iter_mut().for_each(give);
            first += count;
        }
        assert!(stay(&peers, 30..54));
        // The four highest groups.
        peers[20].group = 1 << 40;
        assert!(stay(&peers, [20]));
    }

    #[test]
    fn evicts_the_youngest_of_the_largest_group() {
        let mut peers = strangers(60);
        for one in &mut peers[50..] {
            one.group = 7;
        }
        assert_eq!(choose(peers.clone()), Some(59));
        // Misbehaving peers go first at any age.
        peers[30].is_discouraged = true;
        assert_eq!(choose(peers), Some(30));
    }

    #[test]
    fn protects_rare_networks() {
        let mut peers = strangers(20);
        peers[19].network = NetworkKind::Onion;
        peers[18].network = NetworkKind::I2p;
        peers[17].is_local = true;
        keep_half(&mut peers);
        let mut left: Vec<u64> = peers.iter().map(|one| one.id).collect();
        left.sort_unstable();
        // Of ten slots three are for them, the others for the oldest.
        assert_eq!(left, (7..17).collect::<Vec<_>>());
        let mut peers = strangers(20);
        peers[10..].iter_mut().for_each(|one| one.network = NetworkKind::Onion);
        keep_half(&mut peers);
        let onions = peers.iter().filter(|one| one.network == NetworkKind::Onion).count();
        assert_eq!((peers.len(), onions), (10, 5), "no more than half of the half");
    }
}
