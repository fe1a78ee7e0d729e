//! The same counts through a node's JSON-RPC, block by block with `getblock HASH 2`, as scripts do.

use std::fmt;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use assay_lab::process::rpc::Client;
use assay_stats::{BlockSet, Heights, Item, ReadOptions, read};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::bar::Bar;

/// Maximum length of a response: a block of 256 MB, in hexadecimal and decoded.
const ANSWER_BYTES_MAX: u64 = 4 << 30;

const TIMEOUT: Duration = Duration::from_mins(5);

/// Maximum number of listed differences.
const NAMED_MAX: usize = 16;

/// Time and rates from the search for headers to the last count.
#[derive(Debug, Serialize)]
pub(super) struct Speed {
    pub(super) threads: usize,
    pub(super) seconds: f64,
    pub(super) mb_per_s: f64,
    pub(super) blocks_per_s: f64,
}

impl Speed {
    pub(super) fn new(threads: usize, seconds: f64, bytes: u64, blocks: u64) -> Self {
        let per_s = |count: f64| count / seconds.max(1e-9);
        Self {
            threads,
            seconds,
            mb_per_s: per_s(bytes as f64 / 1e6),
            blocks_per_s: per_s(blocks as f64),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct RpcFigures {
    pub(super) blocks: u64,
    /// Bytes of the serialised blocks and of the responses.
    pub(super) bytes: u64,
    pub(super) answer_bytes: u64,
    pub(super) speed: Speed,
    /// Our rate over the rate of RPC, in block bytes.
    pub(super) ratio: f64,
    /// True if all counts equal ours.
    pub(super) equal: bool,
    pub(super) differences: Vec<String>,
}

/// Counts available through RPC; `None` if the node does not report one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct BlockCounts {
    bytes: u64,
    weight: Option<u64>,
    txs: u64,
    inputs: u64,
    outputs: u64,
    segwit_inputs: u64,
}

impl fmt::Display for BlockCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, weight, txs, inputs, outputs, segwit_inputs } = self;
        let weight = weight.map_or_else(String::new, |weight| format!("weight {weight}, "));
        write!(
            f,
            "{bytes} bytes, {weight}{txs} transactions, {inputs} inputs ({segwit_inputs} SegWit), {outputs} outputs"
        )
    }
}

#[derive(Deserialize)]
struct Answer {
    result: Option<RpcBlock>,
    error: Option<RpcFault>,
}

#[derive(Deserialize)]
struct RpcFault {
    code: i64,
    message: String,
}

#[derive(Deserialize)]
struct RpcBlock {
    size: u64,
    weight: Option<u64>,
    tx: Vec<RpcTx>,
}

#[derive(Deserialize)]
struct RpcTx {
    vin: Vec<RpcInput>,
    vout: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct RpcInput {
    coinbase: Option<IgnoredAny>,
    txinwitness: Option<Vec<IgnoredAny>>,
}

impl RpcBlock {
    fn counts(&self) -> BlockCounts {
        let spending =
            || self.tx.iter().flat_map(|tx| &tx.vin).filter(|input| input.coinbase.is_none());
        let has_witness =
            |input: &&RpcInput| input.txinwitness.as_ref().is_some_and(|items| !items.is_empty());
        BlockCounts {
            bytes: self.size,
            weight: self.weight,
            txs: self.tx.len() as u64,
            inputs: spending().count() as u64,
            outputs: self.tx.iter().map(|tx| tx.vout.len() as u64).sum(),
            segwit_inputs: spending().filter(has_witness).count() as u64,
        }
    }
}

/// Reads up to `blocks_max` evenly spread blocks over one connection, and compares every count.
pub(super) fn measure(
    address: SocketAddr,
    cookie: &Path,
    blocks_max: u32,
    set: &BlockSet,
    ours: &Speed,
) -> anyhow::Result<RpcFigures> {
    let credentials = std::fs::read_to_string(cookie)
        .with_context(|| format!("cannot read {}", cookie.display()))?;
    let node = Client::limited(address, credentials.trim(), Some(TIMEOUT), ANSWER_BYTES_MAX);
    let heights = spread(set.heights(), blocks_max);
    let bar = Bar::new("by RPC [{bar:25}] {pos}/{len} blocks  {per_sec}  ETA {eta}");
    let (mut answers, mut answer_bytes) = (Vec::with_capacity(heights.len()), 0);
    let start = Instant::now();
    for height in &heights {
        let Some(hash) = set.hash(*height) else { continue };
        let (counts, bytes) = block(&node, &hash.to_string())?;
        answers.push((*height, counts));
        answer_bytes += bytes;
        bar.set(answers.len() as u64, heights.len() as u64);
    }
    let seconds = start.elapsed().as_secs_f64();
    drop(bar);
    let bytes = answers.iter().map(|(_, counts)| counts.bytes).sum();
    let blocks = answers.len() as u64;
    let speed = Speed::new(1, seconds, bytes, blocks);
    let differences = compare(set, &answers);
    Ok(RpcFigures {
        blocks,
        bytes,
        answer_bytes,
        ratio: ours.mb_per_s / speed.mb_per_s.max(1e-9),
        speed,
        equal: differences.is_empty(),
        differences,
    })
}

/// At most `max` evenly spread heights, including the last one.
fn spread(heights: Heights, max: u32) -> Vec<u32> {
    let Heights { first, last } = heights;
    let count = u64::from(last - first) + 1;
    let taken = count.min(u64::from(max));
    (1..=taken).map(|number| first + (number * count / taken - 1) as u32).collect()
}

fn compare(set: &BlockSet, answers: &[(u32, BlockCounts)]) -> Vec<String> {
    let mut differences = Vec::new();
    for (height, theirs) in answers {
        let mut ours = None;
        let one = Heights { first: *height, last: *height };
        read(set, one, &ReadOptions::default(), &mut |item| {
            if let Item::Block(row) = item {
                let counts = row.counts;
                ours = Some(BlockCounts {
                    bytes: counts.bytes,
                    weight: theirs.weight.map(|_| counts.weight),
                    txs: counts.txs,
                    inputs: counts.inputs,
                    outputs: counts.outputs,
                    segwit_inputs: counts.segwit_inputs,
                });
            }
            ControlFlow::Continue(())
        });
        if ours != Some(*theirs) && differences.len() < NAMED_MAX {
            let ours = ours.map_or_else(|| "no block".to_owned(), |ours| ours.to_string());
            differences.push(format!("height {height}: {theirs} by RPC, {ours} in the files"));
        }
    }
    differences
}

/// Counts of a block and the length of the response.
fn block(node: &Client, hash: &str) -> anyhow::Result<(BlockCounts, u64)> {
    let url = node.url();
    let body =
        format!(r#"{{"jsonrpc":"1.0","id":"assay","method":"getblock","params":["{hash}",2]}}"#);
    let answer = node.post("getblock", body.as_bytes(), None).with_context(|| url.to_owned())?;
    let parsed: Answer = serde_json::from_slice(&answer)
        .with_context(|| format!("{url}: the answer about block {hash} is not one"))?;
    match (parsed.result, parsed.error) {
        (_, Some(fault)) => {
            bail!("{url}: getblock {hash}: error {}: {}", fault.code, fault.message)
        }
        (Some(block), None) => Ok((block.counts(), answer.len() as u64)),
        (None, None) => bail!("{url}: getblock {hash}: no answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_are_spread_evenly() {
        assert_eq!(spread(Heights { first: 1, last: 5 }, 10), [1, 2, 3, 4, 5]);
        assert_eq!(spread(Heights { first: 1, last: 10 }, 5), [2, 4, 6, 8, 10]);
        assert_eq!(spread(Heights { first: 0, last: 0 }, 3), [0]);
        assert_eq!(
            spread(Heights { first: 0, last: u32::MAX - 1 }, 2),
            [(u32::MAX / 2) - 1, u32::MAX - 1]
        );
    }

    #[test]
    fn answers_are_counted() {
        let text = r#"{"result":{"size":300,"weight":900,"hash":"x","tx":[
            {"vin":[{"coinbase":"00","txinwitness":["00"]}],"vout":[{},{}]},
            {"vin":[{"txid":"a","txinwitness":["01"]},{"txid":"b"}],"vout":[{"value":1.5}]}]},"error":null,"id":1}"#;
        let answer: Answer = serde_json::from_str(text).expect("JSON");
        let expected = BlockCounts {
            bytes: 300,
            weight: Some(900),
            txs: 2,
            inputs: 2,
            outputs: 3,
            segwit_inputs: 1,
        };
        assert_eq!(answer.result.expect("a block").counts(), expected);
    }
}
