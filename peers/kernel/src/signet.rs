//! Blocks of custom signets (BIP325) with a valid, missing, or modified solution in the coinbase.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use assay_consensus::commitment::{height_prefix, txid_merkle_root};
use assay_consensus::params::ChainParams;
use assay_consensus::pow::{encode_compact, target_from_bits};
use assay_consensus::subsidy::block_subsidy;
use assay_consensus::uint256::U256;
use assay_hash::{Sha256, sha256};
use assay_wire::encode::{compact_size, var_bytes};
use assay_wire::{BlockHash, Header, OutPoint, Txid};
use serde::Serialize;

use crate::build::{
    Block, Input, Item, KeyForm, Lock, Output, Place, Rng, Sig, Tx, Writer, encoded_key, unlock,
};
use crate::judge::Pair;
use crate::kernel::Chain;
use crate::verdict::Verdict;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    pub seed: u64,
    pub blocks: u64,
    pub cases: BTreeMap<&'static str, BTreeMap<String, u64>>,
    pub elapsed_s: f64,
    pub disagreements: Vec<String>,
}

/// Changes to the solution of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Good,
    Missing,
    EmptyPush,
    OtherKey,
    Bit,
    Trailing,
    Cut,
    SecondIgnored,
    ChangedAfterwards,
    NoCommitment,
}

const CASES: [(Case, &str); 10] = [
    (Case::Good, "good solution"),
    (Case::Missing, "no solution"),
    (Case::EmptyPush, "header without solution"),
    (Case::OtherKey, "signed by another key"),
    (Case::Bit, "one bit flipped"),
    (Case::Trailing, "a byte too many"),
    (Case::Cut, "a byte too few"),
    (Case::SecondIgnored, "a second solution behind the good one"),
    (Case::ChangedAfterwards, "changed after signing"),
    (Case::NoCommitment, "no commitment"),
];

const SIGNET_HEADER: [u8; 4] = [0xec, 0xc7, 0xda, 0xa2];

struct Net {
    params: ChainParams,
    challenge: Lock,
    pair: Pair,
    height: u32,
    tip: BlockHash,
    time: u32,
    _dir: tempfile::TempDir,
}

/// Mines and submits `blocks` blocks on signets with three kinds of challenges.
pub fn run(seed: u64, blocks: u64) -> Result<Summary> {
    let start = Instant::now();
    let mut summary = Summary { seed, ..Summary::default() };
    let mut rng = Rng::new("assay peer kernel signet", seed, 0);
    let script = Writer::new().push(&encoded_key(1, KeyForm::Compressed)).op(0xac).done();
    let signed = vec![Item::Sig(Sig::all(1))];
    let challenges = [
        Lock::open(Place::Bare),
        Lock::new(Place::Bare, script.clone(), signed.clone()),
        Lock::new(Place::Wsh, script, signed),
    ];
    let mut nets = Vec::new();
    for challenge in challenges {
        nets.push(Net::open(challenge)?);
    }
    for number in 0..blocks {
        let net = &mut nets[(number % 3) as usize];
        let (case, name) = CASES[(number / 3) as usize % CASES.len()];
        net.submit(case, name, &mut rng, &mut summary);
    }
    summary.elapsed_s = start.elapsed().as_secs_f64();
    Ok(summary)
}

impl Net {
    fn open(challenge: Lock) -> Result<Self> {
        let script = challenge.script_pubkey();
        let params = ChainParams::custom_signet(script.clone());
        let dir = tempfile::tempdir()?;
        let pair = Pair::open_chain(dir.path(), params.clone(), &Chain::Signet(script))?;
        Ok(Self {
            tip: params.genesis_hash,
            time: params.genesis.time,
            params,
            challenge,
            pair,
            height: 0,
            _dir: dir,
        })
    }

    fn submit(&mut self, case: Case, name: &'static str, rng: &mut Rng, summary: &mut Summary) {
        let block = self.block(case, rng);
        let raw = block.bytes();
        let judged = self.pair.submit(&raw);
        summary.blocks += 1;
        let label = match &judged.kernel {
            Verdict::Rejected { reason, .. } => {
                reason.split(", ").next().unwrap_or_default().to_owned()
            }
            other => other.label().to_owned(),
        };
        *summary.cases.entry(name).or_default().entry(label).or_default() += 1;
        if !judged.agrees() {
            summary.disagreements.push(format!(
                "{name}: engine {}, kernel {}: challenge {} block {}",
                judged.engine,
                judged.kernel,
                faster_hex::hex_string(&self.challenge.script_pubkey()),
                faster_hex::hex_string(&raw)
            ));
        }
        if judged.kernel == Verdict::Accepted {
            self.height += 1;
            self.tip = block.hash();
            self.time = block.header.time;
        }
    }

    /// A mined block on the tip.
    fn block(&self, case: Case, rng: &mut Rng) -> Block {
        let height = self.height + 1;
        let mut script_sig = height_prefix(height);
        script_sig.push(8);
        script_sig.extend(rng.bytes(8));
        let input = Input { script_sig, ..Input::new(OutPoint::NULL, u32::MAX) };
        let value = block_subsidy(&self.params, height);
        let outputs = vec![Output { value, script_pubkey: vec![0x51] }];
        let coinbase = Tx { version: 2, inputs: vec![input], outputs, lock_time: 0 };
        let header = Header {
            version: 0x2000_0000,
            prev_block: self.tip,
            merkle_root: [0; 32],
            time: self.time + 600,
            bits: encode_compact(self.params.pow.limit),
            nonce: 0,
        };
        let mut block = Block { header, txs: vec![coinbase] };
        if case != Case::NoCommitment {
            block.commit();
            self.solve(&mut block, case, rng);
        }
        block.set_root();
        if case == Case::ChangedAfterwards {
            block.header.time += 1;
        }
        mine(&mut block.header, self.params.pow.limit);
        block
    }

    /// Appends the solution to the commitment output, which wtxids do not cover.
    fn solve(&self, block: &mut Block, case: Case, rng: &mut Rng) {
        let Some(index) = block.commitment_index() else { return };
        let bare = block.txs[0].outputs[index].script_pubkey.clone();
        if case == Case::Missing {
            return;
        }
        let cleared = Writer::new().raw(&bare).push(&SIGNET_HEADER).done();
        block.txs[0].outputs[index].script_pubkey.clone_from(&cleared);
        if case == Case::EmptyPush {
            return;
        }
        let mut solution = self.solution(block, if case == Case::OtherKey { 2 } else { 1 });
        match case {
            Case::Bit => {
                let at = rng.below(solution.len());
                solution[at] ^= 1 << rng.below(8);
            }
            Case::Trailing => solution.push(0),
            Case::Cut => {
                solution.pop();
            }
            _ => {}
        }
        let with = |solution: &[u8]| [&SIGNET_HEADER[..], solution].concat();
        let mut writer = Writer::new().raw(&bare).push(&with(&solution));
        if case == Case::SecondIgnored {
            // The decoy is signed like any other data, so the valid solution is computed with it in place.
            let decoy = with(&[0, 0]);
            let cleared = Writer::new().raw(&cleared).push(&decoy).done();
            block.txs[0].outputs[index].script_pubkey = cleared;
            let solution = self.solution(block, 1);
            writer = Writer::new().raw(&bare).push(&with(&solution)).push(&decoy);
        }
        block.txs[0].outputs[index].script_pubkey = writer.done();
    }

    /// Input script and witness that spend the challenge, for a block without its solution.
    fn solution(&self, block: &Block, key: usize) -> Vec<u8> {
        let txids: Vec<Txid> = block.txs.iter().map(Tx::txid).collect();
        let mut data = block.header.version.to_le_bytes().to_vec();
        data.extend_from_slice(&block.header.prev_block.0);
        data.extend_from_slice(&txid_merkle_root(&txids).0);
        data.extend_from_slice(&block.header.time.to_le_bytes());
        let challenge = self.challenge.script_pubkey();
        let script_sig = Writer::new().op(0).push(&data).done();
        let to_spend = Tx {
            version: 0,
            inputs: vec![Input { script_sig, ..Input::new(OutPoint::NULL, 0) }],
            outputs: vec![Output { value: 0, script_pubkey: challenge.clone() }],
            lock_time: 0,
        };
        let mut tx = Tx {
            version: 0,
            inputs: vec![Input::new(to_spend.outpoint(0), 0)],
            outputs: vec![Output { value: 0, script_pubkey: vec![0x6a] }],
            lock_time: 0,
        };
        let mut lock = self.challenge.clone();
        for item in &mut lock.items {
            if let Item::Sig(sig) = item {
                sig.key = key;
            }
        }
        unlock(&mut tx, &[&lock], &[Output { value: 0, script_pubkey: challenge }]);
        let mut solution = Vec::new();
        var_bytes(&mut solution, &tx.inputs[0].script_sig);
        compact_size(&mut solution, tx.inputs[0].witness.len() as u64);
        for item in &tx.inputs[0].witness {
            var_bytes(&mut solution, item);
        }
        solution
    }
}

/// Searches for a nonce, with the midstate of the first 64 bytes.
fn mine(header: &mut Header, limit: U256) {
    let target = target_from_bits(header.bits, limit).expect("the limit is a target");
    let mut bytes = header.to_bytes();
    let mut start = Sha256::new();
    start.update(&bytes[..64]);
    for nonce in 0..=u32::MAX {
        bytes[76..].copy_from_slice(&nonce.to_le_bytes());
        let mut first = start.clone();
        first.update(&bytes[64..]);
        let hash = sha256(&first.finalize());
        if U256::from_le_bytes(&hash) <= target {
            header.nonce = nonce;
            return;
        }
    }
    panic!("four billion nonces without one that will do");
}
