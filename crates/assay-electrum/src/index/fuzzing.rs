//! Entry points for the fuzz target of the index file readers.

use std::path::Path;
use std::sync::Arc;

use assay_store::io::{Io, SimIo};
use assay_wire::BlockHash;

use super::cache::Cache;
use super::page::{PAGE_BYTES, PageReader};
use super::row::Table;
use super::run::Run;
use super::{Index, IndexConfig, ScriptHash};

/// Parses bytes as a page, as a run, and as each index file.
pub fn files(bytes: &[u8]) {
    page(bytes);
    let io = SimIo::new();
    write(&io, "run", bytes);
    if let Ok(run) = Run::open(&io, Path::new("run"), &Cache::new(0)) {
        let run = Arc::new(run);
        for table in Table::ALL {
            let _ = run.stream(table).find(Result::is_err);
        }
    }
    for name in ["manifest.json", "heights.dat", "txs.dat", "run-00000000"] {
        let io = SimIo::new();
        io.create_dir_all(Path::new("index")).expect("a file system in memory");
        write(&io, &format!("index/{name}"), bytes);
        let config = IndexConfig::new("index", BlockHash([0; 32]));
        if let Ok(index) = Index::open(config, Arc::new(io)) {
            let _ = index.view().history(&ScriptHash([0; 32]), 0, 10);
        }
    }
}

/// Parses bytes, with the checksum prepended, as a page of each table.
fn page(bytes: &[u8]) {
    let mut page = bytes[..bytes.len().min(PAGE_BYTES)].to_vec();
    let Some((sum, rest)) = page.split_first_chunk_mut::<4>() else { return };
    *sum = crc32fast::hash(rest).to_le_bytes();
    for table in Table::ALL {
        let Ok(rows) = PageReader::new(table, 7, &page) else { continue };
        let rows: Vec<_> = rows.map_while(Result::ok).collect();
        assert!(rows.iter().all(|row| row.tx() >= 7), "rows come from the first transaction on");
    }
}

fn write(io: &SimIo, path: &str, bytes: &[u8]) {
    let file = io.open(Path::new(path), true).expect("a file system in memory");
    file.write_all_at(bytes, 0).expect("a file system in memory");
}
