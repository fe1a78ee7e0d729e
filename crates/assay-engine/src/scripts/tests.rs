//! Real blocks, and transactions with many inputs, some of which fail: in batches and parts of any size they have the verdict of
//! sequential verification.

use assay_consensus::params::ChainParams;
use assay_consensus::script::asm::push_number;
use assay_consensus::script::opcode::op;
use assay_consensus::script::{Flags, Interpreter, SIGHASH_ALL, TxContext};
use assay_hash::{hash160, sha256};
use assay_testkit::chain::unlocked;
use assay_testkit::random::Random;
use assay_wire::encode::compact_size;
use assay_wire::{Block, Encoding, Transaction, Tx, TxOut};
use secp256k1::{Keypair, Message, PublicKey, SecretKey, ecdsa, schnorr};

use super::many::verify_many_in_parts;
use super::runs::verify_run;
use super::*;
use crate::verify::{BlockVerifier, parse_prevouts};

/// The verdict on the scripts of a block.
fn judge(
    prepared: &Arc<Prepared>,
    rules: &BlockRules,
    coins: &[Coin],
    verifier: &Arc<Verifier>,
) -> Result<u64, TxFailure> {
    let branch = Branch::new();
    let mut queue = ScriptQueue::new((verifier, &branch), Arc::clone(prepared), *rules);
    let mut rest = coins;
    for tx_index in 1..prepared.block.tx_count() {
        let (own, others) = rest.split_at(prepared.block.tx(tx_index).input_count());
        rest = others;
        queue.push(tx_index, &mut own.to_vec());
    }
    let scripts = queue.finish();
    verifier.drain();
    assert!(scripts.is_finished());
    let failure = scripts.failure.lock().clone();
    assert_eq!(branch.has_failure(), failure.is_some());
    failure.map_or(Ok(scripts.sigchecks.load(Ordering::Relaxed)), Err)
}

/// Verifies all inputs of a transaction sequentially on one thread: the reference.
fn verify_tx(tx: Tx<'_>, spent: &[TxOut<'_>], flags: Flags) -> Result<u64, Cause> {
    let (context, inputs) = (TxContext::new(tx, spent), 0..spent.len() as u32);
    verify_run(&context, inputs, flags, &mut Interpreter::default())
        .map_err(|(input, error)| Cause::Script { input, error })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    P2pkh,
    /// Requires an invalid signature: the claim fails, but the script passes.
    NotP2pk,
    P2wpkh,
    Taproot,
    /// No signature.
    Open,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Script,
    /// The signature is valid, but for another message.
    Signature,
}

struct Key {
    secret: SecretKey,
    public: [u8; 33],
}

fn key(number: usize) -> Key {
    let secret = SecretKey::from_secret_bytes(sha256(&number.to_le_bytes())).expect("a key");
    Key { public: PublicKey::from_secret_key(&secret).serialize(), secret }
}

fn script_pubkey(lock: Lock, key: &Key) -> Vec<u8> {
    let p2pk = || [&[33][..], &key.public, &[op::CHECKSIG]].concat();
    match lock {
        Lock::P2pkh => p2pkh(key),
        Lock::NotP2pk => [&p2pk()[..], &[op::NOT]].concat(),
        Lock::P2wpkh => [&[0, 20][..], &hash160(&key.public)].concat(),
        Lock::Taproot => [&[op::PUSH1, 32][..], &key.public[1..]].concat(),
        Lock::Open => vec![op::PUSH1],
    }
}

fn p2pkh(key: &Key) -> Vec<u8> {
    let ends: (&[u8], &[u8]) = (&[op::DUP, op::HASH160, 20], &[op::EQUALVERIFY, op::CHECKSIG]);
    [ends.0, &hash160(&key.public), ends.1].concat()
}

/// A transaction and its spent outputs.
struct Spending {
    tx: Transaction,
    coins: Vec<Coin>,
}

impl Spending {
    fn outputs(&self) -> Vec<TxOut<'_>> {
        self.coins.iter().map(Coin::as_tx_out).collect()
    }
}

const VALUE: i64 = 1000;

/// Serialises version, inputs with these scripts, an output, and the witnesses, if any.
fn serialise(id: u8, inputs: &[(Vec<u8>, Vec<Vec<u8>>)]) -> Transaction {
    unlocked(id, inputs).output(VALUE, &[op::PUSH1]).build()
}

/// A signed transaction with an input per lock, and the planned faults.
fn spending(id: u8, locks: &[(Lock, Fault)]) -> Spending {
    let keys: Vec<Key> = (0..locks.len()).map(|input| key(input % 5)).collect();
    let coins: Vec<Coin> = locks
        .iter()
        .zip(&keys)
        .map(|((lock, fault), key)| Coin {
            value: VALUE,
            height: 1,
            coinbase: false,
            script_pubkey: match fault {
                Fault::Script => [op::RETURN].as_slice().into(),
                _ => script_pubkey(*lock, key).as_slice().into(),
            },
        })
        .collect();
    let blank: Vec<_> = locks.iter().map(|_| (Vec::new(), Vec::new())).collect();
    let unsigned = serialise(id, &blank);
    let outputs: Vec<TxOut<'_>> = coins.iter().map(Coin::as_tx_out).collect();
    let context = TxContext::new(unsigned.view(), &outputs);
    let sign = |input: usize| {
        let ((lock, fault), Key { secret, public }) = (locks[input], &keys[input]);
        let is_false = (fault == Fault::Signature) != (lock == Lock::NotP2pk);
        let ecdsa = |mut msg: [u8; 32]| {
            msg[0] ^= u8::from(is_false);
            let sig = ecdsa::sign(Message::from_digest(msg), secret).serialize_der();
            [&sig[..], &[SIGHASH_ALL as u8]].concat()
        };
        let push = |data: &[u8]| [&[data.len() as u8][..], data].concat();
        let own = outputs[input].script_pubkey;
        match lock {
            Lock::P2pkh => {
                let sig = ecdsa(context.sighash_legacy(input, own, SIGHASH_ALL));
                ([push(&sig), push(public)].concat(), Vec::new())
            }
            Lock::NotP2pk => {
                (push(&ecdsa(context.sighash_legacy(input, own, SIGHASH_ALL))), Vec::new())
            }
            Lock::P2wpkh => {
                let code = p2pkh(&keys[input]);
                let sig = ecdsa(context.sighash_segwit_v0(input, &code, VALUE, SIGHASH_ALL));
                (Vec::new(), vec![sig, public.to_vec()])
            }
            Lock::Taproot => {
                let mut msg = context.sighash_taproot(input, 0, None, None).expect("defined");
                msg[0] ^= u8::from(is_false);
                let keypair = Keypair::from_secret_key(secret);
                let sig = schnorr::sign_with_aux_rand(&msg, &keypair, &[0; 32]);
                (Vec::new(), vec![sig.to_byte_array().to_vec()])
            }
            Lock::Open => (Vec::new(), Vec::new()),
        }
    };
    let signed: Vec<_> = (0..locks.len()).map(sign).collect();
    Spending { tx: serialise(id, &signed), coins }
}

/// Some transactions with random numbers of inputs, of one kind or mixed, with `faults` faults.
fn random_spendings(random: &mut Random, faults: usize) -> Vec<Spending> {
    const LOCKS: [Lock; 5] = [Lock::P2pkh, Lock::NotP2pk, Lock::P2wpkh, Lock::Taproot, Lock::Open];
    let mut plans: Vec<Vec<(Lock, Fault)>> = (0..2 + random.below(3))
        .map(|_| {
            let inputs = [1 + random.below(4), 2 + random.below(30), 33 + random.below(120)];
            let only = LOCKS.get(random.below(2 * LOCKS.len()));
            (0..inputs[random.below(3)])
                .map(|_| (*only.unwrap_or(&LOCKS[random.below(LOCKS.len())]), Fault::None))
                .collect()
        })
        .collect();
    for _ in 0..faults {
        let tx = random.below(plans.len());
        let input = random.below(plans[tx].len());
        plans[tx][input].1 = [Fault::Script, Fault::Signature][random.below(2)];
    }
    plans.iter().enumerate().map(|(id, plan)| spending(id as u8, plan)).collect()
}

/// A block with these transactions after a coinbase. Only its scripts are valid.
fn block_of(spendings: &[Spending]) -> Block {
    let mut raw = vec![0; 80];
    compact_size(&mut raw, 1 + spendings.len() as u64);
    raw.extend_from_slice(serialise(0, &[(vec![1, 1], Vec::new())]).view().raw());
    for spending in spendings {
        raw.extend_from_slice(spending.tx.view().raw());
    }
    Block::parse(raw, Encoding::Segwit).expect("a block")
}

fn prepared(block: Block) -> Arc<Prepared> {
    let (hash, txids) = (block.hash(), block.txs().map(|tx| tx.txid()).collect());
    Arc::new(Prepared { txids, wtxids: None, ..Prepared::new(block, hash) })
}

/// The verdicts of sequential verification.
fn serial(spendings: &[Spending], rules: &BlockRules) -> Result<u64, TxFailure> {
    let mut sum = 0;
    for (spending, tx_index) in spendings.iter().zip(1..) {
        let fail = |cause| TxFailure { tx_index, cause };
        let sigchecks =
            verify_tx(spending.tx.view(), &spending.outputs(), rules.flags).map_err(fail)?;
        rules.check_tx_sigchecks(sigchecks).map_err(|error| fail(Cause::SigChecks(error)))?;
        sum += sigchecks;
    }
    Ok(sum)
}

fn main_rules(block: &Block) -> BlockRules {
    let params = ChainParams::by_name("main").expect("a known chain");
    *BlockVerifier::new(&params, block, 900_000, None).rules()
}

fn pool(threads: usize) -> Arc<rayon::ThreadPool> {
    Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads"))
}

/// Threads, batch size, minimum cost of a part: from one input up.
const WAYS: [(usize, Option<usize>, u64); 10] = [
    (1, None, 1),
    (2, None, 1),
    (3, None, 100_000),
    (4, None, 700_000),
    (1, Some(30), 1),
    (2, Some(1), 1),
    (2, Some(1 << 20), 1),
    (3, Some(50), 100_000),
    (4, Some(20), 1),
    (4, Some(1000), 700_000),
];

/// The verdict of sequential verification, which a block of these transactions must have in every way.
fn check_each_way(spendings: &[Spending], rules: &BlockRules) -> Result<u64, TxFailure> {
    let prepared = prepared(block_of(spendings));
    let coins: Vec<Coin> = spendings.iter().flat_map(|one| one.coins.clone()).collect();
    let expected = serial(spendings, rules);
    for (threads, script_batch, part_cost) in WAYS {
        let verifier = Verifier::with_part_cost(pool(threads), script_batch, part_cost);
        let verdict = judge(&prepared, rules, &coins, &verifier);
        assert_eq!(verdict, expected, "{threads} threads, {script_batch:?}, {part_cost}");
    }
    expected
}

#[test]
fn finds_the_lowest_failure_in_batches_of_any_size() {
    let blocks = assay_testkit::data::folder().map(|root| root.join("blocks"));
    let mut random = Random(1);
    let (mut valid, mut failed) = (0, 0);
    for (chain, name, height) in
        [("main", "mainnet-300025", 300_025), ("test", "testnet3-1087400", 1_087_400)]
    {
        let read = |kind| std::fs::read(blocks.as_ref()?.join(name).with_extension(kind)).ok();
        let (Some(raw), Some(prevouts)) = (read("blk"), read("prevouts")) else {
            println!("skipped: no block {name} in the test data");
            continue;
        };
        let params = ChainParams::by_name(chain).unwrap();
        for broken in [0, 1, 1, 2, 2, 5, 20, 200] {
            let mut raw = raw.clone();
            let block = Block::parse(raw.clone(), params.encoding).unwrap();
            let base = block.bytes().as_ptr() as usize;
            for _ in 0..broken {
                let tx = block.tx(1 + random.below(block.tx_count() - 1));
                let script = tx.input(random.below(tx.input_count())).script_sig;
                if script.len() > 40 {
                    // Within r or s: still well-formed, but invalid.
                    raw[script.as_ptr() as usize - base + 8 + random.below(20)] ^=
                        1 << random.below(7);
                }
            }
            let block = Block::parse(raw, params.encoding).unwrap();
            let judged = BlockVerifier::new(&params, &block, height, None);
            let coins: Vec<Coin> = parse_prevouts(&prevouts, judged.input_count())
                .unwrap()
                .iter()
                .map(|output| Coin {
                    value: output.value,
                    height: 1,
                    coinbase: false,
                    script_pubkey: output.script_pubkey.into(),
                })
                .collect();
            let rules = *judged.rules();
            let prepared = prepared(block);
            let expected = judge(&prepared, &rules, &coins, &Verifier::new(pool(2), None));
            for (script_batch, threads) in [(1, 1), (30, 3), (1000, 2), (1 << 20, 3)] {
                let verifier = Verifier::new(pool(threads), Some(script_batch));
                let verdict = judge(&prepared, &rules, &coins, &verifier);
                assert_eq!(verdict, expected, "{name}, {broken} broken, batches of {script_batch}");
            }
            *(if expected.is_ok() { &mut valid } else { &mut failed }) += 1;
        }
    }
    println!("{valid} valid, {failed} with a failure");
    assert!(valid + failed == 0 || (valid >= 1 && failed >= 6));
}

#[test]
fn parts_have_the_verdict_of_the_whole() {
    let mut random = Random(7);
    let (mut valid, mut failed) = (0, 0);
    for faults in [0, 0, 1, 1, 1, 2, 2, 3, 5, 8, 20, 60] {
        let spendings = random_spendings(&mut random, faults);
        let rules = main_rules(&block_of(&spendings));
        let expected = check_each_way(&spendings, &rules);
        let txs: Vec<_> = spendings.iter().map(|one| (one.tx.view(), one.outputs())).collect();
        let each: Vec<_> =
            txs.iter().map(|(tx, spent)| verify_tx(*tx, spent, rules.flags)).collect();
        for (threads, script_batch, part_cost) in WAYS {
            let way = format!("{faults} faults, {threads} threads, {script_batch:?}, {part_cost}");
            let pool = pool(threads);
            let many = verify_many_in_parts(&txs, rules.flags, script_batch, (&pool, part_cost));
            assert_eq!(many, each, "{way}");
        }
        *(if expected.is_ok() { &mut valid } else { &mut failed }) += 1;
    }
    // An invalid signature that the script requires is no fault.
    assert!(valid >= 2 && failed >= 6, "{valid} valid, {failed} failed");
}

/// Bitcoin Cash limits the signature checks of a transaction: their sum over all parts, after all have passed.
#[test]
fn signature_checks_are_those_of_all_parts() {
    let mut random = Random(11);
    let cash = ChainParams::by_name("bch-regtest").expect("a known chain").cash;
    let mut found = [0; 3];
    for faults in [0, 0, 1, 2, 3] {
        let spendings = random_spendings(&mut random, faults);
        let mut rules = main_rules(&block_of(&spendings));
        let count = |one: &Spending| verify_tx(one.tx.view(), &one.outputs(), rules.flags);
        let most = spendings.iter().filter_map(|one| count(one).ok()).max().unwrap_or_default();
        for limit in [most, most.saturating_sub(1), most / 2] {
            rules.cash = cash.map(|mut cash| {
                cash.tx_sigchecks_max = limit as u32;
                cash
            });
            let expected = check_each_way(&spendings, &rules);
            found[match expected.map_err(|failure| failure.cause) {
                Ok(_) => 0,
                Err(Cause::Script { .. }) => 1,
                Err(Cause::SigChecks(_)) => 2,
            }] += 1;
        }
    }
    assert!(found.iter().all(|count| *count > 0), "{found:?}");
}

/// Scripts of Bitcoin Cash can read inputs and outputs of other parts.
#[test]
fn every_part_can_read_the_whole_transaction() {
    const INPUTS: usize = 90;
    for faults in [&[][..], &[89], &[40, 3, 77]] {
        let coin = |input: usize| {
            // Above the small integers with an opcode of their own.
            let other = 17 + (input * 37 + 11) % (INPUTS - 17);
            let mut script = Vec::new();
            let mut expect = |words: &[u8], number: usize| {
                script.extend_from_slice(words);
                push_number(&mut script, number as i64);
                script.push(op::NUMEQUALVERIFY);
            };
            let is_faulty = faults.contains(&input);
            expect(&[op::INPUTINDEX], input);
            expect(&[op::TXINPUTCOUNT], INPUTS);
            expect(&[1, other as u8, op::UTXOVALUE], 1000 + other);
            expect(&[0, op::OUTPUTVALUE], VALUE as usize);
            expect(&[1, other as u8, op::OUTPOINTINDEX], other + usize::from(is_faulty));
            script.push(op::PUSH1);
            let value = 1000 + input as i64;
            Coin { value, height: 1, coinbase: false, script_pubkey: script.as_slice().into() }
        };
        let coins: Vec<Coin> = (0..INPUTS).map(coin).collect();
        let tx = serialise(1, &vec![(Vec::new(), Vec::new()); INPUTS]);
        let spendings = [Spending { tx, coins }];
        let rules = BlockRules { flags: Flags::BCH_MAY_2022, ..main_rules(&block_of(&spendings)) };
        let expected = check_each_way(&spendings, &rules);
        let lowest = faults.iter().min().map(|input| *input as u32);
        let failed = expected.as_ref().err().map(|failure| match failure.cause {
            Cause::Script { input, .. } => input,
            Cause::SigChecks(_) => u32::MAX,
        });
        assert_eq!(failed, lowest);
    }
}

/// Large enough for the default parts, at every place that splits.
#[test]
fn large_transactions_alone_and_in_a_block() {
    let params = ChainParams::by_name("main").expect("a known chain");
    let several = &[(299, Fault::Signature), (170, Fault::Signature), (250, Fault::Script)][..];
    for (lock, is_mixed, faults) in [
        (Lock::P2pkh, false, &[][..]),
        (Lock::P2pkh, true, &[]),
        (Lock::P2pkh, false, several),
        (Lock::P2pkh, true, several),
        (Lock::NotP2pk, false, &[(64, Fault::Signature)]),
        (Lock::Taproot, false, &[(1, Fault::Script), (0, Fault::Signature)]),
        (Lock::P2wpkh, false, &[(290, Fault::Signature)]),
    ] {
        let mut plan = vec![(lock, Fault::None); 300];
        if is_mixed {
            for (input, (lock, _)) in plan.iter_mut().enumerate() {
                *lock = [Lock::P2pkh, Lock::P2wpkh, Lock::Taproot][input / 7 % 3];
            }
        }
        for (input, fault) in faults {
            plan[*input].1 = *fault;
        }
        let spendings = [spending(1, &plan)];
        let block = block_of(&spendings);
        let rules = main_rules(&block);
        let (tx, spent) = (spendings[0].tx.view(), spendings[0].outputs());
        assert!(cut(tx, 2, PART_COST).is_some_and(|parts| parts.len() > 1));
        let expected = verify_tx(tx, &spent, rules.flags);
        let as_alone = expected.clone().map_err(|cause| match cause {
            Cause::Script { input, error } => (input as usize, error),
            Cause::SigChecks(error) => panic!("{error}"),
        });
        for threads in [1, 2, 3] {
            let pool = pool(threads);
            for script_batch in [None, Some(30), Some(2000)] {
                let many = verify_many(&[(tx, spent.clone())], rules.flags, script_batch, &pool);
                assert_eq!(many, std::slice::from_ref(&expected));
                let verifier = BlockVerifier::new(&params, &block, 900_000, None)
                    .with_script_batch(script_batch);
                let found = pool.install(|| verifier.verify_scripts(&spent, 0..2));
                match (found, &as_alone) {
                    (Ok(counts), Ok(sigchecks)) => {
                        assert_eq!(counts.total().sig_checks, *sigchecks);
                    }
                    (Err(BlockError::Script { source, .. }), Err(failure)) => {
                        assert_eq!(&(source.input, source.error), failure);
                    }
                    (found, expected) => panic!("{found:?}, not {expected:?}"),
                }
            }
        }
    }
}

/// Parts cover all inputs, each once, in order; as many as threads can use, with at least as many inputs as lanes.
#[test]
fn parts_cover_all_inputs() {
    let tx = |inputs: usize| serialise(1, &vec![(vec![0; 107], Vec::new()); inputs]);
    for inputs in [1, 2, 3, 31, 32, 33, 100, 1000, 5000] {
        let tx = tx(inputs);
        for threads in [1, 2, 3, 64] {
            for part_cost in [1, 100_000, PART_COST] {
                let Some(parts) = cut(tx.view(), threads, part_cost) else {
                    assert!(inputs == 1 || (part_cost > 1 && inputs <= 100));
                    continue;
                };
                let parts: Vec<Range<u32>> = parts.collect();
                let mut next = 0;
                for part in &parts {
                    assert!(part.start == next && part.end > next, "{parts:?}");
                    next = part.end;
                }
                assert_eq!(next as usize, inputs);
                assert!(parts.len() <= if threads == 1 { 1 } else { 8 * threads });
                assert!(inputs < 32 || parts.len() == 1 || parts[0].len().is_multiple_of(16));
            }
        }
    }
    assert_eq!(cut(tx(5000).view(), 2, PART_COST).map(|parts| parts.len()), Some(16));
    assert!(cut(tx(100).view(), 2, PART_COST).is_none(), "most transactions stay whole");
}
