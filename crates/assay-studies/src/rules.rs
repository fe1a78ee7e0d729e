//! Names of rule sets in reports.

use anyhow::{Context as _, Result};
use assay_consensus::script::RuleSet;
use assay_consensus::script::opcode::op;

/// The rule sets of these names, without duplicates.
pub(crate) fn named<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<(String, RuleSet)>> {
    let mut all: Vec<(String, RuleSet)> = Vec::new();
    for name in names {
        let rules = by_name(name)?;
        if all.iter().all(|known| known.1 != rules) {
            all.push((name.to_owned(), rules));
        }
    }
    Ok(all)
}

pub(crate) fn by_name(name: &str) -> Result<RuleSet> {
    RuleSet::by_name(name).with_context(|| RuleSet::unknown(name))
}

/// Name of a rule set, or its limits if it has none.
pub(crate) fn name(rules: &RuleSet) -> String {
    if let Some(name) = rules.name() {
        return name.to_owned();
    }
    let element = rules.element_bytes_max();
    match rules.base.copies.bytes_max(op::DUP) {
        None => format!("{element} bytes"),
        Some(dup) => format!("{element} bytes, OP_DUP {dup}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combined_sets_keep_all_names() {
        let names = ["pqsig+slh+ml", "report-8000+slh+ml", "today", "pqsig+slh+ml"];
        let found = named(names).expect("known names");
        let found: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, names[..3]);
        assert!(named(["pqsig+unknown"]).is_err());
    }
}
