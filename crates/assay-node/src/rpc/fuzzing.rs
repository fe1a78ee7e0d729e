//! Access to private parsers for the targets in `fuzz/`, built only under `--cfg fuzzing`.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use assay_consensus::params::ChainParams;

use super::args::Args;
use super::{script as scripts, table};
use crate::jsonrpc::body_decoder::BodyDecoder;
use crate::jsonrpc::{CallContext, Code, Handler, Json, Params, Plan, RpcError};

/// Parses a request body, whole and in pieces, and returns its arguments as parsed.
///
/// # Panics
/// If the response depends on the cuts or is not JSON.
pub fn request(body: &[u8], cuts: &[usize]) {
    let whole = answer(&[body]);
    let mut pieces = Vec::new();
    let mut rest = body;
    for &cut in cuts {
        let (piece, behind) = rest.split_at(cut.min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    assert_eq!(answer(&pieces), whole, "the answer depends on how the body was cut");
    if let Some(text) = whole {
        let read: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(&text);
        assert!(read.is_ok(), "not JSON: {}", String::from_utf8_lossy(&text));
    }
}

fn answer(pieces: &[&[u8]]) -> Option<Vec<u8>> {
    let mut decoder = BodyDecoder::new(0);
    for piece in pieces {
        decoder.push(piece).expect("memory for a small request");
    }
    let text = decoder.finish();
    let plan = Plan::new(&Echo, &text, &|_| true);
    plan.run(&Echo, &CallContext::new(Arc::new(AtomicBool::new(false)))).body
}

pub use super::psbt::fuzz as psbt;

/// Loads a filter and matches a transaction, both from `data`.
///
/// # Panics
/// If an inserted element does not match.
pub fn bloom(data: &[u8]) {
    use assay_wire::p2p::{Command, Message};
    let Some((length, rest)) = data.split_first() else { return };
    let Some((sent, rest)) = rest.split_at_checked(usize::from(*length)) else { return };
    let Ok(Message::FilterLoad(sent)) = Message::parse(Command::new("filterload"), sent) else {
        return;
    };
    let Some(mut filter) = crate::p2p::BloomFilter::new(&sent) else { return };
    let parsed = assay_wire::Transaction::parse(rest.to_vec(), assay_wire::Encoding::Segwit);
    let Ok(tx) = parsed else { return };
    let txid = tx.view().txid();
    let matched = filter.matches_and_updates(tx.view(), &txid, false);
    // An update only adds elements.
    assert!(!matched || filter.matches_and_updates(tx.view(), &txid, false));
    filter.insert(&txid.0);
    assert!(filter.contains(&txid.0) && filter.matches_and_updates(tx.view(), &txid, false));
}

/// Reads an argument as each type that methods use.
fn read_every_way(args: &Args<'_>, index: usize) -> String {
    let numbers = (args.integer::<i32>(index).ok(), args.integer_or::<i64>(index, 7).ok());
    let truths = (args.bool_or(index, true).ok(), args.verbosity(index, 1).ok());
    let hashes = (args.block_hash(index, "hash").ok(), args.txid(index, "txid").ok());
    let amounts = (args.amount(index).ok(), args.fee_rate_or(index, 1).ok());
    let texts = (args.string(index).ok(), args.optional_string(index).ok());
    let elements = args.value(index).and_then(crate::jsonrpc::Value::elements);
    let elements: Vec<_> = elements.unwrap_or_default().into_iter().map(|e| e.hex()).collect();
    let bytes = args.hex(index);
    format!("{numbers:?} {truths:?} {hashes:?} {amounts:?} {texts:?} {elements:?} {bytes:?}")
}

/// Accepts every method and returns its arguments.
struct Echo;

impl Handler for Echo {
    type Job = Vec<String>;

    fn prepare(&self, method: &str, params: Params<'_>) -> Result<Self::Job, RpcError> {
        let (method, _) = table::find(method)
            .ok_or_else(|| RpcError::new(Code::MethodNotFound, "Method not found"))?;
        let args = method.arguments(params)?.detach();
        let args = args.args();
        Ok((0..method.args.len()).map(|index| read_every_way(&args, index)).collect())
    }

    fn waits(&self, _: &Self::Job) -> bool {
        false
    }

    fn groups(&self, job: &Self::Job) -> bool {
        job.len() == 1
    }

    fn execute(&self, job: Self::Job, _: &CallContext, out: &mut Vec<u8>) -> Result<(), RpcError> {
        Json::new(out).list(job, |text, json| json.string(&text));
        Ok(())
    }

    fn execute_group(
        &self,
        jobs: Vec<Self::Job>,
        context: &CallContext,
    ) -> Vec<Result<Vec<u8>, RpcError>> {
        let one = |job| {
            let mut out = Vec::new();
            self.execute(job, context, &mut out).map(|()| out)
        };
        jobs.into_iter().map(one).collect()
    }
}

/// Formats a script as locking and unlocking script.
///
/// # Panics
/// If the result is not JSON.
pub fn script(script: &[u8]) {
    static CHAINS: LazyLock<[ChainParams; 2]> = LazyLock::new(|| {
        ["main", "bch-regtest"].map(|name| ChainParams::by_name(name).expect("a known chain"))
    });
    for params in CHAINS.iter() {
        let mut out = Vec::new();
        let mut object = Json::new(&mut out).object();
        scripts::write_script_sig(params, script, object.key("scriptSig"));
        object.key("burns").bool(scripts::burns(params, script));
        scripts::write_script_pubkey(params, script, &mut object);
        object.end();
        let read: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(&out);
        assert!(read.is_ok(), "not JSON: {}", String::from_utf8_lossy(&out));
    }
}
