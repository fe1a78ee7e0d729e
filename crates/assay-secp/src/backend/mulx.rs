//! Products of single elements modulo 2^256 - c with MULX and ADX: two parallel carry chains, one for the low halves of word
//! products and one for the high ones. `words/field.rs` is the oracle.

#![expect(unsafe_code, reason = "inline assembly")]

use std::arch::asm;

use assay_hash::cpu::{CpuFeature, has};

/// True if this CPU has the instructions.
#[inline(always)]
pub(crate) fn is_available() -> bool {
    has(CpuFeature::Adx)
}

/// Adds the word in rdx times four words in memory to a sum of four words, with a new word above.
macro_rules! add_row {
    ($($sum:literal $above:literal $at:literal),+; $top:literal) => {
        concat!(
            // Clears both carries.
            "xor ", $top, ", ", $top, "\n",
            $(
                "mulx {hi}, {lo}, [{b} + ", $at, "]\n",
                "adcx ", $sum, ", {lo}\n",
                "adox ", $above, ", {hi}\n",
            )+
            "adc ", $top, ", 0\n",
        )
    };
}

/// Adds c times the upper four words to the lower four, and then c times the overflow. After a last carry the sum is small, and c
/// fits into its lowest word.
macro_rules! fold {
    () => {
        concat!(
            "mov rdx, {c}\n",
            "xor {lo:e}, {lo:e}\n",
            "mulx {hi}, {lo}, {t4}\n",
            "adcx {t0}, {lo}\n",
            "adox {t1}, {hi}\n",
            "mulx {hi}, {lo}, {t5}\n",
            "adcx {t1}, {lo}\n",
            "adox {t2}, {hi}\n",
            "mulx {hi}, {lo}, {t6}\n",
            "adcx {t2}, {lo}\n",
            "adox {t3}, {hi}\n",
            "mulx {hi}, {lo}, {t7}\n",
            "adcx {t3}, {lo}\n",
            "mov {lo:e}, 0\n",
            "adox {hi}, {lo}\n",
            "adc {hi}, 0\n",
            "mulx {hi}, {lo}, {hi}\n",
            "add {t0}, {lo}\n",
            "adc {t1}, {hi}\n",
            // Taken once in 2^60 times: a predicted branch does not wait for the carries.
            "jnc 2f\n",
            "adc {t2}, 0\n",
            "adc {t3}, 0\n",
            "jnc 2f\n",
            "add {t0}, rdx\n",
            "2:\n",
        )
    };
}

/// The product of numbers modulo 2^256 - c, below 2^256, for c below 2^34.
///
/// [`is_available`] must be true.
#[inline(always)]
pub(crate) fn product<const C: u64>(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let (t0, t1, t2, t3);
    // SAFETY: reads the words of both arrays and writes registers only; `is_available` is true, so the CPU has the instructions.
    unsafe {
        asm!(
            "mov rdx, [{a}]",
            "mulx {t1}, {t0}, [{b}]",
            "mulx {t2}, {lo}, [{b} + 8]",
            "add {t1}, {lo}",
            "mulx {t3}, {lo}, [{b} + 16]",
            "adc {t2}, {lo}",
            "mulx {t4}, {lo}, [{b} + 24]",
            "adc {t3}, {lo}",
            "adc {t4}, 0",
            "mov rdx, [{a} + 8]",
            add_row!("{t1}" "{t2}" 0, "{t2}" "{t3}" 8, "{t3}" "{t4}" 16, "{t4}" "{t5}" 24; "{t5}"),
            "mov rdx, [{a} + 16]",
            add_row!("{t2}" "{t3}" 0, "{t3}" "{t4}" 8, "{t4}" "{t5}" 16, "{t5}" "{t6}" 24; "{t6}"),
            "mov rdx, [{a} + 24]",
            add_row!("{t3}" "{t4}" 0, "{t4}" "{t5}" 8, "{t5}" "{t6}" 16, "{t6}" "{t7}" 24; "{t7}"),
            fold!(),
            a = in(reg) a,
            // No longer needed when the last word is written.
            b = in(reg) b,
            t7 = out(reg) _,
            c = const C,
            t0 = out(reg) t0,
            t1 = out(reg) t1,
            t2 = out(reg) t2,
            t3 = out(reg) t3,
            t4 = out(reg) _,
            t5 = out(reg) _,
            t6 = out(reg) _,
            lo = out(reg) _,
            hi = out(reg) _,
            out("rdx") _,
            options(pure, readonly, nostack),
        );
    }
    [t0, t1, t2, t3]
}

/// The square, like [`product`].
///
/// [`is_available`] must be true.
#[inline(always)]
pub(crate) fn square<const C: u64>(a: &[u64; 4]) -> [u64; 4] {
    let (t0, t1, t2, t3);
    // SAFETY: as in `product`.
    unsafe {
        asm!(
            // Products of different words.
            "mov rdx, [{a}]",
            "mulx {t2}, {t1}, [{a} + 8]",
            "mulx {t3}, {lo}, [{a} + 16]",
            "add {t2}, {lo}",
            "mulx {t4}, {lo}, [{a} + 24]",
            "adc {t3}, {lo}",
            "adc {t4}, 0",
            "mov rdx, [{a} + 8]",
            "xor {t5:e}, {t5:e}",
            "mulx {hi}, {lo}, [{a} + 16]",
            "adcx {t3}, {lo}",
            "adox {t4}, {hi}",
            "mulx {hi}, {lo}, [{a} + 24]",
            "adcx {t4}, {lo}",
            "adox {t5}, {hi}",
            "adc {t5}, 0",
            "mov rdx, [{a} + 16]",
            "mulx {t6}, {lo}, [{a} + 24]",
            "add {t5}, {lo}",
            "adc {t6}, 0",
            // Doubled in one chain, with squares added in the other.
            "xor {t7:e}, {t7:e}",
            "mov rdx, [{a}]",
            "mulx {hi}, {t0}, rdx",
            "adox {t1}, {t1}",
            "adcx {t1}, {hi}",
            "mov rdx, [{a} + 8]",
            "mulx {hi}, {lo}, rdx",
            "adox {t2}, {t2}",
            "adcx {t2}, {lo}",
            "adox {t3}, {t3}",
            "adcx {t3}, {hi}",
            "mov rdx, [{a} + 16]",
            "mulx {hi}, {lo}, rdx",
            "adox {t4}, {t4}",
            "adcx {t4}, {lo}",
            "adox {t5}, {t5}",
            "adcx {t5}, {hi}",
            "mov rdx, [{a} + 24]",
            "mulx {hi}, {lo}, rdx",
            "adox {t6}, {t6}",
            "adcx {t6}, {lo}",
            "adox {t7}, {t7}",
            "adcx {t7}, {hi}",
            fold!(),
            a = in(reg) a,
            c = const C,
            t0 = out(reg) t0,
            t1 = out(reg) t1,
            t2 = out(reg) t2,
            t3 = out(reg) t3,
            t4 = out(reg) _,
            t5 = out(reg) _,
            t6 = out(reg) _,
            t7 = out(reg) _,
            lo = out(reg) _,
            hi = out(reg) _,
            out("rdx") _,
            options(pure, readonly, nostack),
        );
    }
    [t0, t1, t2, t3]
}
