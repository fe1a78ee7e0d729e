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
use serde_json::{Value, json};

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
    // Inputs are counted only if the merkle root matches the header.
    let (spent, sums) = if let Err(error) = verifier.check_alone() {
        (Vec::new(), Err(error))
    } else {
        let spent = parse_prevouts(&bytes, verifier.input_count()).with_context(unusable)?;
        let sums = match verifier.check_spends(&spent) {
            Ok(sums) => Ok(sums),
            Err(VerifyBlockError::Invalid(error)) => Err(error),
            Err(error @ VerifyBlockError::OtherPrevout { .. }) => {
                return Err(error).with_context(unusable);
            }
        };
        (spent, sums)
    };
    let checks_s = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let verdict =
        sums.and_then(|sums| Ok((sums, verifier.verify_scripts(&spent, 0..block.tx_count())?)));
    let report = Report {
        chain: params.name,
        height: arguments.height,
        block: &block,
        verifier: &verifier,
        spent: &spent,
        verdict,
        checks_s,
        scripts_s: start.elapsed().as_secs_f64(),
    };
    output::print_as(arguments.json, &report.json(), || report.text())?;
    Ok(if report.verdict.is_ok() { Outcome::Good } else { Outcome::Negative })
}

struct Report<'a> {
    chain: &'a str,
    height: u32,
    block: &'a Block,
    verifier: &'a BlockVerifier<'a>,
    spent: &'a [TxOut<'a>],
    verdict: Result<(SpendSums, TypeCounts), BlockError>,
    checks_s: f64,
    scripts_s: f64,
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

impl Report<'_> {
    fn json(&self) -> Value {
        let Self { block, verifier, .. } = self;
        let counts = self.verdict.as_ref().ok().map(|(_, counts)| counts);
        let types = SpendType::ALL.into_iter().filter_map(|spend_type| {
            let count = counts?.get(spend_type);
            Some(json!({
                "name": spend_type.name(),
                "inputs": count.inputs,
                "signature_checks": count.sig_checks,
            }))
        });
        json!({
            "schema": 1,
            "valid": self.verdict.is_ok(),
            "chain": self.chain,
            "height": self.height,
            "hash": verifier.hash().to_string(),
            "script_flags": format!("{:?}", verifier.rules().flags),
            "txs": block.tx_count(),
            "inputs": verifier.input_count(),
            "outputs": block.output_count(),
            "bytes": block.bytes().len(),
            "weight": block.weight(),
            "sums": self.verdict.as_ref().ok().map(|(sums, _)| json!({
                "fees_sat": sums.fees,
                "subsidy_sat": verifier.rules().subsidy,
                "sigop_cost": sums.sigop_cost,
            })),
            "types": types.collect::<Vec<_>>(),
            "signature_checks": counts.map_or(0, |counts| counts.total().sig_checks),
            "checks_s": self.checks_s,
            "scripts_s": self.scripts_s,
            "unchecked": verifier.unchecked(),
            "reject": self.verdict.as_ref().err().map(|error| json!({
                "reason": error.reject_reason(),
                "debug": error.debug_message(),
                "detail": error.to_string(),
                "tx_index": error.tx_index(),
                "txid": self.txid(error),
                "input": input(error),
                "evidence": self.evidence(error),
            })),
        })
    }

    fn txid(&self, error: &BlockError) -> Option<String> {
        Some(self.block.tx(error.tx_index()?).txid().to_string())
    }

    fn evidence(&self, error: &BlockError) -> Option<Evidence> {
        let BlockError::Script { tx_index, source } = error else { return None };
        let output = self.verifier.spent_by(self.spent, *tx_index)[source.input];
        let tx = self.block.tx(*tx_index);
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

    fn text(&self) -> String {
        let Self { block, verifier, .. } = self;
        let verdict = if self.verdict.is_ok() { "valid" } else { "invalid" };
        let inputs = verifier.input_count();
        let mut text = format!(
            "{verdict} block {} at height {} of {}\n{} transactions, {inputs} inputs, {} outputs, {} bytes, weight {}\n",
            verifier.hash(),
            self.height,
            self.chain,
            block.tx_count(),
            block.output_count(),
            block.bytes().len(),
            block.weight(),
        );
        let _ = writeln!(text, "script rules {:?}", verifier.rules().flags);
        let (sums, counts) = match &self.verdict {
            Ok(found) => found,
            Err(error) => {
                self.write_rejection(error, &mut text);
                return text;
            }
        };
        let subsidy = format_money(verifier.rules().subsidy);
        let (fees, cost) = (format_money(sums.fees), sums.sigop_cost);
        let _ = writeln!(text, "fees {fees}, subsidy {subsidy}, signature operations cost {cost}");
        let _ = writeln!(text, "\n{:<14}{:>9}{:>12}", "type", "inputs", "signatures");
        let types = SpendType::ALL.into_iter().map(|of| (of.name(), counts.get(of)));
        for (name, count) in types.filter(|(_, count)| count.inputs > 0) {
            let _ = writeln!(text, "{name:<14}{:>9}{:>12}", count.inputs, count.sig_checks);
        }
        let signatures = counts.total().sig_checks;
        let _ = writeln!(text, "{:<14}{inputs:>9}{signatures:>12}\n", "all");
        let rate = signatures as f64 / self.scripts_s.max(1e-9);
        let _ = writeln!(
            text,
            "scripts {:.1} ms ({rate:.0} signatures/s), everything else {:.1} ms",
            self.scripts_s * 1e3,
            self.checks_s * 1e3,
        );
        text.push_str("\nnot checked, because it takes the chain:\n");
        for rule in verifier.unchecked() {
            let _ = writeln!(text, "- {rule}");
        }
        text
    }

    fn write_rejection(&self, error: &BlockError, text: &mut String) {
        let _ = writeln!(text, "\nreject reason {}", error.reject_reason());
        let debug = error.debug_message();
        if !debug.is_empty() {
            let _ = writeln!(text, "{debug}");
        }
        let _ = writeln!(text, "{error}");
        if let (Some(index), Some(txid)) = (error.tx_index(), self.txid(error)) {
            let _ = write!(text, "transaction {index} {txid}");
            let _ = match input(error) {
                Some(input) => writeln!(text, " input {input}"),
                None => writeln!(text),
            };
        }
        if let Some(evidence) = self.evidence(error) {
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

/// Number of the failing input.
fn input(error: &BlockError) -> Option<usize> {
    match error {
        BlockError::Script { source, .. } => Some(source.input),
        _ => None,
    }
}
