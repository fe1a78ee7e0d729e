//! Counting signature operations without running scripts.

use assay_wire::{Tx, Witness};

use crate::params::WITNESS_SCALE_FACTOR;
use crate::script::Flags;
use crate::script::opcode::{is_p2sh, last_push, op, read_instruction, witness_program};

/// The charge of an imprecise count for one multisig.
const MAX_PUBKEYS_PER_MULTISIG: u64 = 20;

/// Counts the signature operations of one script.
///
/// `accurate` charges a multisig by the number before it, when that is a small constant, instead
/// of 20. Counting ends silently where the script is cut off.
#[must_use]
pub fn count_sigops(script: &[u8], accurate: bool) -> u64 {
    let mut count = 0;
    let mut last_opcode = 0xff;
    let mut position = 0;
    while let Some(opcode) = script.get(position).copied() {
        // Most of a script is data under direct pushes: step over it without looking.
        if opcode < op::PUSHDATA1 {
            position += 1 + usize::from(opcode);
            if position > script.len() {
                break;
            }
        } else {
            if read_instruction(script, &mut position).is_none() {
                break;
            }
            count += match opcode {
                op::CHECKSIG | op::CHECKSIGVERIFY => 1,
                op::CHECKMULTISIG | op::CHECKMULTISIGVERIFY => match last_opcode {
                    op::PUSH1..=op::PUSH16 if accurate => u64::from(last_opcode - op::PUSH1) + 1,
                    _ => MAX_PUBKEYS_PER_MULTISIG,
                },
                _ => 0,
            };
        }
        last_opcode = opcode;
    }
    count
}

/// Counts the signature operations in the scripts of a transaction itself, imprecisely.
#[must_use]
pub fn legacy_sigops(tx: Tx<'_>) -> u64 {
    let inputs: u64 = tx.inputs().map(|input| count_sigops(input.script_sig, false)).sum();
    let outputs: u64 = tx.outputs().map(|output| count_sigops(output.script_pubkey, false)).sum();
    inputs + outputs
}

fn witness_sigops(version: u8, program: &[u8], witness: Witness<'_>) -> u64 {
    match (version, program.len()) {
        (0, 20) => 1,
        (0, 32) => witness.iter().last().map_or(0, |script| count_sigops(script, true)),
        _ => 0,
    }
}

/// The signature-operation cost of spending one output, beyond what the scripts of the spending
/// transaction itself count.
#[must_use]
pub fn input_sigop_cost(
    script_sig: &[u8],
    script_pubkey: &[u8],
    witness: Witness<'_>,
    flags: Flags,
) -> u64 {
    let with_witness = flags.contains(Flags::WITNESS);
    if is_p2sh(script_pubkey) {
        let Some(redeem_script) = last_push(script_sig) else { return 0 };
        let mut cost = 0;
        if flags.contains(Flags::P2SH) {
            cost = count_sigops(redeem_script, true) * WITNESS_SCALE_FACTOR;
        }
        match witness_program(redeem_script) {
            Some((version, program)) if with_witness => {
                cost + witness_sigops(version, program, witness)
            }
            _ => cost,
        }
    } else {
        match witness_program(script_pubkey) {
            Some((version, program)) if with_witness => witness_sigops(version, program, witness),
            _ => 0,
        }
    }
}

/// Most signature operations that one transaction may hold under BIP54.
pub const MAX_TX_LEGACY_SIGOPS: u64 = 2500;

/// The signature operations that BIP54 limits to [`MAX_TX_LEGACY_SIGOPS`]: those of input scripts, of the scripts spent and of
/// P2SH redeem scripts, each counted accurately and by itself, whether or not they are run (Core `CheckSigopsBIP54`).
///
/// `spent_scripts` are the locking scripts of the outputs spent, in order. Witness scripts are not counted. An input script that
/// does more than push has no redeem script, and cannot spend a P2SH output.
pub fn tx_legacy_sigops<'s>(tx: Tx<'_>, spent_scripts: impl IntoIterator<Item = &'s [u8]>) -> u64 {
    let of = |(index, script_pubkey): (usize, &[u8])| {
        let script_sig = tx.input(index).script_sig;
        let executed = if is_p2sh(script_pubkey) {
            last_push(script_sig).unwrap_or_default()
        } else {
            script_pubkey
        };
        count_sigops(script_sig, true) + count_sigops(executed, true)
    };
    spent_scripts.into_iter().enumerate().map(of).sum()
}

/// The signature-operation cost of a transaction (BIP141), given the locking scripts of the outputs
/// that its inputs spend, in order. A coinbase spends none: pass nothing.
pub fn tx_sigop_cost<'s>(
    tx: Tx<'_>,
    spent_scripts: impl IntoIterator<Item = &'s [u8]>,
    flags: Flags,
) -> u64 {
    legacy_sigops(tx) * WITNESS_SCALE_FACTOR + spends_sigop_cost(tx, spent_scripts, flags)
}

/// The part of [`tx_sigop_cost`] that depends on the outputs spent.
///
/// The inputs are looked at only where they can matter: their bytes are seldom in the processor's
/// cache when coins move.
pub fn spends_sigop_cost<'s>(
    tx: Tx<'_>,
    spent_scripts: impl IntoIterator<Item = &'s [u8]>,
    flags: Flags,
) -> u64 {
    let cost = |(index, script_pubkey): (usize, &[u8])| match script_pubkey {
        [0, 20, hash @ ..] if hash.len() == 20 => u64::from(flags.contains(Flags::WITNESS)),
        _ if !is_p2sh(script_pubkey) && witness_program(script_pubkey).is_none() => 0,
        _ => {
            let script_sig = tx.input(index).script_sig;
            input_sigop_cost(script_sig, script_pubkey, tx.witness(index), flags)
        }
    };
    spent_scripts.into_iter().enumerate().map(cost).sum()
}

#[cfg(test)]
mod tests;
