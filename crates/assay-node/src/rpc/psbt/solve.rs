//! Signs and finalizes inputs (Core `psbt.cpp`, `SignPSBTInput`). Deliberately absent: miniscript and `MuSig2`, whose
//! records are kept.

use assay_consensus::script::{OutputKind, SIGHASH_ALL, TxContext, verify_input};
use assay_engine::ImmediateChecker;
use assay_wire::{Encoding, Transaction, TxOut};

use super::fields::{Scope, input};
use super::format::Psbt;
use crate::rpc::sign::{Mode, Solver, Unlocking, standard};
use crate::rpc::sign_raw::{Spent, serialise};
use crate::rpc::signing_data::{Data, Provider};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsigned {
    /// The PSBT or one of its signatures has another hash type.
    SighashMismatch,
    Incomplete,
}

/// Transaction of a PSBT with its spent outputs.
pub(super) struct Signing {
    pub(super) tx: Transaction,
    /// Blank for unknown outputs.
    spent: Vec<Spent>,
    is_all_known: bool,
}

impl Signing {
    /// `None` if the transaction is invalid.
    pub(super) fn new(psbt: &Psbt) -> Option<Self> {
        let tx = psbt.unsigned_tx()?;
        let found: Vec<Option<Spent>> = psbt.inputs.iter().map(super::Input::spent).collect();
        let is_all_known = found.iter().all(Option::is_some);
        let blank = || Spent { value: 0, script: Vec::new() };
        let spent = found.into_iter().map(|spent| spent.unwrap_or_else(blank)).collect();
        Some(Self { tx, spent, is_all_known })
    }

    fn outputs(&self) -> Vec<TxOut<'_>> {
        let spent = self.spent.iter();
        spent.map(|one| TxOut { value: one.value, script_pubkey: &one.script }).collect()
    }

    /// Transaction with this unlocking data of one input.
    fn with(&self, index: usize, unlocking: Unlocking) -> Option<Transaction> {
        let mut all: Vec<Unlocking> = self.spent.iter().map(|_| Unlocking::default()).collect();
        *all.get_mut(index)? = unlocking;
        Transaction::parse(serialise(&self.tx, &all), Encoding::Segwit).ok()
    }

    /// True if this unlocks the input under standardness rules.
    fn unlocks(&self, index: usize, script_sig: &[u8], stack: &[Vec<u8>]) -> bool {
        let Some(spent) = self.spent.get(index) else { return false };
        // Taproot signatures cover all spent outputs.
        let is_taproot = matches!(OutputKind::of(&spent.script, false), OutputKind::Taproot(_));
        if is_taproot && !self.is_all_known {
            return false;
        }
        let unlocking = Unlocking { script_sig: script_sig.to_vec(), witness: stack.to_vec() };
        let Some(signed) = self.with(index, unlocking) else { return false };
        let outputs = self.outputs();
        let context = TxContext::new(signed.view(), &outputs);
        verify_input(&context, index, standard(false), &mut ImmediateChecker).is_ok()
    }
}

/// True if an input has valid unlocking data (Core's `PSBTInputSignedAndVerified`).
pub(super) fn is_signed(psbt: &Psbt, index: usize, signing: &Signing) -> bool {
    let input = &psbt.inputs[index];
    let Some(spent) = input.spent() else { return false };
    // Only nonstandard scripts can be spent with empty unlocking data.
    let may_be_open = matches!(
        OutputKind::of(&spent.script, false),
        OutputKind::NonStandard | OutputKind::Anchor(_) | OutputKind::WitnessUnknown { .. }
    );
    (input.is_final() || may_be_open)
        && signing.unlocks(index, input.final_script_sig(), &input.final_witness())
}

#[derive(Clone, Copy)]
pub(super) struct Options {
    pub(super) sighash: Option<u8>,
    pub(super) finalize: bool,
    /// Blank signatures in place of real ones.
    pub(super) is_blank: bool,
}

/// Signs an input with the known keys, and finalizes it if requested.
pub(super) fn sign_input(
    provider: &Provider,
    psbt: &mut Psbt,
    index: usize,
    signing: &Signing,
    options: Options,
) -> (Result<(), Unsigned>, Data) {
    if is_signed(psbt, index, signing) {
        return (Ok(()), Data::default());
    }
    let input = &mut psbt.inputs[index];
    let mut data = Data::of_input(input);
    let Some(spent) = input.spent() else { return (Err(Unsigned::Incomplete), Data::default()) };
    let needs_witness = !input.fields.has(input::NON_WITNESS_UTXO);
    let is_taproot = matches!(OutputKind::of(&spent.script, false), OutputKind::Taproot(_));
    let usual = if is_taproot { 0 } else { SIGHASH_ALL as u8 };
    let sighash = options.sighash.unwrap_or(usual);
    if input.sighash().is_some_and(|given| given != i32::from(sighash)) {
        return (Err(Unsigned::SighashMismatch), Data::default());
    }
    let is_usual = sighash == 0 || !is_taproot && u32::from(sighash) == SIGHASH_ALL;
    if !is_usual {
        let value = i32::from(sighash).to_le_bytes().to_vec();
        input.fields.set(Scope::Input, input::SIGHASH, value);
    }
    if !fits(&input.fields, sighash) {
        return (Err(Unsigned::SighashMismatch), Data::default());
    }
    let mode = if options.is_blank { Mode::Blank } else { Mode::Sign(sighash) };
    let outputs = signing.outputs();
    let context = TxContext::new(signing.tx.view(), &outputs);
    let mut solver = Solver {
        provider,
        context: Some(&context),
        knows_all_spent: signing.is_all_known,
        index,
        is_cash: false,
        mode,
        data: &mut data,
    };
    let is_solved = solver.produce(&spent.script);
    data.complete |=
        is_solved && (options.is_blank || signing.unlocks(index, &data.script_sig, &data.stack));
    let is_complete = data.complete;
    if needs_witness && !data.witness {
        return (Err(Unsigned::Incomplete), Data::default());
    }
    if !options.finalize {
        data.complete = false;
    }
    let input = &mut psbt.inputs[index];
    data.store_in_input(input);
    if data.witness {
        input.set_witness_utxo(&spent);
    }
    (if is_complete { Ok(()) } else { Err(Unsigned::Incomplete) }, data)
}

/// True if all present signatures have the hash type.
fn fits(fields: &super::fields::Fields, sighash: u8) -> bool {
    let mut taproot =
        fields.of(input::TAP_KEY_SIG).chain(fields.of(input::TAP_SCRIPT_SIG)).map(|(_, sig)| sig);
    if sighash == 0 {
        return taproot.all(|signature| signature.len() == 64);
    }
    let has_type = |signature: &[u8]| signature.last() == Some(&sighash);
    taproot.all(|signature| signature.len() == 65 && has_type(signature))
        && fields.of(input::PARTIAL_SIG).all(|(_, signature)| has_type(signature))
}

/// Adds data from descriptors to an output.
pub(super) fn update_output(provider: &Provider, psbt: &mut Psbt, index: usize) {
    let output = &mut psbt.outputs[index];
    let mut data = Data::of_output(&output.fields);
    Solver {
        provider,
        context: None,
        knows_all_spent: false,
        index: 0,
        is_cash: false,
        mode: Mode::Gather,
        data: &mut data,
    }
    .produce(&output.script);
    data.store_in_output(&mut output.fields);
}
