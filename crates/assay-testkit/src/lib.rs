//! Test helpers: transactions and blocks, seeded choices, hex text, the test data folder.
//!
//! Only a dev-dependency of other crates: `cargo xtask tidy` checks it. Everything panics on unexpected input, because that input
//! is part of a test.
//!
//! ```
//! use assay_testkit::chain::{TxBuilder, coinbase};
//! let paid = coinbase(200, 5_000_000_000).build();
//! let spent = TxBuilder::new(2).spend(assay_wire::OutPoint { txid: paid.view().txid(), vout: 0 }, &[], u32::MAX);
//! assert_eq!(spent.output(1_000, &[0x51]).build().view().output(0).value, 1_000);
//! ```
//!
//! Deliberately absent: consensus rules. `assay-hash` and `assay-secp` do not use this crate, so that their packages with their
//! tests are self-contained.

pub mod chain;

/// True if `ASSAY_TEST_LONG` is set, as `.ci/run` does. Otherwise sweeps test a part of their steps (`docs/testing.md`).
pub fn is_long() -> bool {
    std::env::var_os("ASSAY_TEST_LONG").is_some()
}

/// Test data outside the repository.
pub mod data {
    /// The folder in `ASSAY_TEST_DATA`, if set.
    pub fn folder() -> Option<std::path::PathBuf> {
        std::env::var_os("ASSAY_TEST_DATA").map(Into::into)
    }

    /// A file of that folder, or of this repository under the same name.
    pub fn find(name: &str) -> Option<Vec<u8>> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |folder: std::path::PathBuf| std::fs::read(folder.join(name)).ok();
        folder().and_then(read).or_else(|| read(root))
    }

    /// The same; if it is missing, prints that the test was skipped.
    #[expect(clippy::print_stdout, reason = "skipped tests are noted in the output")]
    pub fn read(name: &str) -> Option<Vec<u8>> {
        let bytes = find(name);
        if bytes.is_none() {
            println!("skipped: {name} is not among the test data");
        }
        bytes
    }
}

pub mod hex {
    /// Case-insensitive; panics on other text.
    pub fn decode(text: &str) -> Vec<u8> {
        try_decode(text).unwrap_or_else(|| panic!("not hexadecimal: {text}"))
    }

    pub fn array<const N: usize>(text: &str) -> [u8; N] {
        let bytes = decode(text);
        bytes.try_into().unwrap_or_else(|bytes: Vec<u8>| panic!("{} bytes, not {N}", bytes.len()))
    }

    /// `None` for other text.
    pub fn try_decode(text: &str) -> Option<Vec<u8>> {
        let mut bytes = vec![0; text.len() / 2];
        let even = text.len().is_multiple_of(2);
        (even && faster_hex::hex_decode(text.as_bytes(), &mut bytes).is_ok()).then_some(bytes)
    }

    /// Lower-case digits.
    pub fn encode(bytes: &[u8]) -> String {
        faster_hex::hex_string(bytes)
    }
}

/// Reproducible random choices.
pub mod random {
    /// `SplitMix64` (Steele, Lea and Flood, 2014), with its seed as initial state.
    #[derive(Clone, Debug)]
    pub struct Random(pub u64);

    impl Random {
        #[expect(clippy::should_implement_trait, reason = "it has no end")]
        pub fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        }

        /// A number below `limit`, which must be small: the bias is negligible for tests.
        pub fn below(&mut self, limit: usize) -> usize {
            (self.next() % limit as u64) as usize
        }

        pub fn shuffle<T>(&mut self, items: &mut [T]) {
            for last in (1..items.len()).rev() {
                items.swap(last, self.below(last + 1));
            }
        }
    }
}
