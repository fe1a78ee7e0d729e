//! The script ledger: the history of every script of a chain, or of a sample, as JSON lines. It is the oracle of an index.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "scripts")]
pub struct ScriptsLine {
    /// Format version: 1.
    pub format: u32,
    pub tip_height: u32,
    pub tip_hash: String,
    /// Header of the tip in hex.
    pub tip_header: String,
    pub scripts: u64,
    /// Scripts of the chain; an estimate if only a sample is listed.
    pub scripts_total: u64,
    /// Seed of the sample; `None` if all scripts are listed.
    pub sample_seed: Option<u64>,
    /// Confirmed transactions of all listed scripts, counted once per script.
    pub history: u64,
    pub unspent: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "script")]
pub struct ScriptLine {
    /// Script hash as in the Electrum protocol.
    pub script_hash: String,
    pub status: Option<String>,
    /// Height and txid of its transactions in chain order.
    pub history: Vec<(u32, String)>,
    /// Outputs that paid to it, in chain order: all, or the unspent ones.
    pub coins: Vec<CoinLine>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoinLine {
    pub height: u32,
    pub txid: String,
    pub vout: u32,
    /// Amount in satoshi.
    pub value: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<u32>,
}

impl ScriptLine {
    /// Unspent outputs when the chain ends at `height`.
    pub fn unspent_at(&self, height: u32) -> impl Iterator<Item = &CoinLine> {
        self.coins
            .iter()
            .filter(move |coin| coin.height <= height && coin.spent.is_none_or(|at| at > height))
    }

    pub fn history_at(&self, height: u32) -> &[(u32, String)] {
        let end = self.history.partition_point(|(at, _)| *at <= height);
        &self.history[..end]
    }

    /// First and last height at which its history has `count` transactions; `None` if the last one is not the last of its block.
    pub fn span(&self, count: usize) -> Option<(u32, u32)> {
        let height = |index: usize| self.history.get(index).map(|(height, _)| *height);
        let from = match count.checked_sub(1) {
            None => 0,
            Some(last) => height(last)?,
        };
        match height(count) {
            Some(next) if count > 0 && next == from => None,
            Some(next) => Some((from, next - 1)),
            None => Some((from, u32::MAX)),
        }
    }

    /// Spans of heights without a change that intersect `low..=high`, the latest first.
    pub fn spans(&self, low: u32, high: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut end = Some(high);
        std::iter::from_fn(move || {
            let (from, to) = self.span(self.history_at(end?).len())?;
            end = from.checked_sub(1).filter(|end| *end >= low);
            Some((from, to))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_between_changes() {
        let history = [1, 3, 3].map(|height| (height, "10".repeat(32))).to_vec();
        let script = ScriptLine { history, ..ScriptLine::default() };
        assert_eq!(script.span(0), Some((0, 0)));
        assert_eq!(script.span(1), Some((1, 2)));
        assert_eq!(script.span(2), None, "two of three transactions: half of block 3");
        assert_eq!(script.span(3), Some((3, u32::MAX)));
        assert_eq!(script.span(4), None);
        assert_eq!(script.spans(1, 3).collect::<Vec<_>>(), [(3, u32::MAX), (1, 2)]);
        assert_eq!(script.spans(0, 0).collect::<Vec<_>>(), [(0, 0)]);
    }
}
