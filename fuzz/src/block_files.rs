//! Block files of other nodes.

use std::ops::ControlFlow;
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_stats::{BlockSet, Counts, Heights, Item, Ranges, ReadOptions, read};
use assay_store::{BlockFiles, Finding, RecordRules};

use crate::input::{Input, folder, write};
use crate::messages::MAGIC;

/// Block files of Bitcoin Core, obfuscated or not, with anything between the records.
pub fn core_files(data: &[u8]) {
    let mut input = Input(data);
    let how = input.byte();
    // No key, one of eight bytes that turns nothing, or any; now and then of a wrong length.
    let key: &[u8] = match how % 4 {
        0 => &[0; 8],
        1 => input.bytes(8),
        2 => input.bytes(usize::from(how >> 4)),
        _ => &[how; 8],
    };
    write("xor.dat", key);
    let bytes = input.rest();
    write("blk00000.dat", bytes);
    let Ok(files) = BlockFiles::open(folder(), MAGIC) else { return };
    assert_eq!(files.bytes(), bytes.len() as u64);
    let (mut findings, mut last) = (0, 0);
    let rules = RecordRules { bytes_max: 1 << 20, is_header: &|header| header[68] & 1 == how >> 7 };
    let scanned = files.scan(0, &rules, &mut |finding, at| {
        findings += 1;
        assert!(at <= files.bytes());
        match finding {
            Finding::Block { place, header } => {
                assert!(place.offset >= 8);
                assert!(place.offset + u64::from(place.size) <= files.bytes());
                let raw = files.read_part(&place, 80).expect("the place is in the file");
                assert_eq!(raw, header);
            }
            Finding::Stray { offset, bytes, .. } => {
                assert!(bytes > 0 && offset + bytes <= files.bytes());
                last = at;
            }
        }
    });
    assert!(scanned.is_ok());
    // At most a finding for each byte, or the scan goes round in circles.
    assert!(findings <= bytes.len() && last <= files.bytes());
}

/// Statistics of a block file: every block is counted or reported as damaged, and rows agree with each other.
pub fn stats(data: &[u8]) {
    let mut input = Input(data);
    let how = input.byte();
    let name = if how & 1 == 0 { "regtest" } else { "bch-regtest" };
    let params = Arc::new(ChainParams::by_name(name).expect("a known chain"));
    let path = write("blk.dat", input.rest());
    let Ok(set) = BlockSet::open(&path, params, 1, &|_, _| ()) else { return };
    let heights = set.heights();
    let options = ReadOptions { threads: 1, many_inputs: 1, txs: true };
    let mut ranges = Ranges::new(heights, None);
    // Sums over the rows of a block's transactions, and the height of the next block.
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
}
