//! Chain section of a plan.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainPlan {
    /// Built-in recipe name, or path of a recipe file (relative to the plan file).
    pub recipe: String,
    pub seed: u64,
    /// Size relative to the published chain, above 0; the recipe defines the limit.
    pub scale: f64,
    /// Of a history: factor on the transactions of its blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_scale: Option<f64>,
    /// Copy the quirks of the published generator or not.
    #[serde(default)]
    pub variant: Variant,
    /// True to give every output its own key.
    #[serde(default)]
    pub distinct_keys: bool,
    /// The same as a list, for chains of both kinds; instead of `distinct_keys`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<Keys>,
    /// Last height, to forge only the beginning of the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_height: Option<u32>,
}

/// Treatment of the published generator's quirks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// As the report's authors describe.
    #[default]
    Intended,
    /// As their generator behaves.
    Faithful,
}

impl Variant {
    /// Name in plans, ledgers and on the forge's command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Faithful => "faithful",
        }
    }
}

/// Repetition of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keys {
    /// As published: derived from height and amount, so that few addresses receive most outputs.
    Faithful,
    /// Every output has a key of its own.
    Distinct,
}

impl ChainPlan {
    /// Requested chains, in order.
    pub fn keys(&self) -> Vec<Keys> {
        match (&self.keys[..], self.distinct_keys) {
            ([], false) => vec![Keys::Faithful],
            ([], true) => vec![Keys::Distinct],
            (keys, _) => keys.to_vec(),
        }
    }
}

/// Validates a scale, in the plan and on the command line.
pub(crate) fn check_scale(scale: f64) -> Result<(), &'static str> {
    if scale.is_finite() && scale > 0.0 && scale <= SCALE_MAX {
        Ok(())
    } else {
        Err("a scale is above 0 and at most 50")
    }
}

/// A history of the built-in recipe then has a million blocks; the forge enforces the recipe's own limit.
const SCALE_MAX: f64 = 50.0;
