//! A short disk benchmark: write, sync, read, and small synced writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use assay_report::Temporary;
use assay_report::record::{Record, Unit};
use assay_report::stats::median;
use assay_report::stats::random::SplitMix64;

use super::effort::{Limit, Steps};
use crate::machine::disk::forget_file;

/// Bytes between two syncs, and per timed read.
const PART: usize = 16 << 20;
/// Bytes per call.
const CHUNK: usize = 1 << 20;
/// Shares of the four probes in the time of a survey.
const WEIGHTS: [f64; 4] = [0.2, 0.15, 0.1, 0.15];
const PAGE: usize = 4096;
/// Free disk space to leave after the file.
const ROOM: u64 = 256 << 20;

/// Measures the disk of `dir` with a temporary file. Returns the number of samples.
pub(super) fn measure(
    dir: &Path,
    limits: &[Limit; 5],
    steps: &mut Steps<'_>,
    record: &mut Record,
) -> anyhow::Result<u64> {
    let wanted = (limits[0].samples * PART) as u64 + ROOM;
    let unusable = |path: &Path| format!("cannot use {}", path.display());
    let stat = rustix::fs::statvfs(dir).map_err(io::Error::from).with_context(|| unusable(dir))?;
    let available = stat.f_bavail.saturating_mul(stat.f_frsize);
    ensure!(
        available >= wanted,
        "{} has {available} bytes left, {wanted} are needed",
        dir.display()
    );
    let path = dir.join(format!(".assay-disk-{}", std::process::id()));
    let mut options = OpenOptions::new();
    // Never overwrites an existing file.
    options.read(true).write(true).create_new(true);
    let created = Temporary::file(path.clone(), |path| options.open(path));
    created
        .and_then(|(file, opened)| work(opened, file.path(), limits, steps, record))
        .with_context(|| unusable(&path))
}

fn work(
    mut file: File,
    path: &Path,
    limits: &[Limit; 5],
    steps: &mut Steps<'_>,
    record: &mut Record,
) -> io::Result<u64> {
    let [writes, reads, random_reads, syncs, _] = limits;
    let mut chunk = noise(CHUNK);
    let mut number = 0u64;
    let written = timed(writes, WEIGHTS[0], steps, || {
        for _ in 0..PART / CHUNK {
            // Distinct chunks, against deduplication.
            chunk[..8].copy_from_slice(&number.to_le_bytes());
            number += 1;
            file.write_all(&chunk)?;
        }
        file.sync_all()
    })?;
    let bytes = (written.len() * PART) as u64;

    let read_is_cold = forget_file(path).is_ok();
    file.seek(SeekFrom::Start(0))?;
    // Reads only written parts; a disk that is slower at reading stops at the time limit.
    let parts = Limit { samples: written.len(), ..*reads };
    let read = timed(&parts, WEIGHTS[1], steps, || {
        (0..PART / CHUNK).try_for_each(|_| file.read_exact(&mut chunk))
    })?;

    let _ = forget_file(path);
    let mut random = SplitMix64::new(1);
    let mut page = [0u8; PAGE];
    let pages = bytes / PAGE as u64;
    let random_reads = timed(random_reads, WEIGHTS[2], steps, || {
        file.seek(SeekFrom::Start(random.below(pages) * PAGE as u64))?;
        file.read_exact(&mut page)
    })?;

    let mut at = 0;
    let fsyncs = timed(syncs, WEIGHTS[3], steps, || {
        file.seek(SeekFrom::Start(at))?;
        at += PAGE as u64;
        file.write_all(&page)?;
        file.sync_data()
    })?;
    let cold = if read_is_cold { "from the disk" } else { "from memory" };
    let mut count = 0;
    for (what, times_us) in [
        ("16 MiB written, synced".to_owned(), written),
        (format!("16 MiB read, {cold}"), read),
        ("4 KiB read anywhere".to_owned(), random_reads),
        ("4 KiB written, synced".to_owned(), fsyncs),
    ] {
        count += times_us.len() as u64;
        let times: Vec<f64> = times_us.iter().map(|us| us / 1e6).collect();
        record.add_rounds(("disk", &what), ("time", Unit::Seconds), &times);
        let bytes = if what.starts_with("16") { PART } else { PAGE };
        let rate = bytes as f64 / f64::from(1 << 20) / median(&times);
        record.add(("disk", &what, None), &[("MiB", Unit::PerSecond, Some(rate))]);
    }
    Ok(count)
}

/// Microseconds of each call.
fn timed(
    limit: &Limit,
    weight: f64,
    steps: &mut Steps<'_>,
    mut work: impl FnMut() -> io::Result<()>,
) -> io::Result<Vec<f64>> {
    let mut times_us = Vec::with_capacity(limit.samples);
    let begin = Instant::now();
    while limit.goes_on(times_us.len(), begin) {
        let start = Instant::now();
        work()?;
        times_us.push(start.elapsed().as_secs_f64() * 1e6);
        steps.report(weight, limit, times_us.len(), begin);
    }
    steps.end(weight);
    Ok(times_us)
}

/// Incompressible bytes.
fn noise(length: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(2);
    (0..length / 8).flat_map(|_| random.next().to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::effort::Effort;
    use super::*;

    #[test]
    fn measures_and_cleans_up() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let limits = Effort::Quick.limits();
        let mut record = Record::default();
        match measure(folder.path(), &limits, &mut Steps::new(&|_| ()), &mut record) {
            Ok(samples) => {
                assert_eq!(samples, 2 + 2 + 300 + 16);
                assert_eq!(record.values("4 KiB read anywhere", "time").len(), 300);
                assert!(record.cells.iter().all(|cell| cell.value > 0.0), "{:?}", record.cells);
            }
            Err(error) if error.to_string().ends_with(" are needed") => {
                eprintln!("skipped: the disk is full");
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("readable").count(),
            0,
            "nothing is left"
        );
        let missing = folder.path().join("missing");
        let missing = measure(&missing, &limits, &mut Steps::new(&|_| ()), &mut record);
        let missing = missing.expect_err("no folder");
        assert!(missing.to_string().contains("missing"), "{missing}");
    }
}
