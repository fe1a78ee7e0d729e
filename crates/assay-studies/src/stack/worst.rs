//! Scripts with the longest time for their weight.

use anyhow::Result;
use assay_bench::Progress;
use assay_bench::plan::Wrap;
use assay_bench::suite::{Extent, Study, StudyTable};

use super::StackSuite;
use crate::worst::hashing::{Cost, HASHING_OPCODES, search};

impl StackSuite {
    pub(super) fn worst(&self, extent: Extent, progress: &dyn Progress) -> Result<Study> {
        let mut all = self.rules()?;
        if extent == Extent::Smoke {
            all.truncate(1);
        }
        let (found, searched) = search(&all, extent, progress)?;
        let (mut best_rows, mut opcode_rows) = (Vec::new(), Vec::new());
        for costs in &found {
            for wrap in [Wrap::Bare, Wrap::P2wsh, Wrap::Tapscript] {
                let of_wrap = || costs.iter().filter(|cost| cost.shape.wrap == wrap);
                best_rows.extend(of_wrap().take(2).map(Cost::row));
                for hash in 0..HASHING_OPCODES.len() {
                    opcode_rows
                        .extend(of_wrap().find(|cost| cost.shape.hash == hash).map(Cost::row));
                }
            }
        }
        let shape_head = ["shape", "rules", "WU", "µs", "µs per WU", "s per 4 MWU"];
        Ok(Study {
            id: "worst-scripts".to_owned(),
            title: "Which scripts take longest for their weight".to_owned(),
            prose: prose(searched, extent),
            tables: vec![
                StudyTable::of(
                    "Worst hashing scripts by kind of output",
                    &shape_head,
                    2,
                    best_rows,
                ),
                StudyTable::of("Worst shape of every hashing opcode", &shape_head, 2, opcode_rows),
            ],
            ..Study::default()
        })
    }
}

fn prose(searched: usize, extent: Extent) -> Vec<String> {
    let mut prose = vec![
        format!(
            "{searched} shapes were measured: five hashing opcodes, five ways to copy their operand, three kinds of output, several sizes. A script \
             outside tapscript has 201 operations; `k OP_PICK HASH` needs two for each hash, since pushes are not counted. Tapscript is bound by \
             weight alone: `OP_DUP HASH OP_DROP` takes three weight units a hash whatever the size of the element. Times are those of our interpreter \
             hashing every copy, as others do; in blocks it hashes an element once (`assay run worst-blocks`)."
        ),
        "- Bare outputs are the worst of it: an input that spends one weighs 164 WU, whatever its script does. The scripts lie in earlier \
         blocks, whose weight is not counted here: the outputs for one such block weigh some 50 to 250 blocks."
            .to_owned(),
        "- Hashing time grows with the element, weight of the copying opcodes does not: that is why the limit matters. It does not matter to \
         signature messages, which do not depend on the size of elements: the class that is worst today stays the worst."
            .to_owned(),
        "- Blocks of these and of other classes, made and verified as a whole, are those of `assay run worst-blocks`.".to_owned(),
        "- A rule that `OP_DUP` alone fails above 520 bytes, the first wording of the proposal, changes the opcode with which the worst block is \
         made, not its time: see the shapes with `OP_IFDUP`, `OP_3DUP` and `OP_PICK` under `report-8000-dup`. The PQSIG draft limits all eight \
         opcodes that copy (`pqsig`): what is left is hashing a result again."
            .to_owned(),
    ];
    if extent == Extent::Quick {
        prose.push(
            "- `--quick`: each shape is measured once, on two sizes instead of four.".to_owned(),
        );
    }
    prose
}
