//! `assay block`.

use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use anyhow::{Context, anyhow};
use assay_engine::{
    Block, BlockError, BlockVerifier, RuleSet, SpendSums, SpendType, TxOut, TypeCounts,
    VerifyBlockError, format_money, parse_prevouts,
};
use faster_hex::hex_string;
use serde::Serialize;

use super::chain;
use crate::Outcome;
use crate::cli::{BlockArguments, BlockCommand, BlockVerifyArguments};
use crate::output;

pub(crate) fn run(arguments: &BlockArguments) -> anyhow::Result<Outcome> {
    let BlockCommand::Verify(arguments) = &arguments.command;
    verify(arguments)
}

fn verify(arguments: &BlockVerifyArguments) -> anyhow::Result<Outcome> {
    let params = chain(&arguments.chain)?;
    let file = arguments.file.display();
    let raw = fs::read(&arguments.file).with_context(|| format!("cannot read block {file}"))?;
    let block = Block::parse(raw, params.encoding)
        .with_context(|| format!("{file} is not one serialised block"))?;
    let path = arguments.prevouts.display();
    let bytes =
        fs::read(&arguments.prevouts).with_context(|| format!("cannot read prevouts {path}"))?;

    let start = Instant::now();
    let rules = RuleSet::by_name(&arguments.rules)
        .ok_or_else(|| anyhow!(RuleSet::unknown(&arguments.rules)))?;
    let verifier = BlockVerifier::new(&params, &block, arguments.height, arguments.median_time)
        .with_rules(rules);
    let unusable = || format!("prevouts {path} do not belong to block {}", verifier.hash());
    let mut report = Report::new(params.name, arguments.height, &block, &verifier);
    // Inputs are counted only if the merkle root matches the header.
    let alone = verifier.check_alone();
    report.checks_s = start.elapsed().as_secs_f64();
    if let Err(error) = alone {
        return report.reject(&error, &block, None, arguments.json);
    }
    let spent = parse_prevouts(&bytes, verifier.input_count()).with_context(unusable)?;
    let sums = match verifier.check_spends(&spent) {
        Ok(sums) => sums,
        Err(VerifyBlockError::Invalid(error)) => {
            return report.reject(&error, &block, Some((&verifier, &spent)), arguments.json);
        }
        Err(error @ VerifyBlockError::OtherPrevout { .. }) => {
            return Err(error).with_context(unusable);
        }
    };
    report.checks_s = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let verdict = verifier.verify_scripts(&spent, 0..block.tx_count());
    report.scripts_s = start.elapsed().as_secs_f64();
    match verdict {
        Ok(counts) => {
            report.accept(&sums, &counts, verifier.rules().subsidy);
            output::print_as(arguments.json, &report, || report.text())?;
            Ok(Outcome::Good)
        }
        Err(error) => report.reject(&error, &block, Some((&verifier, &spent)), arguments.json),
    }
}

/// Output of `assay block verify --json`.
#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    valid: bool,
    chain: String,
    height: u32,
    hash: String,
    script_flags: String,
    txs: usize,
    inputs: usize,
    outputs: usize,
    bytes: usize,
    weight: usize,
    sums: Option<Sums>,
    types: Vec<TypeLine>,
    signature_checks: u64,
    checks_s: f64,
    scripts_s: f64,
    unchecked: Vec<&'static str>,
    reject: Option<Reject>,
}

#[derive(Debug, Serialize)]
struct Sums {
    fees_sat: i64,
    subsidy_sat: i64,
    sigop_cost: u64,
}

#[derive(Debug, Serialize)]
struct TypeLine {
    name: &'static str,
    inputs: u64,
    signature_checks: u64,
}

/// Reason of the rejection, with evidence.
#[derive(Debug, Serialize)]
struct Reject {
    reason: String,
    debug: String,
    detail: String,
    tx_index: Option<usize>,
    txid: Option<String>,
    input: Option<usize>,
    evidence: Option<Evidence>,
}

/// A failing input, with all data of its verdict except the rest of its transaction.
#[derive(Debug, Serialize)]
struct Evidence {
    wtxid: String,
    prevout: String,
    script_error: String,
    value_sat: i64,
    script_pubkey: String,
    script_sig: String,
    sequence: u32,
    witness: Vec<String>,
}

impl Report {
    fn new(chain: &str, height: u32, block: &Block, verifier: &BlockVerifier<'_>) -> Self {
        Self {
            schema: 1,
            valid: false,
            chain: chain.to_owned(),
            height,
            hash: verifier.hash().to_string(),
            script_flags: format!("{:?}", verifier.rules().flags),
            txs: block.tx_count(),
            inputs: verifier.input_count(),
            outputs: block.output_count(),
            bytes: block.bytes().len(),
            weight: block.weight(),
            sums: None,
            types: Vec::new(),
            signature_checks: 0,
            checks_s: 0.0,
            scripts_s: 0.0,
            unchecked: verifier.unchecked(),
            reject: None,
        }
    }

    fn accept(&mut self, sums: &SpendSums, counts: &TypeCounts, subsidy_sat: i64) {
        self.valid = true;
        let SpendSums { fees: fees_sat, sigop_cost } = *sums;
        self.sums = Some(Sums { fees_sat, subsidy_sat, sigop_cost });
        self.signature_checks = counts.total().sig_checks;
        self.types = SpendType::ALL
            .into_iter()
            .map(|spend_type| {
                let count = counts.get(spend_type);
                let (inputs, signature_checks) = (count.inputs, count.sig_checks);
                TypeLine { name: spend_type.name(), inputs, signature_checks }
            })
            .collect();
    }

    fn reject(
        &mut self,
        error: &BlockError,
        block: &Block,
        spends: Option<(&BlockVerifier<'_>, &[TxOut<'_>])>,
        json: bool,
    ) -> anyhow::Result<Outcome> {
        let script = match (error, spends) {
            (BlockError::Script { tx_index, source }, Some((verifier, spent))) => {
                let output = verifier.spent_by(spent, *tx_index)[source.input];
                let tx = block.tx(*tx_index);
                let input = tx.input(source.input);
                Some(Evidence {
                    wtxid: source.wtxid.to_string(),
                    prevout: source.prevout.to_string(),
                    script_error: source.error.to_string(),
                    value_sat: output.value,
                    script_pubkey: hex_string(output.script_pubkey),
                    script_sig: hex_string(input.script_sig),
                    sequence: input.sequence,
                    witness: tx.witness(source.input).iter().map(hex_string).collect(),
                })
            }
            _ => None,
        };
        let tx_index = error.tx_index();
        self.reject = Some(Reject {
            reason: error.reject_reason().into_owned(),
            debug: error.debug_message().into_owned(),
            detail: error.to_string(),
            tx_index,
            txid: tx_index.map(|index| block.tx(index).txid().to_string()),
            input: match error {
                BlockError::Script { source, .. } => Some(source.input),
                _ => None,
            },
            evidence: script,
        });
        output::print_as(json, self, || self.text())?;
        Ok(Outcome::Negative)
    }

    fn text(&self) -> String {
        let verdict = if self.valid { "valid" } else { "invalid" };
        let mut text = format!(
            "{verdict} block {} at height {} of {}\n{} transactions, {} inputs, {} outputs, {} bytes, weight {}\n",
            self.hash,
            self.height,
            self.chain,
            self.txs,
            self.inputs,
            self.outputs,
            self.bytes,
            self.weight,
        );
        let _ = writeln!(text, "script rules {}", self.script_flags);
        if let Some(reject) = &self.reject {
            reject.write(&mut text);
            return text;
        }
        if let Some(sums) = &self.sums {
            let (fees, subsidy) = (format_money(sums.fees_sat), format_money(sums.subsidy_sat));
            let cost = sums.sigop_cost;
            let _ =
                writeln!(text, "fees {fees}, subsidy {subsidy}, signature operations cost {cost}");
        }
        let _ = writeln!(text, "\n{:<14}{:>9}{:>12}", "type", "inputs", "signatures");
        for line in self.types.iter().filter(|line| line.inputs > 0) {
            let _ =
                writeln!(text, "{:<14}{:>9}{:>12}", line.name, line.inputs, line.signature_checks);
        }
        let _ = writeln!(text, "{:<14}{:>9}{:>12}\n", "all", self.inputs, self.signature_checks);
        let rate = self.signature_checks as f64 / self.scripts_s.max(1e-9);
        let _ = writeln!(
            text,
            "scripts {:.1} ms ({rate:.0} signatures/s), everything else {:.1} ms",
            self.scripts_s * 1e3,
            self.checks_s * 1e3,
        );
        text.push_str("\nnot checked, because it takes the chain:\n");
        for rule in &self.unchecked {
            let _ = writeln!(text, "- {rule}");
        }
        text
    }
}

impl Reject {
    fn write(&self, text: &mut String) {
        let _ = writeln!(text, "\nreject reason {}", self.reason);
        if !self.debug.is_empty() {
            let _ = writeln!(text, "{}", self.debug);
        }
        let _ = writeln!(text, "{}", self.detail);
        if let (Some(index), Some(txid)) = (self.tx_index, &self.txid) {
            let _ = write!(text, "transaction {index} {txid}");
            let _ = match self.input {
                Some(input) => writeln!(text, " input {input}"),
                None => writeln!(text),
            };
        }
        if let Some(evidence) = &self.evidence {
            let _ = writeln!(
                text,
                "spends {} worth {}\nscriptPubKey {}\nscriptSig    {}\nsequence     {:#010x}",
                evidence.prevout,
                format_money(evidence.value_sat),
                evidence.script_pubkey,
                evidence.script_sig,
                evidence.sequence,
            );
            for item in &evidence.witness {
                let _ = writeln!(text, "witness      {item}");
            }
        }
    }
}
