//! Blocks that are signed: the challenge of a signet and its solutions (BIP325).
//!
//! A block of a signet is valid only if it solves a script, the challenge. The solution sits in the
//! output that commits to the witnesses. It is judged as if a transaction spent an output locked by
//! the challenge, where the output's own transaction commits to the block without its solution.

use assay_hash::{merkle_root, sha256d};
use assay_wire::{Block, Encoding, OutPoint, Transaction, Tx, TxBuilder, TxOut, Txid, encode};

use crate::block::BlockError;
use crate::commitment::witness_commitment_index;
use crate::params::ChainParams;
use crate::script::opcode::{Instructions, op};
use crate::script::{Flags, SignatureChecker, TxContext, asm, verify_input};

/// Marks the push that holds the solution.
const SIGNET_HEADER: [u8; 4] = [0xec, 0xc7, 0xda, 0xa2];

/// Checks that a block solves the challenge of its chain; on chains without one it has nothing to
/// do.
///
/// # Errors
/// [`BlockError::SignetSolution`].
///
/// # Panics
/// When `txids` is not one per transaction.
pub fn check_signet_solution<C: SignatureChecker>(
    params: &ChainParams,
    block: &Block,
    txids: &[Txid],
    checker: &mut C,
) -> Result<(), BlockError> {
    let Some(challenge) = &params.signet_challenge else { return Ok(()) };
    if block.hash() == params.genesis_hash {
        return Ok(());
    }
    let tx = signet_transaction(block, txids, challenge).ok_or(BlockError::SignetSolution)?;
    let spent = [TxOut { value: 0, script_pubkey: challenge }];
    let context = TxContext::new(tx.view(), &spent);
    let flags = Flags::P2SH | Flags::WITNESS | Flags::DERSIG | Flags::NULLDUMMY;
    match verify_input(&context, 0, flags, checker) {
        Ok(_) => Ok(()),
        Err(_) => Err(BlockError::SignetSolution),
    }
}

/// The transaction whose only input must satisfy the challenge; `None` when the block has no
/// witness commitment or its solution is not well formed.
fn signet_transaction(block: &Block, txids: &[Txid], challenge: &[u8]) -> Option<Transaction> {
    if block.tx_count() == 0 {
        return None;
    }
    assert_eq!(txids.len(), block.tx_count(), "one txid per transaction");
    let coinbase = block.tx(0);
    let output = witness_commitment_index(coinbase)?;
    let (cleared, solution) = take_solution(coinbase.output(output).script_pubkey);
    let mut leaves: Vec<[u8; 32]> = txids.iter().map(|txid| txid.0).collect();
    leaves[0] = sha256d(&with_output_script(coinbase, output, &cleared));

    let header = block.header();
    let mut block_data = header.version.to_le_bytes().to_vec();
    block_data.extend_from_slice(&header.prev_block.0);
    block_data.extend_from_slice(&merkle_root(leaves).0);
    block_data.extend_from_slice(&header.time.to_le_bytes());
    let to_spend = spendable_transaction(&block_data, challenge);

    let prevout = OutPoint { txid: Txid(sha256d(&to_spend)), vout: 0 };
    spending_transaction(&prevout, solution.as_deref())
}

/// Splits a commitment script into itself without the solution, and the solution. Without one the
/// script stays unchanged.
///
/// The script is written anew from what can be read of it: pushes of data in their shortest form,
/// everything else as its bare opcode. So a solver and every verifier arrive at the same bytes.
fn take_solution(script: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut rewritten = Vec::with_capacity(script.len());
    let mut solution = None;
    for instruction in Instructions::new(script).flatten() {
        if instruction.data.is_empty() {
            rewritten.push(instruction.opcode);
            continue;
        }
        match instruction.data.strip_prefix(&SIGNET_HEADER) {
            Some(found) if solution.is_none() && !found.is_empty() => {
                solution = Some(found.to_vec());
                asm::push(&mut rewritten, &SIGNET_HEADER);
            }
            _ => asm::push(&mut rewritten, instruction.data),
        }
    }
    if solution.is_some() { (rewritten, solution) } else { (script.to_vec(), None) }
}

/// Serialises `tx` without witnesses and with another script at `output`.
fn with_output_script(tx: Tx<'_>, output: usize, script: &[u8]) -> Vec<u8> {
    let mut out = TxBuilder::new(tx.version()).lock_time(tx.lock_time());
    for input in tx.inputs() {
        out = out.spend(input.prevout, input.script_sig, input.sequence);
    }
    for (index, tx_out) in tx.outputs().enumerate() {
        out = out.output(tx_out.value, if index == output { script } else { tx_out.script_pubkey });
    }
    out.bytes()
}

/// The transaction whose output is locked by the challenge, serialised.
fn spendable_transaction(block_data: &[u8], challenge: &[u8]) -> Vec<u8> {
    let mut script_sig = vec![0];
    asm::push(&mut script_sig, block_data);
    TxBuilder::new(0).spend(OutPoint::NULL, &script_sig, 0).output(0, challenge).bytes()
}

/// The transaction that spends it. `solution` is a serialised input script followed by a serialised
/// witness, exactly; without one both are empty.
fn spending_transaction(prevout: &OutPoint, solution: Option<&[u8]>) -> Option<Transaction> {
    let solution = solution.unwrap_or(&[0, 0]);
    let witness_at = script_sig_length(solution)?;
    let (script_sig, witness) = solution.split_at(witness_at);
    let has_witness = witness.first().is_some_and(|items| *items != 0);
    let mut tx = vec![0; 4];
    if has_witness {
        tx.extend_from_slice(&[0, 1]);
    }
    tx.push(1);
    tx.extend_from_slice(&prevout.to_bytes());
    tx.extend_from_slice(script_sig);
    tx.extend_from_slice(&[0; 4]);
    tx.push(1);
    tx.extend_from_slice(&[0; 8]);
    tx.extend_from_slice(&[1, op::RETURN]);
    if has_witness {
        tx.extend_from_slice(witness);
    } else if witness != [0] {
        return None;
    }
    tx.extend_from_slice(&[0; 4]);
    // Bytes that are missing from the witness, or are too many, break the parse.
    Transaction::parse(tx, Encoding::Segwit).ok()
}

/// Number of bytes of `solution` that the input script takes with its length; `None` when it is cut off
/// or its length is not in the shortest form.
fn script_sig_length(solution: &[u8]) -> Option<usize> {
    let (length, prefix) = match *solution.first()? {
        253 => (u64::from(u16::from_le_bytes(*solution[1..].first_chunk()?)), 3),
        254 => (u64::from(u32::from_le_bytes(*solution[1..].first_chunk()?)), 5),
        255 => (u64::from_le_bytes(*solution[1..].first_chunk()?), 9),
        short => (u64::from(short), 1),
    };
    let end = usize::try_from(length).ok()?.checked_add(prefix)?;
    (encode::compact_size_len(length) == prefix && end <= solution.len()).then_some(end)
}

#[cfg(test)]
mod tests;
