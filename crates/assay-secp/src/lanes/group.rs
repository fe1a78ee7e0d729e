//! Operands and results of eight checks of one kind.

use super::field::LIMBS;
use super::{LANES, Lanes};
use crate::scalar::Digits;

/// 5-bit windows of half a scalar.
pub(crate) const Q_WINDOWS: usize = 26;

/// 13-bit windows of half a scalar.
pub(crate) const G_WINDOWS: usize = 10;

/// Halves of a scalar for the key.
pub(crate) const Q_HALVES: usize = 2;

/// Halves of a scalar for the generator.
pub(crate) const G_HALVES: usize = 2;

/// Odd multiples of the generator in the table, 1 to 8191.
pub(crate) const G_MULTIPLES: usize = 4096;

/// Condition of the eight checks on `R = u1 G + u2 Q`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Its x coordinate is r modulo the group order. Only r itself is tried.
    Ecdsa,
    /// Its x coordinate is r and its y coordinate has the required parity.
    Schnorr,
    /// Its x coordinate is r and its y coordinate is a square.
    SchnorrBch,
    /// As `Schnorr` for `R = u1 G + Q`.
    Tweak,
    /// Computes the point itself: if proven, it is in [`Group::sum`]. There is no r.
    Recover,
}

/// One digit per lane.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Digit<T> {
    /// Index in the table of odd multiples.
    pub(crate) index: [T; LANES],
    /// Mask of the lanes that subtract.
    pub(crate) negative: u8,
}

/// Operands and results of eight lanes.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The x coordinate of the key in words, below the prime.
    pub(crate) key_x: [[u64; LANES]; 4],
    /// Mask of the lanes whose key has an odd y coordinate.
    pub(crate) key_odd: u8,
    /// The required x coordinate of R, below the prime.
    pub(crate) r: [[u64; LANES]; 4],
    /// Mask of the lanes in which the y coordinate of R must be odd.
    pub(crate) r_odd: u8,
    /// Digits of u2, lowest window first, with both halves of a window adjacent.
    pub(crate) q_digits: [Digit<u8>; Q_HALVES * Q_WINDOWS],
    pub(crate) g_digits: [Digit<u16>; G_HALVES * G_WINDOWS],
    /// Mask of the lanes proven true.
    pub(crate) proven: u8,
    /// Mask of the lanes found false. Lanes in neither mask are unknown.
    pub(crate) refuted: u8,
    pub(super) key_y: [[u64; LANES]; LIMBS],
    pub(super) y: [[u64; LANES]; LIMBS],
    pub(super) z: [[u64; LANES]; LIMBS],
    pub(super) prefix: [[u64; LANES]; LIMBS],
}

impl Group {
    /// Placeholder operands; every lane must be set.
    pub(crate) fn new() -> Self {
        Self {
            key_x: [[0; LANES]; 4],
            key_odd: 0,
            r: [[0; LANES]; 4],
            r_odd: 0,
            q_digits: [Digit::default(); Q_HALVES * Q_WINDOWS],
            g_digits: [Digit::default(); G_HALVES * G_WINDOWS],
            proven: 0,
            refuted: 0,
            key_y: [[0; LANES]; LIMBS],
            y: [[0; LANES]; LIMBS],
            z: [[0; LANES]; LIMBS],
            prefix: [[0; LANES]; LIMBS],
        }
    }

    /// Sets the key and the required x coordinate.
    pub(crate) fn set_points(&mut self, lane: usize, key: &Key, r: &[u64; 4], is_r_odd: bool) {
        for (lanes, word) in self.key_x.iter_mut().zip(key.x) {
            lanes[lane] = word;
        }
        for (lanes, &word) in self.r.iter_mut().zip(r) {
            lanes[lane] = word;
        }
        set_bit(&mut self.key_odd, lane, key.is_odd);
        set_bit(&mut self.r_odd, lane, is_r_odd);
    }

    /// Sets u1.
    pub(crate) fn set_generator_digits(&mut self, lane: usize, halves: &[Digits; G_HALVES]) {
        for (half, digits) in halves.iter().enumerate() {
            for window in 0..G_WINDOWS {
                let raw = digits.window::<13>(window);
                let is_negative = raw < 1 << 12;
                let digit = &mut self.g_digits[G_HALVES * window + half];
                digit.index[lane] =
                    (if is_negative { !raw } else { raw } & (G_MULTIPLES as u64 - 1)) as u16;
                set_bit(&mut digit.negative, lane, is_negative);
            }
        }
    }

    /// Sets u2.
    pub(crate) fn set_key_digits(&mut self, lane: usize, halves: &[Digits; Q_HALVES]) {
        for (half, digits) in halves.iter().enumerate() {
            for window in 0..Q_WINDOWS {
                let raw = digits.window::<5>(window);
                let is_negative = raw < 1 << 4;
                let digit = &mut self.q_digits[Q_HALVES * window + half];
                digit.index[lane] = (if is_negative { !raw } else { raw } & 15) as u8;
                set_bit(&mut digit.negative, lane, is_negative);
            }
        }
    }

    /// The result of a lane of [`Question::Recover`]: words of x and y, below the prime. It overwrites key and r, which are no
    /// longer needed.
    pub(crate) fn sum(&self, lane: usize) -> [[u64; 4]; 2] {
        [&self.key_x, &self.r].map(|words| words.map(|lanes| lanes[lane]))
    }

    /// Clears `proven` outside the mask, for the lanes from `first` on.
    #[inline(always)]
    pub(super) fn keep<L: Lanes>(&mut self, first: usize, mask: u8) {
        self.proven &= !(L::ALL << first) | mask << first;
    }
}

/// A compressed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Words of the x coordinate, below the prime.
    pub(crate) x: [u64; 4],
    /// True if the y coordinate is odd.
    pub(crate) is_odd: bool,
}

/// One vector of lanes of a group, from `first` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'g> {
    pub(crate) group: &'g Group,
    pub(crate) first: usize,
}

#[inline(always)]
fn set_bit(mask: &mut u8, lane: usize, bit: bool) {
    *mask = *mask & !(1 << lane) | u8::from(bit) << lane;
}
