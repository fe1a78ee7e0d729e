//! Table of verdicts by script and rules.

use anyhow::Result;
use assay_bench::Progress;
use assay_bench::suite::{Extent, Study, StudyTable};

use super::StackSuite;
use crate::rules::name;

impl StackSuite {
    /// Every case under every limit.
    pub(super) fn verdicts(&self, extent: Extent, progress: &dyn Progress) -> Result<Study> {
        let all = self.rules()?;
        let mut head = vec!["script".to_owned(), "output".to_owned(), "bytes".to_owned()];
        head.extend(all.iter().map(name));
        let (mut rows, mut completed, mut everywhere) = (Vec::new(), Vec::new(), 0);
        let cases = self.cases(extent)?;
        progress.begin("scripts under each of the rule sets", cases.len() as u64);
        for case in cases {
            progress.step();
            let verdicts: Vec<_> = all.iter().map(|rules| case.pass(rules)).collect();
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
            "Each input is verified under each rule set; it is measured under the first one that lets it pass. The script size of 10,000 bytes and \
             201 operations (P2WSH), the 1,000 elements of the stack and the block weight stay what they are. Policy (80 bytes for a witness \
             element of P2WSH) is not asked."
                .to_owned(),
            "Experiment and proposal are different rules. `report-8000` is what the report measured: one constant raised, for witness elements and \
             pushes of every kind of script, so also for redeem scripts of P2SH; nobody proposes it. `pqsig` is the PQSIG draft of October 2025 \
             (formerly part of BIP 360, which has had no element limit since version 0.10.0): witness elements of tapscript up to 8,000 bytes, \
             pushes up to 520, and eight opcodes that fail on elements above 520 bytes. The draft first limited `OP_DUP` alone: `pqsig-dup`. The \
             proposal's own rows are those of tapscript."
                .to_owned(),
        ];
        prose.push(format!("{everywhere} inputs pass under every rule set and are not listed."));
        for (text, nips) in completed {
            prose.push(format!(
                "`{text}` leaves {} elements, and a witness script has to leave exactly one (BIP-0141, `CLEANSTACK` for all scripts of witness \
                 programs): as written it fails with every size. It is run with {nips} `OP_NIP` behind it.",
                nips + 1
            ));
        }
        let caption =
            "Inputs that some rule set rejects; errors by their names in Bitcoin Core".to_owned();
        let table = StudyTable { caption, head, word_columns: 2, rows };
        Ok(Study {
            id: "element-limits".to_owned(),
            title: "What each rule set lets pass".to_owned(),
            prose,
            tables: vec![table],
            ..Study::default()
        })
    }
}
