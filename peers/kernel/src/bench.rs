//! The kernel's side of benchmarks: executes pieces of work on order, and reports their times.
//!
//! Orders are lines of JSON on standard input, answers are lines of JSON on standard output, so that a comparison can
//! interleave both sides. Only the work itself is timed, by the clocks of this process.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use assay_consensus::params::ChainParams;
use assay_engine::parse_prevouts;
use bitcoinkernel::prelude::*;
use bitcoinkernel::{
    BLOCK_CHECK_ALL, BLOCK_CHECK_BASE, BLOCK_CHECK_MERKLE, Block, BlockCheckResult, KernelError,
    PrecomputedTransactionData, ScriptPubkey, ScriptVerifyError, TxOut, VERIFY_TAPROOT,
};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::kernel::{Chain, Kernel, LogTap, Settings, VERSIONS, chain_of_name, listen};
use crate::verdict::Verdict;

#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Order {
    /// Report the versions of this program.
    Versions,
    /// Load a block, and optionally the outputs that it spends.
    Load { name: String, chain: String, height: u32, block: PathBuf, prevouts: Option<PathBuf> },
    /// Repeat one stage of a block.
    Run { name: String, stage: Stage, times: u32 },
    /// Load a transaction and the outputs that its inputs spend, for script flags by their bits. Everything in hex.
    LoadSpend { name: String, tx: String, spent: Vec<SpentOutput>, flags: u32 },
    /// Repeat the verification of the script of one of its inputs.
    VerifyInput { name: String, input: usize, times: u32 },
    /// Report the validity of an input of a transaction, or of all inputs if none is given; otherwise as `LoadSpend`.
    Judge { tx: String, spent: Vec<SpentOutput>, flags: u32, input: Option<usize> },
    /// Open an empty chain.
    Open { chain: String, datadir: PathBuf, workers: i32 },
    /// Submit a block to the open chain.
    Submit { block: PathBuf },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpentOutput {
    value: i64,
    script: String,
}

/// A piece of work on a block.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Stage {
    /// Deserialisation, which hashes every transaction with and without witness.
    Parse,
    /// `CheckBlock`, including proof of work and merkle root.
    Check,
    /// Time that the merkle root adds to `CheckBlock`.
    Merkle,
    /// All input scripts in sequence, including the hashes shared by a transaction.
    Scripts,
}

/// Answer to an order.
#[derive(Debug, Default, Serialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    passes: Option<bool>,
    /// Wall time of all repetitions.
    wall_ns: u64,
    /// CPU time of all threads.
    cpu_ns: u64,
}

impl std::iter::Sum for Answer {
    fn sum<I: Iterator<Item = Self>>(answers: I) -> Self {
        answers.fold(Self::default(), |sum, answer| Self {
            wall_ns: sum.wall_ns + answer.wall_ns,
            cpu_ns: sum.cpu_ns + answer.cpu_ns,
            ..sum
        })
    }
}

struct Loaded {
    raw: Vec<u8>,
    params: bitcoinkernel::ChainParams,
    txs: Vec<Spend>,
}

struct Spend {
    tx: bitcoinkernel::Transaction,
    scripts: Vec<ScriptPubkey>,
    outputs: Vec<TxOut>,
    /// Bits as in Core.
    flags: u32,
    /// True if an input spends a taproot output.
    has_taproot: bool,
}

#[derive(Default)]
struct Bench {
    blocks: HashMap<String, Loaded>,
    spends: HashMap<String, Spend>,
    kernel: Option<Kernel>,
    tap: Option<LogTap>,
}

/// Executes orders until the input ends; failed work is reported in its answer.
pub fn serve(input: impl BufRead, mut output: impl Write) -> Result<()> {
    let mut bench = Bench::default();
    for line in input.lines() {
        let line = line.context("reading an order")?;
        let answer = serde_json::from_str(&line)
            .context("no such order")
            .and_then(|order| bench.obey(order))
            .unwrap_or_else(|error| Answer {
                error: Some(format!("{error:#}")),
                ..Answer::default()
            });
        let text = serde_json::to_string(&answer).context("writing JSON")?;
        writeln!(output, "{text}").and_then(|()| output.flush()).context("writing an answer")?;
    }
    Ok(())
}

impl Bench {
    fn obey(&mut self, order: Order) -> Result<Answer> {
        match order {
            Order::Versions => Ok(Answer { versions: Some(VERSIONS), ..Answer::default() }),
            Order::Load { name, chain, height, block, prevouts } => {
                let loaded = Loaded::read(&chain, height, &block, prevouts.as_deref())?;
                let inputs = loaded.txs.iter().map(|tx| tx.outputs.len()).sum();
                self.blocks.insert(name, loaded);
                Ok(Answer { inputs: Some(inputs), ..Answer::default() })
            }
            Order::Run { name, stage, times } => {
                let block = self.blocks.get(&name).with_context(|| format!("no block {name}"))?;
                block.run(stage, times)
            }
            Order::LoadSpend { name, tx, spent, flags } => {
                let spend = Spend::read(&tx, &spent, flags)?;
                let inputs = Some(spend.outputs.len());
                self.spends.insert(name, spend);
                Ok(Answer { inputs, ..Answer::default() })
            }
            Order::VerifyInput { name, input, times } => {
                let spend = self.spends.get(&name).with_context(|| format!("no spend {name}"))?;
                spend.verify_input(input, times)
            }
            Order::Judge { tx, spent, flags, input } => {
                let passes = Some(Spend::read(&tx, &spent, flags)?.judge(input)?);
                Ok(Answer { passes, ..Answer::default() })
            }
            Order::Open { chain, datadir, workers } => {
                let chain: Chain =
                    chain_of_name(&chain).context("the kernel does not know this chain")?;
                if self.tap.is_none() {
                    self.tap = Some(listen()?);
                }
                let settings = Settings { workers, in_memory: false };
                self.kernel = Some(Kernel::open(&chain, &datadir, &settings)?);
                Ok(Answer::default())
            }
            Order::Submit { block } => {
                let kernel = self.kernel.as_ref().context("no chain is open")?;
                let raw = read(&block)?;
                let (verdict, mut answer) = timed(|| kernel.submit(&raw));
                ensure!(verdict == Verdict::Accepted, "{}: {verdict}", block.display());
                answer.tip = Some(kernel.tip().1.to_string());
                Ok(answer)
            }
        }
    }
}

impl Loaded {
    fn read(chain: &str, height: u32, block: &Path, prevouts: Option<&Path>) -> Result<Self> {
        let rules = ChainParams::by_name(chain).context("unknown chain")?;
        let Some(Chain::Known(chain_type)) = chain_of_name(chain) else {
            bail!("the kernel does not know this chain")
        };
        let raw = read(block)?;
        let parsed = parse(&raw)?;
        let mut loaded =
            Self { raw, params: bitcoinkernel::ChainParams::new(chain_type), txs: Vec::new() };
        let Some(path) = prevouts else { return Ok(loaded) };
        let bytes = read(path)?;
        let hash = assay_wire::BlockHash(parsed.hash().to_bytes());
        let flags = rules.block_script_flags(height, &hash).bits() as u32;
        let count = parsed.transactions().skip(1).map(|tx| tx.input_count()).sum();
        let spent =
            parse_prevouts(&bytes, count).with_context(|| format!("reading {}", path.display()))?;
        let mut spent = spent.iter();
        for tx in parsed.transactions().skip(1) {
            let raw = tx.consensus_encode().context("encoding a transaction")?;
            let tx = bitcoinkernel::Transaction::new(&raw).context("decoding a transaction")?;
            let count = tx.input_count();
            let spent =
                spent.by_ref().take(count).map(|output| (output.value, output.script_pubkey));
            loaded.txs.push(Spend::new(tx, spent, flags)?);
        }
        loaded.check_answers()?;
        Ok(loaded)
    }

    /// Guards against a benchmark of checks that always pass: a swapped spent output must fail.
    fn check_answers(&self) -> Result<()> {
        self.scripts()?;
        let Some(spend) = self.txs.last() else { return Ok(()) };
        let never = ScriptPubkey::new(&[0x6a]).context("a script")?;
        let mut outputs: Vec<TxOut> = Vec::new();
        for (script, output) in spend.scripts.iter().zip(&spend.outputs) {
            outputs.push(TxOut::new(script, output.value()));
        }
        outputs[0] = TxOut::new(&never, spend.outputs[0].value());
        let data = PrecomputedTransactionData::new(&spend.tx, &outputs).context("hashing")?;
        let value = Some(spend.outputs[0].value());
        let flags = Some(spend.flags);
        let verdict = bitcoinkernel::verify(&never, value, &spend.tx, 0, flags, &data);
        ensure!(verdict.is_err(), "an input passes that spends something else");
        Ok(())
    }

    fn run(&self, stage: Stage, times: u32) -> Result<Answer> {
        match stage {
            Stage::Parse => (0..times)
                .map(|_| {
                    // The block is dropped outside of the timed section.
                    let (block, answer) = timed(|| parse(&self.raw));
                    block.map(|_| answer)
                })
                .sum(),
            Stage::Check => self.check(times, BLOCK_CHECK_ALL),
            Stage::Merkle => {
                // Interleaved as well, since the difference is small.
                let (mut with, mut without) = (0, 0);
                let (mut with_cpu, mut without_cpu) = (0, 0);
                for _ in 0..times {
                    let answer = self.check(1, BLOCK_CHECK_BASE | BLOCK_CHECK_MERKLE)?;
                    (with, with_cpu) = (with + answer.wall_ns, with_cpu + answer.cpu_ns);
                    let answer = self.check(1, BLOCK_CHECK_BASE)?;
                    (without, without_cpu) =
                        (without + answer.wall_ns, without_cpu + answer.cpu_ns);
                }
                let wall_ns = u64::saturating_sub(with, without);
                let cpu_ns = u64::saturating_sub(with_cpu, without_cpu);
                Ok(Answer { wall_ns, cpu_ns, ..Answer::default() })
            }
            Stage::Scripts => {
                ensure!(!self.txs.is_empty(), "it came without the outputs that it spends");
                let (outcome, answer) = timed(|| (0..times).try_for_each(|_| self.scripts()));
                outcome.map(|()| answer)
            }
        }
    }

    /// Blocks cache the result of their check, so each copy is checked once.
    fn check(&self, times: u32, flags: bitcoinkernel::BlockCheckFlags) -> Result<Answer> {
        (0..times)
            .map(|_| {
                let block = parse(&self.raw)?;
                let (result, answer) = timed(|| block.check(&self.params, flags));
                ensure!(matches!(result, BlockCheckResult::Valid), "the block is invalid");
                Ok(answer)
            })
            .sum()
    }

    fn scripts(&self) -> Result<()> {
        for spend in &self.txs {
            let (data, flags) = spend.shared()?;
            for (input, script) in spend.scripts.iter().enumerate() {
                let value = Some(spend.outputs[input].value());
                bitcoinkernel::verify(script, value, &spend.tx, input, Some(flags), &data)
                    .with_context(|| format!("input {input} fails"))?;
            }
        }
        Ok(())
    }
}

impl Spend {
    fn new(
        tx: bitcoinkernel::Transaction,
        spent: impl Iterator<Item = (i64, impl AsRef<[u8]>)>,
        flags: u32,
    ) -> Result<Self> {
        let (mut scripts, mut outputs) = (Vec::new(), Vec::new());
        for (value, script) in spent {
            let script = ScriptPubkey::new(script.as_ref()).context("a script")?;
            outputs.push(TxOut::new(&script, value));
            scripts.push(script);
        }
        let is_taproot = |script: &ScriptPubkey| matches!(script.to_bytes()[..], [0x51, 0x20, ..]);
        let has_taproot = scripts.iter().any(is_taproot);
        Ok(Self { tx, scripts, outputs, flags, has_taproot })
    }

    fn read(tx: &str, spent: &[SpentOutput], flags: u32) -> Result<Self> {
        let tx = bitcoinkernel::Transaction::new(&from_hex(tx)?).context("decoding")?;
        ensure!(tx.input_count() == spent.len(), "one output for each input is needed");
        let spent: Vec<_> = spent
            .iter()
            .map(|SpentOutput { value, script }| Ok((*value, from_hex(script)?)))
            .collect::<Result<_>>()?;
        Self::new(tx, spent.into_iter(), flags)
    }

    /// Hashes shared by the inputs, and the flags that go with them.
    ///
    /// The kernel's interface copies this data for every input, with all outputs that the
    /// transaction spends (`btck_script_pubkey_verify`, src/kernel/bitcoinkernel.cpp); Bitcoin
    /// Core's validation of a block does not. Only taproot reads these outputs, so a transaction
    /// without taproot inputs is verified without them and without that flag.
    fn shared(&self) -> Result<(PrecomputedTransactionData, u32)> {
        if self.has_taproot {
            let data = PrecomputedTransactionData::new(&self.tx, &self.outputs);
            return Ok((data.context("hashing")?, self.flags));
        }
        let data = PrecomputedTransactionData::new(&self.tx, &[] as &[TxOut]).context("hashing")?;
        Ok((data, self.flags & !VERIFY_TAPROOT))
    }

    /// True if the input passes, or all inputs do.
    fn judge(&self, input: Option<usize>) -> Result<bool> {
        let data = PrecomputedTransactionData::new(&self.tx, &self.outputs).context("hashing")?;
        for input in input.map_or(0..self.scripts.len(), |input| input..input + 1) {
            let script = self.scripts.get(input).context("no such input")?;
            let value = Some(self.outputs[input].value());
            match bitcoinkernel::verify(script, value, &self.tx, input, Some(self.flags), &data) {
                Ok(()) => {}
                Err(KernelError::ScriptVerify(ScriptVerifyError::Invalid)) => return Ok(false),
                Err(error) => return Err(error).context("asking the kernel"),
            }
        }
        Ok(true)
    }

    /// Hashes shared by the inputs of a transaction are computed before the timed section.
    fn verify_input(&self, input: usize, times: u32) -> Result<Answer> {
        let script = self.scripts.get(input).context("no such input")?;
        let value = Some(self.outputs[input].value());
        let (data, flags) = self.shared()?;
        let (outcome, answer) = timed(|| {
            (0..times).try_for_each(|_| {
                bitcoinkernel::verify(script, value, &self.tx, input, Some(flags), &data)
            })
        });
        outcome.context("the input fails")?;
        Ok(answer)
    }
}

fn from_hex(text: &str) -> Result<Vec<u8>> {
    let mut bytes = vec![0; text.len() / 2];
    faster_hex::hex_decode(text.as_bytes(), &mut bytes).context("decoding hex")?;
    Ok(bytes)
}

fn parse(raw: &[u8]) -> Result<Block> {
    Block::new(raw).context("decoding a block")
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("reading {}", path.display()))
}

/// CPU time of all threads of this process.
pub(crate) fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Answer) {
    let (cpu_start_ns, start) = (cpu_ns(), Instant::now());
    let outcome = work();
    let wall_ns = start.elapsed().as_nanos() as u64;
    let cpu_ns = cpu_ns() - cpu_start_ns;
    (outcome, Answer { wall_ns, cpu_ns, ..Answer::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(orders: &str) -> Vec<serde_json::Value> {
        let mut answers = Vec::new();
        serve(orders.as_bytes(), &mut answers).unwrap();
        let text = String::from_utf8(answers).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// An input that anyone can spend, and one that nobody can.
    #[test]
    fn inputs_are_verified_as_often_as_asked() {
        let tx = format!(
            "01000000{:02x}{}{}01{}015100000000",
            2,
            format!("{}00ffffffff", "11".repeat(36)),
            format!("{}00ffffffff", "22".repeat(36)),
            "0100000000000000",
        );
        let spent = serde_json::json!([
            { "value": 1, "script": "51" },
            { "value": 1, "script": "6a" },
        ]);
        let load = serde_json::json!(
            { "do": "load-spend", "name": "x", "tx": tx, "spent": spent, "flags": 1 }
        );
        let verify = |input: u32| {
            format!(r#"{{"do":"verify-input","name":"x","input":{input},"times":100}}"#)
        };
        let mut judge = load.clone();
        judge["do"] = "judge".into();
        judge.as_object_mut().unwrap().remove("name");
        let mut judge = |input: Option<u32>| {
            judge["input"] = input.into();
            judge.to_string()
        };
        let verdicts = talk(&[judge(Some(0)), judge(Some(1)), judge(None)].join("\n"));
        let passes: Vec<_> = verdicts.iter().map(|answer| answer["passes"].as_bool()).collect();
        assert_eq!(passes, [Some(true), Some(false), Some(false)]);
        let answers = talk(&[load.to_string(), verify(0), verify(1), verify(2)].join("\n"));
        assert_eq!(answers[0]["inputs"], 2, "{}", answers[0]);
        assert!(answers[1]["error"].is_null() && answers[1]["wall_ns"].as_u64().unwrap() > 0);
        for (answer, part) in answers[2..].iter().zip(["the input fails", "no such input"]) {
            assert!(answer["error"].as_str().unwrap().contains(part), "{answer}");
        }
    }

    #[test]
    fn orders_are_executed_or_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let genesis = ChainParams::by_name("regtest").unwrap().genesis.block();
        let path = dir.path().join("genesis");
        std::fs::write(&path, genesis).unwrap();
        let load = serde_json::json!({
            "do": "load", "name": "genesis", "chain": "regtest", "height": 1, "block": path, "prevouts": null
        });
        let run =
            |stage: &str| format!(r#"{{"do":"run","name":"genesis","stage":"{stage}","times":3}}"#);
        let orders = [
            r#"{"do":"versions"}"#.to_owned(),
            load.to_string(),
            run("parse"),
            run("check"),
            run("merkle"),
            run("scripts"),
            r#"{"do":"submit","block":"x"}"#.to_owned(),
            r#"{"do":"dance"}"#.to_owned(),
        ];
        let answers = talk(&orders.join("\n"));
        assert!(answers[0]["versions"].as_str().unwrap().contains("Bitcoin Core"));
        assert_eq!(answers[1]["inputs"], 0);
        for answer in &answers[2..5] {
            assert!(answer["error"].is_null(), "{answer}");
        }
        assert!(answers[2]["wall_ns"].as_u64().unwrap() > 0);
        for (answer, part) in answers[5..].iter().zip(["without the outputs", "no chain", "order"])
        {
            assert!(answer["error"].as_str().unwrap().contains(part), "{answer}");
        }
    }
}
