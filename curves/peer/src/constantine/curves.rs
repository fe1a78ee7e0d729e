//! Fields and groups. Elements are limbs in Montgomery form, least significant first; points are their coordinates.

use std::hint::black_box;
use std::sync::mpsc;
use std::thread;

use anyhow::{Result, ensure};
use ark_ec::AffineRepr as _;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::Field;

use super::Library;
use crate::arkworks::{self, bytes, element};
use crate::table::{ANSWERED, Prepared, SPREAD, Table, Work};

type InPlace = unsafe extern "C" fn(*mut u64);
type InPlaceWith = unsafe extern "C" fn(*mut u64, *const u64);
type Convert = unsafe extern "C" fn(*mut u64, *const u64);
type Root = unsafe extern "C" fn(*mut u64) -> usize;
type Sum = unsafe extern "C" fn(*mut u64, *const u64, *const u64, usize);
type ParallelSum = unsafe extern "C" fn(*mut Pool, *mut u64, *const u64, *const u64, usize);
type Check = unsafe extern "C" fn(*const u64) -> u8;
type Hash = unsafe extern "C" fn(*mut u64, *const u8, usize, *const u8, usize, *const u8, usize);

/// Opaque type of the library's thread pool.
pub(super) enum Pool {}

/// Conversion of a prime field from and to numbers.
#[derive(Clone, Copy)]
struct Numbers {
    from_number: Convert,
    to_number: Convert,
    limbs: usize,
}

impl Numbers {
    /// `field` is, for instance, `bls12_381_fp`, and `number` the library's type of its values.
    fn new(library: &Library, field: &str, number: &str, limbs: usize) -> Result<Self> {
        Ok(Self {
            from_number: library.function(&format!("ctt_{field}_from_{number}"))?,
            to_number: library.function(&format!("ctt_{number}_from_{field}"))?,
            limbs,
        })
    }

    /// Parses concatenated big-endian coefficients.
    fn read(&self, coefficients: &[u8]) -> Vec<u64> {
        let limb = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
        coefficients
            .chunks_exact(8 * self.limbs)
            .flat_map(|number| {
                let number: Vec<u64> = number.rchunks_exact(8).map(limb).collect();
                let mut element = vec![0; self.limbs];
                // SAFETY: both buffers have the limbs of the field.
                unsafe { (self.from_number)(element.as_mut_ptr(), number.as_ptr()) };
                element
            })
            .collect()
    }

    /// Inverse of [`Self::read`].
    fn write(&self, elements: &[u64]) -> Vec<u8> {
        let mut written = Vec::with_capacity(8 * elements.len());
        for element in elements.chunks_exact(self.limbs) {
            let mut number = vec![0; self.limbs];
            // SAFETY: both buffers have the limbs of the field.
            unsafe { (self.to_number)(number.as_mut_ptr(), element.as_ptr()) };
            written.extend(number.iter().rev().flat_map(|limb| limb.to_be_bytes()));
        }
        written
    }
}

/// Names of a curve in the library, and sizes.
#[derive(Clone, Copy)]
struct Named {
    /// Name in this program.
    curve: &'static str,
    /// Prefix of function names in the library.
    prefix: &'static str,
    /// Type of a scalar.
    scalar: &'static str,
    /// Type of a coordinate, and its number of limbs.
    coordinate: (&'static str, usize),
    library: &'static Library,
}

const SCALAR_LIMBS: usize = 4;

pub(super) fn operations(table: &mut Table, library: &'static Library) -> Result<()> {
    let named =
        |curve, prefix, scalar, coordinate| Named { curve, prefix, scalar, coordinate, library };
    let bn254 = named("bn254", "bn254_snarks", "big254", ("big254", 4));
    bn254.first_group::<ark_bn254::g1::Config>(table)?;
    bn254.second_group::<ark_bn254::g2::Config>(table)?;
    let bls12_381 = named("bls12-381", "bls12_381", "big255", ("big381", 6));
    bls12_381.first_group::<ark_bls12_381::g1::Config>(table)?;
    bls12_381.second_group::<ark_bls12_381::g2::Config>(table)?;
    bls12_381.in_group_and_hash::<ark_bls12_381::g1::Config>(
        table,
        "g1",
        "BLS12381G1_XMD:SHA-256_SSWU_RO_",
    )?;
    bls12_381.in_group_and_hash::<ark_bls12_381::g2::Config>(
        table,
        "g2",
        "BLS12381G2_XMD:SHA-256_SSWU_RO_",
    )
}

impl Named {
    fn function<F: Copy>(&self, name: &str) -> Result<F> {
        self.library.function(&format!("ctt_{}_{name}", self.prefix))
    }

    fn scalars(&self) -> Result<Numbers> {
        Numbers::new(self.library, &format!("{}_fr", self.prefix), self.scalar, SCALAR_LIMBS)
    }

    fn coordinates(&self) -> Result<Numbers> {
        let (number, limbs) = self.coordinate;
        Numbers::new(self.library, &format!("{}_fp", self.prefix), number, limbs)
    }

    fn first_group<P: SWCurveConfig>(&self, table: &mut Table) -> Result<()> {
        self.field::<P::ScalarField>(table, "fr", self.scalars()?, &["mul", "inv"])?;
        let all = ["mul", "sqr", "inv", "sqrt"];
        self.field::<P::BaseField>(table, "fp", self.coordinates()?, &all)?;
        self.group::<P>(table, "g1")?;
        self.parallel_sums::<P>(table)
    }

    fn second_group<P: SWCurveConfig>(&self, table: &mut Table) -> Result<()> {
        let all = ["mul", "sqr", "inv", "sqrt"];
        self.field::<P::BaseField>(table, "fp2", self.coordinates()?, &all)?;
        self.group::<P>(table, "g2")?;
        let sum = self.group_of::<P>("g2")?;
        table.add(self.curve, "g2-msm", self.how("g2", SUM), move |work| Ok(sum.sums(work, "g2")));
        Ok(())
    }

    fn how(&self, group: &str, name: &str) -> String {
        format!("ctt_{}_{group}_jac_{name}", self.prefix)
    }

    fn field<F: Field>(
        &self,
        table: &mut Table,
        label: &'static str,
        numbers: Numbers,
        wanted: &[&str],
    ) -> Result<()> {
        let two = move |work: &Work| {
            [0, 1].map(|index| numbers.read(&bytes(&element::<F>(work, label, index))))
        };
        let write = move |x: &Vec<u64>| numbers.write(x);
        for operation in wanted {
            let (row, name) =
                (format!("{label}-{operation}"), format!("{label}_{}", in_place(operation)));
            let how = format!("ctt_{}_{name}", self.prefix);
            match *operation {
                "mul" => {
                    let times: InPlaceWith = self.function(&name)?;
                    table.add(self.curve, row, how, move |work| {
                        let [x, y] = two(work);
                        // SAFETY: both pointers are to elements of the field.
                        let step =
                            move |x: &mut Vec<u64>| unsafe { times(x.as_mut_ptr(), y.as_ptr()) };
                        Ok(Prepared::chained(x, step, write))
                    });
                }
                "sqr" => {
                    let square: InPlace = self.function(&name)?;
                    table.add(self.curve, row, how, move |work| {
                        let [x, _] = two(work);
                        // SAFETY: a pointer to an element of the field.
                        let step = move |x: &mut Vec<u64>| unsafe { square(x.as_mut_ptr()) };
                        Ok(Prepared::chained(x, step, write))
                    });
                }
                "inv" => {
                    let invert: InPlace = self.function(&name)?;
                    let add: InPlaceWith = self.function(&format!("{label}_add_in_place"))?;
                    table.add(self.curve, row, format!("{how}, constant time"), move |work| {
                        let [x, y] = two(work);
                        // SAFETY: both pointers are to elements of the field.
                        let step = move |x: &mut Vec<u64>| unsafe {
                            invert(x.as_mut_ptr());
                            add(x.as_mut_ptr(), y.as_ptr());
                        };
                        Ok(Prepared::chained(x, step, write))
                    });
                }
                _ => {
                    let root: Root = self.function(&name)?;
                    table.add(self.curve, row, how, move |work| {
                        roots::<F>(work, label, numbers, root)
                    });
                }
            }
        }
        Ok(())
    }

    fn group_of<P: SWCurveConfig>(&self, group: &str) -> Result<Group<P>> {
        Ok(Group {
            scalars: self.scalars()?,
            coordinates: self.coordinates()?,
            from_affine: self.function(&format!("{group}_jac_from_affine"))?,
            to_affine: self.function(&format!("{group}_jac_affine"))?,
            sum: self.function(&format!("{group}_jac_{SUM}"))?,
            config: std::marker::PhantomData,
        })
    }

    fn group<P: SWCurveConfig>(&self, table: &mut Table, group: &'static str) -> Result<()> {
        let of = self.group_of::<P>(group)?;
        let add: InPlaceWith = self.function(&format!("{group}_jac_add_in_place"))?;
        let double: InPlace = self.function(&format!("{group}_jac_double_in_place"))?;
        let how = self.how(group, "add_in_place");
        table.add(self.curve, format!("{group}-add"), how, move |work| {
            let points = arkworks::points::<P>(work, group, 2);
            let (x, mut y) = (of.jacobian(&points[0]), of.jacobian(&points[1]));
            // SAFETY: a pointer to a point.
            unsafe { double(y.as_mut_ptr()) };
            // SAFETY: both pointers are to points.
            let step = move |x: &mut Vec<u64>| unsafe { add(x.as_mut_ptr(), y.as_ptr()) };
            Ok(Prepared::chained(x, step, move |x| of.bytes(x)))
        });
        let how = self.how(group, "double_in_place");
        table.add(self.curve, format!("{group}-double"), how, move |work| {
            let x = of.jacobian(&arkworks::points::<P>(work, group, 1)[0]);
            // SAFETY: a pointer to a point.
            let step = move |x: &mut Vec<u64>| unsafe { double(x.as_mut_ptr()) };
            Ok(Prepared::chained(x, step, move |x| of.bytes(x)))
        });
        let name = "scalar_mul_fr_coef_vartime";
        let multiply: InPlaceWith = self.function(&format!("{group}_jac_{name}"))?;
        let how = format!("{}, variable time", self.how(group, name));
        table.add(self.curve, format!("{group}-mul"), how, move |work| {
            let point = of.jacobian(&arkworks::points::<P>(work, group, 1)[0]);
            let scalars = of.scalars(work, SPREAD);
            let times = move |index: usize| {
                let mut product = point.clone();
                let scalar = &scalars[SCALAR_LIMBS * index..];
                // SAFETY: pointers to a point and a scalar.
                unsafe { multiply(product.as_mut_ptr(), scalar.as_ptr()) };
                product
            };
            let answer = (0..ANSWERED).flat_map(|index| of.bytes(&times(index))).collect();
            Ok(Prepared::spread(answer, move |index| {
                black_box(times(index));
            }))
        });
        Ok(())
    }

    /// Sums on all threads, for first groups; the library has none for second groups.
    fn parallel_sums<P: SWCurveConfig>(&self, table: &mut Table) -> Result<()> {
        let of = self.group_of::<P>("g1")?;
        let threads = Threads::new(self.library)?;
        let all: ParallelSum = self.function(&format!("g1_jac_{SUM}_parallel"))?;
        let how = format!("{}, …_parallel on its own pool", self.how("g1", SUM));
        table.add(self.curve, "g1-msm", how, move |work| {
            if work.threads == 1 {
                return Ok(of.sums(work, "g1"));
            }
            let (points, scalars) = of.inputs(work, "g1");
            let (count, size) = (work.size, 3 * of.coordinates.limbs);
            let sum = move |pool: *mut Pool| {
                let mut sum = vec![0; size];
                // SAFETY: the pool of this thread, and `count` points and scalars.
                unsafe { all(pool, sum.as_mut_ptr(), scalars.as_ptr(), points.as_ptr(), count) };
                sum
            };
            threads.prepared(work.threads, sum, move |sum| of.bytes(sum))
        });
        Ok(())
    }

    fn in_group_and_hash<P: SWCurveConfig>(
        &self,
        table: &mut Table,
        group: &'static str,
        suite: &str,
    ) -> Result<()> {
        let of = self.group_of::<P>(group)?;
        let name = format!("validate_{group}");
        let validate: Check = self.function(&name)?;
        let how =
            format!("ctt_{}_{name}, which checks the equation of the curve as well", self.prefix);
        table.add(self.curve, format!("{group}-subgroup"), how, move |work| {
            let points: Vec<_> = arkworks::points::<P>(work, group, SPREAD)
                .iter()
                .map(|point| of.affine(point))
                .collect();
            let outside = of.affine(&arkworks::outside::<P>()?);
            // SAFETY: a pointer to an affine point.
            let is_in_group = move |point: &[u64]| unsafe { validate(point.as_ptr()) } == 0;
            let answer = [&points[0], &outside].map(|point| u8::from(is_in_group(point)));
            Ok(Prepared::spread(answer.to_vec(), move |index| {
                assert!(is_in_group(&points[index]), "in the group");
            }))
        });
        let name = format!("{group}_aff_sswu_sha256");
        let hash: Hash = self.function(&name)?;
        let dst = format!("ASSAY-V01-CS01-with-{suite}");
        let how = format!("ctt_{}_{name}, {suite}", self.prefix);
        table.add(self.curve, format!("{group}-hash"), how, move |work| {
            let (dst, size) = (dst.clone(), of.affine(&P::GENERATOR).len());
            let hash = move |message: &[u8]| {
                let mut point = vec![0; size];
                // SAFETY: space for an affine point; pointers and lengths of slices, the first of which is empty.
                unsafe {
                    let (at, count) = (message.as_ptr(), message.len());
                    hash(point.as_mut_ptr(), at, 0, at, count, dst.as_ptr(), dst.len());
                }
                point
            };
            let answer = (0..ANSWERED)
                .flat_map(|index| of.coordinates.write(&hash(&work.message(index))))
                .collect();
            Ok(Prepared::of_messages(answer, work.message(0), move |message| hash(message)))
        });
        Ok(())
    }
}

const SUM: &str = "multi_scalar_mul_fr_coefs_vartime";

/// Name of an operation in the library.
fn in_place(operation: &str) -> &'static str {
    match operation {
        "mul" => "mul_in_place",
        "sqr" => "square_in_place",
        "inv" => "inv_in_place",
        _ => "sqrt_if_square_in_place",
    }
}

fn roots<F: Field>(work: &Work, label: &str, numbers: Numbers, root: Root) -> Result<Prepared> {
    let squares: Vec<Vec<u64>> = (0..SPREAD)
        .map(|index| numbers.read(&bytes(&element::<F>(work, label, index).square())))
        .collect();
    // SAFETY: a pointer to an element of the field.
    let root = move |x: &mut Vec<u64>| unsafe { root(x.as_mut_ptr()) } != 0;
    let mut answer = Vec::new();
    for square in &squares[..ANSWERED] {
        let mut x = square.clone();
        ensure!(root(&mut x), "a square without a root");
        let is_right = |y: &F| numbers.read(&bytes(&y.square())) == *square;
        let found = numbers.write(&x);
        let y: F = arkworks::from_bytes(&found);
        ensure!(is_right(&y), "a root whose square is another");
        answer.extend(found.min(bytes(&-y)));
    }
    Ok(Prepared::spread(answer, move |index| {
        let mut x = squares[index].clone();
        assert!(root(&mut x), "a square");
        black_box(x);
    }))
}

/// Conversion of a group's points.
struct Group<P> {
    scalars: Numbers,
    coordinates: Numbers,
    from_affine: Convert,
    to_affine: Convert,
    sum: Sum,
    config: std::marker::PhantomData<fn() -> P>,
}

impl<P> Clone for Group<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Group<P> {}

impl<P: SWCurveConfig> Group<P> {
    fn affine(&self, point: &Affine<P>) -> Vec<u64> {
        let (x, y) = point.xy().unwrap_or_default();
        self.coordinates.read(&[bytes(&x), bytes(&y)].concat())
    }

    fn jacobian(&self, point: &Affine<P>) -> Vec<u64> {
        let affine = self.affine(point);
        let mut jacobian = vec![0; affine.len() / 2 * 3];
        // SAFETY: space for three coordinates, and two coordinates.
        unsafe { (self.from_affine)(jacobian.as_mut_ptr(), affine.as_ptr()) };
        jacobian
    }

    fn bytes(&self, jacobian: &[u64]) -> Vec<u8> {
        let mut affine = vec![0; jacobian.len() / 3 * 2];
        // SAFETY: space for two coordinates, and three coordinates.
        unsafe { (self.to_affine)(affine.as_mut_ptr(), jacobian.as_ptr()) };
        self.coordinates.write(&affine)
    }

    fn scalars(&self, work: &Work, count: usize) -> Vec<u64> {
        let scalars = arkworks::scalars::<P::ScalarField>(work, count);
        scalars.iter().flat_map(|scalar| self.scalars.read(&bytes(scalar))).collect()
    }

    /// Points, then scalars.
    fn inputs(&self, work: &Work, label: &str) -> (Vec<u64>, Vec<u64>) {
        let points = arkworks::points::<P>(work, label, work.size);
        let points = points.iter().flat_map(|point| self.affine(point)).collect();
        (points, self.scalars(work, work.size))
    }

    /// Sums on one thread.
    fn sums(self, work: &Work, label: &str) -> Prepared {
        let (points, scalars) = self.inputs(work, label);
        let (count, size) = (work.size, self.jacobian(&P::GENERATOR).len());
        let sum = move || {
            let mut sum = vec![0; size];
            // SAFETY: space for a point, and `count` points and scalars.
            unsafe { (self.sum)(sum.as_mut_ptr(), scalars.as_ptr(), points.as_ptr(), count) };
            sum
        };
        Prepared::repeated(self.bytes(&sum()), sum)
    }
}

/// The library's own pool, which may only be used by the thread that created it.
#[derive(Clone, Copy)]
pub(super) struct Threads {
    start: unsafe extern "C" fn(i32) -> *mut Pool,
    stop: unsafe extern "C" fn(*mut Pool),
}

impl Threads {
    pub(super) fn new(library: &Library) -> Result<Self> {
        Ok(Self {
            start: library.function("ctt_threadpool_new")?,
            stop: library.function("ctt_threadpool_shutdown")?,
        })
    }

    /// Work on a new thread with a pool of `threads` threads, 0 for all.
    pub(super) fn prepared<T: Send + 'static>(
        self,
        threads: usize,
        work: impl Fn(*mut Pool) -> T + Send + 'static,
        answer: impl FnOnce(&T) -> Vec<u8> + Send + 'static,
    ) -> Result<Prepared> {
        let threads = match threads {
            0 => thread::available_parallelism()?.get(),
            threads => threads,
        };
        let (orders, taken) = mpsc::channel::<u64>();
        let (done, finished) = mpsc::channel::<Vec<u8>>();
        thread::spawn(move || {
            // SAFETY: the only pool of this thread, stopped before the thread ends.
            let pool = unsafe { (self.start)(threads as i32) };
            let mut sent = done.send(answer(&work(pool)));
            while let (Ok(()), Ok(iterations)) = (&sent, taken.recv()) {
                for _ in 0..iterations {
                    black_box(work(pool));
                }
                sent = done.send(Vec::new());
            }
            // SAFETY: the pool was created above.
            unsafe { (self.stop)(pool) };
        });
        let answer = finished.recv()?;
        Ok(Prepared::new(answer, move |iterations| {
            orders.send(iterations).expect("the thread waits");
            finished.recv().expect("the thread does its work");
        }))
    }
}
