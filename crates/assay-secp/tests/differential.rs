//! Batches of true, damaged and strange checks on every backend against libsecp256k1 one by one.
//!
//! `ASSAY_DIFF_LANES` is the number of checks for the fast backend (the portable one gets a
//! thirty-second part), `ASSAY_DIFF_SEED` the seed; the output has both, and counts by kind.

#![expect(
    clippy::print_stdout,
    reason = "the seed and the counts are what a reader of the log wants"
)]

use assay_secp::{Backend, BatchVerifier, Check};
use secp256k1::constants::CURVE_ORDER;
use secp256k1::{Keypair, Message, Parity, PublicKey, Scalar, SecretKey, ecdsa, schnorr};

const LANES_DEFAULT: usize = 6_000;

/// Owners of keys; their signatures are made once and used again and again.
const SIGNERS: usize = 192;

struct Random(u64);

impl Random {
    /// The generator known as `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
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

#[derive(Clone)]
enum Owned {
    Ecdsa { pubkey: Vec<u8>, der_sig: Vec<u8>, msg: [u8; 32] },
    Schnorr { xonly: [u8; 32], sig: [u8; 64], msg: Vec<u8> },
    SchnorrBch { pubkey: Vec<u8>, sig: [u8; 64], msg: [u8; 32] },
    Tweak { internal: [u8; 32], tweak: [u8; 32], output: [u8; 32], parity: bool },
}

impl Owned {
    fn check(&self) -> Check<'_> {
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

/// True checks of one key: one of each kind, ECDSA under three encodings of the key.
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
        if assay_secp::verify_schnorr_bch(&pubkey, &sig, msg) {
            break;
        }
    }
    sig
}

/// Numbers at which comparisons and reductions turn.
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

/// Puts a number into 32 bytes of a slice, or flips a bit.
fn damage(random: &mut Random, bytes: &mut [u8]) {
    if bytes.is_empty() {
        return;
    }
    if random.below(3) == 0 && bytes.len() >= 32 {
        let at = random.below(bytes.len() / 32) * 32 + bytes.len() % 32;
        bytes[at..at + 32].copy_from_slice(&edge(random));
    } else {
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
    }
}

/// The DER of a signature with one of its numbers replaced.
fn replace_number(random: &mut Random, der: &[u8]) -> Vec<u8> {
    let Ok(sig) = ecdsa::Signature::from_der(der) else { return der.to_vec() };
    let mut numbers = sig.serialize_compact();
    if random.below(2) == 0 {
        damage(random, &mut numbers);
    } else if let Ok(s) = SecretKey::from_secret_bytes(numbers[32..].try_into().expect("32 bytes"))
    {
        // A high S is as good.
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

fn mutate(random: &mut Random, check: &mut Owned) {
    let which = random.below(3);
    match check {
        Owned::Ecdsa { pubkey, der_sig, msg } => match which {
            0 => damage(random, pubkey),
            1 if random.below(2) == 0 => *der_sig = replace_number(random, der_sig),
            1 => damage(random, der_sig),
            _ => damage(random, msg),
        },
        Owned::Schnorr { xonly, sig, msg } => match which {
            0 => damage(random, xonly),
            1 => damage(random, sig),
            _ => damage(random, msg),
        },
        Owned::SchnorrBch { pubkey, sig, msg } => match which {
            0 => damage(random, pubkey),
            1 => damage(random, sig),
            _ => damage(random, msg),
        },
        Owned::Tweak { internal, tweak, output, parity } => match random.below(4) {
            0 => damage(random, internal),
            1 => damage(random, tweak),
            2 => damage(random, output),
            _ => *parity ^= true,
        },
    }
}

fn number_from(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn run(backend: Backend, lanes: usize, seed: usize) {
    if !backend.available() {
        println!("skipped: this CPU does not run {}", backend.name());
        return;
    }
    let mut random = Random(seed as u64);
    let pool: Vec<Owned> = (0..SIGNERS).flat_map(|_| true_checks(&mut random)).collect();
    let mut verifier = BatchVerifier::with_backend(backend);
    assert_eq!(verifier.backend(), backend);
    let (mut done, mut valid, mut answers) = (0, 0, Vec::new());
    while done < lanes {
        let count = (1 + random.below(700)).min(lanes - done);
        let batch: Vec<Owned> = (0..count)
            .map(|_| {
                let mut check = pool[random.below(pool.len())].clone();
                if random.below(2) == 0 {
                    mutate(&mut random, &mut check);
                }
                check
            })
            .collect();
        let checks: Vec<Check<'_>> = batch.iter().map(Owned::check).collect();
        verifier.verify(&checks, &mut answers);
        assert_eq!(answers.len(), count);
        for (check, answer) in checks.iter().zip(&answers) {
            assert_eq!(*answer, check.verify(), "seed {seed}, {}: {check:?}", backend.name());
            valid += usize::from(*answer);
        }
        done += count;
    }
    println!("{}: seed {seed}, {done} lanes, {valid} valid, no difference", backend.name());
    assert!(valid > lanes / 3 && valid < lanes, "a mixture");
}

#[test]
fn batches_agree_with_single_checks() {
    let lanes = number_from("ASSAY_DIFF_LANES", LANES_DEFAULT);
    let seed = number_from("ASSAY_DIFF_SEED", 20_261_121);
    run(Backend::Ifma, lanes, seed);
    run(Backend::Portable, lanes / 32, seed);
}

#[test]
fn empty_and_single_batches() {
    let mut random = Random(5);
    let pool = true_checks(&mut random);
    for backend in [Backend::Libsecp, Backend::Portable, Backend::Ifma] {
        let mut verifier = BatchVerifier::with_backend(backend);
        let mut answers = vec![true; 3];
        verifier.verify(&[], &mut answers);
        assert!(answers.is_empty());
        for count in 1..18 {
            let checks: Vec<Check<'_>> = (0..count).map(|k| pool[k % 6].check()).collect();
            verifier.verify(&checks, &mut answers);
            assert_eq!(answers, vec![true; count]);
        }
    }
}

#[test]
fn names_lead_back() {
    for backend in [Backend::Libsecp, Backend::Portable, Backend::Ifma] {
        assert_eq!(Backend::by_name(backend.name()), Some(backend));
    }
    assert_eq!(Backend::by_name("abacus"), None);
    assert!(Backend::detect().available());
    assert!(!BatchVerifier::new().has_failed_self_test());
}

/// Weighted sums: all true, with damage here and there, and with keys that occur many times.
#[test]
fn weighted_sums_agree_with_single_checks() {
    let mut random = Random(77);
    let schnorr = |check: &Owned| matches!(check, Owned::Schnorr { .. });
    let pool: Vec<Owned> =
        (0..600).flat_map(|_| true_checks(&mut random)).filter(schnorr).collect();
    let mut answers = Vec::new();
    for backend in [Backend::Libsecp, Backend::Portable, Backend::Ifma] {
        let mut verifier = BatchVerifier::with_backend(backend);
        for (count, damaged) in [(300, 0), (600, 0), (600, 1), (599, 2), (600, 40), (257, 1)] {
            let mut batch = pool[..count].to_vec();
            for _ in 0..damaged {
                let at = random.below(count);
                mutate(&mut random, &mut batch[at]);
            }
            let checks: Vec<Check<'_>> = batch.iter().map(Owned::check).collect();
            verifier.verify_weighted(&checks, &mut answers);
            for (check, answer) in checks.iter().zip(&answers) {
                assert_eq!(*answer, check.verify(), "{}: {check:?}", backend.name());
            }
        }
        let checks: Vec<Check<'_>> = (0..520).map(|k| pool[k % 3].check()).collect();
        verifier.verify_weighted(&checks, &mut answers);
        assert_eq!(answers, vec![true; 520]);
    }
}
