//! Which scripts pass under which limits.

use assay_bench::suite::{Extent, Study, StudyTable};
use assay_bench::{BenchError, Progress};
use assay_consensus::script::Limits;

use super::StackSuite;

impl StackSuite {
    /// Every case under every limit.
    pub(super) fn verdicts(
        &self,
        extent: Extent,
        progress: &dyn Progress,
    ) -> Result<Study, BenchError> {
        let limits = self.limits()?;
        let mut head = vec!["script".to_owned(), "output".to_owned(), "bytes".to_owned()];
        head.extend(limits.iter().map(|&limits| name(limits)));
        let (mut rows, mut completed, mut everywhere) = (Vec::new(), Vec::new(), 0);
        let cases = self.cases(extent)?;
        progress.begin("scripts under each of the limits", cases.len() as u64);
        for case in cases {
            progress.step();
            let verdicts: Vec<_> = limits.iter().map(|&limits| case.pass(limits)).collect();
            if let Some(Ok(passing)) = verdicts.iter().find(|verdict| verdict.is_ok())
                && passing.nips > 0
            {
                completed.push((case.template.text().to_owned(), passing.nips));
            }
            if verdicts.iter().all(Result::is_ok) {
                everywhere += 1;
                continue;
            }
            let mut row = vec![
                format!("`{}`", case.template.text()),
                case.wrap.name().to_owned(),
                case.size.to_string(),
            ];
            row.extend(verdicts.into_iter().map(|verdict| match verdict {
                Ok(_) => "passes".to_owned(),
                Err(error) => error.name().to_owned(),
            }));
            rows.push(row);
        }
        completed.sort();
        completed.dedup();
        let mut prose = vec![
            "Each input is verified under each limit; it is measured under the first one that lets it pass. The limit holds for elements of the \
             witness and for pushes, and so also for redeem scripts of P2SH; the script size of 10,000 bytes and 201 operations (P2WSH), the \
             1,000 elements of the stack and the block weight stay what they are. Policy (80 bytes for a witness element of P2WSH) is not asked."
                .to_owned(),
        ];
        prose.push(format!("{everywhere} inputs pass under every limit and are not listed."));
        for (text, nips) in completed {
            prose.push(format!(
                "`{text}` leaves {} elements, and a witness script has to leave exactly one (BIP-0141, `CLEANSTACK` for all scripts of witness \
                 programs): as written it fails with every size. It is run with {nips} `OP_NIP` behind it.",
                nips + 1
            ));
        }
        let caption =
            "Inputs that some limit rejects; errors by their names in Bitcoin Core".to_owned();
        let table = StudyTable { caption, head, word_columns: 2, rows };
        Ok(Study {
            id: "element-limits".to_owned(),
            title: "What each limit lets pass".to_owned(),
            prose,
            tables: vec![table],
        })
    }
}

/// Limits in words.
pub(super) fn name(limits: Limits) -> String {
    let element = limits.element_bytes_max();
    match limits.dup_bytes_max() {
        None => format!("{element} bytes"),
        Some(dup) => format!("{element} bytes, OP_DUP {dup}"),
    }
}
