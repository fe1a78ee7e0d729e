//! Benchmark of log parsing: generates logs of a gigabyte or more and reads them.
//!
//! `cargo run --release -p assay-lab --example log_speed -- [MB] [FOLDER]` creates the files in FOLDER (a temporary one by
//! default), reads each three times, checks every row, prints the fastest time and removes the files.

#![expect(clippy::print_stdout, reason = "a program")]

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use assay_lab::logs::{ReadError, Throughput, read};

/// Contents of a generated log.
#[derive(Clone, Copy)]
enum Kind {
    /// A tip on every line: the maximum work for its size.
    Tips,
    /// A tip after a dozen other lines, as at the end of a sync.
    Mixed,
    /// A tip with the lines of `-debug=bench` around it.
    Bench,
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let bytes = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1200u64) * 1_000_000;
    let temporary = tempfile::tempdir()?;
    let folder = arguments.next().map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    for (kind, name) in [(Kind::Mixed, "mixed"), (Kind::Tips, "tips"), (Kind::Bench, "bench")] {
        let path = folder.join(format!("{name}.log"));
        let rows = make(&path, kind, bytes)?;
        let mut best = Throughput::default();
        for _ in 0..3 {
            let mut throughput = Throughput::default();
            let mut height = 0;
            let summary = read(&path, &mut throughput, &mut |row| {
                assert_eq!(row.progress.height, height, "every tip, in order");
                height += 1;
                Ok::<_, ReadError>(())
            });
            let summary = summary.map_err(|error| error.source)?;
            assert_eq!((summary.rows, summary.faults), (rows, 0));
            if throughput.bytes_per_s() > best.bytes_per_s() {
                best = throughput;
            }
        }
        let speed = best.bytes_per_s() / 1e9;
        println!(
            "{name}: {} bytes, {rows} tips, {:.3} s, {speed:.2} GB/s",
            best.bytes, best.seconds
        );
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

/// Writes a log of at least `bytes` bytes; returns the number of tips.
fn make(path: &Path, kind: Kind, bytes: u64) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let (mut written, mut height, mut text) = (0, 0u64, String::new());
    while written < bytes {
        text.clear();
        let (minute, second) = (height / 60 % 60, height % 60);
        let stamp = format!("2026-11-20T19:{minute:02}:{second:02}.298159Z");
        // Writing to a string cannot fail.
        if matches!(kind, Kind::Mixed) {
            for peer in 0..6 {
                let _ = writeln!(text, "{stamp} [net] received: inv (37 bytes) peer={peer}");
                let _ = writeln!(
                    text,
                    "{stamp} [mempool] AcceptToMemoryPool: peer={peer}: accepted {height:064x} \
                     (poolsz 41230 txn, 61230 kB)"
                );
            }
        }
        if matches!(kind, Kind::Bench) {
            for step in [
                "  - Load block from disk: 3.11ms",
                "    - Sanity checks: 1.00ms [0.00s (0.01ms/blk)]",
                "    - Fork checks: 0.50ms [0.00s (0.01ms/blk)]",
                "      - Connect 484 transactions: 4.14ms (0.009ms/tx, 0.005ms/txin) [64.37s]",
                "    - Verify 860 txins: 4.25ms (0.005ms/txin) [66.98s (1.00ms/blk)]",
                "    - Write undo data: 0.10ms [0.00s (0.00ms/blk)]",
                "  - Connect total: 6.00ms [0.00s (0.00ms/blk)]",
                "  - Flush: 0.30ms [0.00s (0.00ms/blk)]",
                "  - Writing chainstate: 0.40ms [0.00s (0.00ms/blk)]",
            ] {
                let _ = writeln!(text, "{stamp} [bench] {step}");
            }
        }
        let _ = writeln!(
            text,
            "{stamp} UpdateTip: new best={height:064x} height={height} version=0x20000000 \
             log2_work=95.523053 tx={} date='2025-03-29T17:29:01Z' progress=0.964378 \
             cache=1578.9MiB(11964898txo)",
            height * 2000
        );
        if matches!(kind, Kind::Bench) {
            let _ = writeln!(text, "{stamp} [bench] - Connect block: 9.96ms [0.00s (1.00ms/blk)]");
        }
        out.write_all(text.as_bytes())?;
        written += text.len() as u64;
        height += 1;
    }
    out.flush()?;
    Ok(height)
}
