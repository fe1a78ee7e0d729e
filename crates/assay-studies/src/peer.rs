//! The kernel peer as a process that works on request: `assay-peer-kernel bench`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use assay_consensus::script::Flags;
use assay_wire::{Tx, TxOut};
use faster_hex::hex_string;
use serde::Deserialize;
use serde_json::{Value, json};

use assay_bench::harness::Sample;
use assay_bench::talk::Talk;

use crate::cannot_use;

#[derive(Debug, Deserialize)]
struct Answer {
    versions: Option<String>,
    inputs: Option<usize>,
    tip: Option<String>,
    passes: Option<bool>,
    wall_ns: u64,
    cpu_ns: u64,
}

/// The running peer; stopped on drop. Requests fail when communication fails, or the peer rejects them.
#[derive(Debug)]
pub(crate) struct KernelPeer(Talk);

impl KernelPeer {
    pub(crate) fn start(program: &Path) -> Result<Self> {
        Talk::start(program, &["bench".to_owned()]).map(Self)
    }

    pub(crate) fn versions(&mut self) -> Result<String> {
        Ok(self.order(&json!({ "do": "versions" }))?.versions.unwrap_or_default())
    }

    /// Loads a block; returns the number of inputs with known spent outputs.
    pub(crate) fn load(
        &mut self,
        name: &str,
        (chain, height): (&str, u32),
        block: &Path,
        prevouts: Option<&Path>,
    ) -> Result<usize> {
        let order = json!({
            "do": "load", "name": name, "chain": chain, "height": height, "block": absolute(block)?,
            "prevouts": prevouts.map(absolute).transpose()?,
        });
        Ok(self.order(&order)?.inputs.unwrap_or_default())
    }

    pub(crate) fn run(&mut self, name: &str, stage: &str, times: u64) -> Result<Sample> {
        let order = json!({ "do": "run", "name": name, "stage": stage, "times": times });
        let Answer { wall_ns, cpu_ns, .. } = self.order(&order)?;
        Ok(Sample::timed(times, wall_ns, cpu_ns))
    }

    pub(crate) fn load_spend(
        &mut self,
        name: &str,
        tx: Tx<'_>,
        spent: &[TxOut<'_>],
        flags: Flags,
    ) -> Result<()> {
        let order = json!({
            "do": "load-spend", "name": name, "tx": hex_string(tx.raw()), "spent": outputs(spent), "flags": flags.bits(),
        });
        self.order(&order).map(drop)
    }

    /// Verifies one input of a transaction, or all. Flags outside of [`Flags::BITCOIN_BLOCK`] are rejected.
    pub(crate) fn judge(
        &mut self,
        tx: Tx<'_>,
        spent: &[TxOut<'_>],
        flags: Flags,
        input: Option<usize>,
    ) -> Result<bool> {
        let order = json!({
            "do": "judge", "tx": hex_string(tx.raw()), "spent": outputs(spent), "flags": flags.bits(), "input": input,
        });
        self.order(&order)?.passes.context("the kernel does not say whether the input passes")
    }

    pub(crate) fn verify_input(&mut self, name: &str, input: usize, times: u64) -> Result<Sample> {
        let order = json!({ "do": "verify-input", "name": name, "input": input, "times": times });
        let Answer { wall_ns, cpu_ns, .. } = self.order(&order)?;
        Ok(Sample::timed(times, wall_ns, cpu_ns))
    }

    pub(crate) fn open(&mut self, chain: &str, dir: &Path, workers: usize) -> Result<()> {
        let order =
            json!({ "do": "open", "chain": chain, "datadir": absolute(dir)?, "workers": workers });
        self.order(&order).map(drop)
    }

    /// Submits a block, which must become the tip; returns the tip's hash too.
    pub(crate) fn submit(&mut self, block: &Path) -> Result<(Sample, String)> {
        let order = json!({ "do": "submit", "block": absolute(block)? });
        let Answer { wall_ns, cpu_ns, tip, .. } = self.order(&order)?;
        Ok((Sample::timed(1, wall_ns, cpu_ns), tip.unwrap_or_default()))
    }

    fn order(&mut self, order: &Value) -> Result<Answer> {
        self.0.ask(order)
    }
}

fn outputs(spent: &[TxOut<'_>]) -> Vec<Value> {
    let describe = |output: &TxOut<'_>| json!({ "value": output.value, "script": hex_string(output.script_pubkey) });
    spent.iter().map(describe).collect()
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| cannot_use(path))
}
