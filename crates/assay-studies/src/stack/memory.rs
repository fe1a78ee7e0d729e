//! Heap and stack use of scripts.

use std::thread;

use anyhow::{Context as _, Result};
use assay_bench::plan::Wrap;
use assay_bench::suite::{Extent, Study, StudyTable};
use assay_bench::{Progress, wrong_answer};
use assay_consensus::script::opcode::op;
use assay_consensus::script::{Interpreter, RuleSet, TxContext};
use assay_engine::ImmediateChecker;

use super::{ASSAY, StackSuite};
use crate::heap::{HeapUse, heap_use};
use crate::rules::name;
use crate::spend::Spend;

/// Sizes of threads' stacks, from about the system's minimum over musl's (128 KiB) and Rust's (2 MiB) to the report's (8 MiB).
const STACK_KIB: [usize; 8] = [32, 64, 128, 256, 512, 1024, 2048, 8192];

struct Subject {
    name: String,
    rules: RuleSet,
    spend: Spend,
    /// Maximum total size of all elements, without sharing.
    elements_bytes: u64,
}

impl StackSuite {
    /// Peak heap of each script, and stack use in threads with stacks of several sizes.
    pub(super) fn memory(&self, extent: Extent, progress: &dyn Progress) -> Result<Study> {
        let subjects = self.subjects(extent)?;
        let mut rows = Vec::new();
        progress.begin("heap of scripts", subjects.len() as u64);
        for subject in &subjects {
            progress.step();
            let (first, again) = subject.heap()?;
            let mut row = vec![subject.name.clone(), name(&subject.rules)];
            row.push(subject.elements_bytes.to_string());
            row.extend([first.peak_bytes, first.allocations].map(|number| number.to_string()));
            row.extend([again.peak_bytes, again.allocations].map(|number| number.to_string()));
            rows.push(row);
        }
        let head = [
            "script",
            "rules",
            "bytes of all elements",
            "peak heap, first input",
            "allocations",
            "peak heap, next input",
            "allocations",
        ];
        let heap = StudyTable::of("Bytes of heap while one input is verified", &head, 2, rows);
        Ok(Study {
            id: "memory".to_owned(),
            title: "Stack and heap of a script".to_owned(),
            prose: vec![
                "Heap is counted by the allocator on the thread that verifies: the most bytes held at a time beyond those held before. The first \
                 input meets an interpreter without memory, the next one the same interpreter. An element is a range of one arena and copies of \
                 it share its bytes, so duplicating large elements takes no memory here; a stack of separate vectors, as the reference has, \
                 holds the bytes of all elements."
                    .to_owned(),
                "A stack of 8 MB, which the first wording of the proposal wanted to prevent by failing `OP_DUP` above 520 bytes, `OP_3DUP` still made. The \
                 PQSIG draft (formerly part of BIP 360) now says it of all eight opcodes that copy: `OP_DUP`, `OP_2DUP`, `OP_3DUP`, `OP_IFDUP`, `OP_TUCK`, \
                 `OP_OVER`, `OP_2OVER` and `OP_PICK`."
                    .to_owned(),
                "A script cannot make the interpreter recurse: every script above passes in a thread with the smallest stack of the table, and \
                 its use of the stack does not depend on its data."
                    .to_owned(),
            ],
            tables: vec![heap, stacks(&subjects, progress)?],
            ..Study::default()
        })
    }

    fn subjects(&self, extent: Extent) -> Result<Vec<Subject>> {
        let all = self.rules()?;
        let mut subjects = Vec::new();
        for case in self.cases(extent)? {
            // The other hashing opcodes need the same memory.
            if case.wrap == Wrap::P2wsh
                && self.settings.templates.iter().any(|text| text == case.template.text())
                && let Some(passing) = case.pass_any(&all)
            {
                let copies = 1 + u64::from(case.template.text().contains("DUP"));
                subjects.push(Subject {
                    name: format!("`{}`, {} bytes", case.template.text(), case.size),
                    rules: passing.rules,
                    spend: passing.spend,
                    elements_bytes: copies * case.size as u64,
                });
            }
        }
        let largest = all.iter().map(RuleSet::element_bytes_max).max().unwrap_or_default();
        for &rules in &all {
            let size = rules.element_bytes_max();
            for (opcode, name) in [(op::DUP, "OP_DUP"), (op::DUP3, "OP_3DUP")] {
                let fill = Subject {
                    name: format!("{name} of {size} bytes until the stack is full"),
                    rules,
                    spend: fill(opcode, size),
                    elements_bytes: 999 * size as u64,
                };
                // With `OP_DUP` forbidden, the script fails early.
                if fill.spend.verify(&rules).is_ok() {
                    subjects.push(fill);
                }
            }
        }
        let results = if extent == Extent::Smoke { 1000 } else { 300_000 };
        let mut script = vec![op::SHA256; results];
        script.extend([op::DROP, op::PUSH1]);
        subjects.push(Subject {
            name: format!("`OP_SHA256` {results} times"),
            rules: RuleSet::TODAY.with_element_bytes_max(largest).unwrap_or_default(),
            spend: Spend::new(Wrap::Tapscript, &script, vec![vec![1; largest]]),
            elements_bytes: largest as u64,
        });
        Ok(subjects)
    }
}

/// A tapscript that fills the stack with up to 999 copies, and then empties it.
fn fill(opcode: u8, size: usize) -> Spend {
    let (given, copies, rounds) = if opcode == op::DUP { (1, 1, 998) } else { (3, 3, 332) };
    let mut script = vec![opcode; rounds];
    let elements = given + copies * rounds;
    script.extend(vec![op::DROP2; elements / 2]);
    script.extend(vec![op::DROP; elements % 2]);
    script.push(op::PUSH1);
    Spend::new(Wrap::Tapscript, &script, vec![vec![1; size]; given])
}

impl Subject {
    fn verify(&self, interpreter: &mut Interpreter) -> Result<()> {
        let spent = self.spend.spent();
        let context = TxContext::new(self.spend.tx.view(), &spent);
        let flags = self.spend.flags;
        let verdict = interpreter.verify_input(&context, 0, flags, &mut ImmediateChecker);
        verdict.map(drop).map_err(|error| wrong_answer(&self.name, ASSAY, error))
    }

    /// Heap use of the first input of an interpreter and of the second.
    fn heap(&self) -> Result<(HeapUse, HeapUse)> {
        // One-time initialisation, such as of tagged hashes, is excluded.
        self.verify(&mut Interpreter::with_rules(self.rules))?;
        let mut interpreter = Interpreter::with_rules(self.rules);
        let (verdict, first) = heap_use(|| self.verify(&mut interpreter));
        verdict?;
        let (verdict, again) = heap_use(|| self.verify(&mut interpreter));
        verdict.map(|()| (first, again))
    }
}

/// Runs all scripts in threads with stacks of different sizes.
fn stacks(subjects: &[Subject], progress: &dyn Progress) -> Result<StudyTable> {
    let mut rows = Vec::new();
    progress.begin("stacks of threads", STACK_KIB.len() as u64);
    let verify = |subject: &Subject| subject.verify(&mut Interpreter::with_rules(subject.rules));
    for kib in STACK_KIB {
        thread::scope(|scope| {
            let worker = thread::Builder::new()
                .stack_size(kib << 10)
                .spawn_scoped(scope, || subjects.iter().try_for_each(verify))
                .context("cannot start a thread")?;
            worker.join().expect("a stack that is too small ends the process")
        })?;
        rows.push(vec![kib.to_string(), "all pass".to_owned()]);
        progress.step();
    }
    let caption = "All scripts in threads with stacks of different sizes";
    Ok(StudyTable::of(caption, &["stack, KiB", "scripts"], 0, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_their_bytes() {
        let rules = RuleSet::TODAY.with_element_bytes_max(8000).expect("a limit");
        let spend = fill(op::DUP3, 8000);
        let subject = Subject { name: String::new(), rules, spend, elements_bytes: 0 };
        let (first, again) = subject.heap().expect("passes");
        assert!(first.peak_bytes < 200_000, "{first:?}");
        assert_eq!(again.peak_bytes, 0, "{again:?}");
    }
}
