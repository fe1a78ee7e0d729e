//! Taking in what block files hold: our own, whose index is to be built again (Core's `-reindex`), and those of others
//! (`-loadblock`; Core `validation.cpp`, `LoadExternalBlockFile`).
//!
//! Blocks may come in any order: one whose parent is not known waits, as its place in the files, until the parent has come.
//! What is there already is passed over, so an import that was interrupted is begun again from the start.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use assay_consensus::block::BlockError;
use assay_consensus::header::{HeaderError, check_header};
use assay_store::{BlockFiles, BlockFilesError, BlockPlace, BlockPos, Finding, RecordRules};
use assay_wire::{Block, BlockHash, Header};

use super::Engine;
use crate::chainstate::{AcceptError, Archive};
use crate::error::{EngineError, ImportError};
use crate::prepared::Prepared;

/// What came of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Blocks that were taken.
    pub blocks: u64,
    /// Whether all files were read to their end.
    pub is_whole: bool,
}

/// An import on its way.
struct Import<'a> {
    engine: &'a Engine,
    files: &'a BlockFiles,
    /// Whether the files are those of the archive, so that blocks stay where they are.
    is_own: bool,
    goes_on: &'a dyn Fn() -> bool,
    /// Places of blocks by the parent that they wait for.
    orphans: HashMap<BlockHash, Vec<BlockPlace>>,
    /// Blocks and bytes taken since blocks were last connected.
    waiting: (usize, usize),
    blocks: u64,
}

impl Engine {
    /// Whether the block files are to be read again, because that was asked for or begun by an earlier process.
    pub fn is_reindexing(&self) -> bool {
        self.is_reindexing
    }

    /// Finds out which blocks the archive's files hold, and connects them. `goes_on` is asked again and again.
    ///
    /// # Errors
    /// The files cannot be read, or the engine fails.
    pub fn reindex(&self, goes_on: &dyn Fn() -> bool) -> Result<Imported, ImportError> {
        let dir = &self.chain.config.datadir;
        let files = self.chain.config.blocks_dir.clone().unwrap_or_else(|| dir.join("blocks"));
        let imported = match BlockFiles::open(&files, self.params().disk_magic) {
            Ok(files) => self.import(&files, true, goes_on)?,
            Err(BlockFilesError::Empty { .. }) => Imported { blocks: 0, is_whole: true },
            Err(error) => return Err(error.into()),
        };
        if imported.is_whole {
            // What is old may go from now on.
            self.lock_tree().is_importing = false;
            self.flush()?;
            assay_store::end_reindex(dir).map_err(ImportError::Mark)?;
            tracing::info!("Reindexing finished");
        }
        Ok(imported)
    }

    /// Takes the blocks of a file, or of a folder of files, of which nothing else is assumed.
    ///
    /// # Errors
    /// As [`Engine::reindex`].
    pub fn load_blocks(
        &self,
        path: &Path,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Imported, ImportError> {
        let files = BlockFiles::open(path, self.params().disk_magic)?;
        self.import(&files, false, goes_on)
    }

    fn import(
        &self,
        files: &BlockFiles,
        is_own: bool,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Imported, ImportError> {
        let orphans = HashMap::new();
        let mut import =
            Import { engine: self, files, is_own, goes_on, orphans, waiting: (0, 0), blocks: 0 };
        let count = files.files().len();
        let mut is_whole = true;
        for (file, path) in (0..).zip(files.files()) {
            let name = path.path.display();
            let percent = file as usize * 100 / count;
            tracing::info!("Reading block file {name} ({percent}% of the files are done)");
            if !import.read_file(file)? {
                is_whole = false;
                break;
            }
        }
        import.connect()?;
        Ok(Imported { blocks: import.blocks, is_whole })
    }
}

impl Import<'_> {
    /// Takes the blocks of one file; `false` where it was asked to end.
    fn read_file(&mut self, file: u32) -> Result<bool, ImportError> {
        let params = self.engine.params();
        let rules = RecordRules {
            bytes_max: u32::try_from(params.block_bytes_max()).unwrap_or(u32::MAX),
            is_header: &|bytes| {
                let header = Header::parse(bytes);
                check_header(params, &header, &header.hash()).is_ok()
            },
        };
        let mut found = Vec::new();
        self.files.scan(file, &rules, &mut |finding, _| {
            if let Finding::Block { place, header } = finding {
                found.push((place, Header::parse(&header)));
            }
        })?;
        for (place, header) in found {
            if !(self.goes_on)() {
                return Ok(false);
            }
            let hash = header.hash();
            if self.engine.block_entry(&hash).is_some_and(|entry| entry.has_data) {
                continue;
            }
            if self.engine.block_entry(&header.prev_block).is_none() {
                let parent = header.prev_block;
                tracing::debug!(target: "reindex", "LoadExternalBlockFile: Out of order block {hash}, parent {parent} not known");
                self.orphans.entry(parent).or_default().push(place);
                continue;
            }
            self.take_branch(place, hash)?;
        }
        Ok(true)
    }

    /// Takes a block and all that waited for it.
    fn take_branch(&mut self, place: BlockPlace, hash: BlockHash) -> Result<(), ImportError> {
        let mut open = vec![hash];
        self.take(place)?;
        while let Some(parent) = open.pop() {
            for place in self.orphans.remove(&parent).unwrap_or_default() {
                let child = Header::parse(&self.header(&place)?).hash();
                tracing::debug!(target: "reindex", "LoadExternalBlockFile: Processing out of order child {child} of {parent}");
                self.take(place)?;
                open.push(child);
            }
        }
        Ok(())
    }

    fn header(&self, place: &BlockPlace) -> Result<[u8; Header::SIZE], ImportError> {
        let bytes = self.files.read_part(place, Header::SIZE as u32)?;
        // A scan finds no record that is shorter than a header.
        Ok(bytes.try_into().unwrap_or([0; Header::SIZE]))
    }

    /// Takes one block whose parent is known. One that breaks a rule is passed over.
    fn take(&mut self, place: BlockPlace) -> Result<(), ImportError> {
        let raw = self.files.read(&place)?;
        let Ok(block) = Block::parse_prefix(raw, self.engine.params().encoding) else {
            let path = self.files.path_of(&place).display();
            tracing::warn!("{path}: the record at {} is not a block", place.offset);
            return Ok(());
        };
        let pos = self.own_pos(&place, &block);
        let bytes = block.bytes().len();
        if self.engine.keep_imported(block, pos)? {
            self.blocks += 1;
            self.waiting = (self.waiting.0 + 1, self.waiting.1 + bytes);
        }
        if self.waiting.0 >= BLOCKS_AT_ONCE || self.waiting.1 >= BYTES_AT_ONCE {
            self.connect()?;
        }
        Ok(())
    }

    /// Where the archive has the block; `None` where it is to be appended, also if its record is longer than the block.
    fn own_pos(&self, place: &BlockPlace, block: &Block) -> Option<BlockPos> {
        let is_exact = block.bytes().len() == place.size as usize;
        let file = self.files.number_of(place).filter(|_| self.is_own && is_exact)?;
        Some(BlockPos::of(file, u32::try_from(place.offset).ok()?, block.bytes()))
    }

    /// Connects what has been taken.
    fn connect(&mut self) -> Result<(), ImportError> {
        self.waiting = (0, 0);
        loop {
            let report = self.engine.connect(|| false)?;
            for fault in &report.faults {
                tracing::warn!("block {} is invalid: {}", fault.hash, fault.reason);
            }
            if report.is_done || !(self.goes_on)() {
                return Ok(());
            }
        }
    }
}

impl Engine {
    /// Keeps a block without connecting it; `false` where it breaks a rule or is known.
    fn keep_imported(&self, block: Block, pos: Option<BlockPos>) -> Result<bool, EngineError> {
        let hash = block.hash();
        let pool = Some(&*self.chain.pool);
        let prepared = Prepared::in_parallel(block, hash, &self.chain.pool);
        let passed_over = |error: &BlockError| {
            tracing::warn!("block {hash} is passed over: {error}");
            Ok(false)
        };
        if let Err(error) = prepared.check_itself(self.params(), pool) {
            return passed_over(&error);
        }
        let prepared = Arc::new(prepared);
        let mut state = self.lock_tree();
        state.check()?;
        let archive = pos.map_or(Archive::Now, Archive::Has);
        match self.chain.accept(&mut state, &prepared, pool, archive, |_, _| ()) {
            Ok(id) => {
                state.ready.keep(id, prepared);
                Ok(true)
            }
            Err(AcceptError::Known(_)) => Ok(false),
            // Its parent was passed over.
            Err(AcceptError::Rule(BlockError::Header(HeaderError::ParentUnknown { .. }))) => {
                Ok(false)
            }
            Err(AcceptError::Rule(error)) => passed_over(&error),
            Err(AcceptError::Engine(error)) => state.poison(Err(error)),
        }
    }
}

/// Blocks that are connected together, so that scripts of many fill all cores.
const BLOCKS_AT_ONCE: usize = 1024;
/// Their bytes: what waits in memory to be connected has room for more.
const BYTES_AT_ONCE: usize = 32 << 20;
