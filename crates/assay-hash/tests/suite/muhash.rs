//! MuHash against Bitcoin Core's vectors and a slow big-integer oracle.

use assay_hash::{Backend, MuHash3072, sha256};
use proptest::array::uniform32;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};

use crate::hex;

/// Bytes of a number.
const SIZE: usize = 384;

/// 2^3072 modulo p.
const FOLD: u64 = 1_103_717;

type Number = [u8; SIZE];

/// Core's `FromInt`: 32 bytes, starting with `first`.
fn element(first: u8) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[0] = first;
    bytes
}

/// A state with the given numerator and denominator.
fn state(backend: Backend, numerator: &Number, denominator: &Number) -> MuHash3072 {
    let mut bytes = [0; MuHash3072::SIZE];
    bytes[..SIZE].copy_from_slice(numerator);
    bytes[SIZE..].copy_from_slice(denominator);
    MuHash3072::from_bytes_with(backend, &bytes)
}

fn small(value: u64) -> Number {
    let mut bytes = [0; SIZE];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    bytes
}

/// `2^3072 - value`; p is `below_top(FOLD)`.
fn below_top(value: u64) -> Number {
    let mut bytes = [0xff; SIZE];
    bytes[..8].copy_from_slice(&value.wrapping_neg().to_le_bytes());
    bytes
}

/// The product modulo p below p, one byte at a time.
fn oracle_product(a: &Number, b: &Number) -> Number {
    let mut wide = [0u64; 2 * SIZE];
    for (i, &x) in a.iter().enumerate() {
        for (j, &y) in b.iter().enumerate() {
            wide[i + j] += u64::from(x) * u64::from(y);
        }
    }
    // Fold the bits above 3072 until there are none.
    loop {
        let mut carry = 0;
        for digit in &mut wide {
            carry += *digit;
            *digit = carry & 0xff;
            carry >>= 8;
        }
        assert_eq!(carry, 0);
        let (low, high) = wide.split_at_mut(SIZE);
        if high.iter().all(|&digit| digit == 0) {
            break;
        }
        for (low, high) in low.iter_mut().zip(high) {
            *low += FOLD * *high;
            *high = 0;
        }
    }
    oracle_normalised(&core::array::from_fn(|i| wide[i] as u8))
}

/// The representative below p.
fn oracle_normalised(x: &Number) -> Number {
    let p = below_top(FOLD);
    if x.iter().rev().lt(p.iter().rev()) {
        return *x;
    }
    let mut borrow = 0;
    core::array::from_fn(|i| {
        let difference = i16::from(x[i]) - i16::from(p[i]) - borrow;
        borrow = i16::from(difference < 0);
        difference.rem_euclid(256) as u8
    })
}

fn check_product(a: &Number, b: &Number) {
    let expected = oracle_product(a, b);
    let one = small(1);
    for backend in Backend::available() {
        let mut set = state(backend, a, &one);
        set.combine(&state(backend, b, &one));
        let actual: Number = *set.to_bytes().first_chunk().expect("a numerator");
        assert_eq!(oracle_normalised(&actual), expected, "{backend:?}");
        // Finalising normalises, and the quotient of the product by one factor is the other.
        assert_eq!(set.finalize(), sha256(&expected), "{backend:?}");
        if oracle_normalised(a) != [0; SIZE] {
            let quotient = state(backend, &actual, a).finalize();
            assert_eq!(quotient, sha256(&oracle_normalised(b)), "{backend:?}");
        }
    }
}

/// `muhash_tests` of Bitcoin Core's `test/crypto_tests.cpp`.
#[test]
fn core_vectors() {
    let mut set = MuHash3072::new();
    set.insert(&element(0));
    set.insert(&element(1));
    set.remove(&element(2));
    let printed = "10d312b100cbd32ada024a6646e40d3482fcff103668d2625f10002a607d5863";
    assert_eq!(set.finalize(), hex::decode_reversed(printed));

    let mut set = MuHash3072::new();
    set.insert(&element(1));
    set.insert(&element(2));
    let start = "1fa093295ea30a6a3acdc7b3f770fa538eff537528e990e2910e40bbcfd7f669";
    assert_eq!(hex::encode(&set.to_bytes()[..32]), start);
    assert_eq!(set.to_bytes()[SIZE..], small(1));

    // A state above the modulus; Core prints this one without reversing it.
    assert_eq!(
        hex::encode(&state(Backend::detect(), &[0xff; SIZE], &small(1)).finalize()),
        "3a31e6903aff0de9f62f9a9f7f8b861de76ce2cda09822b90014319ae5dc2271"
    );
}

/// Core's `gettxoutsetinfo muhash` of an empty set.
#[test]
fn empty_set() {
    let printed = "dd5ad2a105c2d29495f577245c357409002329b9f4d6182c0af3dc2f462555c8";
    assert_eq!(MuHash3072::new().finalize(), hex::decode_reversed(printed));
    assert_eq!(MuHash3072::default().finalize(), sha256(&small(1)));
}

/// Numbers at the edges of limbs, of the modulus and of the representation.
fn edges() -> Vec<Number> {
    let mut numbers = vec![[0xff; SIZE], [0x80; SIZE], [0x01; SIZE]];
    for value in [0, 1, 2, 3, FOLD - 1, FOLD, FOLD + 1, u64::MAX] {
        numbers.push(small(value));
    }
    for value in [1, 2, FOLD - 1, FOLD, FOLD + 1, FOLD + 2, 2 * FOLD, u64::MAX] {
        numbers.push(below_top(value));
    }
    // Single bits around the limb boundaries of 52, 62 and 64 bits and at the top.
    for bit in [51, 52, 53, 61, 62, 63, 64, 65, 415, 416, 1535, 1536, 3037, 3038, 3070, 3071] {
        let mut number = [0; SIZE];
        number[bit / 8] = 1 << (bit % 8);
        numbers.push(number);
    }
    numbers
}

#[test]
fn edge_products() {
    let edges = edges();
    for a in &edges {
        for b in &edges {
            check_product(a, b);
        }
    }
}

/// Zero has no inverse; as in Core the quotient is then zero, and the loop terminates.
#[test]
fn zero_denominator() {
    for zero in [small(0), below_top(FOLD)] {
        assert_eq!(state(Backend::detect(), &small(5), &zero).finalize(), sha256(&small(0)));
    }
}

#[test]
fn states_continue() {
    let mut whole = MuHash3072::new();
    whole.insert(b"one");
    whole.remove(b"two");
    let mut resumed = MuHash3072::from_bytes(&whole.to_bytes());
    whole.insert(b"three");
    resumed.insert(b"three");
    assert_eq!(whole.finalize(), resumed.finalize());
}

/// Numbers with long runs of equal bits, which stress carries.
fn runs() -> impl Strategy<Value = Number> {
    vec((any::<u8>(), 1usize..100), 1..40).prop_map(|runs| {
        let bytes = runs.into_iter().flat_map(|(byte, length)| {
            let byte = if byte < 100 {
                0
            } else if byte < 200 {
                0xff
            } else {
                byte
            };
            std::iter::repeat_n(byte, length)
        });
        let mut number = [0; SIZE];
        for (to, from) in number.iter_mut().zip(bytes) {
            *to = from;
        }
        number
    })
}

fn random() -> impl Strategy<Value = Number> {
    vec(uniform32(any::<u8>()), 12)
        .prop_map(|rows| *rows.as_flattened().first_chunk().expect("12 rows"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn products(a in prop_oneof![runs(), random()], b in prop_oneof![runs(), random()]) {
        check_product(&a, &b);
    }

    /// The hash depends on the remaining elements only, not on order and partition.
    #[test]
    fn order_and_parts(steps in vec((any::<bool>(), 0u8..6), 0..24), cut in 0usize..24) {
        let apply = |set: &mut MuHash3072, steps: &[(bool, u8)]| {
            for &(insert, value) in steps {
                if insert { set.insert(&[value]) } else { set.remove(&[value]) }
            }
        };
        let mut forward = MuHash3072::new();
        apply(&mut forward, &steps);

        let (left, right) = steps.split_at(cut.min(steps.len()));
        let (mut parts, mut other) = (MuHash3072::new(), MuHash3072::new());
        apply(&mut parts, right);
        apply(&mut other, left);
        parts.combine(&other);

        let mut net = MuHash3072::new();
        for value in 0..6 {
            let count = |wanted| steps.iter().filter(|&&step| step == (wanted, value)).count();
            for _ in count(false)..count(true) {
                net.insert(&[value]);
            }
            for _ in count(true)..count(false) {
                net.remove(&[value]);
            }
        }
        let expected = net.finalize();
        assert_eq!(forward.finalize(), expected);
        assert_eq!(parts.finalize(), expected);
    }
}
