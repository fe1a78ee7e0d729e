//! The index: connects and disconnects blocks, commits, and merges runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_store::defect::{Point, Whole, point};
use assay_store::io::Io;
use assay_wire::{Block, BlockHash, Txid};
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::cache::Cache;
use super::files::{Files, HeightRecord};
use super::manifest::{Manifest, OpenError, RunLine};
use super::memory::{MemoryRun, Merge};
use super::prepare::{BlockRows, PrepareError, Scope, prepare};
use super::row::{Keys, Row, TX_NUMBER_MAX, Table, TxNumber};
use super::run::{Run, RunWriter};
use super::types::{QueryError, ScriptHash};
use super::view::{Part, Source, View};
use crate::chain::Tip;

#[derive(Clone, Debug)]
pub struct IndexConfig {
    /// Created if missing.
    pub dir: PathBuf,
    pub genesis: BlockHash,
    /// Limit of uncommitted rows in memory, bytes. A single block may exceed it.
    pub memory_bytes_max: usize,
    pub cache_bytes_max: usize,
    /// Tables to fill. Opening an index of another scope is an error.
    pub scope: Scope,
}

impl IndexConfig {
    /// Defaults: 256 MiB of rows (eight million) and 64 MiB of cache.
    pub fn new(dir: impl Into<PathBuf>, genesis: BlockHash) -> Self {
        let (memory_bytes_max, cache_bytes_max) = (256 << 20, 64 << 20);
        Self { dir: dir.into(), genesis, memory_bytes_max, cache_bytes_max, scope: Scope::All }
    }
}

/// An update failed; the index is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    #[error("block {hash} does not follow the tip of the index")]
    NotNext { hash: BlockHash },
    #[error("the index has no height {height} to go back to")]
    NoHeight { height: u32 },
    #[error("the index is full")]
    Full,
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    File(#[from] QueryError),
    #[error(transparent)]
    Manifest(#[from] assay_store::ReplaceError),
    #[error("stored block {hash}: {source}")]
    Block { hash: BlockHash, source: assay_wire::ParseError },
}

/// An index in a folder of its own. All methods are thread-safe; one thread adds blocks.
pub struct Index {
    config: IndexConfig,
    io: Arc<dyn Io>,
    keys: Keys,
    files: Arc<Files>,
    /// Number of reorgs.
    epoch: Arc<AtomicU64>,
    state: Mutex<State>,
    view: RwLock<View>,
}

struct State {
    manifest: Manifest,
    tip: Option<Tip>,
    tx_count: TxNumber,
    runs: Vec<WrittenRun>,
    memory: Vec<Arc<MemoryRun>>,
    /// Bytes written to flat files since the last commit.
    records_written: u64,
    is_merging: bool,
    /// The manifest on disk names disconnected blocks.
    is_cut_unwritten: bool,
}

#[derive(Clone)]
struct WrittenRun {
    id: u64,
    run: Arc<Run>,
    /// Rows from this transaction on are void.
    end_tx: TxNumber,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Usage {
    pub txs: u64,
    /// Rows on disk: of scripts, spenders, txids.
    pub rows: [u64; 3],
    pub rows_in_memory: u64,
    pub runs: u64,
    pub run_bytes: u64,
    /// Bytes of headers, txids and positions on disk.
    pub record_bytes: u64,
    /// Bytes written since the index was created, merges included.
    pub bytes_written: u64,
}

impl Index {
    /// Opens or creates the index.
    pub fn open(config: IndexConfig, io: Arc<dyn Io>) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Io { path: config.dir.clone(), source };
        io.create_dir_all(&config.dir).map_err(failed)?;
        let txids_only = config.scope == Scope::Txids;
        let manifest = match Manifest::read(&*io, &config.dir, &config.genesis)? {
            Some(manifest) if manifest.txids_only != txids_only => {
                return Err(OpenError::OtherScope { path: config.dir });
            }
            Some(manifest) => manifest,
            None => Manifest { txids_only, ..Manifest::new(&config.genesis, secret()?) },
        };
        let tip = manifest.tip();
        let heights = tip.map_or(0, |tip| tip.height + 1);
        let cache = Cache::new(config.cache_bytes_max);
        let files = Arc::new(Files::open(&*io, &config.dir, cache, (heights, manifest.tx_count))?);
        if let Some(tip) = tip
            && files.heights(tip.height, 1)?[0].hash() != tip.hash
        {
            let what = "the last header is not that of the tip".to_owned();
            return Err(OpenError::Manifest { path: config.dir.clone(), what });
        }
        let mut runs = Vec::with_capacity(manifest.runs.len());
        for line in &manifest.runs {
            let run = Arc::new(Run::open(&*io, &config.dir.join(run_name(line.id)), &files.cache)?);
            runs.push(WrittenRun { id: line.id, run, end_tx: line.end_tx });
        }
        let names: Vec<String> = runs.iter().map(|run| run_name(run.id)).collect();
        for name in io.list(&config.dir).map_err(failed)? {
            if name.starts_with(RUN_PREFIX) && !names.contains(&name) {
                io.remove(&config.dir.join(name)).map_err(failed)?;
            }
        }
        let state = State {
            tip,
            tx_count: manifest.tx_count,
            runs,
            memory: Vec::new(),
            records_written: 0,
            is_merging: false,
            is_cut_unwritten: false,
            manifest,
        };
        let epoch = Arc::new(AtomicU64::new(0));
        let keys = Keys::new(state.manifest.secret);
        let view = RwLock::new(view_of(&state, keys, &files, &epoch));
        Ok(Self { config, io, keys, files, epoch, state: Mutex::new(state), view })
    }

    /// Locks the state. A panic while it is held aborts the process, since files and state must stay consistent. Bind both in this
    /// order: they drop in reverse, so the abort comes before another thread acquires the lock.
    fn lock(&self) -> (MutexGuard<'_, State>, Whole) {
        let state = self.state.lock();
        (state, Whole::begin("the index"))
    }

    pub fn view(&self) -> View {
        self.view.read().clone()
    }

    /// Highest indexed block; `None` in an empty index.
    pub fn tip(&self) -> Option<Tip> {
        self.lock().0.tip
    }

    pub fn scope(&self) -> Scope {
        self.config.scope
    }

    /// Computes the rows of a block from the block, its txids and its spent coins (none for genesis), encoded as for
    /// [`assay_store::UndoReader`]. Appends the script of every output and of every spent output to `touched`, with duplicates.
    /// May run in any number of threads.
    pub fn prepare(
        &self,
        block: &Block,
        txids: &[Txid],
        undo: Option<&[u8]>,
        touched: &mut dyn FnMut(&ScriptHash),
    ) -> Result<BlockRows, UpdateError> {
        Ok(prepare((&self.keys, self.config.scope), block, txids, undo, touched)?)
    }

    /// Connects the block after the tip. Later views contain it; it is on disk after the next [`Index::commit`].
    ///
    /// # Errors
    /// If it does not follow the tip, or a write fails. [`Index::tip`] is still valid then.
    pub fn connect(&self, block: BlockRows) -> Result<(), UpdateError> {
        let (mut state, _whole) = self.lock();
        let height = match state.tip {
            None if block.hash == self.config.genesis => 0,
            Some(tip) if tip.hash == block.prev_block => tip.height + 1,
            _ => return Err(UpdateError::NotNext { hash: block.hash }),
        };
        let first_tx = state.tx_count;
        let end_tx = first_tx + block.txs.len() as u64;
        if end_tx >= TX_NUMBER_MAX {
            return Err(UpdateError::Full);
        }
        self.write_cut(&mut state)?;
        let record =
            HeightRecord { header: block.header, first_tx, block_bytes: block.block_bytes };
        self.files.append(height, &record, &block.txs)?;
        state.records_written += RECORD_BYTES * block.txs.len() as u64 + HEIGHT_BYTES;
        let mut tables = block.tables;
        for row in tables.iter_mut().flatten() {
            *row = row.shifted(first_tx);
        }
        state.memory.push(Arc::new(MemoryRun::new((first_tx, end_tx), tables)));
        consolidate(&mut state.memory);
        state.tip = Some(Tip { height, hash: block.hash });
        state.tx_count = end_tx;
        let memory_bytes: usize = state.memory.iter().map(|run| run.bytes()).sum();
        if memory_bytes > self.config.memory_bytes_max {
            self.write_out(&mut state)?;
        }
        self.publish(&state);
        Ok(())
    }

    /// Disconnects all blocks above `height`.
    pub fn rewind(&self, height: u32) -> Result<(), UpdateError> {
        let (mut state, _whole) = self.lock();
        let tip = state.tip.ok_or(UpdateError::NoHeight { height })?;
        if height >= tip.height {
            return if height == tip.height {
                Ok(())
            } else {
                Err(UpdateError::NoHeight { height })
            };
        }
        let end_tx = self.files.first_tx(height + 1).ok_or(UpdateError::NoHeight { height })?;
        let hash = self.files.heights(height, 1)?[0].hash();
        // From here on, readers of older views detect the reorg.
        self.epoch.fetch_add(1, Ordering::SeqCst);
        self.files.truncate(height + 1);
        state.memory.retain(|run| run.first_tx < end_tx);
        if let Some(last) = state.memory.last_mut()
            && last.end_tx > end_tx
        {
            *last = Arc::new(last.cut(end_tx));
        }
        let is_durable_too = state.manifest.tx_count > end_tx;
        state.runs.retain(|run| run.run.first_tx < end_tx);
        for run in &mut state.runs {
            run.end_tx = run.end_tx.min(end_tx);
        }
        state.tip = Some(Tip { height, hash });
        state.tx_count = end_tx;
        state.is_cut_unwritten |= is_durable_too;
        self.publish(&state);
        self.write_cut(&mut state)
    }

    /// Records of disconnected blocks are overwritten next, so the manifest on disk must exclude these blocks first.
    fn write_cut(&self, state: &mut State) -> Result<(), UpdateError> {
        if state.is_cut_unwritten { self.write_manifest(state) } else { Ok(()) }
    }

    /// Commits all changes; on return they survive a power cut.
    ///
    /// # Errors
    /// If a write fails; the last commit remains.
    pub fn commit(&self) -> Result<(), UpdateError> {
        let (mut state, _whole) = self.lock();
        self.write_out(&mut state)?;
        self.publish(&state);
        Ok(())
    }

    /// Merges runs if due; returns true if it did. Blocks may be connected meanwhile.
    ///
    /// # Errors
    /// If a run is damaged or a write fails; the index is unchanged.
    pub fn merge_once(&self) -> Result<bool, UpdateError> {
        let (old, id) = {
            let (mut state, _whole) = self.lock();
            if state.is_merging {
                return Ok(false);
            }
            let Some(range) = due(&state.runs) else { return Ok(false) };
            state.is_merging = true;
            let id = state.manifest.next_run;
            state.manifest.next_run += 1;
            (state.runs[range].to_vec(), id)
        };
        point(Point::IndexMerge);
        let merged = self.write_merged(&old, id);
        let (mut state, whole) = self.lock();
        state.is_merging = false;
        let run = merged?;
        let is_same =
            |run: &WrittenRun, old: &WrittenRun| (run.id, run.end_tx) == (old.id, old.end_tx);
        let at = state
            .runs
            .windows(old.len())
            .position(|window| window.iter().zip(&old).all(|(run, old)| is_same(run, old)));
        let Some(at) = at else {
            // A reorg disconnected rows that the new run still contains.
            drop(whole);
            drop(state);
            self.remove_runs(&[id]);
            return Ok(true);
        };
        state.manifest.bytes_written += run.bytes;
        let new = WrittenRun { id, end_tx: run.end_tx, run: Arc::new(run) };
        state.runs.splice(at..at + old.len(), [new]);
        self.write_manifest(&mut state)?;
        self.publish(&state);
        drop(whole);
        drop(state);
        // Views that still read them hold open handles.
        self.remove_runs(&old.iter().map(|run| run.id).collect::<Vec<_>>());
        Ok(true)
    }

    pub fn usage(&self) -> Usage {
        let (state, _whole) = self.lock();
        let rows = Table::ALL.map(|table| state.runs.iter().map(|run| run.run.rows(table)).sum());
        let heights = state.tip.map_or(0, |tip| u64::from(tip.height) + 1);
        Usage {
            txs: state.tx_count,
            rows,
            rows_in_memory: state.memory.iter().map(|run| run.row_count() as u64).sum(),
            runs: state.runs.len() as u64,
            run_bytes: state.runs.iter().map(|run| run.run.bytes).sum(),
            record_bytes: state.tx_count * RECORD_BYTES + heights * HEIGHT_BYTES,
            bytes_written: state.manifest.bytes_written + state.records_written,
        }
    }

    fn write_out(&self, state: &mut State) -> Result<(), UpdateError> {
        if state.manifest.tip() == state.tip && state.memory.is_empty() {
            return Ok(());
        }
        point(Point::IndexWrite);
        let (mut bytes, mut new) = (0, None);
        if let (Some(first), Some(last)) = (state.memory.first(), state.memory.last()) {
            let id = state.manifest.next_run;
            let path = self.config.dir.join(run_name(id));
            let mut writer = RunWriter::create(
                &*self.io,
                &path,
                (first.first_tx, last.end_tx),
                &self.files.cache,
            )?;
            for table in Table::ALL {
                let rows = state.memory.iter().map(|run| run.rows(table).iter().copied().map(Ok));
                writer.table(table, Merge::new(rows.collect()))?;
            }
            let run = Arc::new(writer.finish()?);
            bytes = run.bytes;
            new = Some(WrittenRun { id, end_tx: run.end_tx, run });
        }
        self.files.sync()?;
        point(Point::IndexWritten);
        let runs_before = state.runs.len();
        state.manifest.next_run += u64::from(new.is_some());
        state.runs.extend(new);
        state.manifest.bytes_written += bytes + state.records_written;
        match self.write_manifest(state) {
            Ok(()) => {
                state.memory.clear();
                state.records_written = 0;
                Ok(())
            }
            Err(error) => {
                state.runs.truncate(runs_before);
                state.manifest.bytes_written -= bytes + state.records_written;
                Err(error)
            }
        }
    }

    fn write_manifest(&self, state: &mut State) -> Result<(), UpdateError> {
        // New file names must be durable before the manifest that refers to them.
        let failed = |source| QueryError::Io { path: self.config.dir.clone(), source };
        self.io.sync_dir(&self.config.dir).map_err(failed)?;
        let durable_end = state.runs.last().map_or(0, |run| run.end_tx);
        let manifest = &mut state.manifest;
        manifest.runs =
            state.runs.iter().map(|run| RunLine { id: run.id, end_tx: run.end_tx }).collect();
        // Otherwise only runs have changed, and the rows in memory stay uncommitted.
        if durable_end == state.tx_count {
            (manifest.tip, manifest.tx_count) = (state.tip.map(Into::into), durable_end);
        }
        manifest.write(&*self.io, &self.config.dir)?;
        state.is_cut_unwritten = false;
        Ok(())
    }

    fn write_merged(&self, old: &[WrittenRun], id: u64) -> Result<Run, QueryError> {
        let range = (old[0].run.first_tx, old[old.len() - 1].end_tx);
        let path = self.config.dir.join(run_name(id));
        let mut writer = RunWriter::create(&*self.io, &path, range, &self.files.cache)?;
        for table in Table::ALL {
            let rows = old.iter().map(|old| {
                let end_tx = old.end_tx;
                old.run.stream(table).filter(move |row: &Result<Row, _>| {
                    row.as_ref().map_or(true, |row| row.tx() < end_tx)
                })
            });
            writer.table(table, Merge::new(rows.collect()))?;
        }
        writer.finish()
    }

    fn remove_runs(&self, ids: &[u64]) {
        for id in ids {
            let path = self.config.dir.join(run_name(*id));
            // The next start removes leftovers.
            if let Err(error) = self.io.remove(&path) {
                tracing::warn!("cannot remove {}: {error}", path.display());
            }
        }
    }

    fn publish(&self, state: &State) {
        point(Point::IndexPublish);
        *self.view.write() = view_of(state, self.keys, &self.files, &self.epoch);
    }
}

fn view_of(state: &State, keys: Keys, files: &Arc<Files>, epoch: &Arc<AtomicU64>) -> View {
    let written = state
        .runs
        .iter()
        .map(|run| Part { source: Source::Disk(Arc::clone(&run.run)), end_tx: run.end_tx });
    let memory = state
        .memory
        .iter()
        .map(|run| Part { source: Source::Memory(Arc::clone(run)), end_tx: run.end_tx });
    let parts = written.chain(memory).collect();
    View::new(keys, (state.tip, state.tx_count), parts, Arc::clone(files), Arc::clone(epoch))
}

/// Merges runs in memory until each has at least twice the rows of the next: few moves per row, few runs per lookup.
fn consolidate(memory: &mut Vec<Arc<MemoryRun>>) {
    while let [.., a, b] = &memory[..]
        && a.row_count() < 2 * b.row_count()
        && a.row_count() + b.row_count() <= CONSOLIDATED_ROWS_MAX
    {
        let merged = Arc::new(a.merge(b));
        memory.truncate(memory.len() - 2);
        memory.push(merged);
    }
}

/// The next runs to merge: at least [`MERGED_AT_ONCE`] adjacent runs of the same size class or smaller.
fn due(runs: &[WrittenRun]) -> Option<std::ops::Range<usize>> {
    let class = |run: &WrittenRun| (run.run.bytes / CLASS_BYTES).max(1).ilog(MERGED_AT_ONCE as u64);
    let highest = runs.iter().map(class).max()?;
    (0..=highest).find_map(|limit| {
        let mut start = 0;
        for end in 0..=runs.len() {
            if end == runs.len() || class(&runs[end]) > limit {
                if end - start >= MERGED_AT_ONCE {
                    return Some(start..end);
                }
                start = end + 1;
            }
        }
        None
    })
}

fn run_name(id: u64) -> String {
    format!("{RUN_PREFIX}{id:08}")
}

fn secret() -> Result<[u64; 2], OpenError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| OpenError::Random(error.to_string()))?;
    let (low, high) = bytes.split_at(8);
    Ok([low, high].map(|half| u64::from_le_bytes(half.try_into().expect("half of sixteen"))))
}

const RUN_PREFIX: &str = "run-";
/// Bytes per record in `txs.dat` and in `heights.dat`.
const RECORD_BYTES: u64 = 40;
const HEIGHT_BYTES: u64 = 96;
/// Runs merged into one. A higher number writes each row less often but makes lookups visit more runs.
const MERGED_AT_ONCE: usize = 8;
/// Smaller runs form the lowest class.
const CLASS_BYTES: u64 = 16 << 20;
/// Larger runs in memory are left for the commit.
const CONSOLIDATED_ROWS_MAX: usize = 1 << 21;
