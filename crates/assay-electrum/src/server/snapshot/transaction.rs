//! Confirmed transactions, read from their block.

use assay_wire::Transaction;

use crate::chain::Chain;
use crate::index::TxPosition;
use crate::server::protocol::error::{CallError, RpcError};

pub(in crate::server) fn confirmed_bytes(
    chain: &dyn Chain,
    position: &TxPosition,
) -> Result<Vec<u8>, CallError> {
    let bytes = chain.block_part(&position.block, position.offset, position.length)?;
    bytes.ok_or_else(|| RpcError::daemon("the block of this transaction is not stored").into())
}

pub(in crate::server) fn confirmed_transaction(
    chain: &dyn Chain,
    position: &TxPosition,
) -> Result<Transaction, CallError> {
    let bytes = confirmed_bytes(chain, position)?;
    Transaction::parse(bytes, chain.encoding()).map_err(|error| {
        tracing::error!("A stored transaction cannot be read: {error}");
        RpcError::daemon("a stored transaction cannot be read").into()
    })
}
