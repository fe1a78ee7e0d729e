//! Reads logs from files, compressed or not, and standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use flate2::read::MultiGzDecoder;
use serde::Serialize;

use super::{Fault, FileSummary, Found, Parser, Row, Sessions};

/// Bytes per read: amortises the call, and fits into the cache.
const CHUNK_BYTES: usize = 1 << 18;
const GZIP: [u8; 2] = [0x1f, 0x8b];

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Throughput {
    pub bytes: u64,
    /// Seconds of reading, decompression and parsing, without the handling of rows.
    pub seconds: f64,
}

impl Throughput {
    pub fn bytes_per_s(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 / self.seconds } else { 0.0 }
    }
}

/// Reads the log at `path` (`-` is standard input) and passes every row to `sink`.
///
/// Compressed data (gzip) is detected by its first bytes. Truncated or damaged data is read as far as possible, and is a fault.
///
/// # Errors
/// When the file cannot be read, and errors of `sink`.
pub fn read(
    path: &Path,
    throughput: &mut Throughput,
    sink: &mut dyn FnMut(Row) -> anyhow::Result<()>,
) -> anyhow::Result<FileSummary> {
    let file = path.display().to_string();
    let cannot_read = || format!("cannot read {file}");
    let mut source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).with_context(cannot_read)?)
    };
    let mut first = Vec::new();
    source.by_ref().take(GZIP.len() as u64).read_to_end(&mut first).with_context(cannot_read)?;
    let compressed = first == GZIP;
    let source = io::Cursor::new(first).chain(source);
    let mut source: Box<dyn Read> = if compressed {
        Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, source)))
    } else {
        Box::new(source)
    };
    let (mut parser, mut sessions) = (Parser::new(), Sessions::new());
    let (mut buffer, mut bytes) = (vec![0; CHUNK_BYTES], 0);
    let mut in_sink = Duration::ZERO;
    let begin = Instant::now();
    // Rows are delivered per chunk: reading the clock for each would cost more than the line.
    let mut rows: Vec<Row> = Vec::new();
    loop {
        let count = match source.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // The rest of a damaged file is lost, but not the part before.
            Err(error) if compressed => {
                let fault = Fault::Compressed { reason: error.to_string() };
                let (line, excerpt) = (parser.lines(), String::new());
                rows.extend(sessions.take(Found { line, event: Err(fault), excerpt }));
                0
            }
            Err(error) => return Err(error).with_context(cannot_read),
        };
        bytes += count as u64;
        parser.feed(&buffer[..count], &mut |found| rows.extend(sessions.take(found)));
        if count == 0 {
            parser.finish(&mut |found| rows.extend(sessions.take(found)));
            rows.extend(sessions.finish());
        }
        let start = Instant::now();
        let sunk = rows.drain(..).try_for_each(&mut *sink);
        in_sink += start.elapsed();
        sunk?;
        if count == 0 {
            break;
        }
    }
    throughput.bytes += bytes;
    throughput.seconds += begin.elapsed().saturating_sub(in_sink).as_secs_f64();
    Ok(FileSummary { file, bytes, lines: parser.lines(), compressed, ..sessions.tally().summary() })
}
