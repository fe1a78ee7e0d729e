//! State of a node at one time, read by RPC.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use assay_lab::process::rpc::Client;
use serde::Serialize;
use serde_json::Value;

use super::client;

/// Output of `assay top --json`.
#[derive(Debug, Serialize)]
pub(super) struct Snapshot {
    /// Version of the layout.
    pub(super) schema: u32,
    /// Time of the snapshot, seconds since 1970.
    pub(super) time_s: u64,
    #[serde(skip)]
    pub(super) at: Instant,
    pub(super) node: NodeFacts,
    pub(super) chain: Chain,
    pub(super) mempool: Mempool,
    pub(super) network: Network,
    /// In order of connection.
    pub(super) peers: Vec<Peer>,
}

#[derive(Debug, Serialize)]
pub(super) struct NodeFacts {
    pub(super) user_agent: String,
    pub(super) uptime_s: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Chain {
    pub(super) name: String,
    pub(super) blocks: u64,
    pub(super) headers: u64,
    pub(super) best_block: String,
    /// Time in the header of the best block, seconds since 1970.
    pub(super) tip_time_s: u64,
    /// Share of the chain's transactions that are verified, from 0 to 1.
    pub(super) progress: f64,
    pub(super) initial_block_download: bool,
    pub(super) disk_bytes: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Mempool {
    pub(super) transactions: u64,
    pub(super) vbytes: u64,
    pub(super) bytes: u64,
    pub(super) bytes_max: u64,
    /// BTC per 1,000 virtual bytes.
    pub(super) min_fee_btc_per_kvb: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Network {
    pub(super) inbound: u64,
    pub(super) outbound: u64,
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Peer {
    pub(super) id: u64,
    pub(super) address: String,
    pub(super) connection: String,
    pub(super) transport: String,
    pub(super) user_agent: String,
    /// In seconds; `None` before the first pong.
    pub(super) ping_s: Option<f64>,
    /// Height of the last block in common; -1 if unknown.
    pub(super) synced_blocks: i64,
    pub(super) requested_blocks: usize,
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
    /// Time of the connection, seconds since 1970.
    pub(super) connected_s: u64,
}

impl Snapshot {
    pub(super) fn take(client: &Client) -> anyhow::Result<Self> {
        let methods = [
            "getblockchaininfo",
            "getnetworkinfo",
            "getmempoolinfo",
            "getnettotals",
            "getpeerinfo",
            "uptime",
        ];
        let at = Instant::now();
        Ok(Self::of(client::call(client, methods)?, at))
    }

    fn of([chain, network, mempool, totals, peers, uptime]: [Value; 6], at: Instant) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            schema: 1,
            time_s: since_1970.as_secs(),
            at,
            node: NodeFacts {
                user_agent: text(&network, "subversion"),
                uptime_s: uptime.as_u64().unwrap_or_default(),
            },
            chain: Chain {
                name: text(&chain, "chain"),
                blocks: number(&chain, "blocks"),
                headers: number(&chain, "headers"),
                best_block: text(&chain, "bestblockhash"),
                tip_time_s: number(&chain, "time"),
                progress: fraction(&chain, "verificationprogress").unwrap_or_default(),
                initial_block_download: chain["initialblockdownload"].as_bool().unwrap_or(false),
                disk_bytes: number(&chain, "size_on_disk"),
            },
            mempool: Mempool {
                transactions: number(&mempool, "size"),
                vbytes: number(&mempool, "bytes"),
                bytes: number(&mempool, "usage"),
                bytes_max: number(&mempool, "maxmempool"),
                min_fee_btc_per_kvb: fraction(&mempool, "mempoolminfee").unwrap_or_default(),
            },
            network: Network {
                inbound: number(&network, "connections_in"),
                outbound: number(&network, "connections_out"),
                received_bytes: number(&totals, "totalbytesrecv"),
                sent_bytes: number(&totals, "totalbytessent"),
            },
            peers: peers.as_array().into_iter().flatten().map(Peer::of).collect(),
        }
    }
}

impl Peer {
    fn of(peer: &Value) -> Self {
        Self {
            id: number(peer, "id"),
            address: text(peer, "addr"),
            connection: text(peer, "connection_type"),
            transport: text(peer, "transport_protocol_type"),
            user_agent: text(peer, "subver"),
            ping_s: fraction(peer, "pingtime"),
            synced_blocks: peer["synced_blocks"].as_i64().unwrap_or(-1),
            requested_blocks: peer["inflight"].as_array().map_or(0, Vec::len),
            received_bytes: number(peer, "bytesrecv"),
            sent_bytes: number(peer, "bytessent"),
            connected_s: number(peer, "conntime"),
        }
    }
}

fn text(object: &Value, name: &str) -> String {
    object[name].as_str().unwrap_or_default().to_owned()
}

fn number(object: &Value, name: &str) -> u64 {
    object[name].as_u64().unwrap_or_default()
}

fn fraction(object: &Value, name: &str) -> Option<f64> {
    object[name].as_f64()
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A snapshot at a height, with one peer and `received` bytes.
    pub(in crate::commands::top) fn at_height(height: u64, received: u64, at: Instant) -> Snapshot {
        let mut snapshot = Snapshot::of(
            [
                json!({"chain": "regtest", "blocks": height, "headers": 1000, "bestblockhash": "00ab",
                    "time": 1_700_000_000, "verificationprogress": 0.5, "initialblockdownload": true,
                    "size_on_disk": 5_000_000}),
                json!({"subversion": "/Satoshi:31.0.0/", "connections_in": 1, "connections_out": 0}),
                json!({"size": 3, "bytes": 700, "usage": 4000, "maxmempool": 300_000_000,
                    "mempoolminfee": 0.000_001}),
                json!({"totalbytesrecv": received, "totalbytessent": 10}),
                json!([{"id": 7, "addr": "127.0.0.1:1", "connection_type": "inbound",
                    "transport_protocol_type": "v2", "subver": "/other:1/\u{1b}[2J", "synced_blocks": -1,
                    "inflight": [5, 6], "bytesrecv": received, "bytessent": 10, "conntime": 1}]),
                json!(90),
            ],
            at,
        );
        snapshot.time_s = 1_700_000_600;
        snapshot
    }

    #[test]
    fn fields_of_core_are_found() {
        let snapshot = at_height(500, 1_000_000, Instant::now());
        assert_eq!((snapshot.chain.blocks, snapshot.chain.headers), (500, 1000));
        assert_eq!((snapshot.mempool.transactions, snapshot.node.uptime_s), (3, 90));
        let peer = &snapshot.peers[0];
        assert_eq!((peer.requested_blocks, peer.synced_blocks, peer.ping_s), (2, -1, None));
        let text = serde_json::to_string(&snapshot).unwrap();
        assert!(text.starts_with(r#"{"schema":1,"time_s":1700000600,"node":{"#), "{text}");
    }
}
