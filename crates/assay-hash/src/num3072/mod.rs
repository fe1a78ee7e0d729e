//! Arithmetic modulo p = 2^3072 - 1103717, the largest safe prime of 3072 bits.

mod inverse;

/// Limbs of a number, 64 bits each.
pub(crate) const LIMBS: usize = 48;

/// 2^3072 - p: the value of a carry out of the top limb.
pub(crate) const FOLD: u64 = 1_103_717;

/// A residue modulo p, least significant limb first.
///
/// Any 3072-bit value is allowed, so the residues below [`FOLD`] have two representations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Num3072(pub(crate) [u64; LIMBS]);

impl Num3072 {
    /// Bytes of the little-endian encoding.
    pub(crate) const SIZE: usize = LIMBS * 8;

    /// The neutral element.
    pub(crate) const ONE: Self = {
        let mut limbs = [0; LIMBS];
        limbs[0] = 1;
        Self(limbs)
    };

    /// Reads a little-endian number.
    pub(crate) fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let mut limbs = [0; LIMBS];
        for (limb, bytes) in limbs.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *limb = u64::from_le_bytes(*bytes);
        }
        Self(limbs)
    }

    /// Reads limbs of `bits` bits, least significant first; they may be slightly larger, and the number may exceed 3072 bits by a
    /// few.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn from_limbs(bits: u32, limbs_in: impl Iterator<Item = u64>) -> Self {
        let mut limbs = [0; LIMBS];
        let mut free = limbs.iter_mut();
        let (mut waiting, mut held) = (0u128, 0);
        for limb in limbs_in {
            waiting += u128::from(limb) << held;
            held += bits;
            if held >= 64
                && let Some(limb) = free.next()
            {
                *limb = waiting as u64;
                waiting >>= 64;
                held -= 64;
            }
        }
        debug_assert!(free.len() == 0 && waiting < 1 << 40, "3072 bits and little more");
        // As in `reduce`: after a second carry out of the top no third is possible.
        if add_small(&mut limbs, waiting as u64 * FOLD) {
            add_small(&mut limbs, FOLD);
        }
        Self(limbs)
    }

    /// Writes the number, normalised or not, in little-endian order.
    pub(crate) fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        for (bytes, limb) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *bytes = limb.to_le_bytes();
        }
        bytes
    }

    /// The representation below p.
    pub(crate) fn normalised(&self) -> Self {
        // x >= p exactly if x + FOLD carries out of 3072 bits, and then the rest is x - p.
        let mut limbs = self.0;
        if add_small(&mut limbs, FOLD) { Self(limbs) } else { self.clone() }
    }

    /// A product folded into one number, not normalised.
    pub(crate) fn from_wide(wide: &[u64; 2 * LIMBS]) -> Self {
        Self(reduce(wide))
    }
}

/// Folds a double-width product into one number modulo p.
fn reduce(wide: &[u64; 2 * LIMBS]) -> [u64; LIMBS] {
    let (low, high) = wide.split_at(LIMBS);
    let mut limbs = [0; LIMBS];
    let mut carry = 0u64;
    for ((limb, low), high) in limbs.iter_mut().zip(low).zip(high) {
        let sum = u128::from(*high) * u128::from(FOLD) + u128::from(*low) + u128::from(carry);
        *limb = sum as u64;
        carry = (sum >> 64) as u64;
    }
    // carry <= FOLD, so carry * FOLD fits. If this addition overflows, the rest is below FOLD squared, and adding FOLD once more
    // cannot overflow.
    if add_small(&mut limbs, carry * FOLD) {
        add_small(&mut limbs, FOLD);
    }
    limbs
}

/// Adds `value`; returns true if a carry left the top limb.
pub(crate) fn add_small(limbs: &mut [u64; LIMBS], value: u64) -> bool {
    let mut carry = value;
    for limb in limbs {
        let (sum, overflow) = limb.overflowing_add(carry);
        *limb = sum;
        if !overflow {
            return false;
        }
        carry = 1;
    }
    true
}
