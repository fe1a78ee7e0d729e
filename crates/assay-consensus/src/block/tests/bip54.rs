//! BIP-0054's rules about blocks that its vectors leave open, and the limit of operations.

use assay_testkit::random::Random;

use super::*;
use crate::script::opcode::op;
use crate::sigops::tx_legacy_sigops;

/// Regtest with the proposal in force from height 100 on.
fn proposed() -> ChainParams {
    params("regtest").with_activation_height("bip54", 100).expect("bip54 can be moved")
}

/// A coinbase for height 100 with this lock time and sequence number, of 66 bytes.
fn coinbase_of(lock_time: u32, sequence: u32) -> TxBuilder {
    TxBuilder::new(1)
        .spend(OutPoint::NULL, &[1, 100, 0x51, 0x51, 0x51], sequence)
        .output(1, &[0x51])
        .lock_time(lock_time)
}

/// Cases that the vectors of the BIP leave open; `assay-engine` runs those.
#[test]
fn coinbases_beyond_the_vectors() {
    let regtest = params("regtest");
    let of = |params: &ChainParams, coinbase: &TxBuilder| {
        in_chain(&rules(params, 100), std::slice::from_ref(coinbase))
    };
    // Not final: today's rule is checked first.
    for params in [&regtest, &proposed()] {
        assert_eq!(of(params, &coinbase_of(100, 0)), "bad-txns-nonfinal");
    }
    assert_eq!(of(&regtest, &coinbase_of(100, u32::MAX)), "ok");
    assert_eq!(of(&proposed(), &coinbase_of(100, u32::MAX)), "bad-cb-locktime");
    // The coinbase is a transaction like any other.
    let coinbase = TxBuilder::new(1)
        .spend(OutPoint::NULL, &[1, 100, 0x51, 0x51], 0)
        .output(1, &[])
        .lock_time(99);
    assert_eq!(coinbase.build().view().stripped_size(), 64);
    assert_eq!(of(&regtest, &coinbase), "ok");
    assert_eq!(of(&proposed(), &coinbase), "bad-txns-size");
}

/// An input: its script, the script it spends, and how many operations it counts.
type Input = (Vec<u8>, Vec<u8>, u64);

fn push(data: &[u8]) -> Vec<u8> {
    let mut script = Vec::new();
    crate::script::asm::push(&mut script, data);
    script
}

fn p2sh_input(redeem_script: &[u8], sigops: u64) -> Input {
    let script_pubkey = [&[op::HASH160, 20][..], &[7; 20], &[op::EQUAL]].concat();
    (push(redeem_script), script_pubkey, sigops)
}

/// Inputs of every kind, each with the count that the BIP's words give.
fn kinds() -> Vec<Input> {
    let mut kinds: Vec<Input> = vec![
        (vec![], vec![op::CHECKSIG; 7], 7),
        (vec![], vec![op::CHECKSIGVERIFY; 3], 3),
        (vec![op::CHECKSIG; 2], vec![op::CHECKSIG], 3),
        (vec![], vec![op::CHECKMULTISIG], 20),
        (vec![], vec![0, op::CHECKMULTISIG], 20),
        (vec![], vec![1, 5, op::CHECKMULTISIGVERIFY], 20),
        // Not run, and counted all the same; a number behind a cut-off push is not.
        (vec![], vec![0, op::IF, op::CHECKSIG, op::ENDIF], 1),
        (vec![], vec![op::CHECKSIG, op::PUSHDATA1, 9, op::CHECKSIG], 1),
        (vec![], vec![op::RETURN, op::CHECKSIG], 1),
        // Tapscript's opcode counts nothing.
        (vec![], vec![op::CHECKSIGADD], 0),
        p2sh_input(&[op::CHECKSIG; 5], 5),
        p2sh_input(&[op::PUSH1 + 2, op::CHECKMULTISIG, op::CHECKSIG], 4),
        p2sh_input(&[], 0),
        // Witness programs, native and in P2SH: operations in their scripts are not counted.
        (vec![], [&[0, 32][..], &[op::CHECKSIG; 32]].concat(), 0),
        (vec![], [&[0, 20][..], &[op::CHECKSIG; 20]].concat(), 0),
        (vec![], [&[op::PUSH1, 32][..], &[op::CHECKSIG; 32]].concat(), 0),
        p2sh_input(&[&[0, 32][..], &[op::CHECKSIG; 32]].concat(), 0),
    ];
    for keys in 1..=16 {
        kinds.push((vec![], vec![op::PUSH1 + keys - 1, op::CHECKMULTISIG], keys.into()));
        let redeem_script = [op::PUSH1 + keys - 1, op::CHECKMULTISIGVERIFY];
        kinds.push(p2sh_input(&redeem_script, keys.into()));
    }
    // An input script that does more than push has no redeem script, but its own operations count.
    let (_, p2sh, _) = p2sh_input(&[], 0);
    kinds.push(([&[op::CHECKSIG][..], &push(&[op::CHECKSIG; 9])].concat(), p2sh, 1));
    kinds
}

/// The verdict of the rules for the block at height 100 on a transaction with these inputs.
fn verdict(params: &ChainParams, inputs: &[Input]) -> Result<(), TxError> {
    let mut builder = TxBuilder::new(1).output(1, &[op::PUSH1]);
    for (index, (script_sig, ..)) in inputs.iter().enumerate() {
        builder = builder.input(1, index as u32, script_sig, 0);
    }
    let tx = builder.build();
    let scripts = inputs.iter().map(|(_, script_pubkey, _)| &script_pubkey[..]);
    let expected: u64 = inputs.iter().map(|(.., sigops)| sigops).sum();
    assert_eq!(tx_legacy_sigops(tx.view(), scripts.clone()), expected);
    let spent = scripts.map(|script_pubkey| SpentCoin {
        value: 1,
        height: 1,
        coinbase: false,
        script_pubkey,
    });
    rules(params, 100).check_spends(tx.view(), spent, |_| 0).map(|_| ())
}

#[test]
fn every_kind_of_input_counts_up_to_2500() {
    for kind in kinds() {
        let each = kind.2;
        let repeats = 2500u64.checked_div(each).unwrap_or(40);
        let mut inputs = vec![kind.clone(); repeats as usize];
        // Single operations fill the rest up to 2,500.
        inputs.extend(vec![(vec![], vec![op::CHECKSIG], 1); (2500 - repeats * each) as usize]);
        assert_eq!(verdict(&proposed(), &inputs), Ok(()), "{kind:02x?}");
        inputs.push((vec![], vec![op::CHECKSIG], 1));
        let too_many = TxError::LegacySigOps { sigops: 2501, sigops_max: 2500 };
        assert_eq!(verdict(&proposed(), &inputs), Err(too_many.clone()), "{kind:02x?}");
        assert_eq!(too_many.block_reject_reason(), "bad-txns-legacy-sigops");
        assert_eq!(verdict(&params("regtest"), &inputs), Ok(()), "{kind:02x?}");
    }
}

#[test]
fn random_mixtures_are_added_up() {
    let (kinds, mut random) = (kinds(), Random(54));
    let mut verdicts = [0, 0];
    for _ in 0..400 {
        let mut inputs = Vec::new();
        let mut total = 0;
        // On both sides of the limit.
        let wanted = 2370 + random.below(256) as u64;
        while total < wanted {
            let kind = &kinds[random.below(kinds.len())];
            total += kind.2;
            inputs.push(kind.clone());
        }
        let is_ok = verdict(&proposed(), &inputs).is_ok();
        assert_eq!(is_ok, total <= 2500, "{total}");
        verdicts[usize::from(is_ok)] += 1;
    }
    assert!(verdicts.iter().all(|count| *count > 40), "{verdicts:?}");
}
