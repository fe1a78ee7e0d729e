//! Blocks read from files by our store; raw blocks by the report's last step too.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use assay_bench::harness::Alternative;
use assay_bench::suite::Benchmark;
use assay_store::io::{Io, RealIo};
use assay_store::{BlockFiles, BlockPlace, MemTier, Store, StoreConfig, XorKey};
use assay_wire::{Block, Encoding};

use super::subjects::{LazySubject, Subject};
use super::xor::xor_wordwise;
use super::{ASSAY, ASSAY_STORE, InFolder, LAST_STEP, expect};
use crate::{cannot_use, write_file};

pub(super) fn benchmarks<'a>(subject: &LazySubject) -> Vec<Benchmark<'a>> {
    let (one, two) = (subject.clone(), subject.clone());
    vec![
        subject.benchmark("read-block", "blocks", move |name| {
            let subject = one.get()?;
            read(name, &subject, &block_folder(&subject.raw)?, |raw| {
                Block::parse(raw, Encoding::Segwit)?;
                Ok(())
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

const FILE: &str = "blk00000.dat";

const MAGIC: [u8; 4] = [0xf9, 0xbe, 0xb4, 0xd9];

/// Length of the frame: magic and block length.
const FRAME_BYTES: usize = 8;

/// A folder with the block in a file as Core would write it.
fn block_folder(raw: &[u8]) -> Result<InFolder<PathBuf>> {
    InFolder::open(|dir| {
        let mut bytes = [&MAGIC[..], &(raw.len() as u32).to_le_bytes(), raw].concat();
        XorKey::new(KEY).apply(&mut bytes, 0);
        write_file(&dir.join("xor.dat"), &KEY)?;
        write_file(&dir.join(FILE), &bytes)?;
        Ok(dir.to_owned())
    })
}

/// Reads the raw block, as Core's `ReadRawBlockFromDisk` does: open, frame, bytes.
fn read_raw(path: &Path) -> Result<Vec<u8>> {
    let mut file = File::open(path).with_context(|| cannot_use(path))?;
    let mut head = [0; FRAME_BYTES];
    file.read_exact(&mut head)?;
    xor_wordwise(&mut head, KEY);
    let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let mut raw = vec![0; size as usize];
    file.read_exact(&mut raw)?;
    xor_wordwise(&mut raw, KEY);
    Ok(raw)
}

fn read_raw_block(name: &str, subject: &Subject) -> Result<Vec<Alternative<'static>>> {
    let folder = block_folder(&subject.raw)?;
    expect(read_raw(&folder.join(FILE))? == subject.raw, name, LAST_STEP, "other bytes")?;
    let ours = read(name, subject, &folder, |_| Ok(()))?;
    let path = folder.join(FILE);
    let last_step = Alternative::fallible_calls(LAST_STEP, move || {
        // The folder lives as long as the benchmark.
        let _folder = &folder;
        read_raw(&path).map(drop)
    });
    Ok(std::iter::once(last_step).chain(ours).collect())
}

/// Reads the block by our store, from Core's file and from our own, and passes it to a function.
fn read(
    name: &str,
    subject: &Subject,
    folder: &Path,
    then: fn(Vec<u8>) -> Result<()>,
) -> Result<Vec<Alternative<'static>>> {
    let files = BlockFiles::open(folder, MAGIC)?;
    let (offset, size) = (FRAME_BYTES as u64, subject.raw.len() as u32);
    let place = BlockPlace { file: 0, offset, size };
    expect(files.read(&place)? == subject.raw, name, ASSAY, "other bytes")?;
    let own = InFolder::open(store)?;
    let pos = own.blocks.append_block(&subject.raw)?;
    let again = own.blocks.read_block(pos)?;
    expect(again == subject.raw, name, ASSAY_STORE, "other bytes")?;
    Ok(vec![
        Alternative::fallible_calls(ASSAY, move || then(files.read(&place)?)),
        Alternative::fallible_calls(ASSAY_STORE, move || then(own.blocks.read_block(pos)?)),
    ])
}

/// Our store on real files, with its coins in memory, since they are not measured.
fn store(dir: &Path) -> Result<Store> {
    let io: Arc<dyn Io> = Arc::new(RealIo);
    Ok(Store::open_with(&StoreConfig::new(dir, MAGIC), &io, Box::new(MemTier::new()))?)
}
