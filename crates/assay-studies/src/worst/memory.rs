//! Blocks full of large elements.

use assay_bench::plan::Wrap;
use assay_consensus::script::Language;
use assay_consensus::script::opcode::op;

use super::block::{Made, Split, of_inputs, plain};
use super::hashing::Rules;
use crate::spend::Spend;

/// Repetitions of `OP_3DUP` that fill a stack of three elements to 999.
const FILLING: usize = 332;

/// The largest element that an opcode may copy.
pub(super) fn copied_bytes_max(language: &Language, opcode: u8) -> usize {
    language.copies.bytes_max(opcode).unwrap_or(usize::MAX).min(language.element_bytes_max)
}

pub(super) fn copies(rules: &Rules<'_>, weight: u32) -> Made {
    let (made, size) = of_rounds(rules, weight, &[op::DUP3, op::DROP2, op::DROP], 1);
    Made { shape: format!("`OP_3DUP OP_2DROP OP_DROP` on {size} bytes, tapscript"), ..made }
}

pub(super) fn full_stacks(rules: &Rules<'_>, weight: u32) -> Made {
    let round = [vec![op::DUP3; FILLING], vec![op::DROP2; FILLING * 3 / 2]].concat();
    let (made, size) = of_rounds(rules, weight, &round, FILLING);
    let shape = format!("`OP_3DUP` x {FILLING}, `OP_2DROP` x 498 on {size} bytes, tapscript");
    Made { shape, ..made }
}

/// Inputs with three elements of maximum size and rounds of `copies` copies that leave the stack unchanged; also that size.
fn of_rounds(rules: &Rules<'_>, weight: u32, round: &[u8], copies: usize) -> (Made, usize) {
    let size = copied_bytes_max(rules.set.tapscript(), op::DUP3);
    let room = (weight as usize).saturating_sub(3 * size + 3_000);
    let rounds = room / round.len();
    let mut script = round.repeat(rounds);
    script.push(op::DROP2);
    let spend = Spend::new(Wrap::Tapscript, &script, vec![vec![0x42; size]; 3]);
    let copied_bytes = (rounds * copies * 3 * size) as u64;
    (Made { copied_bytes, ..plain(of_inputs(&spend, weight, Split::NONE), "") }, size)
}
