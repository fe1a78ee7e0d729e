//! Numbers of the script language: little endian, sign in the top bit of the last byte.

/// The reason bytes are not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumError {
    /// More bytes than the operation takes.
    TooLong,
    /// A shorter encoding exists and the shortest is required.
    NotMinimal,
}

/// Reads a number of at most `size_max` (≤ 8) bytes; with `minimal` only the shortest encoding.
#[inline]
pub(super) fn decode(bytes: &[u8], minimal: bool, size_max: usize) -> Result<i64, NumError> {
    debug_assert!(size_max <= 8);
    if bytes.len() > size_max {
        return Err(NumError::TooLong);
    }
    if minimal && !is_minimal(bytes) {
        return Err(NumError::NotMinimal);
    }
    let Some((&last, rest)) = bytes.split_last() else { return Ok(0) };
    let shift = 8 * rest.len();
    let low = rest.iter().rev().fold(0i64, |value, &byte| value << 8 | i64::from(byte));
    let magnitude = low | i64::from(last & 0x7f) << shift;
    Ok(if last & 0x80 == 0 { magnitude } else { -magnitude })
}

/// Returns `true` if no shorter encoding of the same number exists.
#[inline]
pub(super) fn is_minimal(bytes: &[u8]) -> bool {
    match bytes {
        // A last byte that only carries the sign is needed when the byte before uses its top bit.
        [.., before, 0 | 0x80] => before & 0x80 != 0,
        [0 | 0x80] => false,
        _ => true,
    }
}

/// Writes the shortest encoding; returns the buffer and how many bytes of it are used.
#[inline]
pub(super) fn encode(value: i64) -> ([u8; 9], usize) {
    let mut buffer = [0; 9];
    if value == 0 {
        return (buffer, 0);
    }
    let magnitude = value.unsigned_abs();
    buffer[..8].copy_from_slice(&magnitude.to_le_bytes());
    let mut length = 8 - magnitude.leading_zeros() as usize / 8;
    if buffer[length - 1] & 0x80 != 0 {
        length += 1;
    }
    if value < 0 {
        buffer[length - 1] |= 0x80;
    }
    (buffer, length)
}

/// The truth value of an element: false for zero of any length, also for negative zero.
#[inline]
pub(super) fn is_true(bytes: &[u8]) -> bool {
    match bytes.split_last() {
        None => false,
        Some((&last, rest)) => last & 0x7f != 0 || (rest.iter().any(|&byte| byte != 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_at_every_width() {
        let mut values = vec![0, 1, -1, 127, 128, 255, 256, 32767, 32768, i64::from(i32::MAX)];
        values
            .extend((0..62).flat_map(|shift| [(1i64 << shift) - 1, 1 << shift, (1 << shift) + 1]));
        for value in values.clone() {
            values.push(-value);
        }
        for value in values {
            let (buffer, length) = encode(value);
            assert!(is_minimal(&buffer[..length]));
            assert_eq!(decode(&buffer[..length], true, 8), Ok(value), "{value}");
        }
    }

    #[test]
    fn published_encodings() {
        for (value, bytes) in [
            (-1, &[0x81u8][..]),
            (127, &[0x7f]),
            (-127, &[0xff]),
            (128, &[0x80, 0]),
            (-128, &[0x80, 0x80]),
            (-255, &[0xff, 0x80]),
            (2_147_483_647, &[0xff, 0xff, 0xff, 0x7f]),
            (-2_147_483_648, &[0, 0, 0, 0x80, 0x80]),
        ] {
            let (buffer, length) = encode(value);
            assert_eq!(&buffer[..length], bytes);
        }
    }

    #[test]
    fn refuses_long_and_padded_numbers() {
        assert_eq!(decode(&[1, 2, 3, 4, 5], false, 4), Err(NumError::TooLong));
        assert_eq!(decode(&[1, 0], true, 4), Err(NumError::NotMinimal));
        assert_eq!(decode(&[0x80], true, 4), Err(NumError::NotMinimal));
        assert_eq!(decode(&[1, 0], false, 4), Ok(1));
        assert_eq!(decode(&[0, 0, 0x80], false, 4), Ok(0));
    }

    #[test]
    fn truth() {
        for (bytes, expected) in [
            (&[][..], false),
            (&[0], false),
            (&[0x80], false),
            (&[0, 0x80], false),
            (&[0x80, 0], true),
            (&[0x81], true),
            (&[0, 1], true),
        ] {
            assert_eq!(is_true(bytes), expected, "{bytes:?}");
        }
    }
}
