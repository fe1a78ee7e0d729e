//! Address manager (Core `addrman.cpp`).
//!
//! A received address goes to one of 1,024 buckets of new addresses, chosen by a secret key, its group and the
//! group of its source, so that one source fills few buckets. After a connection it moves to one of 256 buckets of
//! tried addresses. A bucket has 64 positions, and the key also determines the position of an address. A collision
//! is resolved in favour of the better address.

mod check;
mod choose;
mod entry;
mod file;
mod tables;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_engine::Clock;
use assay_wire::p2p::{Endpoint, Host, NetworkKind, PeerAddress};

pub(crate) use self::choose::Wanted;
pub(crate) use self::entry::Entry;
use self::entry::Key;
#[cfg(fuzzing)]
pub(crate) use self::file::fuzz_file;
pub(crate) use self::file::{
    FileFault, Reader as FileReader, replace as replace_file, seal, write_address,
};
pub(crate) use self::tables::Count;
use self::tables::Tables;
use super::rng::Rng;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AddrManConfig {
    /// Network magic at the start of the file.
    pub(crate) magic: [u8; 4],
    /// Fixed key, for tests (Core's `-test=addrman`).
    pub(crate) is_deterministic: bool,
    /// Check the tables once per this many uses on average; 0 for never (Core's `-checkaddrman`).
    pub(crate) check_ratio: u32,
}

pub(crate) struct AddrMan {
    path: PathBuf,
    config: AddrManConfig,
    clock: Clock,
    tables: Mutex<Tables>,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "Invalid or corrupt peers.dat ({fault}). If you believe this is a bug, please report it to {BUG_REPORTS}. As a workaround, you can move the file (\"{}\") out of the way (rename, move, or delete) to have a new one created on the next start.",
    path.display()
)]
pub(crate) struct AddressFileError {
    path: PathBuf,
    fault: FileFault,
}

/// Bucket, position and entry.
pub(crate) type Located = (usize, usize, Entry);

impl AddrMan {
    /// Reads the file in `dir` or creates it.
    ///
    /// # Errors
    /// The file is damaged. A file of a later version is renamed.
    pub(crate) fn open(
        dir: &Path,
        config: AddrManConfig,
        clock: Clock,
    ) -> Result<Self, AddressFileError> {
        let path = dir.join(FILE_NAME);
        let failed = |fault| AddressFileError { path: path.clone(), fault };
        let read = match fs::read(&path) {
            Ok(bytes) => Some(Tables::from_file(&bytes, config.magic, config.rng())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error.into())),
        };
        let fresh = || Tables::new(config.new_key(), config.rng());
        let shown = path.display();
        let (tables, is_new) = match read {
            Some(Ok(tables)) => {
                tracing::info!("Loaded {} addresses from peers.dat", tables.all.len());
                (tables, false)
            }
            None => {
                tracing::info!("Creating peers.dat because the file was not found (\"{shown}\")");
                (fresh(), true)
            }
            Some(Err(FileFault::Version { .. })) => {
                fs::rename(&path, dir.join(BACKUP_NAME)).map_err(|error| failed(error.into()))?;
                tracing::warn!(
                    "Creating new peers.dat because the file version was not compatible (\"{shown}\"). Original backed up to peers.dat.bak"
                );
                (fresh(), true)
            }
            Some(Err(fault)) => return Err(failed(fault)),
        };
        let addresses = Self { path: path.clone(), config, clock, tables: Mutex::new(tables) };
        if is_new {
            addresses.save();
        }
        Ok(addresses)
    }

    pub(crate) fn save(&self) {
        let bytes = self.lock().to_file(self.config.magic);
        if let Err(error) = file::replace(&self.path, &bytes) {
            tracing::error!("Cannot write {}: {error}", self.path.display());
        }
    }

    /// Adds addresses named by `source`, with their times reduced by `penalty_s` seconds; true if any was new.
    pub(crate) fn add(&self, addresses: &[PeerAddress], source: &Host, penalty_s: i64) -> bool {
        let mut tables = self.lock();
        let now_s = self.now_s();
        let add = |address: &&PeerAddress| tables.add(address, source, penalty_s, now_s);
        let added = addresses.iter().filter(add).count();
        if added > 0 {
            let Count { new, tried } = tables.count(None);
            tracing::debug!(
                target: "addrman",
                "Added {added} addresses (of {}) from {source}: {tried} tried, {new} new",
                addresses.len()
            );
        }
        added > 0
    }

    /// Records a successful connection; true if the address moved to the tried ones.
    pub(crate) fn good(&self, endpoint: &Endpoint) -> bool {
        self.lock().good(endpoint, true, self.now_s())
    }

    /// Records an attempt; `counts` adds it to the failures until a connection succeeds.
    pub(crate) fn attempt(&self, endpoint: &Endpoint, counts: bool) {
        self.lock().attempt(endpoint, counts, self.now_s());
    }

    pub(crate) fn connected(&self, endpoint: &Endpoint) {
        self.lock().connected(endpoint, self.now_s());
    }

    pub(crate) fn set_services(&self, endpoint: &Endpoint, services: u64) {
        if let Some(entry) = self.lock().find_mut(endpoint) {
            entry.address.services = services;
        }
    }

    /// Address to connect to, on one of `networks` if not empty, and its last attempt, seconds since 1970.
    pub(crate) fn select(
        &self,
        only_new: bool,
        networks: &[NetworkKind],
    ) -> Option<(PeerAddress, i64)> {
        self.lock().select(only_new, networks, self.now_s())
    }

    /// Tried address to test because of a collision.
    pub(crate) fn select_collision(&self) -> Option<(PeerAddress, i64)> {
        self.lock().select_collision()
    }

    pub(crate) fn resolve_collisions(&self) {
        self.lock().resolve_collisions(self.now_s());
    }

    pub(crate) fn list(&self, wanted: &Wanted) -> Vec<PeerAddress> {
        self.lock().list(wanted, self.now_s())
    }

    pub(crate) fn count(&self, network: Option<NetworkKind>) -> Count {
        self.lock().count(network)
    }

    /// All new or tried entries, by position.
    pub(crate) fn entries(&self, is_tried: bool) -> Vec<Located> {
        let tables = self.lock();
        let buckets = if is_tried { &tables.tried } else { &tables.new };
        let located = |(bucket, place, id)| Some((bucket, place, *tables.entries.get(&id)?));
        check::held(buckets).filter_map(located).collect()
    }

    fn now_s(&self) -> i64 {
        i64::try_from(self.clock.now_s()).unwrap_or(i64::MAX)
    }

    /// Locks the tables; checks them at the configured ratio.
    fn lock(&self) -> MutexGuard<'_, Tables> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let ratio = self.config.check_ratio as usize;
        if ratio > 0 && tables.rng.below(ratio) == 0 {
            let fault = tables.fault();
            assert!(fault.is_none(), "ADDRMAN CONSISTENCY CHECK FAILED!!! err={fault:?}");
        }
        tables
    }
}

impl AddrManConfig {
    fn rng(&self) -> Rng {
        if self.is_deterministic { Rng::seeded(0) } else { Rng::new() }
    }

    fn new_key(&self) -> Key {
        let mut key = [0; 32];
        key[0] = 1;
        if !self.is_deterministic {
            // Without randomness the node still runs, with predictable positions.
            let _ = getrandom::fill(&mut key);
        }
        key
    }
}

const FILE_NAME: &str = "peers.dat";
const BACKUP_NAME: &str = "peers.dat.bak";
/// Replaces Core's `CLIENT_BUGREPORT`.
const BUG_REPORTS: &str = "the log";
