//! Taking in what block files hold: our own, whose index is to be built again (Core's `-reindex`), and those of others
//! (`-loadblock`; Core `validation.cpp`, `LoadExternalBlockFile`).
//!
//! Blocks may come in any order: one whose parent is not known waits, as its place in the files, until the parent has come.
//! What is there already is passed over, so an import that was interrupted is begun again from the start.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use assay_store::{BlockFiles, BlockFilesError, BlockPlace, BlockPos, Finding};
use assay_wire::{Block, BlockHash, Header};

use super::Engine;
use crate::chainstate::{AcceptError, Archive};
use crate::error::{EngineError, ImportError};
use crate::files::{Fault, InvalidBlock, Refused, read_plain_block, record_rules};
use crate::prepared::Prepared;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub blocks: u64,
    /// Whether all files were read to their end.
    pub is_whole: bool,
    /// Blocks that were not, because no copy of them in the files is whole, or because they break a rule that needs no coins: the
    /// first few.
    pub refused: Vec<InvalidBlock>,
}

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
    /// Of each block that was not taken the copy that was read first, until a whole one comes.
    refused: Vec<InvalidBlock>,
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
            Err(BlockFilesError::Empty { .. }) => {
                Imported { is_whole: true, ..Imported::default() }
            }
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
        let mut import = Import {
            engine: self,
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
}

impl Import<'_> {
    /// Takes the blocks of one file; `false` where it was asked to end.
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

    /// Takes a block and all that waited for it. Where this copy is damaged they go on waiting.
    fn take_branch(&mut self, place: BlockPlace, hash: BlockHash) -> Result<(), ImportError> {
        let mut open = VecDeque::from([hash]);
        self.take(place, hash)?;
        while let Some(parent) = open.pop_front() {
            if self.engine.block_entry(&parent).is_none() {
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

    /// Takes one copy of a block whose parent is known; one that is damaged or breaks a rule is passed over.
    fn take(&mut self, place: BlockPlace, hash: BlockHash) -> Result<(), ImportError> {
        if self.engine.block_entry(&hash).is_some_and(|entry| entry.has_data) {
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
        match self.engine.keep_imported(block, hash, pos)? {
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

    /// Notes why a copy was not taken.
    fn refuse(&mut self, fault: Fault, place: BlockPlace, hash: BlockHash) {
        let parent = self.header(&place).ok().and_then(|header| {
            self.engine.block_entry(&Header::parse(&header).prev_block).map(|entry| entry.height)
        });
        let of = (hash, parent.map_or(0, |height| height + 1));
        let refused = Refused { fault, place, damaged: 1 }.report(self.files, of);
        tracing::debug!(target: "reindex", "{refused}");
        let is_noted = self.refused.iter().any(|other| other.hash == hash);
        if !is_noted && self.refused.len() < REFUSED_MAX {
            self.refused.push(refused);
        }
    }

    /// Where the archive has the block; `None` where it is to be appended, also if its record is longer than the block.
    fn own_pos(&self, place: &BlockPlace, block: &Block) -> Option<BlockPos> {
        let is_exact = block.bytes().len() == place.size as usize;
        let file = self.files.number_of(place).filter(|_| self.is_own && is_exact)?;
        Some(BlockPos::of(file, u32::try_from(place.offset).ok()?, block.bytes()))
    }

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
    /// Keeps a block without connecting it.
    fn keep_imported(
        &self,
        block: Block,
        hash: BlockHash,
        pos: Option<BlockPos>,
    ) -> Result<Kept, EngineError> {
        let pool = Some(&*self.chain.pool);
        let prepared = Prepared::in_parallel(block, hash, &self.chain.pool);
        if let Err(error) = prepared.check_itself(self.params(), pool) {
            return Ok(Kept::Refused(Fault::judged(self.params(), &prepared, error)));
        }
        let prepared = Arc::new(prepared);
        let mut state = self.lock_tree();
        state.check()?;
        let archive = pos.map_or(Archive::Now, Archive::Has);
        match self.chain.accept(&mut state, &prepared, pool, archive, |_, _| ()) {
            Ok(id) => {
                state.ready.keep(id, prepared);
                Ok(Kept::Now)
            }
            Err(AcceptError::Known(_)) => Ok(Kept::Known),
            Err(AcceptError::Rule(error)) => Ok(Kept::Refused(Fault::Rule(error))),
            Err(AcceptError::Engine(error)) => state.poison(Err(error)),
        }
    }
}

/// Outcome of importing one copy of a block.
enum Kept {
    Now,
    /// The block was there already.
    Known,
    Refused(Fault),
}

/// Blocks that were not taken and are named in the log.
const REFUSED_MAX: usize = 16;
/// Blocks that are connected together, so that scripts of many fill all cores.
const BLOCKS_AT_ONCE: usize = 1024;
/// Their bytes: what waits in memory to be connected has room for more.
const BYTES_AT_ONCE: usize = 32 << 20;
