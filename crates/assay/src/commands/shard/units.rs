//! Units of work on several threads, and folders that one process at a time works in.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use assay_engine::ShardError;

use crate::output;

/// Units of one step that have not been done.
pub(super) struct Units<'a> {
    pub(super) name: &'static str,
    pub(super) missing: Vec<usize>,
    pub(super) threads: usize,
    pub(super) stop: &'a AtomicBool,
}

impl Units<'_> {
    /// Does all; one that gives false is the last. Returns how many were done.
    pub(super) fn run(
        &self,
        unit: &(dyn Fn(usize) -> anyhow::Result<bool> + Sync),
    ) -> anyhow::Result<usize> {
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let is_over = AtomicBool::new(false);
        let failure = Mutex::new(None);
        let shown = Mutex::new(Instant::now());
        let start = Instant::now();
        let work = || {
            while !is_over.load(Ordering::SeqCst) && !self.stop.load(Ordering::Relaxed) {
                let Some(number) = self.missing.get(next.fetch_add(1, Ordering::SeqCst)) else {
                    return;
                };
                match unit(*number) {
                    Ok(goes_on) => {
                        done.fetch_add(1, Ordering::SeqCst);
                        is_over.fetch_or(!goes_on, Ordering::SeqCst);
                        self.show(done.load(Ordering::SeqCst), start, &shown);
                    }
                    Err(error) => {
                        is_over.store(true, Ordering::SeqCst);
                        let is_interrupted =
                            matches!(error.downcast_ref(), Some(ShardError::Interrupted));
                        if let Ok(mut failure) = failure.lock()
                            && !is_interrupted
                        {
                            failure.get_or_insert(error);
                        }
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads.min(self.missing.len()) {
                scope.spawn(work);
            }
        });
        match failure.into_inner().map_err(|_| anyhow!("a thread failed"))? {
            Some(error) => Err(error),
            None => Ok(done.into_inner()),
        }
    }

    fn show(&self, done: usize, start: Instant, shown: &Mutex<Instant>) {
        let Ok(mut shown) = shown.try_lock() else { return };
        if shown.elapsed() < Duration::from_secs(2) {
            return;
        }
        *shown = Instant::now();
        let (name, all, elapsed_s) = (self.name, self.missing.len(), start.elapsed().as_secs_f64());
        let rate = done as f64 / elapsed_s;
        let left_s = (all - done) as f64 / rate;
        output::complain(&format!("{name}: {done} of {all}, {rate:.1}/s, ETA {left_s:.0} s"));
    }
}

/// Holds a folder: alone where all units are done, with others where each does one.
pub(super) struct Lock(#[expect(dead_code, reason = "the lock goes when the file is closed")] File);

impl Lock {
    /// Whoever is alone removes what killed processes have left in `folders`.
    pub(super) fn new(work: &Path, is_shared: bool, folders: &[&Path]) -> anyhow::Result<Self> {
        let path = work.join("lock");
        let shown = || format!("{}", path.display());
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.with_context(shown)?;
        let locked = if is_shared { file.try_lock_shared() } else { file.try_lock() };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("{}: another process works there", work.display())
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(shown),
        }
        for folder in folders.iter().filter(|_| !is_shared) {
            let names = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
            for path in names.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
                if path.extension().is_some_and(|extension| extension == "new") {
                    fs::remove_file(&path).with_context(|| format!("{}", path.display()))?;
                }
            }
        }
        Ok(Self(file))
    }
}
