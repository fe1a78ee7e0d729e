//! Compares the end state of a target with the ledger.

use assay_ledger::TipLine;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chain::Chain;
use crate::process::rpc::{Client, RpcError};
use crate::results::{ChainSummary, Check, Run};

/// Prefix of comparisons of the UTXO set.
pub(crate) const COINS: &str = "UTXO ";
const MUHASH: &str = "UTXO MuHash";
const COUNT: &str = "UTXO count";
const AMOUNT: &str = "UTXO amount, satoshi";

/// The final UTXO set, as far as known.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Coins {
    pub(crate) muhash: Option<String>,
    pub(crate) count: Option<u64>,
    /// Satoshi.
    pub(crate) amount: Option<u64>,
    /// The run that first reported one of them, if the ledger has none.
    pub(crate) reported_by: Option<String>,
}

impl Coins {
    /// UTXO set of a forged chain; unknown for others before the first run.
    pub(crate) fn of_ledger(tip: &TipLine) -> Self {
        let is_known = !tip.utxo_muhash.is_empty();
        Self {
            muhash: is_known.then(|| tip.utxo_muhash.clone()),
            count: is_known.then_some(tip.utxo_count),
            amount: is_known.then_some(tip.utxo_amount),
            reported_by: None,
        }
    }

    /// Adopts unknown values from a finished run as reference for later ones.
    pub(crate) fn learn(&mut self, run: &Run) {
        let found = |what: &str| {
            run.checks.iter().find(|check| check.what == what).and_then(|check| check.found.clone())
        };
        let (had_count, had_muhash) = (self.count.is_some(), self.muhash.is_some());
        self.muhash = self.muhash.take().or_else(|| found(MUHASH));
        self.count = self.count.or_else(|| found(COUNT)?.parse().ok());
        self.amount = self.amount.or_else(|| found(AMOUNT)?.parse().ok());
        if self.count.is_some() != had_count || self.muhash.is_some() != had_muhash {
            self.reported_by.get_or_insert_with(|| run.id.clone());
        }
    }

    /// Describes the UTXO set of a chain that was not forged in results.
    pub(crate) fn describe(&self, chain: &mut ChainSummary) {
        if self.reported_by.is_some() {
            chain.utxo_muhash = self.muhash.clone().unwrap_or_default();
            chain.utxo_count = self.count.unwrap_or_default();
            chain.utxo_amount = self.amount.unwrap_or_default();
            chain.coins_reported_by.clone_from(&self.reported_by);
        }
    }

    /// Compares a target's UTXO set with this one. Unknown values are accepted.
    pub(crate) fn checks(&self, found: &Self) -> impl Iterator<Item = Check> + use<> {
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        let pairs = [
            (MUHASH, self.muhash.clone(), found.muhash.clone()),
            (COUNT, text(self.count), text(found.count)),
            (AMOUNT, text(self.amount), text(found.amount)),
        ];
        pairs.into_iter().filter_map(|(what, expected, found)| {
            let expected = expected.or_else(|| found.clone())?;
            Some(check(what, &expected, found))
        })
    }
}

#[derive(Debug, Default)]
pub(crate) struct EndState {
    pub(crate) tip: Option<String>,
    pub(crate) utxo_muhash: Option<String>,
    pub(crate) checks: Vec<Check>,
}

impl EndState {
    /// Compares the tip.
    pub(crate) fn at(chain: &Chain, tip: String, height: u64) -> Self {
        let checks = vec![
            check("tip", &chain.tip.hash, Some(tip.clone())),
            check("height", &chain.tip.height.to_string(), Some(height.to_string())),
        ];
        Self { tip: Some(tip), utxo_muhash: None, checks }
    }

    /// Adds it to a run, before the comparisons of the index.
    pub(crate) fn store(self, run: &mut Run) {
        (run.tip, run.utxo_muhash) = (self.tip, self.utxo_muhash);
        run.checks.splice(0..0, self.checks);
    }
}

#[derive(Deserialize)]
struct UtxoInfo {
    txouts: u64,
    #[serde(default)]
    muhash: Option<String>,
    total_amount: Box<RawValue>,
}

#[derive(Deserialize)]
struct HeaderInfo {
    #[serde(rename = "nTx")]
    txs: Option<u64>,
}

#[derive(Deserialize)]
struct BlockTxids {
    tx: Vec<serde::de::IgnoredAny>,
}

/// Queries tip, UTXO set, its `MuHash` if requested, and counts. Unavailable values are no fault.
pub(crate) fn end_state(
    client: &Client,
    chain: &Chain,
    coins: &Coins,
    has_muhash: bool,
) -> Result<EndState, RpcError> {
    let tip: String = client.call("getbestblockhash", "[]")?;
    let is_there = tip == chain.tip.hash;
    let mut end = EndState::at(chain, tip, client.call("getblockcount", "[]")?);
    if !is_there {
        return Ok(end);
    }
    end.checks.push(count_transactions(client, chain)?);
    let utxo = match utxo_info(client, has_muhash) {
        // btcd reports no number of coins.
        Err(RpcError::Node { .. }) => None,
        answer => Some(answer?),
    };
    let found = utxo.map_or_else(Coins::default, |utxo| Coins {
        muhash: utxo.muhash,
        count: Some(utxo.txouts),
        amount: satoshi(utxo.total_amount.get()),
        reported_by: None,
    });
    end.checks.extend(coins.checks(&found).filter(|check| has_muhash || check.what != MUHASH));
    end.utxo_muhash = found.muhash;
    Ok(end)
}

pub(crate) fn check(what: &str, expected: &str, found: Option<String>) -> Check {
    Check { what: what.to_owned(), expected: expected.to_owned(), found }
}

/// Compares the transaction count of every block, reported as one check.
fn count_transactions(client: &Client, chain: &Chain) -> Result<Check, RpcError> {
    let mut txs = 0;
    for block in &chain.blocks {
        let hash: String = client.call("getblockhash", &format!("[{}]", block.height))?;
        let header = match client.call("getblockheader", &format!(r#"["{hash}"]"#)) {
            // Programs older than 2015 lack the method.
            Err(RpcError::Node { .. }) => HeaderInfo { txs: None },
            answer => answer?,
        };
        let found = header.txs.map_or_else(|| txs_in_block(client, &hash), Ok)?;
        if found != block.txs {
            let what = format!("transactions of block {}", block.height);
            return Ok(check(&what, &block.txs.to_string(), Some(found.to_string())));
        }
        txs += found;
    }
    Ok(check("transactions, block by block", &chain.tip.txs.to_string(), Some(txs.to_string())))
}

/// Programs older than 2018, and btcd, omit the count from the header.
fn txs_in_block(client: &Client, hash: &str) -> Result<u64, RpcError> {
    let block: BlockTxids = match client.call("getblock", &format!(r#"["{hash}",1]"#)) {
        Err(RpcError::Node { .. }) => client.call("getblock", &format!(r#"["{hash}"]"#))?,
        answer => answer?,
    };
    Ok(block.tx.len() as u64)
}

/// With `MuHash` if requested and supported, without otherwise (BCHN accepts no argument).
fn utxo_info(client: &Client, has_muhash: bool) -> Result<UtxoInfo, RpcError> {
    let hash = if has_muhash { r#"["muhash"]"# } else { r#"["none"]"# };
    match client.call("gettxoutsetinfo", hash) {
        Err(RpcError::Node { .. }) => client.call("gettxoutsetinfo", "[]"),
        answer => answer,
    }
}

/// A decimal amount in coins, as RPC prints it, in satoshi.
fn satoshi(coins: &str) -> Option<u64> {
    let (whole, fraction) = coins.split_once('.').unwrap_or((coins, ""));
    if fraction.len() > 8 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<8}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(100_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        assert_eq!(satoshi("7500.00000000"), Some(750_000_000_000));
        assert_eq!(satoshi("0.00000001"), Some(1));
        assert_eq!(satoshi("21000000"), Some(2_100_000_000_000_000));
        assert_eq!(satoshi("1.5"), Some(150_000_000));
        for bad in ["", "-1.0", "1e5", "1.000000001", "x", "99999999999999999999"] {
            assert_eq!(satoshi(bad), None, "{bad}");
        }
    }
}
