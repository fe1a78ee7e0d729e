//! The kernels: names, sources and expected results.

use assay_report::stats::random::SplitMix64;

/// Prime of BN254, lowest word first.
const P4: [u64; 4] =
    [0x3c20_8c16_d87c_fd47, 0x9781_6a91_6871_ca8d, 0xb850_45b6_8181_585d, 0x3064_4e72_e131_a029];

/// Prime of BLS12-381, lowest word first.
const P6: [u64; 6] = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];

/// Contents of the source files, by name.
pub(super) const SOURCES: [(&str, &str); 7] = [
    ("kernels.h", include_str!("kernels/kernels.h")),
    ("portable.c", include_str!("kernels/portable.c")),
    ("intrinsics.c", include_str!("kernels/intrinsics.c")),
    ("assembly.c", include_str!("kernels/assembly.c")),
    ("driver.c", include_str!("kernels/driver.c")),
    ("kernels.rs", include_str!("kernels/kernels.rs")),
    ("driver.rs", include_str!("kernels/driver.rs")),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Style {
    /// 128-bit integers, or additions that return overflow.
    Portable,
    /// `_addcarry_u64`, `_mulx_u64`.
    Intrinsics,
    /// Inline assembly; products use MULX, ADCX and ADOX with any flags.
    Assembly,
}

impl Style {
    pub(super) const ALL: [Self; 3] = [Self::Portable, Self::Intrinsics, Self::Assembly];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Intrinsics => "intrinsics",
            Self::Assembly => "assembly",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// Addition modulo 2^256, in place.
    Add256,
    AddMod,
    MontMul,
}

/// An operation on numbers of `words` words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    /// Name in plans and benchmarks.
    pub(super) name: &'static str,
    /// Description in reports.
    pub(super) title: &'static str,
    pub(super) words: usize,
    operation: Operation,
}

/// All kernels, named as in [`assay_bench::plan::compilers::KERNELS`].
pub(super) const KERNELS: [Kernel; 5] = [
    kernel("add256", "256-bit addition in place", 4, Operation::Add256),
    kernel("add-mod-4", "addition modulo BN254's prime, 4 words", 4, Operation::AddMod),
    kernel("add-mod-6", "addition modulo BLS12-381's prime, 6 words", 6, Operation::AddMod),
    kernel(
        "mont-mul-4",
        "Montgomery multiplication, BN254's prime, 4 words",
        4,
        Operation::MontMul,
    ),
    kernel(
        "mont-mul-6",
        "Montgomery multiplication, BLS12-381's prime, 6 words",
        6,
        Operation::MontMul,
    ),
];

const fn kernel(
    name: &'static str,
    title: &'static str,
    words: usize,
    operation: Operation,
) -> Kernel {
    Kernel { name, title, words, operation }
}

impl Kernel {
    /// Symbol in a program.
    pub(super) fn symbol(self, style: Style) -> String {
        format!("{}_{}", self.name.replace('-', "_"), style.name())
    }

    /// True if this style of the kernel needs MULX and ADX.
    pub(super) fn needs_mulx(self, style: Style) -> bool {
        style == Style::Assembly && self.operation == Operation::MontMul
    }

    fn prime(self) -> &'static [u64] {
        if self.words == 4 { &P4 } else { &P6 }
    }

    /// Expected result by plain Rust, from the definition of a Montgomery product: a b / 2^(64 words).
    pub(super) fn expected(self, a: &[u64], b: &[u64]) -> Vec<u64> {
        match self.operation {
            Operation::Add256 => add(a, b).0,
            Operation::AddMod => reduced_once(add(a, b).0, self.prime()),
            Operation::MontMul => {
                let mut wide = product(a, b);
                for _ in 0..64 * self.words {
                    halve(&mut wide, self.prime());
                }
                wide.truncate(self.words);
                reduced_once(wide, self.prime())
            }
        }
    }

    /// Operands: all pairs of edge cases, then random ones; below the prime, if there is one.
    pub(super) fn inputs(self, seed: u64, checks: usize) -> Vec<(Vec<u64>, Vec<u64>)> {
        let edges = self.edges();
        let mut inputs: Vec<(Vec<u64>, Vec<u64>)> =
            edges.iter().flat_map(|a| edges.iter().map(|b| (a.clone(), b.clone()))).collect();
        let mut random = SplitMix64::new(seed);
        for _ in 0..checks {
            let [a, b] =
                [(); 2].map(|()| self.admissible((0..self.words).map(|_| random.next()).collect()));
            inputs.push((a, b));
        }
        inputs
    }

    /// Edge cases of carry chains.
    fn edges(self) -> Vec<Vec<u64>> {
        let words = self.words;
        let largest = match self.operation {
            Operation::Add256 => vec![u64::MAX; words],
            _ => subtract(self.prime(), &small(1, words)).0,
        };
        let below = subtract(&largest, &small(1, words)).0;
        let mut half = largest.clone();
        shift_right(&mut half, 0);
        let mut low_full = vec![u64::MAX; words];
        low_full[words - 1] = 0;
        let mut alternate = vec![0; words];
        alternate.iter_mut().step_by(2).for_each(|word| *word = u64::MAX);
        let mut top = vec![0; words];
        top[words - 1] = 1;
        let edges = [
            small(0, words),
            small(1, words),
            small(u64::MAX, words),
            half,
            below,
            largest,
            low_full,
            alternate,
            top,
        ];
        edges.map(|edge| self.admissible(edge)).to_vec()
    }

    /// The number unchanged for plain additions; otherwise with its highest bits cleared until it is below the prime.
    fn admissible(self, mut number: Vec<u64>) -> Vec<u64> {
        let mut mask = u64::MAX;
        while self.operation != Operation::Add256 && subtract(&number, self.prime()).1 == 0 {
            mask >>= 1;
            number[self.words - 1] &= mask;
        }
        number
    }
}

fn small(word: u64, words: usize) -> Vec<u64> {
    let mut number = vec![0; words];
    number[0] = word;
    number
}

/// Sum and carry.
fn add(a: &[u64], b: &[u64]) -> (Vec<u64>, u64) {
    let mut carry = 0;
    let word = |(a, b): (&u64, &u64)| {
        let sum = u128::from(*a) + u128::from(*b) + carry;
        carry = sum >> 64;
        sum as u64
    };
    let sum = a.iter().zip(b).map(word).collect();
    (sum, carry as u64)
}

/// Difference and borrow.
fn subtract(a: &[u64], b: &[u64]) -> (Vec<u64>, u64) {
    let mut borrow = false;
    let word = |(a, b): (&u64, &u64)| {
        let (difference, first) = a.overflowing_sub(*b);
        let (difference, second) = difference.overflowing_sub(u64::from(borrow));
        borrow = first | second;
        difference
    };
    let difference = a.iter().zip(b).map(word).collect();
    (difference, u64::from(borrow))
}

/// Reduces a number below 2 p.
fn reduced_once(number: Vec<u64>, p: &[u64]) -> Vec<u64> {
    match subtract(&number, p) {
        (less, 0) => less,
        _ => number,
    }
}

fn product(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut wide = vec![0; a.len() + b.len()];
    for (i, a) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, b) in b.iter().enumerate() {
            let sum = u128::from(*a) * u128::from(*b) + u128::from(wide[i + j]) + carry;
            wide[i + j] = sum as u64;
            carry = sum >> 64;
        }
        wide[i + b.len()] = carry as u64;
    }
    wide
}

/// Halves a number modulo p.
fn halve(wide: &mut Vec<u64>, p: &[u64]) {
    let mut carry = 0;
    if wide[0] & 1 == 1 {
        let mut padded = p.to_vec();
        padded.resize(wide.len(), 0);
        (*wide, carry) = add(wide, &padded);
    }
    shift_right(wide, carry);
}

fn shift_right(number: &mut [u64], mut bit: u64) {
    for word in number.iter_mut().rev() {
        let lowest = *word & 1;
        *word = *word >> 1 | bit << 63;
        bit = lowest;
    }
}

/// Hexadecimal, 16 digits per word, highest word first.
pub(super) fn hexadecimal(number: &[u64]) -> String {
    number.iter().rev().fold(String::new(), |digits, word| digits + &format!("{word:016x}"))
}

#[cfg(test)]
mod tests {
    use assay_bench::plan::compilers::KERNELS as NAMES;

    use super::*;

    #[test]
    fn kernels_match_those_of_plans() {
        assert_eq!(KERNELS.map(|kernel| kernel.name), NAMES);
        assert_eq!(KERNELS[4].symbol(Style::Assembly), "mont_mul_6_assembly");
    }

    /// A product with R² multiplies by R; a product with 1 divides by R again.
    #[test]
    fn montgomery_by_its_definition() {
        for kernel in KERNELS.into_iter().filter(|kernel| kernel.operation == Operation::MontMul) {
            let p = kernel.prime();
            // 2^(128 words) modulo p, by doubling.
            let mut r2 = small(1, kernel.words);
            for _ in 0..128 * kernel.words {
                r2 = reduced_once(add(&r2, &r2).0, p);
            }
            for (a, b) in kernel.inputs(3, 20) {
                let in_form = kernel.expected(&a, &r2);
                assert_eq!(kernel.expected(&in_form, &small(1, kernel.words)), a);
                assert_eq!(kernel.expected(&a, &b), kernel.expected(&b, &a));
                let double = kernel.expected(&reduced_once(add(&a, &a).0, p), &b);
                let once = kernel.expected(&a, &b);
                assert_eq!(double, reduced_once(add(&once, &once).0, p));
            }
        }
    }

    #[test]
    fn operands_are_below_the_prime_and_have_edges() {
        for kernel in KERNELS {
            let inputs = kernel.inputs(7, 50);
            assert_eq!(inputs.len(), 9 * 9 + 50);
            let is_below = |number: &Vec<u64>| subtract(number, kernel.prime()).1 == 1;
            if kernel.operation != Operation::Add256 {
                assert!(inputs.iter().all(|(a, b)| is_below(a) && is_below(b)), "{}", kernel.name);
            }
        }
        assert_eq!(KERNELS[0].expected(&[u64::MAX; 4], &[1, 0, 0, 0]), [0; 4]);
        let minus_one = subtract(&P6, &small(1, 6)).0;
        assert_eq!(KERNELS[2].expected(&minus_one, &small(1, 6)), [0; 6]);
    }
}
