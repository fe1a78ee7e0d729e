//! Fills in data from the node and descriptors, and signs.

use assay_consensus::script::opcode::{is_p2sh, witness_program};
use assay_wire::Transaction;

use super::fields::{Scope, input};
use super::format::Psbt;
use super::solve::{Options, Signing, Unsigned, is_signed, sign_input, update_output};
use super::{extract, parse};
use crate::jsonrpc::{Code, Json, RpcError};
use crate::rpc::args::Args;
use crate::rpc::index::{Lookup, look_up};
use crate::rpc::method::Call;
use crate::rpc::scan::for_each_position;
use crate::rpc::sign::HashType;
use crate::rpc::sign_raw::Spent;
use crate::rpc::signing_data::Provider;
use crate::rpc::{Node, Rpc, bad, undecodable};

pub(in super::super) const UTXOUPDATEPSBT: Call = |node, args, out| {
    let provider = provider(node.rpc, args, false)?;
    let text = args.string(0)?.into_owned();
    let psbt = process(node, &text, &provider, None, false)?;
    Json::new(out).string(&psbt.encode());
    Ok(())
};

pub(in super::super) const DESCRIPTORPROCESSPSBT: Call = |node, args, out| {
    let mut provider = provider(node.rpc, args, true)?;
    let sighash = match args.optional_string(2)? {
        None => None,
        Some(text) => Some(
            HashType::parse(&text)
                .map(HashType::number)
                .ok_or_else(|| bad(format!("'{text}' is not a valid sighash parameter.")))?,
        ),
    };
    provider.hides_origins = !args.bool_or(3, true)?;
    let finalize = args.bool_or(4, true)?;
    let text = args.string(0)?.into_owned();
    let psbt = process(node, &text, &provider, sighash, finalize)?;
    let signing = Signing::new(&psbt).ok_or_else(invalid)?;
    let is_complete = (0..psbt.inputs.len()).all(|index| is_signed(&psbt, index, &signing));
    let mut object = Json::new(out).object();
    object.key("psbt").string(&psbt.encode());
    object.key("complete").bool(is_complete);
    if is_complete {
        object.key("hex").hex(&extract(&psbt, &signing));
    }
    Ok(())
};

fn provider(rpc: &Rpc, args: &Args<'_>, with_secrets: bool) -> Result<Provider, RpcError> {
    let mut provider = Provider::default();
    if let Some(objects) = args.value(1) {
        for_each_position(rpc, objects, |descriptor, position, _| {
            provider.add(descriptor, position, with_secrets)
        })?;
    }
    Ok(provider)
}

fn invalid() -> RpcError {
    RpcError::new(Code::Verify, "The transaction cannot be valid")
}

/// Fills in, signs and optionally finalizes (Core's `ProcessPSBT`).
fn process(
    node: &Node<'_>,
    text: &str,
    provider: &Provider,
    sighash: Option<u8>,
    finalize: bool,
) -> Result<Psbt, RpcError> {
    let mut psbt = parse(node.rpc, text)?;
    for index in 0..psbt.inputs.len() {
        fill_in_spent(node, &mut psbt, index, provider)?;
    }
    let signing = Signing::new(&psbt).ok_or_else(invalid)?;
    let options = Options { sighash, finalize, is_blank: false };
    for index in 0..psbt.inputs.len() {
        if psbt.inputs[index].is_final() {
            continue;
        }
        let (result, _) = sign_input(provider, &mut psbt, index, &signing, options);
        if result == Err(Unsigned::SighashMismatch) {
            let text = "Specified sighash value does not match value stored in PSBT";
            return Err(undecodable(text));
        }
    }
    for index in 0..psbt.outputs.len() {
        update_output(provider, &mut psbt, index);
    }
    remove_unneeded(&mut psbt);
    Ok(psbt)
}

/// Adds the transaction of the spent output, or only the output if it is a witness program.
fn fill_in_spent(
    node: &Node<'_>,
    psbt: &mut Psbt,
    index: usize,
    provider: &Provider,
) -> Result<(), RpcError> {
    let one = &mut psbt.inputs[index];
    if one.fields.has(input::NON_WITNESS_UTXO) {
        return Ok(());
    }
    let txid = one.prevout.txid;
    let tx = match confirmed(node, &one.prevout.txid)? {
        Some(tx) => Some(tx),
        None => node.engine.mempool().tx(&txid).map(|tx| tx.bytes().to_vec()),
    };
    if let Some(tx) = tx {
        one.fields.set(Scope::Input, input::NON_WITNESS_UTXO, tx);
        return Ok(());
    }
    let coin = node.engine.chain().coin(&one.prevout, false)?;
    let Some((coin, _)) = coin else { return Ok(()) };
    let script = coin.script_pubkey.to_vec();
    let is_nested = || {
        let hash: [u8; 20] = script[2..22].try_into().unwrap_or_default();
        provider.scripts.get(&hash).is_some_and(|redeem| witness_program(redeem).is_some())
    };
    if witness_program(&script).is_some() || is_p2sh(&script) && is_nested() {
        one.set_witness_utxo(&Spent { value: coin.value, script });
    }
    Ok(())
}

/// Transaction of the active chain, if an index is available.
fn confirmed(node: &Node<'_>, txid: &assay_wire::Txid) -> Result<Option<Vec<u8>>, RpcError> {
    let Lookup::Found(hash) = look_up(node, txid)? else { return Ok(None) };
    let block = node.engine.blocks().read(&hash)?;
    let block = block.and_then(|raw| assay_wire::Block::parse(raw, node.rpc.params.encoding).ok());
    let found = block.and_then(|block| {
        let tx = block.txs().find(|tx| tx.txid() == *txid)?;
        Some(Transaction::bytes(&tx.to_owned_transaction()).to_vec())
    });
    Ok(found)
}

/// Removes full transactions if all inputs are taproot (Core's `RemoveUnnecessaryTransactions`).
fn remove_unneeded(psbt: &mut Psbt) {
    let is_without = |one: &super::Input| {
        let program = one.witness_utxo().map(|utxo| utxo.script);
        let is_v1 = program
            .is_some_and(|script| witness_program(&script).is_some_and(|(version, _)| version > 0));
        is_v1 && one.sighash().is_none_or(|sighash| sighash & 0x80 == 0)
    };
    if psbt.inputs.iter().all(is_without) {
        psbt.inputs.iter_mut().for_each(|one| one.fields.remove(input::NON_WITNESS_UTXO));
    }
}
