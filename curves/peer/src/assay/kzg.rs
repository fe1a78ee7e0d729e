//! Commitments and proofs of EIP-4844 and cells of EIP-7594, with c-kzg's setup.

use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use assay_pairing::kzg::{CellOf, CellProver, CellVerifier, Cells, Prover, Settings};
use c_kzg::{BYTES_PER_BLOB, Blob, FIELD_ELEMENTS_PER_BLOB};

use crate::kzg::{Extended, extended, first, opening, settings};
use crate::table::{Prepared, Table};

const GROUP: &str = "kzg";

/// The points of c-kzg's setup are its commitments to the unit blobs.
fn prover() -> Result<&'static Prover> {
    static PROVER: OnceLock<Prover> = OnceLock::new();
    if let Some(prover) = PROVER.get() {
        return Ok(prover);
    }
    let bits = FIELD_ELEMENTS_PER_BLOB.trailing_zeros();
    let mut points = vec![[0; 48]; FIELD_ELEMENTS_PER_BLOB];
    let mut bytes = vec![0; BYTES_PER_BLOB];
    for place in 0..FIELD_ELEMENTS_PER_BLOB {
        bytes[32 * place + 31] = 1;
        let commitment = settings().blob_to_kzg_commitment(&Blob::from_bytes(&bytes)?)?;
        bytes[32 * place + 31] = 0;
        points[place.reverse_bits() >> (usize::BITS - bits)] = commitment.to_bytes().into_inner();
    }
    let prover = Prover::new(&points, Settings::ethereum())?;
    Ok(PROVER.get_or_init(|| prover))
}

pub(crate) fn cell_prover() -> Result<&'static CellProver> {
    static PROVER: OnceLock<CellProver> = OnceLock::new();
    let prover = prover()?;
    Ok(PROVER.get_or_init(|| CellProver::new(prover)))
}

fn joined(cells: &Cells) -> Vec<u8> {
    [cells.cells.concat(), cells.proofs.concat()].concat()
}

fn cells(table: &mut Table) {
    table.add(GROUP, "cells", "CellProver::cells", |work| {
        let (made, prover) = (first(work)?, cell_prover()?);
        let compute = move || prover.cells(&made.blob[..]);
        Ok(Prepared::repeated(compute()?.concat(), move || compute().expect("a blob")))
    });
    table.add(GROUP, "cells-and-proofs", "CellProver::prove", |work| {
        let (made, prover) = (first(work)?, cell_prover()?);
        let prove = move || prover.prove(&made.blob[..]);
        Ok(Prepared::repeated(joined(&prove()?), move || prove().expect("a blob")))
    });
    table.add(GROUP, "recover-cells", "CellProver::recover", |work| {
        let (Extended { cells, .. }, prover) = (extended(work)?, cell_prover()?);
        let half: Vec<(u64, Vec<u8>)> =
            (0..).zip(cells.iter().map(|cell| cell.to_bytes().to_vec())).step_by(2).collect();
        let recover = move || {
            let found: Vec<_> = half.iter().map(|(index, cell)| (*index, &cell[..])).collect();
            prover.recover(&found)
        };
        Ok(Prepared::repeated(joined(&recover()?), move || recover().expect("half of the cells")))
    });
    table.add(GROUP, "verify-cells", "CellVerifier::verify", |work| {
        let Extended { made, cells, proofs } = extended(work)?;
        let (count, verifier) = (work.size.clamp(1, cells.len()), CellVerifier::ethereum());
        let commitment: [u8; 48] = made.commitment[..].try_into()?;
        let mut given = Vec::with_capacity(count);
        for (cell, proof) in cells.iter().zip(&proofs).take(count) {
            let proof: [u8; 48] = proof[..].try_into()?;
            given.push((cell.to_bytes().to_vec(), proof));
        }
        let check = move |is_right: bool| {
            let all: Vec<CellOf<'_>> = (0..)
                .zip(&given)
                .map(|(index, (cell, proof))| CellOf {
                    commitment: &commitment,
                    index,
                    cell,
                    proof: if is_right { proof } else { &commitment },
                })
                .collect();
            verifier.verify(&all) == Ok(true)
        };
        let (right, wrong) = (check(true), check(false));
        Ok(Prepared::checked(right, wrong, move || check(true)))
    });
}

pub(super) fn operations(table: &mut Table) {
    cells(table);
    table.add(GROUP, "commit", "Prover::commit", |work| {
        let (made, prover) = (first(work)?, prover()?);
        let commit = move || prover.commit(&made.blob[..]);
        Ok(Prepared::repeated(commit()?.to_vec(), move || commit().expect("a blob")))
    });
    table.add(GROUP, "proof", "Prover::prove", |work| {
        let (opening, prover) = (opening(work)?, prover()?);
        let z: [u8; 32] = opening.z[..].try_into().context("32 bytes")?;
        let prove = move || prover.prove(&opening.made.blob[..], &z);
        let (proof, y) = prove()?;
        Ok(Prepared::repeated([&proof[..], &y].concat(), move || prove().expect("a blob")))
    });
    table.add(GROUP, "blob-proof", "Prover::prove_blob", |work| {
        let (made, prover) = (first(work)?, prover()?);
        let commitment: [u8; 48] = made.commitment[..].try_into().context("48 bytes")?;
        let prove = move || prover.prove_blob(&made.blob[..], &commitment);
        Ok(Prepared::repeated(prove()?.to_vec(), move || prove().expect("a blob")))
    });
    table.add(GROUP, "verify-proof", "Settings::verify_proof", |work| {
        let (opening, settings) = (opening(work)?, Settings::ethereum());
        let [z, y]: [[u8; 32]; 2] =
            [opening.z[..].try_into().context("32 bytes")?, opening.y[..].try_into()?];
        let commitment: [u8; 48] = opening.made.commitment[..].try_into()?;
        let proof: [u8; 48] = opening.proof[..].try_into()?;
        let wrong = settings.verify_proof(&commitment, &z, &z, &proof)?;
        let check = move || settings.verify_proof(&commitment, &z, &y, &proof) == Ok(true);
        Ok(Prepared::checked(check(), wrong, check))
    });
    table.add(GROUP, "verify-blob", "Settings::verify_blob_proof", |work| {
        let (made, settings) = (first(work)?, Settings::ethereum());
        let commitment: [u8; 48] = made.commitment[..].try_into()?;
        let proof: [u8; 48] = made.proof[..].try_into()?;
        let wrong = settings.verify_blob_proof(&made.blob[..], &commitment, &commitment)?;
        let check =
            move || settings.verify_blob_proof(&made.blob[..], &commitment, &proof) == Ok(true);
        Ok(Prepared::checked(check(), wrong, check))
    });
}
