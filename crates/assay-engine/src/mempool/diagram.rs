//! Feerate diagrams: fees of blocks of every size.

use std::cmp::Ordering;

use super::linearize::Rate;

/// Compares two diagrams, each given by its chunks from best to worst, at every size of a block template. A chunk that does not
/// fit counts in part, and after the last chunk fees are constant (Core `util/feefrac.cpp`, `CompareChunks`). `None` if each is
/// better somewhere.
pub(super) fn cmp_diagrams(a: &[Rate], b: &[Rate]) -> Option<Ordering> {
    let (mut a, mut b) = (Cursor::new(a), Cursor::new(b));
    let mut outcome = Ordering::Equal;
    loop {
        // Both lines are straight between two corners, so it is sufficient to compare the corners.
        let weight = match (a.corner(), b.corner()) {
            (None, None) => return Some(outcome),
            (Some(one), Some(other)) => one.min(other),
            (Some(one), None) | (None, Some(one)) => one,
        };
        let ((a_fee, a_per), (b_fee, b_per)) = (a.move_to(weight), b.move_to(weight));
        match ((a_fee * b_per).cmp(&(b_fee * a_per)), outcome) {
            (Ordering::Equal, _) => {}
            (now, Ordering::Equal) => outcome = now,
            (now, before) if now != before => return None,
            _ => {}
        }
    }
}

/// True if miners are nowhere worse off with `new` than with `old`, and somewhere better.
pub(super) fn improves(old: &[Rate], new: &[Rate]) -> bool {
    cmp_diagrams(new, old) == Some(Ordering::Greater)
}

/// A position in a diagram.
struct Cursor<'a> {
    left: &'a [Rate],
    /// Fees of the chunks before it.
    fee_sat: i128,
    weight: u64,
}

impl<'a> Cursor<'a> {
    const fn new(chunks: &'a [Rate]) -> Self {
        Self { left: chunks, fee_sat: 0, weight: 0 }
    }

    /// End of the current chunk.
    fn corner(&self) -> Option<u64> {
        self.left.first().map(|chunk| self.weight + chunk.weight)
    }

    /// The fees at a size up to the corner, as a fraction.
    fn move_to(&mut self, weight: u64) -> (i128, i128) {
        let Some((chunk, left)) = self.left.split_first() else { return (self.fee_sat, 1) };
        if self.weight + chunk.weight == weight {
            self.fee_sat += i128::from(chunk.fee_sat);
            (self.left, self.weight) = (left, weight);
            return (self.fee_sat, 1);
        }
        let (of, part) = (i128::from(chunk.weight), i128::from(weight - self.weight));
        (self.fee_sat * of + i128::from(chunk.fee_sat) * part, of)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Walks from the start to every corner of both.
    fn improves_slowly(old: &[Rate], new: &[Rate]) -> bool {
        let corners = |line: &[Rate]| -> Vec<u64> {
            let sum = |sum: &mut u64, chunk: &Rate| {
                *sum += chunk.weight;
                Some(*sum)
            };
            line.iter().scan(0, sum).collect()
        };
        let corners = corners(old).into_iter().chain(corners(new));
        let orders = corners.map(|weight| {
            let ((a_fee, a_per), (b_fee, b_per)) = (fees_at(new, weight), fees_at(old, weight));
            (a_fee * b_per).cmp(&(b_fee * a_per))
        });
        let orders: Vec<Ordering> = orders.collect();
        orders.contains(&Ordering::Greater) && !orders.contains(&Ordering::Less)
    }

    /// The fees of blocks of this size, as a fraction; a chunk that does not fit counts in part.
    fn fees_at(line: &[Rate], weight: u64) -> (i128, i128) {
        let mut fees = 0i128;
        let mut left = weight;
        for chunk in line {
            let (fee_sat, of) = (i128::from(chunk.fee_sat), i128::from(chunk.weight));
            if chunk.weight > left {
                return (fees * of + fee_sat * i128::from(left), of);
            }
            fees += fee_sat;
            left -= chunk.weight;
        }
        (fees, 1)
    }

    fn line(parts: &[(i64, u64)]) -> Vec<Rate> {
        let rate = |(fee_sat, weight): &(i64, u64)| Rate { fee_sat: *fee_sat, weight: *weight };
        let mut line: Vec<Rate> = parts.iter().map(rate).collect();
        line.sort_by(|a, b| b.cmp_rate(a));
        line
    }

    proptest! {
        #[test]
        fn walking_once_is_enough(
            a in prop::collection::vec((0i64..50, 1u64..9), 0..8),
            b in prop::collection::vec((0i64..50, 1u64..9), 0..8),
        ) {
            let (a, b) = (line(&a), line(&b));
            prop_assert_eq!(improves(&a, &b), improves_slowly(&a, &b));
            prop_assert_eq!(improves(&b, &a), improves_slowly(&b, &a));
            let both = cmp_diagrams(&a, &b);
            prop_assert_eq!(both.map(Ordering::reverse), cmp_diagrams(&b, &a));
            prop_assert_eq!(cmp_diagrams(&a, &a), Some(Ordering::Equal));
        }
    }

    #[test]
    fn more_fees_in_less_room_are_better_and_mixed_results_are_not() {
        let old = line(&[(100, 100)]);
        assert!(improves(&old, &line(&[(101, 100)])));
        assert!(improves(&old, &line(&[(100, 99)])));
        assert!(improves(&old, &line(&[(100, 100), (1, 100)])));
        assert!(!improves(&old, &old));
        assert!(!improves(&old, &line(&[(150, 200)])), "less in a small block");
        assert!(!improves(&old, &line(&[(99, 50)])), "less in a large one");
        assert!(!improves(&line(&[(100, 100), (10, 100)]), &line(&[(105, 90)])));
    }

    #[test]
    fn the_largest_amounts_do_not_overflow() {
        let all = 21_000_000 * 100_000_000;
        let (a, b) = (line(&[(all, 400_000); 3]), line(&[(all, 399_999); 3]));
        assert!(improves(&a, &b) && !improves(&b, &a));
    }
}
