//! `scanblocks`: finds blocks by filter.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use assay_electrum::FilterIndex;
use assay_wire::BlockHash;
use assay_wire::filter::Filter;

use super::blocks::block_and_spent;
use super::filters::{BASIC, failed, named};
use super::method::Call;
use super::scan::{Scan, scripts_of};
use super::{Node, bad};
use crate::jsonrpc::{Code, Json, RpcError};

#[derive(Default)]
pub(super) struct FilterScan {
    scan: Scan,
    height: AtomicU32,
}

struct Request {
    scripts: Option<Result<HashSet<Box<[u8]>>, RpcError>>,
    start: Option<i64>,
    stop: Option<i64>,
    kind: String,
    checks_blocks: bool,
}

pub(super) const SCANBLOCKS: Call = |node, args, out| {
    let action = args.string(0)?.into_owned();
    match &*action {
        "status" => {
            let FilterScan { scan, height } = &node.rpc.filter_scan;
            scan.status(Some(height.load(Ordering::Relaxed)), out);
            Ok(())
        }
        "abort" => {
            node.rpc.filter_scan.scan.abort(out);
            Ok(())
        }
        "start" => {
            let height = |index| args.value(index).map(|_| args.integer(index)).transpose();
            let request = Request {
                scripts: args.value(1).map(|objects| scripts_of(node.rpc, objects)),
                start: height(2)?,
                stop: height(3)?,
                kind: args.optional_string(4)?.map_or(BASIC.into(), std::borrow::Cow::into_owned),
                checks_blocks: args.option_or(5, "filter_false_positives", false)?,
            };
            start(node, request, out)
        }
        _ => Err(bad(format!("Invalid action '{action}'"))),
    }
};

fn start(node: &Node<'_>, request: Request, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let failure = |text: &'static str| RpcError::new(Code::Misc, text);
    let FilterScan { scan, height: current } = &node.rpc.filter_scan;
    let _reserved = scan.reserve()?;
    let text = "scanobjects argument is required for the start action";
    let scripts = request.scripts.ok_or_else(|| failure(text))?;
    let index = named(node, &request.kind)?;
    let tip = node.engine.chain().tip().height;
    let active = |height: i64| u32::try_from(height).ok().filter(|height| *height <= tip);
    let first = request.start.map_or(Some(0), active);
    let first = first.ok_or_else(|| failure("Invalid start_height"))?;
    let last = request.stop.map_or(Some(tip), active).filter(|last| *last >= first);
    let last = last.ok_or_else(|| failure("Invalid stop_height"))?;
    let (scripts, mut found) = (scripts?, Vec::new());
    scan.is_aborted.store(false, Ordering::SeqCst);
    let mut at = first;
    let mut is_whole = true;
    for height in first..=last {
        if scan.is_aborted.load(Ordering::SeqCst) || node.context.interrupted() {
            is_whole = false;
            break;
        }
        at = height;
        current.store(height, Ordering::Relaxed);
        let percent = u64::from(height - first) * 100 / u64::from((last - first).max(1));
        scan.percent.store(percent as u32, Ordering::Relaxed);
        // Skips blocks missing from the index or no longer active, as in Core.
        let Some(hash) = node.engine.chain().hash_at(height) else { continue };
        let is_wanted = matches(index, &hash, height, &scripts)?
            && (!request.checks_blocks || has_script(node, &hash, &scripts)?);
        if is_wanted {
            found.push(hash);
        }
    }
    let mut object = Json::new(out).object();
    object.key("from_height").int(first);
    object.key("to_height").int(at);
    object.key("relevant_blocks").list(found, |hash, json| json.text(hash));
    object.key("completed").bool(is_whole);
    Ok(())
}

fn matches(
    index: &FilterIndex,
    hash: &BlockHash,
    height: u32,
    scripts: &HashSet<Box<[u8]>>,
) -> Result<bool, RpcError> {
    let Some(entry) = index.entry(hash, height).map_err(|error| failed(&error))? else {
        return Ok(false);
    };
    let bytes = index.filter(&entry).map_err(|error| failed(&error))?;
    let filter = Filter::parse(&bytes)
        .map_err(|error| RpcError::new(Code::InternalError, error.to_string()))?;
    Ok(filter.matches_any(hash, scripts))
}

/// True if a block pays to or spends from one of the scripts.
fn has_script(
    node: &Node<'_>,
    hash: &BlockHash,
    scripts: &HashSet<Box<[u8]>>,
) -> Result<bool, RpcError> {
    let (block, spent) = block_and_spent(node, hash)?;
    let mut outputs = block.txs().flat_map(assay_wire::Tx::outputs);
    Ok(outputs.any(|output| scripts.contains(output.script_pubkey))
        || spent.iter().flatten().any(|coin| scripts.contains(&coin.script_pubkey[..])))
}
