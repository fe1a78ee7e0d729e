//! Valid, damaged and unusual checks, with the results of libsecp256k1.

use secp256k1::constants::CURVE_ORDER;
use secp256k1::{Keypair, Message, Parity, PublicKey, Scalar, SecretKey, ecdsa, schnorr};

use super::super::tests::{above_order, exceptional, related};
use crate::{Check, verify_schnorr_bch};

/// Origin of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Signed, or tweaked, by libsecp256k1.
    Signed,
    /// Signed, with a bit flipped.
    Flipped,
    /// Signed, with a number replaced by a boundary value of comparisons and reductions: scalars around zero, half the order and
    /// the order, coordinates around the prime; also a high S.
    Edge,
    /// Signed with an uncompressed key whose tag or coordinates are changed.
    Hybrid,
    /// r is the x coordinate minus the order.
    AboveOrder,
    /// Small multiples of the generator and of lambda G as keys, with scalars at their edges.
    Related,
    /// A key that makes an addition of the ladder a doubling or a cancellation; all additions occur.
    Exceptional,
}

impl Class {
    pub(super) const ALL: [Self; 7] = [
        Self::Signed,
        Self::Flipped,
        Self::Edge,
        Self::Hybrid,
        Self::AboveOrder,
        Self::Related,
        Self::Exceptional,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Flipped => "bit flipped",
            Self::Edge => "edge numbers",
            Self::Hybrid => "hybrid and uncompressed keys",
            Self::AboveOrder => "r + n < p",
            Self::Related => "related keys",
            Self::Exceptional => "exceptional additions",
        }
    }
}

/// A check and the result of libsecp256k1.
pub(super) struct Operand {
    pub(super) owned: Owned,
    pub(super) class: Class,
    pub(super) is_valid: bool,
}

impl Operand {
    fn new(owned: Owned, class: Class) -> Self {
        let is_valid = owned.check().verify();
        assert!(is_valid || class != Class::Signed, "libsecp256k1 takes its own signatures");
        Self { owned, class, is_valid }
    }
}

/// Operands of all classes: `signers` keys, each with six valid and six damaged checks, and the degenerate cases of a seed.
pub(super) fn make(random: &mut Random, signers: usize) -> Vec<Operand> {
    let mut operands = Vec::new();
    for _ in 0..signers {
        for owned in true_checks(random) {
            let (damaged, class) = mutate(random, &owned);
            operands.push(Operand::new(owned, Class::Signed));
            operands.push(Operand::new(damaged, class));
        }
    }
    let seed = random.next() as u32;
    let degenerate = [
        (above_order(seed), Class::AboveOrder),
        (related(seed % 1024), Class::Related),
        (exceptional(seed), Class::Exceptional),
    ];
    for (forged, class) in degenerate {
        operands.extend(forged.into_iter().map(|forged| {
            let (pubkey, der_sig, msg) = forged.into_parts();
            Operand::new(Owned::Ecdsa { pubkey, der_sig, msg }, class)
        }));
    }
    operands
}

pub(super) struct Random(pub(super) u64);

impl Random {
    /// The `SplitMix64` generator.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes
            .as_chunks_mut::<8>()
            .0
            .iter_mut()
            .for_each(|chunk| *chunk = self.next().to_ne_bytes());
        bytes
    }
}

#[derive(Clone, Debug)]
pub(super) enum Owned {
    Ecdsa { pubkey: Vec<u8>, der_sig: Vec<u8>, msg: [u8; 32] },
    Schnorr { xonly: [u8; 32], sig: [u8; 64], msg: Vec<u8> },
    SchnorrBch { pubkey: Vec<u8>, sig: [u8; 64], msg: [u8; 32] },
    Tweak { internal: [u8; 32], tweak: [u8; 32], output: [u8; 32], parity: bool },
}

impl Owned {
    pub(super) fn check(&self) -> Check<'_> {
        match self {
            Self::Ecdsa { pubkey, der_sig, msg } => Check::Ecdsa { pubkey, der_sig, msg },
            Self::Schnorr { xonly, sig, msg } => Check::Schnorr { xonly, sig, msg },
            Self::SchnorrBch { pubkey, sig, msg } => Check::SchnorrBch { pubkey, sig, msg },
            Self::Tweak { internal, tweak, output, parity } => {
                Check::TaprootTweak { internal, tweak, output, parity: *parity }
            }
        }
    }
}

/// Valid checks of one key: one of each kind, ECDSA under three encodings of the key.
fn true_checks(random: &mut Random) -> Vec<Owned> {
    let secret = SecretKey::from_secret_bytes(random.bytes()).expect("below the order");
    let keypair = Keypair::from_secret_key(&secret);
    let public = PublicKey::from_secret_key(&secret);
    let (xonly, _) = keypair.x_only_public_key();
    let (msg, tweak) = (random.bytes(), random.bytes());
    let sig = ecdsa::sign(Message::from_digest(msg), &secret).serialize_der().to_vec();
    let scalar = Scalar::from_be_bytes(tweak).expect("below the order");
    let (output, parity) = xonly.add_tweak(&scalar).expect("not infinity");
    let mut hybrid = public.serialize_uncompressed();
    hybrid[0] = 6 | hybrid[64] & 1;
    let ecdsa = |pubkey: &[u8]| Owned::Ecdsa { pubkey: pubkey.to_vec(), der_sig: sig.clone(), msg };
    vec![
        ecdsa(&public.serialize()),
        ecdsa(&public.serialize_uncompressed()),
        ecdsa(&hybrid),
        Owned::Schnorr {
            xonly: xonly.to_byte_array(),
            sig: schnorr::sign_with_aux_rand(&msg, &keypair, &tweak).to_byte_array(),
            msg: msg.to_vec(),
        },
        Owned::SchnorrBch {
            pubkey: public.serialize().to_vec(),
            sig: sign_bch(&secret, random, &msg),
            msg,
        },
        Owned::Tweak {
            internal: xonly.to_byte_array(),
            tweak,
            output: output.to_byte_array(),
            parity: parity == Parity::Odd,
        },
    ]
}

/// A BCH signature: the nonce, or its negation, has a square y coordinate.
fn sign_bch(secret: &SecretKey, random: &mut Random, msg: &[u8; 32]) -> [u8; 64] {
    let pubkey = PublicKey::from_secret_key(secret).serialize();
    let nonce = SecretKey::from_secret_bytes(random.bytes()).expect("below the order");
    let point = PublicKey::from_secret_key(&nonce).serialize();
    let mut hasher = assay_hash::Sha256::new();
    hasher.update(&point[1..]);
    hasher.update(&pubkey);
    hasher.update(msg);
    let e = Scalar::from_be_bytes(hasher.finalize()).expect("below the order");
    let mut sig = [0; 64];
    sig[..32].copy_from_slice(&point[1..]);
    for nonce in [nonce, nonce.negate()] {
        let product = secret.mul_tweak(&e).expect("not zero");
        let s = product.add_tweak(&Scalar::from(nonce)).expect("not zero");
        sig[32..].copy_from_slice(&s.to_secret_bytes());
        if verify_schnorr_bch(&pubkey, &sig, msg) {
            break;
        }
    }
    sig
}

/// Boundary values of comparisons and reductions.
fn edge(random: &mut Random) -> [u8; 32] {
    let mut number = match random.below(5) {
        0 => [0; 32],
        1 => [0xff; 32],
        2 => CURVE_ORDER,
        // Half the order, rounded down.
        3 => {
            let mut half = CURVE_ORDER;
            for k in (0..32).rev() {
                half[k] = CURVE_ORDER[k] >> 1 | if k > 0 { CURVE_ORDER[k - 1] << 7 } else { 0 };
            }
            half
        }
        // The field prime.
        _ => {
            let mut prime = [0xff; 32];
            prime[27..].copy_from_slice(&[0xfe, 0xff, 0xff, 0xfc, 0x2f]);
            prime
        }
    };
    number[31] = number[31].wrapping_add(random.below(5) as u8).wrapping_sub(2);
    number
}

/// Writes a boundary value into 32 bytes of a slice.
fn put_edge(random: &mut Random, bytes: &mut [u8]) {
    let Some(numbers) = bytes.len().checked_div(32).filter(|&numbers| numbers > 0) else { return };
    let at = random.below(numbers) * 32 + bytes.len() % 32;
    bytes[at..at + 32].copy_from_slice(&edge(random));
}

fn flip(random: &mut Random, bytes: &mut [u8]) {
    if !bytes.is_empty() {
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
    }
}

/// The DER of a signature with one of its numbers replaced.
fn replace_number(random: &mut Random, der: &[u8]) -> Vec<u8> {
    let Ok(sig) = ecdsa::Signature::from_der(der) else { return der.to_vec() };
    let mut numbers = sig.serialize_compact();
    if random.below(2) == 0 {
        put_edge(random, &mut numbers);
    } else if let Ok(s) = SecretKey::from_secret_bytes(numbers[32..].try_into().expect("32 bytes"))
    {
        // A high S is equally valid.
        numbers[32..].copy_from_slice(&s.negate().to_secret_bytes());
    }
    let (r, s) = numbers.split_at(32);
    let zeros = random.below(3);
    let mut out = vec![0x30, (2 * (34 + zeros)) as u8];
    for number in [r, s] {
        out.extend([2, (32 + zeros) as u8]);
        out.extend(std::iter::repeat_n(0, zeros));
        out.extend(number);
    }
    out
}

/// A modified check, and its class.
fn mutate(random: &mut Random, owned: &Owned) -> (Owned, Class) {
    let mut check = owned.clone();
    let class = match random.below(3) {
        0 => Class::Edge,
        _ => Class::Flipped,
    };
    let which = random.below(3);
    if let Owned::Ecdsa { pubkey, der_sig, .. } = &mut check {
        if class == Class::Edge && which > 0 {
            *der_sig = replace_number(random, der_sig);
            return (check, class);
        }
        if pubkey.len() == 65 && which == 0 {
            // The tag, its parity bit, or a bit of the coordinates.
            match random.below(3) {
                0 => pubkey[0] = random.below(9) as u8,
                1 => pubkey[0] ^= 1,
                _ => flip(random, pubkey),
            }
            return (check, Class::Hybrid);
        }
    }
    let change = if class == Class::Edge { put_edge } else { flip };
    match &mut check {
        Owned::Ecdsa { pubkey, der_sig, msg } => match which {
            0 => change(random, pubkey),
            1 => change(random, der_sig),
            _ => change(random, msg),
        },
        Owned::Schnorr { xonly, sig, msg } => match which {
            0 => change(random, xonly),
            1 => change(random, sig),
            _ => change(random, msg),
        },
        Owned::SchnorrBch { pubkey, sig, msg } => match which {
            0 => change(random, pubkey),
            1 => change(random, sig),
            _ => change(random, msg),
        },
        Owned::Tweak { internal, tweak, output, parity } => match random.below(4) {
            0 => change(random, internal),
            1 => change(random, tweak),
            2 => change(random, output),
            _ => *parity ^= true,
        },
    }
    (check, class)
}
