//! Log categories for lines below the info level, which RPC can switch (Core `logging.cpp`).

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing::Metadata;
use tracing::callsite::rebuild_interest_cache;
use tracing::level_filters::LevelFilter;

use super::LogConfig;

#[derive(Debug)]
pub(super) struct Details {
    /// Level of all categories.
    base: LevelFilter,
    /// Level of categories that are switched on.
    detail: LevelFilter,
    /// True: all categories except `named` are on. False: only `named` are on.
    is_all: bool,
    named: BTreeSet<String>,
}

static DETAILS: Mutex<Details> = Mutex::new(Details {
    base: LevelFilter::INFO,
    detail: LevelFilter::DEBUG,
    is_all: false,
    named: BTreeSet::new(),
});

pub(super) fn details() -> MutexGuard<'static, Details> {
    DETAILS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Details {
    pub(super) fn new(config: &LogConfig) -> Self {
        let is_on = config.level > LevelFilter::INFO;
        let mut details = Self {
            base: config.level.min(LevelFilter::INFO),
            detail: config.level.max(LevelFilter::DEBUG),
            is_all: is_on && config.categories.is_none(),
            named: config.categories.iter().flatten().filter(|_| is_on).cloned().collect(),
        };
        for name in &config.excluded {
            details.set(name, false);
        }
        details
    }

    pub(super) fn shows(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.base
            || *metadata.level() <= self.detail && self.is_on(metadata.target())
    }

    pub(super) fn level_max(&self) -> LevelFilter {
        let is_any_on = self.is_all || !self.named.is_empty();
        if is_any_on { self.base.max(self.detail) } else { self.base }
    }

    fn is_on(&self, category: &str) -> bool {
        self.named.contains(category) != self.is_all
    }

    fn set(&mut self, name: &str, is_on: bool) {
        if ALL.contains(&name) {
            self.is_all = is_on;
            self.named.clear();
        } else if is_on == self.is_all {
            self.named.remove(name);
        } else {
            self.named.insert(name.to_owned());
        }
    }
}

/// Switches one category or all of them; `false` for an unknown category.
pub(crate) fn set_category(name: &str, is_on: bool) -> bool {
    let is_known = CATEGORIES.contains(&name) || ALL.contains(&name);
    if is_known {
        details().set(name, is_on);
        rebuild_interest_cache();
    }
    is_known
}

pub(crate) fn category_states() -> Vec<(&'static str, bool)> {
    let details = details();
    CATEGORIES.iter().map(|name| (*name, details.is_on(name))).collect()
}

/// Names for all categories.
pub const ALL: [&str; 3] = ["", "1", "all"];

/// Core's categories (`logging.cpp`) and our own `coins`.
pub const CATEGORIES: [&str; 32] = [
    "addrman",
    "bench",
    "blockstorage",
    "cmpctblock",
    "coindb",
    "coins",
    "estimatefee",
    "http",
    "i2p",
    "ipc",
    "kernel",
    "leveldb",
    "libevent",
    "lock",
    "mempool",
    "mempoolrej",
    "net",
    "privatebroadcast",
    "proxy",
    "prune",
    "qt",
    "rand",
    "reindex",
    "rpc",
    "scan",
    "selectcoins",
    "tor",
    "txpackages",
    "txreconciliation",
    "validation",
    "walletdb",
    "zmq",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn on(details: &Details) -> Vec<&'static str> {
        CATEGORIES.into_iter().filter(|name| details.is_on(name)).collect()
    }

    #[test]
    fn switches_single_and_all_categories() {
        let mut details = Details::new(&LogConfig::default());
        assert_eq!((on(&details).len(), details.level_max()), (0, LevelFilter::INFO));
        details.set("net", true);
        details.set("rpc", true);
        details.set("net", false);
        assert_eq!((on(&details), details.level_max()), (vec!["rpc"], LevelFilter::DEBUG));
        details.set("all", true);
        details.set("rpc", false);
        assert_eq!(on(&details).len(), CATEGORIES.len() - 1);
        details.set("rpc", true);
        assert_eq!(on(&details).len(), CATEGORIES.len());
        details.set("1", false);
        assert_eq!(on(&details).len(), 0);
    }

    #[test]
    fn initial_state_follows_the_configuration() {
        let config = |level, categories: Option<&[&str]>, excluded: &[&str]| LogConfig {
            level,
            categories: categories.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
            excluded: excluded.iter().map(|&name| name.to_owned()).collect(),
            ..LogConfig::default()
        };
        let some = Details::new(&config(LevelFilter::TRACE, Some(&["net", "rpc"]), &["rpc"]));
        assert_eq!((on(&some), some.level_max()), (vec!["net"], LevelFilter::TRACE));
        let all = Details::new(&config(LevelFilter::DEBUG, None, &["rpc"]));
        assert_eq!(on(&all).len(), CATEGORIES.len() - 1);
        let none = Details::new(&config(LevelFilter::WARN, Some(&["net"]), &[]));
        assert_eq!((on(&none).len(), none.level_max()), (0, LevelFilter::WARN));
    }
}
