//! Expected responses of a server, derived from the chain: the state of one script at every height.

use sha2::{Digest, Sha256};

/// Source of the scripts of a chain. The laboratory links no chain code, so the forge provides them.
pub trait Expected {
    /// All scripts in a reproducible order. Iterated twice: to choose, then to keep.
    fn scripts(&self) -> Box<dyn Iterator<Item = ExpectedScript> + '_>;
}

/// Expected state of one script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpectedScript {
    /// SHA-256 of the script, unreversed; the protocol prints it reversed.
    pub hash: [u8; 32],
    /// Transactions that pay to it or spend from it, each once, in chain order.
    pub history: Vec<ExpectedTx>,
    /// Outputs that paid to it, in any order.
    pub coins: Vec<ExpectedCoin>,
}

/// A confirmed transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpectedTx {
    pub height: u32,
    /// Txid in internal byte order.
    pub txid: [u8; 32],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedCoin {
    /// Creating transaction.
    pub tx: ExpectedTx,
    /// Output index.
    pub vout: u32,
    /// Amount in satoshi.
    pub value: u64,
    /// Height of the spending block.
    pub spent: Option<u32>,
}

/// Complete history of a script.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// Transactions in chain order.
    history: Vec<ExpectedTx>,
    /// Balance from each height at which it changed or a transaction touched the script.
    balances: Vec<(u32, u64)>,
    coins: Vec<ExpectedCoin>,
}

/// An unspent output, ordered for comparison with responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unspent {
    pub(crate) height: u32,
    pub(crate) txid: [u8; 32],
    pub(crate) vout: u32,
    pub(crate) value: u64,
}

impl Timeline {
    pub(crate) fn new(script: ExpectedScript) -> Self {
        let ExpectedScript { history, coins, .. } = script;
        let mut changes: Vec<(u32, i128)> = coins
            .iter()
            .flat_map(|coin| {
                let value = i128::from(coin.value);
                let spent = coin.spent.map(|height| (height, -value));
                std::iter::once((coin.tx.height, value)).chain(spent)
            })
            .collect();
        changes.sort_unstable_by_key(|(height, _)| *height);
        let mut balances: Vec<(u32, u64)> = Vec::new();
        let mut balance = 0_i128;
        for (height, change) in changes {
            balance += change;
            let total = u64::try_from(balance).unwrap_or(0);
            match balances.last_mut() {
                Some(last) if last.0 == height => last.1 = total,
                _ => balances.push((height, total)),
            }
        }
        Self { history, balances, coins }
    }

    pub(crate) fn history(&self) -> &[ExpectedTx] {
        &self.history
    }

    /// Number of transactions up to `height`.
    pub(crate) fn count_at(&self, height: u32) -> usize {
        self.history.partition_point(|tx| tx.height <= height)
    }

    /// First and last height at which a response with `count` transactions is correct; `None` if it splits a block.
    pub(crate) fn span(&self, count: usize) -> Option<(u32, u32)> {
        let from = match count {
            0 => 0,
            count => self.history.get(count - 1)?.height,
        };
        match self.history.get(count).map(|tx| tx.height) {
            Some(next) if count > 0 && next == from => None,
            Some(next) => Some((from, next - 1)),
            None => Some((from, u32::MAX)),
        }
    }

    /// Unchanged height spans that intersect `low..=high`, the latest first.
    pub(crate) fn spans(&self, low: u32, high: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let first = self.balances.partition_point(|(height, _)| *height <= low);
        let last = self.balances.partition_point(|(height, _)| *height <= high);
        (first..=last).rev().map(|index| {
            let from = index.checked_sub(1).map_or(0, |before| self.balances[before].0);
            (from, self.balances.get(index).map_or(u32::MAX, |(height, _)| height - 1))
        })
    }

    pub(crate) fn balance_at(&self, height: u32) -> u64 {
        let index = self.balances.partition_point(|(from, _)| *from <= height);
        index.checked_sub(1).map_or(0, |index| self.balances[index].1)
    }

    /// Unspent outputs at `height`, sorted.
    pub(crate) fn unspent_at(&self, height: u32) -> Vec<Unspent> {
        let is_unspent = |coin: &&ExpectedCoin| {
            coin.tx.height <= height && coin.spent.is_none_or(|spent| spent > height)
        };
        let mut unspent: Vec<Unspent> = self
            .coins
            .iter()
            .filter(is_unspent)
            .map(|coin| Unspent {
                height: coin.tx.height,
                txid: coin.tx.txid,
                vout: coin.vout,
                value: coin.value,
            })
            .collect();
        unspent.sort_unstable();
        unspent
    }

    /// Status of a history of `count` confirmed transactions; `None` if empty.
    pub(crate) fn status(&self, count: usize) -> Option<[u8; 32]> {
        if count == 0 {
            return None;
        }
        let mut hasher = Sha256::new();
        for tx in &self.history[..count] {
            hasher.update(display_hex(&tx.txid));
            hasher.update(format!(":{}:", tx.height));
        }
        Some(hasher.finalize().into())
    }
}

/// A hash as the protocol writes it: reversed bytes in hex.
pub(crate) fn display_hex(hash: &[u8; 32]) -> String {
    let mut reversed = *hash;
    reversed.reverse();
    faster_hex::hex_string(&reversed)
}

/// The inverse of [`display_hex`].
pub(crate) fn parse_display(text: &str) -> Option<[u8; 32]> {
    let mut hash = parse_hex(text)?;
    hash.reverse();
    Some(hash)
}

/// 32 bytes of hex in written order.
pub(crate) fn parse_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 {
        return None;
    }
    faster_hex::hex_decode(text.as_bytes(), &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tx(height: u32, position: u32) -> ExpectedTx {
        ExpectedTx { height, txid: [height as u8 * 16 + position as u8; 32] }
    }

    fn timeline() -> Timeline {
        let coin = |tx, vout, value, spent| ExpectedCoin { tx, vout, value, spent };
        Timeline::new(ExpectedScript {
            hash: [0; 32],
            history: vec![tx(1, 0), tx(3, 1), tx(3, 2)],
            coins: vec![
                coin(tx(1, 0), 0, 50, Some(3)),
                coin(tx(3, 1), 1, 20, Some(3)),
                coin(tx(3, 2), 0, 5, None),
            ],
        })
    }

    #[test]
    fn heights_decide() {
        let timeline = timeline();
        assert_eq!(timeline.history(), [tx(1, 0), tx(3, 1), tx(3, 2)]);
        let counts: Vec<usize> = (0..5).map(|height| timeline.count_at(height)).collect();
        assert_eq!(counts, [0, 1, 1, 3, 3]);
        let balances: Vec<u64> = (0..5).map(|height| timeline.balance_at(height)).collect();
        assert_eq!(balances, [0, 50, 50, 5, 5]);
        assert_eq!(timeline.span(0), Some((0, 0)));
        assert_eq!(timeline.span(1), Some((1, 2)));
        assert_eq!(timeline.span(2), None, "two of three transactions: half of block 3");
        assert_eq!(timeline.span(3), Some((3, u32::MAX)));
        assert_eq!(timeline.span(4), None);
        assert_eq!(timeline.spans(1, 3).collect::<Vec<_>>(), [(3, u32::MAX), (1, 2)]);
        assert_eq!(timeline.spans(0, 0).collect::<Vec<_>>(), [(0, 0)]);
        assert_eq!(timeline.unspent_at(2).len(), 1);
        assert_eq!(timeline.unspent_at(9)[0].value, 5);
        assert!(Timeline::default().unspent_at(9).is_empty());
    }

    #[test]
    fn statuses() {
        let timeline = timeline();
        assert_eq!(timeline.status(0), None);
        let text = format!("{}:1:", "10".repeat(32));
        let expected: [u8; 32] = Sha256::digest(text).into();
        assert_eq!(timeline.status(1), Some(expected));
    }

    #[test]
    fn hashes_in_both_orders() {
        let mut hash = [0; 32];
        hash[0] = 1;
        let text = display_hex(&hash);
        assert!(text.ends_with("01"));
        assert_eq!(parse_display(&text), Some(hash));
        assert_eq!(parse_display("01"), None);
        assert_eq!(parse_hex(&"zz".repeat(32)), None);
    }
}
