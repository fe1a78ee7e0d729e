//! The coinbase transaction.

use assay_consensus::commitment::{WITNESS_COMMITMENT_HEADER, height_prefix, witness_commitment};
use assay_consensus::params::ChainParams;
use assay_consensus::script::asm;
use assay_wire::{Encoding, OutPoint, Transaction, TxBuilder, Wtxid};

/// Witness of the coinbase; its value is arbitrary.
const RESERVED_VALUE: [u8; 32] = [0; 32];
/// Up to this height the height alone is shorter than the minimum coinbase script.
const PADDED_HEIGHT_MAX: u32 = 16;
const VERSION: i32 = 2;
/// Size of a coinbase without witnesses and with one short output script, without both scripts: version, lock time, both counts,
/// outpoint, sequence number, amount, and the length of each script.
const BYTES_BESIDE_SCRIPTS: usize = 4 + 4 + 2 + 36 + 4 + 8 + 2;
/// Not final, so that the lock time applies.
const SEQUENCE: u32 = u32::MAX - 1;

/// The coinbase of a block with transactions of these wtxids.
pub(super) fn coinbase(
    params: &ChainParams,
    height: u32,
    value_sat: i64,
    script_pubkey: &[u8],
    wtxids: impl Iterator<Item = Wtxid>,
) -> Transaction {
    let has_witness = params.segwit_active(height);
    let commitment = (params.encoding == Encoding::Segwit).then(|| commitment(wtxids));
    let mut script_sig = height_prefix(height);
    if height <= PADDED_HEIGHT_MAX {
        script_sig.push(0);
    }
    if let Some(cash) = params.cash {
        // BCHN `miner.cpp`: a push of zeros pads the coinbase to the minimum size.
        let bytes = BYTES_BESIDE_SCRIPTS + script_sig.len() + script_pubkey.len();
        if let Some(missing) = cash.tx_bytes_min.checked_sub(bytes).filter(|&missing| missing > 0) {
            asm::push(&mut script_sig, &vec![0; missing - 1]);
        }
    }
    let mut tx = TxBuilder::new(VERSION)
        .spend(OutPoint::NULL, &script_sig, SEQUENCE)
        .output(value_sat, script_pubkey)
        .lock_time(height - 1);
    if let Some(script) = commitment {
        tx = tx.output(0, &script);
    }
    if has_witness {
        tx = tx.witness(&[&RESERVED_VALUE]);
    }
    tx.build()
}

/// The witness commitment script. Core puts it into every block, even if no rule requires it.
fn commitment(wtxids: impl Iterator<Item = Wtxid>) -> Vec<u8> {
    let all: Vec<Wtxid> = std::iter::once(Wtxid([0; 32])).chain(wtxids).collect();
    let hash = witness_commitment(&all, &RESERVED_VALUE);
    [&WITNESS_COMMITMENT_HEADER[..], &hash].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cash_coinbases_are_as_large_as_transactions_must_be() {
        let sizes = |chain: &str, height: u32, script_bytes: usize| {
            let params = ChainParams::by_name(chain).expect("a known chain");
            coinbase(&params, height, 50, &vec![0x51; script_bytes], std::iter::empty())
                .view()
                .total_size()
        };
        for height in [1, 16, 17, 200, 70_000] {
            for script_bytes in 1..37 {
                assert_eq!(
                    sizes("bch-regtest", height, script_bytes),
                    100,
                    "{height} {script_bytes}"
                );
            }
            assert!(sizes("bch-regtest", height, 100) > 100);
        }
        assert_eq!(sizes("bch-regtest", 70_000, 35), sizes("bch-regtest", 70_000, 36));
    }
}
