//! Relay policy of the reference nodes, stricter than consensus (Core `policy/policy.cpp`, BCHN `policy/policy.cpp`).

use assay_consensus::script::OutputKind;
use assay_consensus::script::opcode::{is_push_only, last_push, witness_program};
use assay_consensus::sigops::{MAX_TX_LEGACY_SIGOPS, count_sigops, tx_legacy_sigops};
use assay_wire::{Coin, Tx, TxOut};

use crate::config::Policy;

/// Core's `MAX_STANDARD_TX_WEIGHT`; BCHN's limit of 100,000 bytes is the same at four weight units each.
const TX_WEIGHT_MAX: usize = 400_000;
/// Core's `MAX_STANDARD_SCRIPTSIG_SIZE`.
const SCRIPT_SIG_BYTES_MAX: usize = 1650;
/// Core's `MIN_STANDARD_TX_NONWITNESS_SIZE` (CVE-2017-12842).
const TX_STRIPPED_BYTES_MIN: usize = 65;
/// Core's `MAX_P2SH_SIGOPS`.
const P2SH_SIGOPS_MAX: u64 = 15;
/// Core's `MAX_STANDARD_P2WSH_SCRIPT_SIZE`.
const P2WSH_SCRIPT_BYTES_MAX: usize = 3600;
/// Core's `MAX_STANDARD_P2WSH_STACK_ITEMS`.
const P2WSH_STACK_ITEMS_MAX: usize = 100;
/// Core's `MAX_STANDARD_P2WSH_STACK_ITEM_SIZE` and `MAX_STANDARD_TAPSCRIPT_STACK_ITEM_SIZE`.
const STACK_ITEM_BYTES_MAX: usize = 80;

/// Core's `MAX_DUST_OUTPUTS_PER_TX`: such outputs must be spent by a child in the same package (`policy/ephemeral_policy.h`).
const DUST_OUTPUTS_MAX: usize = 1;

/// Maximum keys of a relayed bare multisig output.
const MULTISIG_KEYS_RELAYED_MAX: usize = 3;

/// Checks that need no coins; the error is Core's reject reason (`IsStandardTx`).
pub(super) fn check_tx(tx: Tx<'_>, is_cash: bool, policy: &Policy) -> Result<(), &'static str> {
    if policy.require_standard {
        check_form(tx, is_cash, policy)?;
    }
    // On Bitcoin Cash a consensus rule requires more.
    if !is_cash && tx.stripped_size() < TX_STRIPPED_BYTES_MIN {
        return Err("tx-size-small");
    }
    Ok(())
}

fn check_form(tx: Tx<'_>, is_cash: bool, policy: &Policy) -> Result<(), &'static str> {
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
    if is_cash { check_cash_outputs(tx, policy) } else { check_outputs(tx, policy) }
}

/// BCHN `IsStandardTx`: output by output, with any number of data carriers (May 2021) of a limited total size.
fn check_cash_outputs(tx: Tx<'_>, policy: &Policy) -> Result<(), &'static str> {
    let mut data_bytes = 0;
    for output in tx.outputs() {
        match cash_kind(output.script_pubkey) {
            OutputKind::NonStandard => return Err("scriptpubkey"),
            OutputKind::Multisig { keys, .. } if keys.len() > MULTISIG_KEYS_RELAYED_MAX => {
                return Err("scriptpubkey");
            }
            OutputKind::NullData => data_bytes += output.script_pubkey.len(),
            OutputKind::Multisig { .. } if !policy.permit_bare_multisig => {
                return Err("bare-multisig");
            }
            _ if is_dust(output, policy.dust_fee_sat_per_kvb) => return Err("dust"),
            _ => {}
        }
    }
    if data_bytes > policy.data_carrier_bytes_max {
        return Err("oversize-op-return");
    }
    Ok(())
}

/// P2SH32 is not active before May 2023: anyone who knows the preimage could spend such a coin.
fn cash_kind(script: &[u8]) -> OutputKind<'_> {
    match OutputKind::of(script, true) {
        OutputKind::ScriptHash(hash) if hash.len() != 20 => OutputKind::NonStandard,
        kind => kind,
    }
}

fn check_outputs(tx: Tx<'_>, policy: &Policy) -> Result<(), &'static str> {
    let mut data_bytes = 0;
    for output in tx.outputs() {
        match OutputKind::of(output.script_pubkey, false) {
            OutputKind::NonStandard => return Err("scriptpubkey"),
            OutputKind::Multisig { keys, .. } if keys.len() > MULTISIG_KEYS_RELAYED_MAX => {
                return Err("scriptpubkey");
            }
            OutputKind::Multisig { .. } if !policy.permit_bare_multisig => {
                return Err("bare-multisig");
            }
            OutputKind::NullData => data_bytes += output.script_pubkey.len(),
            _ => {}
        }
        if data_bytes > policy.data_carrier_bytes_max {
            return Err("datacarrier");
        }
    }
    let dust = tx.outputs().filter(|output| is_dust(*output, policy.dust_fee_sat_per_kvb));
    if dust.count() > DUST_OUTPUTS_MAX {
        return Err("dust");
    }
    Ok(())
}

/// True if spending the output would cost more than a third of its value (Core `GetDustThreshold`).
pub(super) fn is_dust(output: TxOut<'_>, fee_sat_per_kvb: u64) -> bool {
    let script = output.script_pubkey;
    if assay_consensus::tx::is_unspendable(script) {
        return false;
    }
    let output_bytes = 8 + assay_wire::encode::compact_size_len(script.len() as u64) + script.len();
    // Outpoint, sequence, script length, signature and key; the latter two count a quarter in a witness.
    let spend_bytes = if witness_program(script).is_some() { 67 } else { 148 };
    let bytes = (output_bytes + spend_bytes) as u64;
    let threshold = bytes.saturating_mul(fee_sat_per_kvb).div_ceil(1000);
    output.value < i64::try_from(threshold).unwrap_or(i64::MAX)
}

/// Checks the form of spent outputs and of their spends (Core `ValidateInputsStandardness`, `IsWitnessStandard`). The error is
/// Core's reject reason and debug message.
pub(super) fn check_inputs(
    tx: Tx<'_>,
    spent: &[Coin],
    is_cash: bool,
) -> Result<(), (&'static str, String)> {
    let not_standard = |debug: String| Err(("bad-txns-nonstandard-inputs", debug));
    let scripts = spent.iter().map(|coin| &coin.script_pubkey[..]);
    if !is_cash && tx_legacy_sigops(tx, scripts) > MAX_TX_LEGACY_SIGOPS {
        return not_standard("non-witness sigops exceed bip54 limit".to_owned());
    }
    for (index, coin) in spent.iter().enumerate() {
        let script_pubkey: &[u8] = &coin.script_pubkey;
        if is_cash {
            // BCHN `AreInputsStandard` checks nothing else.
            match cash_kind(script_pubkey) {
                OutputKind::NonStandard => return not_standard(String::new()),
                _ => continue,
            }
        }
        let kind = OutputKind::of(script_pubkey, false);
        match kind {
            OutputKind::NonStandard => {
                return not_standard(format!("input {index} script unknown"));
            }
            OutputKind::WitnessUnknown { .. } => {
                return not_standard(format!("input {index} witness program is undefined"));
            }
            _ => {}
        }
        let last = last_push(tx.input(index).script_sig);
        let redeem_script = last.unwrap_or_default();
        let sigops = count_sigops(redeem_script, true);
        if matches!(kind, OutputKind::ScriptHash(_)) {
            if last.is_none() {
                return not_standard(format!("input {index} P2SH redeemscript missing"));
            }
            if sigops > P2SH_SIGOPS_MAX {
                return not_standard(format!(
                    "p2sh redeemscript sigops exceed limit (input {index}: {sigops} > {P2SH_SIGOPS_MAX})"
                ));
            }
        }
        if !is_witness_standard(tx, index, script_pubkey, redeem_script) {
            return Err(("bad-witness-nonstandard", String::new()));
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
    let is_wrapped = matches!(OutputKind::of(script_pubkey, false), OutputKind::ScriptHash(_));
    let program_script = if is_wrapped { redeem_script } else { script_pubkey };
    let items: Vec<&[u8]> = witness.iter().collect();
    match OutputKind::of(program_script, false) {
        OutputKind::WitnessKeyHash(_) | OutputKind::WitnessUnknown { .. } => true,
        OutputKind::WitnessScriptHash(_) => {
            let Some((script, stack)) = items.split_last() else { return true };
            script.len() <= P2WSH_SCRIPT_BYTES_MAX
                && stack.len() <= P2WSH_STACK_ITEMS_MAX
                && stack.iter().all(|item| item.len() <= STACK_ITEM_BYTES_MAX)
        }
        OutputKind::Taproot(_) if !is_wrapped => is_taproot_witness_standard(&items),
        // Core: a witness is unexpected elsewhere; a wrapped taproot output is spendable by anyone and not relayed.
        _ => false,
    }
}

fn is_taproot_witness_standard(items: &[&[u8]]) -> bool {
    /// First byte of an annex (BIP341).
    const ANNEX_TAG: u8 = 0x50;
    /// Leaf version of tapscript (BIP342), without the parity bit.
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
    use assay_testkit::chain::TxBuilder;
    use assay_wire::{Encoding, Script, Transaction};

    use super::*;

    const CORE: Policy = Policy::new(false);

    #[test]
    fn bare_multisig_is_relayed_up_to_three_keys_and_spent_beyond() {
        let key = [&[2u8][..], &[7; 32]].concat();
        let of = |total: u8| {
            let keys = [&[33][..], &key].concat().repeat(usize::from(total));
            [&[0x51][..], &keys, &[0x50 + total, 0xae]].concat()
        };
        let tx = |script: &[u8]| {
            let output = [&[0, 0xe1, 0xf5, 5, 0, 0, 0, 0, script.len() as u8][..], script].concat();
            let input = [&[0; 32][..], &[0; 4], &[0], &[0xff; 4]].concat();
            let raw = [&[1, 0, 0, 0, 1][..], &input, &[1], &output, &[0; 4]].concat();
            Transaction::parse(raw, Encoding::Segwit).unwrap()
        };
        assert_eq!(check_tx(tx(&of(3)).view(), false, &CORE), Ok(()));
        assert_eq!(check_tx(tx(&of(4)).view(), false, &CORE), Err("scriptpubkey"));
        let without = Policy { permit_bare_multisig: false, ..CORE };
        assert_eq!(check_tx(tx(&of(3)).view(), false, &without), Err("bare-multisig"));
        let any = Policy { require_standard: false, ..without };
        assert_eq!(check_tx(tx(&of(4)).view(), false, &any), Ok(()));
        let spent =
            Coin { value: 1, height: 1, coinbase: false, script_pubkey: Script::from(&of(4)[..]) };
        assert_eq!(check_inputs(tx(&of(3)).view(), &[spent], false), Ok(()));
    }

    #[test]
    fn cash_judges_output_by_output() {
        const CASH: Policy = Policy::new(true);
        let carrier =
            |bytes: usize| (0, [&[0x6a, 0x4c, bytes as u8][..], &vec![7; bytes]].concat());
        let p2pkh = [&[0x76, 0xa9, 20][..], &[7; 20], &[0x88, 0xac]].concat();
        let p2sh_32 = [&[0xaa, 32][..], &[7; 32], &[0x87]].concat();
        let check = |outputs: &[(i64, Vec<u8>)]| {
            let builder = TxBuilder::new(2).input(1, 0, &[], 0);
            let builder =
                outputs.iter().fold(builder, |tx, (value, script)| tx.output(*value, script));
            check_tx(builder.build().view(), true, &CASH)
        };
        let paid = (1000, p2pkh.clone());
        assert_eq!(check(&[paid.clone(), carrier(100), carrier(100)]), Ok(()), "206 bytes of 223");
        assert_eq!(check(&[paid, carrier(200), carrier(100)]), Err("oversize-op-return"));
        // Dust is checked before the total of the data, in any order of the outputs.
        assert_eq!(check(&[carrier(200), carrier(100), (545, p2pkh)]), Err("dust"));
        assert_eq!(check(&[(1000, p2sh_32.clone())]), Err("scriptpubkey"));
        let coin = |script: &[u8]| Coin {
            value: 1,
            height: 1,
            coinbase: false,
            script_pubkey: Script::from(script),
        };
        let spend = TxBuilder::new(2).input(1, 0, &[], 0).output(1, &[0x51]).build();
        let refused = check_inputs(spend.view(), &[coin(&p2sh_32)], true);
        assert_eq!(refused, Err(("bad-txns-nonstandard-inputs", String::new())));
        let p2sh = [&[0xa9, 20][..], &[7; 20], &[0x87]].concat();
        assert_eq!(check_inputs(spend.view(), &[coin(&p2sh)], true), Ok(()), "without a push");
    }

    #[test]
    fn dust_threshold_equals_that_of_core() {
        let p2pkh = [&[0x76, 0xa9, 20][..], &[7; 20], &[0x88, 0xac]].concat();
        let p2wpkh = [&[0, 20][..], &[7; 20]].concat();
        for (script, least) in [(&p2pkh, 546), (&p2wpkh, 294)] {
            assert!(is_dust(TxOut { value: least - 1, script_pubkey: script }, 3000));
            assert!(!is_dust(TxOut { value: least, script_pubkey: script }, 3000));
        }
        assert!(!is_dust(TxOut { value: 0, script_pubkey: &[0x6a] }, 3000));
    }
}
