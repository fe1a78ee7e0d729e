use super::*;
use assay_testkit::chain::TxBuilder;

const KEY: [u8; 33] = [2; 33];

fn push(data: &[u8]) -> Vec<u8> {
    assert!(data.len() < 0xfd, "tests push by one length byte");
    let mut script = if data.len() < 0x4c { vec![] } else { vec![op::PUSHDATA1] };
    script.push(data.len() as u8);
    script.extend_from_slice(data);
    script
}

fn script(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn p2sh() -> Vec<u8> {
    script(&[&[op::HASH160], &push(&[7; 20]), &[op::EQUAL]])
}

fn witness_output(version: u8, program: &[u8]) -> Vec<u8> {
    script(&[&[version], &push(program)])
}

fn two_of_two(last: u8) -> Vec<u8> {
    script(&[&[op::PUSH1], &push(&KEY), &push(&KEY), &[op::PUSH1 + 1, last]])
}

#[test]
fn counting_one_script() {
    assert_eq!((count_sigops(&[], false), count_sigops(&[], true)), (0, 0));
    let mut nested = two_of_two(op::CHECKMULTISIG);
    assert_eq!(count_sigops(&nested, true), 2);
    nested.extend([op::IF, op::CHECKSIG, op::ENDIF]);
    assert_eq!(count_sigops(&nested, true), 3);
    assert_eq!(count_sigops(&nested, false), 21);
    assert_eq!(count_sigops(&[op::CHECKMULTISIG], true), 20, "no number before it");
    assert_eq!(count_sigops(&[0, op::CHECKMULTISIG], true), 20, "zero is no small number here");
    assert_eq!(count_sigops(&[op::PUSH16, op::CHECKMULTISIGVERIFY], true), 16);
    assert_eq!(count_sigops(&[1, op::CHECKSIG], true), 0, "pushed, not executed");
    assert_eq!(count_sigops(&[op::CHECKSIG, 5, op::CHECKSIG], true), 1, "cut off after the first");
    assert_eq!(count_sigops(&[op::CHECKSIG, op::PUSHDATA2, 1], true), 1);
    assert_eq!(count_sigops(&[op::CHECKSIGVERIFY, op::CHECKSIG], false), 2);
}

#[test]
fn redeem_scripts_count_accurately() {
    let all = Flags::P2SH | Flags::WITNESS;
    let cost =
        |script_sig: &[u8], flags| input_sigop_cost(script_sig, &p2sh(), Witness::EMPTY, flags);
    let redeem = two_of_two(op::CHECKMULTISIGVERIFY);
    let script_sig = script(&[&[0, 0], &push(&redeem)]);
    assert_eq!(cost(&script_sig, all), 8);
    assert_eq!(cost(&script_sig, Flags::NONE), 0);
    assert_eq!(cost(&[], all), 0);
    let executes = script(&[&[op::NOP], &push(&redeem)]);
    assert_eq!(cost(&executes, all), 0, "more than pushes");
    let cut_off = script(&[&push(&redeem), &[9]]);
    assert_eq!(cost(&cut_off, all), 0);
    let small_last = script(&[&push(&redeem), &[op::PUSH1]]);
    assert_eq!(cost(&small_last, all), 0, "a small number pushes no script");
    assert_eq!(input_sigop_cost(&script_sig, &redeem, Witness::EMPTY, all), 0, "not P2SH");
}

fn spend(script_sig: &[u8], items: &[&[u8]]) -> assay_wire::Transaction {
    let tx = TxBuilder::new(1).input(1, 0, script_sig, 0).output(1, &[]);
    if items.is_empty() { tx.build() } else { tx.witness(items).build() }
}

fn cost(tx: &assay_wire::Transaction, script_pubkey: &[u8], flags: Flags) -> u64 {
    tx_sigop_cost(tx.view(), [script_pubkey], flags)
}

/// The cases of Core's `sigopcount_tests.cpp`.
#[test]
fn transaction_costs() {
    let all = Flags::P2SH | Flags::WITNESS;
    let multisig = two_of_two(op::CHECKMULTISIGVERIFY);
    let creates = TxBuilder::new(1).input(0, u32::MAX, &[], 0).output(1, &multisig).build();
    assert_eq!(tx_sigop_cost(creates.view(), [], all), 80);
    assert_eq!(cost(&spend(&[0, 0], &[]), &multisig, all), 0);

    let in_p2sh = spend(&script(&[&[0, 0], &push(&multisig)]), &[]);
    assert_eq!(cost(&in_p2sh, &p2sh(), all), 8);
    assert_eq!(cost(&in_p2sh, &p2sh(), Flags::NONE), 0);

    let keyhash = witness_output(0, &[9; 20]);
    let by_key = spend(&[], &[&[], &[0]]);
    assert_eq!(cost(&by_key, &keyhash, all), 1);
    assert_eq!(cost(&by_key, &keyhash, Flags::P2SH), 0);
    assert_eq!(cost(&by_key, &witness_output(op::PUSH1, &[9; 20]), all), 0, "version 1");
    let nested_key = spend(&push(&keyhash), &[&[], &[0]]);
    assert_eq!(cost(&nested_key, &p2sh(), all), 1);

    let scripthash = witness_output(0, &[9; 32]);
    let by_script = spend(&[], &[&[], &[], &multisig]);
    assert_eq!(cost(&by_script, &scripthash, all), 2);
    assert_eq!(cost(&by_script, &scripthash, Flags::P2SH), 0);
    let nested_script = spend(&push(&scripthash), &[&[], &[], &multisig]);
    assert_eq!(cost(&nested_script, &p2sh(), all), 2);
    assert_eq!(cost(&spend(&[], &[]), &scripthash, all), 0, "no witness, nothing to count");
}

/// Every kind of output against every kind of input: skipping inputs that cannot matter changes no count.
#[test]
fn inputs_that_are_not_looked_at_cost_nothing() {
    let multisig = two_of_two(op::CHECKMULTISIG);
    let outputs = [
        p2sh(),
        multisig.clone(),
        vec![],
        witness_output(0, &[9; 20]),
        witness_output(0, &[9; 21]),
        witness_output(0, &[9; 32]),
        witness_output(0, &[9; 40]),
        witness_output(op::PUSH1, &[9; 20]),
        witness_output(op::PUSH1, &[9; 32]),
        [&witness_output(0, &[9; 20])[..], &[0]].concat(),
    ];
    let scripts = [vec![], push(&multisig), push(&outputs[3]), push(&outputs[5]), vec![op::NOP]];
    let witnesses: [&[&[u8]]; 3] = [&[], &[&[1]], &[&[], &multisig]];
    for (script_pubkey, script_sig) in
        outputs.iter().flat_map(|o| scripts.iter().map(move |s| (o, s)))
    {
        for items in witnesses {
            let tx = spend(script_sig, items);
            for flags in [Flags::NONE, Flags::P2SH, Flags::WITNESS, Flags::P2SH | Flags::WITNESS] {
                let slow = input_sigop_cost(script_sig, script_pubkey, tx.view().witness(0), flags);
                let fast = spends_sigop_cost(tx.view(), [&script_pubkey[..]], flags);
                assert_eq!(
                    fast, slow,
                    "{script_pubkey:02x?} {script_sig:02x?} {items:02x?} {flags:?}"
                );
            }
        }
    }
}
