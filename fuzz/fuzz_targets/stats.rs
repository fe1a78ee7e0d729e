//! What is in a block file, whatever it holds: every block is counted or told, and rows agree with each other.

#![no_main]

use std::ops::ControlFlow;
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_fuzz::Input;
use assay_stats::{BlockSet, Counts, Heights, Item, Ranges, ReadOptions, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let how = input.byte();
    let name = if how & 1 == 0 { "regtest" } else { "bch-regtest" };
    let params = Arc::new(ChainParams::by_name(name).expect("a known chain"));
    let path = assay_fuzz::write("blk.dat", input.rest());
    let Ok(set) = BlockSet::open(&path, params, 1, &|_, _| ()) else { return };
    let heights = set.heights();
    let options = ReadOptions { threads: 1, many_inputs: 1, txs: true };
    let mut ranges = Ranges::new(heights, None);
    // What the rows of a block's transactions sum up to, and what came of blocks.
    let (mut sums, mut next) = (Counts::default(), heights.first);
    read(&set, Heights::ALL, &options, &mut |item| {
        match item {
            Item::Txs(rows) => {
                for row in rows {
                    assert_eq!(row.height, next);
                    sums.txs += 1;
                    sums.inputs += u64::from(row.inputs);
                    sums.outputs += u64::from(row.outputs);
                    sums.segwit_inputs += u64::from(row.segwit_inputs);
                    sums.bytes += u64::from(row.bytes);
                }
            }
            Item::Block(row) => {
                let counts = &row.counts;
                assert_eq!(row.height, next);
                assert_eq!(
                    (counts.txs, counts.inputs, counts.outputs, counts.segwit_inputs),
                    (sums.txs, sums.inputs, sums.outputs, sums.segwit_inputs)
                );
                assert!(counts.bytes > sums.bytes + 80);
                let kinds: u64 = counts.by_kind.iter().map(|kind| kind.outputs).sum();
                assert_eq!(kinds, counts.outputs);
                ranges.add(&row);
                sums = Counts::default();
                next += 1;
            }
            Item::Damage(damage) => {
                // Nothing of it came out.
                assert_eq!((damage.height, sums.txs), (next, 0));
                next += 1;
            }
        }
        ControlFlow::Continue(())
    });
    assert_eq!(u64::from(next), u64::from(heights.last) + 1);
    let blocks: u64 = ranges.rows().iter().map(|range| range.counts.blocks).sum();
    assert_eq!(blocks, ranges.total().blocks);
});
