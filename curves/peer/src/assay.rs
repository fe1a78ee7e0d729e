//! assay-pairing: this repository's own curves. The crate has no threads; sums and batches are
//! split here into one part per thread.

mod evm;
mod kzg;

use std::hint::black_box;
use std::num::NonZero;
use std::ops::Range;
use std::thread;

use anyhow::Context as _;
use assay_pairing::bls::{self, PublicKey, SecretKey, Signature};
use assay_pairing::curve::{
    Affine, Bls377G1, Bls377G2, BlsG1, BlsG2, BnG2, Curve, Jacobian, NogamiG2,
};
use assay_pairing::field::{Fe, Field, Modulus};
use assay_pairing::hash_to_curve::HashToCurve;
use assay_pairing::msm::{self, Backend, MultiScalar};
use assay_pairing::pairing::{Bls12377, Bls12381, Bn254, Bn254Nogami, Pairing};
use assay_pairing::tower::{Fp2, Fp6, Fp12, TowerField};
use assay_pairing::{bls12_377, bls12_381, bn254, bn254_nogami};

use crate::table::{ANSWERED, Prepared, SPREAD, Table, Work};

pub use evm::{PRECOMPILES, Run, gas, input as precompile_input};
pub(crate) use kzg::cell_prover;

pub const VERSION: &str = "0.1.0";

pub fn table() -> Table {
    let mut table = Table::default();
    pairing_curve::<Bn254, bn254::Fr>(&mut table, "bn254");
    subgroup::<BnG2>(&mut table, "bn254", "g2");
    pairing_curve::<Bls12381, bls12_381::Fr>(&mut table, "bls12-381");
    subgroup::<BlsG1>(&mut table, "bls12-381", "g1");
    subgroup::<BlsG2>(&mut table, "bls12-381", "g2");
    hash::<BlsG1>(&mut table, "g1", "BLS12381G1_XMD:SHA-256_SSWU_RO_");
    hash::<BlsG2>(&mut table, "g2", "BLS12381G2_XMD:SHA-256_SSWU_RO_");
    pairing_curve::<Bls12377, bls12_377::Fr>(&mut table, "bls12-377");
    subgroup::<Bls377G1>(&mut table, "bls12-377", "g1");
    subgroup::<Bls377G2>(&mut table, "bls12-377", "g2");
    pairing_curve::<Bn254Nogami, bn254_nogami::Fr>(&mut table, "bn254-nogami");
    subgroup::<NogamiG2>(&mut table, "bn254-nogami", "g2");
    signatures(&mut table);
    evm::operations(&mut table);
    kzg::operations(&mut table);
    table
}

/// Canonical elements by the rules of README.md.
pub trait Canonical: Sized {
    /// Element of a label, with coefficients in order.
    fn element(work: &Work, label: &str, index: usize) -> Self;
    /// Coefficients, big-endian.
    fn bytes(&self) -> Vec<u8>;
}

macro_rules! prime_fields {
    ($($limbs:literal),*) => {$(
        impl<M: Modulus<$limbs>> Canonical for Fe<M, $limbs> {
            fn element(work: &Work, label: &str, index: usize) -> Self {
                Self::from_be_bytes_reduced(&work.wide(label, index))
            }

            fn bytes(&self) -> Vec<u8> {
                self.to_be_bytes().to_vec()
            }
        }
    )*};
}

prime_fields!(4, 6);

impl<F: Canonical> Canonical for Fp2<F> {
    fn element(work: &Work, label: &str, index: usize) -> Self {
        let [c0, c1] = [0, 1].map(|k| F::element(work, label, 2 * index + k));
        Self { c0, c1 }
    }

    fn bytes(&self) -> Vec<u8> {
        [self.c0.bytes(), self.c1.bytes()].concat()
    }
}

impl<F: Canonical> Canonical for Fp12<F> {
    fn element(work: &Work, label: &str, index: usize) -> Self {
        let part = |k: usize| Fp2::element(work, label, 6 * index + k);
        let [c0, c1] = [0, 3].map(|k| Fp6 { c0: part(k), c1: part(k + 1), c2: part(k + 2) });
        Self { c0, c1 }
    }

    fn bytes(&self) -> Vec<u8> {
        let half = |half: &Fp6<F>| [half.c0.bytes(), half.c1.bytes(), half.c2.bytes()].concat();
        [half(&self.c0), half(&self.c1)].concat()
    }
}

fn affine_bytes<C: Curve<Base: Canonical>>(point: &Affine<C>) -> Vec<u8> {
    [point.x.bytes(), point.y.bytes()].concat()
}

fn point_bytes<C: Curve<Base: Canonical>>(point: &Jacobian<C>) -> Vec<u8> {
    affine_bytes(&point.to_affine())
}

/// A scalar below the order of a curve: all scalar fields have four limbs.
fn scalar<C: Curve>(work: &Work, label: &str, index: usize) -> [u64; 4] {
    macro_rules! of_order {
        ($($field:ty),*) => {
            $(if C::ORDER == <$field>::MODULUS {
                return <$field>::element(work, label, index).to_limbs();
            })*
        };
    }
    of_order!(bls12_381::Fr, bn254::Fr, bls12_377::Fr, bn254_nogami::Fr);
    unreachable!("every order is one of these")
}

/// A chain of points: the first one, then one step further each.
fn points<C: Curve>(work: &Work, label: &str, count: usize) -> Vec<Affine<C>> {
    let [mut point, step] =
        [0, 1].map(|index| C::GENERATOR.multiply(&scalar::<C>(work, label, index)));
    let mut chain = Vec::with_capacity(count);
    for _ in 0..count {
        chain.push(point);
        point = point + step;
    }
    Jacobian::all_to_affine(&chain)
}

/// Adds the operations of a curve: scalar field, base field and first group.
fn curve<C, S>(table: &mut Table, curve: &'static str)
where
    C: MultiScalar<Base: Canonical>,
    S: Field + Canonical,
{
    field::<S>(table, curve, "fr", &["mul", "inv"]);
    field::<C::Base>(table, curve, "fp", &["mul", "sqr", "inv", "sqrt"]);
    group::<C>(table, curve, "g1");
}

fn pairing_curve<P, S>(table: &mut Table, name: &'static str)
where
    P: Pairing<Base: Canonical, G1: MultiScalar, G2: MultiScalar>,
    S: Field + Canonical,
{
    curve::<P::G1, S>(table, name);
    field::<Fp2<P::Base>>(table, name, "fp2", &["mul", "sqr", "inv", "sqrt"]);
    top_of_tower::<P::Base>(table, name);
    group::<P::G2>(table, name, "g2");
    pairings::<P>(table, name);
}

fn field<F: Field + Canonical>(
    table: &mut Table,
    curve: &'static str,
    label: &'static str,
    wanted: &[&str],
) {
    let two = move |work: &Work| [0, 1].map(|index| F::element(work, label, index));
    for operation in wanted {
        let name = format!("{label}-{operation}");
        match *operation {
            "mul" => table.add(curve, name, "Field::times", move |work| {
                let [x, y] = two(work);
                Ok(Prepared::chained(x, move |x| *x = x.times(&y), F::bytes))
            }),
            "sqr" => table.add(curve, name, "Field::square", move |work| {
                Ok(Prepared::chained(two(work)[0], |x| *x = x.square(), F::bytes))
            }),
            "inv" => table.add(curve, name, "Field::inverse, variable time", move |work| {
                let [x, y] = two(work);
                let step = move |x: &mut F| *x = x.inverse().expect("not zero") + y;
                Ok(Prepared::chained(x, step, F::bytes))
            }),
            _ => table.add(curve, name, "Field::sqrt", move |work| {
                let squares: Vec<F> =
                    (0..SPREAD).map(|index| F::element(work, label, index).square()).collect();
                let mut answer = Vec::new();
                for square in &squares[..ANSWERED] {
                    let root = square.sqrt().context("a square without a root")?;
                    answer.extend(root.bytes().min((-root).bytes()));
                }
                Ok(Prepared::spread(answer, move |index| {
                    black_box(squares[index].sqrt());
                }))
            }),
        }
    }
}

fn top_of_tower<F: TowerField + Canonical>(table: &mut Table, curve: &'static str) {
    let two = |work: &Work| [0, 1].map(|index| Fp12::<F>::element(work, "fp12", index));
    table.add(curve, "fp12-mul", "Fp12: *", move |work| {
        let [x, y] = two(work);
        Ok(Prepared::chained(x, move |x| *x = *x * y, Fp12::bytes))
    });
    table.add(curve, "fp12-sqr", "Fp12::square", move |work| {
        Ok(Prepared::chained(two(work)[0], |x| *x = x.square(), Fp12::bytes))
    });
    table.add(curve, "fp12-inv", "Fp12::inverse, variable time", move |work| {
        let [x, y] = two(work);
        let step = move |x: &mut Fp12<F>| *x = x.inverse().expect("not zero") + y;
        Ok(Prepared::chained(x, step, Fp12::bytes))
    });
}

fn threads(work: &Work) -> usize {
    match work.threads {
        0 => thread::available_parallelism().map_or(1, NonZero::get),
        threads => threads,
    }
}

/// Minimum number of points per thread.
const POINTS_OF_A_SHARE: usize = 64;
/// Minimum number of signatures per thread.
const SIGNATURES_OF_A_PART: usize = 8;

/// Splits `count` items into about equal parts, one per thread, each with at least `least` items,
/// and returns the results. All parts but the last are multiples of `least`, to fill vectors; the
/// last one runs on this thread without waiting for a start.
fn in_parts<R: Send>(
    count: usize,
    threads: usize,
    least: usize,
    make: impl Fn(Range<usize>) -> R + Sync,
) -> Vec<R> {
    let parts = threads.min(count / least).max(1);
    if parts == 1 {
        return vec![make(0..count)];
    }
    let make = &make;
    let start = |part: usize| part * count / parts / least * least;
    thread::scope(|scope| {
        let others: Vec<_> = (1..parts)
            .map(|part| scope.spawn(move || make(start(part - 1)..start(part))))
            .collect();
        let last = make(start(parts - 1)..count);
        let others = others.into_iter().map(|other| other.join().expect("no part panics"));
        others.chain([last]).collect()
    })
}

fn group<C: MultiScalar<Base: Canonical>>(
    table: &mut Table,
    curve: &'static str,
    label: &'static str,
) {
    table.add(curve, format!("{label}-add"), "Jacobian: +", move |work| {
        let points = points::<C>(work, label, 2);
        let (x, y) = (Jacobian::from(points[0]), Jacobian::from(points[1]).double());
        Ok(Prepared::chained(x, move |x| *x = *x + y, point_bytes))
    });
    table.add(curve, format!("{label}-add-mixed"), "Jacobian::add_affine", move |work| {
        let points = points::<C>(work, label, 2);
        let (x, y) = (Jacobian::from(points[0]), points[1]);
        Ok(Prepared::chained(x, move |x| *x = x.add_affine(&y), point_bytes))
    });
    table.add(curve, format!("{label}-double"), "Jacobian::double", move |work| {
        let x = Jacobian::from(points::<C>(work, label, 1)[0]);
        Ok(Prepared::chained(x, |x| *x = x.double(), point_bytes))
    });
    table.add(curve, format!("{label}-mul"), "Affine::multiply, variable time", move |work| {
        let point = points::<C>(work, label, 1)[0];
        let scalars: Vec<_> = (0..SPREAD).map(|index| scalar::<C>(work, "fr", index)).collect();
        let products = scalars[..ANSWERED].iter().map(|scalar| point.multiply(scalar));
        let answer = products.flat_map(|product| point_bytes(&product)).collect();
        Ok(Prepared::spread(answer, move |index| {
            black_box(point.multiply(&scalars[index]));
        }))
    });
    let how = "msm::share_of_products, a share on each thread";
    table.add(curve, format!("{label}-msm"), how, move |work| {
        let points = points::<C>(work, label, work.size);
        let scalars: Vec<_> = (0..work.size).map(|index| scalar::<C>(work, "fr", index)).collect();
        let threads = threads(work);
        let sum = move || {
            let shares = threads.min(points.len() / POINTS_OF_A_SHARE).max(1);
            let all: Vec<_> = msm::Share::all(shares).collect();
            let sums = in_parts(shares, shares, 1, |part| {
                msm::share_of_products(Backend::detect(), &points, &scalars, all[part.start])
            });
            sums.into_iter().fold(Jacobian::INFINITY, |sum, share| sum + share)
        };
        Ok(Prepared::repeated(point_bytes(&sum()), sum))
    });
}

/// A sequence of points whose x has a zero imaginary part.
trait SmallX: Curve {
    fn small_x(number: u64) -> Self::Base;
}

macro_rules! small_x {
    ($($group:ty: $number:ident => $x:expr),*) => {$(
        impl SmallX for $group {
            fn small_x($number: u64) -> Self::Base {
                $x
            }
        }
    )*};
}

small_x!(
    BlsG1: number => bls12_381::Fp::from_u64(number),
    BlsG2: number => Fp2 { c0: bls12_381::Fp::from_u64(number), c1: bls12_381::Fp::ZERO },
    Bls377G1: number => bls12_377::Fp::from_u64(number),
    Bls377G2: number => Fp2 { c0: bls12_377::Fp::from_u64(number), c1: bls12_377::Fp::ZERO },
    BnG2: number => Fp2 { c0: bn254::Fp::from_u64(number), c1: bn254::Fp::ZERO },
    NogamiG2: number => Fp2 { c0: bn254_nogami::Fp::from_u64(number), c1: bn254_nogami::Fp::ZERO }
);

fn subgroup<C: SmallX>(table: &mut Table, curve: &'static str, label: &'static str) {
    table.add(curve, format!("{label}-subgroup"), "Curve::is_in_group", move |work| {
        let points = points::<C>(work, label, SPREAD);
        let outside = (1..1_000)
            .filter_map(|number| Affine::<C>::from_x(C::small_x(number), false))
            .find(|point| !point.is_in_group())
            .context("every point is in the group")?;
        let answer = [points[0], outside].map(|point| u8::from(C::is_in_group(&point)));
        Ok(Prepared::spread(answer.to_vec(), move |index| {
            assert!(C::is_in_group(&points[index]), "in the group");
        }))
    });
}

fn hash<C: HashToCurve<Base: Canonical>>(
    table: &mut Table,
    label: &'static str,
    suite: &'static str,
) {
    let how = format!("HashToCurve::hash, {suite}");
    table.add("bls12-381", format!("{label}-hash"), how, move |work| {
        let dst = format!("ASSAY-V01-CS01-with-{suite}");
        let points = (0..ANSWERED).map(|index| C::hash(&work.message(index), dst.as_bytes()));
        let answer = points.flat_map(|point| affine_bytes(&point)).collect();
        let hash = move |message: &[u8; 32]| C::hash(message, dst.as_bytes());
        Ok(Prepared::of_messages(answer, work.message(0), hash))
    });
}

fn pairings<P: Pairing<Base: Canonical>>(table: &mut Table, curve: &'static str) {
    let pairs = |work: &Work| -> Vec<_> {
        let p = points::<P::G1>(work, "g1", SPREAD);
        p.into_iter().zip(points::<P::G2>(work, "g2", SPREAD)).collect()
    };
    table.add(curve, "miller-loop", "Pairing::miller_loop", move |work| {
        let pairs = pairs(work);
        let answer = P::product(&pairs[..1]).bytes();
        Ok(Prepared::spread(answer, move |index| {
            black_box(P::miller_loop(Backend::detect(), &pairs[index..=index]));
        }))
    });
    table.add(curve, "final-exponentiation", "Pairing::final_exponentiation", move |work| {
        let x = Fp12::element(work, "fp12", 0);
        Ok(Prepared::repeated(P::final_exponentiation(Backend::detect(), &x).bytes(), move || {
            P::final_exponentiation(Backend::detect(), black_box(&x))
        }))
    });
    table.add(curve, "pairing", "Pairing::pair", move |work| {
        let pairs = pairs(work);
        let answer = P::product(&pairs[..1]).bytes();
        Ok(Prepared::spread(answer, move |index| {
            black_box(P::pair(&pairs[index].0, &pairs[index].1));
        }))
    });
    table.add(curve, "pairing-of-eight", "Pairing::product", move |work| {
        let pairs = pairs(work);
        Ok(Prepared::repeated(P::product(&pairs[..8]).bytes(), move || P::product(&pairs[..8])))
    });
}

/// Keys, messages and signatures.
fn signed(work: &Work, count: usize, message: impl Fn(usize) -> [u8; 32]) -> Signers {
    let mut signers = Signers::default();
    for index in 0..count {
        let (secret, message) = (secret(work, index), message(index));
        signers.keys.push(secret.public_key());
        signers.signatures.push(secret.sign(&message));
        signers.messages.push(message);
    }
    signers
}

fn secret(work: &Work, index: usize) -> SecretKey {
    let bytes = bls12_381::Fr::element(work, "bls", index).to_be_bytes();
    SecretKey::from_bytes(&bytes).expect("not zero")
}

#[derive(Default)]
struct Signers {
    keys: Vec<PublicKey>,
    messages: Vec<[u8; 32]>,
    signatures: Vec<Signature>,
}

impl Signers {
    fn is_valid(&self, threads: usize) -> bool {
        let count = self.keys.len();
        let signed: Vec<bls::Signed<'_>> =
            (0..count).map(|k| (self.keys[k], &self.messages[k][..], self.signatures[k])).collect();
        let batch = bls::Batch::new(Backend::detect(), &signed, &[3; 32]);
        let shares = in_parts(count, threads, SIGNATURES_OF_A_PART, |part| batch.share(part));
        batch.is_valid(&shares)
    }
}

fn signatures(table: &mut Table) {
    const GROUP: &str = "bls-signatures";
    table.add(GROUP, "sign", "SecretKey::sign, constant time", |work| {
        let (secret, message) = (secret(work, 0), work.message(0));
        let answer = affine_bytes(secret.sign(&message).point());
        Ok(Prepared::of_messages(answer, message, move |message| secret.sign(message)))
    });
    table.add(GROUP, "verify", "bls::verify; points known to be in their groups", |work| {
        let made = signed(work, 2, |index| work.message(index));
        let wrong = bls::verify(&made.keys[0], &made.messages[1], &made.signatures[0]);
        let check = move || bls::verify(&made.keys[0], &made.messages[0], &made.signatures[0]);
        Ok(Prepared::checked(check(), wrong, check))
    });
    table.add(GROUP, "decode-public-key", "PublicKey::from_bytes", |work| {
        let key = signed(work, 1, |index| work.message(index)).keys[0];
        let bytes = key.to_bytes();
        Ok(Prepared::repeated(affine_bytes(key.point()), move || {
            PublicKey::from_bytes(&bytes).expect("it was valid before")
        }))
    });
    table.add(GROUP, "decode-signature", "Signature::from_bytes", |work| {
        let signature = signed(work, 1, |index| work.message(index)).signatures[0];
        let bytes = signature.to_bytes();
        Ok(Prepared::repeated(affine_bytes(signature.point()), move || {
            Signature::from_bytes(&bytes).expect("it was valid before")
        }))
    });
    table.add(GROUP, "aggregate", "Signature::aggregate", |work| {
        let made = signed(work, work.size, |index| work.message(index));
        let answer = affine_bytes(Signature::aggregate(&made.signatures).point());
        Ok(Prepared::repeated(answer, move || Signature::aggregate(&made.signatures)))
    });
    table.add(GROUP, "fast-aggregate-verify", "bls::fast_aggregate_verify", |work| {
        let made = signed(work, work.size, |_| work.message(0));
        let aggregate = Signature::aggregate(&made.signatures);
        let (right, other) = (work.message(0), work.message(1));
        let check =
            move |message: &[u8]| bls::fast_aggregate_verify(&made.keys, message, &aggregate);
        let (is_right, is_wrong) = (check(&right), check(&other));
        Ok(Prepared::checked(is_right, is_wrong, move || check(&right)))
    });
    let how = "bls::Batch, weights of 128 bits, a share on each thread";
    table.add(GROUP, "batch-verify", how, |work| {
        let threads = threads(work);
        let mut made = signed(work, work.size, |index| work.message(index));
        let right = made.is_valid(threads);
        made.messages[0][0] ^= 1;
        let wrong = made.is_valid(threads);
        made.messages[0][0] ^= 1;
        Ok(Prepared::checked(right, wrong, move || made.is_valid(threads)))
    });
}
