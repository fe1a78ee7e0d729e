//! Rules about spent coins: existence, maturity, amounts, relative lock times.

use std::rc::Rc;

use assay_consensus::params::COINBASE_MATURITY;
use assay_consensus::subsidy::block_subsidy;
use assay_wire::{OutPoint, Txid};

use super::{Class, Meant, Stage, Twist, class, sealed, twist};
use crate::build::{Block, Input, Lock, Output, Place, Tx};
use crate::world::{Coin, World};

pub(super) const TWISTS: &[Twist] = &[
    twist("bad-txns-BIP30", Stage::Body, |world, block| {
        // A transaction of the chain again, with some of its outputs unspent.
        for raw in world.accepted.iter().rev() {
            let parsed =
                assay_wire::Block::parse_prefix(raw.clone(), assay_wire::Encoding::Segwit).ok()?;
            let again = Block::from_wire(&parsed).txs.into_iter().skip(1).find(|tx| {
                (0..tx.outputs.len()).any(|vout| world.state.coins.contains_key(&tx.outpoint(vout)))
            });
            if let Some(tx) = again {
                block.txs.push(tx);
                return Some(());
            }
        }
        None
    }),
    twist("missing-unknown", Stage::Body, |world, block| {
        let mut tx = world.payment(&block.txs)?;
        let at = world.rng.below(tx.inputs.len());
        let bit = world.rng.below(8);
        if world.rng.chance(1, 2) {
            tx.inputs[at].prevout.txid.0[0] ^= 1 << bit;
        } else {
            tx.inputs[at].prevout.vout += 100;
        }
        block.txs.push(tx);
        Some(())
    })
    .because("bad-txns-inputs-missingorspent"),
    twist("missing-spent-in-block", Stage::Body, |world, block| {
        let lock = Lock::open(Place::Bare);
        let coin = world.fund(&mut block.txs, &lock)?;
        let first = world.sweep(&coin, &lock);
        let mut second = first.clone();
        second.outputs[0].value -= 1;
        block.txs.extend([first, second]);
        Some(())
    })
    .because("bad-txns-inputs-missingorspent"),
    twist("missing-wrong-order", Stage::Body, |world, block| {
        let lock = Lock::open(Place::Wsh);
        let coin = world.fund(&mut block.txs, &lock)?;
        let child = world.sweep(&coin, &lock);
        let at = block.txs.len() - 1;
        block.txs.insert(at, child);
        Some(())
    })
    .because("bad-txns-inputs-missingorspent"),
    twist("missing-unspendable", Stage::Body, |world, block| {
        // Outputs that begin with RETURN or are longer than 10,000 bytes never become coins.
        let script = if world.rng.chance(1, 2) { vec![0x6a] } else { vec![0x51; 10_001] };
        world.pass_through(&mut block.txs, &Lock::new(Place::Bare, script, Vec::new()))
    })
    .because("bad-txns-inputs-missingorspent"),
    twist("premature-own-coinbase", Stage::Committed, |_, block| {
        // A coinbase cannot commit to a transaction that spends it, so the block has no witnesses.
        block.txs.truncate(1);
        let coinbase = &mut block.txs[0];
        coinbase.inputs[0].witness.clear();
        coinbase.outputs = vec![Output { value: 5000, script_pubkey: vec![0x51] }];
        let input = Input::new(coinbase.outpoint(0), u32::MAX);
        let outputs = vec![Output { value: 1000, script_pubkey: vec![0x51] }];
        block.txs.push(Tx { version: 1, inputs: vec![input], outputs, lock_time: 0 });
        Some(())
    })
    .because("bad-txns-premature-spend-of-coinbase"),
    twist("premature-coinbase", Stage::Body, |world, block| {
        let next = world.state.height() + 1;
        let young =
            |coin: &&Rc<Coin>| coin.height + COINBASE_MATURITY > next && is_plain_coinbase(coin);
        let coins: Vec<Rc<Coin>> = world.state.coins.values().filter(young).cloned().collect();
        // The best case is a coin that lacks a single block.
        let edge: Vec<Rc<Coin>> = coins
            .iter()
            .filter(|coin| coin.height + COINBASE_MATURITY == next + 1)
            .cloned()
            .collect();
        let from = if edge.is_empty() || world.rng.chance(1, 3) { &coins } else { &edge };
        (!from.is_empty()).then_some(())?;
        let coin = Rc::clone(world.rng.pick(from));
        let lock = coin.lock.clone()?;
        let tx = world.sweep(&coin, &lock);
        block.txs.push(tx);
        Some(())
    })
    .because("bad-txns-premature-spend-of-coinbase"),
    twist("bad-txns-in-belowout", Stage::Body, |world, block| {
        let lock = Lock::open(*world.rng.pick(&[Place::Bare, Place::TapScript]));
        let coin = world.fund(&mut block.txs, &lock)?;
        let mut tx = world.sweep(&coin, &lock);
        let more = *world.rng.pick(&[1, 1000, 5_000_000_000]);
        tx.outputs[0].value = coin.output.value + more;
        block.txs.push(tx);
        Some(())
    }),
    twist("bip68-height", Stage::Body, |world, block| relative(world, block, |age| age + 1, None))
        .because("bad-txns-nonfinal"),
    twist("bip68-time", Stage::Body, |world, block| relative(world, block, |_| 0, Some(1)))
        .because("bad-txns-nonfinal"),
    twist("bad-cb-amount", Stage::Body, |world, block| {
        let limit = block_subsidy(&world.params, world.state.height() + 1) + world.fees(&block.txs);
        let others: i64 = block.txs[0].outputs.iter().skip(1).map(|output| output.value).sum();
        let more = *world.rng.pick(&[1, 1, 100_000_000]);
        block.first_output()?.value = limit - others + more;
        Some(())
    }),
];

pub(super) const CLASSES: &[Class] = &[
    class("valid-relative-locks", 10, Meant::Accepted, |world| {
        let mut block = world.block(0);
        for (more, units) in [(0, None), (0, Some(0))] {
            if relative(world, &mut block, |age| age + more, units).is_none() {
                return Vec::new();
            }
        }
        sealed(world, block)
    }),
    class("valid-mature-coinbase", 10, Meant::Accepted, |world| {
        let next = world.state.height() + 1;
        let just_mature =
            |coin: &&Rc<Coin>| coin.height + COINBASE_MATURITY == next && is_plain_coinbase(coin);
        let coins: Vec<Rc<Coin>> =
            world.state.coins.values().filter(just_mature).cloned().collect();
        let Some(coin) = coins.first() else { return Vec::new() };
        let Some(lock) = coin.lock.clone() else { return Vec::new() };
        let mut block = world.block(0);
        let tx = world.sweep(coin, &lock);
        block.txs.push(tx);
        sealed(world, block)
    }),
    class("valid-burnt-reward", 4, Meant::Accepted, |world| {
        let mut block = world.block(2);
        block.txs[0].outputs[0].value = world.rng.below(2) as i64;
        sealed(world, block)
    }),
    Class { name: "missing-spent-before", weight: 10, meant: Meant::Anything, make: spent_before },
    class("valid-zero-values", 4, Meant::Accepted, |world| {
        let mut block = world.block(0);
        let lock = Lock::open(Place::Bare);
        let Some(coin) = world.fund(&mut block.txs, &lock) else { return Vec::new() };
        let mut tx = world.sweep(&coin, &lock);
        // The whole value as fee, and a spend of the zero-value output.
        tx.outputs[0].value = 0;
        let worthless = world.made(&tx, 0, None);
        block.txs.push(tx);
        let opened = Rc::new(Lock::open(Place::Wsh));
        let output = Output { value: 0, script_pubkey: vec![0x51] };
        let tx = world.spend(&[(worthless, opened)], vec![output]);
        block.txs.push(tx);
        sealed(world, block)
    }),
];

/// True for a coinbase output with value and without lock time.
fn is_plain_coinbase(coin: &Coin) -> bool {
    coin.coinbase && coin.output.value > 1000 && coin.lock.as_deref().is_some_and(Lock::is_timeless)
}

/// Spends an old coin, or one of this block, with a relative lock time.
///
/// Without `units` the lock is by height, with the value that `blocks` returns for the coin's age;
/// with `units` it is by time, that many steps of 512 seconds above the elapsed time.
fn relative(
    world: &mut World,
    block: &mut Block,
    blocks: impl Fn(u32) -> u32,
    units: Option<u32>,
) -> Option<()> {
    let state = Rc::clone(&world.state);
    let next = state.height() + 1;
    let used: Vec<OutPoint> =
        block.txs.iter().flat_map(|tx| &tx.inputs).map(|input| input.prevout).collect();
    let fits = |coin: &&Rc<Coin>| {
        state.may_spend(coin)
            && coin.lock.as_deref().is_some_and(Lock::is_timeless)
            && coin.output.value > 1000
            && !used.contains(&coin.outpoint)
    };
    let coins: Vec<Rc<Coin>> = state.coins.values().filter(fits).cloned().collect();
    (!coins.is_empty()).then_some(())?;
    let coin = Rc::clone(world.rng.pick(&coins));
    let sequence = match units {
        None => blocks(next - coin.height),
        Some(more) => {
            let since = state.median_time_at(coin.height.saturating_sub(1));
            let passed = (state.median_time() - since) >> 9;
            (passed + more <= 0xffff).then_some(())?;
            (passed + more) | 1 << 22
        }
    };
    let lock = Lock { sequence: Some(sequence), ..Lock::clone(coin.lock.as_ref()?) };
    let tx = world.sweep(&coin, &lock);
    block.txs.push(tx);
    Some(())
}

/// A coin that a block of the chain has already spent.
fn spent_before(world: &mut World) -> Vec<Vec<u8>> {
    let spent = world.accepted.iter().rev().find_map(|raw| {
        let parsed =
            assay_wire::Block::parse_prefix(raw.clone(), assay_wire::Encoding::Segwit).ok()?;
        let tx = parsed.txs().nth(1)?;
        Some(tx.input(0).prevout)
    });
    let prevout = spent.unwrap_or(OutPoint { txid: Txid([7; 32]), vout: 0 });
    let mut block = world.block(1);
    block.txs.push(Tx {
        version: 1,
        inputs: vec![Input::new(prevout, u32::MAX)],
        outputs: vec![Output { value: 1, script_pubkey: vec![0x51] }],
        lock_time: 0,
    });
    sealed(world, block)
}
