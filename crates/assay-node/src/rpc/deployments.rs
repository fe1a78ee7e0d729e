//! RPC of soft fork deployments.

use assay_consensus::script::Flags;
use assay_consensus::versionbits::{Deployment, DeploymentState};
use assay_engine::DeploymentInfo;
use assay_wire::BlockHash;

use super::method::Call;
use super::{Node, block_not_found};
use crate::jsonrpc::{Json, Object, RpcError};

pub(super) const GETDEPLOYMENTINFO: Call = |node, args, out| {
    let hash = args.optional_block_hash(0, "blockhash")?;
    let hash = hash.unwrap_or_else(|| node.engine.chain().tip().hash);
    info(node, &hash, out)
};

pub(super) fn info(node: &Node<'_>, hash: &BlockHash, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let params = &node.rpc.params;
    let entry = node.engine.chain().entry(hash).ok_or_else(block_not_found)?;
    let deployments =
        node.engine.chain().deployments(hash, &params.deployments).ok_or_else(block_not_found)?;
    let next = entry.height + 1;
    let mut object = Json::new(out).object();
    object.key("hash").text(hash);
    object.key("height").int(entry.height);
    let mut flags = object.key("script_flags").array();
    let set = params.block_script_flags(entry.height, hash);
    let mut names: Vec<&str> = Flags::NAMED
        .iter()
        .filter(|(_, flag)| set.contains(*flag))
        .map(|(name, _)| *name)
        .collect();
    names.sort_unstable();
    for name in names {
        flags.item().string(name);
    }
    flags.end();
    let mut list = object.key("deployments").object();
    let heights = &params.activation;
    for (name, height) in [
        ("bip34", heights.bip34),
        ("bip66", heights.bip66),
        ("bip65", heights.bip65),
        ("csv", heights.csv),
        ("segwit", heights.segwit),
    ] {
        // Never active on this chain.
        if height == u32::MAX {
            continue;
        }
        let mut entry = list.key(name).object();
        entry.key("type").string("buried");
        entry.key("active").bool(next >= height);
        entry.key("height").int(height);
    }
    for one in deployments.iter().filter(|one| one.deployment.start_time.is_some()) {
        write_bip9(one, next, list.key(one.deployment.name).object());
    }
    if heights.segwit != u32::MAX {
        write_taproot(node, hash, next, list.key("taproot").object())?;
    }
    Ok(())
}

/// Taproot as in release 31: by the signals of 2021 on mainnet, always active on other chains.
fn write_taproot(
    node: &Node<'_>,
    hash: &BlockHash,
    next_height: u32,
    mut object: Object<'_>,
) -> Result<(), RpcError> {
    let signalled = match node.rpc.params.name {
        "main" => TAPROOT,
        "test" => Deployment { min_activation_height: 0, threshold: 1512, ..TAPROOT },
        _ => {
            object.key("type").string("bip9");
            object.key("height").int(0);
            object.key("active").bool(true);
            let mut bip9 = object.key("bip9").object();
            bip9.key("start_time").int(ALWAYS_ACTIVE);
            bip9.key("timeout").int(i64::MAX);
            bip9.key("min_activation_height").int(0);
            bip9.key("status").string(DeploymentState::Active.name());
            bip9.key("since").int(0);
            bip9.key("status_next").string(DeploymentState::Active.name());
            bip9.end();
            object.end();
            return Ok(());
        }
    };
    let found = node.engine.chain().deployments(hash, &[signalled]).ok_or_else(block_not_found)?;
    write_bip9(&found[0], next_height, object);
    Ok(())
}

fn write_bip9(info: &DeploymentInfo, next_height: u32, mut object: Object<'_>) {
    let DeploymentInfo { deployment, state, next_state, since, signals } = info;
    object.key("type").string("bip9");
    let is_active_next = *next_state == DeploymentState::Active;
    if is_active_next {
        let is_active = *state == DeploymentState::Active;
        object.key("height").int(if is_active { *since } else { next_height });
    }
    object.key("active").bool(is_active_next);
    let mut bip9 = object.key("bip9").object();
    if state.is_signalled() {
        bip9.key("bit").int(deployment.bit);
    }
    bip9.key("start_time").int(deployment.start_time.unwrap_or(0));
    bip9.key("timeout").int(deployment.timeout.map_or(i64::MAX, i64::from));
    bip9.key("min_activation_height").int(deployment.min_activation_height);
    bip9.key("status").string(state.name());
    bip9.key("since").int(*since);
    bip9.key("status_next").string(next_state.name());
    if state.is_signalled() {
        let count = signals.iter().filter(|is_signal| **is_signal).count();
        let mut statistics = bip9.key("statistics").object();
        statistics.key("period").int(deployment.period);
        statistics.key("elapsed").count(signals.len());
        statistics.key("count").count(count);
        if *state == DeploymentState::Started {
            let silent = signals.len() - count;
            let allowed =
                (deployment.period - deployment.threshold.min(deployment.period)) as usize;
            statistics.key("threshold").int(deployment.threshold);
            statistics.key("possible").bool(silent <= allowed);
        }
        statistics.end();
        let marks: String =
            signals.iter().map(|is_signal| if *is_signal { '#' } else { '-' }).collect();
        bip9.key("signalling").string(&marks);
    }
}

/// Taproot signalling on mainnet (Bitcoin Core 31, `kernel/chainparams.cpp`).
const TAPROOT: Deployment = Deployment {
    name: "taproot",
    bit: 2,
    start_time: Some(1_619_222_400),
    timeout: Some(1_628_640_000),
    min_activation_height: 709_632,
    period: 2016,
    threshold: 1815,
    is_optional: true,
};

/// Core's `BIP9Deployment::ALWAYS_ACTIVE`.
const ALWAYS_ACTIVE: i32 = -1;
