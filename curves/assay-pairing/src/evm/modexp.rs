//! Address 5: modular exponentiation of numbers of up to 1,024 bytes (EIP-198, with the bound of
//! EIP-7823), with the gas rules of three forks.

use super::PrecompileError;
use super::natural::{self, Natural};

/// Maximum length of base, exponent and modulus in bytes (EIP-7823).
pub const MODEXP_BYTES_MAX: usize = 1_024;

/// Fork whose gas rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModexpRules {
    /// EIP-198.
    Byzantium,
    /// EIP-2565.
    Berlin,
    /// EIP-7883.
    Osaka,
}

/// Parsed lengths, and the rest of the input.
struct Call<'i> {
    /// Length of the base, saturated.
    base: u64,
    exponent: u64,
    modulus: u64,
    rest: &'i [u8],
}

impl<'i> Call<'i> {
    fn new(input: &'i [u8]) -> Self {
        let length = |word: usize| {
            let bytes: [u8; 32] = super::padded(input.get(32 * word..).unwrap_or_default());
            let (high, low) = bytes.split_at(24);
            let low = low.iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
            if high.iter().all(|byte| *byte == 0) { low } else { u64::MAX }
        };
        let rest = input.get(96..).unwrap_or_default();
        Self { base: length(0), exponent: length(1), modulus: length(2), rest }
    }

    /// Bit length of the first 32 bytes of the exponent, or of all of a shorter one.
    fn head_bits(&self) -> u64 {
        let first = usize::try_from(self.base).unwrap_or(usize::MAX);
        let count = self.exponent.min(32) as usize;
        let head: [u8; 32] = super::padded(self.rest.get(first..).unwrap_or_default());
        let place = head[..count].iter().position(|byte| *byte != 0);
        place.map_or(0, |place| 8 * (count - place) as u64 - u64::from(head[place].leading_zeros()))
    }

    /// A range of the rest, padded with zeros.
    fn part(&self, first: usize, length: usize) -> Vec<u8> {
        let there = self.rest.get(first..).unwrap_or_default();
        let mut bytes = there[..there.len().min(length)].to_vec();
        bytes.resize(length, 0);
        bytes
    }
}

/// Gas of [`modexp`] for an input, saturated.
pub fn modexp_gas(input: &[u8], rules: ModexpRules) -> u64 {
    let call = Call::new(input);
    let length = u128::from(call.base.max(call.modulus));
    let words = length.div_ceil(8);
    let (complexity, per_byte, divisor, least) = match rules {
        ModexpRules::Byzantium => {
            let complexity = match length {
                0..=64 => length * length,
                65..=1_024 => length * length / 4 + 96 * length - 3_072,
                _ => (length * length / 16).saturating_add(480 * length - 199_680),
            };
            (complexity, 8, 20, 0)
        }
        ModexpRules::Berlin => (words * words, 8, 3, 200),
        ModexpRules::Osaka if length <= 32 => (16, 16, 1, 500),
        ModexpRules::Osaka => (2 * words * words, 16, 1, 500),
    };
    let head = u128::from(call.head_bits().saturating_sub(1));
    let iterations = head + per_byte * u128::from(call.exponent.saturating_sub(32));
    let gas = complexity.saturating_mul(iterations.max(1)) / divisor;
    u64::try_from(gas).unwrap_or(u64::MAX).max(least)
}

/// `base^exponent mod modulus` in as many bytes as the modulus has; zero modulo zero. Input: the
/// three lengths in 32 bytes each, then the numbers, padded with zeros.
///
/// # Errors
/// If a length is above [`MODEXP_BYTES_MAX`].
pub fn modexp(input: &[u8]) -> Result<Vec<u8>, PrecompileError> {
    let call = Call::new(input);
    if let Some(bytes) = [call.base, call.exponent, call.modulus]
        .into_iter()
        .find(|length| *length > MODEXP_BYTES_MAX as u64)
    {
        return Err(PrecompileError::NumberLength(bytes));
    }
    let [base, exponent, modulus] =
        [call.base, call.exponent, call.modulus].map(|length| length as usize);
    let mut result = vec![0; modulus];
    let number = Natural::from_be_bytes(&call.part(base + exponent, modulus));
    if !number.is_zero() {
        let power = natural::power(
            &Natural::from_be_bytes(&call.part(0, base)),
            &call.part(base, exponent),
            &number,
        );
        power.write_be_bytes(&mut result);
    }
    Ok(result)
}
