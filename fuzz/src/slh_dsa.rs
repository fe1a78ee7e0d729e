//! Hash-based signatures.

use std::sync::LazyLock;

use assay_hash::Backend;
use assay_pq::{Check, Message, ParameterSet, serial, verify_many_with};
use slh_dsa::{Sha2_128f, Signature, SigningKey, VerifyingKey};

use crate::input::Input;

/// A key with a signature of an empty context, of the set that is signed fastest.
struct Signed {
    key: Vec<u8>,
    message: Vec<u8>,
    context: Vec<u8>,
    signature: Vec<u8>,
}

static VALID: LazyLock<Vec<Signed>> = LazyLock::new(|| {
    (0..3u8)
        .map(|i| {
            let key = SigningKey::<Sha2_128f>::slh_keygen_internal(&[i; 16], &[i; 16], &[i; 16]);
            let (message, context) = (vec![i; 32], vec![i; usize::from(i)]);
            let signature = key
                .try_sign_with_context(&message, &context, None)
                .expect("the context is short")
                .to_vec();
            let public: &VerifyingKey<Sha2_128f> = key.as_ref();
            Signed { key: public.to_vec(), message, context, signature }
        })
        .collect()
});

/// SLH-DSA signatures, valid ones edited: the lanes of every backend, the standard's text one hash
/// after the other, and the crate `slh-dsa` agree.
pub fn slh_dsa(data: &[u8]) {
    let mut input = Input(data);
    let count = usize::from(input.byte() % 20);
    let signed: Vec<Signed> = (0..count).map(|_| edited(&mut input)).collect();
    let checks: Vec<Check<'_>> = signed
        .iter()
        .map(|Signed { key, message, context, signature }| Check {
            key,
            message: Message::Pure { context, message },
            signature,
        })
        .collect();
    let set = &ParameterSet::SHA2_128F;
    let expected: Vec<bool> = signed.iter().map(by_crate).collect();
    for backend in Backend::available() {
        assert_eq!(verify_many_with(backend, set, &checks), expected, "{}", backend.name());
    }
    if let (Some(check), Some(expected)) = (checks.last(), expected.last()) {
        assert_eq!(serial::verify(set, check), *expected);
    }
    // Any other set sees bytes of wrong lengths.
    let other = &ParameterSet::ALL[2 + count % 4];
    assert!(verify_many_with(Backend::detect(), other, &checks).into_iter().all(|valid| !valid));
}

/// A valid signature with up to three bytes of one part changed, or with that part cut or extended.
fn edited(input: &mut Input<'_>) -> Signed {
    let how = input.byte();
    let valid = &VALID[usize::from(how % 3)];
    let [mut key, mut message, mut context, mut signature] =
        [&valid.key, &valid.message, &valid.context, &valid.signature].map(Vec::clone);
    let part = match how / 3 % 8 {
        0 => &mut key,
        1 => &mut message,
        2 => &mut context,
        _ => &mut signature,
    };
    for _ in 0..how / 24 % 4 {
        let at = usize::from(u16::from_le_bytes(input.array()));
        if !part.is_empty() {
            let at = at % part.len();
            part[at] ^= input.byte();
        }
    }
    match how / 96 {
        1 => part.truncate(usize::from(u16::from_le_bytes(input.array()))),
        2 => part.extend_from_slice(input.counted()),
        _ => {}
    }
    Signed { key, message, context, signature }
}

fn by_crate(Signed { key, message, context, signature }: &Signed) -> bool {
    let Ok(key) = VerifyingKey::<Sha2_128f>::try_from(&key[..]) else { return false };
    let Ok(signature) = Signature::<Sha2_128f>::try_from(&signature[..]) else { return false };
    key.try_verify_with_context(message, context, &signature).is_ok()
}
