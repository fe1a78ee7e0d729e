//! Coordinates of lists of points: one at a time, or eight in lanes.

use crate::field::{Fe, Field, Modulus};
use crate::lanes::field::LaneFe;
use crate::lanes::layout::{Layout, OneLine, TwoLines};
use crate::lanes::{LANES, Lanes, Task, Words};

/// Coordinates of one point per lane. Bounds are those of [`LaneFe`].
pub(crate) trait Vector: Copy {
    /// Number of lanes, 1 or 8.
    const WIDTH: usize;
    /// Number of references that are sorted and summed at a time, such that their sums fit into the L2 cache.
    const REFS_AT_ONCE: usize;
    type Scalar: Field;
    type Point: Copy;
    type Memory: Copy;
    const ZERO_POINT: Self::Point;
    const ZERO_MEMORY: Self::Memory;

    /// Appends points, padded with zeros to whole vectors.
    fn push_points(
        points: impl Iterator<Item = (Self::Scalar, Self::Scalar)>,
        nodes: &mut Vec<Self::Point>,
    );
    fn point(point: &Self::Point) -> (Self::Scalar, Self::Scalar);
    fn load<'p>(point: &impl Fn(usize) -> &'p Self::Point) -> (Self, Self)
    where
        Self::Point: 'p;
    fn load_x<'p>(point: &impl Fn(usize) -> &'p Self::Point) -> Self
    where
        Self::Point: 'p;
    fn prefetch(point: &Self::Point);
    fn store_points(x: &Self, y: &Self, points: &mut [Self::Point]);
    fn from_memory(memory: &Self::Memory) -> Self;
    fn store(&self, memory: &mut Self::Memory);
    fn one() -> Self;
    fn plus(&self, other: &Self) -> Self;
    fn minus(&self, other: &Self) -> Self;
    fn minus_stored(&self, other: &Self) -> Self;
    fn minus_both_stored(&self, a: &Self, b: &Self) -> Self;
    fn negate_where(&self, mask: u8) -> Self;
    fn times(&self, other: &Self) -> Self;
    fn squared(&self) -> Self;
    fn may_have_zero(&self) -> bool;
    fn zeros(&self) -> u8;
    fn select(mask: u8, yes: &Self, no: &Self) -> Self;
    /// Inverts all lanes of all vectors; zeros are left unchanged.
    fn invert<const T: usize>(vectors: &mut [Self; T]);
    /// Runs code on vectors ([`Lanes::run`]).
    fn run<T: Task>(task: T) -> T::Result;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Single<F>(F);

impl<F: Field> Vector for Single<F> {
    const WIDTH: usize = 1;
    const REFS_AT_ONCE: usize = 1 << 11;
    type Scalar = F;
    type Point = [F; 2];
    type Memory = F;
    const ZERO_POINT: [F; 2] = [F::ZERO; 2];
    const ZERO_MEMORY: F = F::ZERO;

    fn push_points(points: impl Iterator<Item = (F, F)>, nodes: &mut Vec<[F; 2]>) {
        nodes.extend(points.map(|(x, y)| [x, y]));
    }

    fn point([x, y]: &[F; 2]) -> (F, F) {
        (*x, *y)
    }

    #[inline(always)]
    fn load<'p>(point: &impl Fn(usize) -> &'p [F; 2]) -> (Self, Self) {
        let [x, y] = point(0);
        (Self(*x), Self(*y))
    }

    #[inline(always)]
    fn load_x<'p>(point: &impl Fn(usize) -> &'p [F; 2]) -> Self {
        Self(point(0)[0])
    }

    #[inline(always)]
    fn prefetch(point: &[F; 2]) {
        crate::backend::prefetch(point);
    }

    #[inline(always)]
    fn store_points(x: &Self, y: &Self, points: &mut [[F; 2]]) {
        points[0] = [x.0, y.0];
    }

    #[inline(always)]
    fn from_memory(memory: &F) -> Self {
        Self(*memory)
    }

    #[inline(always)]
    fn store(&self, memory: &mut F) {
        *memory = self.0;
    }

    #[inline(always)]
    fn one() -> Self {
        Self(F::ONE)
    }

    #[inline(always)]
    fn plus(&self, other: &Self) -> Self {
        Self(self.0 + other.0)
    }

    #[inline(always)]
    fn minus(&self, other: &Self) -> Self {
        Self(self.0 - other.0)
    }

    #[inline(always)]
    fn minus_stored(&self, other: &Self) -> Self {
        Self(self.0 - other.0)
    }

    #[inline(always)]
    fn minus_both_stored(&self, a: &Self, b: &Self) -> Self {
        Self(self.0 - a.0 - b.0)
    }

    #[inline(always)]
    fn negate_where(&self, mask: u8) -> Self {
        Self(if mask & 1 == 1 { -self.0 } else { self.0 })
    }

    #[inline(always)]
    fn times(&self, other: &Self) -> Self {
        Self(self.0.times(&other.0))
    }

    #[inline(always)]
    fn squared(&self) -> Self {
        Self(self.0.square())
    }

    #[inline(always)]
    fn may_have_zero(&self) -> bool {
        self.0.is_zero()
    }

    #[inline(always)]
    fn zeros(&self) -> u8 {
        u8::from(self.0.is_zero())
    }

    #[inline(always)]
    fn select(mask: u8, yes: &Self, no: &Self) -> Self {
        if mask & 1 == 1 { *yes } else { *no }
    }

    fn invert<const T: usize>(vectors: &mut [Self; T]) {
        let mut elements = vectors.map(|vector| vector.0);
        F::invert_all(&mut elements);
        *vectors = elements.map(Self);
    }

    fn run<T: Task>(task: T) -> T::Result {
        task.run()
    }
}

/// Base fields with lanes: number of limbs, and layout of points.
pub(crate) trait Coordinates: Field {
    type Vector<L: Lanes>: Vector<Scalar = Self>;
}

/// The vector of a field on a kind of lanes.
pub(crate) type VectorOf<L, F> = <F as Coordinates>::Vector<L>;

impl<M: Modulus<6>> Coordinates for Fe<M, 6> {
    type Vector<L: Lanes> = Many<L, M, TwoLines, 6, 8>;
}

/// Primes up to 2^254, as [`LaneFe`] requires, so stored values are below 2^256, as the layout requires.
impl<M: Modulus<4>> Coordinates for Fe<M, 4> {
    type Vector<L: Lanes> = Many<L, M, OneLine, 4, 5>;
}

/// Eight coordinates in lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Many<L, M, P, const N: usize, const K: usize>(
    LaneFe<L, M, N, K>,
    core::marker::PhantomData<P>,
);

impl<L: Lanes, M: Modulus<N>, P, const N: usize, const K: usize> Many<L, M, P, N, K> {
    #[inline(always)]
    fn of(fe: LaneFe<L, M, N, K>) -> Self {
        Self(fe, core::marker::PhantomData)
    }
}

impl<L, M, P, const N: usize, const K: usize> Vector for Many<L, M, P, N, K>
where
    L: Lanes,
    M: Modulus<N>,
    P: Layout<K>,
{
    const WIDTH: usize = LANES;
    const REFS_AT_ONCE: usize = 1 << 13;
    type Scalar = Fe<M, N>;
    type Point = P;
    type Memory = [Words; K];
    const ZERO_POINT: P = P::ZERO;
    const ZERO_MEMORY: [Words; K] = [[0; LANES]; K];

    #[inline(always)]
    fn push_points(mut points: impl Iterator<Item = (Fe<M, N>, Fe<M, N>)>, nodes: &mut Vec<P>) {
        let (mut xs, mut ys) = ([Fe::ZERO; LANES], [Fe::ZERO; LANES]);
        loop {
            let mut count = 0;
            while count < LANES
                && let Some((x, y)) = points.next()
            {
                (xs[count], ys[count]) = (x, y);
                count += 1;
            }
            if count == 0 {
                return;
            }
            let (x, y) = (LaneFe::<L, M, N, K>::from_scalars(&xs), LaneFe::from_scalars(&ys));
            let first = nodes.len();
            nodes.resize(first + LANES, P::ZERO);
            P::store(x.limbs(), y.limbs(), &mut nodes[first..]);
        }
    }

    #[inline(always)]
    fn point(point: &P) -> (Fe<M, N>, Fe<M, N>) {
        let (x, y) = Self::load(&|_| point);
        (x.0.to_scalars()[0], y.0.to_scalars()[0])
    }

    #[inline(always)]
    fn load<'p>(point: &impl Fn(usize) -> &'p P) -> (Self, Self)
    where
        P: 'p,
    {
        let [x, y] = P::load(point);
        (Self::of(LaneFe::from_limbs(x)), Self::of(LaneFe::from_limbs(y)))
    }

    #[inline(always)]
    fn load_x<'p>(point: &impl Fn(usize) -> &'p P) -> Self
    where
        P: 'p,
    {
        Self::of(LaneFe::from_limbs(P::load_x(point)))
    }

    #[inline(always)]
    fn prefetch(point: &P) {
        point.prefetch::<L>();
    }

    #[inline(always)]
    fn store_points(x: &Self, y: &Self, points: &mut [P]) {
        P::store(x.0.limbs(), y.0.limbs(), points);
    }

    #[inline(always)]
    fn from_memory(memory: &[Words; K]) -> Self {
        Self::of(LaneFe::load(memory))
    }

    #[inline(always)]
    fn store(&self, memory: &mut [Words; K]) {
        self.0.store(memory);
    }

    #[inline(always)]
    fn one() -> Self {
        Self::of(LaneFe::one())
    }

    #[inline(always)]
    fn plus(&self, other: &Self) -> Self {
        Self::of(self.0.plus(&other.0))
    }

    #[inline(always)]
    fn minus(&self, other: &Self) -> Self {
        Self::of(self.0.minus(&other.0))
    }

    #[inline(always)]
    fn minus_stored(&self, other: &Self) -> Self {
        Self::of(self.0.minus_stored(&other.0))
    }

    #[inline(always)]
    fn minus_both_stored(&self, a: &Self, b: &Self) -> Self {
        Self::of(self.0.minus_both_stored(&a.0, &b.0))
    }

    #[inline(always)]
    fn negate_where(&self, mask: u8) -> Self {
        Self::of(self.0.negate_where(mask))
    }

    #[inline(always)]
    fn times(&self, other: &Self) -> Self {
        Self::of(self.0.times(&other.0))
    }

    #[inline(always)]
    fn squared(&self) -> Self {
        Self::of(self.0.squared())
    }

    #[inline(always)]
    fn may_have_zero(&self) -> bool {
        self.0.may_have_zero()
    }

    #[inline(always)]
    fn zeros(&self) -> u8 {
        self.0.zeros()
    }

    #[inline(always)]
    fn select(mask: u8, yes: &Self, no: &Self) -> Self {
        Self::of(LaneFe::select(mask, &yes.0, &no.0))
    }

    #[inline(always)]
    fn invert<const T: usize>(vectors: &mut [Self; T]) {
        let mut scalars = [[Fe::<M, N>::ZERO; LANES]; T];
        for k in 0..T {
            scalars[k] = vectors[k].0.to_scalars();
        }
        Fe::invert_all(scalars.as_flattened_mut());
        for k in 0..T {
            vectors[k] = Self::of(LaneFe::from_scalars(&scalars[k]));
        }
    }

    fn run<T: Task>(task: T) -> T::Result {
        L::run(task)
    }
}
