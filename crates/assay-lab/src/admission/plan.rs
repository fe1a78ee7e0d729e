//! Plans of mempool benchmarks.

use serde::{Deserialize, Serialize};

use crate::plan::{BadValue, Kind as PlanKind, PlanError, TargetSpec, check_scale, is_name, valid};
use crate::wallet::Kind;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MempoolPlan {
    /// Version of this format: 1.
    pub format: u32,
    kind: PlanKind,
    pub name: String,
    pub title: String,
    pub summary: String,
    /// Seed of keys.
    pub seed: u64,
    /// Transactions of a case that sets no number.
    pub txs: usize,
    /// Factor on all numbers of transactions.
    #[serde(default = "whole")]
    pub scale: f64,
    /// Runs of each case on each target.
    pub repeat: u32,
    /// Transactions of one JSON-RPC batch.
    #[serde(default = "default_batch")]
    pub batch: usize,
    /// Mempool size of overflow cases, in MB.
    #[serde(default = "default_mempool_mb")]
    pub full_mempool_mb: u32,
    #[serde(default = "crate::plan::default_targets")]
    targets: Vec<String>,
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub what: What,
    /// Script type of the coins spent and created.
    pub script: Kind,
    /// Submission method.
    #[serde(default)]
    pub by: By,
    /// Length of a chain of unconfirmed transactions.
    #[serde(default = "one")]
    pub depth: usize,
    /// Overrides the plan's number.
    #[serde(default)]
    pub txs: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Send new transactions, parents first.
    Admit,
    /// Send parent-child pairs by `submitpackage`.
    Package,
    /// Send children before their parents.
    Orphans,
    /// Replace earlier transactions at a higher fee (BIP125).
    Replace,
    /// Overflow a small mempool with rising fees.
    Evict,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// `sendrawtransaction` in batches.
    #[default]
    Rpc,
    /// Announced by a peer.
    P2p,
}

impl Case {
    /// Transactions that spend one confirmed coin, each the one before it.
    pub(super) const fn group(&self) -> usize {
        match self.what {
            What::Admit => self.depth,
            What::Package | What::Orphans => 2,
            What::Replace | What::Evict => 1,
        }
    }
}

impl MempoolPlan {
    /// Text of the built-in plan.
    pub const BUILTIN: (&'static str, &'static str) =
        ("mempool", include_str!("../../../../plans/mempool.toml"));

    /// Targets of the plan.
    ///
    /// # Errors
    /// On an unknown target name.
    pub fn targets(&self, origin: &str) -> Result<Vec<TargetSpec>, PlanError> {
        let parse = |text: &String| {
            text.parse::<TargetSpec>().map_err(|error| PlanError::Value {
                origin: origin.to_owned(),
                key: "targets".to_owned(),
                value: format!("{text} ({error})"),
                rule: "use assay[=PATH] or bitcoind=PATH",
            })
        };
        self.targets.iter().map(parse).collect()
    }

    /// Transactions of a case, rounded to whole chains or pairs.
    pub(super) fn txs_of(&self, case: &Case) -> usize {
        self.scaled(case.txs.unwrap_or(self.txs)).next_multiple_of(case.group())
    }

    fn scaled(&self, txs: usize) -> usize {
        (txs as f64 * self.scale).ceil() as usize
    }

    /// Validates values that TOML types cannot express.
    ///
    /// # Errors
    /// Key, value and violated rule.
    pub fn check(&self) -> Result<(), BadValue> {
        let between = |key: &str, value: usize, range: std::ops::RangeInclusive<usize>, rule| {
            valid(range.contains(&value), key, &value, rule)
        };
        valid(self.format == 1, "format", &self.format, "only format 1 is known")?;
        let is_kind = self.kind == PlanKind::Mempool;
        valid(is_kind, "kind", &self.kind.as_str(), "use \"mempool\"")?;
        valid(is_name(&self.name), "name", &self.name, "use small letters, digits and '-'")?;
        check_scale(self.scale)
            .map_err(|rule| ("scale".to_owned(), self.scale.to_string(), rule))?;
        between("txs", self.scaled(self.txs), 2..=TXS_MAX, "use 2 to 20000")?;
        between("repeat", self.repeat as usize, 1..=100, "use 1 to 100")?;
        between("batch", self.batch, 1..=10_000, "use 1 to 10000")?;
        let mb = self.full_mempool_mb as usize;
        between("full_mempool_mb", mb, 5..=300, "use 5, the least that nodes take, to 300")?;
        valid(!self.cases.is_empty(), "case", &"none", "at least one is needed")?;
        for (at, case) in self.cases.iter().enumerate() {
            let key = |name: &str| format!("case.{}.{name}", case.name);
            let is_new = self.cases[..at].iter().all(|other| other.name != case.name);
            valid(is_new, &key("name"), &case.name, "each name once")?;
            let rule = "use 1 to 25: nodes take no longer chains of unconfirmed transactions";
            between(&key("depth"), case.depth, 1..=25, rule)?;
            if let Some(txs) = case.txs {
                between(&key("txs"), self.scaled(txs), 2..=TXS_MAX, "use 2 to 20000")?;
            }
            let by = match case.what {
                What::Admit => case.by,
                What::Orphans => By::P2p,
                What::Package | What::Replace | What::Evict => By::Rpc,
            };
            let rule = "orphans come from a peer; packages, replacements and evictions by rpc";
            valid(by == case.by, &key("by"), &serde_json::json!(case.by), rule)?;
            let is_chain = case.depth <= 1 || case.what == What::Admit;
            valid(is_chain, &key("depth"), &case.depth, "only \"admit\" has a depth")?;
        }
        let coins: usize = self.cases.iter().map(|case| self.txs_of(case)).sum();
        let rule = "all cases together take fewer coins: lower txs or scale";
        between("txs", coins, 0..=COINS_MAX, rule)
    }
}

const TXS_MAX: usize = 20_000;
/// Coins that the coinbases of the first subsidy period can fund.
const COINS_MAX: usize = 70_000;

const fn one() -> usize {
    1
}

const fn whole() -> f64 {
    1.0
}

const fn default_batch() -> usize {
    250
}

const fn default_mempool_mb() -> u32 {
    5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{checked, read};

    #[test]
    fn impossible_values_are_rejected() {
        let (_, text) = MempoolPlan::BUILTIN;
        let parse = |text: &str| -> Result<MempoolPlan, PlanError> {
            let plan: MempoolPlan = read(text, "plan.toml")?;
            checked(plan.check(), "plan.toml")?;
            Ok(plan)
        };
        let plan = parse(text).expect("the built-in plan is valid");
        assert!(plan.targets("plan.toml").is_ok_and(|targets| targets.len() == 1));
        let cases = [
            ("format = 1", "format = 2"),
            ("txs = 2000", "txs = 1"),
            ("repeat = 6", "repeat = 0"),
            ("full_mempool_mb = 5", "full_mempool_mb = 4"),
            ("depth = 25", "depth = 26"),
            ("name = \"orphans\"", "name = \"p2pkh\""),
            ("what = \"orphans\"", "what = \"package\""),
            ("script = \"p2tr\"", "script = \"p2sh\""),
            ("seed = 1", "sed = 1"),
        ];
        let rejected = cases.map(|(from, to)| {
            assert!(text.contains(from), "{from} is in the plan");
            parse(&text.replacen(from, to, 1)).expect_err("must be rejected").to_string()
        });
        insta::assert_snapshot!(rejected.join("\n"));
    }
}
