//! RPC of block generation on low-difficulty chains.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use assay_consensus::pow::target_from_bits;
use assay_consensus::uint256::U256;
use assay_engine::{
    BlockTemplate, Selection, SubmitOutcome, TemplateError, TemplateOptions, TrialError,
};
use assay_wire::{BlockHash, Transaction, Txid};

use super::args::{self, Args};
use super::decode::Payee;
use super::descriptor::{Descriptor, NeedsPrivateKey};
use super::method::{Call, help};
use super::{Node, Rpc, bad, bad_key, with_details};
use crate::jsonrpc::{Code, Json, RpcError, Value};

pub(super) const GENERATE: Call =
    |_, _, _| Err(RpcError::new(Code::MethodNotFound, help("generate")));

pub(super) const GENERATETOADDRESS: Call = |node, args, out| {
    let payee = Payee::parse(&node.rpc.params, &args.string(1)?);
    let payee = payee.map_err(|_| bad_key("Error: Invalid address"))?;
    to_script(node, args, payee.script(), out)
};

pub(super) const GENERATETODESCRIPTOR: Call = |node, args, out| {
    let script = descriptor_script(node.rpc, &args.string(1)?)?.map_err(bad_key)?;
    to_script(node, args, script, out)
};

/// Number of blocks from the first argument, number of tries from the third; negative is unlimited, as in Core.
fn to_script(
    node: &Node<'_>,
    args: &Args<'_>,
    script: Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    let count: i32 = args.integer(0)?;
    let tries: i32 = args.integer_or(2, TRIES_MAX as i32)?;
    blocks(node, script, count, tries as u64, out)
}

/// Script of a descriptor; the inner error is a parse error.
fn descriptor_script(rpc: &Rpc, text: &str) -> Result<Result<Vec<u8>, String>, RpcError> {
    let mut all = match Descriptor::parse(&rpc.params, text) {
        Ok(all) => all,
        Err(error) => return Ok(Err(error)),
    };
    let Some(one) = all.pop().filter(|_| all.is_empty()) else {
        return Err(bad("Multipath descriptor not accepted"));
    };
    if one.is_range() {
        let text = "Ranged descriptor not accepted. Maybe pass through deriveaddresses first?";
        return Err(bad(text));
    }
    let expanded = one.expand(&rpc.params, 0);
    let mut scripts =
        expanded.map_err(|NeedsPrivateKey| bad_key("Cannot derive script without private keys"))?;
    // For `combo()` the P2WPKH script, or P2PKH for an uncompressed key.
    let at = match scripts.len() {
        1 => 0,
        4 => 2,
        _ => 1,
    };
    Ok(Ok(scripts.swap_remove(at).script))
}

fn blocks(
    node: &Node<'_>,
    script: Vec<u8>,
    count: i32,
    mut tries_left: u64,
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    let options = TemplateOptions { coinbase_script: script, selection: Selection::Mempool };
    let mut hashes = Json::new(out).array();
    let (mut left, mut patience) = (count, ANNOUNCING_MAX);
    while left > 0 && !node.context.interrupted() {
        let template = node.engine.mining().template(&options)?;
        match solve(node, &template, &mut tries_left) {
            Solved::Found(hash, raw) => {
                submit(node, raw)?;
                wait_for_announcements(node, &mut patience);
                left -= 1;
                hashes.item().text(hash);
            }
            Solved::Exhausted => {}
            Solved::GivenUp => break,
        }
    }
    Ok(())
}

/// Waits until peers are not far behind: a pruned node serves only its last 288 blocks. Core's validation waits for its event
/// queue in the same way (`validation.cpp`, `LimitValidationInterfaceQueue`). `patience` is the remaining time.
fn wait_for_announcements(node: &Node<'_>, patience: &mut Duration) {
    let Some(network) = node.rpc.network.get() else { return };
    let (height, start) = (node.engine.chain().tip().height, Instant::now());
    let is_behind =
        || network.least_announced().is_some_and(|announced| announced + PENDING_MAX < height);
    while is_behind() && start.elapsed() < *patience && !node.context.interrupted() {
        sleep(ANNOUNCING_LOOK);
    }
    *patience = patience.saturating_sub(start.elapsed());
}

enum Solved {
    Found(BlockHash, Vec<u8>),
    /// All nonces tried; another time may help.
    Exhausted,
    GivenUp,
}

fn solve(node: &Node<'_>, template: &BlockTemplate, tries_left: &mut u64) -> Solved {
    let Some(target) = target_from_bits(template.header.bits, node.rpc.params.pow.limit) else {
        return Solved::GivenUp;
    };
    let mut header = template.header;
    while *tries_left > 0 && header.nonce < u32::MAX {
        let hash = header.hash();
        if U256::from_le_bytes(&hash.0) <= target {
            return Solved::Found(hash, template.block(&header));
        }
        if header.nonce.is_multiple_of(INTERRUPT_TRIES) && node.context.interrupted() {
            return Solved::GivenUp;
        }
        header.nonce += 1;
        *tries_left -= 1;
    }
    if *tries_left == 0 { Solved::GivenUp } else { Solved::Exhausted }
}

fn submit(node: &Node<'_>, raw: Vec<u8>) -> Result<(), RpcError> {
    match node.engine.blocks().submit(raw) {
        SubmitOutcome::Accepted
        | SubmitOutcome::Inconclusive
        | SubmitOutcome::Duplicate
        | SubmitOutcome::DuplicateInconclusive => Ok(()),
        SubmitOutcome::Failed(error) => Err(error.into()),
        _ => {
            let text = "ProcessNewBlock, block not accepted";
            Err(RpcError::new(Code::InternalError, text))
        }
    }
}

impl From<TemplateError> for RpcError {
    fn from(error: TemplateError) -> Self {
        match error {
            // An exception in Core, which RPC reports like any other error.
            TemplateError::Invalid(reason) => {
                Self::new(Code::Misc, format!("TestBlockValidity failed: {}", trial(&reason)))
            }
            TemplateError::Engine(error) => error.into(),
        }
    }
}

fn trial(error: &TrialError) -> String {
    let TrialError::Rule(error) = error else { return error.to_string() };
    with_details(&error.reject_reason(), &error.debug_message())
}

pub(super) const GENERATEBLOCK: Call = |node, args, out| {
    let output = args.string(0)?;
    let script = match descriptor_script(node.rpc, &output)? {
        Ok(script) => script,
        Err(_) => Payee::parse(&node.rpc.params, &output)
            .map_err(|_| bad_key("Error: Invalid address or descriptor"))?
            .script(),
    };
    let mut txs = Vec::new();
    for value in args.value(1).and_then(Value::elements).unwrap_or_default() {
        txs.push(Wanted::parse(node.rpc, value)?);
    }
    let is_submitted = args.bool_or(2, true)?;
    let txs = txs.into_iter().map(|tx| tx.find(node)).collect::<Result<_, _>>()?;
    let selection = Selection::These(txs);
    let options = TemplateOptions { coinbase_script: script, selection };
    let template = node.engine.mining().template(&options).map_err(|error| match error {
        TemplateError::Invalid(_) => RpcError { code: Code::Verify, ..error.into() },
        TemplateError::Engine(error) => error.into(),
    })?;
    let mut tries_left = TRIES_MAX;
    let Solved::Found(hash, raw) = solve(node, &template, &mut tries_left) else {
        return Err(RpcError::new(Code::Misc, "Failed to make block."));
    };
    let shown = (!is_submitted).then(|| raw.clone());
    if is_submitted {
        submit(node, raw)?;
    }
    let mut object = Json::new(out).object();
    object.key("hash").text(hash);
    if let Some(raw) = shown {
        object.key("hex").hex(&raw);
    }
    Ok(())
};

enum Wanted {
    Unconfirmed(Txid),
    Given(Arc<Transaction>),
}

impl Wanted {
    fn parse(rpc: &Rpc, value: Value<'_>) -> Result<Self, RpcError> {
        let text = args::string_of(value)?;
        if let Ok(txid) = text.parse() {
            return Ok(Self::Unconfirmed(txid));
        }
        let parsed = value.hex().and_then(|raw| Transaction::parse(raw, rpc.params.encoding).ok());
        parsed.map(|tx| Self::Given(Arc::new(tx))).ok_or_else(|| {
            let text = format!(
                "Transaction decode failed for {text}. Make sure the tx has at least one input."
            );
            RpcError::new(Code::Deserialization, text)
        })
    }

    fn find(self, node: &Node<'_>) -> Result<Arc<Transaction>, RpcError> {
        match self {
            Self::Given(tx) => Ok(tx),
            Self::Unconfirmed(txid) => node
                .engine
                .mempool()
                .tx(&txid)
                .ok_or_else(|| bad_key(format!("Transaction {txid} not in mempool."))),
        }
    }
}

/// Maximum number of unannounced blocks before the next one, as in Core's event queue.
const PENDING_MAX: u32 = 10;
/// Maximum total wait per call for peers that read nothing.
const ANNOUNCING_MAX: Duration = Duration::from_secs(2);
const ANNOUNCING_LOOK: Duration = Duration::from_micros(200);
/// Core's `DEFAULT_MAX_TRIES`.
const TRIES_MAX: u64 = 1_000_000;
/// Nonces between checks for the caller's disconnection.
const INTERRUPT_TRIES: u32 = 4096;
