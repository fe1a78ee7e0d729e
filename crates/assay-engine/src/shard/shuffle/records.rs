//! What the steps of a shuffle leave each other: records of bytes, coins encoded as in undo data.

use std::io::{self, Read};

use assay_hash::SipHash13;
use assay_wire::{OutPoint, Txid};

/// An output, or a coin that is left over: outpoint, height, length of the coin, coin.
pub(super) const OUTPUT_HEAD_BYTES: usize = OUTPOINT_BYTES + 4 + 2;
/// Outpoint, height, index of the input among those of its block, the coinbase left out.
pub(super) const SPEND_BYTES: usize = OUTPOINT_BYTES + 8;
/// A spent coin: height of the block that spends it, index of the input, length of the coin, coin.
pub(super) const CLAIM_HEAD_BYTES: usize = 4 + 4 + 2;
pub(super) const OUTPOINT_BYTES: usize = 36;
/// A coin has a height, an amount and a script, of a byte each at least.
pub(super) const OUTPUT_BYTES_MIN: usize = OUTPUT_HEAD_BYTES + 3;
/// The longest script that can be spent has 10,000 bytes (`is_unspendable`), numbers before it 10 bytes each.
pub(super) const COIN_BYTES_MAX: usize = 10_000 + 40;
pub(super) const OUTPUT_BYTES_MAX: usize = OUTPUT_HEAD_BYTES + COIN_BYTES_MAX;
pub(super) const CLAIM_BYTES_MAX: usize = CLAIM_HEAD_BYTES + COIN_BYTES_MAX;

/// An input.
pub(super) type Spend = [u8; SPEND_BYTES];

pub(super) fn write_output(
    out: &mut Vec<u8>,
    outpoint: &[u8; OUTPOINT_BYTES],
    height: u32,
    coin: &[u8],
) {
    out.extend_from_slice(outpoint);
    out.extend_from_slice(&height.to_le_bytes());
    write_coin(out, coin);
}

pub(super) fn write_claim(out: &mut Vec<u8>, (height, input): (u32, u32), coin: &[u8]) {
    out.extend_from_slice(&height.to_le_bytes());
    out.extend_from_slice(&input.to_le_bytes());
    write_coin(out, coin);
}

fn write_coin(out: &mut Vec<u8>, coin: &[u8]) {
    debug_assert!(coin.len() <= COIN_BYTES_MAX);
    out.extend_from_slice(&(coin.len() as u16).to_le_bytes());
    out.extend_from_slice(coin);
}

pub(super) fn spend((height, input): (u32, u32), outpoint: &[u8; OUTPOINT_BYTES]) -> Spend {
    let mut out = [0; SPEND_BYTES];
    out[..OUTPOINT_BYTES].copy_from_slice(outpoint);
    out[OUTPOINT_BYTES..OUTPOINT_BYTES + 4].copy_from_slice(&height.to_le_bytes());
    out[OUTPOINT_BYTES + 4..].copy_from_slice(&input.to_le_bytes());
    out
}

/// Height and index of an input.
pub(super) fn place_of(spend: &Spend) -> (u32, u32) {
    (word(spend, OUTPOINT_BYTES), word(spend, OUTPOINT_BYTES + 4))
}

pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// An outpoint as it is hashed, and as it stands in records.
pub(super) fn outpoint_bytes(txid: &Txid, vout: u32) -> [u8; OUTPOINT_BYTES] {
    let mut out = [0; OUTPOINT_BYTES];
    out[..32].copy_from_slice(&txid.0);
    out[32..].copy_from_slice(&vout.to_le_bytes());
    out
}

pub(super) fn outpoint_of(bytes: &[u8]) -> OutPoint {
    let mut txid = Txid([0; 32]);
    txid.0.copy_from_slice(&bytes[..32]);
    OutPoint { txid, vout: word(bytes, 32) }
}

/// Where outpoints go. The key is random, so that nobody can make blocks whose outpoints all go to one partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placing(SipHash13);

impl Placing {
    pub(super) fn new(key: &[u8; 16]) -> Self {
        let half = |at: usize| u64::from_le_bytes(key[at..at + 8].try_into().expect("eight bytes"));
        Self(SipHash13::new(half(0), half(8)))
    }

    pub(super) fn hash(&self, outpoint: &[u8]) -> u64 {
        self.0.hash(outpoint)
    }

    /// The partition, by the upper half of the hash.
    pub(super) fn partition(&self, outpoint: &[u8], partitions: u32) -> u32 {
        (((self.hash(outpoint) >> 32) * u64::from(partitions)) >> 32) as u32
    }

    /// The pass over its partition, by the lower half.
    pub(super) fn pass(&self, outpoint: &[u8], passes: u32) -> u32 {
        (((self.hash(outpoint) & 0xffff_ffff) * u64::from(passes)) >> 32) as u32
    }
}

/// Appends the next record to `out`: `head` bytes, of which the last two are the length of what follows. Gives false at the end.
pub(super) fn read_sized(
    input: &mut impl Read,
    head: usize,
    out: &mut Vec<u8>,
) -> io::Result<bool> {
    let start = out.len();
    out.resize(start + head, 0);
    if !read_or_end(input, &mut out[start..])? {
        out.truncate(start);
        return Ok(false);
    }
    let length = usize::from(u16::from_le_bytes([out[start + head - 2], out[start + head - 1]]));
    if length > COIN_BYTES_MAX {
        return Err(no_record());
    }
    let end = out.len();
    out.resize(end + length, 0);
    input.read_exact(&mut out[end..])?;
    Ok(true)
}

/// The next input; `None` at the end.
pub(super) fn read_spend(input: &mut impl Read) -> io::Result<Option<Spend>> {
    let mut spend = [0; SPEND_BYTES];
    Ok(read_or_end(input, &mut spend)?.then_some(spend))
}

fn read_or_end(input: &mut impl Read, out: &mut [u8]) -> io::Result<bool> {
    let first = input.read(out)?;
    if first == 0 {
        return Ok(false);
    }
    input.read_exact(&mut out[first..])?;
    Ok(true)
}

pub(super) fn no_record() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "holds what no step of a shuffle writes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let outpoint = outpoint_bytes(&Txid([7; 32]), 0x0102_0304);
        assert_eq!(outpoint_of(&outpoint), OutPoint { txid: Txid([7; 32]), vout: 0x0102_0304 });
        let (mut outputs, mut claims) = (Vec::new(), Vec::new());
        for length in [3, 40, COIN_BYTES_MAX] {
            write_output(&mut outputs, &outpoint, 9, &vec![1; length]);
            write_claim(&mut claims, (9, 2), &vec![1; length]);
        }
        for (bytes, head) in [(&outputs, OUTPUT_HEAD_BYTES), (&claims, CLAIM_HEAD_BYTES)] {
            let (mut input, mut out) = (&bytes[..], Vec::new());
            for count in 1..=4 {
                assert_eq!(read_sized(&mut input, head, &mut out).unwrap(), count < 4);
            }
            assert_eq!(out, *bytes);
            // Cut off anywhere it is an error, or the end.
            for cut in 0..bytes.len() {
                let (mut input, mut out) = (&bytes[..cut], Vec::new());
                while read_sized(&mut input, head, &mut out).unwrap_or(false) {}
                assert!(out.len() <= cut + COIN_BYTES_MAX + head);
            }
        }
        let spend = spend((5, 6), &outpoint);
        assert_eq!(place_of(&spend), (5, 6));
        assert_eq!(read_spend(&mut &spend[..]).unwrap(), Some(spend));
        assert_eq!(read_spend(&mut &spend[..0]).unwrap(), None);
        assert!(read_spend(&mut &spend[..9]).is_err());
        let long = [&[0; CLAIM_HEAD_BYTES - 2][..], &[0xff, 0xff]].concat();
        assert!(read_sized(&mut &long[..], CLAIM_HEAD_BYTES, &mut Vec::new()).is_err());
    }

    #[test]
    fn partitions_and_passes_divide_evenly() {
        let placing = Placing::new(&[3; 16]);
        let mut counts = [[0; 3]; 5];
        for vout in 0..15_000 {
            let outpoint = outpoint_bytes(&Txid([1; 32]), vout);
            let (partition, pass) = (placing.partition(&outpoint, 5), placing.pass(&outpoint, 3));
            counts[partition as usize][pass as usize] += 1;
        }
        assert!(counts.iter().flatten().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
