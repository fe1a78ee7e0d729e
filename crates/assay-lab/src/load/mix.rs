//! Request mixes of clients.

use std::collections::VecDeque;

use assay_report::stats::random::SplitMix64;

use super::dataset::Dataset;
use super::protocol::Ask;

/// Addresses watched ahead of the last used one; Electrum's defaults for receiving and change.
const GAP: [usize; 2] = [20, 6];
/// Used addresses among them.
const USED: [u64; 2] = [6, 3];
/// Headers per request of a wallet after an absence.
const HEADERS: u32 = 100;

/// A kind of client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mix {
    /// Requests of a wallet at start-up and after a block.
    Wallet,
    /// Requests for the scripts with the longest histories.
    Heavy,
    /// Many subscriptions with occasional requests.
    Subscribe,
}

/// One thing to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    One(Ask),
    Batch(Vec<Ask>),
}

/// Requests of a wallet from its start until it is up to date; responses to subscriptions trigger more.
pub(crate) fn session(
    dataset: &Dataset,
    rng: &mut SplitMix64,
    height: u32,
    plan: &mut VecDeque<Step>,
) {
    let start = height.saturating_sub(HEADERS - 1);
    plan.extend([
        Step::One(Ask::Features),
        Step::One(Ask::Tip),
        Step::One(Ask::Headers { start, count: HEADERS.min(height + 1) }),
    ]);
    plan.extend([2, 5, 10, 25].map(|blocks| Step::One(Ask::EstimateFee(blocks))));
    plan.push_back(Step::One(Ask::FeeHistogram));
    for (gap, used) in GAP.into_iter().zip(USED) {
        let mut asks = Vec::with_capacity(gap + used as usize);
        if !dataset.used.is_empty() {
            asks.extend((0..used).map(|_| Ask::Subscribe(pick(&dataset.used, rng))));
        }
        asks.extend((0..gap).map(|_| Ask::Subscribe(pick(&dataset.unused, rng))));
        plan.push_back(Step::Batch(asks));
    }
}

/// Requests of a wallet after the notification of a script.
pub(crate) fn follow_up(script: u32, plan: &mut VecDeque<Step>) {
    plan.extend([Ask::History(script), Ask::Balance(script), Ask::Unspent(script)].map(Step::One));
}

/// Requests of a wallet after it received a history: unknown transactions and their proofs.
pub(crate) fn after_history(
    dataset: &Dataset,
    script: u32,
    height: u32,
    plan: &mut VecDeque<Step>,
) {
    for &tx in &dataset.scripts[script as usize].txs {
        if dataset.txs[tx as usize].height <= height {
            plan.extend([Step::One(Ask::Transaction(tx)), Step::One(Ask::Merkle(tx))]);
        }
    }
}

/// A single request in the proportions of a session, for clients at a fixed rate or without pause.
pub(crate) fn draw(
    mix: Mix,
    dataset: &Dataset,
    rng: &mut SplitMix64,
    height: u32,
    own: &[u32],
) -> Ask {
    let share = rng.below(100);
    match mix {
        Mix::Wallet => draw_wallet(dataset, rng, height, share),
        Mix::Heavy => {
            let script = pick(&dataset.heavy, rng);
            match share {
                0..40 => Ask::History(script),
                40..60 => Ask::Balance(script),
                60..80 => Ask::Unspent(script),
                _ => Ask::Subscribe(script),
            }
        }
        Mix::Subscribe => match share {
            0..40 => Ask::History(pick(own, rng)),
            40..70 => Ask::Balance(pick(own, rng)),
            70..80 => Ask::EstimateFee(2),
            _ => Ask::Ping,
        },
    }
}

fn draw_wallet(dataset: &Dataset, rng: &mut SplitMix64, height: u32, share: u64) -> Ask {
    let scripts = if dataset.used.is_empty() { &dataset.unused } else { &dataset.used };
    let txs = dataset.txs_at(height) as u64;
    match share {
        0..40 if txs > 0 => {
            let tx = rng.below(txs) as u32;
            if share < 20 { Ask::Transaction(tx) } else { Ask::Merkle(tx) }
        }
        0..65 => Ask::History(pick(scripts, rng)),
        65..75 => Ask::Balance(pick(scripts, rng)),
        75..85 => Ask::Unspent(pick(scripts, rng)),
        85..90 => Ask::EstimateFee(2),
        90..94 => Ask::Header(rng.below(u64::from(height) + 1) as u32),
        94..96 => Ask::FeeHistogram,
        _ => Ask::Ping,
    }
}

pub(crate) fn pick(items: &[u32], rng: &mut SplitMix64) -> u32 {
    items[rng.below(items.len() as u64) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wallets_begin_as_wallets_do() {
        let dataset = Dataset::new(None, None, &["01".repeat(32), "02".repeat(32)], 1)
            .expect("nothing is read");
        let mut plan = VecDeque::new();
        session(&dataset, &mut SplitMix64::new(1), 0, &mut plan);
        assert!(plan.contains(&Step::One(Ask::Headers { start: 0, count: 1 })));
        let batches: Vec<usize> = plan
            .iter()
            .filter_map(|step| match step {
                Step::Batch(asks) => Some(asks.len()),
                Step::One(_) => None,
            })
            .collect();
        assert_eq!(batches, [26, 9]);
    }

    #[test]
    fn draws_without_data() {
        let dataset = Dataset::new(None, None, &[], 1).expect("nothing is read");
        let mut rng = SplitMix64::new(5);
        for _ in 0..500 {
            let ask = draw(Mix::Wallet, &dataset, &mut rng, 0, &[]);
            assert!(!matches!(ask, Ask::Transaction(_) | Ask::Merkle(_)), "{ask:?}");
            draw(Mix::Subscribe, &dataset, &mut rng, 0, &[3]);
        }
    }
}
