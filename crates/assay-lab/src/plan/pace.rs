//! Due times of blocks and rate of transactions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Due times of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Pace {
    /// As soon as the previous block is the tip and the block's transactions are sent.
    #[default]
    Asap,
    /// Fixed interval in seconds between due times.
    Every(f64),
    /// Exponentially distributed intervals with this mean in seconds, as with proof of work.
    Poisson(f64),
}

/// Rate of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Rate {
    /// As fast as the node accepts them.
    #[default]
    Asap,
    /// Transactions per second.
    Txs(f64),
    /// MiB per second.
    Mib(f64),
    /// Spread evenly over the time until the block is due.
    Interval,
}

fn not_understood(text: &str, rule: &str) -> String {
    format!("{text:?} is not understood: {rule}")
}

impl Pace {
    /// Seconds from one block to the next; `uniform` lies in [0, 1).
    pub fn interval_s(self, uniform: f64) -> Option<f64> {
        match self {
            Self::Asap => None,
            Self::Every(seconds) => Some(seconds),
            Self::Poisson(mean) => Some(-mean * (1.0 - uniform).ln()),
        }
    }
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rule = "use asap, 600s or poisson(600s), with 0.001s to 86400s";
        let error = || not_understood(text, rule);
        let seconds = |text: &str| {
            let number: f64 = text.strip_suffix('s')?.trim_end().parse().ok()?;
            (0.001..=86_400.0).contains(&number).then_some(number)
        };
        let inner = text.strip_prefix("poisson(").and_then(|rest| rest.strip_suffix(')'));
        match (text, inner) {
            ("asap", _) => Ok(Self::Asap),
            (_, Some(inner)) => seconds(inner).map(Self::Poisson).ok_or_else(error),
            _ => seconds(text).map(Self::Every).ok_or_else(error),
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rule = "use asap, interval, 500tx/s or 2MiB/s, above zero";
        let number = |unit: &str| -> Option<f64> {
            let number: f64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
            (number > 0.0 && number <= 1e9).then_some(number)
        };
        match text {
            "asap" => Ok(Self::Asap),
            "interval" => Ok(Self::Interval),
            _ => number("tx/s")
                .map(Self::Txs)
                .or_else(|| number("MiB/s").map(Self::Mib))
                .ok_or_else(|| not_understood(text, rule)),
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asap => f.write_str("asap"),
            Self::Every(seconds) => write!(f, "{seconds}s"),
            Self::Poisson(mean) => write!(f, "poisson({mean}s)"),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asap => f.write_str("asap"),
            Self::Interval => f.write_str("interval"),
            Self::Txs(rate) => write!(f, "{rate}tx/s"),
            Self::Mib(rate) => write!(f, "{rate}MiB/s"),
        }
    }
}

/// Conversions for serde, which takes and gives text.
macro_rules! as_text {
    ($($name:ident),*) => {$(
        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    )*};
}

as_text!(Pace, Rate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_and_rates_are_read_back() {
        for text in ["asap", "600s", "0.5s", "poisson(10s)"] {
            assert_eq!(text.parse::<Pace>().unwrap().to_string(), text);
        }
        for text in ["asap", "interval", "500tx/s", "2.5MiB/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        assert_eq!("500 tx/s".parse(), Ok(Rate::Txs(500.0)));
        for wrong in ["", "600", "-1s", "0s", "poisson(s)", "poisson(1s", "NaNs", "infs"] {
            assert!(wrong.parse::<Pace>().is_err(), "{wrong}");
        }
        for wrong in ["", "5", "0tx/s", "-1MiB/s", "inftx/s"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn intervals_have_the_mean_of_the_pace() {
        assert_eq!(Pace::Every(3.0).interval_s(0.7), Some(3.0));
        assert_eq!(Pace::Asap.interval_s(0.7), None);
        let count = 10_000;
        let sum: f64 = (0..count)
            .map(|at| Pace::Poisson(2.0).interval_s((f64::from(at) + 0.5) / f64::from(count)))
            .map(Option::unwrap)
            .sum();
        assert!((sum / f64::from(count) - 2.0).abs() < 0.01);
    }
}
