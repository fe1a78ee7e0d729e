//! A file system in memory that fails on command and can lose unsynced data.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::{Io, IoFile};

/// Fault at the chosen step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// That operation fails, as on a full disk; a write applies its first half. Later operations work.
    Error,
    /// That operation fails without any effect, as on a failing device. Later operations work.
    Broken,
    /// The process dies: a write applies its first half, and every later operation fails.
    Crash,
}

/// Data lost at a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing is lost, as after SIGKILL.
    Nothing,
    /// All unsynced data are lost, as after a power cut.
    Unsynced,
    /// Lengths as written, but unsynced bytes read as zeros: a possible state of a journalling file system after a power cut.
    Zeroed,
    /// Some of the unsynced writes are lost, as after a power cut: the disk writes units of `unit` bytes (a sector or a page) in
    /// arbitrary order. Each unit of each file has its state after some number of the writes to it. Each length and each name is
    /// one of its values since the last sync. `seed` chooses.
    Torn {
        seed: u64,
        /// Bytes written atomically.
        unit: usize,
    },
}

/// A file system in memory. Clones share their state.
///
/// Each changing operation (create, write, resize, sync, rename) is one step, counted from 0.
#[derive(Clone, Default)]
pub struct SimIo {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    contents: Vec<Contents>,
    names: BTreeMap<PathBuf, usize>,
    names_durable: BTreeMap<PathBuf, usize>,
    steps: u64,
    fault: Option<(u64, Fault)>,
    dead: bool,
    is_cached: bool,
}

#[derive(Clone, Default)]
struct Contents {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// Changes between the synced and the current state.
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, data: Vec<u8> },
    Resize { size: usize },
}

impl Contents {
    fn synced(bytes: Vec<u8>) -> Self {
        Self { current: bytes.clone(), durable: bytes, unsynced: Vec::new() }
    }

    fn apply(&mut self, change: Change) {
        apply(&mut self.current, &change, |_| true);
        self.unsynced.push(change);
    }

    fn sync(&mut self) {
        self.durable.clone_from(&self.current);
        self.unsynced.clear();
    }

    /// See [`Loss::Torn`].
    fn torn(&self, random: &mut Random, unit: usize) -> Vec<u8> {
        let count = self.unsynced.len() as u64 + 1;
        let length_as_of = random.below(count) as usize;
        let mut length = self.durable.len();
        for change in &self.unsynced[..length_as_of] {
            length = match change {
                Change::Write { offset, data } => length.max(offset + data.len()),
                Change::Resize { size } => *size,
            };
        }
        let longest = self.unsynced.iter().map(Change::end).fold(self.durable.len(), usize::max);
        let as_of: Vec<usize> =
            (0..=longest / unit).map(|_| random.below(count) as usize).collect();
        let mut bytes = self.durable.clone();
        for (index, change) in self.unsynced.iter().enumerate() {
            let size = bytes.len().max(change.end());
            bytes.resize(size, 0);
            apply(&mut bytes, change, |at| index < as_of[at / unit]);
            bytes.resize(size, 0);
        }
        bytes.resize(length, 0);
        bytes
    }
}

impl Change {
    fn end(&self) -> usize {
        match self {
            Self::Write { offset, data } => offset + data.len(),
            Self::Resize { size } => *size,
        }
    }
}

/// Applies `change` to the bytes that satisfy `reaches`.
fn apply(bytes: &mut Vec<u8>, change: &Change, reaches: impl Fn(usize) -> bool) {
    match change {
        Change::Resize { size } => bytes.resize(*size, 0),
        Change::Write { offset, data } => {
            if bytes.len() < offset + data.len() {
                bytes.resize(offset + data.len(), 0);
            }
            for (at, &byte) in data.iter().enumerate() {
                if reaches(offset + at) {
                    bytes[offset + at] = byte;
                }
            }
        }
    }
}

/// `SplitMix64` (Steele, Lea, Flood 2014): simulations must be reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % bound
    }
}

impl SimIo {
    /// An empty file system without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Arms `fault` for step number `step`.
    pub fn fail_at(&self, step: u64, fault: Fault) {
        self.lock().fault = Some((step, fault));
    }

    /// Sets if [`IoFile::read_cached_at`] finds bytes from now on; a new file system has nothing cached.
    pub fn set_cached(&self, is_cached: bool) {
        self.lock().is_cached = is_cached;
    }

    pub fn steps(&self) -> u64 {
        self.lock().steps
    }

    /// The file system as the next process finds it, working again and independent of this one.
    #[must_use]
    pub fn restart(&self, loss: Loss) -> Self {
        self.restart_each(|_| loss)
    }

    /// [`SimIo::restart`] with a loss per file, since the kernel writes back in arbitrary order.
    #[must_use]
    pub fn restart_each(&self, loss: impl Fn(&Path) -> Loss) -> Self {
        let state = self.lock();
        let mut next = State::default();
        let mut keep = |path: &PathBuf, contents: Contents, synced: bool| {
            let id = next.contents.len();
            next.contents.push(contents);
            next.names.insert(path.clone(), id);
            if synced {
                next.names_durable.insert(path.clone(), id);
            }
        };
        let paths: BTreeSet<&PathBuf> =
            state.names.keys().chain(state.names_durable.keys()).collect();
        for (index, path) in paths.into_iter().enumerate() {
            let (now, then) = (state.names.get(path), state.names_durable.get(path));
            let content = |id: Option<&usize>| id.map(|&id| &state.contents[id]);
            match loss(path) {
                // The kernel survives, so unsynced data remain unsynced.
                Loss::Nothing => {
                    if let Some(old) = content(now) {
                        keep(path, old.clone(), now == then);
                    }
                }
                Loss::Zeroed => {
                    if let Some(old) = content(now) {
                        keep(path, Contents::synced(zeroed(old)), true);
                    }
                }
                Loss::Unsynced => {
                    if let Some(old) = content(then) {
                        keep(path, Contents::synced(old.durable.clone()), true);
                    }
                }
                Loss::Torn { seed, unit } => {
                    let mut random = Random(seed ^ (index as u64) << 32);
                    let chosen = if random.below(2) == 0 { now } else { then };
                    if let Some(old) = content(chosen) {
                        keep(path, Contents::synced(old.torn(&mut random, unit)), true);
                    }
                }
            }
        }
        Self { state: Arc::new(Mutex::new(next)) }
    }

    /// The bytes of a file, for tests that damage them.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.lock();
        state.names.get(path).map(|&id| state.contents[id].current.clone())
    }

    /// Replaces the bytes of a file, synced.
    pub fn set_contents(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.lock();
        let id = state.names.get(path).copied().unwrap_or_else(|| {
            state.contents.push(Contents::default());
            state.contents.len() - 1
        });
        state.names.insert(path.to_path_buf(), id);
        state.names_durable.insert(path.to_path_buf(), id);
        state.contents[id] = Contents::synced(bytes);
    }

    /// Counts a step outside of the file system, such as a commit of a coin tier on the same disk.
    pub(crate) fn foreign_step(&self) -> io::Result<()> {
        self.lock().whole_step()
    }

    /// Succeeds while the process lives.
    pub(crate) fn alive(&self) -> io::Result<()> {
        self.lock().alive()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Bytes equal to the synced ones survive, the others read as zeros.
fn zeroed(contents: &Contents) -> Vec<u8> {
    let synced = contents.durable.iter().copied().map(Some).chain(std::iter::repeat(None));
    contents
        .current
        .iter()
        .zip(synced)
        .map(|(&now, then)| if then == Some(now) { now } else { 0 })
        .collect()
}

impl State {
    fn alive(&self) -> io::Result<()> {
        if self.dead { Err(io::Error::other("simulated crash")) } else { Ok(()) }
    }

    /// Counts a step. `Ok(false)`: the caller must do half of its work and then fail.
    fn step(&mut self) -> io::Result<bool> {
        self.alive()?;
        let now = self.steps;
        self.steps += 1;
        match self.fault {
            Some((at, fault)) if at == now => {
                self.dead = fault == Fault::Crash;
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    fn whole_step(&mut self) -> io::Result<()> {
        if self.step()? { Ok(()) } else { Err(self.failure()) }
    }

    fn failure(&self) -> io::Error {
        match self.fault {
            Some((_, Fault::Broken)) => io::Error::other("simulated input/output error"),
            _ => io::ErrorKind::StorageFull.into(),
        }
    }

    fn is_broken(&self) -> bool {
        matches!(self.fault, Some((_, Fault::Broken)))
    }
}

impl Io for SimIo {
    fn create_dir_all(&self, _path: &Path) -> io::Result<()> {
        self.lock().alive()
    }

    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn IoFile>> {
        let mut state = self.lock();
        state.alive()?;
        let id = match state.names.get(path) {
            Some(&id) => id,
            None if create => {
                state.whole_step()?;
                state.contents.push(Contents::default());
                let id = state.contents.len() - 1;
                state.names.insert(path.to_path_buf(), id);
                id
            }
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(SimFile { io: self.clone(), id }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.lock();
        state.alive()?;
        let inside = state.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.whole_step()?;
        let id = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_path_buf(), id);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.whole_step()?;
        state.names.remove(path).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut guard = self.lock();
        guard.whole_step()?;
        let state = &mut *guard;
        state.names_durable.retain(|path, _| path.parent() != Some(dir));
        let inside = state.names.iter().filter(|(path, _)| path.parent() == Some(dir));
        state.names_durable.extend(inside.map(|(path, &id)| (path.clone(), id)));
        Ok(())
    }
}

struct SimFile {
    io: SimIo,
    id: usize,
}

impl IoFile for SimFile {
    fn size(&self) -> io::Result<u64> {
        let state = self.io.lock();
        state.alive()?;
        Ok(state.contents[self.id].current.len() as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.io.lock();
        state.alive()?;
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.checked_add(buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let bytes = state.contents[self.id].current.get(start..end);
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> bool {
        let is_cached = self.io.lock().is_cached;
        is_cached && self.read_exact_at(buffer, offset).is_ok()
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.io.lock();
        let whole = state.step()?;
        let data = match whole {
            true => data,
            false if state.is_broken() => &[],
            false => &data[..data.len() / 2],
        };
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        if !data.is_empty() {
            state.contents[self.id].apply(Change::Write { offset, data: data.to_vec() });
        }
        if whole { Ok(()) } else { Err(state.failure()) }
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        let mut state = self.io.lock();
        state.whole_step()?;
        let size = usize::try_from(size).map_err(io::Error::other)?;
        state.contents[self.id].apply(Change::Resize { size });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.io.lock();
        state.whole_step()?;
        state.contents[self.id].sync();
        Ok(())
    }
}
