//! c-kzg: commitments and proofs of EIP-4844, cells of EIP-7594.

use std::sync::Mutex;

use anyhow::Result;
use c_kzg::{
    BYTES_PER_BLOB, Blob, Bytes32, Bytes48, Cell, FIELD_ELEMENTS_PER_BLOB, KzgSettings,
    ethereum_kzg_settings,
};

use crate::arkworks;
use crate::table::{Prepared, Table, Work};

pub const VERSION: &str = "2.1.8";

const GROUP: &str = "kzg";

/// The trusted setup without tables, which only speed up proofs of cells.
pub(crate) fn settings() -> &'static KzgSettings {
    ethereum_kzg_settings(0)
}

/// The setup with the tables for the fastest proofs of cells: 96 MB.
pub(crate) fn settings_for_cells() -> &'static KzgSettings {
    ethereum_kzg_settings(8)
}

/// A blob with its commitment and proof.
#[derive(Clone)]
pub(crate) struct ProvenBlob {
    pub(crate) blob: Box<Blob>,
    pub(crate) commitment: Bytes48,
    pub(crate) proof: Bytes48,
}

/// Cache of blobs of one seed, in order: their proofs take longer than any measured operation.
static CACHE: Mutex<(u64, Vec<ProvenBlob>)> = Mutex::new((0, Vec::new()));

pub(crate) fn blobs(work: &Work, count: usize) -> Result<Vec<ProvenBlob>> {
    let mut made = CACHE.lock().expect("nobody panics with it");
    if made.0 != work.seed {
        *made = (work.seed, Vec::new());
    }
    for index in made.1.len()..count {
        let mut bytes = vec![0; BYTES_PER_BLOB];
        for (position, place) in bytes.chunks_exact_mut(32).enumerate() {
            let number = FIELD_ELEMENTS_PER_BLOB * index + position;
            let element: ark_bls12_381::Fr = arkworks::element(work, "blob", number);
            place.copy_from_slice(&arkworks::bytes(&element));
        }
        let blob = Box::new(Blob::from_bytes(&bytes)?);
        let commitment = settings().blob_to_kzg_commitment(&blob)?.to_bytes();
        let proof = settings().compute_blob_kzg_proof(&blob, &commitment)?.to_bytes();
        made.1.push(ProvenBlob { blob, commitment, proof });
    }
    Ok(made.1[..count].to_vec())
}

pub(crate) fn first(work: &Work) -> Result<ProvenBlob> {
    Ok(blobs(work, 1)?.remove(0))
}

/// The first blob, a point, the value at it, and the proof.
pub(crate) struct Opening {
    pub(crate) made: ProvenBlob,
    pub(crate) z: Bytes32,
    pub(crate) y: Bytes32,
    pub(crate) proof: Bytes48,
}

pub(crate) fn opening(work: &Work) -> Result<Opening> {
    let made = first(work)?;
    let z: ark_bls12_381::Fr = arkworks::element(work, "z", 0);
    let z = Bytes32::from_bytes(&arkworks::bytes(&z))?;
    let (proof, y) = settings().compute_kzg_proof(&made.blob, &z)?;
    Ok(Opening { made, z, y, proof: proof.to_bytes() })
}

/// Input of the precompile of EIP-4844 after the hash of the commitment: z, y, commitment, proof.
pub(crate) fn point_evaluation(work: &Work) -> Result<(Vec<u8>, Vec<u8>)> {
    let Opening { made, z, y, proof } = opening(work)?;
    let rest = [&z[..], &y[..], &made.commitment[..], &proof[..]].concat();
    Ok((made.commitment.to_vec(), rest))
}

/// A blob with all of its cells.
pub(crate) struct Extended {
    pub(crate) made: ProvenBlob,
    pub(crate) cells: Vec<Cell>,
    pub(crate) proofs: Vec<Bytes48>,
}

pub(crate) fn extended(work: &Work) -> Result<Extended> {
    let made = first(work)?;
    let (cells, proofs) = settings_for_cells().compute_cells_and_kzg_proofs(&made.blob)?;
    let proofs = proofs.iter().map(c_kzg::KzgProof::to_bytes).collect();
    Ok(Extended { made, cells: cells.to_vec(), proofs })
}

/// Concatenated cells, then concatenated proofs.
fn joined(cells: &[Cell], proofs: impl Iterator<Item = Bytes48>) -> Vec<u8> {
    let mut bytes: Vec<u8> = cells.iter().flat_map(Cell::to_bytes).collect();
    proofs.for_each(|proof| bytes.extend_from_slice(&proof[..]));
    bytes
}

fn cells(table: &mut Table) {
    table.add(GROUP, "cells", "compute_cells", |work| {
        let Extended { made, cells, .. } = extended(work)?;
        Ok(Prepared::repeated(joined(&cells, std::iter::empty()), move || {
            settings_for_cells().compute_cells(&made.blob).expect("a blob")
        }))
    });
    let how = "compute_cells_and_kzg_proofs, tables of 8 bits";
    table.add(GROUP, "cells-and-proofs", how, |work| {
        let Extended { made, cells, proofs } = extended(work)?;
        Ok(Prepared::repeated(joined(&cells, proofs.into_iter()), move || {
            settings_for_cells().compute_cells_and_kzg_proofs(&made.blob).expect("a blob")
        }))
    });
    let how = "recover_cells_and_kzg_proofs, tables of 8 bits";
    table.add(GROUP, "recover-cells", how, |work| {
        let Extended { cells, .. } = extended(work)?;
        let indices: Vec<u64> = (0..cells.len() as u64).step_by(2).collect();
        let half: Vec<Cell> = indices.iter().map(|index| cells[*index as usize]).collect();
        let recover = move || settings_for_cells().recover_cells_and_kzg_proofs(&indices, &half);
        let (cells, proofs) = recover()?;
        let answer = joined(&cells[..], proofs.iter().map(c_kzg::KzgProof::to_bytes));
        Ok(Prepared::repeated(answer, move || recover().expect("half of the cells")))
    });
    table.add(GROUP, "verify-cells", "verify_cell_kzg_proof_batch", |work| {
        let Extended { made, mut cells, mut proofs } = extended(work)?;
        let count = work.size.clamp(1, cells.len());
        cells.truncate(count);
        proofs.truncate(count);
        let commitments = vec![made.commitment; count];
        let indices: Vec<u64> = (0..count as u64).collect();
        let others = vec![made.commitment; count];
        let settings = settings_for_cells();
        let wrong =
            settings.verify_cell_kzg_proof_batch(&commitments, &indices, &cells, &others)?;
        checked(wrong, move || {
            settings.verify_cell_kzg_proof_batch(&commitments, &indices, &cells, &proofs)
        })
    });
}

fn checked(
    wrong: bool,
    check: impl Fn() -> Result<bool, c_kzg::Error> + Send + 'static,
) -> Result<Prepared> {
    let right = check()?;
    Ok(Prepared::checked(right, wrong, move || check().expect("it could be checked before")))
}

pub fn table() -> Table {
    let mut table = Table::default();
    cells(&mut table);
    table.add(GROUP, "commit", "blob_to_kzg_commitment", |work| {
        let made = first(work)?;
        Ok(Prepared::repeated(made.commitment.to_vec(), move || {
            settings().blob_to_kzg_commitment(&made.blob).expect("a blob")
        }))
    });
    table.add(GROUP, "proof", "compute_kzg_proof", |work| {
        let Opening { made, z, y, proof } = opening(work)?;
        Ok(Prepared::repeated([&proof[..], &y[..]].concat(), move || {
            settings().compute_kzg_proof(&made.blob, &z).expect("a blob")
        }))
    });
    table.add(GROUP, "blob-proof", "compute_blob_kzg_proof", |work| {
        let made = first(work)?;
        Ok(Prepared::repeated(made.proof.to_vec(), move || {
            settings().compute_blob_kzg_proof(&made.blob, &made.commitment).expect("a blob")
        }))
    });
    table.add(GROUP, "verify-proof", "verify_kzg_proof", |work| {
        let Opening { made, z, y, proof } = opening(work)?;
        let wrong = settings().verify_kzg_proof(&made.commitment, &z, &z, &proof)?;
        checked(wrong, move || settings().verify_kzg_proof(&made.commitment, &z, &y, &proof))
    });
    table.add(GROUP, "verify-blob", "verify_blob_kzg_proof", |work| {
        let ProvenBlob { blob, commitment, proof } = first(work)?;
        let wrong = settings().verify_blob_kzg_proof(&blob, &commitment, &commitment)?;
        checked(wrong, move || settings().verify_blob_kzg_proof(&blob, &commitment, &proof))
    });
    table.add(GROUP, "verify-blob-batch", "verify_blob_kzg_proof_batch", |work| {
        let made = blobs(work, work.size)?;
        let blobs: Vec<Blob> = made.iter().map(|one| (*one.blob).clone()).collect();
        let commitments: Vec<Bytes48> = made.iter().map(|one| one.commitment).collect();
        let mut proofs: Vec<Bytes48> = made.iter().map(|one| one.proof).collect();
        let last = proofs.len() - 1;
        let kept = std::mem::replace(&mut proofs[last], commitments[last]);
        let wrong = settings().verify_blob_kzg_proof_batch(&blobs, &commitments, &proofs)?;
        proofs[last] = kept;
        checked(wrong, move || {
            settings().verify_blob_kzg_proof_batch(&blobs, &commitments, &proofs)
        })
    });
    table
}
