//! Transactions of all cases, created once and sent to every node.

use assay_report::stats::random::SplitMix64;

use super::plan::{Case, MempoolPlan, What};
use crate::machine;
use crate::wallet::{Base, Coin, Kind, Signed, Wallet};

/// Transactions of a case in sending order.
pub(super) struct Work {
    /// Transactions that must be in the mempool first.
    pub(super) before: Vec<Signed>,
    /// Measured transactions.
    pub(super) txs: Vec<Signed>,
}

/// A funded chain and the transactions of each case.
pub(super) struct Workload {
    pub(super) base: Base,
    pub(super) of_cases: Vec<Work>,
}

impl Workload {
    pub(super) fn make(plan: &MempoolPlan) -> Self {
        let mut random = SplitMix64::new(plan.seed);
        let wallets = Kind::ALL.map(|kind| Wallet::new(kind, &mut random));
        let wanted = Kind::ALL.map(|kind| {
            let of_kind = plan.cases.iter().filter(|case| case.script == kind);
            of_kind.map(|case| plan.txs_of(case) / case.group()).sum::<usize>()
        });
        let needs: Vec<(&Wallet, usize)> = wallets.iter().zip(wanted).collect();
        let base = Base::make(&needs, machine::clock::now_s());
        let mut left: Vec<_> = base.coins.iter().map(|coins| coins.iter().copied()).collect();
        let of_cases = plan.cases.iter().map(|case| {
            let at = Kind::ALL.iter().position(|kind| *kind == case.script).unwrap_or_default();
            let wanted = plan.txs_of(case) / case.group();
            let coins: Vec<Coin> = left[at].by_ref().take(wanted).collect();
            work(case, &wallets[at], &coins)
        });
        let of_cases = of_cases.collect();
        Self { base, of_cases }
    }
}

fn work(case: &Case, wallet: &Wallet, coins: &[Coin]) -> Work {
    let mut before = Vec::new();
    let txs = match case.what {
        What::Admit | What::Package | What::Orphans => {
            coins.iter().flat_map(|coin| chain(wallet, *coin, case.group())).collect()
        }
        What::Replace => {
            before = coins.iter().map(|coin| payment(wallet, *coin, RATE)).collect();
            coins.iter().map(|coin| payment(wallet, *coin, REPLACEMENT_RATE)).collect()
        }
        What::Evict => {
            let wide = |(at, coin): (usize, &Coin)| {
                wallet.spend(&[*coin], EVICT_OUTPUTS, RATE + (at / TXS_OF_RATE) as u64)
            };
            coins.iter().enumerate().map(wide).collect()
        }
    };
    Work { before, txs }
}

/// A chain of `depth` transactions, each spending the first output of the previous one.
fn chain(wallet: &Wallet, coin: Coin, depth: usize) -> Vec<Signed> {
    let mut coin = coin;
    let link = |_| {
        let tx = payment(wallet, coin, RATE);
        coin = tx.outputs[0];
        tx
    };
    (0..depth).map(link).collect()
}

/// One input, two outputs: the change, which continues a chain, and a small payment.
fn payment(wallet: &Wallet, coin: Coin, rate: u64) -> Signed {
    let fee = wallet.fee(1, 2, rate);
    wallet.pay(&[coin], &[coin.value - fee - PAID, PAID])
}

/// Satoshi per virtual byte.
const RATE: u64 = 2;
const REPLACEMENT_RATE: u64 = 10;
/// Amount of a payment, satoshi.
const PAID: u64 = 10_000;
/// Outputs of a transaction that fills the mempool.
const EVICT_OUTPUTS: usize = 40;
/// Number of transactions per fee rate; the rate then rises by one.
pub(super) const TXS_OF_RATE: usize = 10;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use assay_wire::Txid;

    use super::*;
    use crate::p2p::each_input;

    #[test]
    fn cases_spend_coins_of_their_own_parents_first() {
        let text = MempoolPlan::BUILTIN.1.replace("txs = 2000", "txs = 52");
        let plan: MempoolPlan = crate::plan::read(&text, "").expect("valid");
        let workload = Workload::make(&plan);
        let known: HashSet<Txid> =
            workload.base.coins.concat().iter().map(|coin| coin.outpoint.txid).collect();
        let mut all = HashSet::new();
        for (case, work) in plan.cases.iter().zip(&workload.of_cases) {
            assert_eq!(work.txs.len(), plan.txs_of(case), "{}", case.name);
            let mut here = known.clone();
            for tx in work.before.iter().chain(&work.txs) {
                each_input(&tx.raw, |input| {
                    assert!(here.contains(&input.prevout.txid), "{}", case.name);
                });
                here.insert(tx.txid);
                assert!(all.insert(tx.txid), "{}", case.name);
            }
        }
    }
}
