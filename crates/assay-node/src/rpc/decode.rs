//! Address decoding, the inverse of [`super::address`]; error texts are Bitcoin Core's (`key_io.cpp`,
//! `bech32.cpp`).

use assay_consensus::params::ChainParams;

use super::address::{
    BASE58, BECH32, BECH32M, CASH_SCRIPT_HASH, CHARSET, Destination, bech32_step, cash_step,
};
use super::lock::{pay_to_key_hash_of, pay_to_script_hash_of, witness};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Payee {
    PubkeyHash([u8; 20]),
    /// 20 bytes, or 32 on Bitcoin Cash.
    ScriptHash(Vec<u8>),
    Witness {
        version: u8,
        program: Vec<u8>,
    },
}

impl Payee {
    pub(super) fn parse(params: &ChainParams, text: &str) -> Result<Self, String> {
        let human_readable = params.address.human_readable;
        if params.cash.is_some() {
            return cash(human_readable, text)
                .or_else(|| base58_payee(params, text).ok())
                .ok_or_else(|| "Invalid address".to_owned());
        }
        let start = text.get(..human_readable.len()).unwrap_or_default();
        if start.eq_ignore_ascii_case(human_readable) {
            segwit(human_readable, text)
        } else {
            base58_payee(params, text)
        }
    }

    pub(super) fn script(&self) -> Vec<u8> {
        match self {
            Self::PubkeyHash(hash) => pay_to_key_hash_of(hash),
            Self::ScriptHash(hash) => pay_to_script_hash_of(hash),
            Self::Witness { version, program } => witness(*version, program),
        }
    }

    pub(super) fn destination(&self) -> Destination<'_> {
        match self {
            Self::PubkeyHash(hash) => Destination::PubkeyHash(hash),
            Self::ScriptHash(hash) => Destination::ScriptHash(hash),
            Self::Witness { version, program } => {
                Destination::Witness { version: *version, program }
            }
        }
    }
}

fn base58_payee(params: &ChainParams, text: &str) -> Result<Payee, String> {
    let error = |text: &str| Err(text.to_owned());
    let Some(data) = base58_check(text, 21) else {
        return error(if base58(text, 100).is_some() {
            "Invalid checksum or length of Base58 address (P2PKH or P2SH)"
        } else {
            "Invalid or unsupported Segwit (Bech32) or Base58 encoding."
        });
    };
    let versions = params.address;
    match data.split_first() {
        Some((version, hash)) if *version == versions.base58_pubkey_hash && hash.len() == 20 => {
            Ok(Payee::PubkeyHash(hash.try_into().unwrap_or_default()))
        }
        Some((version, hash)) if *version == versions.base58_script_hash && hash.len() == 20 => {
            Ok(Payee::ScriptHash(hash.to_vec()))
        }
        Some((version, _))
            if [versions.base58_pubkey_hash, versions.base58_script_hash].contains(version) =>
        {
            error("Invalid length for Base58 address (P2PKH or P2SH)")
        }
        _ => error("Invalid or unsupported Base58-encoded address."),
    }
}

/// Payload of a base58check string, at most `length_max` bytes.
pub(super) fn base58_check(text: &str, length_max: usize) -> Option<Vec<u8>> {
    let mut data = base58(text, length_max + 4)?;
    let checksum = data.split_off(data.len().checked_sub(4)?);
    (assay_hash::sha256d(&data)[..4] == checksum[..]).then_some(data)
}

/// Bytes of a base58 string, at most `length_max`; surrounding spaces are ignored.
fn base58(text: &str, length_max: usize) -> Option<Vec<u8>> {
    let text = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let zeros = text.bytes().take_while(|&byte| byte == b'1').count();
    if zeros > length_max {
        return None;
    }
    // Base-256 digits, least significant first.
    let mut bytes: Vec<u8> = Vec::new();
    for c in text.bytes().skip(zeros) {
        let mut carry = BASE58.iter().position(|&digit| digit == c)? as u32;
        for byte in &mut bytes {
            carry += u32::from(*byte) * 58;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            bytes.push(carry as u8);
        }
        if zeros + bytes.len() > length_max {
            return None;
        }
    }
    Some(std::iter::repeat_n(0, zeros).chain(bytes.into_iter().rev()).collect())
}

fn segwit(expected: &str, text: &str) -> Result<Payee, String> {
    let (human_readable, mut data) = bech32(text)?;
    let sum = checksum(&human_readable, &data);
    if sum != BECH32 && sum != BECH32M {
        return Err("Invalid Bech32 checksum".to_owned());
    }
    data.truncate(data.len() - 6);
    let Some((&version, rest)) = data.split_first() else {
        return Err("Empty Bech32 data section".to_owned());
    };
    if human_readable != expected {
        return Err(format!(
            "Invalid or unsupported prefix for Segwit (Bech32) address (expected {expected}, got {human_readable})."
        ));
    }
    if version == 0 && sum != BECH32 {
        return Err("Version 0 witness address must use Bech32 checksum".to_owned());
    }
    if version != 0 && sum != BECH32M {
        return Err("Version 1+ witness address must use Bech32m checksum".to_owned());
    }
    let program =
        from_5_bits(rest).ok_or_else(|| "Invalid padding in Bech32 data section".to_owned())?;
    let bytes = program.len();
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    if version == 0 && ![20, 32].contains(&bytes) {
        return Err(format!("Invalid Bech32 v0 address program size ({bytes} {unit}), per BIP141"));
    }
    if version > 16 {
        return Err("Invalid Bech32 address witness version".to_owned());
    }
    if !(2..=40).contains(&bytes) {
        return Err(format!("Invalid Bech32 address program size ({bytes} {unit})"));
    }
    Ok(Payee::Witness { version, program })
}

/// Lowercase prefix, and values with checksum.
fn bech32(text: &str) -> Result<(String, Vec<u8>), String> {
    let error = |text: &str| Err(text.to_owned());
    let is_mixed = text.bytes().any(|c| c.is_ascii_lowercase())
        && text.bytes().any(|c| c.is_ascii_uppercase());
    if is_mixed || text.bytes().any(|c| !(33..=126).contains(&c)) {
        return error("Invalid character or mixed case");
    }
    if text.len() > 90 {
        return error("Bech32 string too long");
    }
    let Some((human_readable, values)) = text.rsplit_once('1').filter(|parts| !parts.0.is_empty())
    else {
        return error("Missing separator");
    };
    if values.len() < 6 {
        return error("Invalid separator position");
    }
    let value = |c: u8| {
        CHARSET.iter().position(|&known| known == c.to_ascii_lowercase()).map(|value| value as u8)
    };
    let Some(values) = values.bytes().map(value).collect::<Option<Vec<u8>>>() else {
        return error("Invalid Base 32 character");
    };
    Ok((human_readable.to_ascii_lowercase(), values))
}

fn checksum(human_readable: &str, values: &[u8]) -> u32 {
    let prefix = human_readable.bytes().map(|c| c >> 5);
    let prefix = prefix.chain([0]).chain(human_readable.bytes().map(|c| c & 31));
    prefix.chain(values.iter().copied()).fold(1, bech32_step)
}

/// Regroups 5-bit values into bytes; padding must be shorter than a value and zero.
fn from_5_bits(values: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(values.len() * 5 / 8);
    let (mut buffer, mut bits) = (0u32, 0);
    for &value in values {
        buffer = (buffer << 5 | u32::from(value)) & 0xfff;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push((buffer >> bits) as u8);
        }
    }
    (bits < 5 && buffer & ((1 << bits) - 1) == 0).then_some(out)
}

/// Cash address, with or without prefix.
fn cash(prefix: &str, text: &str) -> Option<Payee> {
    let lower = text.to_ascii_lowercase();
    if lower != text && text.to_ascii_uppercase() != text {
        return None;
    }
    let values = match lower.split_once(':') {
        Some((given, values)) if given == prefix => values,
        Some(_) => return None,
        None => &lower,
    };
    let value = |c: u8| CHARSET.iter().position(|&known| known == c).map(|value| value as u8);
    let values: Vec<u8> = values.bytes().map(value).collect::<Option<_>>()?;
    let covered = prefix.bytes().map(|c| c & 31).chain([0]).chain(values.iter().copied());
    if covered.fold(1, cash_step) != 1 {
        return None;
    }
    let payload = from_5_bits(&values[..values.len().checked_sub(8)?])?;
    let (version, hash) = payload.split_first()?;
    let is_script = version & 0x78 == CASH_SCRIPT_HASH;
    match (version & 0x78, version & 7, hash.len()) {
        (0, 0, 20) => Some(Payee::PubkeyHash(hash.try_into().ok()?)),
        (_, 0, 20) | (_, 3, 32) if is_script => Some(Payee::ScriptHash(hash.to_vec())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::encode;
    use super::*;

    fn chain(name: &str) -> ChainParams {
        ChainParams::by_name(name).unwrap()
    }

    #[test]
    fn addresses_round_trip() {
        for name in ["main", "regtest", "bch-regtest"] {
            let params = chain(name);
            let mut payees = vec![Payee::PubkeyHash([7; 20]), Payee::ScriptHash(vec![8; 20])];
            if params.cash.is_some() {
                payees.push(Payee::ScriptHash(vec![9; 32]));
            } else {
                for (version, length) in [(0, 20), (0, 32), (1, 32), (1, 2), (16, 40)] {
                    payees.push(Payee::Witness { version, program: vec![5; length] });
                }
            }
            for payee in payees {
                let text = encode(&params, payee.destination());
                assert_eq!(Payee::parse(&params, &text), Ok(payee.clone()), "{text}");
                if text.contains('1') && params.cash.is_none() && text.starts_with("bc") {
                    let upper = text.to_uppercase();
                    assert_eq!(Payee::parse(&params, &upper), Ok(payee));
                }
            }
        }
    }

    #[test]
    fn errors_match_core() {
        let params = chain("regtest");
        for (text, expected) in [
            ("", "Invalid checksum or length of Base58 address (P2PKH or P2SH)"),
            ("0", "Invalid or unsupported Segwit (Bech32) or Base58 encoding."),
            ("1234", "Invalid checksum or length of Base58 address (P2PKH or P2SH)"),
            (
                "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
                "Invalid or unsupported Base58-encoded address.",
            ),
            ("bcrt1", "Invalid separator position"),
            ("BCRT1q", "Invalid character or mixed case"),
            ("bcrt1sqqpl9r5c", "Version 1+ witness address must use Bech32m checksum"),
        ] {
            assert_eq!(Payee::parse(&params, text), Err(expected.to_owned()), "{text}");
        }
    }
}
