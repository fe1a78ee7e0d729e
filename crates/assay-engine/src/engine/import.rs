//! Imports blocks from block files: the node's own, whose index is rebuilt (Core's `-reindex`), and those of others
//! (`-loadblock`; Core `validation.cpp`, `LoadExternalBlockFile`).
//!
//! Blocks may be in any order: a block with an unknown parent waits, as its position in the files, until the parent was imported.
//! Known blocks are skipped, so an interrupted import starts again from the beginning.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use assay_store::{BlockFiles, BlockFilesError, BlockPlace, BlockPos, Finding};
use assay_wire::{Block, BlockHash, Header};

use super::{Blocks, Engine};
use crate::chainstate::{AcceptError, Archive};
use crate::error::{EngineError, ImportError};
use crate::files::{Fault, InvalidBlock, Refused, read_plain_block, record_rules};
use crate::prepared::Prepared;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub blocks: u64,
    /// True if all files were read completely.
    pub is_whole: bool,
    /// Rejected blocks: without an undamaged copy, or breaking a rule that needs no coins; the first few.
    pub refused: Vec<InvalidBlock>,
}

struct Import<'a> {
    engine: &'a Engine,
    files: &'a BlockFiles,
    /// True if the files are those of the archive, so that blocks keep their positions.
    is_own: bool,
    goes_on: &'a dyn Fn() -> bool,
    /// Positions of blocks by the missing parent.
    orphans: HashMap<BlockHash, Vec<BlockPlace>>,
    /// Blocks and bytes imported since blocks were last connected.
    waiting: (usize, usize),
    blocks: u64,
    /// For each rejected block the copy that was read first, until an undamaged one is found.
    refused: Vec<InvalidBlock>,
}

impl Blocks<'_> {
    /// True if a reindex is requested, or was started by an earlier process.
    pub fn is_reindexing(self) -> bool {
        self.0.is_reindexing
    }

    /// Scans the archive's files for blocks and connects them. Calls `goes_on` periodically; false stops.
    ///
    /// # Errors
    /// The files cannot be read, or the engine fails.
    pub fn reindex(self, goes_on: &dyn Fn() -> bool) -> Result<Imported, ImportError> {
        let dir = &self.0.config().datadir;
        let files = self.0.config().blocks_dir.clone().unwrap_or_else(|| dir.join("blocks"));
        let imported = match BlockFiles::open(&files, self.0.params().disk_magic) {
            Ok(files) => self.import(&files, true, goes_on)?,
            Err(BlockFilesError::Empty { .. }) => {
                Imported { is_whole: true, ..Imported::default() }
            }
            Err(error) => return Err(error.into()),
        };
        if imported.is_whole {
            // Pruning is possible from now on.
            self.0.lock_tree().is_importing = false;
            self.0.flush()?;
            assay_store::end_reindex(dir).map_err(ImportError::Mark)?;
            tracing::info!("Reindexing finished");
        }
        Ok(imported)
    }

    /// Imports the blocks of a file, or of a folder of files, with arbitrary contents.
    ///
    /// # Errors
    /// As [`Blocks::reindex`].
    pub fn load(self, path: &Path, goes_on: &dyn Fn() -> bool) -> Result<Imported, ImportError> {
        let files = BlockFiles::open(path, self.0.params().disk_magic)?;
        self.import(&files, false, goes_on)
    }

    fn import(
        self,
        files: &BlockFiles,
        is_own: bool,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Imported, ImportError> {
        let mut import = Import {
            engine: self.0,
            files,
            is_own,
            goes_on,
            orphans: HashMap::new(),
            waiting: (0, 0),
            blocks: 0,
            refused: Vec::new(),
        };
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
        for block in &import.refused {
            tracing::warn!("{block}");
        }
        Ok(Imported { blocks: import.blocks, is_whole, refused: import.refused })
    }

    /// Stores a block without connecting it.
    fn keep_imported(
        self,
        block: Block,
        hash: BlockHash,
        pos: Option<BlockPos>,
    ) -> Result<Kept, EngineError> {
        let pool = Some(&*self.0.chainstate.pool);
        let prepared = Prepared::in_parallel(block, hash, &self.0.chainstate.pool);
        if let Err(error) = prepared.check_itself(self.0.params(), pool) {
            return Ok(Kept::Refused(Fault::judged(self.0.params(), &prepared, error)));
        }
        let prepared = Arc::new(prepared);
        let mut state = self.0.lock_tree();
        state.check()?;
        let archive = pos.map_or(Archive::Now, Archive::Has);
        match self.0.chainstate.accept(&mut state, &prepared, pool, archive, |_, _| ()) {
            Ok(id) => {
                state.ready.keep(id, prepared);
                Ok(Kept::Now)
            }
            Err(AcceptError::Known(_)) => Ok(Kept::Known),
            Err(AcceptError::Rule(error)) => Ok(Kept::Refused(Fault::Rule(error))),
            Err(AcceptError::Engine(error)) => Err(state.fail(error)),
        }
    }
}

impl Import<'_> {
    /// Imports the blocks of one file; `false` if stopped by the caller.
    fn read_file(&mut self, file: u32) -> Result<bool, ImportError> {
        let mut found = Vec::new();
        record_rules(self.engine.params(), |rules| {
            self.files.scan(file, rules, &mut |finding, _| {
                if let Finding::Block { place, header } = finding {
                    found.push((place, Header::parse(&header)));
                }
            })
        })?;
        for (place, header) in found {
            if !(self.goes_on)() {
                return Ok(false);
            }
            let hash = header.hash();
            if self.engine.chain().entry(&hash).is_some_and(|entry| entry.has_data) {
                continue;
            }
            if self.engine.chain().entry(&header.prev_block).is_none() {
                let parent = header.prev_block;
                tracing::debug!(target: "reindex", "LoadExternalBlockFile: Out of order block {hash}, parent {parent} not known");
                self.orphans.entry(parent).or_default().push(place);
                continue;
            }
            self.take_branch(place, hash)?;
        }
        Ok(true)
    }

    /// Imports a block and all blocks that waited for it. If this copy is damaged, they continue to wait.
    fn take_branch(&mut self, place: BlockPlace, hash: BlockHash) -> Result<(), ImportError> {
        let mut open = VecDeque::from([hash]);
        self.take(place, hash)?;
        while let Some(parent) = open.pop_front() {
            if self.engine.chain().entry(&parent).is_none() {
                continue;
            }
            for place in self.orphans.remove(&parent).unwrap_or_default() {
                let child = Header::parse(&self.header(&place)?).hash();
                tracing::debug!(target: "reindex", "LoadExternalBlockFile: Processing out of order child {child} of {parent}");
                self.take(place, child)?;
                open.push_back(child);
            }
        }
        Ok(())
    }

    fn header(&self, place: &BlockPlace) -> Result<[u8; Header::SIZE], ImportError> {
        let bytes = self.files.read_part(place, Header::SIZE as u32)?;
        // A scan finds no record that is shorter than a header.
        Ok(bytes.try_into().unwrap_or([0; Header::SIZE]))
    }

    /// Imports one copy of a block with a known parent; skips a copy that is damaged or breaks a rule.
    fn take(&mut self, place: BlockPlace, hash: BlockHash) -> Result<(), ImportError> {
        if self.engine.chain().entry(&hash).is_some_and(|entry| entry.has_data) {
            return Ok(());
        }
        let block = match read_plain_block(self.engine.params(), self.files, (&place, &hash)) {
            Ok(block) => block,
            Err(Fault::Read(error)) => return Err(error.into()),
            Err(fault) => {
                self.refuse(fault, place, hash);
                return Ok(());
            }
        };
        let pos = self.own_pos(&place, &block);
        let bytes = block.bytes().len();
        match self.engine.blocks().keep_imported(block, hash, pos)? {
            Kept::Now => {
                self.refused.retain(|refused| refused.hash != hash);
                self.blocks += 1;
                self.waiting = (self.waiting.0 + 1, self.waiting.1 + bytes);
            }
            Kept::Known => {}
            Kept::Refused(fault) => self.refuse(fault, place, hash),
        }
        if self.waiting.0 >= BLOCKS_AT_ONCE || self.waiting.1 >= BYTES_AT_ONCE {
            self.connect()?;
        }
        Ok(())
    }

    /// Records the rejection of a copy.
    fn refuse(&mut self, fault: Fault, place: BlockPlace, hash: BlockHash) {
        let parent = self.header(&place).ok().and_then(|header| {
            self.engine.chain().entry(&Header::parse(&header).prev_block).map(|entry| entry.height)
        });
        let of = (hash, parent.map_or(0, |height| height + 1));
        let refused = Refused { fault, place, damaged: 1 }.report(self.files, of);
        tracing::debug!(target: "reindex", "{refused}");
        let is_noted = self.refused.iter().any(|other| other.hash == hash);
        if !is_noted && self.refused.len() < REFUSED_MAX {
            self.refused.push(refused);
        }
    }

    /// Position of the block in the archive; `None` if it must be appended, also if its record is longer than the block.
    fn own_pos(&self, place: &BlockPlace, block: &Block) -> Option<BlockPos> {
        let is_exact = block.bytes().len() == place.size as usize;
        let file = self.files.number_of(place).filter(|_| self.is_own && is_exact)?;
        Some(BlockPos::of(file, u32::try_from(place.offset).ok()?, block.bytes()))
    }

    fn connect(&mut self) -> Result<(), ImportError> {
        self.waiting = (0, 0);
        loop {
            let report = self.engine.blocks().connect(|| false)?;
            for fault in &report.faults {
                tracing::warn!("block {} is invalid: {}", fault.hash, fault.reason);
            }
            if report.is_done || !(self.goes_on)() {
                return Ok(());
            }
        }
    }
}

/// Outcome of importing one copy of a block.
enum Kept {
    Now,
    /// The block is stored already.
    Known,
    Refused(Fault),
}

/// Limit of rejected blocks in the log.
const REFUSED_MAX: usize = 16;
/// Blocks connected together, so that many scripts use all cores.
const BLOCKS_AT_ONCE: usize = 1024;
/// Their bytes; less than the memory for blocks that wait to be connected.
const BYTES_AT_ONCE: usize = 32 << 20;
