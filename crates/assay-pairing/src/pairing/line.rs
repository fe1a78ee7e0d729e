//! Steps of Miller's algorithm in homogeneous projective coordinates (Costello, Lange, Naehrig 2010;
//! Aranha, Barreto, Longa, Ricardini 2013).

use crate::curve::Curve;
use crate::field::Field as _;
use crate::tower::{Fp2, Fp12, TowerField};

/// How the twist lies over Fp12, and with it which coefficients of a line are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Twist {
    /// `b` times xi.
    M,
    /// `b` divided by xi.
    D,
}

/// A line through one point or two: coefficients of 1, x and y.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<F> {
    constant: Fp2<F>,
    of_x: Fp2<F>,
    of_y: Fp2<F>,
    twist: Twist,
}

impl<F: TowerField> Line<F> {
    /// `f` times the line at the point (x, y) of the first group.
    pub(super) fn times(&self, f: &Fp12<F>, x: F, y: F) -> Fp12<F> {
        let (of_x, of_y) = (self.of_x.scale(x), self.of_y.scale(y));
        match self.twist {
            Twist::M => f.product_014(self.constant, of_x, of_y),
            Twist::D => f.product_034(of_y, of_x, self.constant),
        }
    }
}

/// A multiple of a point of the second group as (X : Y : Z), x = X / Z.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accumulator<F> {
    x: Fp2<F>,
    y: Fp2<F>,
    z: Fp2<F>,
}

impl<F: TowerField> Accumulator<F> {
    pub(super) fn new(x: Fp2<F>, y: Fp2<F>) -> Self {
        Self { x, y, z: Fp2::ONE }
    }

    /// Doubles, and gives the tangent.
    pub(super) fn double<C: Curve<Base = Fp2<F>>>(&mut self, twist: Twist) -> Line<F> {
        let a = (self.x * self.y).halved();
        let b = self.y.square();
        let c = self.z.square();
        let e = C::B * (c.double() + c);
        let f = e.double() + e;
        let g = (b + f).halved();
        let h = (self.y + self.z).square() - (b + c);
        let j = self.x.square();
        let e2 = e.square();
        *self = Self { x: a * (b - f), y: g.square() - (e2.double() + e2), z: b * h };
        Line { constant: e - b, of_x: j.double() + j, of_y: -h, twist }
    }

    /// Adds the point (x, y), which is another than this one and its negation, and gives the line through both.
    pub(super) fn add(&mut self, x: Fp2<F>, y: Fp2<F>, twist: Twist) -> Line<F> {
        let theta = self.y - y * self.z;
        let lambda = self.x - x * self.z;
        let c = theta.square();
        let d = lambda.square();
        let e = lambda * d;
        let f = self.z * c;
        let g = self.x * d;
        let h = e + f - g.double();
        *self = Self { x: lambda * h, y: theta * (g - h) - e * self.y, z: self.z * e };
        Line { constant: theta * x - lambda * y, of_x: -theta, of_y: lambda, twist }
    }
}
