//! Verdicts of Bitcoin Core on the published vectors.

use anyhow::Result;
use assay_bench::suite::{Study, StudyTable};
use assay_bench::{Progress, wrong_answer};
use assay_consensus::script::Flags;

use super::StackSuite;
use super::vectors::{Suite, Vector, suites};
use crate::kernels::Kernel;

/// True if Bitcoin Core and our engine accept the vector; an error if they disagree.
fn judge(kernel: &Kernel, file: &str, vector: &Vector) -> Result<bool> {
    let flags = offered(vector.flags);
    let theirs =
        kernel.peer.borrow_mut().judge(vector.tx(), &vector.spent(), flags, vector.input)?;
    let ours = vector.verdict_with(&kernel.rules, flags);
    if ours.is_ok() == theirs {
        return Ok(theirs);
    }
    let there = if theirs { "passes" } else { "fails" };
    let detail = format!("{there} there, {} by the engine", super::flips::verdict(ours));
    Err(wrong_answer(&format!("{file}, {}", vector.comment), kernel.name, detail))
}

/// The flags that the kernel's interface supports: no policy, and no witnesses without pay-to-script-hash.
fn offered(flags: Flags) -> Flags {
    let mut offered = flags & Flags::BITCOIN_BLOCK;
    if !offered.contains(Flags::P2SH) {
        offered = offered.without(Flags::WITNESS);
    }
    offered
}

impl StackSuite {
    /// Verifies every published vector by Bitcoin Core.
    pub(super) fn judged(&self, progress: &dyn Progress) -> Result<Option<Study>> {
        let kernels = self.kernels()?;
        let suites = suites(self.vectors_folder().as_deref());
        if kernels.is_empty() || suites.is_empty() {
            return Ok(None);
        }
        let mut head = vec!["file".to_owned(), "cases".to_owned()];
        head.extend(kernels.iter().map(|kernel| format!("pass by {}", kernel.name)));
        if kernels.len() > 1 {
            head.push("flip".to_owned());
        }
        progress.begin("published vectors by Bitcoin Core", suites.len() as u64);
        let mut rows = Vec::new();
        for suite in &suites {
            progress.step();
            rows.push(row(kernels, suite)?);
        }
        let asked = suites.iter().map(|suite| suite.vectors.len()).sum::<usize>() * kernels.len();
        let caption = "Vectors as Bitcoin Core's kernel judges them".to_owned();
        Ok(Some(Study {
            id: "vectors-by-core".to_owned(),
            title: "What Bitcoin Core says of them".to_owned(),
            prose: vec![format!(
                "Each case was given to the kernel and to our engine with the same limit, with those of its flags that the kernel's interface offers \
                 (the consensus rules): {asked} verdicts, 0 disagreements; one would have ended the run. The limit of each program was found by \
                 trying: an element as long as it passes, one byte more does not."
            )],
            tables: vec![StudyTable { caption, head, word_columns: 1, rows }],
            ..Study::default()
        }))
    }
}

fn row(kernels: &[Kernel], suite: &Suite) -> Result<Vec<String>> {
    let mut passed = vec![0usize; kernels.len()];
    let mut flips = 0;
    for vector in &suite.vectors {
        let mut verdicts = Vec::new();
        for kernel in kernels {
            verdicts.push(judge(kernel, suite.name, vector)?);
        }
        for (count, &passes) in passed.iter_mut().zip(&verdicts) {
            *count += usize::from(passes);
        }
        flips += usize::from(verdicts.windows(2).any(|pair| pair[0] != pair[1]));
    }
    let mut row = vec![suite.name.to_owned(), suite.vectors.len().to_string()];
    row.extend(passed.iter().map(usize::to_string));
    if kernels.len() > 1 {
        row.push(flips.to_string());
    }
    Ok(row)
}
