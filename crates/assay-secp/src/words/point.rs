//! Points of y^2 = x^3 + 7. No formula uses the 7, so they hold on isomorphic curves too.

use super::field::Fe;

/// A cube root of one, `beta` of the scalars' `lambda`.
const BETA: Fe = Fe::from_words([
    0xc139_6c28_7195_01ee,
    0x9cf0_4975_12f5_8995,
    0x6e64_479e_ac34_34e9,
    0x7ae9_6a2b_657c_0710,
]);

/// Odd multiples of a point in its table.
pub(super) const MULTIPLES: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(super) struct Affine {
    x: Fe,
    y: Fe,
}

impl Affine {
    /// x, then y.
    #[inline(always)]
    pub(super) fn from_line(words: &[u64; 8]) -> Self {
        let [a, b, c, d, e, f, g, h] = *words;
        Self { x: Fe::from_words([a, b, c, d]), y: Fe::from_words([e, f, g, h]) }
    }

    /// `None` if no point has this x coordinate.
    pub(super) fn decompress(x: Fe, is_y_odd: bool) -> Option<Self> {
        let square = x.square().mul(&x).add(&Fe::from_words([7, 0, 0, 0]));
        let y = square.square_root();
        let is_on_curve = y.square().sub(&square).is_zero();
        is_on_curve.then_some(Self { x, y }.negate_if(y.is_odd() != is_y_odd))
    }

    #[inline(always)]
    pub(super) fn negate_if(&self, is_negative: bool) -> Self {
        Self { x: self.x, y: if is_negative { self.y.negate() } else { self.y } }
    }

    /// The point, or lambda times it for the second half of a scalar.
    #[inline(always)]
    pub(super) fn times_lambda(&self, half: usize) -> Self {
        Self { x: if half == 1 { self.x.mul(&BETA) } else { self.x }, y: self.y }
    }
}

/// (X / Z^2, Y / Z^3); Z is zero for infinity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) x: Fe,
    pub(super) y: Fe,
    pub(super) z: Fe,
}

impl Point {
    pub(super) const INFINITY: Self = Self { x: Fe::ONE, y: Fe::ONE, z: Fe::ZERO };

    /// M = 3X^2/2, V = XY^2, X' = M^2 - 2V, Y' = M(V - X') - Y^4, Z' = YZ, as in libsecp256k1's `gej_double`: the halving
    /// minimises the number of additions in the chain. Infinity is preserved, and no point has Y = 0.
    #[inline(always)]
    pub(super) fn double(&self) -> Self {
        let yy = self.y.square();
        let xx = self.x.square();
        let v = self.x.mul(&yy);
        let m = xx.double().add(&xx).half();
        let x = m.square().sub(&v.double());
        let y = m.mul(&v.sub(&x)).sub(&yy.square());
        Self { x, y, z: self.y.mul(&self.z) }
    }

    /// The sum with a point of the same curve or, with a ratio, of the isomorphic curve: a point (x, y) there is (x ratio^2, y
    /// ratio^3) here.
    #[inline(always)]
    pub(super) fn add(&self, other: &Affine, ratio: Option<&Fe>) -> Self {
        let scale = ratio.map_or(self.z, |ratio| self.z.mul(ratio));
        let square = scale.square();
        let h = other.x.mul(&square).sub(&self.x);
        let r = other.y.mul(&square.mul(&scale)).sub(&self.y);
        if self.z.is_zero() || h.is_zero() {
            return self.add_exceptional(other, ratio, &r);
        }
        self.add_by(&h, &r)
    }

    /// H = x scale^2 - X, R = y scale^3 - Y, V = XH^2, X' = R^2 - H^3 - 2V, Y' = R(V - X') - YH^3, Z' = ZH.
    #[inline(always)]
    fn add_by(&self, h: &Fe, r: &Fe) -> Self {
        let hh = h.square();
        let hhh = hh.mul(h);
        let v = self.x.mul(&hh);
        let x = r.square().sub(&hhh).sub(&v.double());
        let y = r.mul(&v.sub(&x)).sub(&self.y.mul(&hhh));
        Self { x, y, z: self.z.mul(h) }
    }

    /// One point is infinity, or both have the same x coordinate.
    #[cold]
    fn add_exceptional(&self, other: &Affine, ratio: Option<&Fe>, r: &Fe) -> Self {
        if self.z.is_zero() {
            let ratio = ratio.unwrap_or(&Fe::ONE);
            let square = ratio.square();
            let (x, y) = (other.x.mul(&square), other.y.mul(&square.mul(ratio)));
            return Self { x, y, z: Fe::ONE };
        }
        if r.is_zero() { self.double() } else { Self::INFINITY }
    }
}

/// Odd multiples of a point on an isomorphic curve, on which they are all affine: a point (x, y) there is (x scale^2, y scale^3)
/// here.
pub(super) struct Multiples {
    pub(super) points: [Affine; MULTIPLES],
    pub(super) scale: Fe,
}

impl Multiples {
    /// Meloni's co-Z trick, as in libsecp256k1's `ecmult_odd_multiples_table`. The order of the group is a large prime, so no
    /// addition here is exceptional.
    pub(super) fn new(point: &Affine) -> Self {
        let twice = Point { x: point.x, y: point.y, z: Fe::ONE }.double();
        // On the curve scaled by the double's Z, the double is affine, and after scaling the point is too.
        let square = twice.z.square();
        let (x, y) = (point.x.mul(&square), point.y.mul(&square.mul(&twice.z)));
        let step = Affine { x: twice.x, y: twice.y };
        let mut sum = Point { x, y, z: Fe::ONE };
        let mut points = [(sum, Fe::ONE); MULTIPLES];
        for (multiple, ratio) in &mut points[1..] {
            let square = sum.z.square();
            let h = step.x.mul(&square).sub(&sum.x);
            let r = step.y.mul(&square.mul(&sum.z)).sub(&sum.y);
            sum = sum.add_by(&h, &r);
            (*multiple, *ratio) = (sum, h);
        }
        let mut factor = Fe::ONE;
        let mut affine = [*point; MULTIPLES];
        for (affine, (multiple, ratio)) in affine.iter_mut().zip(&points).rev() {
            let square = factor.square();
            let (x, y) = (multiple.x.mul(&square), multiple.y.mul(&square.mul(&factor)));
            *affine = Affine { x, y };
            factor = factor.mul(ratio);
        }
        Self { points: affine, scale: sum.z.mul(&twice.z) }
    }
}
