//! blst's BLS signatures with keys in G1: the scheme with proofs of possession.

use anyhow::{Result, anyhow};
use blst::min_pk::{AggregateSignature, PublicKey, SecretKey, Signature};
use blst::{BLST_ERROR, Pairing, blst_p1_affine, blst_p2_affine, blst_scalar};

use super::{g1, g2, scalar};
use crate::derive::expand;
use crate::table::{Prepared, Table, Work};

const GROUP: &str = "bls-signatures";

const DST: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

/// Secrets, keys and signatures, one per message.
pub(crate) struct Signers {
    pub(crate) secrets: Vec<SecretKey>,
    pub(crate) keys: Vec<PublicKey>,
    pub(crate) messages: Vec<[u8; 32]>,
    pub(crate) sigs: Vec<Signature>,
}

impl Signers {
    pub(crate) fn new(
        work: &Work,
        count: usize,
        message: impl Fn(usize) -> [u8; 32],
    ) -> Result<Self> {
        let mut made =
            Self { secrets: Vec::new(), keys: Vec::new(), messages: Vec::new(), sigs: Vec::new() };
        for index in 0..count {
            let mut bytes = scalar(work, "bls", index).b;
            bytes.reverse();
            let secret = SecretKey::from_bytes(&bytes).map_err(failed)?;
            let message = message(index);
            made.keys.push(secret.sk_to_pk());
            made.sigs.push(secret.sign(&message, DST, &[]));
            made.messages.push(message);
            made.secrets.push(secret);
        }
        Ok(made)
    }

    /// Sum of all signatures.
    pub(crate) fn aggregate(&self) -> Result<Signature> {
        let sigs: Vec<&Signature> = self.sigs.iter().collect();
        let sum = AggregateSignature::aggregate(&sigs, false).map_err(failed)?;
        Ok(sum.to_signature())
    }

    /// x and y of a signature.
    pub(crate) fn signature_bytes(&self, index: usize) -> Vec<u8> {
        signature_bytes(&self.sigs[index])
    }

    /// x and y of a key.
    pub(crate) fn key_bytes(&self, index: usize) -> Vec<u8> {
        key_bytes(&self.keys[index])
    }
}

fn failed(error: BLST_ERROR) -> anyhow::Error {
    anyhow!("{error:?}")
}

fn point(sig: &Signature) -> blst_p2_affine {
    (*sig).into()
}

fn signature_bytes(sig: &Signature) -> Vec<u8> {
    g2::bytes(&g2::from_affine(&point(sig)))
}

fn key_bytes(key: &PublicKey) -> Vec<u8> {
    g1::bytes(&g1::from_affine(&blst_p1_affine::from(*key)))
}

/// Verification without subgroup checks.
fn verify(sig: &Signature, message: &[u8], key: &PublicKey) -> bool {
    sig.verify(false, message, DST, &[], key, false) == BLST_ERROR::BLST_SUCCESS
}

pub(super) fn operations(table: &mut Table) {
    table.add(GROUP, "sign", "SecretKey::sign, constant time", |work| {
        let keys = Signers::new(work, 1, |index| work.message(index))?;
        let answer = signature_bytes(&keys.sigs[0]);
        let sign = move |message: &[u8; 32]| keys.secrets[0].sign(message, DST, &[]);
        Ok(Prepared::of_messages(answer, work.message(0), sign))
    });
    table.add(GROUP, "verify", "Signature::verify; points known to be in their groups", |work| {
        let keys = Signers::new(work, 2, |index| work.message(index))?;
        let wrong = verify(&keys.sigs[0], &keys.messages[1], &keys.keys[0]);
        let check = move || verify(&keys.sigs[0], &keys.messages[0], &keys.keys[0]);
        Ok(Prepared::checked(check(), wrong, check))
    });
    decoding(table);
    table.add(GROUP, "aggregate", "AggregateSignature::aggregate, without group checks", |work| {
        let keys = Signers::new(work, work.size, |index| work.message(index))?;
        let aggregate = move || keys.aggregate().expect("there are some");
        Ok(Prepared::repeated(signature_bytes(&aggregate()), aggregate))
    });
    table.add(GROUP, "fast-aggregate-verify", "Signature::fast_aggregate_verify", |work| {
        let keys = Signers::new(work, work.size, |_| work.message(0))?;
        let aggregate = keys.aggregate()?;
        let (right, other) = (work.message(0), work.message(1));
        let check = move |message: &[u8]| {
            let keys: Vec<&PublicKey> = keys.keys.iter().collect();
            let verdict = aggregate.fast_aggregate_verify(false, message, DST, &keys);
            verdict == BLST_ERROR::BLST_SUCCESS
        };
        let (is_right, is_wrong) = (check(&right), check(&other));
        Ok(Prepared::checked(is_right, is_wrong, move || check(&right)))
    });
    let how =
        "Pairing::mul_n_aggregate by 64 bits; all threads: verify_multiple_aggregate_signatures";
    table.add(GROUP, "batch-verify", how, batch);
}

fn decoding(table: &mut Table) {
    let how = "PublicKey::key_validate: decompression and group check";
    table.add(GROUP, "decode-public-key", how, |work| {
        let keys = Signers::new(work, 1, |index| work.message(index))?;
        let compressed = keys.keys[0].compress();
        let key = PublicKey::key_validate(&compressed).map_err(failed)?;
        Ok(Prepared::repeated(key_bytes(&key), move || {
            PublicKey::key_validate(&compressed).expect("it was valid before")
        }))
    });
    let how = "Signature::sig_validate: decompression and group check";
    table.add(GROUP, "decode-signature", how, |work| {
        let keys = Signers::new(work, 1, |index| work.message(index))?;
        let compressed = keys.sigs[0].compress();
        let sig = Signature::sig_validate(&compressed, true).map_err(failed)?;
        Ok(Prepared::repeated(signature_bytes(&sig), move || {
            Signature::sig_validate(&compressed, true).expect("it was valid before")
        }))
    });
}

fn batch(work: &Work) -> Result<Prepared> {
    let mut keys = Signers::new(work, work.size, |index| work.message(index))?;
    let weights: Vec<blst_scalar> = (0..work.size)
        .map(|index| {
            let mut weight = blst_scalar::default();
            weight.b[..8].copy_from_slice(&expand("weight", work.seed, index as u64, 8));
            weight.b[0] |= 1;
            weight
        })
        .collect();
    let is_single = work.threads == 1;
    let check = move |keys: &Signers| {
        if is_single { one_by_one(keys, &weights) } else { in_the_pool(keys, &weights) }
    };
    let right = check(&keys);
    keys.messages[0][0] ^= 1;
    let wrong = check(&keys);
    keys.messages[0][0] ^= 1;
    Ok(Prepared::checked(right, wrong, move || check(&keys)))
}

fn one_by_one(keys: &Signers, weights: &[blst_scalar]) -> bool {
    let mut pairing = Pairing::new(true, DST);
    for (index, weight) in weights.iter().enumerate() {
        let (key, sig) = (blst_p1_affine::from(keys.keys[index]), point(&keys.sigs[index]));
        let taken = pairing.mul_n_aggregate(
            &key,
            false,
            &sig,
            false,
            &weight.b,
            64,
            &keys.messages[index],
            &[],
        );
        if taken != BLST_ERROR::BLST_SUCCESS {
            return false;
        }
    }
    pairing.commit();
    pairing.finalverify(None)
}

fn in_the_pool(keys: &Signers, weights: &[blst_scalar]) -> bool {
    let messages: Vec<&[u8]> = keys.messages.iter().map(|message| &message[..]).collect();
    let (points, sigs): (Vec<_>, Vec<_>) = keys.keys.iter().zip(&keys.sigs).unzip();
    let verdict = Signature::verify_multiple_aggregate_signatures(
        &messages, DST, &points, false, &sigs, false, weights, 64,
    );
    verdict == BLST_ERROR::BLST_SUCCESS
}
