//! A file system in memory that fails on command and forgets what was not synced.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Io, IoFile};

/// What happens at the chosen step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// That operation fails, as on a full disk; a write leaves its first half behind. Later operations work.
    Error,
    /// The process dies: a write leaves its first half behind and every later operation fails.
    Crash,
}

/// What a restart finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Everything written, as after SIGKILL.
    Nothing,
    /// Only what was synced, as after a power cut.
    Unsynced,
    /// Lengths as written, but unsynced bytes read as zeros: what a journalling file system may leave after a power cut.
    Zeroed,
}

/// A file system in memory. Clones share their state.
///
/// Each operation that changes something (create, write, resize, sync, rename) is one step, counted from 0.
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
}

#[derive(Clone, Default)]
struct Contents {
    current: Vec<u8>,
    durable: Vec<u8>,
}

impl Contents {
    fn synced(bytes: Vec<u8>) -> Self {
        Self { current: bytes.clone(), durable: bytes }
    }
}

impl SimIo {
    /// An empty file system that works.
    pub fn new() -> Self {
        Self::default()
    }

    /// Arms `fault` for step number `step`.
    pub fn fail_at(&self, step: u64, fault: Fault) {
        self.lock().fault = Some((step, fault));
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        self.lock().steps
    }

    /// The file system as the next process finds it, working again and independent of this one.
    #[must_use]
    pub fn restart(&self, loss: Loss) -> Self {
        self.restart_each(|_| loss)
    }

    /// [`SimIo::restart`] with a loss per file: the kernel writes back in an order of its own.
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
        for (path, &id) in &state.names {
            let old = &state.contents[id];
            match loss(path) {
                // The kernel lives on, so what was not synced still is not.
                Loss::Nothing => {
                    keep(path, old.clone(), state.names_durable.get(path) == Some(&id));
                }
                Loss::Zeroed => keep(path, Contents::synced(zeroed(old)), true),
                Loss::Unsynced => {}
            }
        }
        for (path, &id) in &state.names_durable {
            if loss(path) == Loss::Unsynced {
                keep(path, Contents::synced(state.contents[id].durable.clone()), true);
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that equal the synced ones survive, the others read as zeros.
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

    /// Counts a step. `Ok(false)` asks the caller to do half of its work and then fail.
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
        if self.step()? { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
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

    fn write_all_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.io.lock();
        let whole = state.step()?;
        let data = if whole { data } else { &data[..data.len() / 2] };
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = &mut state.contents[self.id].current;
        let end = start + data.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(data);
        if whole { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        let mut state = self.io.lock();
        state.whole_step()?;
        let size = usize::try_from(size).map_err(io::Error::other)?;
        state.contents[self.id].current.resize(size, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.io.lock();
        state.whole_step()?;
        let contents = &mut state.contents[self.id];
        contents.durable.clone_from(&contents.current);
        Ok(())
    }
}
