//! Messages against published values and against messages serialised whole.

use assay_hash::sha256d;
use assay_testkit::chain::TxBuilder;
use assay_testkit::hex;
use assay_wire::encode::{compact_size, var_bytes};
use assay_wire::{Encoding, Transaction, TxOut};

use super::*;
use crate::script::opcode::op;

/// The native P2WPKH example of BIP-0143.
#[test]
fn bip143_example() {
    let raw = hex::decode(concat!(
        "0100000002fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f0000000000eeffff",
        "ffef51e1b804cc89d182d279655c3aa89e815b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202c",
        "b206000000001976a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac9093510d000000001976a9143b",
        "de42dbee7e4dbe6a21b2d50ce2f0167faa815988ac11000000"
    ));
    let tx = Transaction::parse(raw, Encoding::Segwit).expect("a transaction");
    let spent = [TxOut { value: 0, script_pubkey: &[] }; 2];
    let ctx = TxContext::new(tx.view(), &spent);
    let code = hex::decode("76a9141d0f172a0ecb48aee1be1f2687d2963ae33f71a188ac");
    assert_eq!(
        ctx.sighash_segwit_v0(1, &code, 600_000_000, SIGHASH_ALL).to_vec(),
        hex::decode("c37af31116d1b27caf68aae9e3ac82f1477929014d5b917657d0eb49478cb670")
    );
}

fn transaction(inputs: u8, outputs: u8) -> Transaction {
    let mut tx = TxBuilder::new(1).lock_time(0x0102_0304);
    for input in 0..inputs {
        tx = tx.input(input, input.into(), &[input; 5], input.into());
    }
    for output in 0..outputs {
        tx = tx.output(output.into(), &vec![output; output.into()]);
    }
    tx.build()
}

/// The legacy message built in memory, straight from the rules.
fn slow_legacy(tx: &Transaction, signed: usize, code: &[u8], hash_type: u32) -> [u8; 32] {
    let tx = tx.view();
    let base = hash_type & 0x1f;
    if base == SIGHASH_SINGLE && signed >= tx.output_count() {
        return SINGLE_BUG;
    }
    let mut raw = tx.version().to_le_bytes().to_vec();
    let alone = hash_type & SIGHASH_ANYONECANPAY != 0;
    compact_size(&mut raw, if alone { 1 } else { tx.input_count() as u64 });
    for (index, input) in tx.inputs().enumerate().filter(|&(index, _)| !alone || index == signed) {
        raw.extend(input.prevout.to_bytes());
        var_bytes(&mut raw, if index == signed { code } else { &[] });
        let keep = index == signed || !matches!(base, SIGHASH_NONE | SIGHASH_SINGLE);
        raw.extend(if keep { input.sequence } else { 0 }.to_le_bytes());
    }
    let count = match base {
        SIGHASH_NONE => 0,
        SIGHASH_SINGLE => signed + 1,
        _ => tx.output_count(),
    };
    compact_size(&mut raw, count as u64);
    for (index, output) in tx.outputs().take(count).enumerate() {
        if base == SIGHASH_SINGLE && index != signed {
            raw.extend([0xff; 8]);
            raw.push(0);
        } else {
            raw.extend(output.value.to_le_bytes());
            var_bytes(&mut raw, output.script_pubkey);
        }
    }
    raw.extend(tx.lock_time().to_le_bytes());
    raw.extend(hash_type.to_le_bytes());
    sha256d(&raw)
}

#[test]
fn legacy_stream_equals_the_slow_message() {
    let tx = transaction(7, 4);
    let spent = [TxOut { value: 0, script_pubkey: &[] }; 7];
    let ctx = TxContext::new(tx.view(), &spent);
    // In an order that goes forwards, backwards and stays.
    for input in [0, 3, 3, 6, 1, 2, 5, 4, 0] {
        for hash_type in [0, 1, 2, 3, 0x41, 0x81, 0x82, 0x83, 0x1f, 0xffff_ff03, 0x8000_0001] {
            for code in [&[][..], &[0x51, 0x52], &[0x51; 300]] {
                assert_eq!(
                    ctx.sighash_legacy(input, code, hash_type),
                    slow_legacy(&tx, input, code, hash_type),
                    "input {input} type {hash_type:#x}"
                );
            }
        }
    }
}

/// Messages that are computed together are those computed alone, whichever inputs ask, in whatever
/// order, and for script codes that were expected or not.
#[test]
fn many_legacy_messages_at_once() {
    let p2pkh = [&[0x76, 0xa9, 20][..], &[op::CODESEPARATOR; 20], &[0x88, 0xac]].concat();
    let separated = [op::PUSH1, op::CODESEPARATOR, op::CHECKSIG];
    let p2sh = [&[0xa9, 20][..], &[7; 20], &[0x87]].concat();
    let redeem = [0x51; 25];
    let script_of = |pattern: usize, input: usize| match (pattern, input % 7) {
        (1, 1 | 4) => &p2sh[..],
        (1, 2) => &separated,
        (1, 5) => &redeem[..24],
        (2, 0..3) => &p2sh,
        _ => &p2pkh,
    };
    for (inputs, pattern) in [(31, 0), (32, 0), (40, 0), (120, 0), (120, 1), (200, 2), (90, 3)] {
        let count = usize::from(inputs);
        let script_sig = [&[2, 9, 9, redeem.len() as u8][..], &redeem].concat();
        let mut tx = TxBuilder::new(1).lock_time(0x0102_0304);
        for input in 0..inputs {
            tx = tx.input(input, input.into(), &script_sig, input.into());
        }
        for output in 0..30 {
            tx = tx.output(output, &p2pkh);
        }
        let tx = tx.build();
        let spent: Vec<TxOut<'_>> = (0..count)
            .map(|input| TxOut { value: 1, script_pubkey: script_of(pattern, input) })
            .collect();
        let ctx = TxContext::new(tx.view(), &spent);
        let step = if pattern == 3 { count - 1 } else { 1 };
        for input in (0..2 * count).map(|i| i * step % count) {
            let script = spent[input].script_pubkey;
            let code = if script == p2sh { &redeem[..] } else { script };
            for (code, hash_type) in
                [(code, 1), (&code[1..], 1), (code, 0x41), (code, 3), (code, 0x81)]
            {
                let mut signed = code.to_vec();
                if script == separated {
                    signed.retain(|opcode| *opcode != op::CODESEPARATOR);
                }
                assert_eq!(
                    ctx.sighash_legacy(input, code, hash_type),
                    slow_legacy(&tx, input, &signed, hash_type),
                    "{count} inputs, pattern {pattern}, input {input}, type {hash_type:#x}"
                );
            }
        }
    }
}

/// The BIP-0143 message built in memory, straight from the BIP.
fn slow_segwit_v0(
    tx: &Transaction,
    signed: usize,
    code: &[u8],
    value: i64,
    hash_type: u32,
) -> [u8; 32] {
    let tx = tx.view();
    let base = hash_type & 0x1f;
    let alone = hash_type & SIGHASH_ANYONECANPAY != 0;
    let every = base != SIGHASH_NONE && base != SIGHASH_SINGLE;
    let hash = |wanted: bool, bytes: Vec<u8>| if wanted { sha256d(&bytes) } else { [0; 32] };
    let prevouts = tx.inputs().flat_map(|input| input.prevout.to_bytes()).collect();
    let sequences = tx.inputs().flat_map(|input| input.sequence.to_le_bytes()).collect();
    let mut outputs = Vec::new();
    for (_, output) in tx.outputs().enumerate().filter(|(index, _)| every || *index == signed) {
        outputs.extend(output.value.to_le_bytes());
        var_bytes(&mut outputs, output.script_pubkey);
    }
    let single = base == SIGHASH_SINGLE && signed < tx.output_count();
    let mut raw = tx.version().to_le_bytes().to_vec();
    raw.extend(hash(!alone, prevouts));
    raw.extend(hash(!alone && every, sequences));
    raw.extend(tx.input(signed).prevout.to_bytes());
    var_bytes(&mut raw, code);
    raw.extend(value.to_le_bytes());
    raw.extend(tx.input(signed).sequence.to_le_bytes());
    raw.extend(hash(every || single, outputs));
    raw.extend(tx.lock_time().to_le_bytes());
    raw.extend(hash_type.to_le_bytes());
    sha256d(&raw)
}

#[test]
fn segwit_v0_stream_equals_the_slow_message() {
    for (inputs, outputs) in [(1, 1), (2, 1), (5, 3)] {
        let tx = transaction(inputs, outputs);
        let spent = vec![TxOut { value: 0, script_pubkey: &[] }; usize::from(inputs)];
        for first in [1, 2, 0x81, 0x41] {
            let ctx = TxContext::new(tx.view(), &spent);
            for input in (0..usize::from(inputs)).chain([0]) {
                for hash_type in [first, 1, 2, 3, 0x41, 0x81, 0x82, 0x83, 0, 0x1f] {
                    for code in [&[][..], &[0x51; 25], &[0x51; 300]] {
                        assert_eq!(
                            ctx.sighash_segwit_v0(input, code, 77, hash_type),
                            slow_segwit_v0(&tx, input, code, 77, hash_type),
                            "input {input} type {hash_type:#x}"
                        );
                    }
                }
            }
        }
    }
}

/// Values kept between messages change none of them.
#[test]
fn taproot_messages_do_not_depend_on_earlier_ones() {
    let tx = transaction(4, 3);
    let scripts: Vec<Vec<u8>> = (0..4).map(|length| vec![0x51; 30 + length]).collect();
    let spent: Vec<TxOut<'_>> =
        scripts.iter().map(|script| TxOut { value: 5, script_pubkey: script }).collect();
    let types = [0u8, 1, 2, 3, 0x81, 0x82, 0x83];
    let position = TapscriptPosition { leaf_hash: [3; 32], code_separator: u32::MAX };
    for first in types {
        let ctx = TxContext::new(tx.view(), &spent);
        ctx.sighash_taproot(2, first, None, None);
        for (input, hash_type) in (0..4).flat_map(|input| types.map(|t| (input, t))) {
            for (annex, position) in [(None, None), (Some(&[9; 32]), Some(&position))] {
                let fresh = TxContext::new(tx.view(), &spent);
                let expected = fresh.sighash_taproot(input, hash_type, annex, position);
                assert_eq!(ctx.sighash_taproot(input, hash_type, annex, position), expected);
            }
        }
    }
}

#[test]
fn code_separators_are_left_out_of_legacy_messages_only() {
    let tx = transaction(1, 1);
    let spent = [TxOut { value: 0, script_pubkey: &[] }];
    let ctx = TxContext::new(tx.view(), &spent);
    // The separator inside the push is data.
    let with = [0x51, op::CODESEPARATOR, 1, op::CODESEPARATOR, op::CODESEPARATOR];
    let without = [0x51, 1, op::CODESEPARATOR];
    assert_eq!(ctx.sighash_legacy(0, &with, 1), slow_legacy(&tx, 0, &without, 1));
    assert_ne!(ctx.sighash_segwit_v0(0, &with, 0, 1), ctx.sighash_segwit_v0(0, &without, 0, 1));
}

#[test]
fn the_cache_never_confuses_messages() {
    let tx = transaction(3, 2);
    let spent = [TxOut { value: 0, script_pubkey: &[] }; 3];
    let ctx = TxContext::new(tx.view(), &spent);
    let mut cache = SighashCache::default();
    let codes = [&[0x51][..], &[0x52, 0x53]];
    for round in 0..200u32 {
        let code = codes[round as usize % 2];
        let fork = round % 3 == 0;
        let hash_type = [0, 1, 2, 3, 0x81, 0x82, 0x83, 0x41][round as usize % 8];
        let key = if round % 5 == 0 {
            CodeKey::Deleted { hash: sha256d(code), fork }
        } else {
            CodeKey::Plain { script: 0, start: code.len() as u32, fork }
        };
        let hash = cache.hash(key, hash_type, || {
            if fork {
                Some(ctx.segwit_v0_message(2, code, 5, hash_type))
            } else {
                ctx.legacy_message(2, code, hash_type)
            }
        });
        let expected = if fork {
            ctx.sighash_segwit_v0(2, code, 5, hash_type)
        } else {
            ctx.sighash_legacy(2, code, hash_type)
        };
        assert_eq!(hash, expected, "round {round}");
    }
}

#[test]
fn taproot_refuses_undefined_types_and_missing_outputs() {
    let tx = transaction(3, 2);
    let spent = [TxOut { value: 1, script_pubkey: &[1] }; 3];
    let ctx = TxContext::new(tx.view(), &spent);
    for hash_type in 0..=255u8 {
        let defined = matches!(hash_type, 0..=3 | 0x81..=0x83);
        assert_eq!(ctx.sighash_taproot(0, hash_type, None, None).is_some(), defined);
        let single = hash_type & 3 == 3;
        assert_eq!(
            ctx.sighash_taproot(2, hash_type, None, None).is_some(),
            defined && !single,
            "{hash_type:#x}"
        );
    }
    // Annex and position change the message.
    let position = TapscriptPosition { leaf_hash: [1; 32], code_separator: u32::MAX };
    let mut hashes: Vec<_> = [None, Some(&[2; 32])]
        .into_iter()
        .flat_map(|annex| [None, Some(&position)].map(|p| ctx.sighash_taproot(0, 0, annex, p)))
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 4);
}
