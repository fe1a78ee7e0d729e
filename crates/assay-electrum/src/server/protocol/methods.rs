//! Table of methods, with their versions and parameters.

use super::Version;

/// Implementation of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::server) enum Kind {
    BlockHeader,
    BlockHeaders,
    EstimateFee,
    HeadersSubscribe,
    RelayFee,
    ScriptBalance,
    ScriptHistory,
    ScriptMempool,
    ScriptUnspent,
    ScriptSubscribe,
    ScriptUnsubscribe,
    OutpointSubscribe,
    OutpointStatus,
    OutpointUnsubscribe,
    Broadcast,
    BroadcastPackage,
    Transaction,
    TransactionMerkle,
    IdFromPos,
    TestMempoolAccept,
    FeeHistogram,
    MempoolInfo,
    MempoolRecent,
    AddPeer,
    Banner,
    DonationAddress,
    Features,
    Peers,
    Ping,
    Version,
}

impl Kind {
    /// Thread for requests of a light client.
    pub(in crate::server) fn place(self) -> Place {
        if self.is_immediate() {
            Place::Here
        } else if self.may_be_immediate() {
            Place::HereIfAtOnce
        } else {
            Place::Worker
        }
    }

    /// True if it mostly reads from memory and changes nothing.
    fn may_be_immediate(self) -> bool {
        matches!(
            self,
            Self::BlockHeader
                | Self::BlockHeaders
                | Self::EstimateFee
                | Self::RelayFee
                | Self::ScriptBalance
                | Self::ScriptHistory
                | Self::ScriptMempool
                | Self::ScriptUnspent
                | Self::Transaction
                | Self::TransactionMerkle
                | Self::IdFromPos
                | Self::MempoolInfo
                | Self::Features
        )
    }

    /// True if it never reads from disk or waits for the node.
    fn is_immediate(self) -> bool {
        matches!(
            self,
            Self::HeadersSubscribe
                | Self::ScriptUnsubscribe
                | Self::OutpointUnsubscribe
                | Self::FeeHistogram
                | Self::MempoolRecent
                | Self::AddPeer
                | Self::Banner
                | Self::DonationAddress
                | Self::Peers
                | Self::Ping
                | Self::Version
        )
    }

    /// True if notifications may follow, which must not overtake the response.
    pub(in crate::server) fn subscribes(self) -> bool {
        matches!(self, Self::HeadersSubscribe | Self::ScriptSubscribe | Self::OutpointSubscribe)
    }
}

/// Thread that processes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Place {
    /// The receiving thread.
    Here,
    /// The receiving thread if the call is short and does not block; otherwise a worker.
    HereIfAtOnce,
    Worker,
}

#[derive(Debug)]
pub(in crate::server) struct Method {
    pub(in crate::server) name: &'static str,
    pub(in crate::server) kind: Kind,
    pub(in crate::server) params: &'static [&'static str],
    pub(in crate::server) required: usize,
    /// First version with the method, and first version without it again.
    pub(in crate::server) since: Version,
    pub(in crate::server) until: Option<Version>,
}

impl Method {
    const fn new(
        name: &'static str,
        kind: Kind,
        params: &'static [&'static str],
        required: usize,
    ) -> Self {
        Self { name, kind, params, required, since: Version::MIN, until: None }
    }

    const fn since(self, since: Version) -> Self {
        Self { since, ..self }
    }

    const fn until(self, until: Version) -> Self {
        Self { until: Some(until), ..self }
    }

    /// True if extra parameters are ignored.
    pub(in crate::server) fn is_open(&self) -> bool {
        self.kind == Kind::Version
    }

    pub(in crate::server) fn is_in(&self, version: Version) -> bool {
        version >= self.since && self.until.is_none_or(|until| version < until)
    }
}

const V1_4_2: Version = Version(1, 4, 2);
const V1_6: Version = Version(1, 6, 0);
const V1_7: Version = Version(1, 7, 0);

/// All methods, sorted by name. A name may occur twice with different versions.
pub(in crate::server) static METHODS: &[Method] = &[
    Method::new("blockchain.block.header", Kind::BlockHeader, &["height", "cp_height"], 1),
    Method::new(
        "blockchain.block.headers",
        Kind::BlockHeaders,
        &["start_height", "count", "cp_height"],
        2,
    ),
    Method::new("blockchain.estimatefee", Kind::EstimateFee, &["number"], 1).until(V1_6),
    Method::new("blockchain.estimatefee", Kind::EstimateFee, &["number", "mode"], 1).since(V1_6),
    Method::new("blockchain.headers.subscribe", Kind::HeadersSubscribe, &[], 0),
    Method::new(
        "blockchain.outpoint.get_status",
        Kind::OutpointStatus,
        &["tx_hash", "txout_idx", "spk_hint"],
        2,
    )
    .since(V1_7),
    Method::new(
        "blockchain.outpoint.subscribe",
        Kind::OutpointSubscribe,
        &["tx_hash", "txout_idx", "spk_hint"],
        2,
    )
    .since(V1_7),
    Method::new(
        "blockchain.outpoint.unsubscribe",
        Kind::OutpointUnsubscribe,
        &["tx_hash", "txout_idx"],
        2,
    )
    .since(V1_7),
    Method::new("blockchain.relayfee", Kind::RelayFee, &[], 0).until(V1_6),
    Method::new("blockchain.scripthash.get_balance", Kind::ScriptBalance, &["scripthash"], 1)
        .until(V1_7),
    Method::new("blockchain.scripthash.get_history", Kind::ScriptHistory, &["scripthash"], 1)
        .until(V1_7),
    Method::new("blockchain.scripthash.get_mempool", Kind::ScriptMempool, &["scripthash"], 1)
        .until(V1_7),
    Method::new("blockchain.scripthash.listunspent", Kind::ScriptUnspent, &["scripthash"], 1)
        .until(V1_7),
    Method::new("blockchain.scripthash.subscribe", Kind::ScriptSubscribe, &["scripthash"], 1)
        .until(V1_7),
    Method::new("blockchain.scripthash.unsubscribe", Kind::ScriptUnsubscribe, &["scripthash"], 1)
        .since(V1_4_2)
        .until(V1_7),
    Method::new("blockchain.scriptpubkey.get_balance", Kind::ScriptBalance, &["scriptpubkey"], 1)
        .since(V1_7),
    Method::new("blockchain.scriptpubkey.get_history", Kind::ScriptHistory, &["scriptpubkey"], 1)
        .since(V1_7),
    Method::new("blockchain.scriptpubkey.get_mempool", Kind::ScriptMempool, &["scriptpubkey"], 1)
        .since(V1_7),
    Method::new("blockchain.scriptpubkey.listunspent", Kind::ScriptUnspent, &["scriptpubkey"], 1)
        .since(V1_7),
    Method::new("blockchain.scriptpubkey.subscribe", Kind::ScriptSubscribe, &["scriptpubkey"], 1)
        .since(V1_7),
    Method::new(
        "blockchain.scriptpubkey.unsubscribe",
        Kind::ScriptUnsubscribe,
        &["scriptpubkey"],
        1,
    )
    .since(V1_7),
    Method::new("blockchain.transaction.broadcast", Kind::Broadcast, &["raw_tx"], 1),
    Method::new(
        "blockchain.transaction.broadcast_package",
        Kind::BroadcastPackage,
        &["raw_txs", "verbose"],
        1,
    )
    .since(V1_6),
    Method::new("blockchain.transaction.get", Kind::Transaction, &["tx_hash", "verbose"], 1),
    Method::new(
        "blockchain.transaction.get_merkle",
        Kind::TransactionMerkle,
        &["tx_hash", "height"],
        2,
    ),
    Method::new(
        "blockchain.transaction.id_from_pos",
        Kind::IdFromPos,
        &["height", "tx_pos", "merkle"],
        2,
    ),
    Method::new(
        "blockchain.transaction.testmempoolaccept",
        Kind::TestMempoolAccept,
        &["raw_txs"],
        1,
    )
    .since(V1_7),
    Method::new("mempool.get_fee_histogram", Kind::FeeHistogram, &[], 0),
    Method::new("mempool.get_info", Kind::MempoolInfo, &[], 0).since(V1_6),
    Method::new("mempool.recent", Kind::MempoolRecent, &[], 0).since(V1_7),
    Method::new("server.add_peer", Kind::AddPeer, &["features"], 1),
    Method::new("server.banner", Kind::Banner, &[], 0),
    Method::new("server.donation_address", Kind::DonationAddress, &[], 0),
    Method::new("server.features", Kind::Features, &[], 0),
    Method::new("server.peers.subscribe", Kind::Peers, &[], 0),
    Method::new("server.ping", Kind::Ping, &[], 0).until(V1_7),
    Method::new("server.ping", Kind::Ping, &["pong_len", "data"], 0).since(V1_7),
    Method::new("server.version", Kind::Version, &["client_name", "protocol_version"], 0),
];

/// Index of the method `name` in [`METHODS`] for protocol `version`.
pub(in crate::server) fn lookup(name: &str, version: Version) -> Option<usize> {
    METHODS.iter().position(|method| method.name == name && method.is_in(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unambiguous_in_every_version() {
        assert!(METHODS.is_sorted_by_key(|method| method.name));
        for version in ["1.4", "1.4.2", "1.5", "1.6", "1.7"] {
            let version = Version::parse(version).unwrap();
            let mut names: Vec<_> =
                METHODS.iter().filter(|method| method.is_in(version)).map(|m| m.name).collect();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{version}");
        }
    }

    #[test]
    fn versions_differ_as_specified() {
        let has = |name, version| lookup(name, Version::parse(version).unwrap()).is_some();
        assert!(!has("blockchain.scripthash.unsubscribe", "1.4.1"));
        assert!(has("blockchain.scripthash.unsubscribe", "1.4.2"));
        assert!(has("blockchain.relayfee", "1.4.5") && !has("blockchain.relayfee", "1.6"));
        assert!(!has("mempool.get_info", "1.5") && has("mempool.get_info", "1.6"));
        assert!(has("blockchain.scripthash.subscribe", "1.6"));
        assert!(!has("blockchain.scripthash.subscribe", "1.7"));
        assert!(has("blockchain.scriptpubkey.subscribe", "1.7"));
        assert!(!has("blockchain.outpoint.subscribe", "1.6"));
        assert!(!has("blockchain.address.get_history", "1.4"));
    }
}
