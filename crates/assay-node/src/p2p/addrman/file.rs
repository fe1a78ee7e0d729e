//! `peers.dat` in Core's format (`addrman.cpp`, `Serialize`; `addrdb.cpp`), compatible in both directions. Layout:
//! `docs/formats.md`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use assay_hash::sha256d;
use assay_wire::p2p::{Endpoint, Host, PeerAddress};
use assay_wire::{ParseError, ParseErrorKind};

use super::entry::{BUCKET_SIZE, Entry, Key, NEW_BUCKETS, NEW_PER_ADDRESS, TRIED_BUCKETS};
use super::tables::{Id, NONE, Tables};
use crate::p2p::rng::Rng;

/// Defect of `peers.dat`, in Core's wording.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileFault {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("Invalid network magic number")]
    Magic,
    #[error("Checksum mismatch, data corrupted")]
    Checksum,
    #[error("AutoFile::read: end of file: iostream error")]
    End,
    #[error(
        "Corrupted addrman database: The compat value ({compat}) is lower than the expected minimum value {COMPAT_BASE}.: iostream error"
    )]
    Compat { compat: u8 },
    /// Written by a later version of Core.
    #[error(
        "Unsupported format of addrman database: {format}. It is compatible with formats >={lowest}, but the maximum supported by this version is {FORMAT}.: iostream error"
    )]
    Version {
        format: u8,
        /// Lowest compatible format.
        lowest: u8,
    },
    #[error(
        "Corrupt AddrMan serialization: {name}={count}, should be in [0, {max}]: iostream error"
    )]
    Count {
        /// Core's name of the count.
        name: &'static str,
        count: i32,
        max: usize,
    },
    #[error("Unsupported CAddress disk format version: iostream error")]
    AddressVersion,
    #[error("{kind}: iostream error")]
    Address { kind: ParseErrorKind },
    #[error("Corrupt data. Consistency check failed with code {code}: iostream error")]
    Check {
        /// Core's fault number.
        code: i32,
    },
}

impl From<ParseError> for FileFault {
    fn from(error: ParseError) -> Self {
        match error.kind {
            ParseErrorKind::Truncated => Self::End,
            kind => Self::Address { kind },
        }
    }
}

/// Replaces a file atomically.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

/// Appends the hash of `bytes`.
pub(crate) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let hash = sha256d(&bytes);
    bytes.extend_from_slice(&hash);
    bytes
}

/// Appends an address in Core's disk serialization.
pub(crate) fn write_address(address: &PeerAddress, out: &mut Vec<u8>) {
    out.extend_from_slice(&(ADDRESS_VERSION | ADDRESS_V2).to_le_bytes());
    address.encode(out);
}

impl Tables {
    pub(super) fn to_file(&self, magic: [u8; 4]) -> Vec<u8> {
        let mut out = magic.to_vec();
        out.extend_from_slice(&[FORMAT, COMPAT_BASE + FORMAT]);
        out.extend_from_slice(&self.key);
        let new: Vec<_> = self.entries.iter().filter(|(_, entry)| !entry.is_tried).collect();
        let tried = self.entries.values().filter(|entry| entry.is_tried);
        let mut number = |number: usize| out.extend_from_slice(&(number as i32).to_le_bytes());
        number(new.len());
        number(self.entries.len() - new.len());
        number(NEW_BUCKETS ^ BUCKETS_MASK);
        for entry in new.iter().map(|(_, entry)| *entry).chain(tried) {
            write_address(&entry.address, &mut out);
            entry.source.encode(&mut out);
            out.extend_from_slice(&entry.success_s.to_le_bytes());
            out.extend_from_slice(&entry.attempts.to_le_bytes());
        }
        // New entries are sorted by id.
        let index_of = |id: &Id| new.binary_search_by_key(id, |(id, _)| **id).unwrap_or_default();
        for places in &self.new {
            let held: Vec<_> = places.iter().filter(|id| **id != NONE).map(index_of).collect();
            for number in std::iter::once(held.len()).chain(held) {
                out.extend_from_slice(&(number as i32).to_le_bytes());
            }
        }
        // No asmap.
        out.extend_from_slice(&[0; 32]);
        seal(out)
    }

    /// Reads a file. Drops entries without a position, after a collision or a change of format.
    pub(super) fn from_file(bytes: &[u8], magic: [u8; 4], rng: Rng) -> Result<Self, FileFault> {
        let mut reader = Reader::open(bytes, magic)?;
        let format = reader.byte()?;
        let compat = reader.byte()?;
        let lowest = compat.checked_sub(COMPAT_BASE).ok_or(FileFault::Compat { compat })?;
        if lowest > FORMAT {
            return Err(FileFault::Version { format, lowest });
        }
        let key: Key = *reader.take()?;
        let (new, tried) = (reader.int()?, reader.int()?);
        let buckets = reader.int()? ^ if format >= 1 { BUCKETS_MASK as i32 } else { 0 };
        let new = count("nNew", new, NEW_BUCKETS * BUCKET_SIZE)?;
        let tried = count("nTried", tried, TRIED_BUCKETS * BUCKET_SIZE)?;
        let mut tables = Self::new(key, rng);
        for _ in 0..new {
            let entry = reader.entry(format)?;
            tables.restore(entry);
        }
        let mut lost = 0;
        for _ in 0..tried {
            let entry = Entry { is_tried: true, ..reader.entry(format)? };
            let (bucket, place) = tables.location(&entry, false);
            if entry.host().is_valid() && tables.tried[bucket][place] == NONE {
                tables.tried[bucket][place] = tables.next_id;
                tables.restore(entry);
            } else {
                lost += 1;
            }
        }
        let mut places = Vec::new();
        for bucket in 0..buckets.max(0) {
            for _ in 0..reader.int()?.max(0) {
                let index = reader.int()?;
                if let Ok(id) = Id::try_from(index)
                    && id < new as Id
                {
                    places.push((bucket as usize, id));
                }
            }
        }
        let asmap = if format >= 2 { *reader.take::<32>()? } else { [0; 32] };
        let is_same = buckets == NEW_BUCKETS as i32 && asmap == [0; 32];
        if !is_same {
            tracing::debug!(
                target: "addrman",
                "Bucketing method was updated, re-bucketing addrman entries from disk"
            );
        }
        for (bucket, id) in places {
            tables.restore_place(id, is_same.then_some(bucket));
        }
        tables.forget_lost(lost);
        if let Some(code) = tables.fault() {
            return Err(FileFault::Check { code });
        }
        reader.close()?;
        Ok(tables)
    }

    fn restore(&mut self, entry: Entry) {
        let id = self.next_id;
        self.next_id += 1;
        let count = self.count_mut(&entry);
        if entry.is_tried {
            count.tried += 1;
        } else {
            count.new += 1;
        }
        self.ids.insert(entry.address.endpoint, id);
        self.entries.insert(id, Entry { position: self.all.len(), ..entry });
        self.all.push(id);
    }

    /// Places a new address: in its former bucket if known and free, otherwise by its first source.
    fn restore_place(&mut self, id: Id, bucket: Option<usize>) {
        let Some(entry) = self.entries.get(&id).copied() else { return };
        if !entry.host().is_valid() || entry.references == NEW_PER_ADDRESS {
            return;
        }
        let before = bucket.map(|bucket| (bucket, entry.place(&self.key, true, bucket)));
        let before = before.filter(|(bucket, place)| self.new[*bucket][*place] == NONE);
        let (bucket, place) = before.unwrap_or_else(|| self.location(&entry, true));
        if self.new[bucket][place] == NONE {
            self.new[bucket][place] = id;
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.references += 1;
            }
        }
    }

    fn forget_lost(&mut self, lost_tried: usize) {
        let is_lost = |entry: &Entry| !entry.is_tried && entry.references == 0;
        let lost = self.entries.iter().filter(|(_, entry)| is_lost(entry));
        let lost: Vec<Id> = lost.map(|(id, _)| *id).collect();
        for id in &lost {
            self.delete(*id);
        }
        if lost.len() + lost_tried > 0 {
            tracing::debug!(
                target: "addrman",
                "addrman lost {} new and {lost_tried} tried addresses due to collisions or invalid addresses",
                lost.len()
            );
        }
    }
}

/// Reads a file; checks consistency and the round trip.
#[cfg(fuzzing)]
pub(crate) fn fuzz_file(bytes: &[u8], magic: [u8; 4]) {
    let Ok(mut tables) = Tables::from_file(bytes, magic, Rng::seeded(0)) else { return };
    assert_eq!(tables.fault(), None);
    let written = tables.to_file(magic);
    let again = Tables::from_file(&written, magic, Rng::seeded(0)).expect("a file of our own");
    assert_eq!(again.count(None), tables.count(None));
    assert_eq!(again.to_file(magic), written);
    // Data from a file must not break later operations.
    let now_s = 1_700_000_000;
    for (address, _) in
        [tables.select(false, &[], now_s), tables.select(true, &[], now_s)].into_iter().flatten()
    {
        tables.attempt(&address.endpoint, true, now_s);
        tables.good(&address.endpoint, true, now_s);
        tables.resolve_collisions(now_s);
    }
    assert_eq!(tables.fault(), None);
}

fn count(name: &'static str, count: i32, max: usize) -> Result<usize, FileFault> {
    let right = usize::try_from(count).ok().filter(|count| *count <= max);
    right.ok_or(FileFault::Count { name, count, max })
}

/// Reader of Core's file format: the chain's magic first, a checksum at the end.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    inner: assay_wire::Reader<'a>,
}

impl<'a> Reader<'a> {
    /// # Errors
    /// Another chain's magic.
    pub(crate) fn open(bytes: &'a [u8], magic: [u8; 4]) -> Result<Self, FileFault> {
        let mut reader = Self { bytes, inner: assay_wire::Reader::new(bytes, 0) };
        if *reader.take::<4>()? == magic { Ok(reader) } else { Err(FileFault::Magic) }
    }

    /// # Errors
    /// Checksum mismatch.
    pub(crate) fn close(mut self) -> Result<(), FileFault> {
        let hash = sha256d(&self.bytes[..self.inner.position()]);
        if *self.take::<32>()? == hash { Ok(()) } else { Err(FileFault::Checksum) }
    }

    fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], FileFault> {
        Ok(self.inner.take()?)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, FileFault> {
        self.take::<1>().map(|[byte]| *byte)
    }

    fn int(&mut self) -> Result<i32, FileFault> {
        self.take().map(|bytes| i32::from_le_bytes(*bytes))
    }

    fn entry(&mut self, format: u8) -> Result<Entry, FileFault> {
        let has_v2 = format >= 3;
        let address = self.address(has_v2)?;
        let source =
            if has_v2 { Host::read(&mut self.inner)? } else { Host::from_v1(*self.take()?) };
        let success_s = i64::from_le_bytes(*self.take()?);
        let attempts = self.int()?;
        Ok(Entry { success_s, attempts, ..Entry::new(address, source) })
    }

    /// Address in the format of [`write_address`] or of older versions of Core.
    pub(crate) fn address(&mut self, may_be_v2: bool) -> Result<PeerAddress, FileFault> {
        let version = u32::from_le_bytes(*self.take()?) & !ADDRESS_VERSION_IGNORED;
        match version {
            0 => {
                let time = u32::from_le_bytes(*self.take()?);
                let services = u64::from_le_bytes(*self.take()?);
                let host = Host::from_v1(*self.take()?);
                let port = u16::from_be_bytes(*self.take()?);
                Ok(PeerAddress { time, services, endpoint: Endpoint { host, port } })
            }
            ADDRESS_V2 if may_be_v2 => Ok(PeerAddress::read(&mut self.inner)?),
            _ => Err(FileFault::AddressVersion),
        }
    }
}

/// Core `addrman_impl.h`: `FILE_FORMAT` (`V4_MULTIPORT`), `INCOMPATIBILITY_BASE`.
const FORMAT: u8 = 4;
const COMPAT_BASE: u8 = 32;
/// Core inverts this bit to make the bucket count unreadable for the oldest versions.
const BUCKETS_MASK: usize = 1 << 30;
/// Core `protocol.h`: `DISK_VERSION_INIT`, `DISK_VERSION_IGNORE_MASK`, `DISK_VERSION_ADDRV2`.
const ADDRESS_VERSION: u32 = 220_000;
const ADDRESS_VERSION_IGNORED: u32 = 0x0007_ffff;
const ADDRESS_V2: u32 = 1 << 29;
