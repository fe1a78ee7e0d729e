//! RPC of block and transaction submission.

use assay_consensus::commitment::witness_commitment_index;
use assay_engine::{RelayId, SubmitOutcome, TxReject, TxRejectCode};
use assay_wire::{Header, Transaction, Txid};

use super::args::Args;
use super::method::Call;
use super::script::burns;
use super::{Node, Rpc, TX_UNDECODABLE, undecodable, with_details};
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const SUBMITBLOCK: Call = |node, args, out| {
    let raw = args.hex(0).ok_or_else(|| undecodable(BLOCK_UNDECODABLE))?;
    let raw = with_reserved_value(node, raw);
    let text = match node.engine.blocks().submit(raw) {
        SubmitOutcome::Accepted => {
            Json::new(out).null();
            return Ok(());
        }
        // Core does not distinguish whether a known block was ever connected.
        SubmitOutcome::Duplicate | SubmitOutcome::DuplicateInconclusive => "duplicate",
        SubmitOutcome::DuplicateInvalid => "duplicate-invalid",
        SubmitOutcome::Inconclusive => "inconclusive",
        SubmitOutcome::Rejected { reason, debug: evidence } => {
            tracing::warn!("Submitted block rejected: {reason}, {evidence}");
            Json::new(out).string(if reason.is_empty() { "rejected" } else { &reason });
            return Ok(());
        }
        SubmitOutcome::Undecodable(error) => {
            tracing::warn!("Submitted data is no block: {error}");
            return Err(undecodable(BLOCK_UNDECODABLE));
        }
        SubmitOutcome::Failed(error) => {
            tracing::error!("Submitted block could not be judged: {error}");
            return Err(RpcError::new(Code::Verify, error.to_string()));
        }
    };
    Json::new(out).string(text);
    Ok(())
};

pub(super) const SENDRAWTRANSACTION: Call =
    |node, args, out| SendTransaction::new(node.rpc, args)?.run(node, out);

pub(super) const SUBMITHEADER: Call = |node, args, out| {
    let raw = args.hex(0);
    // Core reads the first 80 bytes and ignores the rest.
    let head = raw.as_deref().and_then(|raw| raw.first_chunk::<{ Header::SIZE }>());
    let header =
        head.map(Header::parse).ok_or_else(|| undecodable("Block header decode failed"))?;
    if node.engine.chain().entry(&header.prev_block).is_none() {
        let text = format!("Must submit previous header ({}) first", header.prev_block);
        return Err(RpcError::new(Code::Verify, text));
    }
    let reason = match node.engine.blocks().submit_header(&header) {
        SubmitOutcome::DuplicateInvalid => "duplicate-invalid".to_owned(),
        SubmitOutcome::Rejected { reason, .. } => reason,
        SubmitOutcome::Failed(error) => error.to_string(),
        _ => {
            Json::new(out).null();
            return Ok(());
        }
    };
    Err(RpcError::new(Code::Verify, reason))
};

/// Adds the reserved value of BIP141 to a block whose coinbase has a witness commitment and no witness, as older
/// miners expect (Core `validation.cpp`, `UpdateUncommittedBlockStructures`).
fn with_reserved_value(node: &Node<'_>, mut raw: Vec<u8>) -> Vec<u8> {
    let params = node.engine.params();
    let Some(header) = raw.first_chunk::<{ Header::SIZE }>().map(Header::parse) else { return raw };
    let count_bytes = match raw.get(Header::SIZE) {
        Some(0xff) => 9,
        Some(0xfe) => 5,
        Some(0xfd) => 3,
        _ => 1,
    };
    let start = Header::SIZE + count_bytes;
    let coinbase = raw.get(start..).map(|txs| Transaction::parse_first(txs, params.encoding));
    let Some(Ok(coinbase)) = coinbase else { return raw };
    let is_bare = coinbase.view().is_coinbase() && !coinbase.view().has_witness();
    if !is_bare || witness_commitment_index(coinbase.view()).is_none() {
        return raw;
    }
    let parent = node.engine.chain().header_place(&header.prev_block);
    if parent.is_none_or(|parent| !params.segwit_active(parent.height + 1)) {
        return raw;
    }
    let lock_time = start + coinbase.bytes().len() - 4;
    let witness = [&[1, 32][..], &[0; 32]].concat();
    raw.splice(lock_time..lock_time, witness);
    // Marker and flag, after the version.
    raw.splice(start + 4..start + 4, [0, 1]);
    raw
}

#[derive(Debug)]
pub(super) struct SendTransaction {
    raw: Vec<u8>,
    /// Satoshis per 1,000 virtual bytes.
    max_fee_rate: Option<u64>,
}

impl SendTransaction {
    pub(super) fn new(rpc: &Rpc, args: &Args<'_>) -> Result<Self, RpcError> {
        let max_burn = args.amount(2)?.unwrap_or(0);
        let tx = args.hex(0).and_then(|raw| Transaction::parse(raw, rpc.params.encoding).ok());
        let tx = tx.ok_or_else(|| undecodable(TX_UNDECODABLE))?;
        let burnt = |script: &[u8], value| value > max_burn && burns(&rpc.params, script);
        if tx.view().outputs().any(|output| burnt(output.script_pubkey, output.value)) {
            return Err(burns_too_much());
        }
        let max_fee_rate = max_fee_rate(args)?;
        Ok(Self { raw: tx.bytes().to_vec(), max_fee_rate })
    }

    pub(super) fn run(self, node: &Node<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
        let txid = node.engine.mempool().submit(self.raw, self.max_fee_rate);
        let txid = txid.or_else(|reject| known_or_rejected(node, &reject))?;
        node.announce_local();
        Json::new(out).text(txid);
        Ok(())
    }
}

pub(super) fn burns_too_much() -> RpcError {
    RpcError::new(
        Code::Verify,
        "Unspendable output exceeds maximum configured by user (maxburnamount)",
    )
}

/// Runs consecutive calls of one batch. Calls with the same fee limit, in practice all, reach the engine together.
pub(super) fn run_group(
    node: &Node<'_>,
    sends: Vec<Result<SendTransaction, RpcError>>,
) -> Vec<Result<Vec<u8>, RpcError>> {
    let answer = |result: Result<Txid, TxReject>| {
        let mut out = Vec::new();
        let txid = result.or_else(|reject| known_or_rejected(node, &reject))?;
        Json::new(&mut out).text(txid);
        Ok(out)
    };
    let mut answers = Vec::with_capacity(sends.len());
    let mut sends = sends.into_iter().peekable();
    while let Some(first) = sends.next() {
        let SendTransaction { raw, max_fee_rate } = match first {
            Ok(first) => first,
            Err(error) => {
                answers.push(Err(error));
                continue;
            }
        };
        let mut raws = vec![raw];
        let is_alike = |next: &Result<SendTransaction, _>| {
            next.as_ref().is_ok_and(|next| next.max_fee_rate == max_fee_rate)
        };
        while let Some(Ok(next)) = sends.next_if(is_alike) {
            raws.push(next.raw);
        }
        answers
            .extend(node.engine.mempool().submit_all(raws, max_fee_rate).into_iter().map(answer));
    }
    node.announce_local();
    answers
}

/// The transaction may be present with another witness: that one is announced again.
fn known_or_rejected(node: &Node<'_>, reject: &TxReject) -> Result<Txid, RpcError> {
    let txid = reject.txid.filter(|txid| node.engine.mempool().contains(&RelayId::Txid(*txid)));
    let txid = txid.ok_or_else(|| rejection(reject))?;
    node.engine.mempool().handed_in_again(txid);
    Ok(txid)
}

/// The caller's limit; none for 0.
pub(super) fn max_fee_rate(args: &Args<'_>) -> Result<Option<u64>, RpcError> {
    let rate = args.fee_rate_or(1, DEFAULT_MAX_FEE_RATE_SAT_PER_KVB)?;
    Ok(u64::try_from(rate).ok().filter(|rate| *rate > 0))
}

/// Rejection with the codes and texts of `BroadcastTransaction` (`node/transaction.cpp`).
fn rejection(reject: &TxReject) -> RpcError {
    let code = match reject.code {
        TxRejectCode::Decode => return undecodable(TX_UNDECODABLE),
        TxRejectCode::MissingInputs | TxRejectCode::Failed => Code::Verify,
        TxRejectCode::MaxFeeExceeded => {
            let text = "Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)";
            return RpcError::new(Code::Verify, text);
        }
        TxRejectCode::AlreadyInChain => {
            let text = "Transaction outputs already in utxo set";
            return RpcError::new(Code::VerifyAlreadyInUtxoSet, text);
        }
        TxRejectCode::Rejected => Code::VerifyRejected,
    };
    RpcError::new(code, details(reject))
}

pub(super) fn details(reject: &TxReject) -> String {
    with_details(&reject.reason, &reject.debug)
}

const BLOCK_UNDECODABLE: &str = "Block decode failed";

/// 0.10 coins (`node/transaction.h`, `DEFAULT_MAX_RAW_TX_FEE_RATE`).
const DEFAULT_MAX_FEE_RATE_SAT_PER_KVB: i64 = 10_000_000;
