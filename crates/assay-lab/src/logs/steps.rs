//! Parses `-debug=bench` of Bitcoin Core and its family: durations of the steps of a block.

use super::Fault;
use super::cursor::Cursor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Step {
    /// Read the block, or take it from memory.
    Load,
    /// Context-free checks.
    Sanity,
    /// Fork and duplicate-transaction rules.
    Fork,
    /// Look up and check inputs, update coins.
    Connect,
    /// Wait for script checks; counted from the start of the previous step.
    Verify,
    /// Write undo data.
    Undo,
    /// Write the block index.
    Index,
    /// Callbacks; up to 0.17.
    Callbacks,
    /// All of the above except loading.
    ConnectTotal,
    /// Flush coins to the cache.
    Flush,
    /// Write coins to disk, when due.
    Chainstate,
    /// Update mempool, tip and signals.
    Postprocess,
    /// The whole block.
    Total,
}

/// All steps with their names in the log and in columns, in log order.
pub const STEPS: [(Step, &str, &str); 13] = [
    (Step::Load, "Load block from disk", "load_ms"),
    (Step::Sanity, "Sanity checks", "sanity_ms"),
    (Step::Fork, "Fork checks", "fork_ms"),
    (Step::Connect, "Connect", "connect_ms"),
    (Step::Verify, "Verify", "verify_ms"),
    (Step::Undo, "Write undo data", "undo_ms"),
    (Step::Index, "Index writing", "index_ms"),
    (Step::Callbacks, "Callbacks", "callbacks_ms"),
    (Step::ConnectTotal, "Connect total", "connect_total_ms"),
    (Step::Flush, "Flush", "flush_ms"),
    (Step::Chainstate, "Writing chainstate", "chainstate_ms"),
    (Step::Postprocess, "Connect postprocess", "postprocess_ms"),
    (Step::Total, "Connect block", "block_ms"),
];

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Steps {
    /// From the tip line between the steps.
    pub height: Option<u32>,
    pub txs: Option<u64>,
    pub inputs: Option<u64>,
    /// Milliseconds per step, in the order of [`STEPS`].
    pub ms: [Option<f64>; STEPS.len()],
}

impl Steps {
    pub const fn of(&self, step: Step) -> Option<f64> {
        self.ms[step as usize]
    }

    /// Parses a line; returns the completed steps after the last line of a block.
    ///
    /// `body` begins after stamp and category. Other lines are skipped.
    pub(super) fn take(&mut self, body: &[u8]) -> Result<Option<Self>, Fault> {
        let mut cursor = Cursor::new(body);
        cursor.blanks();
        if cursor.eat("- ").is_none() {
            return Ok(None);
        }
        if cursor.rest.starts_with(b"Using cached block") {
            self.ms[Step::Load as usize] = Some(0.0);
            return Ok(None);
        }
        let is_of = |step: Step, name: &str| {
            let rest = cursor.rest.strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| match step {
                // `Connect 484 transactions: 4.14ms …`: other steps begin with this word.
                Step::Connect => matches!(rest, [b' ', b'0'..=b'9', ..]),
                Step::Verify => rest.starts_with(b" "),
                _ => rest.starts_with(b": "),
            })
        };
        let Some((step, name, _)) = STEPS.into_iter().find(|(step, name, _)| is_of(*step, name))
        else {
            return Ok(None);
        };
        cursor.rest = &cursor.rest[name.len()..];
        match self.time(&mut cursor, step) {
            Ok(()) if step == Step::Total => Ok(Some(std::mem::take(self))),
            Ok(()) => Ok(None),
            Err(field) => Err(Fault::Field { format: "bench", field }),
        }
    }

    /// `: 0.03ms …`, ` 484 transactions: 4.14ms …` and ` 860 txins: 4.25ms …`.
    fn time(&mut self, cursor: &mut Cursor<'_>, step: Step) -> Result<(), &'static str> {
        let mut count = |unit: &str| {
            cursor.eat(" ")?;
            let count = cursor.number()?;
            cursor.eat(unit)?;
            Some(count)
        };
        match step {
            Step::Connect => self.txs = Some(count(" transactions").ok_or("count")?),
            Step::Verify => self.inputs = Some(count(" txins").ok_or("count")?),
            _ => {}
        }
        cursor.eat(": ").ok_or("count")?;
        let ms = cursor.decimal().ok_or("time")?;
        cursor.eat("ms").ok_or("time")?;
        self.ms[step as usize] = Some(ms);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_step() {
        for (index, (step, name, _)) in STEPS.into_iter().enumerate() {
            assert_eq!(step as usize, index);
            let line = match step {
                Step::Connect => "      - Connect 484 transactions: 4.14ms (0.009ms/tx)".to_owned(),
                Step::Verify => "    - Verify 860 txins: 4.14ms (0.005ms/txin) [66.98s]".to_owned(),
                _ => format!("  - {name}: 4.14ms [1.00s (1.00ms/blk)]"),
            };
            let mut steps = Steps::default();
            let done = steps.take(line.as_bytes()).expect("a sound line");
            assert_eq!(done.is_some(), step == Step::Total, "{name}");
            assert_eq!(done.unwrap_or(steps).of(step), Some(4.14), "{name}");
        }
    }
}
