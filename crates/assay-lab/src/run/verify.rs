//! Compares the end state of a target with the ledger.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chain::Chain;
use crate::process::rpc::{Client, RpcError};
use crate::results::Check;

/// What the target's end state is.
#[derive(Debug, Default)]
pub(crate) struct EndState {
    pub(crate) tip: Option<String>,
    pub(crate) utxo_muhash: Option<String>,
    pub(crate) checks: Vec<Check>,
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

/// Asks the target for tip, UTXO set and counts. What it cannot tell is not held against it.
pub(crate) fn end_state(client: &Client, chain: &Chain) -> Result<EndState, RpcError> {
    let tip: String = client.call("getbestblockhash", "[]")?;
    let height: u64 = client.call("getblockcount", "[]")?;
    let mut checks = vec![
        check("tip", &chain.tip.hash, Some(tip.clone())),
        check("height", &chain.tip.height.to_string(), Some(height.to_string())),
    ];
    if tip != chain.tip.hash {
        return Ok(EndState { tip: Some(tip), utxo_muhash: None, checks });
    }
    checks.push(count_transactions(client, chain)?);
    let utxo = match utxo_info(client) {
        // btcd does not count its coins.
        Err(RpcError::Node { .. }) => None,
        answer => Some(answer?),
    };
    let found = |tell: fn(&UtxoInfo) -> Option<String>| utxo.as_ref().and_then(tell);
    let muhash = found(|utxo| utxo.muhash.clone());
    checks.extend([
        check("UTXO MuHash", &chain.tip.utxo_muhash, muhash.clone()),
        check(
            "UTXO count",
            &chain.tip.utxo_count.to_string(),
            found(|utxo| Some(utxo.txouts.to_string())),
        ),
        check(
            "UTXO amount, satoshi",
            &chain.tip.utxo_amount.to_string(),
            found(|utxo| satoshi(utxo.total_amount.get()).map(|amount| amount.to_string())),
        ),
    ]);
    Ok(EndState { tip: Some(tip), utxo_muhash: muhash, checks })
}

fn check(what: &str, expected: &str, found: Option<String>) -> Check {
    Check { what: what.to_owned(), expected: expected.to_owned(), found }
}

/// Transactions of every block, compared one by one, reported as one check.
fn count_transactions(client: &Client, chain: &Chain) -> Result<Check, RpcError> {
    let mut txs = 0;
    for block in &chain.blocks {
        let hash: String = client.call("getblockhash", &format!("[{}]", block.height))?;
        let header = match client.call("getblockheader", &format!(r#"["{hash}"]"#)) {
            // Programs of before 2015 do not know the method.
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

/// Programs of before 2018, and btcd, leave the count out of the header.
fn txs_in_block(client: &Client, hash: &str) -> Result<u64, RpcError> {
    let block: BlockTxids = match client.call("getblock", &format!(r#"["{hash}",1]"#)) {
        Err(RpcError::Node { .. }) => client.call("getblock", &format!(r#"["{hash}"]"#))?,
        answer => answer?,
    };
    Ok(block.tx.len() as u64)
}

/// With `MuHash` where the program knows it, without otherwise (BCHN takes no argument).
fn utxo_info(client: &Client) -> Result<UtxoInfo, RpcError> {
    match client.call("gettxoutsetinfo", r#"["muhash"]"#) {
        Err(RpcError::Node { .. }) => client.call("gettxoutsetinfo", "[]"),
        answer => answer,
    }
}

/// An amount as RPC prints it, a decimal number of coins, in satoshi.
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
