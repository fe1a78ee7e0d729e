//! Signatures by the crate `slh-dsa`, and its verdicts.

use assay_pq::{Check, Message, ParameterSet};
use slh_dsa::{
    ParameterSet as Oracle, Sha2_128f, Sha2_128s, Sha2_192f, Sha2_192s, Sha2_256f, Sha2_256s,
    Signature, SigningKey, VerifyingKey,
};

/// A seeded byte stream.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number of `SplitMix64`.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// A check that owns its bytes.
#[derive(Clone)]
pub(crate) struct Signed {
    pub(crate) key: Vec<u8>,
    pub(crate) context: Vec<u8>,
    pub(crate) message: Vec<u8>,
    pub(crate) signature: Vec<u8>,
}

impl Signed {
    pub(crate) fn check(&self) -> Check<'_> {
        let message = Message::Pure { context: &self.context, message: &self.message };
        Check { key: &self.key, message, signature: &self.signature }
    }

    /// Flips a bit of the signature, the key, the message or the context.
    pub(crate) fn flip(&mut self, random: &mut Random) {
        let Self { key, context, message, signature } = self;
        let bytes = match random.below(7) {
            4 => key,
            5 if !message.is_empty() => message,
            6 if !context.is_empty() => context,
            _ => signature,
        };
        let bit = random.below(8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

/// The crate with one parameter set.
pub(crate) struct Signer {
    pub(crate) set: ParameterSet,
    pub(crate) sign: fn(&mut Random) -> Signed,
    pub(crate) verify: fn(&Signed) -> bool,
}

impl Signer {
    const fn new<P: Oracle, const N: usize>(set: ParameterSet) -> Self {
        Self { set, sign: sign::<P, N>, verify: verify::<P> }
    }

    pub(crate) const ALL: [Self; 6] = [
        Self::new::<Sha2_128s, 16>(ParameterSet::SHA2_128S),
        Self::new::<Sha2_128f, 16>(ParameterSet::SHA2_128F),
        Self::new::<Sha2_192s, 24>(ParameterSet::SHA2_192S),
        Self::new::<Sha2_192f, 24>(ParameterSet::SHA2_192F),
        Self::new::<Sha2_256s, 32>(ParameterSet::SHA2_256S),
        Self::new::<Sha2_256f, 32>(ParameterSet::SHA2_256F),
    ];
}

fn sign<P: Oracle, const N: usize>(random: &mut Random) -> Signed {
    let [secret, prf, seed] = [(); 3].map(|()| random.bytes(N));
    let key = SigningKey::<P>::slh_keygen_internal(&secret, &prf, &seed);
    let length = [32, 0, 1, 37, 100, 300][random.below(6)];
    let message = random.bytes(length);
    let length = [0, 0, 3, 255][random.below(4)];
    let context = random.bytes(length);
    let randomizer = random.bytes(N);
    let signature = key
        .try_sign_with_context(&message, &context, Some(&randomizer))
        .expect("the context has at most 255 bytes");
    let key: &VerifyingKey<P> = key.as_ref();
    Signed { key: key.to_vec(), context, message, signature: signature.to_vec() }
}

fn verify<P: Oracle>(signed: &Signed) -> bool {
    let Ok(key) = VerifyingKey::<P>::try_from(&signed.key[..]) else { return false };
    let Ok(signature) = Signature::<P>::try_from(&signed.signature[..]) else { return false };
    key.try_verify_with_context(&signed.message, &signed.context, &signature).is_ok()
}
