//! Hash identifiers, and the outpoint.

use std::fmt;
use std::str::FromStr;

/// A hex identifier is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdParseError {
    /// Not 64 characters long.
    #[error("an identifier has 64 hexadecimal digits, this one has {length}")]
    Length {
        /// Length in bytes.
        length: usize,
    },
    /// A character outside `0-9a-fA-F`.
    #[error("character {position} is not a hexadecimal digit")]
    Digit {
        /// Index of the first bad character.
        position: usize,
    },
}

/// Parses 64 hex digits in RPC display order: last byte first.
fn parse_reversed(text: &str) -> Result<[u8; 32], IdParseError> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return Err(IdParseError::Length { length: digits.len() });
    }
    let mut out = [0u8; 32];
    for (position, digit) in digits.iter().enumerate() {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            b'A'..=b'F' => digit - b'A' + 10,
            _ => return Err(IdParseError::Digit { position }),
        };
        let byte = &mut out[31 - position / 2];
        *byte = (*byte << 4) | value;
    }
    Ok(out)
}

fn write_reversed(bytes: &[u8; 32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0u8; 64];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes.iter().rev()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    f.pad(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// Stored in hash output order; printed and parsed reversed, as in RPC.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub [u8; 32]);

        impl $name {
            /// All zeros, which identifies nothing.
            pub const ZERO: Self = Self([0; 32]);
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_reversed(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_reversed(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = IdParseError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                parse_reversed(text).map(Self)
            }
        }
    };
}

identifier! {
    /// Hash of a transaction without its witnesses.
    Txid
}
identifier! {
    /// Hash of a transaction with its witnesses (BIP141).
    Wtxid
}
identifier! {
    /// Hash of a block header.
    BlockHash
}

/// Identifies one output of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutPoint {
    /// The transaction that contains the output.
    pub txid: Txid,
    /// Index of the output in the transaction.
    pub vout: u32,
}

impl OutPoint {
    /// The prevout of a coinbase input: zero txid, index 2^32 - 1.
    pub const NULL: Self = Self { txid: Txid::ZERO, vout: u32::MAX };

    /// True for [`OutPoint::NULL`].
    #[inline]
    pub fn is_null(&self) -> bool {
        *self == Self::NULL
    }

    /// The 36 bytes of the wire format: txid, then index, little endian.
    #[inline]
    pub fn to_bytes(self) -> [u8; 36] {
        let mut out = [0u8; 36];
        out[..32].copy_from_slice(&self.txid.0);
        out[32..].copy_from_slice(&self.vout.to_le_bytes());
        out
    }

    /// Inverse of [`OutPoint::to_bytes`].
    #[inline]
    pub fn from_bytes(bytes: &[u8; 36]) -> Self {
        let mut txid = [0u8; 32];
        txid.copy_from_slice(&bytes[..32]);
        let vout = u32::from_le_bytes([bytes[32], bytes[33], bytes[34], bytes[35]]);
        Self { txid: Txid(txid), vout }
    }
}

impl fmt::Display for OutPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.txid, self.vout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_print_reversed_and_parse_back() {
        let mut bytes = [0u8; 32];
        bytes[0] = 0x1f;
        let text = Txid(bytes).to_string();
        assert!(text.ends_with("1f") && text.starts_with("00"));
        assert_eq!(text.parse::<Txid>(), Ok(Txid(bytes)));
        assert_eq!("12".parse::<Txid>(), Err(IdParseError::Length { length: 2 }));
        let bad = format!("{}g", &text[..63]);
        assert_eq!(bad.parse::<Txid>(), Err(IdParseError::Digit { position: 63 }));
    }

    #[test]
    fn outpoint_round_trip() {
        let outpoint = OutPoint { txid: Txid([3; 32]), vout: 0x0102_0304 };
        assert_eq!(OutPoint::from_bytes(&outpoint.to_bytes()), outpoint);
        assert!(OutPoint::NULL.is_null() && !outpoint.is_null());
    }
}
