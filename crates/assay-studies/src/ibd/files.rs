//! Blocks read from files by our store; raw blocks by the report's last step too.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_bench::BenchError;
use assay_bench::harness::Alternative;
use assay_bench::suite::Benchmark;
use assay_store::io::{Io, RealIo};
use assay_store::{BlockFiles, BlockPlace, MemTier, Store, StoreConfig, XorKey};
use assay_wire::{Block, Encoding};
use tempfile::TempDir;

use super::subjects::{LazySubject, Subject};
use super::xor::xor_wordwise;
use super::{ASSAY, ASSAY_STORE, LAST_STEP, expect, file_error, folder, store_error};

/// Reading a block, parsed and raw.
pub(super) fn benchmarks<'a>(subject: &LazySubject) -> Vec<Benchmark<'a>> {
    let (one, two) = (subject.clone(), subject.clone());
    vec![
        subject.benchmark("read-block", "blocks", move |name| {
            let subject = one.get()?;
            read(name, &subject, &BlockFolder::new(&subject.raw)?, |raw| {
                Block::parse(raw, Encoding::Segwit).map(drop).map_err(store_error)
            })
        }),
        subject.benchmark("read-raw-block", "blocks", move |name| {
            let subject = two.get()?;
            read_raw_block(name, &subject)
        }),
    ]
}

/// Obfuscation key; Core obfuscates files by default.
const KEY: [u8; 8] = [0x3b, 0xa1, 0x07, 0xe4, 0x5c, 0x92, 0xd8, 0x6f];

const MAGIC: [u8; 4] = [0xf9, 0xbe, 0xb4, 0xd9];

/// Length of the frame: magic and block length.
const FRAME_BYTES: usize = 8;

/// A folder with the block in a file as Core would write it.
struct BlockFolder {
    path: PathBuf,
    dir: TempDir,
}

impl BlockFolder {
    fn new(raw: &[u8]) -> Result<Self, BenchError> {
        let dir = folder()?;
        let mut bytes = [&MAGIC[..], &(raw.len() as u32).to_le_bytes(), raw].concat();
        XorKey::new(KEY).apply(&mut bytes, 0);
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).map_err(file_error(&path))?;
            Ok::<_, BenchError>(path)
        };
        write("xor.dat", &KEY)?;
        Ok(Self { path: write("blk00000.dat", &bytes)?, dir })
    }
}

/// Reads the raw block, as Core's `ReadRawBlockFromDisk` does: open, frame, bytes.
fn read_raw(path: &Path) -> Result<Vec<u8>, BenchError> {
    let failed = file_error(path);
    let mut file = File::open(path).map_err(&failed)?;
    let mut head = [0; FRAME_BYTES];
    file.read_exact(&mut head).map_err(&failed)?;
    xor_wordwise(&mut head, KEY);
    let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let mut raw = vec![0; size as usize];
    file.read_exact(&mut raw).map_err(&failed)?;
    xor_wordwise(&mut raw, KEY);
    Ok(raw)
}

fn read_raw_block(name: &str, subject: &Subject) -> Result<Vec<Alternative<'static>>, BenchError> {
    let folder = BlockFolder::new(&subject.raw)?;
    expect(read_raw(&folder.path)? == subject.raw, name, LAST_STEP, "other bytes")?;
    let ours = read(name, subject, &folder, |_| Ok(()))?;
    let last_step = Alternative::fallible_calls(LAST_STEP, move || {
        // Captures the whole value: its folder is removed on drop.
        let folder: &BlockFolder = &folder;
        read_raw(&folder.path).map(drop)
    });
    Ok(std::iter::once(last_step).chain(ours).collect())
}

/// Reads the block by our store, from Core's file and from our own, and passes it to a function.
fn read(
    name: &str,
    subject: &Subject,
    folder: &BlockFolder,
    then: fn(Vec<u8>) -> Result<(), BenchError>,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let files = BlockFiles::open(folder.dir.path(), MAGIC).map_err(store_error)?;
    let (offset, size) = (FRAME_BYTES as u64, subject.raw.len() as u32);
    let place = BlockPlace { file: 0, offset, size };
    expect(files.read(&place).map_err(store_error)? == subject.raw, name, ASSAY, "other bytes")?;
    let own = StoreFolder::new()?;
    let pos = own.store.blocks.append_block(&subject.raw).map_err(store_error)?;
    let again = own.store.blocks.read_block(pos).map_err(store_error)?;
    expect(again == subject.raw, name, ASSAY_STORE, "other bytes")?;
    Ok(vec![
        Alternative::fallible_calls(ASSAY, move || then(files.read(&place).map_err(store_error)?)),
        Alternative::fallible_calls(ASSAY_STORE, move || {
            // Captures the whole value: its folder is removed on drop.
            let own: &StoreFolder = &own;
            then(own.store.blocks.read_block(pos).map_err(store_error)?)
        }),
    ])
}

/// Our store on real files, with its coins in memory, since they are not measured.
struct StoreFolder {
    store: Store,
    _dir: TempDir,
}

impl StoreFolder {
    fn new() -> Result<Self, BenchError> {
        let dir = folder()?;
        let io: Arc<dyn Io> = Arc::new(RealIo);
        let config = StoreConfig::new(dir.path(), MAGIC);
        let store =
            Store::open_with(&config, &io, Box::new(MemTier::new())).map_err(store_error)?;
        Ok(Self { store, _dir: dir })
    }
}
