//! The field modulo 2^256 - 2^32 - 977, one element per lane.
//!
//! An element has five limbs of 52 bits. Comments name these states:
//! - *carried*: every limb is below 2^52, so the value is below 2^260.
//! - *weak*: carried, and the top limb below 2^48 + 2^10. The result of multiplication.
//! - A [`Factor`] is carried except for bits above the 52 of each limb, which are ignored.
//! - A [`Sum`] may have larger limbs. It can be added to others, but is not a factor.
//!
//! The multiplier uses the low 52 bits of a limb and silently drops the rest ([`Lanes::factor`]). A limb whose carry was added to
//! the next one therefore needs no mask to be a factor, but a limb that still contains its carry would yield a wrong product:
//! only carrying makes a [`Factor`].
//!
//! If the multiplier rounds, low parts of products may be negative, and so may columns. A multiple of the prime makes them
//! positive before their bits are read ([`POSITIVE`]).

#![expect(clippy::needless_range_loop, reason = "limbs of several elements go by one index")]

use super::{LANES, Lanes};

/// Limbs of an element.
pub(crate) const LIMBS: usize = 5;

/// The prime in limbs.
const PRIME: [u64; LIMBS] = [
    0xf_fffe_ffff_fc2f,
    0xf_ffff_ffff_ffff,
    0xf_ffff_ffff_ffff,
    0xf_ffff_ffff_ffff,
    0x0_ffff_ffff_ffff,
];

const MASK_52: u64 = (1 << 52) - 1;
const MASK_48: u64 = (1 << 48) - 1;

/// 2^256 modulo the prime.
const FOLD_256: u64 = 0x1_0000_03d1;

/// A multiple of the prime with limbs above 2^60, except for the top one, which is above 2^51: 16p with 2^8 of each limb moved to
/// the one below.
const FAR_PRIMES: [u64; LIMBS] = [
    16 * PRIME[0] + (1 << 60),
    16 * PRIME[1] + (1 << 60) - (1 << 8),
    16 * PRIME[2] + (1 << 60) - (1 << 8),
    16 * PRIME[3] + (1 << 60) - (1 << 8),
    16 * PRIME[4] - (1 << 8),
];

/// Makes columns of 2^60, the last of 2^50, a multiple of the prime.
const FAR_COLUMNS: [u64; LIMBS] = [
    0xe_077e_fc1e_c3ef,
    0xf_efff_ffbe_eeff,
    0xf_efff_ffc2_eeff,
    0xf_efff_ffc2_eeff,
    0x0_efff_ffc2_eeff,
];

/// A multiple of the prime as columns: each but the last is at least 2^55.
const POSITIVE: [u64; 2 * LIMBS] = {
    let mut columns = [1 << 55; 2 * LIMBS];
    columns[0] += 0xf_ff7e_fffe_13af;
    columns[1] += 0xf_ff7f_fffe_1777;
    columns[2] += 0xf_ff7f_fffe_1777;
    columns[3] += 0xf_ff7f_fffe_1777;
    columns[4] += 0x0_ff7f_fffe_1777;
    columns[9] = 0;
    columns
};

/// 2^260 modulo the prime.
const FOLD_260: u64 = FOLD_256 << 4;

/// One field element per lane.
#[derive(Clone, Copy)]
pub(crate) struct Fe<L>(pub(crate) [L; LIMBS]);

/// Elements that are only multiplied, in the multiplier's form: the low 52 bits of each limb are those of a carried element, and
/// the top limb is complete.
#[derive(Clone, Copy)]
pub(crate) struct Factor<L>([L; LIMBS]);

/// Five limbs that may exceed 52 bits: a sum before reduction.
#[derive(Clone, Copy)]
pub(crate) struct Sum<L>([L; LIMBS]);

/// Columns of a product, of weight 2^(52 k).
#[derive(Clone, Copy)]
pub(crate) struct Columns<L>([L; 2 * LIMBS]);

impl<L: Lanes> Sum<L> {
    pub(super) const ZERO: Self = Self([L::ZERO; LIMBS]);

    /// `multiple` times the prime, limb by limb.
    #[inline(always)]
    pub(crate) fn primes(multiple: u64) -> Self {
        let mut limbs = [L::splat(0); LIMBS];
        for k in 0..LIMBS {
            limbs[k] = L::splat(PRIME[k] * multiple);
        }
        Self(limbs)
    }

    /// A multiple of the prime to subtract sums from.
    #[inline(always)]
    pub(crate) fn far_primes() -> Self {
        Self(Fe::constant(FAR_PRIMES).0)
    }

    /// Adds 2^BITS times another sum.
    #[inline(always)]
    pub(crate) fn plus_sum<const BITS: u32>(self, other: &Self) -> Self {
        self.plus_shifted::<BITS>(&Fe(other.0))
    }

    /// Subtracts 2^BITS times another sum, limb by limb.
    #[inline(always)]
    pub(crate) fn minus_sum<const BITS: u32>(self, other: &Self) -> Self {
        self.minus_shifted::<BITS>(&Fe(other.0))
    }

    #[inline(always)]
    pub(crate) fn plus(self, fe: &Fe<L>) -> Self {
        let mut sum = self;
        for k in 0..LIMBS {
            sum.0[k] = sum.0[k].add(fe.0[k]);
        }
        sum
    }

    /// Adds 2^BITS times the element.
    #[inline(always)]
    pub(crate) fn plus_shifted<const BITS: u32>(self, fe: &Fe<L>) -> Self {
        let mut sum = self;
        for k in 0..LIMBS {
            sum.0[k] = sum.0[k].add(fe.0[k].shl::<BITS>());
        }
        sum
    }

    /// Subtracts limb by limb: every limb of `self` must be at least that of the element.
    #[inline(always)]
    pub(crate) fn minus(self, fe: &Fe<L>) -> Self {
        let mut sum = self;
        for k in 0..LIMBS {
            sum.0[k] = sum.0[k].sub(fe.0[k]);
        }
        sum
    }

    /// Subtracts 2^BITS times the element, limb by limb.
    #[inline(always)]
    pub(crate) fn minus_shifted<const BITS: u32>(self, fe: &Fe<L>) -> Self {
        let mut sum = self;
        for k in 0..LIMBS {
            sum.0[k] = sum.0[k].sub(fe.0[k].shl::<BITS>());
        }
        sum
    }

    /// The same value in limbs of 52 bits; it must be below 2^260.
    #[inline(always)]
    pub(crate) fn carry(self) -> Fe<L> {
        Fe(mask_low_limbs(self.carry_limbs()))
    }

    /// As [`Sum::carry`], for a result that is only multiplied.
    #[inline(always)]
    pub(crate) fn carry_to_factor(self) -> Factor<L> {
        Factor(to_factors(self.carry_limbs()))
    }

    /// Adds the carries to the next limbs without clearing them in their own.
    #[inline(always)]
    fn carry_limbs(self) -> [L; LIMBS] {
        let mut limbs = self.0;
        for limb in limbs {
            limb.expect_below(62);
        }
        for k in 0..LIMBS - 1 {
            limbs[k + 1] = limbs[k + 1].add(limbs[k].shr::<52>());
        }
        limbs[LIMBS - 1].expect_below(52);
        limbs
    }

    /// Columns that start with this sum instead of zero.
    #[inline(always)]
    pub(crate) fn columns(self) -> Columns<L> {
        let zero = L::splat(0);
        let [a, b, c, d, e] = self.0;
        Columns([a, b, c, d, e, zero, zero, zero, zero, zero])
    }
}

/// Unrolls code over the limbs.
macro_rules! for_limbs {
    ($i:ident => $work:block) => {
        for_limbs!($i => $work, 0 1 2 3 4)
    };
    ($i:ident => $work:block, $($limb:literal)*) => {
        $({
            let $i = $limb;
            $work
        })*
    };
}

impl<L: Lanes> Columns<L> {
    /// Subtracts the constants of the multiplier from a product.
    const PRODUCT_OFFSETS: [u64; 2 * LIMBS] = {
        let mut columns = [0u64; 2 * LIMBS];
        let mut pair = 0;
        while pair < LIMBS * LIMBS {
            let column = pair / LIMBS + pair % LIMBS;
            columns[column] = columns[column].wrapping_sub(L::LOW_OFFSET);
            columns[column + 1] = columns[column + 1].wrapping_sub(L::HIGH_OFFSET);
            pair += 1;
        }
        columns
    };

    /// The same for a square, where off-diagonal products, except those with the top limb, are computed once and doubled.
    const SQUARE_OFFSETS: [u64; 2 * LIMBS] = {
        let mut columns = [0u64; 2 * LIMBS];
        let mut pair = 0;
        while pair < LIMBS * LIMBS {
            let (i, j) = (pair / LIMBS, pair % LIMBS);
            // Twice for i < j < 4, once for the others of i <= j.
            if i <= j || i < LIMBS - 1 && j < LIMBS - 1 {
                columns[i + j] = columns[i + j].wrapping_sub(L::LOW_OFFSET);
                columns[i + j + 1] = columns[i + j + 1].wrapping_sub(L::HIGH_OFFSET);
            }
            pair += 1;
        }
        columns
    };

    /// The same for the fold of the upper columns.
    const FOLD_OFFSETS: [u64; LIMBS] = {
        let mut limbs = [L::LOW_OFFSET.wrapping_neg(); LIMBS];
        let mut k = 1;
        while k < LIMBS {
            limbs[k] = limbs[k].wrapping_sub(L::HIGH_OFFSET);
            if !L::CARRIES {
                limbs[k] = limbs[k].wrapping_sub(L::LOW_OFFSET);
            }
            k += 1;
        }
        limbs
    };

    #[inline(always)]
    fn plus_constants(mut self, constants: [u64; 2 * LIMBS]) -> Self {
        for k in 0..2 * LIMBS {
            self.0[k] = self.0[k].add(L::splat(constants[k]));
        }
        self
    }

    #[inline(always)]
    pub(crate) fn zero() -> Self {
        Self([L::ZERO; 2 * LIMBS])
    }

    /// Adds `a b`. A column grows by less than 10 * 2^52.
    #[inline(always)]
    pub(crate) fn plus_product(self, a: impl Operand<L>, b: impl Operand<L>) -> Self {
        let (a, b) = (a.operand(), b.operand());
        let mut columns = self.0;
        for_limbs!(i => {
            for j in 0..LIMBS {
                columns[i + j] = columns[i + j].add_mul_low(a.0[i], b.0[j]);
                columns[i + j + 1] = columns[i + j + 1].add_mul_high(a.0[i], b.0[j]);
            }
        });
        Self(columns).plus_constants(Self::PRODUCT_OFFSETS)
    }

    /// `sum + a^2` for weak `a`: off-diagonal products once, then doubled; those with the top limb, which has room, use its
    /// double.
    #[inline(always)]
    pub(crate) fn square(sum: Option<Sum<L>>, a: impl Operand<L>) -> Self {
        const TOP: usize = LIMBS - 1;
        let a = a.operand();
        a.0[TOP].value().expect_below(51);
        let mut columns = [L::splat(0); 2 * LIMBS];
        for i in 0..TOP {
            for j in i + 1..TOP {
                columns[i + j] = columns[i + j].add_mul_low(a.0[i], a.0[j]);
                columns[i + j + 1] = columns[i + j + 1].add_mul_high(a.0[i], a.0[j]);
            }
        }
        for column in &mut columns[1..2 * TOP - 1] {
            *column = column.add(*column);
        }
        if let Some(sum) = sum {
            for k in 0..LIMBS {
                columns[k] = columns[k].add(sum.0[k]);
            }
        }
        let twice_top = a.0[TOP].twice_factor();
        for i in 0..TOP {
            columns[i + TOP] = columns[i + TOP].add_mul_low(a.0[i], twice_top);
            columns[i + TOP + 1] = columns[i + TOP + 1].add_mul_high(a.0[i], twice_top);
        }
        for i in 0..LIMBS {
            columns[2 * i] = columns[2 * i].add_mul_low(a.0[i], a.0[i]);
            columns[2 * i + 1] = columns[2 * i + 1].add_mul_high(a.0[i], a.0[i]);
        }
        Self(columns).plus_constants(Self::SQUARE_OFFSETS)
    }

    /// Adds the upper five columns, times 2^260 modulo the prime, to the lower five, and returns six.
    ///
    /// The multiplier drops a column's bits above 52. They are carried to the next column, or folded by a separate product, so
    /// that no carry propagates.
    #[inline(always)]
    fn fold(self) -> ([L; LIMBS], L) {
        const LAST: usize = 2 * LIMBS - 1;
        let fold = L::splat(FOLD_260).factor();
        let Self(mut columns) = if L::ROUNDS { self.plus_constants(POSITIVE) } else { self };
        for column in columns {
            column.expect_below(61);
        }
        if L::CARRIES {
            for k in LIMBS..LAST {
                columns[k + 1] = columns[k + 1].add(columns[k].shr::<52>());
            }
        }
        columns[LAST].expect_below(52);
        let mut low = [columns[0], columns[1], columns[2], columns[3], columns[4]];
        let mut factors = low;
        for k in 0..LIMBS {
            factors[k] = columns[LIMBS + k].factor();
            low[k] = low[k].add(L::splat(Self::FOLD_OFFSETS[k])).add_mul_low(factors[k], fold);
        }
        for k in 0..LIMBS - 1 {
            low[k + 1] = low[k + 1].add_mul_high(factors[k], fold);
            if !L::CARRIES {
                let above = columns[LIMBS + k].shr::<52>().factor();
                low[k + 1] = low[k + 1].add_small_product(above, fold);
            }
        }
        let top = L::splat(L::HIGH_OFFSET.wrapping_neg()).add_mul_high(factors[LIMBS - 1], fold);
        (low, top)
    }

    /// The value modulo the prime, weak.
    #[inline(always)]
    pub(crate) fn reduce(self) -> Fe<L> {
        self.reduce_to_sum().carry()
    }

    /// As [`Columns::reduce`], for a result that is only multiplied.
    #[inline(always)]
    pub(crate) fn reduce_to_factor(self) -> Factor<L> {
        self.reduce_to_sum().carry_to_factor()
    }

    /// The value modulo the prime, with limbs below 2^56 for at most one product; saves the carries if the result is not a
    /// factor.
    #[inline(always)]
    pub(crate) fn reduce_to_sum(self) -> Sum<L> {
        let (low, top) = self.fold();
        Sum(fold_top(low, top))
    }

    /// A multiple of the prime minus eight times the square of a weak element.
    #[inline(always)]
    pub(crate) fn minus_eight_squares(a: impl Operand<L>) -> Self {
        let square = Self::square(None, a).0;
        let mut columns = [L::splat(1 << 60); 2 * LIMBS];
        for k in 0..LIMBS {
            columns[k] = L::splat((1 << 60) + FAR_COLUMNS[k]);
        }
        columns[2 * LIMBS - 1] = L::splat(1 << 50);
        for k in 0..2 * LIMBS {
            columns[k] = columns[k].sub(square[k].shl::<3>());
        }
        Self(columns)
    }

    /// Twice the value modulo the prime, weak.
    #[inline(always)]
    pub(crate) fn reduce_twice(self) -> Factor<L> {
        let (mut low, top) = self.fold();
        for limb in &mut low {
            *limb = limb.add(*limb);
        }
        Sum(fold_top(low, top.add(top))).carry_to_factor()
    }

    /// Three times the value modulo the prime, weak.
    #[inline(always)]
    pub(crate) fn reduce_thrice(self) -> Factor<L> {
        let (mut low, top) = self.fold();
        for limb in &mut low {
            *limb = limb.add(*limb).add(*limb);
        }
        Sum(fold_top(low, top.add(top).add(top))).carry_to_factor()
    }

    /// The negated value modulo the prime, carried but not weak. For at most one product.
    #[inline(always)]
    pub(crate) fn reduce_negated(self) -> Fe<L> {
        let (low, top) = self.fold();
        let low = fold_top(low, top);
        let mut sum = Sum::<L>::primes(16);
        for k in 0..LIMBS {
            sum.0[k] = sum.0[k].sub(low[k]);
        }
        sum.carry()
    }
}

/// Folds what exceeds 2^256; the top limb ends below 2^48.
#[inline(always)]
fn fold_top<L: Lanes>(mut low: [L; LIMBS], top: L) -> [L; LIMBS] {
    let excess = low[LIMBS - 1].shr::<48>().add(top.shl::<4>());
    excess.expect_below(52);
    low[LIMBS - 1] = low[LIMBS - 1].and(L::splat(MASK_48));
    let (excess, fold) = (excess.factor(), L::splat(FOLD_256).factor());
    low[0] = low[0].add(L::splat(L::LOW_OFFSET.wrapping_neg())).add_mul_low(excess, fold);
    low[1] = low[1].add(L::splat(L::HIGH_OFFSET.wrapping_neg())).add_mul_high(excess, fold);
    low
}

/// Clears the carried bits of the lower limbs.
#[inline(always)]
fn mask_low_limbs<L: Lanes>(mut limbs: [L; LIMBS]) -> [L; LIMBS] {
    let mask = L::splat(MASK_52);
    for limb in &mut limbs[..LIMBS - 1] {
        *limb = limb.and(mask);
    }
    limbs
}

#[inline(always)]
fn to_factors<L: Lanes>(mut limbs: [L; LIMBS]) -> [L; LIMBS] {
    for limb in &mut limbs {
        *limb = limb.factor();
    }
    limbs
}

/// A multiplication operand. A separate trait because the methods of `Into` are functions without the kernel's target features,
/// in which vector instructions become calls.
pub(crate) trait Operand<L> {
    fn operand(self) -> Factor<L>;
}

impl<L: Lanes> Operand<L> for &Fe<L> {
    #[inline(always)]
    fn operand(self) -> Factor<L> {
        for limb in self.0 {
            limb.expect_below(52);
        }
        Factor(to_factors(self.0))
    }
}

impl<L: Lanes> Operand<L> for &Factor<L> {
    #[inline(always)]
    fn operand(self) -> Factor<L> {
        *self
    }
}

impl<L: Lanes> Operand<L> for Factor<L> {
    #[inline(always)]
    fn operand(self) -> Factor<L> {
        self
    }
}

impl<L: Lanes> Factor<L> {
    pub(super) const ZERO: Self = Self([L::ZERO; LIMBS]);

    /// The element itself.
    #[inline(always)]
    pub(crate) fn fe(self) -> Fe<L> {
        let mut limbs = self.0;
        for limb in &mut limbs {
            *limb = limb.value();
        }
        Fe(mask_low_limbs(limbs))
    }

    /// Reads memory written by [`Factor::store`].
    #[inline(always)]
    pub(crate) fn load(limbs: &[[u64; LANES]; LIMBS], first: usize) -> Self {
        Self(Fe::load(limbs, first).0)
    }

    #[inline(always)]
    pub(crate) fn store(self, limbs: &mut [[u64; LANES]; LIMBS], first: usize) {
        Fe(self.0).store(limbs, first);
    }

    #[inline(always)]
    pub(crate) fn select(mask: u8, yes: &Self, no: &Self) -> Self {
        Self(Fe::select(mask, &Fe(yes.0), &Fe(no.0)).0)
    }
}

impl<L: Lanes> Fe<L> {
    pub(super) const ZERO: Self = Self([L::ZERO; LIMBS]);

    /// The same constant in every lane, in limbs.
    #[inline(always)]
    pub(crate) fn constant(limbs: [u64; LIMBS]) -> Self {
        let [a, b, c, d, e] = limbs;
        Self([L::splat(a), L::splat(b), L::splat(c), L::splat(d), L::splat(e)])
    }

    /// The element as a factor.
    #[inline(always)]
    pub(crate) fn factor(&self) -> Factor<L> {
        self.operand()
    }

    #[inline(always)]
    pub(crate) fn one() -> Self {
        Self::constant([1, 0, 0, 0, 0])
    }

    /// From four words of 64 bits. Weak, and below 2^256.
    #[inline(always)]
    pub(crate) fn from_words(words: [L; 4]) -> Self {
        let mask = L::splat(MASK_52);
        let [a, b, c, d] = words;
        Self([
            a.and(mask),
            a.shr::<52>().or(b.shl::<12>()).and(mask),
            b.shr::<40>().or(c.shl::<24>()).and(mask),
            c.shr::<28>().or(d.shl::<36>()).and(mask),
            d.shr::<16>(),
        ])
    }

    /// To four words of 64 bits, for a weak element; the words may exceed the prime.
    #[inline(always)]
    pub(crate) fn to_words(self) -> [L; 4] {
        self.below_2_256().pack()
    }

    /// As [`Fe::to_words`], but sets bits of `excess` in lanes of 2^256 or more, whose words are wrong.
    #[inline(always)]
    pub(crate) fn to_words_or_excess(self, excess: &mut L) -> [L; 4] {
        *excess = excess.or(self.0[LIMBS - 1].shr::<48>());
        self.pack()
    }

    #[inline(always)]
    fn pack(self) -> [L; 4] {
        let [a, b, c, d, e] = self.0;
        [
            a.or(b.shl::<52>()),
            b.shr::<12>().or(c.shl::<40>()),
            c.shr::<24>().or(d.shl::<28>()),
            d.shr::<36>().or(e.shl::<16>()),
        ]
    }

    #[inline(always)]
    pub(crate) fn load(limbs: &[[u64; LANES]; LIMBS], first: usize) -> Self {
        Self([
            L::load(&limbs[0], first),
            L::load(&limbs[1], first),
            L::load(&limbs[2], first),
            L::load(&limbs[3], first),
            L::load(&limbs[4], first),
        ])
    }

    #[inline(always)]
    pub(crate) fn store(self, limbs: &mut [[u64; LANES]; LIMBS], first: usize) {
        for k in 0..LIMBS {
            self.0[k].store(&mut limbs[k], first);
        }
    }

    /// Negates a weak element in the lanes of the mask; the result is carried.
    #[inline(always)]
    pub(crate) fn negate_where(&self, mask: u8) -> Self {
        self.negate_where_to_sum(mask).carry()
    }

    /// As [`Fe::negate_where`]; limbs are at most those of twice the prime.
    #[inline(always)]
    pub(crate) fn negate_where_to_sum(&self, mask: u8) -> Sum<L> {
        let negated = Sum::primes(2).minus(self);
        let mut limbs = self.0;
        for k in 0..LIMBS {
            limbs[k] = L::select(mask, negated.0[k], limbs[k]);
        }
        Sum(limbs)
    }

    #[inline(always)]
    pub(crate) fn select(mask: u8, yes: &Self, no: &Self) -> Self {
        let mut limbs = no.0;
        for k in 0..LIMBS {
            limbs[k] = L::select(mask, yes.0[k], no.0[k]);
        }
        Self(limbs)
    }

    /// The same residue below 2^256, for a weak element: after one fold of an excess of at most one, the rest is far below 2^256.
    #[inline(always)]
    fn below_2_256(self) -> Self {
        self.0[LIMBS - 1].expect_below(49);
        let mut limbs = self.0;
        let excess = limbs[LIMBS - 1].shr::<48>();
        limbs[LIMBS - 1] = limbs[LIMBS - 1].and(L::splat(MASK_48));
        // Below 2^34.
        let fold = L::splat(FOLD_256).factor();
        limbs[0] = limbs[0].add(L::splat(L::LOW_OFFSET.wrapping_neg()));
        limbs[0] = limbs[0].add_small_product(excess.factor(), fold);
        let folded = Sum(limbs).carry();
        folded.0[LIMBS - 1].expect_below(48);
        folded
    }

    /// The residue below the prime, for a weak element.
    #[inline(always)]
    pub(crate) fn normalize(self) -> Self {
        let folded = self.below_2_256();
        // Adding 2^256 - p carries into bit 256 exactly if the value is at least p.
        let mut limbs = folded.0;
        limbs[0] = limbs[0].add(L::splat(FOLD_256));
        let mut reduced = Sum(limbs).carry().0;
        let is_below = reduced[LIMBS - 1].shr::<48>().zeros();
        reduced[LIMBS - 1] = reduced[LIMBS - 1].and(L::splat(MASK_48));
        Self::select(is_below, &folded, &Self(reduced))
    }

    /// The lanes whose weak element is zero modulo the prime.
    #[inline(always)]
    pub(crate) fn zeros(self) -> u8 {
        let [a, b, c, d, e] = self.normalize().0;
        a.or(b).or(c).or(d).or(e).zeros()
    }

    /// The lanes whose weak element is odd as a number below the prime.
    #[inline(always)]
    pub(crate) fn odd(self) -> u8 {
        L::ALL & !self.normalize().0[0].and(L::splat(1)).zeros()
    }
}
