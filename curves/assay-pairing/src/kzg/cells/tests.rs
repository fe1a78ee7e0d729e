//! Under a setup with a known secret, so that proofs follow from their definition.

use super::super::tests::{SECRET, g1, prover};
use super::{CELL_BYTES, CELL_ELEMENTS, CELLS, CellOf, CellProver, CellVerifier, Cells, numbers};
use crate::bls12_381::Fr;
use crate::curve::{BlsG2, Curve as _};
use crate::encoding::DecodeError;
use crate::field::Field as _;
use crate::kzg::{BLOB_ELEMENTS, KzgError, evaluate};
use crate::msm::Backend;
use crate::testing::Rng;

struct CellFixture {
    commitment: [u8; 48],
    blob: Vec<u8>,
    values: Vec<Fr>,
    cells: Cells,
}

fn fixture(prover: &super::super::Prover, cell_prover: &CellProver, seed: u64) -> CellFixture {
    let mut rng = Rng::new(seed);
    let values: Vec<Fr> = (0..BLOB_ELEMENTS).map(|_| rng.fe()).collect();
    let blob: Vec<u8> = values.iter().flat_map(Fr::to_be_bytes).collect();
    let commitment = prover.commit(&blob).expect("a blob");
    let cells = cell_prover.prove(&blob).expect("a blob");
    CellFixture { commitment, blob, values, cells }
}

fn verifier() -> CellVerifier {
    let secret = Fr::from_u64(SECRET);
    let powers: Vec<_> = (0..CELL_ELEMENTS as u64).map(|k| g1(secret.power(&[k]))).collect();
    let power = secret.power(&[CELL_ELEMENTS as u64]).to_limbs();
    let power = BlsG2::GENERATOR.multiply(&power).to_affine().to_compressed();
    assert!(matches!(CellVerifier::new(&powers[1..], &power), Err(KzgError::PowersLength(63))));
    CellVerifier::new(&powers, &power).expect("points")
}

fn all<'m>(made: &'m CellFixture) -> Vec<CellOf<'m>> {
    let of = |(index, (cell, proof)): (u64, (&'m [u8; CELL_BYTES], &'m [u8; 48]))| CellOf {
        commitment: &made.commitment,
        index,
        cell,
        proof,
    };
    (0..).zip(made.cells.cells.iter().zip(&made.cells.proofs)).map(of).collect()
}

#[test]
fn cells_proofs_and_recovery() {
    let prover = prover();
    let cell_prover = CellProver::new(&prover);
    let made = [fixture(&prover, &cell_prover, 41), fixture(&prover, &cell_prover, 42)];
    by_definition(&made[0]);
    on_every_backend(&cell_prover, &made[0]);
    batches(&made);
    recovered(&cell_prover, &made[0]);
}

/// Numbers are values of the polynomial, and proofs commit to the quotient.
fn by_definition(made: &CellFixture) {
    assert_eq!((made.cells.cells.len(), made.cells.proofs.len()), (CELLS, CELLS));
    assert_eq!(made.cells.cells[..CELLS / 2].concat(), made.blob);
    let secret = Fr::from_u64(SECRET);
    let at_secret = evaluate(&made.values, secret);
    let root = super::root_of_order(super::EXTENDED);
    for index in [0, 1, 63, 64, 100, 127] {
        let numbers = numbers(&made.cells.cells[index]).expect("a cell");
        // Lagrange's formula for the polynomial of the cell, at the secret.
        let places: Vec<Fr> = (0..CELL_ELEMENTS)
            .map(|k| {
                let place = super::reversed_in(super::EXTENDED, index * CELL_ELEMENTS + k);
                root.power(&[place as u64])
            })
            .collect();
        let mut interpolated = Fr::ZERO;
        for (k, number) in numbers.iter().enumerate() {
            assert_eq!(*number, evaluate(&made.values, places[k]), "cell {index}, number {k}");
            let mut term = *number;
            for (other, place) in places.iter().enumerate().filter(|(other, _)| *other != k) {
                let _ = other;
                term = term * (secret - *place) * (places[k] - *place).inverse().expect("others");
            }
            interpolated += term;
        }
        let vanishing = places.iter().fold(Fr::ONE, |product, place| product * (secret - *place));
        let proof = (at_secret - interpolated) * vanishing.inverse().expect("not a root");
        assert_eq!(made.cells.proofs[index], g1(proof), "proof {index}");
    }
}

fn on_every_backend(prover: &CellProver, made: &CellFixture) {
    for backend in [Backend::Scalar, Backend::Ifma] {
        let Some(prover) = prover.clone().on(backend) else { continue };
        assert_eq!(prover.prove(&made.blob).as_ref(), Ok(&made.cells), "{backend:?}");
    }
    assert_eq!(prover.cells(&made.blob).as_ref(), Ok(&made.cells.cells));
    assert_eq!(prover.prove(&made.blob[1..]), Err(KzgError::BlobLength(made.blob.len() - 1)));
}

fn batches(made: &[CellFixture; 2]) {
    let verifier = verifier();
    let cells: Vec<_> = [all(&made[0]), all(&made[1])].concat();
    assert_eq!(verifier.verify(&[]), Ok(true));
    assert_eq!(verifier.verify(&cells), Ok(true));
    for few in [&cells[..1], &cells[127..129], &cells[250..]] {
        assert_eq!(verifier.verify(few), Ok(true));
    }
    // In any order, and repeated.
    let mixed = [cells[200], cells[3], cells[200], cells[77]];
    assert_eq!(verifier.verify(&mixed), Ok(true));

    let with = |change: &dyn Fn(&mut CellOf<'_>)| {
        let mut changed = mixed;
        change(&mut changed[1]);
        verifier.verify(&changed)
    };
    let mut other = made[0].cells.cells[3];
    other[40] ^= 1;
    assert_eq!(with(&|cell| cell.index = 4), Ok(false));
    let mut changed = mixed;
    changed[1].commitment = &made[1].commitment;
    assert_eq!(verifier.verify(&changed), Ok(false));
    changed[1] = CellOf { proof: &made[0].cells.proofs[4], ..mixed[1] };
    assert_eq!(verifier.verify(&changed), Ok(false));
    changed[1] = CellOf { cell: &other, ..mixed[1] };
    assert_eq!(verifier.verify(&changed), Ok(false));
    assert_eq!(with(&|cell| cell.index = 128), Err(KzgError::CellIndex(128)));
    assert_eq!(with(&|cell| cell.cell = &[0; 5]), Err(KzgError::CellLength(5)));
    assert_eq!(with(&|cell| cell.cell = &[0xff; CELL_BYTES]), Err(KzgError::Number));
    assert_eq!(with(&|cell| cell.proof = &[0; 48]), Err(DecodeError::Flags.into()));
    let mut outside = [0; 48];
    // x = 4 is on the curve and not in the group.
    (outside[0], outside[47]) = (0x80, 4);
    let of_outside = |change: fn(&mut CellOf<'_>, &'static [u8; 48])| {
        let outside: &'static [u8; 48] = Box::leak(Box::new(outside));
        let mut changed: Vec<CellOf<'static>> = Vec::new();
        for cell in &mixed {
            changed.push(CellOf {
                commitment: Box::leak(Box::new(*cell.commitment)),
                index: cell.index,
                cell: Box::leak(cell.cell.to_vec().into_boxed_slice()),
                proof: Box::leak(Box::new(*cell.proof)),
            });
        }
        change(&mut changed[2], outside);
        verifier.verify(&changed)
    };
    let not_in_group = Err(DecodeError::NotInGroup.into());
    assert_eq!(of_outside(|cell, point| cell.proof = point), not_in_group);
    assert_eq!(of_outside(|cell, point| cell.commitment = point), not_in_group);
}

fn recovered(prover: &CellProver, made: &CellFixture) {
    let cells: Vec<(u64, &[u8])> =
        (0..).zip(made.cells.cells.iter().map(|cell| &cell[..])).collect();
    let every_second: Vec<_> = cells.iter().copied().step_by(2).collect();
    for found in [&cells[..], &cells[64..], &cells[1..66], &every_second] {
        assert_eq!(prover.recover(found).as_ref(), Ok(&made.cells));
    }
    assert_eq!(prover.recover(&cells[..63]), Err(KzgError::CellCount(63)));
    assert_eq!(prover.recover(&[&cells[..], &cells[..1]].concat()), Err(KzgError::CellCount(129)));
    let repeated = [&cells[..64], &cells[63..64]].concat();
    assert_eq!(prover.recover(&repeated), Err(KzgError::CellOrder));
    let mut changed = cells.clone();
    changed[127].0 = 128;
    assert_eq!(prover.recover(&changed), Err(KzgError::CellIndex(128)));
    let mut other = made.cells.cells[9];
    other[31] ^= 1;
    changed = cells.clone();
    changed[9].1 = &other;
    assert_eq!(prover.recover(&changed), Err(KzgError::Inconsistent));
    // Any 64 cells determine some blob.
    assert!(prover.recover(&changed[..64]).is_ok());
    changed[9].1 = &other[1..];
    assert_eq!(prover.recover(&changed), Err(KzgError::CellLength(CELL_BYTES - 1)));
}
