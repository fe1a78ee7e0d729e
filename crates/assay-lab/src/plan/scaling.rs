//! Scaling section of a plan: transaction kinds of several widths.

use serde::{Deserialize, Serialize};

use super::{BadValue, is_name};

/// A transaction kind of several widths, each in its own phase named SERIES-WIDTH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalingPlan {
    /// Prefix of the phase names.
    pub series: String,
    /// Name in the report.
    pub title: String,
}

impl ScalingPlan {
    /// Inputs per transaction of a phase; `None` if it belongs to another kind.
    pub fn width(&self, phase: &str) -> Option<u32> {
        let width = phase.strip_prefix(&self.series)?.strip_prefix('-')?;
        let is_number = !width.is_empty() && width.bytes().all(|byte| byte.is_ascii_digit());
        width.parse().ok().filter(|width| is_number && *width > 0)
    }
}

pub(super) fn check(plans: &[ScalingPlan]) -> Result<(), BadValue> {
    for (index, plan) in plans.iter().enumerate() {
        let bad = |rule| Err(("scaling.series".to_owned(), plan.series.clone(), rule));
        if !is_name(&plan.series) {
            return bad("use small letters, digits and '-'");
        }
        if plans[..index].iter().any(|other| other.series == plan.series) {
            return bad("each series once");
        }
    }
    Ok(())
}
