//! Searches all files in parallel: the records in file order, and the bytes between them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

use super::scan::{Finding, HEADER_BYTES, RecordRules, StrayKind};
use super::{BlockFiles, BlockFilesError, BlockPlace};

/// Bytes that belong to no record and are no padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrayBytes {
    pub file: u32,
    pub offset: u64,
    pub bytes: u64,
    pub kind: StrayKind,
}

#[derive(Clone, Debug)]
pub struct Search<E> {
    /// One entry per record, in file order.
    pub entries: Vec<E>,
    /// The first few stray places.
    pub strays: Vec<StrayBytes>,
    /// Number of all stray places.
    pub stray_count: usize,
    pub padding_bytes: u64,
}

type ByFile<E> = Vec<(u32, Search<E>)>;

const STRAYS_MAX: usize = 16;

impl<E> Default for Search<E> {
    fn default() -> Self {
        Self { entries: Vec::new(), strays: Vec::new(), stray_count: 0, padding_bytes: 0 }
    }
}

impl<E> Search<E> {
    /// Appends the results of later files.
    fn append(&mut self, mut later: Self) {
        self.entries.append(&mut later.entries);
        self.strays.append(&mut later.strays);
        self.strays.truncate(STRAYS_MAX);
        self.stray_count += later.stray_count;
        self.padding_bytes += later.padding_bytes;
    }
}

impl BlockFiles {
    /// Searches all files for records with `threads` threads. `entry` maps the position and the first bytes of a record to its
    /// result. `on_bytes` receives the bytes searched and the total, from several threads.
    pub fn search<E: Send>(
        &self,
        threads: usize,
        rules: &RecordRules<'_>,
        to_entry: &(dyn Fn(BlockPlace, &[u8; HEADER_BYTES]) -> E + Sync),
        on_bytes: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Search<E>, BlockFilesError> {
        let (count, bytes) = (self.files().len() as u32, self.bytes());
        let (next, done) = (AtomicU32::new(0), AtomicU64::new(0));
        let work = || {
            let mut found = Vec::new();
            loop {
                let file = next.fetch_add(1, Ordering::Relaxed);
                if file >= count {
                    return Ok(found);
                }
                let mut reached = 0u64;
                let in_file = self.search_file(file, rules, to_entry, &mut |at| {
                    // A damaged length makes the scan go back.
                    let step = at.saturating_sub(reached);
                    reached = reached.max(at);
                    on_bytes(done.fetch_add(step, Ordering::Relaxed) + step, bytes);
                })?;
                found.push((file, in_file));
            }
        };
        let by_thread: Vec<ByFile<E>> = thread::scope(|scope| {
            let threads = threads.clamp(1, count.max(1) as usize);
            let spawn = |_| {
                let searcher = thread::Builder::new().name("search-blocks".to_owned());
                searcher.spawn_scoped(scope, work).map_err(BlockFilesError::Thread)
            };
            let handles: Vec<_> = (0..threads).map(spawn).collect::<Result<_, _>>()?;
            let join = |handle: thread::ScopedJoinHandle<'_, _>| match handle.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            handles.into_iter().map(join).collect::<Result<_, _>>()
        })?;
        let mut by_file: ByFile<E> = by_thread.into_iter().flatten().collect();
        by_file.sort_by_key(|(file, _)| *file);
        // A million entries take 100 MB: do not hold them twice.
        let mut all = Search::default();
        all.entries.reserve_exact(by_file.iter().map(|(_, file)| file.entries.len()).sum());
        for (_, in_file) in by_file {
            all.append(in_file);
        }
        Ok(all)
    }

    fn search_file<E>(
        &self,
        file: u32,
        rules: &RecordRules<'_>,
        to_entry: &(dyn Fn(BlockPlace, &[u8; HEADER_BYTES]) -> E + Sync),
        on_reached: &mut dyn FnMut(u64),
    ) -> Result<Search<E>, BlockFilesError> {
        let mut found = Search::default();
        self.scan(file, rules, &mut |finding, reached| {
            match finding {
                Finding::Block { place, header } => found.entries.push(to_entry(place, &header)),
                Finding::Stray { bytes, kind: StrayKind::Padding, .. } => {
                    found.padding_bytes += bytes;
                }
                Finding::Stray { file, offset, bytes, kind } => {
                    found.stray_count += 1;
                    if found.strays.len() < STRAYS_MAX {
                        found.strays.push(StrayBytes { file, offset, bytes, kind });
                    }
                }
            }
            on_reached(reached);
        })?;
        Ok(found)
    }
}
