//! `analyzepsbt`: missing parts of a PSBT (Core `node/psbt.cpp`, `AnalyzePSBT`).

use assay_consensus::amount::money_range;
use assay_consensus::script::Flags;
use assay_consensus::script::opcode::{MAX_SCRIPT_SIZE, op};
use assay_consensus::sigops::tx_sigop_cost;
use assay_wire::{Encoding, Transaction};

use super::format::Psbt;
use super::solve::{Options, Signing, is_signed, sign_input};
use super::{extract, parse};
use crate::jsonrpc::{Json, Object};
use crate::rpc::Node;
use crate::rpc::method::Call;
use crate::rpc::signing_data::{Missing, Provider};

pub(in super::super) const ANALYZEPSBT: Call = |node, args, out| {
    let psbt = parse(node.rpc, &args.string(0)?)?;
    let analysis = analyse(node, psbt);
    let mut object = Json::new(out).object();
    analysis.write(&mut object);
    Ok(())
};

/// Roles of PSBT processing, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Creator,
    Updater,
    Signer,
    Finalizer,
    Extractor,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Creator => "creator",
            Self::Updater => "updater",
            Self::Signer => "signer",
            Self::Finalizer => "finalizer",
            Self::Extractor => "extractor",
        }
    }
}

struct InputAnalysis {
    has_utxo: bool,
    is_final: bool,
    next: Role,
    missing: Missing,
}

struct Analysis {
    inputs: Vec<InputAnalysis>,
    vsize: Option<u64>,
    fee_sat: Option<i64>,
    next: Role,
    error: Option<String>,
}

impl Analysis {
    fn invalid(error: String) -> Self {
        let next = Role::Creator;
        Self { inputs: Vec::new(), vsize: None, fee_sat: None, next, error: Some(error) }
    }

    fn write(&self, object: &mut Object<'_>) {
        if !self.inputs.is_empty() {
            object.key("inputs").objects(&self.inputs, |one, inner| {
                one.write(inner);
            });
        }
        if let Some(vsize) = self.vsize {
            object.key("estimated_vsize").int(vsize);
        }
        if let Some((fee, vsize)) = self.fee_sat.zip(self.vsize) {
            let per_kvb = i128::from(fee) * 1000 / i128::from(vsize.max(1));
            object.key("estimated_feerate").amount(i64::try_from(per_kvb).unwrap_or(i64::MAX));
        }
        if let Some(fee) = self.fee_sat {
            object.key("fee").amount(fee);
        }
        object.key("next").string(self.next.name());
        if let Some(error) = &self.error {
            object.key("error").string(error);
        }
    }
}

impl InputAnalysis {
    fn write(&self, object: &mut Object<'_>) {
        object.key("has_utxo").bool(self.has_utxo);
        object.key("is_final").bool(self.is_final);
        object.key("next").string(self.next.name());
        if self.missing == Missing::default() {
            return;
        }
        let mut missing = object.key("missing").object();
        let hashes = |name: &str, list: &[[u8; 20]], missing: &mut Object<'_>| {
            if !list.is_empty() {
                missing.key(name).list(list, |hash, json| json.hex(hash));
            }
        };
        hashes("pubkeys", &self.missing.pubkeys, &mut missing);
        if let Some(hash) = &self.missing.redeem_script {
            missing.key("redeemscript").hex(hash);
        }
        if let Some(hash) = &self.missing.witness_script {
            missing.key("witnessscript").hex(hash);
        }
        hashes("signatures", &self.missing.signatures, &mut missing);
    }
}

fn analyse(node: &Node<'_>, mut psbt: Psbt) -> Analysis {
    let Some(signing) = Signing::new(&psbt) else {
        return Analysis::invalid("PSBT cannot be made into a valid transaction".to_owned());
    };
    let mut paid_in = Some(0i64);
    let mut inputs = Vec::with_capacity(psbt.inputs.len());
    for index in 0..psbt.inputs.len() {
        let spent = psbt.inputs[index].spent();
        if let Some(spent) = &spent {
            let sum = paid_in.map(|paid| paid.saturating_add(spent.value));
            if !money_range(spent.value) || sum.is_some_and(|sum| !money_range(sum)) {
                let text = format!("PSBT is not valid. Input {index} has invalid value");
                return Analysis::invalid(text);
            }
            paid_in = sum;
            let script = &spent.script;
            if script.first() == Some(&op::RETURN) || script.len() > MAX_SCRIPT_SIZE {
                let text = format!("PSBT is not valid. Input {index} spends unspendable output");
                return Analysis::invalid(text);
            }
        } else {
            paid_in = None;
        }
        inputs.push(analyse_input(&mut psbt, index, &signing, spent.is_some()));
    }
    let next = inputs.iter().map(|one| one.next).min().unwrap_or(Role::Extractor);
    let mut out = Analysis { inputs, vsize: None, fee_sat: None, next, error: None };
    let Some(paid_in) = paid_in else { return out };
    let mut paid_out = 0i64;
    for output in &psbt.outputs {
        let sum = paid_out.saturating_add(output.value);
        if !money_range(output.value) || !money_range(sum) {
            return Analysis::invalid("PSBT is not valid. Output amount invalid".to_owned());
        }
        paid_out = sum;
    }
    out.fee_sat = Some(paid_in - paid_out);
    out.vsize = estimated_vsize(node, &mut psbt, &signing);
    out
}

fn analyse_input(
    psbt: &mut Psbt,
    index: usize,
    signing: &Signing,
    has_utxo: bool,
) -> InputAnalysis {
    if is_signed(psbt, index, signing) {
        let missing = Missing::default();
        return InputAnalysis { has_utxo, is_final: has_utxo, next: Role::Extractor, missing };
    }
    let options = Options { sighash: None, finalize: true, is_blank: false };
    let (result, data) = sign_input(&Provider::default(), psbt, index, signing, options);
    let missing = data.missing;
    let next = if result.is_ok() {
        Role::Finalizer
    } else if !missing.signatures.is_empty()
        && (&missing.pubkeys[..], missing.redeem_script, missing.witness_script)
            == (&[][..], None, None)
    {
        Role::Signer
    } else {
        Role::Updater
    };
    InputAnalysis { has_utxo, is_final: false, next, missing }
}

/// Virtual size with blank signatures in place of missing ones; `None` if unknown.
fn estimated_vsize(node: &Node<'_>, psbt: &mut Psbt, signing: &Signing) -> Option<u64> {
    let options = Options { sighash: None, finalize: true, is_blank: true };
    for index in 0..psbt.inputs.len() {
        sign_input(&Provider::default(), psbt, index, signing, options).0.ok()?;
    }
    let tx = Transaction::parse(extract(psbt, signing), Encoding::Segwit).ok()?;
    let spent: Vec<_> = psbt.inputs.iter().map_while(super::Input::spent).collect();
    let scripts = spent.iter().map(|one| &one.script[..]);
    let cost = tx_sigop_cost(tx.view(), scripts, Flags::BITCOIN_STANDARD);
    let per_sigop = node.engine.config().policy.bytes_per_sigop;
    Some((tx.view().weight() as u64).max(cost * per_sigop).div_ceil(4))
}
