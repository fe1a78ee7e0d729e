//! Methods: the table with their versions and parameters, and their implementations.

mod blocks;
mod mempool;
mod scripts;
mod server;
mod transactions;

use std::sync::Arc;

use super::Shared;
use super::params::Params;
use super::protocol::{CallError, Code, Out, RpcError, Version};
use super::session::Session;
use super::snapshot::Snapshot;
use crate::mempool::Mempool;
use Place::{Here, HereIfAtOnce, Worker};

pub(super) struct Call<'a> {
    pub(super) shared: &'a Shared,
    pub(super) session: &'a Session,
    pub(super) version: Version,
    pub(super) params: Params<'a>,
    pub(super) pace: Pace,
}

/// Blocking behaviour of a call: waiting for disk, node or other threads, and long work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// The call may block.
    Any,
    /// The call fails with [`CallError::NotAtOnce`] instead of blocking.
    AtOnce,
}

/// Mempool entries per non-blocking call.
const ENTRIES_AT_ONCE_MAX: usize = 256;

impl Call<'_> {
    /// Confirmed part of the published state.
    fn snapshot(&self) -> Result<Arc<Snapshot>, CallError> {
        self.read(|snapshot, _| Arc::clone(snapshot))
    }

    /// Reads mempool and index of the same state ([`super::snapshot::Published::read`]).
    fn read<R>(&self, read: impl FnOnce(&Arc<Snapshot>, &Mempool) -> R) -> Result<R, CallError> {
        match self.pace {
            Pace::Any => self.shared.published.read(read).ok_or_else(|| not_ready().into()),
            Pace::AtOnce => self.shared.published.read_at_once(read).ok_or(CallError::NotAtOnce),
        }
    }

    /// Maximum entries of a history or list of outputs.
    fn entries_max(&self) -> usize {
        let max = self.shared.config.limits.entries_max;
        if self.pace == Pace::AtOnce { max.min(ENTRIES_AT_ONCE_MAX) } else { max }
    }

    /// Fails a call that must not block.
    fn may_wait(&self) -> Result<(), CallError> {
        if self.pace == Pace::AtOnce { Err(CallError::NotAtOnce) } else { Ok(()) }
    }
}

fn not_ready() -> RpcError {
    RpcError::daemon("the index is not ready yet")
}

/// Parses the parameters of a call to `method` and writes its result. After an error the output is invalid.
pub(super) fn answer(
    (shared, session): (&Shared, &Session),
    pace: Pace,
    method: &Method,
    params: Option<&str>,
    out: &mut Out,
) -> Result<(), CallError> {
    let version = session.version();
    let params = Params::read(params, method.params, method.is_open())?;
    let call = Call { shared, session, version, params, pace };
    let start = out.len();
    (method.run)(&call, out).map_err(|error| match error {
        // This error code is new in 1.7; earlier, ElectrumX and others used this one.
        CallError::Rpc(error)
            if error.code == Code::HistoryTooLarge && version < Version(1, 7, 0) =>
        {
            CallError::Rpc(RpcError { code: Code::BadRequest, ..error })
        }
        error => error,
    })?;
    let max = shared.config.limits.response_bytes_max;
    if out.len() - start > max {
        let message = format!("the answer is larger than {max} bytes");
        return Err(RpcError::new(Code::Excessive, message).into());
    }
    Ok(())
}

/// Thread that processes a request of a light client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The receiving thread: the call never reads from disk or waits for the node.
    Here,
    /// The receiving thread if the call is short and does not block; otherwise a worker. The call mostly reads from memory and
    /// changes nothing.
    HereIfAtOnce,
    Worker,
}

/// Names of parameters, of which the given number is mandatory.
pub(super) type ParamNames = (&'static [&'static str], usize);

type Run = fn(&Call<'_>, &mut Out) -> Result<(), CallError>;

pub(super) struct Method {
    pub(super) name: &'static str,
    run: Run,
    pub(super) place: Place,
    pub(super) params: ParamNames,
    /// First version with the method, and first version without it again.
    pub(super) since: Version,
    until: Option<Version>,
    /// True if notifications may follow, which must not overtake the response.
    pub(super) subscribes: bool,
}

impl Method {
    const fn new(name: &'static str, run: Run, place: Place, params: ParamNames) -> Self {
        Self { name, run, place, params, since: Version::MIN, until: None, subscribes: false }
    }

    const fn since(self, since: Version) -> Self {
        Self { since, ..self }
    }

    const fn until(self, until: Version) -> Self {
        Self { until: Some(until), ..self }
    }

    const fn subscribes(self) -> Self {
        Self { subscribes: true, ..self }
    }

    /// True if extra parameters are ignored.
    pub(super) fn is_open(&self) -> bool {
        self.name == "server.version"
    }

    pub(super) fn is_in(&self, version: Version) -> bool {
        version >= self.since && self.until.is_none_or(|until| version < until)
    }
}

const V1_4_2: Version = Version(1, 4, 2);
const V1_6: Version = Version(1, 6, 0);
const V1_7: Version = Version(1, 7, 0);

const NONE: ParamNames = (&[], 0);
const HEADER: ParamNames = (&["height", "cp_height"], 1);
const NUMBER: ParamNames = (&["number"], 1);
const MODE: ParamNames = (&["number", "mode"], 1);
const RAW: ParamNames = (&["raw_tx"], 1);
const PACKAGE: ParamNames = (&["raw_txs", "verbose"], 1);
const TX: ParamNames = (&["tx_hash", "verbose"], 1);
const TX_HEIGHT: ParamNames = (&["tx_hash", "height"], 2);
const TX_PLACE: ParamNames = (&["height", "tx_pos", "merkle"], 2);
const RAWS: ParamNames = (&["raw_txs"], 1);
const HEADERS: ParamNames = (&["start_height", "count", "cp_height"], 2);
const HASH: ParamNames = (&["scripthash"], 1);
const SCRIPT: ParamNames = (&["scriptpubkey"], 1);
const OUTPOINT: ParamNames = (&["tx_hash", "txout_idx"], 2);
const HINTED: ParamNames = (&["tx_hash", "txout_idx", "spk_hint"], 2);
const VERSION: ParamNames = (&["client_name", "protocol_version"], 0);

/// All methods, sorted by name. A name may occur twice with different versions.
pub(super) static METHODS: &[Method] = &[
    Method::new("blockchain.block.header", blocks::header, HereIfAtOnce, HEADER),
    Method::new("blockchain.block.headers", blocks::headers, HereIfAtOnce, HEADERS),
    Method::new("blockchain.estimatefee", mempool::estimate_fee, HereIfAtOnce, NUMBER).until(V1_6),
    Method::new("blockchain.estimatefee", mempool::estimate_fee, HereIfAtOnce, MODE).since(V1_6),
    Method::new("blockchain.headers.subscribe", blocks::subscribe, Here, NONE).subscribes(),
    Method::new("blockchain.outpoint.get_status", scripts::get_outpoint_status, Worker, HINTED)
        .since(V1_7),
    Method::new("blockchain.outpoint.subscribe", scripts::outpoint_subscribe, Worker, HINTED)
        .since(V1_7)
        .subscribes(),
    Method::new("blockchain.outpoint.unsubscribe", scripts::outpoint_unsubscribe, Here, OUTPOINT)
        .since(V1_7),
    Method::new("blockchain.relayfee", mempool::relay_fee, HereIfAtOnce, NONE).until(V1_6),
    Method::new("blockchain.scripthash.get_balance", scripts::balance, HereIfAtOnce, HASH)
        .until(V1_7),
    Method::new("blockchain.scripthash.get_history", scripts::history, HereIfAtOnce, HASH)
        .until(V1_7),
    Method::new("blockchain.scripthash.get_mempool", scripts::mempool, HereIfAtOnce, HASH)
        .until(V1_7),
    Method::new("blockchain.scripthash.listunspent", scripts::unspent, HereIfAtOnce, HASH)
        .until(V1_7),
    Method::new("blockchain.scripthash.subscribe", scripts::subscribe, Worker, HASH)
        .until(V1_7)
        .subscribes(),
    Method::new("blockchain.scripthash.unsubscribe", scripts::unsubscribe, Here, HASH)
        .since(V1_4_2)
        .until(V1_7),
    Method::new("blockchain.scriptpubkey.get_balance", scripts::balance, HereIfAtOnce, SCRIPT)
        .since(V1_7),
    Method::new("blockchain.scriptpubkey.get_history", scripts::history, HereIfAtOnce, SCRIPT)
        .since(V1_7),
    Method::new("blockchain.scriptpubkey.get_mempool", scripts::mempool, HereIfAtOnce, SCRIPT)
        .since(V1_7),
    Method::new("blockchain.scriptpubkey.listunspent", scripts::unspent, HereIfAtOnce, SCRIPT)
        .since(V1_7),
    Method::new("blockchain.scriptpubkey.subscribe", scripts::subscribe, Worker, SCRIPT)
        .since(V1_7)
        .subscribes(),
    Method::new("blockchain.scriptpubkey.unsubscribe", scripts::unsubscribe, Here, SCRIPT)
        .since(V1_7),
    Method::new("blockchain.transaction.broadcast", transactions::broadcast, Worker, RAW),
    Method::new(
        "blockchain.transaction.broadcast_package",
        transactions::broadcast_package,
        Worker,
        PACKAGE,
    )
    .since(V1_6),
    Method::new("blockchain.transaction.get", transactions::get, HereIfAtOnce, TX),
    Method::new("blockchain.transaction.get_merkle", transactions::merkle, HereIfAtOnce, TX_HEIGHT),
    Method::new(
        "blockchain.transaction.id_from_pos",
        transactions::id_from_pos,
        HereIfAtOnce,
        TX_PLACE,
    ),
    Method::new("blockchain.transaction.testmempoolaccept", transactions::test, Worker, RAWS)
        .since(V1_7),
    Method::new("mempool.get_fee_histogram", mempool::fee_histogram, Here, NONE),
    Method::new("mempool.get_info", mempool::info, HereIfAtOnce, NONE).since(V1_6),
    Method::new("mempool.recent", mempool::recent, Here, NONE).since(V1_7),
    Method::new("server.add_peer", server::add_peer, Here, (&["features"], 1)),
    Method::new("server.banner", server::banner, Here, NONE),
    Method::new("server.donation_address", server::donation_address, Here, NONE),
    Method::new("server.features", server::features, HereIfAtOnce, NONE),
    Method::new("server.peers.subscribe", server::peers, Here, NONE),
    Method::new("server.ping", server::ping, Here, NONE).until(V1_7),
    Method::new("server.ping", server::ping, Here, (&["pong_len", "data"], 0)).since(V1_7),
    Method::new("server.version", server::version, Here, VERSION),
];

/// Index of the method `name` in [`METHODS`] for protocol `version`.
pub(super) fn lookup(name: &str, version: Version) -> Option<usize> {
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
