//! Goes back to the fork point with another branch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_consensus::block::check_merkle_root;

use super::connect::Connector;
use super::{ValidateError, ValidateProgress};
use crate::config::READ_THREADS;
use crate::connect::{disconnect, load_outputs};
use crate::files::{Chain, read_block};
use crate::prepared::Prepared;

impl<'a> Connector<'a> {
    /// Disconnects the blocks that are not on `chain`, so that connecting can continue there. Returns true at the fork point;
    /// `stop` ends it at a block before.
    ///
    /// # Errors
    /// [`ValidateError::NoUndo`], with nothing changed, if undo data are missing. Undo data of all blocks that another branch of
    /// the same files can replace exist.
    pub(crate) fn switch(
        &mut self,
        chain: Arc<Chain<'a>>,
        stop: &AtomicBool,
        progress: &dyn ValidateProgress,
    ) -> Result<bool, ValidateError> {
        let fork = chain.fork(&self.chain, self.height);
        for height in fork + 1..=self.height {
            let hash = self.chain.hash(height);
            if self.datadir.undo(&hash)?.is_none() {
                let (coins, coins_height) = (self.hash(), self.height);
                return Err(ValidateError::NoUndo { coins, coins_height, fork, height });
            }
        }
        while self.height > fork {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            self.disconnect_tip()?;
            if self.flushes.is_due(&mut self.coins.store) {
                self.flush(progress)?;
            }
        }
        self.chain = chain;
        Ok(true)
    }

    /// Disconnects the last connected block.
    fn disconnect_tip(&mut self) -> Result<(), ValidateError> {
        let (hash, height) = (self.hash(), self.height);
        let prepared = self.read_connected(height)?;
        let record = self.datadir.undo(&hash)?;
        let (coins, coins_height, fork) = (hash, height, height - 1);
        let missing = ValidateError::NoUndo { coins, coins_height, fork, height };
        let record = record.ok_or(missing)?;
        load_outputs(&prepared, &mut self.coins.store, READ_THREADS)?;
        let outputs_first = self.config.params.cash.is_some();
        disconnect(&prepared, &record.undo, outputs_first, &mut self.coins)?;
        self.totals.remove(&prepared.block, record.is_assumed);
        self.height = height - 1;
        Ok(())
    }

    /// Reads a connected block: the first copy with transactions that match its header.
    pub(super) fn read_connected(&self, height: u32) -> Result<Prepared, ValidateError> {
        for entry in self.chain.copies(height) {
            if let Ok(prepared) =
                read_block(&self.config.params, self.files, (&entry.place, &entry.hash))
                && check_merkle_root(prepared.block.header(), &prepared.txids).is_ok()
            {
                return Ok(prepared);
            }
        }
        Err(ValidateError::Gone { hash: self.chain.hash(height), height })
    }
}
