//! The responses of the methods.

mod blocks;
mod mempool;
mod scripts;
mod server;
mod transactions;

use std::sync::Arc;

use super::protocol::error::CallError;
use super::protocol::methods::{Kind, Method};
use super::protocol::{Code, Out, Params, RpcError, Version};
use super::session::Session;
use super::shared::Shared;
use super::snapshot::published::Snapshot;
use crate::mempool::Mempool;

/// A call with what it needs to be answered.
pub(super) struct Call<'a> {
    pub(super) shared: &'a Shared,
    pub(super) session: &'a Session,
    pub(super) version: Version,
    pub(super) params: Params<'a>,
    /// Whether it must not wait.
    pub(super) pace: Pace,
}

/// Whether a call may wait for the disk, for the node or for other threads, and take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// It may.
    Any,
    /// It ends with [`CallError::NotAtOnce`] where it would.
    AtOnce,
}

/// Entries of the mempool that a call visits at once.
const ENTRIES_AT_ONCE_MAX: usize = 256;

impl Call<'_> {
    /// The confirmed part of what clients see now.
    fn snapshot(&self) -> Result<Arc<Snapshot>, CallError> {
        self.read(|snapshot, _| Arc::clone(snapshot))
    }

    /// Reads mempool and index of the same time ([`Published::read`]).
    fn read<R>(&self, read: impl FnOnce(&Arc<Snapshot>, &Mempool) -> R) -> Result<R, CallError> {
        match self.pace {
            Pace::Any => self.shared.published.read(read).ok_or_else(|| not_ready().into()),
            Pace::AtOnce => self.shared.published.read_at_once(read).ok_or(CallError::NotAtOnce),
        }
    }

    /// Entries that a history or list of outputs may have.
    fn entries_max(&self) -> usize {
        let max = self.shared.config.limits.entries_max;
        if self.pace == Pace::AtOnce { max.min(ENTRIES_AT_ONCE_MAX) } else { max }
    }

    /// Ends a call that must not wait.
    fn may_wait(&self) -> Result<(), CallError> {
        if self.pace == Pace::AtOnce { Err(CallError::NotAtOnce) } else { Ok(()) }
    }
}

fn not_ready() -> RpcError {
    RpcError::daemon("the index is not ready yet")
}

/// Reads the parameters of a call to `method` and writes its result. What was written is worthless
/// after an error.
pub(super) fn answer(
    (shared, session): (&Shared, &Session),
    pace: Pace,
    method: &Method,
    params: Option<&str>,
    out: &mut Out,
) -> Result<(), CallError> {
    let version = session.version();
    let params = Params::read(params, method.params, method.required, method.is_open())?;
    let call = Call { shared, session, version, params, pace };
    let start = out.len();
    dispatch(&call, method.kind, out).map_err(|error| match error {
        // The number is new in 1.7; before, ElectrumX and others said this.
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

fn dispatch(call: &Call<'_>, kind: Kind, out: &mut Out) -> Result<(), CallError> {
    match kind {
        Kind::BlockHeader => blocks::header(call, out),
        Kind::BlockHeaders => blocks::headers(call, out),
        Kind::HeadersSubscribe => blocks::subscribe(call, out),
        Kind::ScriptBalance => scripts::balance(call, out),
        Kind::ScriptHistory => scripts::history(call, out),
        Kind::ScriptMempool => scripts::mempool(call, out),
        Kind::ScriptUnspent => scripts::unspent(call, out),
        Kind::ScriptSubscribe => scripts::subscribe(call, out),
        Kind::ScriptUnsubscribe => scripts::unsubscribe(call, out),
        Kind::OutpointSubscribe => scripts::outpoint_subscribe(call, out),
        Kind::OutpointStatus => scripts::get_outpoint_status(call, out),
        Kind::OutpointUnsubscribe => scripts::outpoint_unsubscribe(call, out),
        Kind::Broadcast => transactions::broadcast(call, out),
        Kind::BroadcastPackage => transactions::broadcast_package(call, out),
        Kind::Transaction => transactions::get(call, out),
        Kind::TransactionMerkle => transactions::merkle(call, out),
        Kind::IdFromPos => transactions::id_from_pos(call, out),
        Kind::TestMempoolAccept => transactions::test(call, out),
        Kind::EstimateFee => mempool::estimate_fee(call, out),
        Kind::RelayFee => mempool::relay_fee(call, out),
        Kind::FeeHistogram => mempool::fee_histogram(call, out),
        Kind::MempoolInfo => mempool::info(call, out),
        Kind::MempoolRecent => mempool::recent(call, out),
        Kind::AddPeer => server::add_peer(call, out),
        Kind::Banner => {
            server::banner(call, out);
            Ok(())
        }
        Kind::DonationAddress => {
            server::donation_address(call, out);
            Ok(())
        }
        Kind::Features => server::features(call, out),
        Kind::Peers => {
            server::peers(out);
            Ok(())
        }
        Kind::Ping => server::ping(call, out),
        Kind::Version => server::version(call, out),
    }
}
