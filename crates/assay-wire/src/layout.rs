//! The single parsing pass, which records the offsets of all parts of a transaction.

use crate::Encoding;
use crate::error::{ParseError, ParseErrorKind};
use crate::reader::Reader;

/// Smallest input: outpoint, empty script, sequence.
pub(crate) const INPUT_BYTES_MIN: usize = 41;
/// Smallest output: value, empty script.
pub(crate) const OUTPUT_BYTES_MIN: usize = 9;
/// Smallest transaction: version, two counts, lock time.
pub(crate) const TX_BYTES_MIN: usize = 10;

/// Offsets of one transaction, relative to the parsed bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TxLayout {
    pub(crate) start: u32,
    /// One past the last byte.
    pub(crate) end: u32,
    /// Offset of the input count: `start + 4`, or `start + 6` after a witness marker.
    pub(crate) body: u32,
    /// Offset of the output count.
    pub(crate) output_count_at: u32,
    /// One past the last output: the witnesses, if there are any, else the lock time.
    pub(crate) body_end: u32,
    /// Index of the first input in [`Offsets::inputs`], and the number of inputs.
    pub(crate) first_input: u32,
    pub(crate) input_count: u32,
    pub(crate) first_output: u32,
    pub(crate) output_count: u32,
    /// Index of the first witness in [`Offsets::witnesses`]; meaningless without witnesses.
    pub(crate) first_witness: u32,
}

impl TxLayout {
    #[inline]
    pub(crate) fn has_witness(&self) -> bool {
        self.body_end + 4 != self.end
    }
}

/// Start offsets of the inputs, outputs and witnesses of all parsed transactions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offsets {
    pub(crate) inputs: Vec<u32>,
    pub(crate) outputs: Vec<u32>,
    pub(crate) witnesses: Vec<u32>,
}

impl Offsets {
    /// Capacity for a typical block of `bytes` bytes: about a tenth of their memory.
    pub(crate) fn for_block(bytes: usize) -> Self {
        let room = || Vec::with_capacity(bytes / BYTES_PER_OFFSET);
        Self { inputs: room(), outputs: room(), witnesses: room() }
    }
}

/// An input takes some 150 bytes with its witness, and transactions have one or two outputs per input.
const BYTES_PER_OFFSET: usize = 128;

/// Parses one transaction at the reader's position and appends its offsets.
pub(crate) fn parse_tx(
    reader: &mut Reader<'_>,
    encoding: Encoding,
    offsets: &mut Offsets,
) -> Result<TxLayout, ParseError> {
    let start = reader.position();
    reader.skip(4)?;
    let mut body = reader.position();
    let mut flag = 0;
    let mut input_count = reader.count(INPUT_BYTES_MIN)?;
    // BIP144, and Core primitives/transaction.h UnserializeTransaction: an empty input vector may be the marker.
    let mut is_bare = false;
    if input_count == 0 && encoding == Encoding::Segwit {
        flag = reader.take::<1>()?[0];
        if flag == 0 {
            // No inputs and, from the byte just read, no outputs.
            is_bare = true;
        } else {
            body = reader.position();
            input_count = reader.count(INPUT_BYTES_MIN)?;
        }
    }
    let first_input = offsets.inputs.len();
    for _ in 0..input_count {
        offsets.inputs.push(reader.position() as u32);
        reader.skip(36)?;
        reader.skip_var_bytes()?;
        reader.skip(4)?;
    }
    let output_count_at = if is_bare { reader.position() - 1 } else { reader.position() };
    let output_count = if is_bare { 0 } else { reader.count(OUTPUT_BYTES_MIN)? };
    let first_output = offsets.outputs.len();
    for _ in 0..output_count {
        offsets.outputs.push(reader.position() as u32);
        reader.skip(8)?;
        reader.skip_var_bytes()?;
    }
    let body_end = reader.position();
    let first_witness = offsets.witnesses.len();
    if flag & 1 != 0 {
        parse_witnesses(reader, input_count, offsets)?;
        flag ^= 1;
    }
    if flag != 0 {
        return reader.fail(ParseErrorKind::UnknownFlag);
    }
    reader.skip(4)?;
    Ok(TxLayout {
        start: start as u32,
        end: reader.position() as u32,
        body: body as u32,
        output_count_at: output_count_at as u32,
        body_end: body_end as u32,
        first_input: first_input as u32,
        input_count: input_count as u32,
        first_output: first_output as u32,
        output_count: output_count as u32,
        first_witness: first_witness as u32,
    })
}

fn parse_witnesses(
    reader: &mut Reader<'_>,
    input_count: usize,
    offsets: &mut Offsets,
) -> Result<(), ParseError> {
    let mut is_any = false;
    for _ in 0..input_count {
        offsets.witnesses.push(reader.position() as u32);
        let items = reader.count(1)?;
        is_any |= items > 0;
        for _ in 0..items {
            reader.skip_var_bytes()?;
        }
    }
    if is_any { Ok(()) } else { reader.fail(ParseErrorKind::SuperfluousWitness) }
}

/// Offsets are 32 bits wide.
pub(crate) fn check_length(bytes: &[u8]) -> Result<(), ParseError> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(ParseError { offset: 0, kind: ParseErrorKind::TooLong });
    }
    Ok(())
}
