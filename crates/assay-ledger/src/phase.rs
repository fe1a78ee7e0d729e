//! Phases of a chain by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// A phase of a chain, by name in ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Coinbases only.
    Maturity,
    /// Blocks of main-chain size, before the large ones: one input, two outputs, in chains.
    Baseline,
    /// One input, many outputs; in chains on the scaling chains.
    FanOut,
    /// All blocks of [`Phase::Placed`], which is the phase of the blocks themselves.
    Placement,
    /// Many inputs, two outputs, classified by the spent outputs.
    Placed { age: Age, order: SpendOrder },
    /// Many inputs, two outputs.
    Steady1,
    /// Many inputs, one output.
    FanIn,
    /// One input, two outputs.
    Steady2,
    /// Two inputs, two outputs.
    Steady3,
    Era {
        /// From 1.
        number: u8,
    },
    /// A range of heights of a chain from block files.
    Heights { first: u32, last: u32 },
    /// Transactions with a fixed number of inputs of one kind, and one output.
    Width { series: Series, inputs: u32 },
}

/// Age of the outputs that a block spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Age {
    /// From the earlier half of the fan-out blocks.
    Old,
    /// From the later half.
    Recent,
}

impl Age {
    pub const ALL: [Self; 2] = [Self::Old, Self::Recent];

    /// Name in ledgers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::Recent => "recent",
        }
    }
}

/// Placement of the outputs that a block spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpendOrder {
    /// Adjacent: all outputs of a transaction, and of transactions with consecutive ids.
    Clustered,
    Scattered,
}

impl SpendOrder {
    pub const ALL: [Self; 2] = [Self::Clustered, Self::Scattered];

    /// Name in ledgers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clustered => "clustered",
            Self::Scattered => "scattered",
        }
    }
}

/// Kind of the spent outputs, by signature hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Series {
    /// P2PKH: the original signature hash, over the whole transaction for every input.
    Legacy,
    /// P2WPKH: BIP143, with hashes that all inputs share.
    Segwit,
    /// P2TR by the key path: BIP341, with hashes that all inputs share.
    Taproot,
}

impl Series {
    pub const ALL: [Self; 3] = [Self::Legacy, Self::Segwit, Self::Taproot];

    /// Name in recipes and ledgers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Segwit => "segwit",
            Self::Taproot => "taproot",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Width { series, inputs } => write!(f, "{}-{inputs}", series.name()),
            Self::Era { number } => write!(f, "era-{number}"),
            Self::Heights { first, last } => write!(f, "heights-{first}-{last}"),
            Self::Placed { age, order } => write!(f, "{}-{}", age.name(), order.name()),
            _ => match FIXED.iter().find(|(phase, _)| phase == self) {
                Some((_, name)) => f.write_str(name),
                None => Err(fmt::Error),
            },
        }
    }
}

impl FromStr for Phase {
    type Err = UnknownPhase;

    fn from_str(name: &str) -> Result<Self, UnknownPhase> {
        let fixed = FIXED.iter().find(|(_, fixed)| *fixed == name).map(|(phase, _)| *phase);
        let parsed = || {
            if let Some(number) = name.strip_prefix("era-") {
                return Some(Self::Era { number: number.parse().ok()? });
            }
            if let Some(heights) = name.strip_prefix("heights-") {
                let (first, last) = heights.split_once('-')?;
                return Some(Self::Heights {
                    first: first.parse().ok()?,
                    last: last.parse().ok()?,
                });
            }
            let (of, rest) = name.rsplit_once('-')?;
            if let Some(series) = Series::ALL.into_iter().find(|series| series.name() == of) {
                return Some(Self::Width { series, inputs: rest.parse().ok()? });
            }
            let age = Age::ALL.into_iter().find(|age| age.name() == of)?;
            let order = SpendOrder::ALL.into_iter().find(|order| order.name() == rest)?;
            Some(Self::Placed { age, order })
        };
        // One canonical spelling: no signs, no leading zeros.
        let parsed = fixed.or_else(|| parsed().filter(|phase| phase.to_string() == name));
        parsed.ok_or_else(|| UnknownPhase { name: name.to_owned() })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no phase {name:?}")]
pub struct UnknownPhase {
    pub name: String,
}

impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Phase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(de::Error::custom)
    }
}

/// Phases with a fixed name.
const FIXED: [(Phase, &str); 8] = [
    (Phase::Maturity, "maturity"),
    (Phase::Baseline, "baseline"),
    (Phase::FanOut, "fan-out"),
    (Phase::Placement, "placement"),
    (Phase::Steady1, "steady-1"),
    (Phase::FanIn, "fan-in"),
    (Phase::Steady2, "steady-2"),
    (Phase::Steady3, "steady-3"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_have_one_spelling() {
        let widths = Series::ALL.map(|series| Phase::Width { series, inputs: 1000 });
        let eras = [1, 14, 99].map(|number| Phase::Era { number });
        let heights = [Phase::Heights { first: 1, last: 90 }];
        let placed = Age::ALL
            .map(|age| SpendOrder::ALL.map(|order| Phase::Placed { age, order }))
            .into_iter()
            .flatten();
        let fixed = FIXED.map(|(phase, _)| phase).into_iter();
        for phase in fixed.chain(widths).chain(eras).chain(heights).chain(placed) {
            assert_eq!(phase.to_string().parse(), Ok(phase));
        }
        assert_eq!("segwit-25".parse(), Ok(Phase::Width { series: Series::Segwit, inputs: 25 }));
        for name in [
            "",
            "steady-4",
            "legacy",
            "legacy-",
            "legacy-01",
            "legacy-+1",
            "legacy--1",
            "era-",
            "era-01",
            "era-256",
            "heights-1",
            "heights-01-5",
            "old-old",
        ] {
            let unknown = name.parse::<Phase>().expect_err("no phase");
            assert_eq!(unknown.name, name);
        }
    }
}
