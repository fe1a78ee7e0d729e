//! Keys, and both kinds of signatures of Bitcoin Cash.

use assay_hash::Sha256;
use assay_secp::verify_schnorr_bch;
use secp256k1::{Message, PublicKey, Scalar, SecretKey, ecdsa};

use assay_report::stats::random::SplitMix64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    secret: SecretKey,
    is_compressed: bool,
}

impl Key {
    pub(super) fn random(random: &mut SplitMix64) -> Self {
        let secret = secret(random);
        Self { secret, is_compressed: random.below(4) > 0 }
    }

    pub(super) fn public(&self) -> Vec<u8> {
        let point = PublicKey::from_secret_key(&self.secret);
        if self.is_compressed {
            point.serialize().to_vec()
        } else {
            point.serialize_uncompressed().to_vec()
        }
    }

    /// DER, low S.
    pub(super) fn ecdsa(&self, message: &[u8; 32]) -> Vec<u8> {
        ecdsa::sign(Message::from_digest(*message), &self.secret).serialize_der().to_vec()
    }

    /// `s = k + e*x` by the specification of May 2019, which requires a square y of `k*G`: it holds for a nonce or its negation.
    pub(super) fn schnorr(&self, random: &mut SplitMix64, message: &[u8; 32]) -> Vec<u8> {
        let nonce = secret(random);
        let public = PublicKey::from_secret_key(&self.secret).serialize();
        let point = PublicKey::from_secret_key(&nonce).serialize();
        let mut hasher = Sha256::new();
        hasher.update(&point[1..]);
        hasher.update(&public);
        hasher.update(message);
        let e = Scalar::from_be_bytes(hasher.finalize()).unwrap_or(Scalar::ONE);
        let sign = |nonce: SecretKey| {
            let s = self
                .secret
                .mul_tweak(&e)
                .and_then(|product| product.add_tweak(&Scalar::from(nonce)))
                .expect("zero is out of reach");
            let mut sig = [0; 64];
            sig[..32].copy_from_slice(&point[1..]);
            sig[32..].copy_from_slice(&s.to_secret_bytes());
            sig
        };
        let sig = sign(nonce);
        let is_valid = verify_schnorr_bch(&public, &sig, message);
        if is_valid { sig } else { sign(nonce.negate()) }.to_vec()
    }
}

fn secret(random: &mut SplitMix64) -> SecretKey {
    loop {
        if let Ok(secret) = SecretKey::from_secret_bytes(random.bytes()) {
            return secret;
        }
    }
}
