//! What the inputs of a transaction may name: exactly checked, and without a set.

use assay_wire::{OutPoint, Tx};

use crate::tx::TxError;

/// Up to this many inputs, comparing every pair beats sorting.
const PAIRWISE_MAX: usize = 40;

/// Checks that no two inputs of `tx`, which is no coinbase, spend the same output, and that none
/// names nothing.
///
/// Works on 64-bit digests of the outpoints and looks at whole outpoints only where two digests
/// agree. Whoever grinds txids until digests collide gains nothing: that costs one exact sort.
pub(crate) fn check_prevouts(tx: Tx<'_>) -> Result<(), TxError> {
    let count = tx.input_count();
    if count > PAIRWISE_MAX {
        return check_by_sorting(tx);
    }
    let mut digests = [0u64; PAIRWISE_MAX];
    for (slot, input) in digests.iter_mut().zip(tx.inputs()) {
        *slot = digest(&input.prevout);
    }
    check_by_pairs(tx, &digests[..count])
}

/// Different for different outputs of one transaction, and as good as random across transactions.
#[inline]
fn digest(prevout: &OutPoint) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = prevout.txid.0;
    let prefix = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    prefix ^ u64::from(prevout.vout).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn check_by_pairs(tx: Tx<'_>, digests: &[u64]) -> Result<(), TxError> {
    for (later, wanted) in digests.iter().enumerate() {
        // Counting has no early exit, so the compiler compares several digests at a time.
        let seen = digests[..later].iter().filter(|earlier| *earlier == wanted).count();
        if seen != 0 {
            let prevout = tx.input(later).prevout;
            if (0..later).any(|earlier| tx.input(earlier).prevout == prevout) {
                return Err(TxError::DuplicateInput { prevout });
            }
        }
    }
    // A lone null input makes a coinbase, which is not checked here.
    if digests.len() > 1 && digests.contains(&digest(&OutPoint::NULL)) {
        return check_null(tx);
    }
    Ok(())
}

fn check_by_sorting(tx: Tx<'_>) -> Result<(), TxError> {
    let mut digests: Vec<u64> = tx.inputs().map(|input| digest(&input.prevout)).collect();
    digests.sort_unstable();
    if digests.array_windows().any(|[a, b]| a == b) {
        let mut prevouts: Vec<OutPoint> = tx.inputs().map(|input| input.prevout).collect();
        prevouts.sort_unstable();
        if let Some([prevout, _]) = prevouts.array_windows().find(|[a, b]| a == b) {
            return Err(TxError::DuplicateInput { prevout: *prevout });
        }
    }
    if digests.binary_search(&digest(&OutPoint::NULL)).is_ok() { check_null(tx) } else { Ok(()) }
}

fn check_null(tx: Tx<'_>) -> Result<(), TxError> {
    match tx.inputs().position(|input| input.prevout.is_null()) {
        Some(input) => Err(TxError::NullPrevout { input }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TxBuilder;
    use assay_wire::Txid;

    fn check(prevouts: &[OutPoint], expected: &Result<(), TxError>) {
        let tx = prevouts
            .iter()
            .fold(TxBuilder::new(1), |tx, prevout| tx.spend(*prevout, &[], 0))
            .output(0, &[])
            .build();
        assert_eq!(&check_prevouts(tx.view()), expected, "{} inputs", prevouts.len());
    }

    /// Distinct outpoints; every third shares its digest with the one before.
    fn distinct(count: usize) -> Vec<OutPoint> {
        (0..count)
            .map(|index| {
                let mut txid = [7u8; 32];
                let group = index - usize::from(index % 3 == 2);
                txid[..4].copy_from_slice(&(group as u32).to_le_bytes());
                txid[31] = u8::from(index % 3 == 2);
                OutPoint { txid: Txid(txid), vout: 5 }
            })
            .collect()
    }

    #[test]
    fn every_size_finds_exactly_the_duplicates() {
        check(&distinct(1), &Ok(()));
        for count in [2, 3, 4, 5, 39, 40, 41, 42, 500] {
            let prevouts = distinct(count);
            check(&prevouts, &Ok(()));
            let pairs = [(0, count - 1), (count / 2, count / 2 - 1), (count - 2, count - 1)];
            for (first, second) in pairs {
                let mut copied = prevouts.clone();
                copied[second] = copied[first];
                check(&copied, &Err(TxError::DuplicateInput { prevout: copied[first] }));
            }
        }
    }

    #[test]
    fn every_size_finds_a_null_input_but_duplicates_come_first() {
        for count in [2, 3, 40, 41, 200] {
            let mut prevouts = distinct(count);
            for input in [0, count / 2, count - 1] {
                let mut with_null = prevouts.clone();
                with_null[input] = OutPoint::NULL;
                check(&with_null, &Err(TxError::NullPrevout { input }));
            }
            prevouts[0] = OutPoint::NULL;
            prevouts[1] = OutPoint::NULL;
            check(&prevouts, &Err(TxError::DuplicateInput { prevout: OutPoint::NULL }));
            // The digest of the null outpoint, but another one.
            let mut look_alike = distinct(count);
            look_alike[0] = OutPoint::NULL;
            look_alike[0].txid.0[31] = 1;
            check(&look_alike, &Ok(()));
        }
    }

    #[test]
    fn same_transaction_other_output_is_no_duplicate() {
        for count in [2u32, 20, 100] {
            let prevouts: Vec<OutPoint> =
                (0..count).map(|vout| OutPoint { txid: Txid([1; 32]), vout }).collect();
            check(&prevouts, &Ok(()));
        }
    }
}
