//! File format of a block's spent outputs: for each input in block order, without the coinbase, the value as eight bytes, the
//! length of the script as four (both little endian), the script.

use assay_wire::TxOut;

/// A file of spent outputs does not match its block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrevoutsError {
    /// The file ends too early.
    #[error(
        "it ends too early: the block spends {inputs} outputs, number {} needs {needed} bytes at offset {offset}, \
         {left} are left",
        index + 1
    )]
    Short {
        inputs: usize,
        /// Index of the first incomplete output.
        index: usize,
        /// Offset of that output.
        offset: usize,
        /// Bytes required for its value, length and script.
        needed: u64,
        /// Bytes from `offset` to the end.
        left: usize,
    },
    /// Bytes follow the last output.
    #[error(
        "it is too long: the {inputs} outputs that the block spends end at offset {offset}, {left} bytes follow"
    )]
    Long {
        inputs: usize,
        /// End of the last output.
        offset: usize,
        /// Bytes after it.
        left: usize,
    },
}

/// Reads the outputs spent by the `inputs` inputs of a block; the layout is at the top of this file.
///
/// A value above `i64::MAX` becomes negative, which every rule rejects.
///
/// # Errors
/// The number of bytes does not match.
pub fn parse_prevouts(bytes: &[u8], inputs: usize) -> Result<Vec<TxOut<'_>>, PrevoutsError> {
    // A wrong count must not determine the allocated memory.
    let mut outputs = Vec::with_capacity(inputs.min(bytes.len() / HEAD_BYTES));
    let mut offset = 0;
    for index in 0..inputs {
        let rest = &bytes[offset..];
        let short =
            |needed| PrevoutsError::Short { inputs, index, offset, needed, left: rest.len() };
        let Some((head, rest)) = rest.split_first_chunk::<HEAD_BYTES>() else {
            return Err(short(HEAD_BYTES as u64));
        };
        let [v0, v1, v2, v3, v4, v5, v6, v7, l0, l1, l2, l3] = *head;
        let script_bytes = u32::from_le_bytes([l0, l1, l2, l3]);
        let Some(script_pubkey) = rest.get(..script_bytes as usize) else {
            return Err(short(HEAD_BYTES as u64 + u64::from(script_bytes)));
        };
        let value = i64::from_le_bytes([v0, v1, v2, v3, v4, v5, v6, v7]);
        outputs.push(TxOut { value, script_pubkey });
        offset += HEAD_BYTES + script_pubkey.len();
    }
    match bytes.len() - offset {
        0 => Ok(outputs),
        left => Err(PrevoutsError::Long { inputs, offset, left }),
    }
}

const HEAD_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Vec<u8> {
        let mut bytes = 5u64.to_le_bytes().to_vec();
        bytes.extend([2, 0, 0, 0, 0x51, 0x52]);
        bytes.extend(7u64.to_le_bytes());
        bytes.extend([0; 4]);
        bytes
    }

    #[test]
    fn reads_written_prevouts() {
        let bytes = two();
        let outputs = parse_prevouts(&bytes, 2).unwrap();
        assert_eq!((outputs[0].value, outputs[0].script_pubkey), (5, &[0x51, 0x52][..]));
        assert_eq!((outputs[1].value, outputs[1].script_pubkey), (7, &[][..]));
        assert_eq!(parse_prevouts(&[], 0).unwrap().len(), 0);
    }

    #[test]
    fn reports_missing_and_extra_bytes() {
        let bytes = two();
        let short = |index, offset, needed, left| {
            Err(PrevoutsError::Short { inputs: 2, index, offset, needed, left })
        };
        let check = |cut: usize| parse_prevouts(&bytes[..cut], 2).map(|_| ());
        assert_eq!(check(25), short(1, 14, 12, 11));
        assert_eq!(check(13), short(0, 0, 14, 13));
        assert_eq!(check(0), short(0, 0, 12, 0));
        assert_eq!(
            parse_prevouts(&bytes, 1).map(|_| ()),
            Err(PrevoutsError::Long { inputs: 1, offset: 14, left: 12 })
        );
        assert_eq!(
            parse_prevouts(&bytes, 3).unwrap_err().to_string(),
            "it ends too early: the block spends 3 outputs, number 3 needs 12 bytes at offset 26, 0 are left"
        );
    }
}
