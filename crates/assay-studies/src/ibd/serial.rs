//! Blocks as values that are written and read field by field, as Bitcoin Core does it: the side "before", and the report's
//! own "after", which write the same fields to another kind of stream.

use std::io;

use assay_wire::{Block, Coin, OutPoint, Tx};

/// Where fields are written to (Core's `Stream`).
pub(super) trait Sink {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// One byte; a sink may have a shorter way for it (the report's "single byte writes").
    fn put_byte(&mut self, byte: u8) -> io::Result<()> {
        self.put(&[byte])
    }
}

/// Where fields are read from.
pub(super) trait Source {
    fn get(&mut self, buffer: &mut [u8]) -> io::Result<()>;
}

/// A vector that takes a byte as it takes anything else.
#[derive(Debug, Default)]
pub(super) struct Slices(pub(super) Vec<u8>);

impl Sink for Slices {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// A vector with a way of its own for single bytes.
#[derive(Debug, Default)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Sink for Bytes {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn put_byte(&mut self, byte: u8) -> io::Result<()> {
        self.0.push(byte);
        Ok(())
    }
}

/// Counts and forgets (Core's `SizeComputer`).
#[derive(Debug, Default)]
pub(super) struct SizeComputer(pub(super) usize);

impl Sink for SizeComputer {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0 += bytes.len();
        Ok(())
    }
}

impl Source for &[u8] {
    #[inline]
    fn get(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let (head, rest) =
            self.split_at_checked(buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(head);
        *self = rest;
        Ok(())
    }
}

/// A script that is kept without allocation up to `N` bytes (Core's `prevector` has 28, and 36 after the report).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InlineScript<const N: usize> {
    Inline { length: u8, bytes: [u8; N] },
    Heap(Box<[u8]>),
}

impl<const N: usize> InlineScript<N> {
    pub(super) fn new(script: &[u8]) -> Self {
        if script.len() > N {
            return Self::Heap(script.into());
        }
        let mut bytes = [0; N];
        bytes[..script.len()].copy_from_slice(script);
        Self::Inline { length: script.len() as u8, bytes }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Self::Heap(bytes) => bytes,
        }
    }

    fn read(source: &mut impl Source) -> io::Result<Self> {
        let length = length(source)?;
        if length > N {
            let mut bytes = vec![0; length];
            source.get(&mut bytes)?;
            return Ok(Self::Heap(bytes.into()));
        }
        let mut bytes = [0; N];
        source.get(&mut bytes[..length])?;
        Ok(Self::Inline { length: length as u8, bytes })
    }
}

/// The capacity of scripts in the report's base.
pub(super) const BASE_INLINE: usize = 28;

type Script = InlineScript<BASE_INLINE>;

/// An input with its witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnedIn {
    prevout: OutPoint,
    script_sig: Script,
    sequence: u32,
    witness: Vec<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnedOut {
    value: i64,
    script_pubkey: Script,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnedTx {
    version: i32,
    inputs: Vec<OwnedIn>,
    outputs: Vec<OwnedOut>,
    lock_time: u32,
}

/// A block whose fields are values of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnedBlock {
    header: [u8; 80],
    txs: Vec<OwnedTx>,
}

impl OwnedBlock {
    pub(super) fn of(block: &Block) -> Self {
        let header = block.header().to_bytes();
        Self { header, txs: block.txs().map(OwnedTx::of).collect() }
    }

    pub(super) fn write(&self, sink: &mut impl Sink) -> io::Result<()> {
        // Six fields, of which the two hashes are the long ones.
        for (from, to) in [(0, 4), (4, 36), (36, 68), (68, 72), (72, 76), (76, 80)] {
            sink.put(&self.header[from..to])?;
        }
        put_size(sink, self.txs.len())?;
        self.txs.iter().try_for_each(|tx| tx.write(sink))
    }

    pub(super) fn read(source: &mut impl Source) -> io::Result<Self> {
        let mut header = [0; 80];
        for (from, to) in [(0, 4), (4, 36), (36, 68), (68, 72), (72, 76), (76, 80)] {
            source.get(&mut header[from..to])?;
        }
        Ok(Self { header, txs: list(source, OwnedTx::read)? })
    }
}

impl OwnedTx {
    fn of(tx: Tx<'_>) -> Self {
        let inputs = tx.inputs().enumerate().map(|(index, input)| OwnedIn {
            prevout: input.prevout,
            script_sig: Script::new(input.script_sig),
            sequence: input.sequence,
            witness: tx.witness(index).iter().map(<[u8]>::to_vec).collect(),
        });
        let outputs = tx.outputs().map(|output| OwnedOut {
            value: output.value,
            script_pubkey: Script::new(output.script_pubkey),
        });
        Self {
            version: tx.version(),
            inputs: inputs.collect(),
            outputs: outputs.collect(),
            lock_time: tx.lock_time(),
        }
    }

    fn write(&self, sink: &mut impl Sink) -> io::Result<()> {
        let has_witness = self.inputs.iter().any(|input| !input.witness.is_empty());
        sink.put(&self.version.to_le_bytes())?;
        if has_witness {
            sink.put_byte(0)?;
            sink.put_byte(1)?;
        }
        put_size(sink, self.inputs.len())?;
        for input in &self.inputs {
            sink.put(&input.prevout.txid.0)?;
            sink.put(&input.prevout.vout.to_le_bytes())?;
            put_bytes(sink, input.script_sig.as_slice())?;
            sink.put(&input.sequence.to_le_bytes())?;
        }
        put_size(sink, self.outputs.len())?;
        for output in &self.outputs {
            sink.put(&output.value.to_le_bytes())?;
            put_bytes(sink, output.script_pubkey.as_slice())?;
        }
        if has_witness {
            for input in &self.inputs {
                put_size(sink, input.witness.len())?;
                input.witness.iter().try_for_each(|item| put_bytes(sink, item))?;
            }
        }
        sink.put(&self.lock_time.to_le_bytes())
    }

    fn read(source: &mut impl Source) -> io::Result<Self> {
        let version = i32::from_le_bytes(array(source)?);
        let mut inputs = list(source, OwnedIn::read)?;
        let has_witness = inputs.is_empty();
        if has_witness {
            let [_flag] = array(source)?;
            inputs = list(source, OwnedIn::read)?;
        }
        let outputs = list(source, |source| {
            let value = i64::from_le_bytes(array(source)?);
            Ok(OwnedOut { value, script_pubkey: Script::read(source)? })
        })?;
        if has_witness {
            for input in &mut inputs {
                input.witness = list(source, |source| {
                    let mut item = vec![0; length(source)?];
                    source.get(&mut item)?;
                    Ok(item)
                })?;
            }
        }
        Ok(Self { version, inputs, outputs, lock_time: u32::from_le_bytes(array(source)?) })
    }
}

impl OwnedIn {
    fn read(source: &mut impl Source) -> io::Result<Self> {
        let txid: [u8; 32] = array(source)?;
        let vout: [u8; 4] = array(source)?;
        let mut outpoint = [0; 36];
        outpoint[..32].copy_from_slice(&txid);
        outpoint[32..].copy_from_slice(&vout);
        let script_sig = Script::read(source)?;
        let sequence = u32::from_le_bytes(array(source)?);
        let prevout = OutPoint::from_bytes(&outpoint);
        Ok(Self { prevout, script_sig, sequence, witness: Vec::new() })
    }
}

fn array<const N: usize>(source: &mut impl Source) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    source.get(&mut bytes)?;
    Ok(bytes)
}

fn list<S: Source, T>(
    source: &mut S,
    read: impl Fn(&mut S) -> io::Result<T>,
) -> io::Result<Vec<T>> {
    let count = length(source)?;
    let mut items = Vec::with_capacity(count.min(LIST_MAX));
    for _ in 0..count {
        items.push(read(source)?);
    }
    Ok(items)
}

/// Room that is made before anything was read.
const LIST_MAX: usize = 1 << 16;

fn length(source: &mut impl Source) -> io::Result<usize> {
    let [first] = array(source)?;
    Ok(match first {
        0xfd => usize::from(u16::from_le_bytes(array(source)?)),
        0xfe => u32::from_le_bytes(array(source)?) as usize,
        0xff => return Err(io::ErrorKind::InvalidData.into()),
        small => usize::from(small),
    })
}

fn put_size(sink: &mut impl Sink, size: usize) -> io::Result<()> {
    match size {
        0..0xfd => sink.put_byte(size as u8),
        0xfd..=0xffff => {
            sink.put_byte(0xfd)?;
            sink.put(&(size as u16).to_le_bytes())
        }
        _ => {
            sink.put_byte(0xfe)?;
            sink.put(&(size as u32).to_le_bytes())
        }
    }
}

fn put_bytes(sink: &mut impl Sink, bytes: &[u8]) -> io::Result<()> {
    put_size(sink, bytes.len())?;
    sink.put(bytes)
}

/// Writes undo data field by field, in the layout of our store (`docs/formats.md`), so that answers can be compared.
pub(super) fn write_undo(sink: &mut impl Sink, coins: &[Coin]) -> io::Result<()> {
    put_varint(sink, coins.len() as u64)?;
    for coin in coins {
        put_varint(sink, u64::from(coin.height) << 1 | u64::from(coin.coinbase))?;
        put_varint(sink, compressed(coin.value as u64))?;
        let script: &[u8] = &coin.script_pubkey;
        if let Some((tag, hole)) = template(script) {
            put_varint(sink, tag)?;
            sink.put(hole)?;
        } else {
            put_varint(sink, script.len() as u64 + TEMPLATES)?;
            sink.put(script)?;
        }
    }
    Ok(())
}

/// What undo data says, summed up: coins, satoshi, bytes of scripts. Scripts are read whole, the way a coin keeps them.
pub(super) fn read_undo(source: &mut impl Source) -> io::Result<Vec<(u64, u64, Script)>> {
    let count = get_varint(source)?;
    let mut coins = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let code = get_varint(source)?;
        let value = decompressed(get_varint(source)?);
        let tag = get_varint(source)?;
        let script = match SHAPES.get(tag as usize) {
            None => {
                let mut script = vec![0; (tag - TEMPLATES) as usize];
                source.get(&mut script)?;
                Script::new(&script)
            }
            Some((prefix, hole, suffix)) => {
                let mut script = [0; 35];
                let (start, end) = (prefix.len(), prefix.len() + hole);
                script[..start].copy_from_slice(prefix);
                source.get(&mut script[start..end])?;
                script[end..end + suffix.len()].copy_from_slice(suffix);
                Script::new(&script[..end + suffix.len()])
            }
        };
        coins.push((code, value, script));
    }
    Ok(coins)
}

/// Scripts that are a hash or key between fixed bytes; the tag is the index.
const SHAPES: [(&[u8], usize, &[u8]); 7] = [
    (&[0x76, 0xa9, 20], 20, &[0x88, 0xac]),
    (&[0xa9, 20], 20, &[0x87]),
    (&[33, 2], 32, &[0xac]),
    (&[33, 3], 32, &[0xac]),
    (&[0, 20], 20, &[]),
    (&[0, 32], 32, &[]),
    (&[0x51, 32], 32, &[]),
];

const TEMPLATES: u64 = SHAPES.len() as u64;

fn template(script: &[u8]) -> Option<(u64, &[u8])> {
    (0u64..).zip(SHAPES).find_map(|(tag, (prefix, bytes, suffix))| {
        let hole = script.strip_prefix(prefix)?.strip_suffix(suffix)?;
        (hole.len() == bytes).then_some((tag, hole))
    })
}

/// Core's `VARINT`, byte by byte from the most significant digit on.
fn put_varint(sink: &mut impl Sink, mut n: u64) -> io::Result<()> {
    let mut digits = [0u8; 10];
    let mut length = 0;
    loop {
        digits[length] = (n & 0x7f) as u8 | if length > 0 { 0x80 } else { 0 };
        length += 1;
        if n <= 0x7f {
            break;
        }
        n = (n >> 7) - 1;
    }
    digits[..length].iter().rev().try_for_each(|digit| sink.put_byte(*digit))
}

fn get_varint(source: &mut impl Source) -> io::Result<u64> {
    let mut n = 0u64;
    loop {
        let [byte] = array(source)?;
        n = n << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok(n);
        }
        n += 1;
    }
}

/// Core's `CompressAmount`.
fn compressed(mut n: u64) -> u64 {
    if n == 0 {
        return 0;
    }
    let mut exponent = 0;
    while n.is_multiple_of(10) && exponent < 9 {
        n /= 10;
        exponent += 1;
    }
    if exponent < 9 { 1 + (n / 10 * 9 + n % 10 - 1) * 10 + exponent } else { 1 + (n - 1) * 10 + 9 }
}

/// Its inverse.
fn decompressed(code: u64) -> u64 {
    if code == 0 {
        return 0;
    }
    let (rest, exponent) = ((code - 1) / 10, (code - 1) % 10);
    let n = if exponent < 9 { rest / 9 * 10 + rest % 9 + 1 } else { rest + 1 };
    n * 10u64.pow(exponent as u32)
}
