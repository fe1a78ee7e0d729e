//! `scantxoutset`: finds coins by script.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use assay_wire::OutPoint;

use super::args;
use super::descriptor::{Descriptor, NeedsPrivateKey};
use super::method::Call;
use super::{Node, Rpc, bad, bad_key};
use crate::jsonrpc::{Array, Code, Json, RpcError, Value};

#[derive(Default)]
pub(super) struct Scan {
    is_running: AtomicBool,
    pub(super) is_aborted: AtomicBool,
    pub(super) percent: AtomicU32,
}

/// Releases the scan slot on drop.
pub(super) struct Reserved<'a>(&'a Scan);

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.0.is_running.store(false, Ordering::SeqCst);
    }
}

impl Scan {
    pub(super) fn reserve(&self) -> Result<Reserved<'_>, RpcError> {
        if self.is_running.swap(true, Ordering::SeqCst) {
            return Err(bad("Scan already in progress, use action \"abort\" or \"status\""));
        }
        Ok(Reserved(self))
    }

    /// The progress, with a height if there is one; null if no scan is running.
    pub(super) fn status(&self, height: Option<u32>, out: &mut Vec<u8>) {
        if !self.is_running.load(Ordering::SeqCst) {
            return Json::new(out).null();
        }
        let mut object = Json::new(out).object();
        object.key("progress").int(self.percent.load(Ordering::Relaxed));
        if let Some(height) = height {
            object.key("current_height").int(height);
        }
    }

    /// Aborts a running scan; whether there was one.
    pub(super) fn abort(&self, out: &mut Vec<u8>) {
        let is_running = self.is_running.load(Ordering::SeqCst);
        if is_running {
            self.is_aborted.store(true, Ordering::SeqCst);
        }
        Json::new(out).bool(is_running);
    }
}

/// Scripts to find, with their descriptors and positions.
struct Needles {
    descriptors: Vec<Descriptor>,
    scripts: HashMap<Box<[u8]>, (u32, u32)>,
}

struct Found {
    outpoint: OutPoint,
    script: Box<[u8]>,
    value_sat: i64,
    height: u32,
    coinbase: bool,
}

pub(super) const SCANTXOUTSET: Call = |node, args, out| {
    let action = args.string(0)?.into_owned();
    match &*action {
        "status" => {
            node.rpc.scan.status(None, out);
            Ok(())
        }
        "abort" => {
            node.rpc.scan.abort(out);
            Ok(())
        }
        "start" => {
            let needles = args.value(1).map(|objects| needles(node.rpc, objects)).transpose();
            let _reserved = node.rpc.scan.reserve()?;
            let text = "scanobjects argument is required for the start action";
            let needles = needles?.ok_or_else(|| RpcError::new(Code::Misc, text))?;
            scan(node, &needles, out)
        }
        _ => Err(bad(format!("Invalid action '{action}'"))),
    }
};

pub(super) fn scripts_of(rpc: &Rpc, objects: Value<'_>) -> Result<HashSet<Box<[u8]>>, RpcError> {
    Ok(needles(rpc, objects)?.scripts.into_keys().collect())
}

fn needles(rpc: &Rpc, objects: Value<'_>) -> Result<Needles, RpcError> {
    let mut needles = Needles { descriptors: Vec::new(), scripts: HashMap::new() };
    for_each_position(rpc, objects, |descriptor, position, is_first| {
        if is_first {
            needles.descriptors.push(descriptor.clone());
        }
        let number = needles.descriptors.len() as u32 - 1;
        for one in descriptor.expand(&rpc.params, position)? {
            needles.scripts.entry(one.script.into()).or_insert((number, position));
        }
        Ok(())
    })?;
    Ok(needles)
}

/// Visits each position of each descriptor, with a mark for its first (Core's `EvalDescriptorStringOrObject`).
pub(super) fn for_each_position(
    rpc: &Rpc,
    objects: Value<'_>,
    mut visit: impl FnMut(&Descriptor, u32, bool) -> Result<(), NeedsPrivateKey>,
) -> Result<(), RpcError> {
    for object in objects.elements().unwrap_or_default() {
        let (text, range) = scan_object(object)?;
        for descriptor in Descriptor::parse(&rpc.params, &text).map_err(bad_key)? {
            let (low, high) = if descriptor.is_range() { range } else { (0, 0) };
            for position in low..=high {
                visit(&descriptor, position, position == low).map_err(|NeedsPrivateKey| {
                    bad_key(format!("Cannot derive script without private keys: '{text}'"))
                })?;
            }
        }
    }
    Ok(())
}

fn scan_object(object: Value<'_>) -> Result<(String, (u32, u32)), RpcError> {
    if let Some(text) = object.string() {
        return Ok((text.into_owned(), (0, RANGE_END)));
    }
    if object.type_name() != "object" {
        return Err(bad("Scan object needs to be either a string or an object"));
    }
    let text = object.member("desc");
    let text = text.ok_or_else(|| bad("Descriptor needs to be provided in scan object"))?;
    let text = args::string_of(text)?.into_owned();
    let range = object.member("range").map_or(Ok((0, RANGE_END)), parse_range)?;
    Ok((text, range))
}

/// Range: an end, or a start and an end (Core's `ParseDescriptorRange`).
pub(super) fn parse_range(value: Value<'_>) -> Result<(u32, u32), RpcError> {
    let number = |value: Value<'_>| value.json().parse::<i64>().ok();
    let form = || bad("Range must be specified as end or as [begin,end]");
    let (low, high) = match value.type_name() {
        "number" => (0, number(value).ok_or_else(form)?),
        "array" => match value.elements().unwrap_or_default()[..] {
            [low, high] => {
                let (low, high) = (number(low).ok_or_else(form)?, number(high).ok_or_else(form)?);
                if low > high {
                    let text = "Range specified as [begin,end] must not have begin after end";
                    return Err(bad(text));
                }
                (low, high)
            }
            _ => return Err(form()),
        },
        _ => return Err(form()),
    };
    if low < 0 {
        return Err(bad("Range should be greater or equal than 0"));
    }
    if high >> 31 != 0 {
        return Err(bad("End of range is too high"));
    }
    if high >= low + RANGE_LENGTH_MAX {
        return Err(bad("Range is too large"));
    }
    Ok((low as u32, high as u32))
}

fn scan(node: &Node<'_>, needles: &Needles, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let state = &node.rpc.scan;
    state.is_aborted.store(false, Ordering::SeqCst);
    let mut found = Vec::new();
    let mut count = 0u64;
    let goes_on = |percent| {
        state.percent.store(percent, Ordering::Relaxed);
        !state.is_aborted.load(Ordering::SeqCst) && !node.context.interrupted()
    };
    let outcome = node.engine.chain().scan_coins(goes_on, |outpoint, coin| {
        count += 1;
        if needles.scripts.contains_key(coin.script_pubkey) {
            found.push(Found {
                outpoint: *outpoint,
                script: coin.script_pubkey.into(),
                value_sat: coin.value,
                height: coin.height,
                coinbase: coin.coinbase,
            });
        }
    });
    let (tip, is_whole) = outcome?;
    let mut object = Json::new(out).object();
    object.key("success").bool(is_whole);
    object.key("txouts").int(count);
    object.key("height").int(tip.height);
    object.key("bestblock").text(tip.hash);
    let mut unspents = object.key("unspents").array();
    for one in &found {
        write_found(node, needles, one, tip.height, &mut unspents);
    }
    unspents.end();
    object.key("total_amount").amount(found.iter().map(|one| one.value_sat).sum());
    Ok(())
}

fn write_found(
    node: &Node<'_>,
    needles: &Needles,
    found: &Found,
    tip_height: u32,
    list: &mut Array<'_>,
) {
    let Found { outpoint, script, value_sat, height, coinbase } = found;
    let (number, position) = needles.scripts.get(script).copied().unwrap_or_default();
    let expanded = needles.descriptors[number as usize].expand(&node.rpc.params, position);
    let same = expanded.unwrap_or_default().into_iter().find(|one| one.script[..] == script[..]);
    let descriptor = same.map(|one| one.descriptor).unwrap_or_default();
    let mut object = list.item().object();
    object.key("txid").text(outpoint.txid);
    object.key("vout").int(outpoint.vout);
    object.key("scriptPubKey").hex(script);
    object.key("desc").string(&descriptor);
    object.key("amount").amount(*value_sat);
    object.key("coinbase").bool(*coinbase);
    object.key("height").int(*height);
    object.key("blockhash").text(node.engine.chain().hash_at(*height).unwrap_or_default());
    object.key("confirmations").int(i64::from(tip_height) - i64::from(*height) + 1);
}

/// Core's default end of a range.
const RANGE_END: u32 = 1000;
const RANGE_LENGTH_MAX: i64 = 1_000_000;
