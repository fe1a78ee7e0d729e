//! Manual bans: banned addresses are disconnected and rejected (Core `banman.cpp`).

mod range;

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_engine::Clock;
use assay_wire::p2p::Host;
use serde_json::{Value, json};

pub(crate) use self::range::Range;
use super::addrman::replace_file;
use super::dns::valid_ip;
use super::recent::Recent;

/// Start and end of a ban, seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ban {
    pub(crate) created_s: i64,
    pub(crate) until_s: i64,
}

pub(crate) struct Bans {
    path: PathBuf,
    usual_s: i64,
    clock: Clock,
    list: Mutex<BTreeMap<Range, Ban>>,
    /// Addresses of misbehaving peers: not banned, but disfavoured.
    discouraged: Mutex<Recent>,
}

impl Bans {
    /// Reads the file in `dir` or creates it. Bans last `usual_s` seconds by default.
    pub(crate) fn open(dir: &Path, usual_s: u64, clock: Clock) -> Self {
        let path = dir.join(FILE_NAME);
        let read = fs::read(&path).ok().and_then(|text| parse(&text));
        let is_new = read.is_none();
        let usual_s = i64::try_from(usual_s).unwrap_or(i64::MAX);
        let list = Mutex::new(read.unwrap_or_default());
        let discouraged = Mutex::new(Recent::new(DISCOURAGED_MAX));
        let bans = Self { path, usual_s, clock, list, discouraged };
        if is_new {
            tracing::info!("Recreating the banlist database");
            bans.save(&bans.lock());
        }
        bans
    }

    pub(crate) fn has_banned(&self, address: IpAddr) -> bool {
        self.lock().keys().any(|range| range.contains(address))
    }

    /// As [`Bans::has_banned`]; only IP addresses can be banned.
    pub(super) fn has_banned_host(&self, host: &Host) -> bool {
        valid_ip(host).is_some_and(|ip| self.has_banned(ip))
    }

    /// Records misbehaviour of an address until the node stops.
    pub(super) fn discourage(&self, host: &Host) {
        self.discouraged.lock().unwrap_or_else(PoisonError::into_inner).insert(host);
    }

    pub(super) fn is_discouraged(&self, host: &Host) -> bool {
        self.discouraged.lock().unwrap_or_else(PoisonError::into_inner).contains(host)
    }

    pub(crate) fn list(&self) -> Vec<(Range, Ban)> {
        self.lock().iter().map(|(range, ban)| (range.clone(), *ban)).collect()
    }

    /// Bans a range for `time_s` seconds, or until that time; zero selects the default. `false` if it is already
    /// banned: for a single address also by a wider range.
    pub(crate) fn ban(&self, range: &Range, time_s: i64, is_until: bool) -> bool {
        let mut list = self.lock();
        let around = |known: &Range| range.address().is_some_and(|one| known.contains(one));
        if list.contains_key(range) || list.keys().any(around) {
            return false;
        }
        let created_s = self.now_s();
        let until_s = match time_s {
            ..=0 => created_s.saturating_add(self.usual_s),
            until_s if is_until => until_s,
            time_s => created_s.saturating_add(time_s),
        };
        list.insert(range.clone(), Ban { created_s, until_s });
        self.save(&list);
        true
    }

    /// Removes a ban; `false` without a ban of exactly this range.
    pub(crate) fn unban(&self, range: &Range) -> bool {
        let mut list = self.lock();
        let was_there = list.remove(range).is_some();
        self.save(&list);
        was_there
    }

    pub(crate) fn clear(&self) {
        let mut list = self.lock();
        list.clear();
        self.save(&list);
    }

    /// Bans without expired ones.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Range, Ban>> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let now_s = self.now_s();
        list.retain(|_, ban| now_s <= ban.until_s);
        list
    }

    fn now_s(&self) -> i64 {
        i64::try_from(self.clock.now_s()).unwrap_or(i64::MAX)
    }

    fn save(&self, list: &BTreeMap<Range, Ban>) {
        if let Err(error) = replace_file(&self.path, to_text(list).as_bytes()) {
            tracing::warn!("Cannot write {}: {error}", self.path.display());
        }
    }
}

pub(super) fn to_text(list: &BTreeMap<Range, Ban>) -> String {
    let entries = list.iter().map(|(range, ban)| {
        json!({
            "version": VERSION,
            "ban_created": ban.created_s,
            "banned_until": ban.until_s,
            "address": range.to_string(),
        })
    });
    json!({ "banned_nets": entries.collect::<Vec<_>>() }).to_string()
}

/// Parses the file format; skips entries of unknown versions.
pub(super) fn parse(text: &[u8]) -> Option<BTreeMap<Range, Ban>> {
    let json: Value = serde_json::from_slice(text).ok()?;
    let entries = json.get("banned_nets")?.as_array()?.iter();
    let read = entries.filter_map(|entry| {
        let number = |name: &str| entry.get(name)?.as_i64();
        let range = Range::parse(entry.get("address")?.as_str()?)?;
        let ban = Ban { created_s: number("ban_created")?, until_s: number("banned_until")? };
        (number("version")? == VERSION).then_some((range, ban))
    });
    Some(read.collect())
}

/// Core `banman.h`, `m_discouraged`.
const DISCOURAGED_MAX: usize = 50_000;
/// Core's `banlist.json` (`addrdb.cpp`).
const FILE_NAME: &str = "banlist.json";
/// Core's `CBanEntry::CURRENT_VERSION` (`net_types.h`).
const VERSION: i64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bans_expire_and_persist() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::default();
        clock.set(1000);
        let bans = Bans::open(dir.path(), 100, clock.clone());
        let range = |text: &str| Range::parse(text).unwrap();
        assert!(bans.ban(&range("10.0.0.0/8"), 0, false));
        assert!(!bans.ban(&range("10.1.2.3"), 5, false), "in a banned range");
        assert!(bans.ban(&range("10.0.0.0/16"), 5, false), "another range");
        assert!(bans.ban(&range("::1"), 1010, true));
        assert!(bans.has_banned("10.200.0.1".parse().unwrap()));
        assert!(!bans.has_banned("11.0.0.1".parse().unwrap()));
        assert!(!bans.unban(&range("10.0.0.0")) && bans.unban(&range("10.0.0.0/16")));
        let again = Bans::open(dir.path(), 100, clock.clone());
        assert_eq!(again.list(), bans.list());
        clock.set(1011);
        let left = Ban { created_s: 1000, until_s: 1100 };
        assert_eq!(again.list(), [(range("10.0.0.0/8"), left)]);
        again.clear();
        assert!(Bans::open(dir.path(), 100, clock).list().is_empty());
    }
}
