//! Transactions: what parses is what was given, without its witnesses it is still the same
//! transaction, and counting and checking end with a verdict.

#![no_main]

use assay_consensus::locktime::{SequenceLocks, is_final_tx};
use assay_consensus::sigops::legacy_sigops;
use assay_consensus::tx::check_transaction;
use assay_wire::{Encoding, Transaction};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for encoding in [Encoding::Segwit, Encoding::Legacy] {
        let Ok(transaction) = Transaction::parse(data.to_vec(), encoding) else { continue };
        let tx = transaction.view();
        assert_eq!(tx.raw(), data);
        assert_eq!(tx.total_size(), data.len());
        assert_eq!(tx.weight(), 3 * tx.stripped_size() + tx.total_size());
        let stripped = tx.stripped_parts().concat();
        assert_eq!(stripped.len(), tx.stripped_size());
        // Without inputs the stripped form would read as a witness marker.
        if tx.input_count() > 0 {
            let bare = Transaction::parse(stripped, encoding).expect("stripping keeps the layout");
            assert_eq!(bare.view().txid(), tx.txid());
            assert_eq!(bare.view().wtxid().0, tx.txid().0);
            assert_eq!(legacy_sigops(bare.view()), legacy_sigops(tx));
        }
        let outputs: usize = tx.outputs().map(|output| output.script_pubkey.len() + 9).sum();
        assert!(outputs <= tx.outputs_raw().len());
        for input in 0..tx.input_count() {
            assert_eq!(tx.witness(input).iter().count(), tx.witness(input).len());
        }
        let _ = check_transaction(tx);
        let _ = is_final_tx(tx, 100, 1_500_000_000);
        let heights = (0..tx.input_count() as u32).map(|index| index.wrapping_mul(7919));
        let locks = SequenceLocks::of(tx, heights, |height| height);
        let _ = locks.permit(1000, 1000);
    }
});
