//! Protocol versions and errors.

use std::fmt;

use serde_json::value::RawValue;

use crate::chain::ChainError;
use crate::index::QueryError;
use crate::mempool::TooMany;

pub(super) use assay_json::Out;

/// Software name in the protocol.
pub(super) const SOFTWARE: &str = concat!("Assay ", env!("CARGO_PKG_VERSION"));

/// A version `major.minor.revision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub(super) u16, pub(super) u16, pub(super) u16);

impl Version {
    /// Oldest supported version, assumed before negotiation.
    pub(super) const MIN: Self = Self(1, 4, 0);
    pub(super) const MAX: Self = Self(1, 7, 0);

    /// Parses `1.4` or `1.4.2`: one to three numbers.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut numbers = [0u16; 3];
        for (place, part) in text.split('.').enumerate() {
            if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            *numbers.get_mut(place)? = part.parse().ok()?;
        }
        let [major, minor, revision] = numbers;
        Some(Self(major, minor, revision))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(major, minor, revision) = self;
        match revision {
            0 => write!(f, "{major}.{minor}"),
            _ => write!(f, "{major}.{minor}.{revision}"),
        }
    }
}

/// Version offer of a client: a version, or an array of lowest and highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) min: Version,
    pub(super) max: Version,
}

impl Offer {
    /// Parses the second argument of `server.version`.
    pub(super) fn read(raw: &RawValue) -> Option<Self> {
        if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
            let only = Version::parse(&text)?;
            return Some(Self { min: only, max: only });
        }
        let [min, max]: [String; 2] = serde_json::from_str(raw.get()).ok()?;
        Some(Self { min: Version::parse(&min)?, max: Version::parse(&max)? })
    }

    /// Highest common version; ours are [`Version::MIN`] to `max`.
    pub(super) fn choose(self, max: Version) -> Option<Version> {
        let chosen = self.max.min(max);
        (chosen >= self.min.max(Version::MIN)).then_some(chosen)
    }
}

/// Error codes: those of JSON-RPC, then those of `ElectrumX`, known to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Parse = -32700,
    InvalidRequest = -32600,
    /// The method does not exist in the negotiated protocol version.
    MethodNotFound = -32601,
    /// Too few, too many or unknown parameters.
    InvalidParams = -32602,
    Internal = -32603,
    Excessive = -101,
    /// A parameter has the wrong type or value, or there is no result.
    BadRequest = 1,
    Daemon = 2,
    /// The result exceeds the limit of entries (protocol 1.7).
    HistoryTooLarge = 10_001,
}

impl Code {
    pub(super) const fn number(self) -> i32 {
        self as i32
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct RpcError {
    pub(super) code: Code,
    pub(super) message: String,
}

impl RpcError {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    pub(super) fn daemon(message: impl Into<String>) -> Self {
        Self::new(Code::Daemon, message)
    }
}

/// A call failed: a client error, or a condition that requires a retry.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// A reorg below the view happened: retry.
    #[error("the chain was reorganised meanwhile")]
    Again,
    #[error("the answer takes longer than at once")]
    NotAtOnce,
}

impl From<QueryError> for CallError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Reorganised => Self::Again,
            QueryError::NotAtOnce => Self::NotAtOnce,
            QueryError::TooLarge { .. } => {
                Self::Rpc(RpcError::new(Code::HistoryTooLarge, error.to_string()))
            }
            error => {
                // Local paths belong in the log only.
                tracing::error!("The index cannot be read: {error}");
                Self::Rpc(RpcError::new(Code::Internal, "the index cannot be read"))
            }
        }
    }
}

impl From<ChainError> for CallError {
    fn from(error: ChainError) -> Self {
        tracing::error!("{error}");
        Self::Rpc(RpcError::daemon(format!("the node cannot {}", error.operation)))
    }
}

impl From<TooMany> for CallError {
    fn from(error: TooMany) -> Self {
        Self::Rpc(RpcError::new(Code::HistoryTooLarge, error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_with_dots() {
        for (text, version) in [
            ("1.4", Some(Version(1, 4, 0))),
            ("1.4.2", Some(Version(1, 4, 2))),
            ("1", Some(Version(1, 0, 0))),
            ("1.10", Some(Version(1, 10, 0))),
            ("", None),
            ("1.", None),
            (".4", None),
            ("1.4.2.1", None),
            ("1.x", None),
            ("+1.4", None),
            ("1.99999", None),
        ] {
            assert_eq!(Version::parse(text), version, "{text}");
        }
        assert_eq!(Version(1, 4, 0).to_string(), "1.4");
        assert_eq!(Version(1, 4, 2).to_string(), "1.4.2");
    }

    #[test]
    fn the_highest_common_version_is_chosen() {
        let check = |offer: &str, expected: Option<&str>| {
            let raw = RawValue::from_string(offer.to_owned()).unwrap();
            let chosen = Offer::read(&raw).and_then(|offer| offer.choose(Version::MAX));
            assert_eq!(chosen.map(|version| version.to_string()).as_deref(), expected, "{offer}");
        };
        check("\"1.4\"", Some("1.4"));
        check("[\"1.4\",\"1.6\"]", Some("1.6"));
        check("[\"1.4\",\"1.4.2\"]", Some("1.4.2"));
        check("[\"1.1\",\"9.9\"]", Some("1.7"));
        check("[\"1.4\",\"1.5\"]", Some("1.5"));
        check("[\"1.0\",\"1.3\"]", None);
        check("[\"1.8\",\"2.0\"]", None);
        check("[\"1.6\",\"1.4\"]", None);
        check("[\"1.4\"]", None);
        check("[1.4,1.6]", None);
        check("1.4", None);
        check("null", None);
    }
}
