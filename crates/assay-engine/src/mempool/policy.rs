//! What the reference nodes relay: stricter than what blocks may hold (Core `policy/policy.cpp`, BCHN `policy/policy.cpp`).

use assay_consensus::script::opcode::witness_program;
use assay_consensus::sigops::count_sigops;
use assay_wire::{Coin, Tx, TxOut};

/// Core's `MAX_STANDARD_TX_WEIGHT`; BCHN's limit of 100,000 bytes is the same at four weight units each.
const TX_WEIGHT_MAX: usize = 400_000;
/// Core's `MAX_STANDARD_SCRIPTSIG_SIZE`.
const SCRIPT_SIG_BYTES_MAX: usize = 1650;
/// Core's `MIN_STANDARD_TX_NONWITNESS_SIZE` (CVE-2017-12842).
const TX_STRIPPED_BYTES_MIN: usize = 65;
/// Core's `DUST_RELAY_TX_FEE`; three times BCHN's, which multiplies by three instead.
const DUST_FEE_SAT_PER_KVB: u64 = 3000;
/// Core's `MAX_P2SH_SIGOPS`.
const P2SH_SIGOPS_MAX: u64 = 15;
/// Core's `MAX_OP_RETURN_RELAY`.
const DATA_CARRIER_BYTES_MAX: usize = 100_000;
/// BCHN's `MAX_OP_RETURN_RELAY`.
const CASH_DATA_CARRIER_BYTES_MAX: usize = 223;
/// Core's `MAX_STANDARD_P2WSH_SCRIPT_SIZE`.
const P2WSH_SCRIPT_BYTES_MAX: usize = 3600;
/// Core's `MAX_STANDARD_P2WSH_STACK_ITEMS`.
const P2WSH_STACK_ITEMS_MAX: usize = 100;
/// Core's `MAX_STANDARD_P2WSH_STACK_ITEM_SIZE` and `MAX_STANDARD_TAPSCRIPT_STACK_ITEM_SIZE`.
const STACK_ITEM_BYTES_MAX: usize = 80;

/// The forms of output that wallets make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    PubKey,
    PubKeyHash,
    ScriptHash,
    Multisig,
    NullData,
    WitnessKeyHash,
    WitnessScriptHash,
    Taproot,
    Anchor,
    WitnessUnknown,
    NonStandard,
}

/// Core `script/solver.cpp`, `Solver`.
fn kind(script: &[u8], is_cash: bool) -> Kind {
    match script {
        [0x76, 0xa9, 20, hash @ .., 0x88, 0xac] if hash.len() == 20 => return Kind::PubKeyHash,
        [0xa9, 20, hash @ .., 0x87] if hash.len() == 20 => return Kind::ScriptHash,
        // Pay to script hash with a 32-byte hash, Bitcoin Cash since May 2023.
        [0xaa, 32, hash @ .., 0x87] if is_cash && hash.len() == 32 => return Kind::ScriptHash,
        [33, 2 | 3, key @ .., 0xac] if key.len() == 32 => return Kind::PubKey,
        [65, 4, key @ .., 0xac] if key.len() == 64 => return Kind::PubKey,
        [0x6a, data @ ..] if is_push_only(data) => return Kind::NullData,
        _ => {}
    }
    if let Some((version, program)) = witness_program(script).filter(|_| !is_cash) {
        return match (version, program.len()) {
            (0, 20) => Kind::WitnessKeyHash,
            (0, 32) => Kind::WitnessScriptHash,
            (0, _) => Kind::NonStandard,
            (1, 32) => Kind::Taproot,
            (1, 2) if program == [0x4e, 0x73] => Kind::Anchor,
            _ => Kind::WitnessUnknown,
        };
    }
    if is_multisig(script) { Kind::Multisig } else { Kind::NonStandard }
}

/// `m <keys> n CHECKMULTISIG` with at most three keys.
fn is_multisig(script: &[u8]) -> bool {
    let [needed @ 0x51..=0x53, keys @ .., total @ 0x51..=0x53, 0xae] = script else { return false };
    let mut rest = keys;
    let mut count = 0u8;
    while let [length @ (33 | 65), tail @ ..] = rest {
        let Some((_, after)) = tail.split_at_checked(usize::from(*length)) else { return false };
        rest = after;
        count += 1;
    }
    rest.is_empty() && 0x50 + count == *total && needed <= total
}

/// Whether a script only pushes data (Core `CScript::IsPushOnly`).
pub(super) fn is_push_only(script: &[u8]) -> bool {
    pushes(script).is_some()
}

/// The last push of a push-only script: the redeem script of a P2SH input.
fn last_push(script: &[u8]) -> Option<&[u8]> {
    pushes(script)
}

/// `None` unless the script only pushes; then its last push, numbers counting as empty.
fn pushes(script: &[u8]) -> Option<&[u8]> {
    let mut rest = script;
    let mut last: &[u8] = &[];
    while let [opcode, tail @ ..] = rest {
        let (length, data) = match (opcode, tail) {
            (0..=75, tail) => (usize::from(*opcode), tail),
            (76, [length, tail @ ..]) => (usize::from(*length), tail),
            (77, [low, high, tail @ ..]) => (usize::from(u16::from_le_bytes([*low, *high])), tail),
            (78, [a, b, c, d, tail @ ..]) => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, tail),
            (79..=96, tail) => (0, tail),
            _ => return None,
        };
        (last, rest) = data.split_at_checked(length)?;
    }
    Some(last)
}

/// Checks what needs no coins; the error is Core's reject reason (`IsStandardTx`).
pub(super) fn check_tx(tx: Tx<'_>, is_cash: bool) -> Result<(), &'static str> {
    let versions = if is_cash { 1..=2 } else { 1..=3 };
    if !versions.contains(&tx.version()) {
        return Err("version");
    }
    if tx.weight() > TX_WEIGHT_MAX {
        return Err("tx-size");
    }
    for input in tx.inputs() {
        if input.script_sig.len() > SCRIPT_SIG_BYTES_MAX {
            return Err("scriptsig-size");
        }
        if !is_push_only(input.script_sig) {
            return Err("scriptsig-not-pushonly");
        }
    }
    check_outputs(tx, is_cash)?;
    if tx.stripped_size() < TX_STRIPPED_BYTES_MIN {
        return Err("tx-size-small");
    }
    Ok(())
}

fn check_outputs(tx: Tx<'_>, is_cash: bool) -> Result<(), &'static str> {
    let data_max = if is_cash { CASH_DATA_CARRIER_BYTES_MAX } else { DATA_CARRIER_BYTES_MAX };
    let mut data_bytes = 0;
    for output in tx.outputs() {
        match kind(output.script_pubkey, is_cash) {
            Kind::NonStandard => return Err("scriptpubkey"),
            Kind::NullData => data_bytes += output.script_pubkey.len(),
            _ => {}
        }
        if data_bytes > data_max {
            return Err("datacarrier");
        }
    }
    if tx.outputs().any(is_dust) {
        return Err("dust");
    }
    Ok(())
}

/// Whether spending the output would cost more than a third of it (Core `GetDustThreshold`).
fn is_dust(output: TxOut<'_>) -> bool {
    let script = output.script_pubkey;
    if assay_consensus::tx::is_unspendable(script) {
        return false;
    }
    let output_bytes = 8 + assay_wire::encode::compact_size_len(script.len() as u64) + script.len();
    // Outpoint, sequence and script length, and a signature with key: in the witness a quarter of it.
    let spend_bytes = if witness_program(script).is_some() { 67 } else { 148 };
    let threshold = (output_bytes + spend_bytes) as u64 * DUST_FEE_SAT_PER_KVB / 1000;
    output.value < threshold as i64
}

/// Checks the form of what is spent and of how it is spent (Core `ValidateInputsStandardness`, `IsWitnessStandard`).
pub(super) fn check_inputs(tx: Tx<'_>, spent: &[Coin], is_cash: bool) -> Result<(), &'static str> {
    for (index, coin) in spent.iter().enumerate() {
        let script_pubkey: &[u8] = &coin.script_pubkey;
        let kind = kind(script_pubkey, is_cash);
        if matches!(kind, Kind::NonStandard | Kind::WitnessUnknown) {
            return Err("bad-txns-nonstandard-inputs");
        }
        let redeem_script = last_push(tx.input(index).script_sig).unwrap_or_default();
        if kind == Kind::ScriptHash && count_sigops(redeem_script, true) > P2SH_SIGOPS_MAX {
            return Err("bad-txns-nonstandard-inputs");
        }
        if !is_cash && !is_witness_standard(tx, index, script_pubkey, redeem_script) {
            return Err("bad-witness-nonstandard");
        }
    }
    Ok(())
}

fn is_witness_standard(
    tx: Tx<'_>,
    index: usize,
    script_pubkey: &[u8],
    redeem_script: &[u8],
) -> bool {
    let witness = tx.witness(index);
    if witness.is_empty() {
        return true;
    }
    let is_wrapped = kind(script_pubkey, false) == Kind::ScriptHash;
    let program_script = if is_wrapped { redeem_script } else { script_pubkey };
    let items: Vec<&[u8]> = witness.iter().collect();
    match kind(program_script, false) {
        Kind::WitnessKeyHash | Kind::WitnessUnknown => true,
        Kind::WitnessScriptHash => {
            let Some((script, stack)) = items.split_last() else { return true };
            script.len() <= P2WSH_SCRIPT_BYTES_MAX
                && stack.len() <= P2WSH_STACK_ITEMS_MAX
                && stack.iter().all(|item| item.len() <= STACK_ITEM_BYTES_MAX)
        }
        Kind::Taproot if !is_wrapped => is_taproot_witness_standard(&items),
        // Core: a witness on anything else is unexpected; a wrapped taproot output is anyone's to spend and not relayed.
        _ => false,
    }
}

fn is_taproot_witness_standard(items: &[&[u8]]) -> bool {
    /// First byte of an annex (BIP341).
    const ANNEX_TAG: u8 = 0x50;
    /// Leaf version of tapscript (BIP342), the parity bit apart.
    const TAPSCRIPT_LEAF: u8 = 0xc0;
    let has_annex =
        items.len() >= 2 && items.last().is_some_and(|last| last.first() == Some(&ANNEX_TAG));
    if has_annex {
        return false;
    }
    let [stack @ .., _script, control] = items else { return true };
    match control.first() {
        None => false,
        Some(first) if first & 0xfe == TAPSCRIPT_LEAF => {
            stack.iter().all(|item| item.len() <= STACK_ITEM_BYTES_MAX)
        }
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_output() {
        let p2pkh = [&[0x76, 0xa9, 20][..], &[7; 20], &[0x88, 0xac]].concat();
        assert_eq!(kind(&p2pkh, false), Kind::PubKeyHash);
        let p2sh32 = [&[0xaa, 32][..], &[7; 32], &[0x87]].concat();
        assert_eq!(kind(&p2sh32, true), Kind::ScriptHash);
        assert_eq!(kind(&p2sh32, false), Kind::NonStandard);
        let p2tr = [&[0x51, 32][..], &[7; 32]].concat();
        assert_eq!(kind(&p2tr, false), Kind::Taproot);
        assert_eq!(kind(&p2tr, true), Kind::NonStandard);
        assert_eq!(kind(&[0x51, 2, 0x4e, 0x73], false), Kind::Anchor);
        assert_eq!(kind(&[0x6a, 3, 1, 2, 3], false), Kind::NullData);
        assert_eq!(kind(&[0x6a, 3, 1, 2], false), Kind::NonStandard);
        let mut multisig = vec![0x51];
        for _ in 0..2 {
            multisig.push(33);
            multisig.extend([2; 33]);
        }
        multisig.extend([0x52, 0xae]);
        assert_eq!(kind(&multisig, false), Kind::Multisig);
        multisig[0] = 0x53;
        assert_eq!(kind(&multisig, false), Kind::NonStandard);
    }

    #[test]
    fn dust_begins_where_core_says() {
        let p2pkh = [&[0x76, 0xa9, 20][..], &[7; 20], &[0x88, 0xac]].concat();
        let p2wpkh = [&[0, 20][..], &[7; 20]].concat();
        for (script, least) in [(&p2pkh, 546), (&p2wpkh, 294)] {
            assert!(is_dust(TxOut { value: least - 1, script_pubkey: script }));
            assert!(!is_dust(TxOut { value: least, script_pubkey: script }));
        }
        assert!(!is_dust(TxOut { value: 0, script_pubkey: &[0x6a] }));
    }

    #[test]
    fn pushes_are_told_from_operations() {
        assert!(is_push_only(&[0, 0x51, 0x60, 1, 9, 76, 1, 9, 77, 1, 0, 9, 78, 1, 0, 0, 0, 9]));
        assert!(!is_push_only(&[0x61]) && !is_push_only(&[2, 1]) && !is_push_only(&[76]));
        assert_eq!(last_push(&[1, 8, 2, 9, 9]), Some(&[9, 9][..]));
    }
}
