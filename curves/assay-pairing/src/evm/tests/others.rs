//! Precompiles without pairings.

use crate::evm::{
    MODEXP_BYTES_MAX, ModexpRules, PrecompileError, blake2f, blake2f_gas, identity, identity_gas,
    modexp, modexp_gas, p256_verify, point_evaluation, ripemd160, ripemd160_gas, sha256,
    sha256_gas,
};
use crate::kzg::{KzgError, Settings};

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| {
        let text = core::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(text, 16).expect("hexadecimal")
    };
    digits.map(byte).collect()
}

#[test]
fn hashes() {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(sha256(b"").to_vec(), hex(empty));
    let abc = "0000000000000000000000008eb208f7e05d987a9b044a8e98c6b087f15a0bfc";
    assert_eq!(ripemd160(b"abc").to_vec(), hex(abc));
    assert_eq!(identity(b"abc"), b"abc");
    assert_eq!((sha256_gas(0), sha256_gas(32), sha256_gas(33)), (60, 72, 84));
    assert_eq!((ripemd160_gas(1), identity_gas(64)), (720, 21));
}

/// Lengths of base, exponent and modulus, then the numbers.
fn call(lengths: [u64; 3], numbers: &[u8]) -> Vec<u8> {
    let word = |length: u64| [&[0; 24][..], &length.to_be_bytes()].concat();
    [lengths.map(word).concat(), numbers.to_vec()].concat()
}

/// EIP-198.
#[test]
fn powers() {
    let prime = "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f";
    let below = "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2e";
    // 3^(p - 1) mod p = 1, and 0^(p - 1) mod p = 0.
    let input = call([1, 32, 32], &hex(&["03", below, prime].concat()));
    let mut one = vec![0; 32];
    one[31] = 1;
    assert_eq!(modexp(&input), Ok(one));
    assert_eq!(modexp_gas(&input, ModexpRules::Byzantium), 13_056);
    assert_eq!(modexp_gas(&input, ModexpRules::Berlin), 1_360);
    assert_eq!(modexp_gas(&input, ModexpRules::Osaka), 4_080);
    let input = call([0, 32, 32], &hex(&[below, prime].concat()));
    assert_eq!(modexp(&input), Ok(vec![0; 32]));
    // Missing bytes are zeros; the modulus here is 0x80 and 31 zeros.
    let input = call([1, 2, 32], &[3, 0xff, 0xff, 0x80]);
    let right = "3b01b01ac41f2d6e917c6d6a221ce793802469026d9ab7578fa2e79e4da6aaab";
    assert_eq!(modexp(&input), Ok(hex(right)));
    assert_eq!(modexp(&call([1, 1, 0], &[3, 4])), Ok(vec![]));
    // Modulo zero and modulo one; anything to the zero.
    assert_eq!(modexp(&call([1, 1, 1], &[3, 4, 0])), Ok(vec![0]));
    assert_eq!(modexp(&call([1, 1, 1], &[3, 0, 1])), Ok(vec![0]));
    assert_eq!(modexp(&call([1, 1, 2], &[0, 0, 0, 7])), Ok(vec![0, 1]));
    assert_eq!(modexp(&call([1, 0, 1], &[0, 7])), Ok(vec![1]));
    // Lengths beyond any memory.
    let long = MODEXP_BYTES_MAX as u64 + 1;
    for lengths in [[long, 1, 1], [1, long, 1], [1, 1, long]] {
        assert_eq!(modexp(&call(lengths, &[])), Err(PrecompileError::NumberLength(long)));
    }
    assert_eq!(modexp(&[0xff; 96]), Err(PrecompileError::NumberLength(u64::MAX)));
    for rules in [ModexpRules::Byzantium, ModexpRules::Berlin, ModexpRules::Osaka] {
        assert_eq!(modexp_gas(&[0xff; 96], rules), u64::MAX, "{rules:?}");
    }
    assert_eq!(modexp(&[]), Ok(vec![]));
    assert_eq!(modexp_gas(&[], ModexpRules::Osaka), 500);
}

/// EIP-152, test vectors 4 to 7.
#[test]
fn blake2b() {
    let rest = "48c9bdf267e6096a3ba7ca8485ae67bb2bf894fe72f36e3cf1361d5f3af54fa5d182e6ad7f520e511f6c3e2b8c68059b6bbd41fbabd9831f79217e1319cde05b";
    let message = ["6162630000000000", &"0".repeat(240)].concat();
    let input = |rounds: &str, flag: &str| {
        hex(&[rounds, rest, &message, "03000000000000000000000000000000", flag].concat())
    };
    for (rounds, flag, right) in [
        (
            "00000000",
            "01",
            "08c9bcf367e6096a3ba7ca8485ae67bb2bf894fe72f36e3cf1361d5f3af54fa5d282e6ad7f520e511f6c3e2b8c68059b9442be0454267ce079217e1319cde05b",
        ),
        (
            "0000000c",
            "01",
            "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d17d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923",
        ),
        (
            "0000000c",
            "00",
            "75ab69d3190a562c51aef8d88f1c2775876944407270c42c9844252c26d2875298743e7f6d5ea2f2d3e8d226039cd31b4e426ac4f2d3d666a610c2116fde4735",
        ),
        (
            "00000001",
            "01",
            "b63a380cb2897d521994a85234ee2c181b5f844d2c624c002677e9703449d2fba551b3a8333bcdf5f2f7e08993d53923de3d64fcc68c034e717b9293fed7a421",
        ),
    ] {
        assert_eq!(blake2f(&input(rounds, flag)).map(Vec::from), Ok(hex(right)), "{rounds}");
    }
    assert_eq!(blake2f_gas(&input("0000000c", "01")), Some(12));
    assert_eq!(blake2f(&input("0000000c", "02")), Err(PrecompileError::Flag(2)));
    let short = PrecompileError::Length { bytes: 0, unit: 213 };
    assert_eq!((blake2f(&[]), blake2f_gas(&[])), (Err(short), None));
}

/// The first of EIP-7951's vectors, and the same with changes.
#[test]
fn signatures_over_p256() {
    let input = hex(
        "4cee90eb86eaa050036147a12d49004b6b9c72bd725d39d4785011fe190f0b4da73bd4903f0ce3b639bbbf6e8e80d16931ff4bcf5993d58468e8fb19086e8cac36dbcd03009df8c59286b162af3bd7fcc0450c9aa81be5d10d312af6c66b1d604aebd3099c618202fcfe16ae7770b0c49ab5eadf74b754204a3bb6060e44eff37618b065f9832de4ca6ca971a7a1adc826d0f7c00181a5fb2ddf79ae00b4e10e",
    );
    assert!(p256_verify(&input));
    for place in 0..input.len() {
        let mut changed = input.clone();
        changed[place] ^= 1;
        assert!(!p256_verify(&changed), "{place}");
    }
    // r, s and coordinates that are zero or too large; lengths.
    for word in 1..5 {
        for fill in [0, 0xff] {
            let mut changed = input.clone();
            changed[32 * word..][..32].fill(fill);
            assert!(!p256_verify(&changed), "{word}, {fill}");
        }
    }
    assert!(!p256_verify(&input[1..]) && !p256_verify(&[&input[..], &[0]].concat()));
    assert!(!p256_verify(&[0; 160]));
}

/// c-kzg-4844, `verify_kzg_proof_case_correct_proof_4_4`.
#[test]
fn a_point_evaluation() {
    let settings = Settings::ethereum();
    let commitment = hex(
        "8f59a8d2a1a625a17f3fea0fe5eb8c896db3764f3185481bc22f91b4aaffcca25f26936857bc3a7c2539ea8ec3a952b7",
    );
    let z = hex("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000000");
    let y = hex("1522a4a7f34e1ea350ae07c29c96c7e79655aa926122e95fe69fcbd932ca49e9");
    let proof = hex(
        "a62ad71d14c5719385c0686f1871430475bf3a00f0aa3f7b8dd99a9abc2160744faf0070725e00b60ad9a026a15b1a8c",
    );
    let mut hash = assay_hash::sha256(&commitment).to_vec();
    hash[0] = 1;
    let input = [hash, z, y, commitment, proof].concat();
    let right = [
        "0000000000000000000000000000000000000000000000000000000000001000",
        "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001",
    ];
    assert_eq!(point_evaluation(&settings, &input).map(Vec::from), Ok(hex(&right.concat())));
    let with = |place: usize, byte: u8| {
        let mut changed = input.clone();
        changed[place] = byte;
        point_evaluation(&settings, &changed)
    };
    assert_eq!(with(0, 2), Err(PrecompileError::CommitmentHash));
    assert_eq!(with(95, 0), Err(PrecompileError::Proof));
    assert_eq!(with(32, 0xff), Err(PrecompileError::Kzg(KzgError::Number)));
    let short = PrecompileError::Length { bytes: 191, unit: 192 };
    assert_eq!(point_evaluation(&settings, &input[1..]), Err(short));
}
