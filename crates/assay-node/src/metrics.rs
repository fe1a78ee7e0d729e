//! Prometheus metrics of the node, with the prefix `assay_node_`. The index has its own
//! ([`assay_electrum::server`]).

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use assay_electrum::prometheus::{self, Text};
use assay_engine::{Engine, Gauges, Stage};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::error::NodeError;
use crate::p2p::{Connection, P2p, Peer};

/// Sources of the metrics. The endpoint answers from the start, with the sources available so far.
pub(crate) struct Metrics {
    chain: &'static str,
    start_s: u64,
    engine: OnceLock<Arc<Engine>>,
    network: OnceLock<Arc<P2p>>,
}

impl Metrics {
    pub(crate) fn new(chain: &'static str) -> Arc<Self> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (engine, network) = (OnceLock::new(), OnceLock::new());
        Arc::new(Self { chain, start_s: since_1970.as_secs(), engine, network })
    }

    pub(crate) fn set_engine(&self, engine: Arc<Engine>) {
        // Set once per node.
        let _ = self.engine.set(engine);
    }

    pub(crate) fn set_network(&self, network: Arc<P2p>) {
        let _ = self.network.set(network);
    }

    /// Serves until `stopping`; returns the address, with port 0 resolved.
    pub(crate) fn serve(
        self: &Arc<Self>,
        address: SocketAddr,
        runtime: &Runtime,
        stopping: watch::Receiver<bool>,
    ) -> Result<SocketAddr, NodeError> {
        if !address.ip().to_canonical().is_loopback() {
            return Err(NodeError::MetricsExposed { address });
        }
        let failed = |source| NodeError::MetricsBind { address, source };
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let metrics = Arc::clone(self);
        runtime.spawn(prometheus::serve(listener, Arc::new(move || metrics.render()), stopping));
        tracing::info!("Serving metrics on http://{bound}/metrics");
        Ok(bound)
    }

    fn render(&self) -> String {
        let mut text = Text::new("assay_node");
        text.head("info", "gauge", "Always 1; its labels say what runs.");
        let (version, chain) = (env!("CARGO_PKG_VERSION"), self.chain);
        text.line("info", &format!("{{version=\"{version}\",chain=\"{chain}\"}}"), 1);
        let help = "When the node was started, seconds since 1970.";
        text.one("start_time_seconds", "gauge", help, self.start_s);
        if let Some(engine) = self.engine.get() {
            engine_metrics(&engine.gauges(), &mut text);
        }
        if let Some(network) = self.network.get() {
            peer_metrics(network, &mut text);
            message_metrics(network, &mut text);
        }
        text.into_string()
    }
}

fn engine_metrics(gauges: &Gauges, text: &mut Text) {
    let Gauges { tip, done, coins, mempool, .. } = gauges;
    let is_syncing = u64::from(gauges.is_initial_block_download);
    let header_height = u64::from(gauges.header_height);
    let tip_time = u64::from(tip.time);
    let rows = [
        ("blocks", "Height of the tip.", u64::from(tip.height)),
        ("headers", "Height of the best header.", header_height),
        ("tip_time_seconds", "Time in the header of the tip, since 1970.", tip_time),
        ("chain_transactions", "Transactions of the chain up to the tip.", tip.chain_txs),
        ("initial_block_download", "1 while the chain is being caught up with.", is_syncing),
        ("archive_bytes", "Bytes of block and undo files.", gauges.archive_bytes),
        ("connected_blocks_total", "Blocks connected since the start.", done.blocks),
        ("connected_transactions_total", "Transactions in them.", done.txs),
        ("connected_bytes_total", "Bytes of them.", done.bytes),
        ("ready_blocks", "Blocks in memory that wait to be connected.", gauges.ready.0 as u64),
        ("ready_bytes", "Bytes of these.", gauges.ready.1 as u64),
        ("unverified_blocks", UNVERIFIED, gauges.unverified.0 as u64),
        ("unverified_bytes", "Bytes of these with what they spend.", gauges.unverified.1 as u64),
        ("coins_cache_bytes", "Bytes of the coins cache.", coins.bytes as u64),
        ("coins_cache_bytes_max", "Its limit.", coins.bytes_max as u64),
        ("coins_cache_coins", "Unspent coins in it.", coins.coins as u64),
        ("coins_cache_changes", "Changes that the next flush writes.", coins.dirty as u64),
        ("coins_disk_bytes", "Bytes of coins on disk.", coins.bytes_on_disk),
        ("coins_disk_coins", "Coins on disk, about.", coins.coins_on_disk),
        ("mempool_transactions", "Unconfirmed transactions.", mempool.size as u64),
        ("mempool_vbytes", "Their virtual size.", mempool.bytes),
        ("mempool_bytes", "Memory charged for them.", mempool.usage),
        ("mempool_bytes_max", "Its limit.", mempool.max_bytes),
        (MIN_FEE, "Least fee rate that is admitted now.", mempool.min_fee_sat_per_kvb),
        ("mempool_unbroadcast", UNBROADCAST, mempool.unbroadcast as u64),
    ];
    for (name, help, value) in rows {
        text.one(name, if name.ends_with("_total") { "counter" } else { "gauge" }, help, value);
    }
    let name = "stage_seconds_total";
    text.head(name, "counter", STAGES);
    for (stage, time) in Stage::ALL.iter().zip(&done.stages) {
        text.line(name, &format!("{{stage=\"{}\"}}", stage.name()), time.as_secs_f64());
    }
}

fn peer_metrics(network: &P2p, text: &mut Text) {
    let peers = network.peers.list();
    text.head(
        "peers",
        "gauge",
        "Connected peers by kind of connection and version of the transport.",
    );
    for connection in Connection::ALL {
        for transport in ["detecting", "v1", "v2"] {
            let is_counted = |peer: &&Arc<Peer>| {
                peer.connection == connection && peer.transport().0 == transport
            };
            let count = peers.iter().filter(is_counted).count();
            if count > 0 || transport == "v1" {
                let kind = connection.name();
                let labels = format!("{{connection=\"{kind}\",transport=\"{transport}\"}}");
                text.line("peers", &labels, count);
            }
        }
    }
    let in_flight = |peer: &Arc<Peer>| network.sync.facts(peer.id).in_flight.len();
    let requested: usize = peers.iter().map(in_flight).sum();
    text.one("requested_blocks", "gauge", "Blocks that peers were asked for.", requested);
    let totals = network.peers.totals();
    for (name, help, value) in [
        ("received_bytes_total", "Bytes from peers.", totals.received_bytes()),
        ("sent_bytes_total", "Bytes to peers.", totals.sent_bytes()),
    ] {
        text.one(name, "counter", help, value);
    }
}

fn message_metrics(network: &P2p, text: &mut Text) {
    let messages = network.peers.totals().messages();
    for (name, was_received, what) in
        [("received_messages", true, "from"), ("sent_messages", false, "to")]
    {
        let list = messages.list(was_received);
        let (count, bytes) = (format!("{name}_total"), format!("{name}_bytes_total"));
        text.head(&count, "counter", &format!("Messages {what} peers by kind."));
        for of in &list {
            text.line(&count, &format!("{{message=\"{}\"}}", of.name), of.messages);
        }
        text.head(&bytes, "counter", &format!("Bytes of messages {what} peers by kind."));
        for of in &list {
            text.line(&bytes, &format!("{{message=\"{}\"}}", of.name), of.bytes);
        }
    }
}

const UNVERIFIED: &str = "Blocks whose coins have moved and whose scripts are being verified.";
const MIN_FEE: &str = "mempool_min_fee_satoshis_per_kilovbyte";
const UNBROADCAST: &str = "Transactions that no peer has fetched.";
const STAGES: &str = "Time that blocks took by stage. check and archive: by those who bring blocks, several at once; the others: by the \
                      thread that connects them.";
