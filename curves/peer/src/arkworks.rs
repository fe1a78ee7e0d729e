//! arkworks: one generic implementation for all curves.

use std::hint::black_box;

use anyhow::{Context as _, Result};
use ark_ec::hashing::HashToCurve as _;
use ark_ec::hashing::curve_maps::wb::{WBConfig, WBMap};
use ark_ec::hashing::map_to_curve_hasher::{MapToCurve, MapToCurveBasedHasher};
use ark_ec::pairing::{MillerLoopOutput, Pairing};
use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{
    AdditiveGroup as _, AffineRepr as _, CurveGroup as _, PrimeGroup as _, VariableBaseMSM as _,
};
use ark_ff::field_hashers::DefaultFieldHasher;
use ark_ff::{BigInteger as _, Field, PrimeField, Zero as _};
use sha2::Sha256;

use crate::table::{ANSWERED, Prepared, SPREAD, Table, Work};

/// Version of all its crates used here.
pub const VERSION: &str = "0.6.0";

type Bls12381 = ark_bls12_381::Bls12_381;
type Bls12377 = ark_bls12_377::Bls12_377;

pub fn table() -> Table {
    let mut table = Table::default();
    pairing_curve::<ark_bn254::Bn254, ark_bn254::g1::Config, ark_bn254::g2::Config>(
        &mut table, "bn254",
    );
    pairing_curve::<Bls12381, ark_bls12_381::g1::Config, ark_bls12_381::g2::Config>(
        &mut table,
        "bls12-381",
    );
    subgroup::<ark_bls12_381::g1::Config>(&mut table, "bls12-381", "g1");
    hash::<ark_bls12_381::g1::Config>(
        &mut table,
        "bls12-381",
        "g1",
        "BLS12381G1_XMD:SHA-256_SSWU_RO_",
    );
    hash::<ark_bls12_381::g2::Config>(
        &mut table,
        "bls12-381",
        "g2",
        "BLS12381G2_XMD:SHA-256_SSWU_RO_",
    );
    pairing_curve::<Bls12377, ark_bls12_377::g1::Config, ark_bls12_377::g2::Config>(
        &mut table,
        "bls12-377",
    );
    subgroup::<ark_bls12_377::g1::Config>(&mut table, "bls12-377", "g1");
    // Hashing to G1 is left out: there is no standard, and the libraries differ.
    hash::<ark_bls12_377::g2::Config>(
        &mut table,
        "bls12-377",
        "g2",
        "BLS12377G2_XMD:SHA-256_SSWU_RO_",
    );
    curve::<ark_secp256k1::Config>(&mut table, "secp256k1");
    table
}

/// Adds the operations of a curve: scalar field, base field and group.
fn curve<P: SWCurveConfig>(table: &mut Table, name: &'static str) {
    field::<P::ScalarField>(table, name, "fr", &["mul", "inv"]);
    field::<P::BaseField>(table, name, "fp", &["mul", "sqr", "inv", "sqrt"]);
    group::<P>(table, name, "g1");
}

fn pairing_curve<E, P1, P2>(table: &mut Table, name: &'static str)
where
    E: Pairing<G1Affine = Affine<P1>, G2Affine = Affine<P2>>,
    E::G1Prepared: From<Affine<P1>>,
    P1: SWCurveConfig,
    P2: SWCurveConfig,
{
    curve::<P1>(table, name);
    field::<P2::BaseField>(table, name, "fp2", &["mul", "sqr", "inv", "sqrt"]);
    field::<E::TargetField>(table, name, "fp12", &["mul", "sqr", "inv"]);
    group::<P2>(table, name, "g2");
    subgroup::<P2>(table, name, "g2");
    pairings::<E, P1, P2>(table, name);
}

/// An element of a field or tower, with coefficients in the order of the tower.
pub(crate) fn element<F: Field>(work: &Work, label: &str, index: usize) -> F {
    let degree = F::extension_degree() as usize;
    let coefficients = (0..degree).map(|coefficient| {
        F::BasePrimeField::from_be_bytes_mod_order(&work.wide(label, degree * index + coefficient))
    });
    F::from_base_prime_field_elems(coefficients).expect("as many coefficients as the degree")
}

/// Coefficients in the order of the tower, each big-endian.
pub(crate) fn bytes<F: Field>(element: &F) -> Vec<u8> {
    element
        .to_base_prime_field_elements()
        .flat_map(|coefficient| coefficient.into_bigint().to_bytes_be())
        .collect()
}

/// The element of these coefficients.
pub(crate) fn from_bytes<F: Field>(coefficients: &[u8]) -> F {
    let size = coefficients.len() / F::extension_degree() as usize;
    let coefficients = coefficients.chunks_exact(size);
    F::from_base_prime_field_elems(coefficients.map(F::BasePrimeField::from_be_bytes_mod_order))
        .expect("as many coefficients as the degree")
}

/// x and y, or zeros for the point at infinity.
pub(crate) fn affine_bytes<P: SWCurveConfig>(point: &Affine<P>) -> Vec<u8> {
    let (x, y) = point.xy().unwrap_or_default();
    [bytes(&x), bytes(&y)].concat()
}

pub(crate) fn point_bytes<P: SWCurveConfig>(point: &Projective<P>) -> Vec<u8> {
    affine_bytes(&point.into_affine())
}

/// A chain of points: the first one, then one step further each.
pub(crate) fn points<P: SWCurveConfig>(work: &Work, label: &str, count: usize) -> Vec<Affine<P>> {
    let generator = Projective::<P>::generator();
    let mut point = generator * element::<P::ScalarField>(work, label, 0);
    let step = generator * element::<P::ScalarField>(work, label, 1);
    let mut chain = Vec::with_capacity(count);
    for _ in 0..count {
        chain.push(point);
        point += step;
    }
    Projective::normalize_batch(&chain)
}

pub(crate) fn scalars<F: Field>(work: &Work, count: usize) -> Vec<F> {
    (0..count).map(|index| element(work, "fr", index)).collect()
}

fn field<F: Field>(table: &mut Table, curve: &'static str, label: &'static str, wanted: &[&str]) {
    let first_two = move |work: &Work| (element::<F>(work, label, 0), element::<F>(work, label, 1));
    for operation in wanted {
        let name = format!("{label}-{operation}");
        match *operation {
            "mul" => table.add(curve, name, "Field: *=", move |work| {
                let (x, y) = first_two(work);
                Ok(Prepared::chained(x, move |x| *x *= y, bytes))
            }),
            "sqr" => table.add(curve, name, "Field::square_in_place", move |work| {
                let (x, _) = first_two(work);
                let step = |x: &mut F| {
                    x.square_in_place();
                };
                Ok(Prepared::chained(x, step, bytes))
            }),
            "inv" => table.add(curve, name, "Field::inverse, variable time", move |work| {
                let (x, y) = first_two(work);
                let step = move |x: &mut F| *x = x.inverse().expect("not zero") + y;
                Ok(Prepared::chained(x, step, bytes))
            }),
            _ => table.add(curve, name, "Field::sqrt", move |work| square_roots::<F>(work, label)),
        }
    }
}

fn square_roots<F: Field>(work: &Work, label: &str) -> Result<Prepared> {
    let squares: Vec<F> =
        (0..SPREAD).map(|index| element::<F>(work, label, index).square()).collect();
    let mut answer = Vec::new();
    for square in &squares[..ANSWERED] {
        let root = square.sqrt().context("a square without a root")?;
        // Of the two roots, the one with the smaller bytes.
        answer.extend(bytes(&root).min(bytes(&-root)));
    }
    Ok(Prepared::spread(answer, move |index| {
        black_box(squares[index].sqrt());
    }))
}

fn group<P: SWCurveConfig>(table: &mut Table, curve: &'static str, label: &'static str) {
    table.add(curve, format!("{label}-add"), "Projective (Jacobian) += Projective", move |work| {
        let points = points::<P>(work, label, 2);
        let (x, y): (Projective<P>, Projective<P>) = (points[0].into(), points[1].into());
        let y = y.double();
        Ok(Prepared::chained(x, move |x| *x += y, point_bytes))
    });
    table.add(
        curve,
        format!("{label}-add-mixed"),
        "Projective (Jacobian) += Affine",
        move |work| {
            let points = points::<P>(work, label, 2);
            let (x, y): (Projective<P>, _) = (points[0].into(), points[1]);
            Ok(Prepared::chained(x, move |x| *x += y, point_bytes))
        },
    );
    table.add(curve, format!("{label}-double"), "Projective::double_in_place", move |work| {
        let x: Projective<P> = points::<P>(work, label, 1)[0].into();
        let step = |x: &mut Projective<P>| {
            x.double_in_place();
        };
        Ok(Prepared::chained(x, step, point_bytes))
    });
    table.add(
        curve,
        format!("{label}-mul"),
        "Projective * ScalarField, variable time",
        move |work| {
            let point: Projective<P> = points::<P>(work, label, 1)[0].into();
            let scalars = scalars::<P::ScalarField>(work, SPREAD);
            let answer =
                scalars[..ANSWERED].iter().flat_map(|scalar| point_bytes(&(point * scalar)));
            Ok(Prepared::spread(answer.collect(), move |index| {
                let _ = black_box(point * scalars[index]);
            }))
        },
    );
    table.add(curve, format!("{label}-msm"), "VariableBaseMSM::msm_unchecked", move |work| {
        let points = points::<P>(work, label, work.size);
        let scalars = scalars::<P::ScalarField>(work, work.size);
        let answer = point_bytes(&Projective::<P>::msm_unchecked(&points, &scalars));
        Ok(Prepared::repeated(answer, move || Projective::<P>::msm_unchecked(&points, &scalars)))
    });
}

/// A point of the curve outside the group: the one with the smallest x.
pub(crate) fn outside<P: SWCurveConfig>() -> Result<Affine<P>> {
    (1u64..1_000)
        .filter_map(|x| Affine::<P>::get_point_from_x_unchecked(P::BaseField::from(x), false))
        .find(|point| !point.is_in_correct_subgroup_assuming_on_curve())
        .context("every point is in the group")
}

fn subgroup<P: SWCurveConfig>(table: &mut Table, curve: &'static str, label: &'static str) {
    let how = "Affine::is_in_correct_subgroup_assuming_on_curve";
    table.add(curve, format!("{label}-subgroup"), how, move |work| {
        let points = points::<P>(work, label, SPREAD);
        let answer = [points[0], outside::<P>()?]
            .map(|point| u8::from(point.is_in_correct_subgroup_assuming_on_curve()));
        Ok(Prepared::spread(answer.to_vec(), move |index| {
            assert!(points[index].is_in_correct_subgroup_assuming_on_curve(), "in the group");
        }))
    });
}

fn hash<P: WBConfig>(
    table: &mut Table,
    curve: &'static str,
    label: &'static str,
    suite: &'static str,
) where
    WBMap<P>: MapToCurve<Projective<P>>,
{
    let how = format!("MapToCurveBasedHasher::hash, {suite}");
    table.add(curve, format!("{label}-hash"), how, move |work| {
        type Hasher<P> =
            MapToCurveBasedHasher<Projective<P>, DefaultFieldHasher<Sha256, 128>, WBMap<P>>;
        let hasher = Hasher::<P>::new(format!("ASSAY-V01-CS01-with-{suite}").as_bytes())?;
        let mut answer = Vec::new();
        for index in 0..ANSWERED {
            answer.extend(affine_bytes(&hasher.hash(&work.message(index))?));
        }
        let mut message = work.message(0);
        // The hasher is not `Send`, its name is.
        let dst = format!("ASSAY-V01-CS01-with-{suite}");
        Ok(Prepared::new(answer, move |iterations| {
            let hasher = Hasher::<P>::new(dst.as_bytes()).expect("made before");
            for _ in 0..iterations {
                message[0] = message[0].wrapping_add(1);
                let _ = black_box(hasher.hash(&message).expect("any message has a hash"));
            }
        }))
    });
}

fn pairings<E, P1, P2>(table: &mut Table, curve: &'static str)
where
    E: Pairing<G1Affine = Affine<P1>, G2Affine = Affine<P2>>,
    P1: SWCurveConfig,
    P2: SWCurveConfig,
{
    let pairs = |work: &Work| (points::<P1>(work, "g1", SPREAD), points::<P2>(work, "g2", SPREAD));
    table.add(curve, "miller-loop", "Pairing::miller_loop", move |work| {
        let (p, q) = pairs(work);
        // Results of libraries differ by factors that the final exponentiation removes.
        let reduced = E::final_exponentiation(E::miller_loop(p[0], q[0])).context("not zero")?;
        Ok(Prepared::spread(bytes(&reduced.0), move |index| {
            let _ = black_box(E::miller_loop(p[index], q[index]));
        }))
    });
    table.add(curve, "final-exponentiation", "Pairing::final_exponentiation", move |work| {
        let x = MillerLoopOutput::<E>(element(work, "fp12", 0));
        let reduced = E::final_exponentiation(x).context("not zero")?;
        Ok(Prepared::repeated(bytes(&reduced.0), move || E::final_exponentiation(black_box(x))))
    });
    table.add(curve, "pairing", "Pairing::pairing", move |work| {
        let (p, q) = pairs(work);
        let e = E::pairing(p[0], q[0]);
        anyhow::ensure!(!e.is_zero(), "a pairing of points that gives one");
        Ok(Prepared::spread(bytes(&e.0), move |index| {
            let _ = black_box(E::pairing(p[index], q[index]));
        }))
    });
    table.add(curve, "pairing-of-eight", "Pairing::multi_pairing", move |work| {
        let (p, q) = pairs(work);
        let product = move || E::multi_pairing(p[..8].iter().copied(), q[..8].iter().copied());
        Ok(Prepared::repeated(bytes(&product().0), product))
    });
}
