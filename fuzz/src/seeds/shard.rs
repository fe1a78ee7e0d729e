//! First inputs of the targets of `assay shard`.

use std::fs;

use assay_store::{HintsWriter, SpentWriter, UndoWriter};
use assay_wire::BlockHash;

use super::{Seeds, counted};

pub(super) fn add(seeds: &mut Seeds) {
    let hash = BlockHash([6; 32]);
    let hex = hash.to_string();
    let table = vec![9; 2 * 72];
    let plan = |unspent: &str, parts: &str| {
        format!(
            "assay shard plan 1\nchain regtest\nactivation bip34@5\ntip 2 {hex}\nblocks /b\nblock-file 9 blk00000.dat\nspent /s\nspent-file 7 0\n{unspent}\n{parts}"
        )
    };
    let sums = |digest: &str| format!("created 2 5000 {digest}\nspent 2 5000 {digest}\n");
    let (sum, muhash) = (sums(&"11".repeat(32)), sums(&"22".repeat(768)));
    let head = format!("salt {hex}\npart 0\n");
    let coinbases = format!("coinbase {hex}\n").repeat(2);
    let two = "part blocks 1 2 0 300\npart coins 51 70 1\n";
    let results = [
        format!("{head}totals 2 2 0 2 300\n{sum}{coinbases}"),
        format!("{head}totals 2 2 0 2 300\n{muhash}{coinbases}"),
        format!("{head}rejected 1 {hex} bad-cb-height|where and why\n"),
        format!("{head}totals 0 0 0 0 0\n{sum}coins 1 5000 1 75 {}\n", "33".repeat(768)),
        format!(
            "{head}totals 2 2 0 2 300\n{sum}coins 1 5000 1 75 {}\n{coinbases}",
            "33".repeat(768)
        ),
    ];
    for unspent in ["coins 130 /s/utxo.dat".to_owned(), format!("muhash {hex}")] {
        for parts in [two, "part blocks 1 1 0 150\npart blocks 2 2 0 150\n"] {
            for result in &results {
                seed(seeds, (plan(&unspent, parts).as_bytes(), &table), result.as_bytes());
            }
        }
    }
    let pieces = format!("part blocks 1 2 0 300\npiece 10 9 {hex}\n");
    for result in &results {
        seed(seeds, (plan("hints 19 /s/hints.dat", &pieces).as_bytes(), &table), result.as_bytes());
    }
    let timing = "assay shard timing 1\npart 0\nthreads 1\nelapsed_us 9\ncpu_us 8\nread_us 1\ncheck_us 1\ncoins_us 1\nsums_us 1\n";
    seed(seeds, (timing.as_bytes(), b""), b"");
    spent(seeds);
    hints(seeds);
}

fn seed(seeds: &mut Seeds, (text, table): (&[u8], &[u8]), result: &[u8]) {
    let mut out = Vec::new();
    counted(&mut out, text);
    counted(&mut out, table);
    out.extend_from_slice(result);
    seeds.add("shard", &out);
}

/// Hints of blocks of all kinds: none, one, all, few of many.
fn hints(seeds: &mut Seeds) {
    let lists: [Vec<u32>; 4] =
        [vec![], vec![300], (0..40).collect(), (0..300).map(|at| at * 217).collect()];
    let mut writer =
        HintsWriter::new(Vec::new(), lists.len() as u32 - 1).expect("memory takes all");
    for list in &lists {
        writer.push(list).expect("memory takes all");
    }
    seeds.add("hints_file", &writer.finish().expect("memory takes all"));
}

/// Records of blocks that spend nothing.
fn spent(seeds: &mut Seeds) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut spent =
        SpentWriter::open(folder.path(), [0xfa, 0xbf, 0xb5, 0xda]).expect("a file of spent coins");
    for number in 0..3 {
        spent.push(&BlockHash([number; 32]), &UndoWriter::new().finish()).expect("a record");
    }
    spent.sync().expect("a whole file");
    let bytes = fs::read(folder.path().join("spent-00000.dat")).expect("its bytes");
    seeds.add("spent_files", &bytes);
}
