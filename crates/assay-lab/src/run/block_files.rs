//! Places block files that a node then reads at its own pace.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use assay_ledger::FilesLine;
use assay_report::atomic_file::{self, WriteError};

use super::{PAUSE, RunJob, check_stall, prepare, start_unmeasured, stopped, sync_launch};
use crate::chain::{Chain, block_files};
use crate::machine::disk::renew_folder;
use crate::process::Ports;
use crate::target::{DeliveryMethod, chain_folder};

/// Genesis block of regtest (Core's `kernel/chainparams.cpp`): missing in forged files, but a node needs it to position others.
const GENESIS: &str = "\
0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e6776\
8f617fc81bc3888a51323a9fb8aa4b1e5e4adae5494dffff7f20020000000101000000010000000000000000000000000000\
000000000000000000000000000000000000ffffffff4d04ffff001d0104455468652054696d65732030332f4a616e2f3230\
3039204368616e63656c6c6f72206f6e206272696e6b206f66207365636f6e64206261696c6f757420666f722062616e6b73\
ffffffff0100f2052a01000000434104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6\
bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac00000000";

impl RunJob<'_> {
    /// Places the block files of the plan in a node's data folder.
    pub(crate) fn place_blocks(&self, datadir: &Path) -> anyhow::Result<()> {
        match self.method {
            DeliveryMethod::Reindex => self.copy_files(datadir),
            DeliveryMethod::ReindexChainstate => {
                let whole = self.whole_folder()?;
                prepare::copy(&whole, datadir)?;
                Ok(())
            }
            DeliveryMethod::Rpc
            | DeliveryMethod::Peer
            | DeliveryMethod::Files
            | DeliveryMethod::LoadBlock => Ok(()),
        }
    }

    /// Copies, because nodes append to the last file.
    fn copy_files(&self, datadir: &Path) -> anyhow::Result<()> {
        let to = datadir.join(chain_folder(&self.chain.header.chain)).join("blocks");
        if let Some(files) = &self.chain.header.files {
            atomic_file::create_folder(&to)?;
            return write_in_order(self.chain, files, &to);
        }
        let from = self.chain.blocks_path();
        atomic_file::create_folder(&to)?;
        for (number, file) in block_files(&from).map_err(WriteError::at(&from))?.iter().enumerate()
        {
            let copy = to.join(file.file_name().unwrap_or_default());
            let copied = match number {
                0 => copy_behind_genesis(file, &copy),
                _ => fs::copy(file, &copy).map(drop),
            };
            copied.map_err(WriteError::at(&copy))?;
        }
        Ok(())
    }

    /// A data folder of this target with the whole chain: created once for all its runs, untimed.
    fn whole_folder(&self) -> anyhow::Result<PathBuf> {
        let work = self.out_dir.join("work");
        let folder = work.join(format!("whole-{}", self.target.name));
        // Contents of the folder, and the program that created it.
        let mark = work.join(format!("whole-{}.txt", self.target.name));
        let what = format!("{} {:?}", self.chain.tip.hash, self.target.fingerprint);
        if folder.is_dir() && fs::read_to_string(&mark).is_ok_and(|text| text == what) {
            return Ok(folder);
        }
        renew_folder(&folder)?;
        let folder = folder.canonicalize().unwrap_or(folder);
        self.copy_files(&folder)?;
        self.index_files(&folder)?;
        atomic_file::write(&mark, what.as_bytes())?;
        Ok(folder)
    }

    /// Lets the target import the block files in `folder` up to the tip.
    fn index_files(&self, folder: &Path) -> anyhow::Result<()> {
        let ports = Ports::free()?;
        let with = sync_launch(self.chain, self.plan, folder, &ports);
        let log = self.out_dir.join("logs").join(format!("whole-{}.log", self.target.name));
        let (process, client, mut height) =
            start_unmeasured(self.target, DeliveryMethod::Reindex, &with, &log)?;
        let mut since = Instant::now();
        while height < u64::from(self.chain.tip.height) {
            if self.reporter.wants_stop() {
                return Err(stopped(height as u32));
            }
            check_stall(self.plan, height as u32, since.elapsed().as_secs_f64(), &process)?;
            thread::sleep(PAUSE);
            let now: u64 = client
                .call("getblockcount", "[]")
                .with_context(|| format!("after height {height}"))?;
            if now > height {
                (height, since) = (now, Instant::now());
            }
        }
        process.stop(&client)?;
        Ok(())
    }
}

/// Writes the blocks of another program's files by height up to the tip, without obfuscation: all targets read the same bytes.
fn write_in_order(chain: &Chain, files: &FilesLine, to: &Path) -> anyhow::Result<()> {
    let decode = |text: &str| {
        let mut bytes = vec![0; text.len() / 2];
        faster_hex::hex_decode(text.as_bytes(), &mut bytes).ok()?;
        Some(bytes)
    };
    let framing = decode(&chain.header.magic).zip(decode(&files.genesis));
    let (magic, genesis) = framing.ok_or_else(|| {
        let ledger = chain.dir.join("ledger.jsonl");
        anyhow!("{}: the ledger does not say how blocks are framed", ledger.display())
    })?;
    let head = |bytes: u64| [&magic[..], &(bytes as u32).to_le_bytes()].concat();
    let (mut number, mut room) = (0, FILE_BYTES_MAX);
    let name = |number: u32| to.join(format!("blk{number:05}.dat"));
    let failed = |number: u32, source| WriteError { path: name(number), source };
    let create = |number: u32| {
        let file = File::create(name(number)).map_err(|error| failed(number, error))?;
        Ok::<_, WriteError>(BufWriter::with_capacity(1 << 20, file))
    };
    let mut out = create(number)?;
    out.write_all(&[&head(genesis.len() as u64)[..], &genesis].concat())
        .map_err(|error| failed(number, error))?;
    for block in &chain.blocks {
        if block.bytes + 8 > room {
            out.flush().map_err(|error| failed(number, error))?;
            (number, room) = (number + 1, FILE_BYTES_MAX);
            out = create(number)?;
        }
        room -= block.bytes + 8;
        let mut written = out.write_all(&head(block.bytes));
        let read = chain.read_block(block, |piece| {
            if written.is_ok() {
                written = out.write_all(piece);
            }
        });
        written.map_err(|error| failed(number, error))?;
        read?;
    }
    Ok(out.flush().map_err(|error| failed(number, error))?)
}

/// Length of a block file (Bitcoin Core `node/blockstorage.h`, `MAX_BLOCKFILE_SIZE`).
const FILE_BYTES_MAX: u64 = 128 << 20;

/// Copies a block file and inserts the genesis block at the front.
fn copy_behind_genesis(from: &Path, to: &Path) -> io::Result<()> {
    let mut genesis = [0; GENESIS.len() / 2];
    faster_hex::hex_decode(GENESIS.as_bytes(), &mut genesis).map_err(io::Error::other)?;
    let mut source = File::open(from)?;
    // Every record begins with the network magic and its length.
    let mut magic = [0; 4];
    source.read_exact(&mut magic)?;
    source.rewind()?;
    let mut copy = File::create(to)?;
    copy.write_all(&magic)?;
    copy.write_all(&(genesis.len() as u32).to_le_bytes())?;
    copy.write_all(&genesis)?;
    io::copy(&mut source, &mut copy)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_comes_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, [0xfa, 0xbf, 0xb5, 0xda, 2, 0, 0, 0, 7, 7]).expect("writable");
        copy_behind_genesis(&from, &to).expect("copied");
        let copy = fs::read(&to).expect("readable");
        let (genesis, rest) = copy.split_at(8 + 285);
        assert_eq!(genesis[..8], [0xfa, 0xbf, 0xb5, 0xda, 0x1d, 1, 0, 0]);
        assert_eq!(rest, fs::read(&from).expect("readable"));
        fs::write(&from, [1, 2]).expect("writable");
        assert!(copy_behind_genesis(&from, &to).is_err(), "no record fits");
    }
}
