//! Method implementations.

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

    /// Reads mempool and index of the same state ([`Published::read`]).
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
    let params = Params::read(params, method.params, method.required, method.is_open())?;
    let call = Call { shared, session, version, params, pace };
    let start = out.len();
    dispatch(&call, method.kind, out).map_err(|error| match error {
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
