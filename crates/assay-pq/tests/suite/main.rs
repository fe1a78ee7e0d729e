//! Integration tests; here a differential test of ML-DSA-44 against another library, on valid and damaged input.

mod acvp;
mod differential;
mod signer;

use assay_pq::ml_dsa::{KEY_BYTES, SIGNATURE_BYTES, TestKey, verify};
use ml_dsa::{MlDsa44, Signature, VerifyingKey};

use crate::signer::Random;

fn by_the_other(key: &[u8], message: &[u8], context: &[u8], signature: &[u8]) -> bool {
    let key = VerifyingKey::<MlDsa44>::decode(&key.try_into().expect("a key's length"));
    let signature = Signature::<MlDsa44>::decode(&signature.try_into().expect("a length"));
    signature.is_some_and(|signature| key.verify_with_context(message, context, &signature))
}

#[test]
fn two_libraries_agree() {
    let mut random = Random::new(3);
    let mut seed = [0; 32];
    let mut counts = [0; 2];
    for number in 0..40u8 {
        seed[0] = number;
        let key = TestKey::new(seed);
        let message = vec![number; usize::from(number)];
        let context = vec![7; usize::from(number % 4) * 60];
        let signature = key.sign(&message, &context);
        assert_eq!((key.public().len(), signature.len()), (KEY_BYTES, SIGNATURE_BYTES));
        for flip in 0..50 {
            let (mut public, mut signature) = (key.public().to_vec(), signature.clone());
            match flip {
                0 => {}
                // Seed and vector of the key; challenge, response and hints of the signature.
                1..10 => public[random.below(KEY_BYTES)] ^= 1 << random.below(8),
                10..20 => signature[random.below(32)] ^= 1 << random.below(8),
                20..35 => signature[32 + random.below(2304)] ^= 1 << random.below(8),
                _ => signature[SIGNATURE_BYTES - 84 + random.below(84)] ^= 1 << random.below(8),
            }
            let verdict = verify(&public, &message, &context, &signature);
            let other = by_the_other(&public, &message, &context, &signature);
            assert_eq!(verdict, other, "{number} {flip}");
            assert!(verdict || flip > 0, "{number}");
            counts[usize::from(verdict)] += 1;
        }
        assert!(!verify(key.public(), &message, &[0; 256], &signature), "too long a context");
        assert!(!verify(&key.public()[1..], &message, &context, &signature));
        assert!(!verify(key.public(), &message, &context, &signature[1..]));
    }
    // No flipped bit leaves a signature valid: strong unforgeability.
    assert_eq!(counts, [40 * 49, 40]);
}
