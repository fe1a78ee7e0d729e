//! A short measurement of the disk: written, synced, read back, and small writes that wait for the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use assay_report::stats::random::SplitMix64;
use assay_report::stats::ratio::Summary;
use serde::Serialize;

use crate::process::measured::forget_file;

/// Size of the file.
const BYTES: u64 = 256 << 20;
const BYTES_QUICK: u64 = 32 << 20;
/// Written and read at once.
const CHUNK: usize = 1 << 20;
/// Small writes, each of which waits for the disk.
const SYNCS: usize = 64;
const SYNCS_QUICK: usize = 16;
/// Small reads from anywhere in the file.
const READS: usize = 2000;
const READS_QUICK: usize = 300;
const PAGE: usize = 4096;
/// Room on the disk that has to be left after the file.
const ROOM: u64 = 256 << 20;

/// Why the disk could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// There is no room for the file.
    #[error("{} has {available} bytes left, {wanted} are needed", path.display())]
    Full {
        /// The folder.
        path: PathBuf,
        /// Bytes that are free.
        available: u64,
        /// Bytes that are wanted.
        wanted: u64,
    },
    /// The file cannot be used.
    #[error("cannot use {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// What a disk does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct DiskSpeed {
    /// Size of the file.
    pub bytes: u64,
    /// MiB written per second, the sync included.
    pub write_mib_per_s: f64,
    /// MiB read per second, after the file was taken out of the page cache.
    pub read_mib_per_s: f64,
    /// Whether the system took it out; if not, reads are those of memory.
    pub read_is_cold: bool,
    /// Reads of 4 KiB from anywhere: median, in microseconds.
    pub random_read_us: f64,
    /// Slowest of them.
    pub random_read_us_max: f64,
    /// Writing 4 KiB and waiting for the disk: median, in microseconds.
    pub fsync_us: f64,
    /// Slowest of them.
    pub fsync_us_max: f64,
}

/// Removes its file.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // If it cannot be removed, there is nobody to tell.
        let _ = fs::remove_file(&self.0);
    }
}

/// Measures the disk under `dir` with a file that is removed again.
pub(super) fn measure(dir: &Path, quick: bool) -> Result<DiskSpeed, DiskError> {
    let (bytes, syncs, reads) =
        if quick { (BYTES_QUICK, SYNCS_QUICK, READS_QUICK) } else { (BYTES, SYNCS, READS) };
    let available =
        free_bytes(dir).map_err(|source| DiskError::File { path: dir.to_owned(), source })?;
    if available < bytes + ROOM {
        return Err(DiskError::Full { path: dir.to_owned(), available, wanted: bytes + ROOM });
    }
    let path = dir.join(format!(".assay-disk-{}", std::process::id()));
    let fail = |source| DiskError::File { path: path.clone(), source };
    let mut options = OpenOptions::new();
    // A file that is there already belongs to somebody else.
    let file = options.read(true).write(true).create_new(true).open(&path).map_err(fail)?;
    let _removed_at_the_end = Temporary(path.clone());
    work(file, &path, bytes, syncs, reads).map_err(fail)
}

fn work(
    mut file: File,
    path: &Path,
    bytes: u64,
    syncs: usize,
    reads: usize,
) -> io::Result<DiskSpeed> {
    let mut chunk = noise(CHUNK);
    let mib = bytes as f64 / 1_048_576.0;
    let start = Instant::now();
    for number in 0..bytes / CHUNK as u64 {
        // No two pieces are equal, for disks that find out.
        chunk[..8].copy_from_slice(&number.to_le_bytes());
        file.write_all(&chunk)?;
    }
    file.sync_all()?;
    let write_mib_per_s = mib / start.elapsed().as_secs_f64();

    let read_is_cold = forget_file(path).is_ok();
    file.seek(SeekFrom::Start(0))?;
    let start = Instant::now();
    for _ in 0..bytes / CHUNK as u64 {
        file.read_exact(&mut chunk)?;
    }
    let read_mib_per_s = mib / start.elapsed().as_secs_f64();

    let _ = forget_file(path);
    let mut random = SplitMix64::new(1);
    let mut page = [0u8; PAGE];
    let pages = bytes / PAGE as u64;
    let random_reads = timed(reads, || {
        file.seek(SeekFrom::Start(random.below(pages) * PAGE as u64))?;
        file.read_exact(&mut page)
    })?;

    let mut at = 0;
    let fsyncs = timed(syncs, || {
        file.seek(SeekFrom::Start(at))?;
        at += PAGE as u64;
        file.write_all(&page)?;
        file.sync_data()
    })?;
    Ok(DiskSpeed {
        bytes,
        write_mib_per_s,
        read_mib_per_s,
        read_is_cold,
        random_read_us: random_reads.median,
        random_read_us_max: random_reads.max,
        fsync_us: fsyncs.median,
        fsync_us_max: fsyncs.max,
    })
}

/// Microseconds that each of some calls took.
fn timed(count: usize, mut work: impl FnMut() -> io::Result<()>) -> io::Result<Summary> {
    let mut times_us = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        work()?;
        times_us.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(Summary::of(&times_us))
}

/// Bytes that no disk and no filesystem makes smaller.
fn noise(length: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(2);
    (0..length / 8).flat_map(|_| random.next().to_le_bytes()).collect()
}

fn free_bytes(dir: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(dir)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_and_cleans_up() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        match measure(folder.path(), true) {
            Ok(speed) => {
                assert!(speed.write_mib_per_s > 0.0 && speed.read_mib_per_s > 0.0, "{speed:?}");
                assert!(speed.fsync_us_max >= speed.fsync_us && speed.random_read_us > 0.0);
            }
            Err(DiskError::Full { .. }) => eprintln!("skipped: the disk is full"),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0, "nothing is left");
        let missing = measure(&folder.path().join("missing"), true).expect_err("no folder");
        assert!(missing.to_string().contains("missing"), "{missing}");
    }
}
