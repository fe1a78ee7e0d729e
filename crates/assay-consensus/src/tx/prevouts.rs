//! The outputs that the inputs of a transaction may name: exactly checked, and without a set.

use assay_wire::{OutPoint, Tx};

use super::TxError;

/// Up to this many inputs, comparing every pair beats a table.
const PAIRWISE_MAX: usize = 24;

/// Checks that no two inputs of `tx`, which is no coinbase, spend the same output, and that none
/// names nothing.
///
/// Works on 64-bit digests of the outpoints and looks at whole outpoints only where two digests
/// agree. Many digests go through a hash table that says "surely distinct" or gives up, for which
/// it has a budget; then they are sorted, which decides. So an attacker who grinds txids until digests
/// crowd together or collide gains nothing: that costs two sorts, never a quadratic search.
pub(crate) fn check_prevouts(tx: Tx<'_>) -> Result<(), TxError> {
    let count = tx.input_count();
    // Most transactions have one input, and a lone null one would make it a coinbase.
    if count == 1 {
        return Ok(());
    }
    if count > PAIRWISE_MAX {
        return check_by_table(tx);
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
    if digests.contains(&digest(&OutPoint::NULL)) {
        return check_null(tx);
    }
    Ok(())
}

/// Looks for equal digests in a table of their upper halves, found by their lower bits. As good as
/// always there are none, and one step or two for each input tell it.
fn check_by_table(tx: Tx<'_>) -> Result<(), TxError> {
    let mask = (tx.input_count() * 2).next_power_of_two() - 1;
    let mut table = vec![0u32; mask + 1];
    let mut steps_left = tx.input_count() * STEPS_PER_INPUT;
    let null = digest(&OutPoint::NULL);
    let mut is_null_seen = false;
    for input in tx.inputs() {
        let digest = digest(&input.prevout);
        is_null_seen |= digest == null;
        // Zero means a free place.
        let upper = (digest >> 32) as u32 | 1;
        let mut place = digest as usize & mask;
        while table[place] != 0 {
            if table[place] == upper || steps_left == 0 {
                return check_by_sorting(tx);
            }
            steps_left -= 1;
            place = (place + 1) & mask;
        }
        table[place] = upper;
    }
    if is_null_seen { check_null(tx) } else { Ok(()) }
}

/// Occupied places that may be passed, on average. A table at most half full asks for less than
/// one.
const STEPS_PER_INPUT: usize = 4;

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
    use assay_testkit::chain::TxBuilder;
    use assay_testkit::random::Random;
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
        for count in [2, 3, 4, 5, 23, 24, 25, 26, 500] {
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
        for count in [2, 3, 24, 25, 200] {
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

    /// The table gives up on crowds, and the sort agrees with a set, whatever the digests are.
    #[test]
    fn crowded_digests_are_decided_by_sorting() {
        for count in [25usize, 64, 1000] {
            // All begin at the same place of the table, with different upper halves.
            let mut prevouts: Vec<OutPoint> = (0..count)
                .map(|index| {
                    let mut txid = [9u8; 32];
                    txid[4..8].copy_from_slice(&(2 * index as u32).to_le_bytes());
                    OutPoint { txid: Txid(txid), vout: 0 }
                })
                .collect();
            check(&prevouts, &Ok(()));
            prevouts[count - 1] = prevouts[0];
            check(&prevouts, &Err(TxError::DuplicateInput { prevout: prevouts[0] }));
        }
    }

    #[test]
    fn agrees_with_a_set_on_random_inputs() {
        let mut random = Random(1);
        for round in 0..300 {
            let count = 2 + random.below(120);
            // Few enough txids and indexes that some outpoints come twice.
            let prevouts: Vec<OutPoint> = (0..count)
                .map(|_| {
                    let mut txid = [0u8; 32];
                    txid[random.below(32)] = random.below(40) as u8;
                    txid[31] |= 1;
                    OutPoint { txid: Txid(txid), vout: random.below(1 + round * 50) as u32 }
                })
                .collect();
            let mut set = std::collections::BTreeSet::new();
            let are_distinct = prevouts.iter().all(|prevout| set.insert(*prevout));
            let tx = prevouts
                .iter()
                .fold(TxBuilder::new(1), |tx, prevout| tx.spend(*prevout, &[], 0))
                .output(0, &[])
                .build();
            assert_eq!(check_prevouts(tx.view()).is_ok(), are_distinct, "{prevouts:?}");
        }
    }
}
