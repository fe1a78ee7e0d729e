//! Protocol versions and their negotiation.

use std::fmt;

use serde_json::value::RawValue;

/// A version `major.minor.revision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::server) struct Version(
    pub(in crate::server) u16,
    pub(in crate::server) u16,
    pub(in crate::server) u16,
);

impl Version {
    /// Oldest supported version, assumed before negotiation.
    pub(in crate::server) const MIN: Self = Self(1, 4, 0);
    pub(in crate::server) const MAX: Self = Self(1, 7, 0);

    /// Parses `1.4` or `1.4.2`: one to three numbers.
    pub(in crate::server) fn parse(text: &str) -> Option<Self> {
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
pub(in crate::server) struct Offer {
    pub(in crate::server) min: Version,
    pub(in crate::server) max: Version,
}

impl Offer {
    /// Parses the second argument of `server.version`.
    pub(in crate::server) fn read(raw: &RawValue) -> Option<Self> {
        if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
            let only = Version::parse(&text)?;
            return Some(Self { min: only, max: only });
        }
        let [min, max]: [String; 2] = serde_json::from_str(raw.get()).ok()?;
        Some(Self { min: Version::parse(&min)?, max: Version::parse(&max)? })
    }

    /// Highest common version; ours are [`Version::MIN`] to `max`.
    pub(in crate::server) fn choose(self, max: Version) -> Option<Version> {
        let chosen = self.max.min(max);
        (chosen >= self.min.max(Version::MIN)).then_some(chosen)
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
