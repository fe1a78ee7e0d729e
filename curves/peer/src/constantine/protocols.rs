//! Signatures, commitments and precompiles, on bytes and structures of bytes.

use std::ffi::CString;
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;
use std::sync::Mutex;

use anyhow::{Context as _, Result, ensure};

use super::Library;
use super::curves::{Pool, Threads};
use crate::assay::{PRECOMPILES, precompile_input as input};
use crate::derive::expand;
use crate::kzg::{self, Opening, ProvenBlob};
use crate::supranational::signatures::Signers;
use crate::table::{Prepared, Table, Work};

/// Status code of every function, zero for success.
type Status = u8;
type Precompile = unsafe extern "C" fn(*mut u8, usize, *const u8, usize) -> Status;

/// Adds the operations; commitments need the trusted setup, which is in the checkout of the library, and the function
/// that reads it, which the shared library of commit e6bee85e does not export (README.md).
pub(super) fn operations(table: &mut Table, library: &'static Library) -> Result<()> {
    signatures(table, library)?;
    precompiles(table, library)?;
    if library.setup.is_some() && library.has(NEW_SETUP) {
        commitments(table, library)?;
    }
    Ok(())
}

/// Length of the output of a precompile for an input.
fn answer_bytes(name: &str, input: &[u8]) -> usize {
    match name {
        "bn254-add" | "bn254-mul" => 64,
        "bls12-381-g1add" | "bls12-381-g1msm" | "bls12-381-map-fp-to-g1" => 128,
        "bls12-381-g2add" | "bls12-381-g2msm" | "bls12-381-map-fp2-to-g2" => 256,
        // Length of the modulus, at the end of the third word.
        "modexp" => usize::from(input[94]) << 8 | usize::from(input[95]),
        _ => 32,
    }
}

/// Name of a precompile in the library.
fn precompile_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "sha256" => "sha256",
        "ripemd160" => "ripemd160",
        "modexp" => "modexp",
        "bn254-add" => "bn254_g1add",
        "bn254-mul" => "bn254_g1mul",
        "bn254-pairing" => "bn254_ecpairingcheck",
        "bls12-381-g1add" => "bls12381_g1add",
        "bls12-381-g1msm" => "bls12381_g1msm",
        "bls12-381-g2add" => "bls12381_g2add",
        "bls12-381-g2msm" => "bls12381_g2msm",
        "bls12-381-pairing" => "bls12381_pairingcheck",
        "bls12-381-map-fp-to-g1" => "bls12381_map_fp_to_g1",
        "bls12-381-map-fp2-to-g2" => "bls12381_map_fp2_to_g2",
        _ => return None,
    })
}

fn precompiles(table: &mut Table, library: &'static Library) -> Result<()> {
    for (_, name, _) in PRECOMPILES {
        let Some(function) = precompile_name(name) else { continue };
        let function = format!("ctt_eth_evm_{function}");
        let run: Precompile = library.function(&function)?;
        table.add("evm", name, function, move |work| {
            let input = input(name, work)?;
            let mut answer = vec![0; answer_bytes(name, &input)];
            let mut call = move || {
                let (to, from) = (&mut answer, &input);
                // SAFETY: pointers and lengths of slices.
                let status = unsafe { run(to.as_mut_ptr(), to.len(), from.as_ptr(), from.len()) };
                (status, to.clone())
            };
            let (status, answer) = call();
            ensure!(status == 0, "status {status}");
            Ok(Prepared::new(answer, move |iterations| {
                for _ in 0..iterations {
                    assert_eq!(black_box(call()).0, 0, "it worked before");
                }
            }))
        });
    }
    Ok(())
}

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Key([u8; 96]);

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Sig([u8; 192]);

#[repr(C)]
struct Span {
    at: *const u8,
    count: usize,
}

/// Functions of signatures, by their C types.
#[derive(Clone, Copy)]
struct Bls {
    read_secret: unsafe extern "C" fn(*mut [u8; 32], *const u8) -> Status,
    read_key: unsafe extern "C" fn(*mut Key, *const u8) -> Status,
    read_sig: unsafe extern "C" fn(*mut Sig, *const u8) -> Status,
    write_sig: unsafe extern "C" fn(*mut u8, *const Sig) -> Status,
    sign: unsafe extern "C" fn(*mut Sig, *const [u8; 32], *const u8, usize),
    verify: unsafe extern "C" fn(*const Key, *const u8, usize, *const Sig) -> Status,
    verify_fast: unsafe extern "C" fn(*mut Key, usize, *const u8, usize, *const Sig) -> Status,
    verify_all:
        unsafe extern "C" fn(*const Key, *const Span, *const Sig, usize, *const u8) -> Status,
    verify_all_parallel: unsafe extern "C" fn(
        *mut Pool,
        *const Key,
        *const Span,
        *const Sig,
        usize,
        *const u8,
    ) -> Status,
}

impl Bls {
    fn new(library: &Library) -> Result<Self> {
        let named = |name: &str| format!("ctt_eth_bls_{name}");
        Ok(Self {
            read_secret: library.function(&named("deserialize_seckey"))?,
            read_key: library.function(&named("deserialize_pubkey_compressed"))?,
            read_sig: library.function(&named("deserialize_signature_compressed"))?,
            write_sig: library.function(&named("serialize_signature_compressed"))?,
            sign: library.function(&named("sign"))?,
            verify: library.function(&named("verify"))?,
            verify_fast: library.function(&named("fast_aggregate_verify"))?,
            verify_all: library.function(&named("batch_verify"))?,
            verify_all_parallel: library.function(&named("batch_verify_parallel"))?,
        })
    }

    fn key(&self, compressed: &[u8; 48]) -> Result<Key> {
        let mut key = Key([0; 96]);
        // SAFETY: space for a key, and 48 bytes.
        let status = unsafe { (self.read_key)(&raw mut key, compressed.as_ptr()) };
        ensure!(status == 0, "status {status} for a key");
        Ok(key)
    }

    fn signature(&self, compressed: &[u8; 96]) -> Result<Sig> {
        let mut signature = Sig([0; 192]);
        // SAFETY: space for a signature, and 96 bytes.
        let status = unsafe { (self.read_sig)(&raw mut signature, compressed.as_ptr()) };
        ensure!(status == 0, "status {status} for a signature");
        Ok(signature)
    }

    fn verifies(&self, key: &Key, message: &[u8], signature: &Sig) -> bool {
        let (at, count) = (message.as_ptr(), message.len());
        // SAFETY: pointers from references, and a slice.
        unsafe { (self.verify)(key, at, count, signature) == 0 }
    }
}

fn signatures(table: &mut Table, library: &'static Library) -> Result<()> {
    let (bls, group) = (Bls::new(library)?, "bls-signatures");
    table.add(group, "sign", "ctt_eth_bls_sign, constant time", move |work| {
        let signers = Signers::new(work, 1, |index| work.message(index))?;
        let (mut secret, message) = ([0; 32], work.message(0));
        let bytes = signers.secrets[0].to_bytes();
        // SAFETY: space for a secret, and 32 bytes.
        let status = unsafe { (bls.read_secret)(&raw mut secret, bytes.as_ptr()) };
        ensure!(status == 0, "status {status} for a secret");
        let sign = move |message: &[u8]| {
            let mut signature = Sig([0; 192]);
            // SAFETY: space for a signature, a secret, and a slice.
            unsafe {
                (bls.sign)(&raw mut signature, &raw const secret, message.as_ptr(), message.len());
            };
            signature
        };
        let (signature, mut compressed) = (sign(&message), [0; 96]);
        // SAFETY: space for 96 bytes, and a signature.
        unsafe { (bls.write_sig)(compressed.as_mut_ptr(), &raw const signature) };
        ensure!(compressed == signers.sigs[0].compress(), "another signature than blst's");
        let answer = signers.signature_bytes(0);
        Ok(Prepared::of_messages(answer, message, move |message| sign(message)))
    });
    let how = "ctt_eth_bls_verify; points known to be in their groups";
    table.add(group, "verify", how, move |work| {
        let signers = Signers::new(work, 2, |index| work.message(index))?;
        let key = bls.key(&signers.keys[0].compress())?;
        let signature = bls.signature(&signers.sigs[0].compress())?;
        let wrong = bls.verifies(&key, &signers.messages[1], &signature);
        let check = move || bls.verifies(&key, &signers.messages[0], &signature);
        Ok(Prepared::checked(check(), wrong, check))
    });
    let how = "ctt_eth_bls_deserialize_pubkey_compressed";
    table.add(group, "decode-public-key", how, move |work| {
        let signers = Signers::new(work, 1, |index| work.message(index))?;
        let compressed = signers.keys[0].compress();
        bls.key(&compressed)?;
        Ok(Prepared::repeated(signers.key_bytes(0), move || {
            bls.key(&compressed).expect("it was valid before")
        }))
    });
    let how = "ctt_eth_bls_deserialize_signature_compressed";
    table.add(group, "decode-signature", how, move |work| {
        let signers = Signers::new(work, 1, |index| work.message(index))?;
        let compressed = signers.sigs[0].compress();
        bls.signature(&compressed)?;
        Ok(Prepared::repeated(signers.signature_bytes(0), move || {
            bls.signature(&compressed).expect("it was valid before")
        }))
    });
    // The library sums 16 keys and more in place: it overwrites the caller's keys (commit e6bee85e).
    let how = "ctt_eth_bls_fast_aggregate_verify, on a copy of the keys, which it overwrites";
    table.add(group, "fast-aggregate-verify", how, move |work| {
        let signers = Signers::new(work, work.size, |_| work.message(0))?;
        let keys: Vec<Key> =
            signers.keys.iter().map(|key| bls.key(&key.compress())).collect::<Result<_>>()?;
        let aggregate = bls.signature(&signers.aggregate()?.compress())?;
        let check = move |message: &[u8; 32]| {
            let (mut keys, count) = (keys.clone(), keys.len());
            let (keys, at) = (keys.as_mut_ptr(), message.as_ptr());
            // SAFETY: `count` keys, which are this call's own copy; a message and a signature.
            unsafe { (bls.verify_fast)(keys, count, at, message.len(), &raw const aggregate) == 0 }
        };
        let (message, other) = (work.message(0), work.message(1));
        let wrong = check(&other);
        Ok(Prepared::checked(check(&message), wrong, move || check(&message)))
    });
    let how = "ctt_eth_bls_batch_verify, …_parallel on its own pool";
    let threads = Threads::new(library)?;
    table.add(group, "batch-verify", how, move |work| batch(work, bls, threads));
    Ok(())
}

/// Verification of many signatures, on one thread or on the library's pool.
fn batch(work: &Work, bls: Bls, threads: Threads) -> Result<Prepared> {
    let signers = Signers::new(work, work.size, |index| work.message(index))?;
    let keys: Vec<Key> =
        signers.keys.iter().map(|key| bls.key(&key.compress())).collect::<Result<_>>()?;
    let sigs: Vec<Sig> =
        signers.sigs.iter().map(|sig| bls.signature(&sig.compress())).collect::<Result<_>>()?;
    let messages = signers.messages;
    let random = expand("weight", work.seed, 0, 32);
    let mut other = messages.clone();
    other[0][0] ^= 1;
    let check = move |pool: *mut Pool, messages: &[[u8; 32]]| {
        let spans: Vec<Span> =
            messages.iter().map(|one| Span { at: one.as_ptr(), count: one.len() }).collect();
        let (count, random) = (keys.len(), random.as_ptr());
        let (keys, spans, sigs) = (keys.as_ptr(), spans.as_ptr(), sigs.as_ptr());
        if pool.is_null() {
            // SAFETY: `count` keys, messages and signatures, and 32 bytes.
            return unsafe { (bls.verify_all)(keys, spans, sigs, count, random) } == 0;
        }
        // SAFETY: the same, and the pool of this thread.
        unsafe { (bls.verify_all_parallel)(pool, keys, spans, sigs, count, random) == 0 }
    };
    if work.threads == 1 {
        let wrong = check(ptr::null_mut(), &other);
        let right = check(ptr::null_mut(), &messages);
        return Ok(Prepared::checked(right, wrong, move || check(ptr::null_mut(), &messages)));
    }
    let wrong = Mutex::new(None);
    let both = move |pool: *mut Pool| {
        let mut wrong = wrong.lock().expect("nobody panics with it");
        let wrong = *wrong.get_or_insert_with(|| check(pool, &other));
        let right = check(pool, &messages);
        assert!(right, "what is valid was rejected");
        (right, wrong)
    };
    threads.prepared(work.threads, both, |(right, wrong)| vec![u8::from(*right), u8::from(*wrong)])
}

/// The library's trusted setup, shared by threads for reading.
struct Setup(*const ());

// SAFETY: the library never modifies a setup after its creation.
unsafe impl Send for Setup {}
// SAFETY: as above.
unsafe impl Sync for Setup {}

/// Function that reads a setup.
const NEW_SETUP: &str = "ctt_eth_kzg_context_new";

/// Functions of commitments, by their C types.
struct Kzg {
    setup: Setup,
    commit: unsafe extern "C" fn(*const (), *mut [u8; 48], *const u8) -> Status,
    prove: unsafe extern "C" fn(
        *const (),
        *mut [u8; 48],
        *mut [u8; 32],
        *const u8,
        *const u8,
    ) -> Status,
    prove_blob: unsafe extern "C" fn(*const (), *mut [u8; 48], *const u8, *const u8) -> Status,
    verify: unsafe extern "C" fn(*const (), *const u8, *const u8, *const u8, *const u8) -> Status,
    verify_blob: unsafe extern "C" fn(*const (), *const u8, *const u8, *const u8) -> Status,
    verify_blobs: unsafe extern "C" fn(
        *const (),
        *const u8,
        *const u8,
        *const u8,
        usize,
        *const u8,
    ) -> Status,
    prove_cells: unsafe extern "C" fn(*const (), *mut u8, *mut u8, *const u8) -> Status,
    verify_cells: unsafe extern "C" fn(
        *const (),
        *const u8,
        *const u64,
        *const u8,
        *const u8,
        usize,
        *const u8,
    ) -> Status,
    recover_cells:
        unsafe extern "C" fn(*const (), *mut u8, *mut u8, *const u64, *const u8, usize) -> Status,
    evaluate: unsafe extern "C" fn(*const (), *mut u8, usize, *const u8, usize) -> Status,
}

impl Kzg {
    fn new(library: &Library) -> Result<Self> {
        let new: unsafe extern "C" fn(*mut *const (), *const std::ffi::c_char, i32) -> Status =
            library.function(NEW_SETUP)?;
        let file = library.setup.as_ref().context("a checkout with the trusted setup")?;
        let (path, mut setup) = (CString::new(file.as_os_str().as_bytes())?, ptr::null());
        // SAFETY: space for a pointer, a path with a terminating zero, and the only format.
        let status = unsafe { new(&raw mut setup, path.as_ptr(), 0) };
        ensure!(status == 0, "status {status} for {}", file.display());
        let named = |name: &str| format!("ctt_eth_kzg_{name}");
        Ok(Self {
            setup: Setup(setup),
            commit: library.function(&named("blob_to_kzg_commitment"))?,
            prove: library.function(&named("compute_kzg_proof"))?,
            prove_blob: library.function(&named("compute_blob_kzg_proof"))?,
            verify: library.function(&named("verify_kzg_proof"))?,
            verify_blob: library.function(&named("verify_blob_kzg_proof"))?,
            verify_blobs: library.function(&named("verify_blob_kzg_proof_batch"))?,
            prove_cells: library.function(&named("compute_cells_and_kzg_proofs"))?,
            verify_cells: library.function(&named("verify_cell_kzg_proof_batch"))?,
            recover_cells: library.function(&named("recover_cells_and_kzg_proofs"))?,
            evaluate: library.function("ctt_eth_evm_kzg_point_evaluation")?,
        })
    }
}

/// Repeats an operation on a blob; the answer is its output.
fn blob_operation(
    mut make: impl FnMut() -> (Status, Vec<u8>) + Send + 'static,
) -> Result<Prepared> {
    let (status, answer) = make();
    ensure!(status == 0, "status {status}");
    Ok(Prepared::new(answer, move |iterations| {
        for _ in 0..iterations {
            assert_eq!(black_box(make()).0, 0, "it worked before");
        }
    }))
}

fn commitments(table: &mut Table, library: &'static Library) -> Result<()> {
    let kzg: &'static Kzg = Box::leak(Box::new(Kzg::new(library)?));
    let group = "kzg";
    table.add(group, "commit", "ctt_eth_kzg_blob_to_kzg_commitment", move |work| {
        let blob = kzg::first(work)?.blob;
        blob_operation(move || {
            let mut commitment = [0; 48];
            // SAFETY: space for a commitment, and a blob.
            let status = unsafe { (kzg.commit)(kzg.setup.0, &raw mut commitment, blob.as_ptr()) };
            (status, commitment.to_vec())
        })
    });
    table.add(group, "proof", "ctt_eth_kzg_compute_kzg_proof", move |work| {
        let Opening { made: ProvenBlob { blob, .. }, z, .. } = kzg::opening(work)?;
        blob_operation(move || {
            let (mut proof, mut y) = ([0; 48], [0; 32]);
            let (to_proof, to_y) = (&raw mut proof, &raw mut y);
            // SAFETY: space for a proof and a value, a blob and a point.
            let status =
                unsafe { (kzg.prove)(kzg.setup.0, to_proof, to_y, blob.as_ptr(), z.as_ptr()) };
            (status, [&proof[..], &y].concat())
        })
    });
    table.add(group, "blob-proof", "ctt_eth_kzg_compute_blob_kzg_proof", move |work| {
        let ProvenBlob { blob, commitment, .. } = kzg::first(work)?;
        blob_operation(move || {
            let mut proof = [0; 48];
            let (to, blob, commitment) = (&raw mut proof, blob.as_ptr(), commitment.as_ptr());
            // SAFETY: space for a proof, a blob and a commitment.
            let status = unsafe { (kzg.prove_blob)(kzg.setup.0, to, blob, commitment) };
            (status, proof.to_vec())
        })
    });
    verifications(table, kzg);
    cells(table, kzg);
    let name = "kzg-point-evaluation";
    table.add("evm", name, "ctt_eth_evm_kzg_point_evaluation", move |work| {
        let input = input(name, work)?;
        blob_operation(move || {
            let (mut answer, from) = (vec![0; 64], input.as_ptr());
            let (to, count) = (answer.as_mut_ptr(), answer.len());
            // SAFETY: pointers and lengths of slices.
            let status = unsafe { (kzg.evaluate)(kzg.setup.0, to, count, from, input.len()) };
            (status, answer)
        })
    });
    Ok(())
}

fn verifications(table: &mut Table, kzg: &'static Kzg) {
    let group = "kzg";
    table.add(group, "verify-proof", "ctt_eth_kzg_verify_kzg_proof", move |work| {
        let Opening { made, z, y, proof } = kzg::opening(work)?;
        let check = move |is_right: bool| {
            let y = if is_right { y.as_ptr() } else { z.as_ptr() };
            let (commitment, proof) = (made.commitment.as_ptr(), proof.as_ptr());
            // SAFETY: pointers to a commitment, a point, a value and a proof.
            unsafe { (kzg.verify)(kzg.setup.0, commitment, z.as_ptr(), y, proof) == 0 }
        };
        Ok(Prepared::checked(check(true), check(false), move || check(true)))
    });
    table.add(group, "verify-blob", "ctt_eth_kzg_verify_blob_kzg_proof", move |work| {
        let ProvenBlob { blob, commitment, proof } = kzg::first(work)?;
        let check = move |is_right: bool| {
            let proof = if is_right { proof.as_ptr() } else { commitment.as_ptr() };
            // SAFETY: pointers to a blob, a commitment and a proof.
            unsafe {
                (kzg.verify_blob)(kzg.setup.0, blob.as_ptr(), commitment.as_ptr(), proof) == 0
            }
        };
        Ok(Prepared::checked(check(true), check(false), move || check(true)))
    });
    table.add(group, "verify-blob-batch", "ctt_eth_kzg_verify_blob_kzg_proof_batch", move |work| {
        let made = kzg::blobs(work, work.size)?;
        let blobs: Vec<u8> = made.iter().flat_map(|one| one.blob.iter().copied()).collect();
        let commitments: Vec<u8> = made.iter().flat_map(|one| one.commitment.to_vec()).collect();
        let proofs: Vec<u8> = made.iter().flat_map(|one| one.proof.to_vec()).collect();
        let mut others = proofs.clone();
        let last = others.len() - 48;
        others[last..].copy_from_slice(&commitments[last..]);
        let (count, random) = (made.len(), expand("weight", work.seed, 0, 32));
        let check = move |is_right: bool| {
            let proofs = if is_right { proofs.as_ptr() } else { others.as_ptr() };
            let (blobs, commitments) = (blobs.as_ptr(), commitments.as_ptr());
            // SAFETY: `count` blobs, commitments and proofs, and 32 bytes.
            unsafe {
                (kzg.verify_blobs)(kzg.setup.0, blobs, commitments, proofs, count, random.as_ptr())
                    == 0
            }
        };
        Ok(Prepared::checked(check(true), check(false), move || check(true)))
    });
}

/// Lengths of all cells of a blob, and of all their proofs.
const CELLS: (usize, usize) = (128 * 2048, 128 * 48);

fn cells(table: &mut Table, kzg: &'static Kzg) {
    let (group, all) = ("kzg", || (vec![0; CELLS.0], vec![0; CELLS.1]));
    table.add(group, "cells-and-proofs", "ctt_eth_kzg_compute_cells_and_kzg_proofs", move |work| {
        let blob = kzg::first(work)?.blob;
        blob_operation(move || {
            let (mut cells, mut proofs) = all();
            let (to_cells, to_proofs) = (cells.as_mut_ptr(), proofs.as_mut_ptr());
            // SAFETY: space for 128 cells and proofs, and a blob.
            let status =
                unsafe { (kzg.prove_cells)(kzg.setup.0, to_cells, to_proofs, blob.as_ptr()) };
            (status, [cells, proofs].concat())
        })
    });
    table.add(group, "recover-cells", "ctt_eth_kzg_recover_cells_and_kzg_proofs", move |work| {
        let found = kzg::extended(work)?.cells;
        let indices: Vec<u64> = (0..found.len() as u64).step_by(2).collect();
        let half: Vec<u8> = found.iter().step_by(2).flat_map(c_kzg::Cell::to_bytes).collect();
        blob_operation(move || {
            let (mut cells, mut proofs) = all();
            let (to_cells, to_proofs) = (cells.as_mut_ptr(), proofs.as_mut_ptr());
            let (at, from, count) = (indices.as_ptr(), half.as_ptr(), indices.len());
            // SAFETY: space for 128 cells and proofs, and `count` indices and cells.
            let status =
                unsafe { (kzg.recover_cells)(kzg.setup.0, to_cells, to_proofs, at, from, count) };
            (status, [cells, proofs].concat())
        })
    });
    table.add(group, "verify-cells", "ctt_eth_kzg_verify_cell_kzg_proof_batch", move |work| {
        let kzg::Extended { made, cells, proofs } = kzg::extended(work)?;
        let count = work.size.clamp(1, cells.len());
        let indices: Vec<u64> = (0..count as u64).collect();
        let cells: Vec<u8> = cells.iter().take(count).flat_map(c_kzg::Cell::to_bytes).collect();
        let proofs: Vec<u8> = proofs.iter().take(count).flat_map(|proof| proof.to_vec()).collect();
        let commitments = made.commitment.repeat(count);
        let random = expand("weight", work.seed, 0, 32);
        let check = move |is_right: bool| {
            let proofs = if is_right { proofs.as_ptr() } else { commitments.as_ptr() };
            let (commitments, cells) = (commitments.as_ptr(), cells.as_ptr());
            let (at, random) = (indices.as_ptr(), random.as_ptr());
            // SAFETY: `count` commitments, indices, cells and proofs, and 32 bytes.
            unsafe {
                (kzg.verify_cells)(kzg.setup.0, commitments, at, cells, proofs, count, random) == 0
            }
        };
        Ok(Prepared::checked(check(true), check(false), move || check(true)))
    });
}
