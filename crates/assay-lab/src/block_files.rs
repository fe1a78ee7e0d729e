//! Block files put in place before a node reads them at its own pace.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::atomic_file::{self, WriteError};
use crate::one_run::{RunFault, RunJob};
use crate::prepare;
use crate::process::{Ports, Process};
use crate::target::{SyncLaunch, Way, block_files};

/// Time between two questions for the height of a node whose time does not count.
const PAUSE: Duration = Duration::from_millis(20);

impl RunJob<'_> {
    /// Gives a node's data folder the block files that the plan says it has.
    pub(crate) fn place_blocks(&self, datadir: &Path) -> Result<(), RunFault> {
        match self.way {
            Way::Reindex => self.copy_files(datadir),
            Way::ReindexChainstate => {
                let whole = self.whole_folder()?;
                prepare::copy(&whole, datadir)?;
                Ok(())
            }
            Way::Rpc | Way::Peer | Way::Files | Way::LoadBlock => Ok(()),
        }
    }

    /// Copies, not links: nodes append to the last file.
    fn copy_files(&self, datadir: &Path) -> Result<(), RunFault> {
        let (from, to) = (self.chain.dir.join("blocks"), datadir.join("regtest").join("blocks"));
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| WriteError { path, source }
        };
        atomic_file::create_folder(&to)?;
        for file in block_files(&from).map_err(at(&from))? {
            let name = file.file_name().unwrap_or_default();
            fs::copy(&file, to.join(name)).map_err(at(&file))?;
        }
        Ok(())
    }

    /// A data folder of this target that has the whole chain: made once for all its runs, and not timed.
    fn whole_folder(&self) -> Result<std::path::PathBuf, RunFault> {
        let work = self.out_dir.join("work");
        let folder = work.join(format!("whole-{}", self.target.name));
        // What the folder holds, and which program made it.
        let mark = work.join(format!("whole-{}.txt", self.target.name));
        let what = format!("{} {:?}", self.chain.tip.hash, self.target.fingerprint);
        if folder.is_dir() && fs::read_to_string(&mark).is_ok_and(|text| text == what) {
            return Ok(folder);
        }
        if folder.exists() {
            let failed = |source| WriteError { path: folder.clone(), source };
            fs::remove_dir_all(&folder).map_err(failed)?;
        }
        atomic_file::create_folder(&folder)?;
        let folder = folder.canonicalize().unwrap_or(folder);
        self.copy_files(&folder)?;
        self.index_files(&folder)?;
        atomic_file::write(&mark, what.as_bytes())?;
        Ok(folder)
    }

    /// Has the target read the block files in `folder`, to the tip.
    fn index_files(&self, folder: &Path) -> Result<(), RunFault> {
        let ports = Ports::free()?;
        let with = SyncLaunch {
            chain: &self.chain.header.chain,
            plan: self.plan,
            datadir: folder,
            ports: &ports,
            source: 0,
            blocks: folder,
        };
        let launch = self.target.launch_sync(Way::Reindex, &with);
        self.target
            .write_credentials(&launch, folder)
            .map_err(|source| WriteError { path: folder.to_owned(), source })?;
        let log = self.out_dir.join("logs").join(format!("whole-{}.log", self.target.name));
        let mut process = Process::start(launch, ports.rpc, &log)?;
        let (credentials, info) = process.wait_answer(PAUSE)?;
        let client = process.client(&credentials);
        let (mut height, mut since) = (info.blocks, Instant::now());
        while height < u64::from(self.chain.tip.height) {
            if self.reporter.wants_stop() {
                return Err(RunFault::Interrupted { height: height as u32 });
            }
            let seconds = self.plan.feed.block_timeout_s;
            if since.elapsed().as_secs() > seconds {
                let (height, log_tail) = (height as u32, process.log_tail());
                return Err(RunFault::Stalled { height, seconds, log_tail });
            }
            thread::sleep(PAUSE);
            let now: u64 = client
                .call("getblockcount", "[]")
                .map_err(|source| RunFault::Height { height: height as u32, source })?;
            if now > height {
                (height, since) = (now, Instant::now());
            }
        }
        process.stop(&client)?;
        Ok(())
    }
}
