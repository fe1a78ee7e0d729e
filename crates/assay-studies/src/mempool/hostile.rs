//! Worst cases of a mempool: clusters as large and as tangled as policy allows, and replacements that pay but fail.

use assay_report::stats::random::SplitMix64;
use assay_wire::{OutPoint, Transaction, Txid};

use super::chain::{CoinOf, tx};

/// Transactions of a cluster: Core's `DEFAULT_CLUSTER_LIMIT` (`policy/policy.h`).
pub(super) const CLUSTER_TXS: usize = 64;
/// Half of them spend confirmed coins; all others but one spend outputs of half of those.
const PARENTS: usize = CLUSTER_TXS / 2;
pub(super) const COINS_PER_CLUSTER: usize = PARENTS + 1;
/// Clusters that a replacement conflicts with: Core's `MAX_REPLACEMENT_CANDIDATES` (`policy/rbf.h`).
pub(super) const VICTIMS: usize = 100;
/// Outputs of a replacement, which make it larger than the replaced transactions.
const REPLACEMENT_OUTPUTS: usize = 1200;

/// A cluster of [`CLUSTER_TXS`] transactions with nearly equal fee rates, half of which spend random outputs of the other half:
/// no subset is obviously best.
pub(super) struct Cluster {
    /// Parents before children.
    pub(super) txs: Vec<Transaction>,
    /// Transaction that a replacement may conflict with: the last one, which has no descendants.
    pub(super) bait: Txid,
    bait_coin: CoinOf,
    bait_fee_sat: i64,
}

impl Cluster {
    /// Spends [`COINS_PER_CLUSTER`] coins at about `rate` thousandths of a satoshi per virtual byte.
    pub(super) fn new(random: &mut SplitMix64, coins: &[CoinOf], rate: i64) -> Self {
        let children = CLUSTER_TXS - PARENTS - 1;
        // Parents that each child spends; the first one keeps the cluster connected.
        let wanted: Vec<Vec<usize>> = (0..children)
            .map(|child| {
                let is_wanted = |parent: &usize| *parent == child || random.next() & 1 == 1;
                (0..PARENTS - 1).filter(is_wanted).chain([PARENTS - 1]).collect()
            })
            .collect();
        let mut outputs = [0; PARENTS];
        for parent in wanted.iter().flatten() {
            outputs[*parent] += 1;
        }
        let mut txs = Vec::with_capacity(CLUSTER_TXS);
        // Unspent outputs of each parent.
        let mut free: Vec<Vec<CoinOf>> = Vec::with_capacity(PARENTS);
        for (parent, (outpoint, value)) in coins[..PARENTS].iter().enumerate() {
            // One more for the bait.
            let count = outputs[parent] + 1;
            let fee = fee_sat(random, 1, count, rate * 96 / 100);
            let each = (value - fee) / count as i64;
            let mut values = vec![each; count];
            values[0] += value - fee - each * count as i64;
            let tx = tx(&[*outpoint], &values);
            let txid = tx.view().txid();
            free.push((0..).zip(values).map(|(vout, v)| (OutPoint { txid, vout }, v)).collect());
            txs.push(tx);
        }
        for parents in wanted {
            let spent: Vec<CoinOf> =
                parents.into_iter().filter_map(|parent| free[parent].pop()).collect();
            txs.push(join(random, &spent, rate).0);
        }
        let bait_coin = coins[PARENTS];
        let spent = [bait_coin, free[0][0], free[PARENTS - 1][0]];
        let (bait_tx, bait_fee_sat) = join(random, &spent, rate * 110 / 100);
        let bait = bait_tx.view().txid();
        txs.push(bait_tx);
        Self { txs, bait, bait_coin, bait_fee_sat }
    }
}

fn join(random: &mut SplitMix64, spent: &[CoinOf], rate: i64) -> (Transaction, i64) {
    let value: i64 = spent.iter().map(|(_, value)| value).sum();
    let fee = fee_sat(random, spent.len(), 1, rate);
    let inputs: Vec<OutPoint> = spent.iter().map(|(outpoint, _)| *outpoint).collect();
    (tx(&inputs, &[value - fee]), fee)
}

/// Fee of a transaction of this shape at `rate` and up to an eighth more.
fn fee_sat(random: &mut SplitMix64, inputs: usize, outputs: usize, rate: i64) -> i64 {
    let vsize = (12 + 43 * inputs + 32 * outputs) as i64;
    vsize * (rate + (random.next() % 125) as i64 * rate / 1000) / 1000 + 1
}

/// Conflicts with the bait of every victim and pays for all at a lower fee rate: fails only the check of the fee rate diagram.
pub(super) fn replacement(victims: &[Cluster]) -> Vec<u8> {
    let inputs: Vec<OutPoint> = victims.iter().map(|victim| victim.bait_coin.0).collect();
    let value: i64 = victims.iter().map(|victim| victim.bait_coin.1).sum();
    let replaced: i64 = victims.iter().map(|victim| victim.bait_fee_sat).sum();
    let vsize = (12 + 43 * inputs.len() + 32 * REPLACEMENT_OUTPUTS) as i64;
    let each = (value - replaced - vsize) / REPLACEMENT_OUTPUTS as i64;
    tx(&inputs, &[each; REPLACEMENT_OUTPUTS]).bytes().to_vec()
}

/// Another transaction with the same effect: the lock time is ignored if all inputs are final.
pub(super) fn variant(raw: &[u8], number: u32) -> Vec<u8> {
    let mut raw = raw.to_vec();
    let at = raw.len() - 4;
    raw[at..].copy_from_slice(&number.to_le_bytes());
    raw
}
