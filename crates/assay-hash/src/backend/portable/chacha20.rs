//! The `ChaCha20` key stream (RFC 8439) that expands a hash to a MuHash element.

/// "expand 32-byte k".
const SIGMA: [u32; 4] = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574];

/// One row of four words of a block's state.
type Row = [u32; 4];

/// The first six blocks of the key stream with nonce and counter zero.
pub(crate) fn keystream(key: &[u8; 32]) -> [u8; 384] {
    let mut out = [0u8; 384];
    let start = initial_state(key);
    for (counter, block) in out.as_chunks_mut::<64>().0.iter_mut().enumerate() {
        let mut start = start;
        start[12] = counter as u32;
        let mut rows: [Row; 4] = core::array::from_fn(|i| start.as_chunks::<4>().0[i]);
        // Operates on whole rows, which compiles to vector instructions on any baseline.
        for _ in 0..10 {
            round(&mut rows);
            rows = [rows[0], rotate::<1>(rows[1]), rotate::<2>(rows[2]), rotate::<3>(rows[3])];
            round(&mut rows);
            rows = [rows[0], rotate::<3>(rows[1]), rotate::<2>(rows[2]), rotate::<1>(rows[3])];
        }
        let words = rows.as_flattened().iter().zip(start);
        for (bytes, (word, start)) in block.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *bytes = word.wrapping_add(start).to_le_bytes();
        }
    }
    out
}

/// Constant, key, counter zero, nonce zero.
pub(crate) fn initial_state(key: &[u8; 32]) -> [u32; 16] {
    let mut state = [0u32; 16];
    state[..4].copy_from_slice(&SIGMA);
    for (word, bytes) in state[4..12].iter_mut().zip(key.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    state
}

/// Four quarter rounds, one per column.
#[inline(always)]
fn round([a, b, c, d]: &mut [Row; 4]) {
    *a = add(*a, *b);
    *d = xor_rotate::<16>(*d, *a);
    *c = add(*c, *d);
    *b = xor_rotate::<12>(*b, *c);
    *a = add(*a, *b);
    *d = xor_rotate::<8>(*d, *a);
    *c = add(*c, *d);
    *b = xor_rotate::<7>(*b, *c);
}

#[inline(always)]
fn add(x: Row, y: Row) -> Row {
    core::array::from_fn(|i| x[i].wrapping_add(y[i]))
}

#[inline(always)]
fn xor_rotate<const N: u32>(x: Row, y: Row) -> Row {
    core::array::from_fn(|i| (x[i] ^ y[i]).rotate_left(N))
}

/// Rotates the words of a row, which turns diagonals into columns.
#[inline(always)]
fn rotate<const N: usize>(row: Row) -> Row {
    core::array::from_fn(|i| row[(i + N) % 4])
}
