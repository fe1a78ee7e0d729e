//! `ecRecover.json` of go-ethereum is run by `curves/peer` (its example `vectors`); here is what needs no file.

use super::*;
use crate::Backend;

fn hex<const N: usize>(text: &str) -> [u8; N] {
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hexadecimal"))
}

/// The case `ValidKey` of go-ethereum.
fn valid() -> [u8; 128] {
    hex(concat!(
        "18c547e4f7b0f325ad1e56f57e26c745b09a3e503d86e00e5255ff7f715d3d1c",
        "000000000000000000000000000000000000000000000000000000000000001c",
        "73b1693892219d736caba55bdb67216e485557ea6b6af75f37096c9aa6a5a75f",
        "eeb940b1d03b21e36b0e47e79769f095fe2ab855bd91e3a38756b7d75a9c4549",
    ))
}

#[test]
fn a_published_case_and_changes_of_it() {
    let address = hex("000000000000000000000000a94f5374fce5edbc8e2a8697c15331677e6ebf0b");
    let valid = valid();
    assert_eq!(ecrecover(&valid), Some(address));
    // Bytes after the first 128 are ignored, missing ones are zero.
    assert_eq!(ecrecover(&[&valid[..], &[7; 9]].concat()), Some(address));
    for length in [0, 1, 32, 63, 64, 96, 97, 127] {
        assert_eq!(ecrecover(&valid[..length]), ecrecover(&padded(&valid[..length])));
    }
    // The other parity yields another key; any other v yields none.
    let with_v = |place: usize, v: u8| {
        let mut input = valid;
        input[32 + place] = v;
        ecrecover(&input)
    };
    assert!(with_v(31, 27).is_some_and(|other| other != address));
    for (place, v) in [(31, 0), (31, 1), (31, 26), (31, 29), (31, 30), (0, 1), (30, 1), (15, 0x80)]
    {
        assert_eq!(with_v(place, v), None, "{v} at {place}");
    }
}

#[test]
fn batch_equals_single_recovery() {
    let valid = valid();
    let mut inputs: Vec<Vec<u8>> = Vec::new();
    for place in 0..140 {
        let mut input = valid.to_vec();
        if let Some(byte) = input.get_mut(place) {
            *byte ^= 1;
        }
        inputs.push(input);
        inputs.push(valid[..place.min(128)].to_vec());
    }
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let right: Vec<_> = inputs.iter().map(|input| ecrecover(input)).collect();
    for backend in [Backend::detect(), Backend::Libsecp] {
        assert_eq!(ecrecover_all(&mut Recoverer::with_backend(backend), &inputs), right);
    }
}

/// The account of the secret key 1, whose public key is the generator.
#[test]
fn the_address_of_the_generator() {
    let key = hex(concat!(
        "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
        "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8",
    ));
    assert_eq!(address(&key), hex("7e5f4552091a69125d5dfcb7b8c2659029395bdf"));
}
