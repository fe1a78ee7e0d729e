//! assay-pairing against arkworks, blst, revm and c-kzg on the same bytes, random ones and edge cases.

use anyhow::{Result, ensure};
use ark_ec::short_weierstrass::{Projective, SWCurveConfig};
use ark_ec::{AffineRepr as _, CurveGroup as _, PrimeGroup as _};
use ark_ff::{Field as ArkField, PrimeField as _};
use assay_pairing::curve::{Affine, Bls377G1, Bls377G2, BlsG1, BlsG2, BnG1, BnG2, Curve, Jacobian};
use assay_pairing::field::Field;
use assay_pairing::kzg::{CellOf, CellVerifier};
use assay_pairing::pairing::{Bls12377, Bls12381, Bn254, Pairing};
use assay_pairing::tower::{Fp2, Fp12};
use assay_pairing::{bls12_377, bls12_381, bn254};
use assay_secp::Recoverer;
use assay_secp::ethereum::ecrecover_all;
use blst::{blst_p1_affine, blst_p2_affine};
use c_kzg::Cell;

use crate::arkworks;
use crate::assay::{Canonical, PRECOMPILES, Run, gas};
use crate::kzg::Extended;
use crate::table::Work;
use crate::{evm, evm_inputs};

/// Numbers of compared cases by operation, and a receiver of progress.
pub struct Counts<'r> {
    /// Finished operations.
    pub done: Vec<(&'static str, usize)>,
    report: &'r mut dyn FnMut(&'static str, usize, usize),
}

impl Counts<'_> {
    /// Compares all cases of an operation, and reports its progress.
    fn each(
        &mut self,
        name: &'static str,
        cases: usize,
        mut compare: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        for case in 0..cases {
            self.step(name, case, cases);
            compare(case)?;
        }
        self.done.push((name, cases));
        Ok(())
    }

    fn step(&mut self, name: &'static str, case: usize, cases: usize) {
        if case.is_multiple_of(64) {
            (self.report)(name, case, cases);
        }
    }
}

/// Compares `cases` cases per operation of fields; a hundredth as many of groups, decoders and signatures, a tenth of
/// that of each precompile, and a hundredth of it of pairings and of cells. With `names`, `cases` cases of each
/// operation whose name contains one, and none of the others. Progress is reported by calls of `report` with the
/// operation, its finished cases and their total.
///
/// # Errors
/// At the first difference, with the inputs.
pub fn compare(
    cases: usize,
    seed: u64,
    names: &[String],
    report: &mut dyn FnMut(&'static str, usize, usize),
) -> Result<Vec<(&'static str, usize)>> {
    let mut counts = Counts { done: Vec::new(), report };
    let share = |name: &str, part: usize| {
        let is_wanted = names.iter().any(|wanted| name.contains(wanted.as_str()));
        if names.is_empty() { (cases / part).max(1) } else { usize::from(is_wanted) * cases }
    };
    macro_rules! run {
        ($($name:literal, $part:literal: $function:expr;)+) => {
            $(
                let cases = share($name, $part);
                if cases > 0 {
                    $function($name, cases, seed, &mut counts)?;
                }
            )+
        };
    }
    run! {
        "bls12-381 fp", 1: fields::<bls12_381::Fp, ark_bls12_381::Fq>;
        "bls12-381 fr", 1: fields::<bls12_381::Fr, ark_bls12_381::Fr>;
        "bn254 fp", 1: fields::<bn254::Fp, ark_bn254::Fq>;
        "bn254 fr", 1: fields::<bn254::Fr, ark_bn254::Fr>;
        "bls12-381 fp2", 1: fields::<Fp2<bls12_381::Fp>, ark_bls12_381::Fq2>;
        "bn254 fp2", 1: fields::<Fp2<bn254::Fp>, ark_bn254::Fq2>;
        "bls12-381 fp12", 100: towers::<bls12_381::Fp, ark_bls12_381::Fq12>;
        "bn254 fp12", 100: towers::<bn254::Fp, ark_bn254::Fq12>;
        "bls12-381 g1", 100: groups::<BlsG1, ark_bls12_381::g1::Config>;
        "bls12-381 g2", 100: groups::<BlsG2, ark_bls12_381::g2::Config>;
        "bn254 g1", 100: groups::<BnG1, ark_bn254::g1::Config>;
        "bn254 g2", 100: groups::<BnG2, ark_bn254::g2::Config>;
        "bls12-377 fp", 1: fields::<bls12_377::Fp, ark_bls12_377::Fq>;
        "bls12-377 fr", 1: fields::<bls12_377::Fr, ark_bls12_377::Fr>;
        "bls12-377 fp2", 1: fields::<Fp2<bls12_377::Fp>, ark_bls12_377::Fq2>;
        "bls12-377 fp12", 100: towers::<bls12_377::Fp, ark_bls12_377::Fq12>;
        "bls12-377 g1", 100: groups::<Bls377G1, ark_bls12_377::g1::Config>;
        "bls12-377 g2", 100: groups::<Bls377G2, ark_bls12_377::g2::Config>;
        "encodings against blst", 100: decoders;
        "signatures and keys against blst", 100: signatures;
    }
    for (address, name, run) in PRECOMPILES {
        let cases = share(name, 1_000);
        if cases > 0 {
            precompile(address, name, run, cases, seed, &mut counts)?;
        }
    }
    run! {
        "ecrecover in lanes", 1_000: recoveries;
        "bls12-381 pairings", 10_000: pairings::<Bls12381, ark_bls12_381::Bls12_381>;
        "bn254 pairings", 10_000: pairings::<Bn254, ark_bn254::Bn254>;
        "bls12-377 pairings", 10_000: pairings::<Bls12377, ark_bls12_377::Bls12_377>;
        "cells against c-kzg", 100_000: cells;
    }
    ensure!(!counts.done.is_empty(), "no operation has a name with {}", names.join(" or "));
    Ok(counts.done)
}

fn work(seed: u64) -> Work {
    Work { threads: 1, seed, ..Work::default() }
}

/// Numbers of 64 bytes each: half of them random, the others with limbs of all ones, all zeros or one bit.
struct Numbers {
    work: Work,
    next: usize,
}

impl Numbers {
    fn bytes(&mut self) -> [u8; 64] {
        let mut bytes = self.work.wide("differential", self.next);
        self.next += 1;
        if bytes[0] & 1 == 0 {
            // The random bytes select the kind of each limb; the upper half stays zero, so that no reduction hides it.
            let choices: [u8; 8] = bytes[56..].try_into().expect("eight");
            for (limb, choice) in bytes.chunks_exact_mut(8).zip(choices).skip(2) {
                match choice % 5 {
                    0 => limb.fill(0),
                    1 => limb.fill(0xff),
                    2 => limb.copy_from_slice(&(1u64 << (choice / 5)).to_be_bytes()),
                    3 => limb.copy_from_slice(&((1u64 << (choice / 5)) - 1).to_be_bytes()),
                    _ => {}
                }
            }
            bytes[..16].fill(0);
        }
        bytes
    }

    /// The lower half of a number: the bytes, and its limbs.
    fn scalar(&mut self) -> ([u8; 32], [u64; 4]) {
        let bytes: [u8; 32] = self.bytes()[32..].try_into().expect("half of them");
        let (words, _) = bytes.as_chunks::<8>();
        (bytes, std::array::from_fn(|limb| u64::from_be_bytes(words[3 - limb])))
    }
}

/// The same element in both libraries.
trait Both<A>: Canonical {
    fn both(numbers: &mut Numbers) -> (Self, A);
}

macro_rules! both {
    ($ours:ty, $ark:ty $(, $ark2:ty)?) => {
        impl Both<$ark> for $ours {
            fn both(numbers: &mut Numbers) -> (Self, $ark) {
                let bytes = numbers.bytes();
                (Self::from_be_bytes_reduced(&bytes), <$ark>::from_be_bytes_mod_order(&bytes))
            }
        }

        $(impl Both<$ark2> for Fp2<$ours> {
            fn both(numbers: &mut Numbers) -> (Self, $ark2) {
                let ((c0, a0), (c1, a1)) = (<$ours>::both(numbers), <$ours>::both(numbers));
                (Self { c0, c1 }, <$ark2>::new(a0, a1))
            }
        })?
    };
}

both!(bls12_381::Fp, ark_bls12_381::Fq, ark_bls12_381::Fq2);
both!(bn254::Fp, ark_bn254::Fq, ark_bn254::Fq2);
both!(bls12_377::Fp, ark_bls12_377::Fq, ark_bls12_377::Fq2);
both!(bls12_377::Fr, ark_bls12_377::Fr);
both!(bls12_381::Fr, ark_bls12_381::Fr);
both!(bn254::Fr, ark_bn254::Fr);

fn fields<F: Field + Both<A>, A: ArkField>(
    name: &'static str,
    cases: usize,
    seed: u64,
    counts: &mut Counts<'_>,
) -> Result<()> {
    let mut numbers = Numbers { work: work(seed), next: 0 };
    counts.each(name, cases, |case| {
        let ((x, a), (y, b)) = (F::both(&mut numbers), F::both(&mut numbers));
        let same = |ours: F, theirs: A| ours.bytes() == arkworks::bytes(&theirs);
        let mut is_equal = same(x * y, a * b)
            && same(x + y, a + b)
            && same(x - y, a - b)
            && same(x.square(), a.square())
            && same(-x, -a)
            && same(x.inverse().unwrap_or(F::ZERO), a.inverse().unwrap_or(A::ZERO));
        if case % 100 == 0 {
            let roots = (x.sqrt(), a.sqrt());
            is_equal &= match roots {
                (Some(ours), Some(theirs)) => same(ours, theirs) || same(-ours, theirs),
                (None, None) => true,
                _ => false,
            };
        }
        ensure!(is_equal, "{name}: {x:?}, {y:?}");
        Ok(())
    })
}

fn towers<F, A>(name: &'static str, cases: usize, seed: u64, counts: &mut Counts<'_>) -> Result<()>
where
    F: assay_pairing::tower::TowerField + Canonical,
    A: ArkField,
{
    let work = work(seed);
    counts.each(name, cases, |case| {
        let [x, y] = [0, 1].map(|k| Fp12::<F>::element(&work, "fp12", 2 * case + k));
        let [a, b] = [0, 1].map(|k| arkworks::element::<A>(&work, "fp12", 2 * case + k));
        let same = |ours: &Fp12<F>, theirs: A| ours.bytes() == arkworks::bytes(&theirs);
        let inverse = x.inverse().unwrap_or(Fp12::ZERO);
        let is_equal = same(&(x * y), a * b)
            && same(&x.square(), a.square())
            && same(&inverse, a.inverse().unwrap_or(A::ZERO))
            && same(&x.frobenius(1 + case % 3), a.frobenius_map(1 + case % 3));
        ensure!(is_equal, "{name}: {x:?}, {y:?}");
        Ok(())
    })
}

fn coordinates<C: Curve<Base: Canonical>>(point: &Affine<C>) -> Vec<u8> {
    [point.x.bytes(), point.y.bytes()].concat()
}

/// Scalar products, sums and doubles of points in the group.
fn groups<C, P>(name: &'static str, cases: usize, seed: u64, counts: &mut Counts<'_>) -> Result<()>
where
    C: Curve<Base: Canonical>,
    P: SWCurveConfig,
{
    let mut numbers = Numbers { work: work(seed), next: 0 };
    let mut ours: Jacobian<C> = C::GENERATOR.into();
    let mut ark = Projective::<P>::generator();
    ensure!(coordinates(&C::GENERATOR) == arkworks::affine_bytes(&ark.into_affine()), "{name}");
    counts.each(name, cases, |_| {
        let (bytes, limbs) = numbers.scalar();
        let scalar = P::ScalarField::from_be_bytes_mod_order(&bytes);
        let (product, right) = (ours.multiply(&limbs), ark * scalar);
        let is_equal = coordinates(&product.to_affine()) == arkworks::point_bytes(&right)
            && coordinates(&(product + ours).to_affine()) == arkworks::point_bytes(&(right + ark))
            && coordinates(&(product - ours).to_affine()) == arkworks::point_bytes(&(right - ark));
        ensure!(is_equal, "{name}: {ours:?} times {limbs:x?}");
        (ours, ark) = (product.double() + C::GENERATOR.into(), right + right + P::GENERATOR);
        Ok(())
    })
}

/// Verdicts of blst and ours on bytes that may be points. Both libraries use Zcash's format.
fn decoders(name: &'static str, cases: usize, seed: u64, counts: &mut Counts<'_>) -> Result<()> {
    let mut numbers = Numbers { work: work(seed ^ 1), next: 0 };
    for case in 0..cases {
        counts.step(name, case, cases);
        let mut bytes = [0; 192];
        for part in bytes.chunks_exact_mut(48) {
            part.copy_from_slice(&numbers.bytes()[16..]);
            // Keeps most coordinates below the prime.
            part[0] &= 0x1f;
            if case % 16 != 0 {
                part[0] %= 0x1a;
            }
        }
        bytes[0] =
            bytes[0] & 0x1f | (numbers.bytes()[63] & 0xe0) | if case % 8 == 0 { 0 } else { 0x80 };
        if case.is_multiple_of(3) {
            // A point of the group.
            let scalar = [numbers.next as u64, 3, 5, 7];
            bytes[..48]
                .copy_from_slice(&BlsG1::GENERATOR.multiply(&scalar).to_affine().to_compressed());
            bytes[..96].copy_from_slice(&if case % 2 == 0 {
                BlsG2::GENERATOR.multiply(&scalar).to_affine().to_compressed()
            } else {
                BlsG1::GENERATOR.multiply(&scalar).to_affine().to_uncompressed()
            });
        }
        let g1: [u8; 48] = bytes[..48].try_into()?;
        let ours = Affine::<BlsG1>::from_compressed(&g1).map(|point| point.to_uncompressed());
        let theirs = g1_of_blst(&g1);
        ensure!(ours.ok() == theirs, "g1 {g1:x?}");
        let g1: [u8; 96] = bytes[..96].try_into()?;
        let ours = Affine::<BlsG1>::from_uncompressed(&g1).map(|point| point.to_uncompressed());
        ensure!(ours.ok() == uncompressed_of_blst(&g1), "g1 {g1:x?}");
        let ours = Affine::<BlsG2>::from_compressed(&g1).map(|point| point.to_uncompressed());
        ensure!(ours.ok() == g2_of_blst(&g1), "g2 {g1:x?}");
    }
    counts.done.push((name, 3 * cases));
    Ok(())
}

/// Accepts only points in the group, as `blst`'s own types check them.
fn g1_of_blst(bytes: &[u8; 48]) -> Option<[u8; 96]> {
    let key = blst::min_pk::PublicKey::uncompress(bytes).ok()?;
    // Infinity is a valid point, but no key.
    let point: blst_p1_affine = key.into();
    is_valid(key.validate().is_ok(), point == blst_p1_affine::default())?;
    Some(key.serialize())
}

fn uncompressed_of_blst(bytes: &[u8; 96]) -> Option<[u8; 96]> {
    let key = blst::min_pk::PublicKey::deserialize(bytes).ok()?;
    let point: blst_p1_affine = key.into();
    // This function accepts compressed points too.
    is_valid(key.validate().is_ok(), point == blst_p1_affine::default())?;
    (bytes[0] & 0x80 == 0).then(|| key.serialize())
}

fn g2_of_blst(bytes: &[u8; 96]) -> Option<[u8; 192]> {
    let signature = blst::min_pk::Signature::uncompress(bytes).ok()?;
    let point: blst_p2_affine = signature.into();
    is_valid(signature.validate(false).is_ok(), point == blst_p2_affine::default())?;
    Some(signature.serialize())
}

fn is_valid(is_in_group: bool, is_infinity: bool) -> Option<()> {
    (is_in_group || is_infinity).then_some(())
}

/// Signatures by edge-case secrets, from blst and ours: products by the endomorphism and hashes to the second group.
fn signatures(name: &'static str, cases: usize, seed: u64, counts: &mut Counts<'_>) -> Result<()> {
    const DST: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
    let mut numbers = Numbers { work: work(seed ^ 2), next: 0 };
    let mut compared = 0;
    while compared < cases {
        counts.step(name, compared, cases);
        let (bytes, _) = numbers.scalar();
        let message = numbers.bytes();
        let ours = assay_pairing::bls::SecretKey::from_bytes(&bytes);
        let theirs = blst::min_pk::SecretKey::from_bytes(&bytes).ok();
        ensure!(ours.is_some() == theirs.is_some(), "secret {bytes:x?}");
        let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
        let is_equal = ours.sign(&message).to_bytes() == theirs.sign(&message, DST, &[]).to_bytes()
            && ours.public_key().to_bytes() == theirs.sk_to_pk().to_bytes();
        ensure!(is_equal, "secret {bytes:x?}, message {message:x?}");
        compared += 1;
    }
    counts.done.push((name, cases));
    Ok(())
}

/// Inputs of precompiles, valid ones and ones with another byte or length: output, verdict and gas of revm's and ours.
fn precompile(
    address: u64,
    name: &'static str,
    run: Run,
    cases: usize,
    seed: u64,
    counts: &mut Counts<'_>,
) -> Result<()> {
    let mut numbers = Numbers { work: work(seed ^ 3 ^ address << 32), next: 0 };
    let theirs = evm::at(address)?;
    let first = crate::assay::precompile_input(name, &Work { size: 1, ..work(seed) })?;
    counts.each(name, cases, |case| {
        let bytes = numbers.bytes();
        // Its proof takes longer than the comparison.
        let mut input = if name == "kzg-point-evaluation" {
            first.clone()
        } else {
            let seed = seed.wrapping_add(case as u64);
            let sizes = if matches!(address, 2..=5) { 97 } else { 3 };
            let work = Work { size: 1 + case % sizes, ..work(seed) };
            crate::assay::precompile_input(name, &work)?
        };
        if name == "modexp" && case.is_multiple_of(3) {
            // An even modulus, often divisible by a higher power of two.
            let last = input.len() - 1;
            let zeros = usize::from(bytes[59]) % (1 + case % 97);
            input[last - zeros..].fill(0);
            input[last - zeros] = bytes[58] & 0xfe;
        }
        let place = usize::from(u16::from_be_bytes([bytes[62], bytes[61]])) % input.len();
        match case % 8 {
            // Changes any byte, the length, or a number, or sets a point to infinity.
            0 => input[place] ^= bytes[60] | 1,
            1 => input.truncate(place),
            2 => input.push(bytes[60]),
            3 => {
                let first = place / 32 * 32;
                let end = input.len().min(first + 32);
                input[first..end].copy_from_slice(&bytes[32..][..end - first]);
            }
            4 => {
                let first = place / 128 * 128;
                let end = input.len().min(first + 128);
                input[first..end].fill(0);
            }
            _ => {}
        }
        if name == "blake2f" && input.len() > 2 {
            // Limits the rounds to 2^16.
            input[..2].fill(0);
        }
        let ours = run(&input).ok().map(|output| (output, gas(address, &input)));
        ensure!(ours == evm::verdict(theirs, &input), "{name}: {input:x?}");
        Ok(())
    })
}

/// Signature recovery in lanes against revm's single calls, most of them with one changed number.
fn recoveries(name: &'static str, cases: usize, seed: u64, counts: &mut Counts<'_>) -> Result<()> {
    const AT_ONCE: usize = 64;
    let theirs = evm::at(1)?;
    let mut numbers = Numbers { work: work(seed ^ 4), next: 0 };
    let mut recoverer = Recoverer::new();
    let mut done = 0;
    while done < cases {
        counts.step(name, done, cases);
        let valid = evm_inputs::recovery(&work(seed), done / AT_ONCE)?;
        let mut inputs = vec![valid; AT_ONCE.min(cases - done)];
        for (place, input) in inputs.iter_mut().enumerate() {
            let bytes = numbers.bytes();
            match place % 4 {
                // Another hash, r or s, half of the time with edge-case limbs; half of the time r is an x coordinate.
                0 => input[..32].copy_from_slice(&bytes[32..]),
                1 => input[64..96].copy_from_slice(&bytes[32..]),
                2 => input[96..].copy_from_slice(&bytes[32..]),
                _ => input[63] = 27 + (bytes[63] & 1),
            }
        }
        let borrowed: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let ours = ecrecover_all(&mut recoverer, &borrowed);
        for (input, ours) in inputs.iter().zip(ours) {
            let ours = ours.map_or_else(Vec::new, Vec::from);
            let right = evm::verdict(theirs, input).map(|(output, _)| output);
            ensure!(Some(ours) == right, "{name}: {input:x?}");
        }
        done += inputs.len();
    }
    counts.done.push((name, done));
    Ok(())
}

/// Products of pairings against arkworks.
fn pairings<P, E>(
    name: &'static str,
    cases: usize,
    seed: u64,
    counts: &mut Counts<'_>,
) -> Result<()>
where
    P: Pairing<Base: Canonical>,
    E: ark_ec::pairing::Pairing,
{
    let mut numbers = Numbers { work: work(seed), next: 0 };
    counts.each(name, cases, |_| {
        let (_, scalar) = numbers.scalar();
        let other = [9, 8, 7, scalar[0]];
        let (p, q) = (P::G1::GENERATOR.multiply(&scalar), P::G2::GENERATOR.multiply(&other));
        let (p, q) = (p.to_affine(), q.to_affine());
        let ark_scalar = |limbs: [u64; 4]| {
            let bytes: Vec<u8> = limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect();
            E::ScalarField::from_le_bytes_mod_order(&bytes)
        };
        let a = E::G1Affine::generator() * ark_scalar(scalar);
        let b = E::G2Affine::generator() * ark_scalar(other);
        let right = E::multi_pairing([a, a], [b, b]);
        let ours = P::product(&[(p, q), (p, q)]);
        ensure!(ours.bytes() == arkworks::bytes(&right.0), "{name}: {scalar:x?}");
        Ok(())
    })
}

/// Cells, their proofs, recovery from some of them and verification, also with a changed byte: c-kzg's and ours.
fn cells(name: &'static str, cases: usize, seed: u64, counts: &mut Counts<'_>) -> Result<()> {
    let prover = crate::assay::cell_prover()?;
    let verifier = CellVerifier::ethereum();
    let settings = crate::kzg::settings_for_cells();
    counts.each(name, cases, |case| {
        let blob_work = work(seed.wrapping_add(case as u64));
        let Extended { made, cells, proofs } = crate::kzg::extended(&blob_work)?;
        let ours = prover.prove(&made.blob[..])?;
        let is_equal = ours.cells.iter().zip(&cells).all(|(a, b)| *a == b.to_bytes())
            && ours.proofs.iter().zip(&proofs).all(|(a, b)| a[..] == b[..]);
        ensure!(is_equal, "{name}: blob of seed {}", blob_work.seed);

        // A subset of the cells, in one of four cases with a changed byte.
        let choice = blob_work.wide("choice", case);
        let mut found = Vec::new();
        for (index, cell) in cells.iter().enumerate() {
            if choice[index % 64] >> (index / 64) & 3 != 0 {
                let mut cell = cell.to_bytes();
                if case % 4 == 3 && found.is_empty() {
                    cell[usize::from(choice[0])] ^= 1;
                }
                found.push((index as u64, cell));
            }
        }
        let indices: Vec<u64> = found.iter().map(|(index, _)| *index).collect();
        let theirs: Vec<Cell> = found.iter().map(|(_, cell)| Cell::new(*cell)).collect();
        let commitments = vec![made.commitment; found.len()];
        let their_proofs: Vec<_> = indices.iter().map(|index| proofs[*index as usize]).collect();
        let right = settings
            .verify_cell_kzg_proof_batch(&commitments, &indices, &theirs, &their_proofs)
            .ok();
        let commitment: [u8; 48] = made.commitment[..].try_into()?;
        let all: Vec<CellOf<'_>> = found
            .iter()
            .map(|(index, cell)| CellOf {
                commitment: &commitment,
                index: *index,
                cell,
                proof: &ours.proofs[*index as usize],
            })
            .collect();
        ensure!(verifier.verify(&all).ok() == right, "{name}: verdict of seed {}", blob_work.seed);
        // Cells of different blobs are rejected here; c-kzg recovers a result from them.
        if case % 4 != 3 && found.len() >= 64 {
            let given: Vec<_> = found.iter().map(|(index, cell)| (*index, &cell[..])).collect();
            ensure!(prover.recover(&given)? == ours, "{name}: recovery of {indices:?}");
            let (again, _) = settings.recover_cells_and_kzg_proofs(&indices, &theirs)?;
            ensure!(again[..] == cells[..], "{name}: c-kzg's recovery of {indices:?}");
        }
        Ok(())
    })
}
