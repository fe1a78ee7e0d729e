//! Round trips, rejections and hostile bytes for transactions and blocks.

use assay_testkit::chain::TxBuilder;
use assay_wire::{Block, Encoding, Header, OutPoint, ParseErrorKind, Transaction, Txid, Witness};
use proptest::prelude::*;

type TestInput = (OutPoint, Vec<u8>, u32, Vec<Vec<u8>>);

fn serialise(inputs: &[TestInput], outputs: &[(i64, Vec<u8>)], with_witness: bool) -> Vec<u8> {
    let mut tx = TxBuilder::new(2).lock_time(500_000);
    for (prevout, script, sequence, witness) in inputs {
        tx = tx.spend(*prevout, script, *sequence);
        if with_witness {
            tx = tx.witness(&witness.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
    }
    for (value, script) in outputs {
        tx = tx.output(*value, script);
    }
    tx.bytes()
}

fn any_input() -> impl Strategy<Value = TestInput> {
    (
        (any::<[u8; 32]>(), any::<u32>())
            .prop_map(|(txid, vout)| OutPoint { txid: Txid(txid), vout }),
        prop::collection::vec(any::<u8>(), 0..300),
        any::<u32>(),
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..4),
    )
}

proptest! {
    #[test]
    fn all_fields_round_trip(
        inputs in prop::collection::vec(any_input(), 1..6),
        outputs in prop::collection::vec((any::<i64>(), prop::collection::vec(any::<u8>(), 0..300)), 0..6),
    ) {
        let with_witness = inputs.iter().any(|input| !input.3.is_empty());
        let raw = serialise(&inputs, &outputs, with_witness);
        let tx = Transaction::parse(raw.clone(), Encoding::Segwit).unwrap();
        let view = tx.view();
        prop_assert_eq!(view.raw(), &raw[..]);
        prop_assert_eq!(view.version(), 2);
        prop_assert_eq!(view.lock_time(), 500_000);
        prop_assert_eq!(view.has_witness(), with_witness);
        prop_assert_eq!(view.input_count(), inputs.len());
        for (index, (prevout, script, sequence, witness)) in inputs.iter().enumerate() {
            let input = view.input(index);
            prop_assert_eq!(input.prevout, *prevout);
            prop_assert_eq!(input.script_sig, &script[..]);
            prop_assert_eq!(input.sequence, *sequence);
            let items: Vec<&[u8]> = view.witness(index).iter().collect();
            prop_assert_eq!(items, witness.iter().map(|item| &item[..]).collect::<Vec<_>>());
        }
        for (output, (value, script)) in view.outputs().zip(&outputs) {
            prop_assert_eq!(output.value, *value);
            prop_assert_eq!(output.script_pubkey, &script[..]);
        }
        let stripped = serialise(&inputs, &outputs, false);
        prop_assert_eq!(view.stripped_parts().concat(), stripped.clone());
        prop_assert_eq!(view.stripped_size(), stripped.len());
        prop_assert_eq!(view.weight(), stripped.len() * 3 + raw.len());
        prop_assert_eq!(view.txid(), Txid(assay_hash::sha256d(&stripped)));
        prop_assert_eq!(view.wtxid().0, assay_hash::sha256d(&raw));
        // A copy of a transaction in a block equals the original.
        let mut block = vec![0u8; 80];
        block.push(2);
        block.extend_from_slice(&raw);
        block.extend_from_slice(&raw);
        let block = Block::parse(block, Encoding::Segwit).unwrap();
        let copy = block.tx(1).to_owned_transaction();
        prop_assert_eq!(copy.view().raw(), &raw[..]);
        prop_assert_eq!(copy.view().txid(), view.txid());
        prop_assert_eq!(copy.view().input(0), view.input(0));
        prop_assert_eq!(block.stripped_size(), 81 + 2 * stripped.len());
    }

    #[test]
    fn no_prefix_parses_and_no_mutation_panics(
        inputs in prop::collection::vec(any_input(), 1..3),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let with_witness = inputs.iter().any(|input| !input.3.is_empty());
        let raw = serialise(&inputs, &[(1, vec![0x51])], with_witness);
        for end in 0..raw.len() {
            prop_assert!(Transaction::parse(&raw[..end], Encoding::Segwit).is_err());
        }
        let mut mutant = raw;
        for (position, value) in flips {
            let at = position.index(mutant.len());
            mutant[at] = value;
        }
        for encoding in [Encoding::Segwit, Encoding::Legacy] {
            if let Ok(tx) = Transaction::parse(mutant.clone(), encoding) {
                let view = tx.view();
                let sizes: usize = (0..view.input_count()).map(|i| view.witness(i).serialized_size()).sum();
                prop_assert!(sizes <= mutant.len());
                prop_assert_eq!(view.inputs().count(), view.input_count());
                prop_assert_eq!(view.outputs().count(), view.output_count());
                let _ = (view.txid(), view.wtxid(), view.is_coinbase());
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Transaction::parse(bytes.clone(), Encoding::Segwit);
        let _ = Block::parse(bytes, Encoding::Legacy);
    }

    #[test]
    fn headers_round_trip(bytes in prop::collection::vec(any::<u8>(), 80)) {
        let bytes: [u8; 80] = bytes.try_into().unwrap();
        prop_assert_eq!(Header::parse(&bytes).to_bytes(), bytes);
    }
}

fn refusal(raw: &[u8]) -> ParseErrorKind {
    Transaction::parse(raw, Encoding::Segwit).unwrap_err().kind
}

#[test]
fn parse_errors_name_the_rule() {
    let plain = serialise(&[(OutPoint::NULL, vec![], 0, vec![])], &[(5, vec![])], false);
    let mut trailing = plain.clone();
    trailing.push(0);
    assert_eq!(refusal(&trailing), ParseErrorKind::TrailingBytes);

    let mut long_count = plain.clone();
    long_count.splice(4..5, [253, 1, 0]);
    assert_eq!(refusal(&long_count), ParseErrorKind::NonCanonicalSize);

    let mut huge_count = plain.clone();
    huge_count.splice(4..5, [254, 0, 0, 0, 3]);
    assert_eq!(refusal(&huge_count), ParseErrorKind::OversizedCount);

    let mut greedy_count = plain.clone();
    greedy_count.splice(4..5, [254, 0, 0, 1, 0]);
    assert_eq!(refusal(&greedy_count), ParseErrorKind::Truncated);

    let empty_witness = serialise(&[(OutPoint::NULL, vec![], 0, vec![])], &[(5, vec![])], true);
    assert_eq!(refusal(&empty_witness), ParseErrorKind::SuperfluousWitness);

    let mut unknown_flag = plain;
    unknown_flag.splice(4..4, [0, 2]);
    assert_eq!(refusal(&unknown_flag), ParseErrorKind::UnknownFlag);
}

#[test]
fn a_transaction_without_inputs_parses_in_both_encodings() {
    // Core parses "no inputs" followed by flag 0 as a transaction with neither inputs nor outputs.
    let raw = [2, 0, 0, 0, 0, 0, 9, 0, 0, 0];
    for encoding in [Encoding::Segwit, Encoding::Legacy] {
        let tx = Transaction::parse(raw.as_slice(), encoding).unwrap();
        let view = tx.view();
        assert_eq!((view.input_count(), view.output_count(), view.lock_time()), (0, 0, 9));
        assert_eq!(view.stripped_parts().concat(), raw);
        assert_eq!(view.outputs_with_count_raw(), [0]);
        assert!(!view.has_witness() && view.outputs_raw().is_empty());
    }
    assert!(Witness::EMPTY.is_empty());
}

#[test]
fn real_blocks_parse() {
    let Some(raw) = assay_testkit::data::read("blocks/testnet3-928831.blk") else { return };
    let block = Block::parse(raw, Encoding::Segwit).unwrap();
    for first in [0, 1, 7, block.tx_count()] {
        let txids = block.txids(first..block.tx_count());
        assert!(block.txs().skip(first).map(|tx| tx.txid()).eq(txids.iter().copied()));
        let wtxids = block.wtxids(first..block.tx_count(), &txids);
        assert!(block.txs().skip(first).map(|tx| tx.wtxid()).eq(wtxids));
    }
    let mut txids: Vec<_> = block.txs().map(|tx| tx.txid().0).collect();
    while txids.len() > 1 {
        if txids.len() % 2 == 1 {
            txids.push(txids[txids.len() - 1]);
        }
        txids = txids.chunks(2).map(|pair| assay_hash::sha256d(&pair.concat())).collect();
    }
    assert_eq!(txids[0], block.header().merkle_root);
    assert!(block.txs().any(|tx| tx.has_witness()));
    assert!(block.weight() <= 4_000_000);
    let mut longer = block.bytes().to_vec();
    longer.extend([1, 2, 3]);
    let whole = Block::parse_prefix(longer.clone(), Encoding::Segwit).unwrap();
    assert_eq!(whole.bytes(), block.bytes());
    let error = Block::parse(longer, Encoding::Segwit).unwrap_err();
    assert_eq!((error.kind, error.offset), (ParseErrorKind::TrailingBytes, block.bytes().len()));
    let first = assay_wire::first_tx(&block.bytes()[..4096], Encoding::Segwit);
    assert_eq!(first, Some(block.tx(0).txid()));
    assert_eq!(assay_wire::first_tx(&block.bytes()[..90], Encoding::Segwit), None);
}
