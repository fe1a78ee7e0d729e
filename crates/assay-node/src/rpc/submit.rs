//! Handing blocks and transactions to the engine.

use std::collections::HashSet;

use assay_engine::{SubmitOutcome, TestAccept, TxReject, TxRejectCode};
use assay_wire::{Header, Transaction, Txid};

use super::args::{self, Args};
use super::script::burns;
use super::table::{Kind, Method, Need, optional, required};
use super::{Job, Node, Rpc, Work};
use crate::jsonrpc::{Code, Json, RpcError, Value};

pub(super) const SUBMITBLOCK: Method = Method {
    name: "submitblock",
    category: "mining",
    about: "Checks a block and adds it to the chain (BIP22).",
    args: &[
        required("hexdata", Kind::Hex, "The serialised block"),
        optional("dummy", Kind::Text, Need::Optional, "Ignored; BIP22 has it"),
    ],
    result: "null     (json null) The block is accepted, or\n\"str\"    (string) why it is not, as BIP22 says",
    example: "\"mydata\"",
    prepare: |_, args| {
        let raw = args.hex(0).ok_or_else(block_decode_failed)?;
        Ok(Job::call(args, move |node, out| block(node, raw, out)))
    },
};

pub(super) const SENDRAWTRANSACTION: Method = Method {
    name: "sendrawtransaction",
    category: "rawtransactions",
    about: "Checks a transaction and adds it to the mempool.",
    args: &[
        required("hexstring", Kind::Hex, "The serialised transaction"),
        MAX_FEE_RATE,
        optional(
            "maxburnamount",
            Kind::Amount,
            Need::Default("\"0.00\""),
            "Reject transactions with unspendable outputs above this amount",
        ),
    ],
    result: "\"hex\"    (string) The transaction id",
    example: "\"signedhex\"",
    prepare: |rpc, args| {
        let send = SendTransaction::new(rpc, args)?;
        let work = Work::SendTransaction(send);
        Ok(Job { method: args.method(), waits: false, work })
    },
};

pub(super) const TESTMEMPOOLACCEPT: Method = Method {
    name: "testmempoolaccept",
    category: "rawtransactions",
    about: "Whether transactions would be admitted to the mempool. Several are taken in order, parents before \
            children, and as if the earlier ones were admitted.",
    args: &[
        required("rawtxs", Kind::HexArray, "1 to 25 serialised transactions"),
        MAX_FEE_RATE,
    ],
    result: "\
[                                          (json array) One element per transaction
  {                                        (json object)
    \"txid\" : \"hex\",                        (string) The transaction id
    \"wtxid\" : \"hex\",                       (string) Hash with witnesses
    \"package-error\" : \"str\",               (string, optional) What is wrong with all of them together; nothing else follows then
    \"allowed\" : true|false,                (boolean, optional) Whether it would be admitted; absent where an earlier one is at fault
    \"vsize_adjusted\" : n,                  (numeric, optional) Virtual size, more where signature operations count for more, if allowed
    \"vsize\" : n,                           (numeric, optional) The same
    \"vsize_bip141\" : n,                    (numeric, optional) Virtual size (BIP141)
    \"fees\" : {                             (json object, optional) If allowed
      \"base\" : n,                          (numeric) The fee
      \"effective-feerate\" : n,             (numeric) Fee per 1,000 virtual bytes
      \"effective-includes\" : [ \"hex\" ]     (json array) The wtxid
    },
    \"reject-reason\" : \"str\",               (string, optional) Why not, if not
    \"reject-details\" : \"str\"               (string, optional) The same with evidence
  },
  ...
]",
    example: "[\"signedhex\"]",
    prepare: test_accept,
};

const MAX_FEE_RATE: super::table::ArgSpec = optional(
    "maxfeerate",
    Kind::Amount,
    Need::Default("\"0.10\""),
    "Reject transactions that pay more than this per 1,000 virtual bytes; 0 for no limit",
);

pub(super) const SUBMITHEADER: Method = Method {
    name: "submitheader",
    category: "mining",
    about: "Checks a header and adds it to the block tree; its block may follow.",
    args: &[required("hexdata", Kind::Hex, "The serialised header")],
    result: "null    (json null) The header is valid",
    example: "\"aabbcc\"",
    prepare: |_, args| {
        let raw = args.hex(0);
        // Core reads the first 80 bytes and ignores the rest.
        let head = raw.as_deref().and_then(|raw| raw.first_chunk::<{ Header::SIZE }>());
        let header = head
            .map(Header::parse)
            .ok_or_else(|| RpcError::new(Code::Deserialization, "Block header decode failed"))?;
        Ok(Job::call(args, move |node, out| submit_header(node, &header, out)))
    },
};

/// Gives the header to the engine, with the errors of Core's `submitheader` (`rpc/mining.cpp`).
fn submit_header(node: &Node<'_>, header: &Header, out: &mut Vec<u8>) -> Result<(), RpcError> {
    if node.engine.block_entry(&header.prev_block).is_none() {
        let text = format!("Must submit previous header ({}) first", header.prev_block);
        return Err(RpcError::new(Code::Verify, text));
    }
    let reason = match node.engine.submit_header(header) {
        SubmitOutcome::DuplicateInvalid => "duplicate-invalid".to_owned(),
        SubmitOutcome::Rejected { reason, .. } => reason,
        SubmitOutcome::Failed(error) => error.to_string(),
        _ => {
            Json::new(out).null();
            return Ok(());
        }
    };
    Err(RpcError::new(Code::Verify, reason))
}

/// Gives the block to the engine and says what BIP22 wants to hear.
fn block(node: &Node<'_>, raw: Vec<u8>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let text = match node.engine.submit_block(raw) {
        SubmitOutcome::Accepted => {
            Json::new(out).null();
            return Ok(());
        }
        // Core does not tell a known block that was never connected from one that was.
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
            return Err(block_decode_failed());
        }
        SubmitOutcome::Failed(error) => {
            tracing::error!("Submitted block could not be judged: {error}");
            return Err(RpcError::new(Code::Verify, error.to_string()));
        }
    };
    Json::new(out).string(text);
    Ok(())
}

fn block_decode_failed() -> RpcError {
    RpcError::new(Code::Deserialization, "Block decode failed")
}

fn tx_decode_failed() -> RpcError {
    RpcError::new(
        Code::Deserialization,
        "TX decode failed. Make sure the tx has at least one input.",
    )
}

/// A `sendrawtransaction` call.
#[derive(Debug)]
pub(super) struct SendTransaction {
    raw: Vec<u8>,
    /// Satoshis per 1,000 virtual bytes.
    max_fee_rate: Option<u64>,
}

impl SendTransaction {
    fn new(rpc: &Rpc, args: &Args<'_>) -> Result<Self, RpcError> {
        let max_burn = args.amount(2)?.unwrap_or(0);
        let raw = args.hex(0).ok_or_else(tx_decode_failed)?;
        let tx = Transaction::parse(raw, rpc.params.encoding).map_err(|_| tx_decode_failed())?;
        let burnt = |script: &[u8], value| value > max_burn && burns(&rpc.params, script);
        if tx.view().outputs().any(|output| burnt(output.script_pubkey, output.value)) {
            return Err(RpcError::new(
                Code::Verify,
                "Unspendable output exceeds maximum configured by user (maxburnamount)",
            ));
        }
        let max_fee_rate = max_fee_rate(args)?;
        Ok(Self { raw: tx.bytes().to_vec(), max_fee_rate })
    }

    pub(super) fn run(self, node: &Node<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
        let txid = node.engine.submit_transaction(self.raw, self.max_fee_rate);
        Json::new(out).text(txid.map_err(|reject| refusal(&reject))?);
        Ok(())
    }
}

/// Runs neighbours of one batch. The engine gets those together that share a fee limit, which is
/// all of them in practice.
pub(super) fn run_group(
    node: &Node<'_>,
    sends: Vec<SendTransaction>,
) -> Vec<Result<Vec<u8>, RpcError>> {
    let answer = |result: Result<Txid, TxReject>| {
        let mut out = Vec::new();
        Json::new(&mut out).text(result.map_err(|reject| refusal(&reject))?);
        Ok(out)
    };
    let mut answers = Vec::with_capacity(sends.len());
    let mut sends = sends.into_iter().peekable();
    while let Some(first) = sends.next() {
        let max_fee_rate = first.max_fee_rate;
        let mut raws = vec![first.raw];
        while let Some(next) = sends.next_if(|next| next.max_fee_rate == max_fee_rate) {
            raws.push(next.raw);
        }
        answers.extend(node.engine.submit_transactions(raws, max_fee_rate).into_iter().map(answer));
    }
    answers
}

/// The caller's limit; none when it is 0.
fn max_fee_rate(args: &Args<'_>) -> Result<Option<u64>, RpcError> {
    let rate = args.fee_rate_or(1, DEFAULT_MAX_FEE_RATE_SAT_PER_KVB)?;
    Ok(u64::try_from(rate).ok().filter(|rate| *rate > 0))
}

/// A refusal with the codes and texts of `BroadcastTransaction` (`node/transaction.cpp`).
fn refusal(reject: &TxReject) -> RpcError {
    let code = match reject.code {
        TxRejectCode::Decode => return tx_decode_failed(),
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

/// Reason and evidence, joined as `ValidationState::ToString` does.
fn details(reject: &TxReject) -> String {
    if reject.debug.is_empty() {
        reject.reason.clone()
    } else {
        format!("{}, {}", reject.reason, reject.debug)
    }
}

fn test_accept(rpc: &Rpc, args: &Args<'_>) -> Result<Job, RpcError> {
    let texts = args.value(0).and_then(Value::elements).unwrap_or_default();
    if !(1..=PACKAGE_MAX).contains(&texts.len()) {
        return Err(RpcError::new(
            Code::InvalidParameter,
            format!("Array must contain between 1 and {PACKAGE_MAX} transactions."),
        ));
    }
    let max_fee_rate = max_fee_rate(args)?;
    let mut txs = Vec::with_capacity(texts.len());
    for text in texts {
        if text.type_name() != "string" {
            return Err(args::wrong_type(Some(text), "string"));
        }
        let decode = |raw| Transaction::parse(raw, rpc.params.encoding).ok();
        let tx = text.hex().and_then(decode).ok_or_else(|| {
            let shown: String = text.string().unwrap_or_default().chars().take(SHOWN_MAX).collect();
            let message =
                format!("TX decode failed: {shown} Make sure the tx has at least one input.");
            RpcError::new(Code::Deserialization, message)
        })?;
        txs.push(tx);
    }
    Ok(Job::call(args, move |node, out| {
        if let Some(error) = package_error(&txs).filter(|_| txs.len() > 1) {
            write_package_error(&txs, error, out);
            return Ok(());
        }
        let raws = txs.iter().map(|tx| tx.bytes().to_vec()).collect();
        let verdicts = node.engine.test_accept(raws, max_fee_rate);
        // Of several it is the package that would be too large.
        let is_too_large = |verdict: &TestAccept| {
            verdict.reject.as_ref().is_some_and(|reject| reject.reason == TOO_LARGE_CLUSTER)
        };
        if txs.len() > 1 && verdicts.iter().any(is_too_large) {
            write_package_error(&txs, TOO_LARGE_CLUSTER, out);
            return Ok(());
        }
        // Of several the first that fails ends the look at all of them, as in Core.
        let is_refused = |verdict: &TestAccept| {
            let reject = verdict.reject.as_ref();
            reject.is_some_and(|reject| reject.code != TxRejectCode::MaxFeeExceeded)
        };
        let failed = verdicts.iter().position(is_refused).filter(|_| txs.len() > 1);
        let mut list = Json::new(out).array();
        let mut stopped = false;
        for (index, (tx, verdict)) in txs.iter().zip(&verdicts).enumerate() {
            let mut is_open = stopped || failed.is_some_and(|failed| failed != index);
            let was_open = is_open;
            write_verdict(tx, verdict, &mut is_open, list.item());
            stopped |= is_open && !was_open;
        }
        list.end();
        Ok(())
    }))
}

/// What is wrong with several transactions as such (Core `policy/packages.cpp`, `IsWellFormedPackage`).
fn package_error(txs: &[Transaction]) -> Option<&'static str> {
    let weight: usize = txs.iter().map(|tx| tx.view().weight()).sum();
    if txs.len() > 1 && weight > PACKAGE_WEIGHT_MAX {
        return Some("package-too-large");
    }
    let txids: Vec<Txid> = txs.iter().map(|tx| tx.view().txid()).collect();
    let mut later: HashSet<&Txid> = txids.iter().collect();
    if later.len() != txids.len() {
        return Some("package-contains-duplicates");
    }
    for (tx, txid) in txs.iter().zip(&txids) {
        if tx.view().inputs().any(|input| later.contains(&input.prevout.txid)) {
            return Some("package-not-sorted");
        }
        later.remove(txid);
    }
    let mut spent = HashSet::new();
    for tx in txs {
        // Twice within one transaction is a fault of that one.
        let own: HashSet<_> = tx.view().inputs().map(|input| input.prevout).collect();
        if own.is_empty() || own.iter().any(|prevout| spent.contains(prevout)) {
            return Some("conflict-in-package");
        }
        spent.extend(own);
    }
    None
}

fn write_package_error(txs: &[Transaction], error: &str, out: &mut Vec<u8>) {
    let mut list = Json::new(out).array();
    for tx in txs {
        let view = tx.view();
        let mut object = list.item().object();
        object.key("txid").text(view.txid());
        object.key("wtxid").text(view.wtxid());
        object.key("package-error").string(error);
        object.end();
    }
    list.end();
}

/// Writes one verdict. Once a transaction pays too much, what follows is left open, since its
/// ancestors would not be submitted.
fn write_verdict(tx: &Transaction, verdict: &TestAccept, stopped: &mut bool, json: Json<'_>) {
    let view = tx.view();
    let wtxid = verdict.wtxid.unwrap_or_else(|| view.wtxid());
    let mut object = json.object();
    object.key("txid").text(verdict.txid.unwrap_or_else(|| view.txid()));
    object.key("wtxid").text(wtxid);
    if *stopped {
        object.end();
        return;
    }
    match &verdict.reject {
        None => {
            let vsize = i64::from(verdict.vsize.max(1));
            object.key("allowed").bool(true);
            object.key("vsize_adjusted").int(verdict.vsize);
            object.key("vsize").int(verdict.vsize);
            object.key("vsize_bip141").count(view.weight().div_ceil(4));
            let mut fees = object.key("fees").object();
            fees.key("base").amount(verdict.fee_sat);
            fees.key("effective-feerate").amount(verdict.fee_sat.saturating_mul(1000) / vsize);
            let mut includes = fees.key("effective-includes").array();
            includes.item().text(wtxid);
            includes.end();
            fees.end();
        }
        Some(reject) if reject.code == TxRejectCode::MaxFeeExceeded => {
            object.key("allowed").bool(false);
            object.key("reject-reason").string("max-fee-exceeded");
            *stopped = true;
        }
        Some(reject) => {
            object.key("allowed").bool(false);
            if reject.code == TxRejectCode::MissingInputs {
                object.key("reject-reason").string("missing-inputs");
            } else {
                object.key("reject-reason").string(&reject.reason);
                object.key("reject-details").string(&details(reject));
            }
        }
    }
    object.end();
}

/// 0.10 coins (`node/transaction.h`, `DEFAULT_MAX_RAW_TX_FEE_RATE`).
const DEFAULT_MAX_FEE_RATE_SAT_PER_KVB: i64 = 10_000_000;
/// `policy/packages.h`, `MAX_PACKAGE_WEIGHT`.
const PACKAGE_WEIGHT_MAX: usize = 404_000;
const TOO_LARGE_CLUSTER: &str = "too-large-cluster";
/// `policy/packages.h`, `MAX_PACKAGE_COUNT`.
const PACKAGE_MAX: usize = 25;
/// How much of undecodable data an error repeats: more than any transaction that is relayed has.
const SHOWN_MAX: usize = 1 << 20;
