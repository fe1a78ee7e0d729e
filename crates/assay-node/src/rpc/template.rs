//! Block templates for external miners (BIP22, BIP23, BIP9, BIP145).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use assay_consensus::params::{MAX_BLOCK_SIGOPS_COST, MAX_BLOCK_WEIGHT, WITNESS_SCALE_FACTOR};
use assay_consensus::script::opcode::op;
use assay_consensus::versionbits::DeploymentState;
use assay_engine::{
    BlockTemplate, DeploymentInfo, Selection, TemplateOptions, TrialChecks, TrialError,
};
use assay_wire::{Block, BlockHash, Txid};

use super::args::{self, Args};
use super::chain::target;
use super::method::Call;
use super::{Node, bad};
use crate::jsonrpc::{Code, Json, Object, RpcError, Value};

/// Template shared by calls for a while, as in Core.
pub(super) struct Cached {
    template: BlockTemplate,
    made_s: u64,
}

impl Cached {
    /// True if a new template is due: at once for another tip, after some seconds for another mempool.
    fn is_stale(&self, tip: &BlockHash, now_s: u64, updates: impl FnOnce() -> u64) -> bool {
        let is_old = now_s.saturating_sub(self.made_s) > KEPT_S;
        self.template.header.prev_block != *tip
            || is_old && self.template.mempool_updates != updates()
    }
}

struct Request {
    rules: Vec<String>,
    watched: Option<Watched>,
}

/// Reference state of a long poll.
enum Watched {
    /// Tip and mempool sequence of an earlier template.
    Template(BlockHash, u64),
    Now,
}

/// True for a call that validates a block.
pub(super) fn is_proposal(args: &Args<'_>) -> bool {
    let mode = args.value(0).and_then(|request| request.member("mode"));
    mode.and_then(Value::string).is_some_and(|mode| mode == "proposal")
}

pub(super) const GETBLOCKTEMPLATE: Call = |node, args, out| {
    let request = args.value(0);
    let member = |name: &str| request.and_then(|request| request.member(name));
    let mode = match member("mode") {
        None => Cow::Borrowed("template"),
        Some(mode) => mode.string().ok_or_else(|| bad("Invalid mode"))?,
    };
    if mode == "proposal" {
        let data = member("data").filter(|data| data.type_name() == "string");
        let data =
            data.ok_or_else(|| RpcError::new(Code::Type, "Missing data String key for proposal"))?;
        let block =
            data.hex().and_then(|raw| Block::parse_prefix(raw, node.rpc.params.encoding).ok());
        let block =
            block.ok_or_else(|| RpcError::new(Code::Deserialization, "Block decode failed"))?;
        return propose(node, block, out);
    }
    let mut rules = Vec::new();
    for rule in member("rules").and_then(Value::elements).unwrap_or_default() {
        rules.push(args::string_of(rule)?.into_owned());
    }
    if mode != "template" {
        return Err(bad("Invalid mode"));
    }
    let watched = member("longpollid").map(watched).transpose()?;
    let request = Request { rules, watched };
    template(node, &request, out)
};

fn watched(id: Value<'_>) -> Result<Watched, RpcError> {
    let Some(text) = id.string() else { return Ok(Watched::Now) };
    let (hash, updates) = text.split_at_checked(64).unwrap_or((&text, ""));
    Ok(Watched::Template(args::hash_of(hash, "longpollid")?, updates.parse().unwrap_or(0)))
}

fn propose(node: &Node<'_>, block: Block, out: &mut Vec<u8>) -> Result<(), RpcError> {
    if let Some(status) = node.engine.mining().block_status(&block.hash()) {
        Json::new(out).string(status);
        return Ok(());
    }
    let checks = TrialChecks { work: false, merkle_root: true };
    match node.engine.mining().test_block(block, checks)? {
        Ok(()) => Json::new(out).null(),
        Err(TrialError::Rule(error)) => Json::new(out).string(&error.reject_reason()),
        Err(error) => Json::new(out).string(&error.to_string()),
    }
    Ok(())
}

fn template(node: &Node<'_>, request: &Request, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let params = &node.rpc.params;
    // Other chains may be at rest until a miner extends them.
    if params.address.base58_pubkey_hash == 0 && node.engine.chain().is_initial_block_download() {
        let text = "Assay is in initial sync and waiting for blocks...";
        return Err(RpcError::new(Code::ClientInInitialDownload, text));
    }
    wait(node, request)?;
    let supports = |rule: &str| request.rules.iter().any(|known| known == rule);
    if params.signet_challenge.is_some() && !supports("signet") {
        return Err(bad(
            "getblocktemplate must be called with the signet rule set (call with {\"rules\": [\"segwit\", \"signet\"]})",
        ));
    }
    if params.cash.is_none() && !supports("segwit") {
        return Err(bad(
            "getblocktemplate must be called with the segwit rule set (call with {\"rules\": [\"segwit\"]})",
        ));
    }
    let template = current(node)?;
    let parent = &template.header.prev_block;
    let deployments = node.engine.chain().deployments(parent, &params.deployments);
    write(node, request, &template, &deployments.unwrap_or_default(), out)
}

/// Waits until the tip, or after a while the mempool, differs from the state of a long poll.
fn wait(node: &Node<'_>, request: &Request) -> Result<(), RpcError> {
    let (hash, updates) = match request.watched {
        None => return Ok(()),
        Some(Watched::Template(hash, updates)) => (hash, updates),
        Some(Watched::Now) => {
            let cached = node.rpc.template.lock().unwrap_or_else(PoisonError::into_inner);
            let updates = cached.as_ref().map(|cached| cached.template.mempool_updates);
            let hash = node.engine.chain().tip().hash;
            (hash, updates.unwrap_or_else(|| node.engine.mempool().updates()))
        }
    };
    let mut next_look = Instant::now() + FIRST_LOOK;
    while node.engine.chain().tip().hash == hash {
        if node.context.interrupted() {
            return Err(RpcError::new(Code::ClientNotConnected, "Shutting down"));
        }
        if Instant::now() >= next_look {
            if node.engine.mempool().updates() != updates {
                break;
            }
            next_look = Instant::now() + LATER_LOOKS;
        }
        node.engine.chain().wait_for_tip_change(hash, Some(LOOK_AROUND));
    }
    Ok(())
}

/// Current template; rebuilt for another tip, and periodically for another mempool.
fn current(node: &Node<'_>) -> Result<BlockTemplate, RpcError> {
    let now_s = node.engine.clock().now_s();
    let mut cached = node.rpc.template.lock().unwrap_or_else(PoisonError::into_inner);
    let is_stale = cached.as_ref().is_none_or(|cached| {
        cached.is_stale(&node.engine.chain().tip().hash, now_s, || node.engine.mempool().updates())
    });
    if is_stale {
        *cached = None;
        let options =
            TemplateOptions { coinbase_script: vec![op::PUSH1], selection: Selection::Mempool };
        let template = node.engine.mining().template(&options)?;
        *cached = Some(Cached { template, made_s: now_s });
    }
    let cached = cached.as_ref().expect("it has just been made where there was none");
    let mut template = cached.template.clone();
    node.engine.mining().refresh(&mut template);
    Ok(template)
}

fn write(
    node: &Node<'_>,
    request: &Request,
    template: &BlockTemplate,
    deployments: &[DeploymentInfo],
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    let params = &node.rpc.params;
    let is_segwit = params.segwit_active(template.height);
    let header = &template.header;
    let mut object = Json::new(out).object();
    let mut capabilities = object.key("capabilities").array();
    capabilities.item().string("proposal");
    capabilities.end();
    let version = version_for(request, header.version, deployments)?;
    object.key("version").int(version);
    write_rules(node, is_segwit, deployments, &mut object);
    object.key("vbrequired").int(0);
    object.key("previousblockhash").text(header.prev_block);
    // Costs from before segwit count in bytes; on Bitcoin Cash, executed checks replace costs.
    let scale = if is_segwit || params.cash.is_some() { 1 } else { WITNESS_SCALE_FACTOR };
    write_transactions(template, scale, &mut object);
    object.key("coinbaseaux").object().end();
    object.key("coinbasevalue").int(template.coinbase_value_sat());
    let updates = template.mempool_updates;
    object.key("longpollid").text(format_args!("{}{updates}", header.prev_block));
    object.key("target").text(target(header.bits));
    object.key("mintime").int(template.min_time);
    object
        .key("mutable")
        .list(["time", "transactions", "prevblock"], |what, json| json.string(what));
    object.key("noncerange").string("00000000ffffffff");
    let (sigops_max, bytes_max) = match &params.cash {
        Some(cash) => (cash.block_sigchecks_max(), params.block_bytes_max()),
        None => (MAX_BLOCK_SIGOPS_COST / scale, MAX_BLOCK_WEIGHT / scale),
    };
    object.key("sigoplimit").int(sigops_max);
    object.key("sizelimit").int(bytes_max);
    if is_segwit {
        object.key("weightlimit").int(MAX_BLOCK_WEIGHT);
    }
    object.key("curtime").int(header.time);
    object.key("bits").text(format_args!("{:08x}", header.bits));
    object.key("height").int(template.height);
    if let Some(challenge) = &params.signet_challenge {
        object.key("signet_challenge").hex(challenge);
    }
    if let Some(commitment) = template.witness_commitment() {
        object.key("default_witness_commitment").hex(commitment);
    }
    Ok(())
}

/// Version without the bits of soft forks that the miner must support and does not.
fn version_for(
    request: &Request,
    mut version: i32,
    deployments: &[DeploymentInfo],
) -> Result<i32, RpcError> {
    for DeploymentInfo { deployment, next_state, .. } in deployments {
        if *next_state == DeploymentState::LockedIn {
            version |= deployment.mask();
        }
        if deployment.is_optional || request.rules.iter().any(|rule| rule == deployment.name) {
            continue;
        }
        if next_state.is_signalled() {
            version &= !deployment.mask();
        } else if *next_state == DeploymentState::Active {
            let text =
                format!("Support for '{}' rule requires explicit client support", deployment.name);
            return Err(bad(text));
        }
    }
    Ok(version)
}

fn write_rules(
    node: &Node<'_>,
    is_segwit: bool,
    deployments: &[DeploymentInfo],
    object: &mut Object<'_>,
) {
    let named = |info: &DeploymentInfo| {
        let mark = if info.deployment.is_optional { "" } else { "!" };
        format!("{mark}{}", info.deployment.name)
    };
    let mut rules = object.key("rules").array();
    rules.item().string("csv");
    if is_segwit {
        rules.item().string("!segwit");
        rules.item().string("taproot");
    }
    if node.rpc.params.signet_challenge.is_some() {
        rules.item().string("!signet");
    }
    for info in deployments.iter().filter(|info| info.next_state == DeploymentState::Active) {
        rules.item().string(&named(info));
    }
    rules.end();
    let mut available = object.key("vbavailable").object();
    for info in deployments.iter().filter(|info| info.next_state.is_signalled()) {
        available.key(named(info)).int(info.deployment.bit);
    }
}

fn write_transactions(template: &BlockTemplate, scale: u64, object: &mut Object<'_>) {
    let mut places: HashMap<Txid, usize> = HashMap::with_capacity(template.txs.len());
    let mut list = object.key("transactions").array();
    for (index, one) in template.txs.iter().enumerate() {
        places.insert(one.txid, index + 1);
        let tx = one.tx.view();
        let mut entry = list.item().object();
        entry.key("data").hex(one.tx.bytes());
        entry.key("txid").text(one.txid);
        entry.key("hash").text(one.wtxid);
        entry.key("depends").list(
            tx.inputs().filter_map(|input| places.get(&input.prevout.txid)),
            |place, json| json.count(*place),
        );
        entry.key("fee").int(one.fee_sat);
        entry.key("sigops").int(one.sigop_cost / scale);
        entry.key("weight").count(tx.weight());
    }
}

/// Lifetime of a template after a mempool change, seconds.
const KEPT_S: u64 = 5;
/// First check of the mempool by a long poll.
const FIRST_LOOK: Duration = Duration::from_mins(1);
const LATER_LOOKS: Duration = Duration::from_secs(10);
/// Poll interval for the caller's disconnection.
const LOOK_AROUND: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use assay_consensus::params::ChainParams;

    use super::*;

    #[test]
    fn template_cache_expires() {
        let params = ChainParams::by_name("regtest").unwrap();
        let genesis = Block::parse(params.genesis_block(), params.encoding).unwrap();
        let header = *genesis.header();
        let template = BlockTemplate {
            header,
            height: 1,
            coinbase: genesis.tx(0).to_owned_transaction(),
            txs: Vec::new(),
            min_time: 0,
            mempool_updates: 7,
        };
        let cached = Cached { template, made_s: 100 };
        let (tip, other) = (header.prev_block, BlockHash([1; 32]));
        for (tip, now_s, updates, expected) in [
            (tip, 100, 7, false),
            (tip, 1000, 7, false),
            (tip, 105, 8, false),
            (tip, 106, 8, true),
            (tip, 106, 6, true),
            (other, 100, 7, true),
        ] {
            assert_eq!(cached.is_stale(&tip, now_s, || updates), expected, "{now_s} {updates}");
        }
    }
}
