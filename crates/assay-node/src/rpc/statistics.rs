//! RPC of block and chain statistics.

use std::collections::BTreeSet;

use assay_consensus::amount::MAX_MONEY;
use assay_consensus::params::MAX_BLOCK_WEIGHT;
use assay_consensus::subsidy::block_subsidy;
use assay_consensus::tx::is_unspendable;
use assay_engine::{BlockEntry, ChainCheck, Checked};
use assay_wire::{Block, BlockHash, Coin, encode};

use super::args;
use super::blocks::{is_pruned, parse, read_block, spent_by};
use super::method::Call;
use super::{Node, bad, block_not_found};
use crate::jsonrpc::{Code, Json, Object, RpcError, Value};

pub(super) const GETCHAINTXSTATS: Call = |node, args, out| {
    let count: Option<i32> = args.value(0).map(|_| args.integer(0)).transpose()?;
    let hash = args.optional_block_hash(1, "blockhash")?;
    let is_given = hash.is_some();
    let hash = hash.unwrap_or_else(|| node.engine.chain().tip().hash);
    let last = node.engine.chain().entry(&hash).ok_or_else(block_not_found)?;
    if is_given && !last.in_active_chain {
        return Err(bad("Block is not in main chain"));
    }
    let height = i64::from(last.height);
    let count = match count.map(i64::from) {
        None => {
            let month = 30 * 24 * 60 * 60 / i64::from(node.rpc.params.pow.target_spacing_s);
            month.min(height - 1).max(0)
        }
        Some(count) if count < 0 || (count > 0 && count >= height) => {
            return Err(bad("Invalid block count: should be between 0 and the block's height - 1"));
        }
        Some(count) => count,
    };
    let first = node.engine.chain().hash_at((height - count) as u32);
    let first = first.and_then(|hash| node.engine.chain().entry(&hash));
    let first = first.ok_or_else(block_not_found)?;
    let interval_s = i64::from(last.median_time) - i64::from(first.median_time);
    let mut object = Json::new(out).object();
    object.key("time").int(last.header.time);
    // Below a snapshot the count is unknown until all blocks are present.
    if last.chain_txs > 0 {
        object.key("txcount").int(last.chain_txs);
    }
    object.key("window_final_block_hash").text(last.hash);
    object.key("window_final_block_height").int(last.height);
    object.key("window_block_count").int(count);
    if count > 0 {
        object.key("window_interval").int(interval_s);
        if last.chain_txs > 0 && first.chain_txs > 0 {
            let txs = last.chain_txs.saturating_sub(first.chain_txs);
            object.key("window_tx_count").int(txs);
            if interval_s > 0 {
                object.key("txrate").real(txs as f64 / interval_s as f64);
            }
        }
    }
    Ok(())
};

pub(super) const VERIFYCHAIN: Call = |node, args, out| {
    let level: i32 = args.integer_or(0, 3)?;
    let count: i32 = args.integer_or(1, 6)?;
    let check = ChainCheck {
        level: u32::try_from(level).unwrap_or(0),
        blocks: u32::try_from(count).unwrap_or(0),
        ..ChainCheck::default()
    };
    let goes_on = || !node.context.interrupted();
    let checked = node.engine.chain().check(check, &goes_on)?;
    Json::new(out).bool(checked == Checked::Sound);
    Ok(())
};

/// Block hash, or height in the active chain (Core's `ParseHashOrHeight`).
pub(super) enum Which {
    Hash(BlockHash),
    Height(i32),
}

impl Which {
    pub(super) fn of(value: Value<'_>, name: &str) -> Result<Self, RpcError> {
        if value.type_name() == "number" {
            args::integer_of(value).map(Self::Height)
        } else {
            args::hash_of(&args::string_of(value)?, name).map(Self::Hash)
        }
    }
}

pub(super) const GETBLOCKSTATS: Call = |node, args, out| {
    let which = args.value(0).ok_or_else(|| args::wrong_type(None, "number"))?;
    let which = Which::of(which, "hash_or_height")?;
    if let Some(other) = args.value(1).filter(|value| value.type_name() != "array") {
        return Err(args::wrong_type(Some(other), "array"));
    }
    let mut wanted = BTreeSet::new();
    for name in args.value(1).and_then(Value::elements).unwrap_or_default() {
        wanted.insert(args::string_of(name)?.into_owned());
    }
    let entry = find(node, &which)?;
    let figures = figures(node, &entry)?;
    write_figures(&figures, &wanted, out)
};

pub(super) fn find(node: &Node<'_>, which: &Which) -> Result<BlockEntry, RpcError> {
    let hash = match which {
        Which::Hash(hash) => *hash,
        Which::Height(height) => {
            let tip = node.engine.chain().tip().height;
            let at = u32::try_from(*height)
                .map_err(|_| bad(format!("Target block height {height} is negative")))?;
            let beyond = || bad(format!("Target block height {height} after current tip {tip}"));
            node.engine.chain().hash_at(at).ok_or_else(beyond)?
        }
    };
    node.engine.chain().entry(&hash).ok_or_else(block_not_found)
}

enum Figure {
    Number(i64),
    Numbers([i64; 5]),
    Hash(BlockHash),
}

/// Sums over the transactions of a block, without the coinbase.
#[derive(Default)]
struct Sums {
    outputs: i64,
    inputs: i64,
    total_out: i64,
    utxos: i64,
    utxo_bytes: i64,
    utxo_bytes_actual: i64,
    swtxs: i64,
    swtotal_size: i64,
    swtotal_weight: i64,
    fees: Vec<i64>,
    /// Satoshi per virtual byte, and weight.
    rates: Vec<(i64, i64)>,
    sizes: Vec<i64>,
}

impl Sums {
    fn of(block: &Block, spent: Option<&[Vec<Coin>]>, height: u32) -> Self {
        let mut sums = Self::default();
        for (index, tx) in block.txs().enumerate() {
            sums.outputs += tx.output_count() as i64;
            let mut out_sat = 0;
            for output in tx.outputs() {
                out_sat += output.value;
                let bytes = utxo_bytes(output.script_pubkey);
                sums.utxo_bytes += bytes;
                // The genesis coinbase creates no coin.
                if height > 0 && !is_unspendable(output.script_pubkey) {
                    sums.utxos += 1;
                    sums.utxo_bytes_actual += bytes;
                }
            }
            if index == 0 {
                continue;
            }
            sums.inputs += tx.input_count() as i64;
            sums.total_out += out_sat;
            let (size, weight) = (tx.total_size() as i64, tx.weight() as i64);
            if tx.has_witness() {
                sums.swtxs += 1;
                sums.swtotal_size += size;
                sums.swtotal_weight += weight;
            }
            let coins = spent_by(spent, index).unwrap_or_default();
            for coin in coins {
                let bytes = utxo_bytes(&coin.script_pubkey);
                sums.utxo_bytes -= bytes;
                sums.utxo_bytes_actual -= bytes;
            }
            let fee = coins.iter().map(|coin| coin.value).sum::<i64>() - out_sat;
            sums.fees.push(fee);
            sums.rates.push((fee * 4 / weight.max(1), weight));
            sums.sizes.push(size);
        }
        sums
    }
}

/// Serialized output with Core's overhead of an entry: outpoint and height.
fn utxo_bytes(script: &[u8]) -> i64 {
    const OVERHEAD: usize = 36 + 4;
    (8 + encode::compact_size_len(script.len() as u64) + script.len() + OVERHEAD) as i64
}

fn figures(node: &Node<'_>, entry: &BlockEntry) -> Result<Vec<(&'static str, Figure)>, RpcError> {
    use Figure::{Hash, Number, Numbers};
    let params = &node.rpc.params;
    let block = parse(params, &entry.hash, read_block(node, &entry.hash)?)?;
    let spent = node.engine.blocks().read_spent(&entry.hash).map_err(|error| {
        tracing::error!("undo data of block {}: {error}", entry.hash);
        RpcError::new(Code::Misc, "Can't read undo data from disk")
    })?;
    if spent.is_none() && block.tx_count() > 1 {
        let pruned = if is_pruned(node, &entry.hash) { " (pruned data)" } else { "" };
        return Err(RpcError::new(Code::Misc, format!("Undo data not available{pruned}")));
    }
    let mut sums = Sums::of(&block, spent.as_deref(), entry.height);
    let txs = block.tx_count() as i64;
    let total = |values: &[i64]| values.iter().sum::<i64>();
    let most = |values: &[i64]| values.iter().copied().max().unwrap_or(0).max(0);
    let least = |values: &[i64], none: i64| {
        values.iter().copied().min().filter(|value| *value < none).unwrap_or(0)
    };
    let total_weight = sums.rates.iter().map(|(_, weight)| weight).sum::<i64>();
    let (total_fee, total_size) = (total(&sums.fees), total(&sums.sizes));
    let average = |sum: i64| if txs > 1 { sum / (txs - 1) } else { 0 };
    let rates: Vec<i64> = sums.rates.iter().map(|(rate, _)| *rate).collect();
    Ok(vec![
        ("avgfee", Number(average(total_fee))),
        ("avgfeerate", Number(if total_weight > 0 { total_fee * 4 / total_weight } else { 0 })),
        ("avgtxsize", Number(average(total_size))),
        ("blockhash", Hash(entry.hash)),
        ("feerate_percentiles", Numbers(percentiles(&mut sums.rates, total_weight))),
        ("height", Number(i64::from(entry.height))),
        ("ins", Number(sums.inputs)),
        ("maxfee", Number(most(&sums.fees))),
        ("maxfeerate", Number(most(&rates))),
        ("maxtxsize", Number(most(&sums.sizes))),
        ("medianfee", Number(median(&mut sums.fees.clone()))),
        ("mediantime", Number(i64::from(entry.median_time))),
        ("mediantxsize", Number(median(&mut sums.sizes.clone()))),
        ("minfee", Number(least(&sums.fees, MAX_MONEY))),
        ("minfeerate", Number(least(&rates, MAX_MONEY))),
        ("mintxsize", Number(least(&sums.sizes, MAX_BLOCK_WEIGHT as i64))),
        ("outs", Number(sums.outputs)),
        ("subsidy", Number(block_subsidy(params, entry.height))),
        ("swtotal_size", Number(sums.swtotal_size)),
        ("swtotal_weight", Number(sums.swtotal_weight)),
        ("swtxs", Number(sums.swtxs)),
        ("time", Number(i64::from(entry.header.time))),
        ("total_out", Number(sums.total_out)),
        ("total_size", Number(total_size)),
        ("total_weight", Number(total_weight)),
        ("totalfee", Number(total_fee)),
        ("txs", Number(txs)),
        ("utxo_increase", Number(sums.outputs - sums.inputs)),
        ("utxo_size_inc", Number(sums.utxo_bytes)),
        ("utxo_increase_actual", Number(sums.utxos - sums.inputs)),
        ("utxo_size_inc_actual", Number(sums.utxo_bytes_actual)),
    ])
}

/// For an even number, the truncated mean of the middle two.
fn median(values: &mut [i64]) -> i64 {
    values.sort_unstable();
    let middle = values.len() / 2;
    match values.len() {
        0 => 0,
        count if count.is_multiple_of(2) => i64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

/// Fee rates at 10, 25, 50, 75 and 90 percent of the weight.
fn percentiles(rates: &mut [(i64, i64)], total_weight: i64) -> [i64; 5] {
    let Some(highest) = rates.iter().map(|(rate, _)| *rate).max() else { return [0; 5] };
    rates.sort_unstable();
    let total = total_weight as f64;
    let bounds = [total / 10.0, total / 4.0, total / 2.0, total * 3.0 / 4.0, total * 9.0 / 10.0];
    bounds.map(|bound| {
        let mut sum = 0;
        let reached = rates.iter().find(|(_, weight)| {
            sum += weight;
            sum as f64 >= bound
        });
        reached.map_or(highest, |(rate, _)| *rate)
    })
}

fn write_figures(
    figures: &[(&str, Figure)],
    wanted: &BTreeSet<String>,
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    let mut object = Json::new(out).object();
    if wanted.is_empty() {
        for (name, figure) in figures {
            write_figure(name, figure, &mut object);
        }
    }
    for name in wanted {
        let Some((name, figure)) = figures.iter().find(|(known, _)| known == name) else {
            return Err(bad(format!("Invalid selected statistic '{name}'")));
        };
        write_figure(name, figure, &mut object);
    }
    Ok(())
}

fn write_figure(name: &str, figure: &Figure, object: &mut Object<'_>) {
    match figure {
        Figure::Number(number) => object.key(name).int(*number),
        Figure::Hash(hash) => object.key(name).text(hash),
        Figure::Numbers(numbers) => {
            object.key(name).list(numbers, |number, json| json.int(*number));
        }
    }
}
