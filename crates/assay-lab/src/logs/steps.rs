//! Parses `-debug=bench` of Bitcoin Core and its family: durations of the steps of a block.

use super::Fault;
use super::cursor::Cursor;

/// A step of connecting a block.
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

/// The step times of one block.
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
        let step = match cursor.rest.first() {
            Some(b'L') => self.named(&mut cursor, Step::Load),
            Some(b'S') => self.named(&mut cursor, Step::Sanity),
            Some(b'I') => self.named(&mut cursor, Step::Index),
            Some(b'V') => self.counted(&mut cursor),
            Some(b'F') => {
                let step = if cursor.rest.starts_with(b"Fl") { Step::Flush } else { Step::Fork };
                self.named(&mut cursor, step)
            }
            Some(b'W') => {
                let is_undo = cursor.rest.starts_with(b"Write u");
                self.named(&mut cursor, if is_undo { Step::Undo } else { Step::Chainstate })
            }
            Some(b'U') => {
                if cursor.rest.starts_with(b"Using cached block") {
                    self.ms[Step::Load as usize] = Some(0.0);
                }
                Ok(None)
            }
            Some(b'C') => match cursor.rest.get(8) {
                Some(b'0'..=b'9') => self.counted(&mut cursor),
                Some(b't') => self.named(&mut cursor, Step::ConnectTotal),
                Some(b'p') => self.named(&mut cursor, Step::Postprocess),
                Some(b'b') => self.named(&mut cursor, Step::Total),
                _ => self.named(&mut cursor, Step::Callbacks),
            },
            _ => Ok(None),
        };
        match step {
            Ok(Some(Step::Total)) => Ok(Some(std::mem::take(self))),
            Ok(_) => Ok(None),
            Err(field) => Err(Fault::Field { format: "bench", field }),
        }
    }

    /// `Flush: 0.03ms …`; `None` for other lines.
    fn named(&mut self, cursor: &mut Cursor<'_>, step: Step) -> Result<Option<Step>, &'static str> {
        let (_, name, _) = STEPS[step as usize];
        if cursor.eat(name).is_none() || cursor.eat(": ").is_none() {
            return Ok(None);
        }
        self.time(cursor, step)
    }

    /// `Connect 484 transactions: 4.14ms …` and `Verify 860 txins: 4.25ms …`.
    fn counted(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<Step>, &'static str> {
        let is_connect = cursor.eat("Connect ").is_some();
        if !is_connect && cursor.eat("Verify ").is_none() {
            return Ok(None);
        }
        let count = cursor.number().ok_or("count")?;
        if is_connect {
            cursor.eat(" transactions: ").ok_or("count")?;
            self.txs = Some(count);
            self.time(cursor, Step::Connect)
        } else {
            cursor.eat(" txins: ").ok_or("count")?;
            self.inputs = Some(count);
            self.time(cursor, Step::Verify)
        }
    }

    fn time(&mut self, cursor: &mut Cursor<'_>, step: Step) -> Result<Option<Step>, &'static str> {
        let ms = cursor.decimal().ok_or("time")?;
        cursor.eat("ms").ok_or("time")?;
        self.ms[step as usize] = Some(ms);
        Ok(Some(step))
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
