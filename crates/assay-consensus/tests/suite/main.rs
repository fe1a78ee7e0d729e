//! Difficulty, median time and time warps on chains of random headers, against an oracle.
//!
//! The oracle follows the words of the rules: BIP-0094 for testnet4, BIP-0113 for the median, and for
//! the retarget what Bitcoin has done since 2009. It computes on plain lists of base-256 digits with
//! schoolbook arithmetic and shares nothing with the code under test.

mod oracle;

use assay_consensus::chain::{Ancestors, HeaderFacts};
use assay_consensus::header::contextual_check_header;
use assay_consensus::params::ChainParams;
use assay_consensus::pow::{block_work, decode_compact, encode_compact, next_work_required};
use assay_consensus::uint256::U256;
use assay_wire::{BlockHash, Header};
use proptest::prelude::*;

use oracle::{Network, Number};

/// The timestamps of a chain: a pace per period, and other steps at single blocks.
#[derive(Clone, Debug)]
struct Clock {
    /// Mean seconds per block, one for each period.
    paces: Vec<u32>,
    /// Every `every`-th block has one of `steps` instead.
    every: usize,
    /// Far ahead, or back, seconds.
    steps: Vec<i32>,
}

fn clocks() -> impl Strategy<Value = Clock> {
    let pace = prop_oneof![1u32..100, 100u32..1000, Just(600u32), 1000u32..5000];
    let step = prop_oneof![
        Just(1200),
        Just(1201),
        Just(-600),
        Just(-601),
        -3000..0i32,
        0..100_000i32,
        Just(0),
    ];
    (prop::collection::vec(pace, 4), 2usize..400, prop::collection::vec(step, 1..12))
        .prop_map(|(paces, every, steps)| Clock { paces, every, steps })
}

impl Clock {
    fn step(&self, height: usize) -> i64 {
        if height.is_multiple_of(self.every) {
            i64::from(self.steps[height / self.every % self.steps.len()])
        } else {
            i64::from(self.paces[height / 2016 % self.paces.len()])
        }
    }
}

/// Targets between very hard and the limit.
fn first_bits() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(0x1d00_ffff_u32),
        Just(0x1c05_a3f4),
        (0x10u32..0x1d, 0x8000u32..0x7f_ffff).prop_map(|(size, mantissa)| size << 24 | mantissa),
    ]
}

/// Grows a chain from `bits` by the rules of `name`, and compares every target on the way.
fn grow(name: &str, network: &Network, bits: u32, clock: &Clock, length: usize) {
    let params = ChainParams::by_name(name).expect("a known chain");
    let mut headers = vec![HeaderFacts { hash: BlockHash::ZERO, time: 1_400_000_000, bits }];
    for height in 1..length {
        let chain = headers.as_slice();
        let last = chain[height - 1];
        let mtp = oracle::median_time(chain.iter().map(|header| header.time));
        assert_eq!(chain.median_time_past_at(height as u32 - 1), mtp);
        let time = (i64::from(last.time) + clock.step(height)).max(i64::from(mtp) + 1) as u32;
        let required = next_work_required(&params, chain, time);
        assert_eq!(required, network.next_bits(chain, time), "{name} height {height}");
        // The verdict of the header rules on this block, had it carried the right target.
        let header = Header {
            version: 4,
            prev_block: BlockHash::ZERO,
            merkle_root: [0; 32],
            time,
            bits: required,
            nonce: 0,
        };
        let now = i64::from(time) - 7200;
        let verdict = contextual_check_header(&params, chain, &header, now);
        let warped = network.is_time_warp(chain, time);
        assert_eq!(verdict.is_err(), warped, "{name} height {height}: {verdict:?}");
        let time = if warped { last.time - 600 } else { time };
        let bits = next_work_required(&params, chain, time);
        headers.push(HeaderFacts { hash: BlockHash::ZERO, time, bits });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn main_retargets_like_the_oracle(clock in clocks(), bits in first_bits()) {
        grow("main", &Network::MAIN, bits, &clock, 3 * 2016 + 2);
    }

    #[test]
    fn testnet3_retargets_like_the_oracle(clock in clocks(), bits in first_bits()) {
        grow("test", &Network::TESTNET3, bits, &clock, 3 * 2016 + 2);
    }

    #[test]
    fn testnet4_retargets_like_the_oracle(clock in clocks(), bits in first_bits()) {
        grow("testnet4", &Network::TESTNET4, bits, &clock, 3 * 2016 + 2);
    }

    #[test]
    fn signet_retargets_like_the_oracle(clock in clocks(), bits in first_bits()) {
        grow("signet", &Network::SIGNET, bits, &clock, 2 * 2016 + 2);
    }

    #[test]
    fn regtest_never_changes(clock in clocks()) {
        for name in ["regtest", "bch-regtest"] {
            grow(name, &Network::REGTEST, 0x207f_ffff, &clock, 300);
        }
    }
}

proptest! {
    #[test]
    fn compact_targets_read_like_the_oracle(bits: u32) {
        let decoded = decode_compact(bits);
        let (number, negative) = oracle::read_compact(bits);
        let fits = number.bytes() <= 32;
        prop_assert_eq!(decoded.overflow, !fits);
        prop_assert_eq!(decoded.negative, negative);
        if fits {
            prop_assert_eq!(decoded.target.to_le_bytes().to_vec(), number.to_le_bytes(32));
            prop_assert_eq!(encode_compact(decoded.target), number.write_compact());
        }
    }

    #[test]
    fn any_number_is_written_like_the_oracle(bytes: [u8; 32], length in 0usize..=32) {
        let mut bytes = bytes;
        bytes[length..].fill(0);
        let number = Number::from_le_bytes(&bytes);
        prop_assert_eq!(encode_compact(U256::from_le_bytes(&bytes)), number.write_compact());
    }

    /// The work w of a target t is the largest number with w (t + 1) <= 2^256.
    #[test]
    fn work_is_the_quotient(bits in 0x0300_0001u32..0x2100_0000) {
        let (target, negative) = oracle::read_compact(bits);
        prop_assume!(!negative && target.bytes() > 0);
        let work = Number::from_le_bytes(&block_work(bits).to_le_bytes());
        let above = target.plus_one();
        prop_assert!(work.times(&above) <= Number::power_of_256(32));
        prop_assert!(work.plus_one().times(&above) > Number::power_of_256(32));
    }
}
