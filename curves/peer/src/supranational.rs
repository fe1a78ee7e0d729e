//! blst: BLS12-381 and BLS signatures. The arithmetic is called through the C interface.

#![expect(unsafe_code, reason = "the arithmetic under its signatures has a C interface only")]
#![expect(clippy::borrow_as_ptr, reason = "fifty functions that take pointers")]
// The lint is silent in test builds, so it cannot be expected.
#![allow(clippy::wildcard_imports, reason = "fifty functions, whose names begin with the crate's")]

pub(crate) mod signatures;

use std::hint::black_box;
use std::ptr;

use anyhow::{Result, ensure};
use blst::*;

use crate::table::{ANSWERED, Prepared, SPREAD, Table, Work};

pub const VERSION: &str = "0.3.17";

const CURVE: &str = "bls12-381";

pub fn table() -> Table {
    let mut table = Table::default();
    fields(&mut table);
    g1::operations(&mut table);
    g2::operations(&mut table);
    pairings(&mut table);
    signatures::operations(&mut table);
    table
}

/// Calls a function of three pointers that replaces its first operand.
macro_rules! in_place {
    ($function:ident($x:ident $(, $y:expr)?)) => {{
        let x: *mut _ = $x;
        // SAFETY: all pointers are from references; the library allows results to replace operands.
        unsafe { $function(x, x $(, $y)?) };
    }};
}

pub(crate) fn fp(work: &Work, label: &str, index: usize) -> blst_fp {
    let (wide, mut x) = (work.wide(label, index), blst_fp::default());
    // SAFETY: the buffer has 64 bytes; the library reduces them.
    unsafe { blst_fp_from_be_bytes(&mut x, wide.as_ptr(), wide.len()) };
    x
}

pub(crate) fn scalar(work: &Work, label: &str, index: usize) -> blst_scalar {
    let (wide, mut x) = (work.wide(label, index), blst_scalar::default());
    // SAFETY: the buffer has 64 bytes; the library reduces them.
    unsafe { blst_scalar_from_be_bytes(&mut x, wide.as_ptr(), wide.len()) };
    x
}

fn fr(work: &Work, label: &str, index: usize) -> blst_fr {
    let (scalar, mut x) = (scalar(work, label, index), blst_fr::default());
    // SAFETY: both pointers are from references.
    unsafe { blst_fr_from_scalar(&mut x, &scalar) };
    x
}

fn fp2(work: &Work, label: &str, index: usize) -> blst_fp2 {
    blst_fp2 { fp: [fp(work, label, 2 * index), fp(work, label, 2 * index + 1)] }
}

fn fp12(work: &Work, label: &str, index: usize) -> blst_fp12 {
    let part = |i: usize| fp2(work, label, 6 * index + i);
    let half = |i: usize| blst_fp6 { fp2: [part(3 * i), part(3 * i + 1), part(3 * i + 2)] };
    blst_fp12 { fp6: [half(0), half(1)] }
}

fn fr_bytes(x: &blst_fr) -> Vec<u8> {
    let (mut scalar, mut bytes) = (blst_scalar::default(), vec![0; 32]);
    // SAFETY: pointers from references, and space for 32 bytes.
    unsafe {
        blst_scalar_from_fr(&mut scalar, x);
        blst_bendian_from_scalar(bytes.as_mut_ptr(), &scalar);
    }
    bytes
}

fn fp_bytes(x: &blst_fp) -> Vec<u8> {
    let mut bytes = vec![0; 48];
    // SAFETY: a pointer from a reference, and space for 48 bytes.
    unsafe { blst_bendian_from_fp(bytes.as_mut_ptr(), x) };
    bytes
}

fn fp2_bytes(x: &blst_fp2) -> Vec<u8> {
    x.fp.iter().flat_map(fp_bytes).collect()
}

fn fp12_bytes(x: &blst_fp12) -> Vec<u8> {
    x.fp6.iter().flat_map(|half| &half.fp2).flat_map(fp2_bytes).collect()
}

/// Operations of a field: products and squares, inverses in a chain with sums, and roots.
macro_rules! field {
    (
        $table:ident, $label:literal, $element:ident, $bytes:ident, $type:ident; $mul:ident $(, $square:ident)?
        $(; $inverse:ident, $add:ident $(; $root:ident, $negate:ident, $square_of:ident)?)?
    ) => {
        $table.add(CURVE, concat!($label, "-mul"), stringify!($mul), |work| {
            let (x, y) = ($element(work, $label, 0), $element(work, $label, 1));
            Ok(Prepared::chained(x, move |x| in_place!($mul(x, &y)), $bytes))
        });
        $($table.add(CURVE, concat!($label, "-sqr"), stringify!($square), |work| {
            Ok(Prepared::chained($element(work, $label, 0), |x| in_place!($square(x)), $bytes))
        });)?
        $(
            let how = concat!(stringify!($inverse), ", constant time");
            $table.add(CURVE, concat!($label, "-inv"), how, |work| {
                let (x, y) = ($element(work, $label, 0), $element(work, $label, 1));
                let step = move |x: &mut $type| {
                    in_place!($inverse(x));
                    in_place!($add(x, &y));
                };
                Ok(Prepared::chained(x, step, $bytes))
            });
            $($table.add(CURVE, concat!($label, "-sqrt"), stringify!($root), |work| {
                let mut squares: Vec<_> =
                    (0..SPREAD).map(|index| $element(work, $label, index)).collect();
                for x in &mut squares {
                    in_place!($square_of(x));
                }
                let root = |square: &$type| {
                    let mut x = $type::default();
                    // SAFETY: both pointers are from references.
                    let is_square = unsafe { $root(&mut x, square) };
                    (is_square, x)
                };
                let answer = squares[..ANSWERED].iter().flat_map(|square| {
                    let (_, x) = root(square);
                    let mut opposite = x;
                    // SAFETY: pointers from references.
                    unsafe { $negate(&mut opposite, &x, true) };
                    $bytes(&x).min($bytes(&opposite))
                });
                Ok(Prepared::spread(answer.collect(), move |index| {
                    assert!(black_box(root(&squares[index])).0, "a square");
                }))
            });)?
        )?
    };
}

fn fields(table: &mut Table) {
    field!(table, "fr", fr, fr_bytes, blst_fr; blst_fr_mul; blst_fr_eucl_inverse, blst_fr_add);
    field! {
        table, "fp", fp, fp_bytes, blst_fp; blst_fp_mul, blst_fp_sqr; blst_fp_eucl_inverse, blst_fp_add;
        blst_fp_sqrt, blst_fp_cneg, blst_fp_sqr
    }
    field! {
        table, "fp2", fp2, fp2_bytes, blst_fp2; blst_fp2_mul, blst_fp2_sqr; blst_fp2_eucl_inverse, blst_fp2_add;
        blst_fp2_sqrt, blst_fp2_cneg, blst_fp2_sqr
    }
    field!(table, "fp12", fp12, fp12_bytes, blst_fp12; blst_fp12_mul, blst_fp12_sqr);
    table.add(CURVE, "fp12-inv", "blst_fp12_inverse, constant time", |work| {
        let (x, y) = (fp12(work, "fp12", 0), fp12(work, "fp12", 1));
        let step = move |x: &mut blst_fp12| {
            in_place!(blst_fp12_inverse(x));
            // The library has no addition in this tower: coefficient by coefficient.
            for (a, b) in x.fp6.iter_mut().zip(&y.fp6) {
                for (a, b) in a.fp2.iter_mut().zip(&b.fp2) {
                    in_place!(blst_fp2_add(a, b));
                }
            }
        };
        Ok(Prepared::chained(x, step, fp12_bytes))
    });
}

/// Operations of one group; the functions of both groups have the same signatures.
macro_rules! group {
    (
        $module:ident, $label:literal, $suite:literal, $coordinate_bytes:ident,
        $point:ident, $affine:ident, $generator:ident, $mult:ident, $double:ident, $add:ident, $add_affine:ident,
        $to_affine:ident, $from_affine:ident, $in_group:ident, $hash:ident, $pippenger:ident,
        $scratch:ident, $uncompress:ident, $compressed_bytes:literal
    ) => {
        pub(crate) mod $module {
            use super::*;

            /// A chain of points: the first one, then one step further each.
            pub(crate) fn points(work: &Work, count: usize) -> Vec<$affine> {
                let [mut point, step] = [0, 1].map(|index| {
                    let scalar = scalar(work, $label, index);
                    let mut point = $point::default();
                    // SAFETY: pointers from references; a scalar has 32 bytes.
                    unsafe { $mult(&mut point, $generator(), scalar.b.as_ptr(), 255) };
                    point
                });
                let mut chain = Vec::with_capacity(count);
                for _ in 0..count {
                    chain.push(point);
                    let x = &mut point;
                    in_place!($add(x, &step));
                }
                chain.iter().map(to_affine).collect()
            }

            pub(crate) fn to_affine(point: &$point) -> $affine {
                let mut affine = $affine::default();
                // SAFETY: both pointers are from references.
                unsafe { $to_affine(&mut affine, point) };
                affine
            }

            pub(crate) fn from_affine(affine: &$affine) -> $point {
                let mut point = $point::default();
                // SAFETY: both pointers are from references.
                unsafe { $from_affine(&mut point, affine) };
                point
            }

            pub(crate) fn bytes(point: &$point) -> Vec<u8> {
                let affine = to_affine(point);
                [$coordinate_bytes(&affine.x), $coordinate_bytes(&affine.y)].concat()
            }

            fn is_in_group(point: &$affine) -> bool {
                // SAFETY: a pointer from a reference.
                unsafe { $in_group(point) }
            }

            /// A point of the curve outside the group: the one with the smallest x.
            fn outside() -> Result<$affine> {
                let mut compressed = [0; $compressed_bytes];
                compressed[0] = 0x80;
                for x in 1..=u8::MAX {
                    compressed[$compressed_bytes - 1] = x;
                    let mut point = $affine::default();
                    // SAFETY: a pointer from a reference, and the length of a point.
                    let status = unsafe { $uncompress(&mut point, compressed.as_ptr()) };
                    if status == BLST_ERROR::BLST_SUCCESS && !is_in_group(&point) {
                        return Ok(point);
                    }
                }
                anyhow::bail!("every point is in the group")
            }

            pub(super) fn hash(message: &[u8], dst: &str) -> $point {
                let mut point = $point::default();
                // SAFETY: pointers and lengths of slices, no augmentation.
                unsafe {
                    $hash(
                        &mut point,
                        message.as_ptr(),
                        message.len(),
                        dst.as_ptr(),
                        dst.len(),
                        ptr::null(),
                        0,
                    );
                }
                point
            }

            fn mult(point: &$point, scalar: &blst_scalar) -> $point {
                let mut product = $point::default();
                // SAFETY: pointers from references; a scalar has 32 bytes.
                unsafe { $mult(&mut product, point, scalar.b.as_ptr(), 255) };
                product
            }

            /// Multi-scalar multiplication on the calling thread.
            fn pippenger(points: &[$affine], scalars: &[u8], scratch: &mut [limb_t]) -> $point {
                let mut sum = $point::default();
                // A pointer followed by null stands for a contiguous array.
                let points_at = [points.as_ptr(), ptr::null()];
                let scalars_at = [scalars.as_ptr(), ptr::null()];
                // SAFETY: `count` points and scalars of 32 bytes, and as much scratch memory as the library requires.
                unsafe {
                    $pippenger(
                        &mut sum,
                        points_at.as_ptr(),
                        points.len(),
                        scalars_at.as_ptr(),
                        255,
                        scratch.as_mut_ptr(),
                    );
                }
                sum
            }

            pub(super) fn operations(table: &mut Table) {
                additions(table);
                table.add(
                    CURVE,
                    concat!($label, "-mul"),
                    concat!(stringify!($mult), ", constant time"),
                    |work| {
                        let point = from_affine(&points(work, 1)[0]);
                        let scalars: Vec<_> =
                            (0..SPREAD).map(|index| scalar(work, "fr", index)).collect();
                        let answer = scalars[..ANSWERED]
                            .iter()
                            .flat_map(|scalar| bytes(&mult(&point, scalar)));
                        Ok(Prepared::spread(answer.collect(), move |index| {
                            black_box(mult(&point, &scalars[index]));
                        }))
                    },
                );
                table.add(CURVE, concat!($label, "-subgroup"), stringify!($in_group), |work| {
                    let points = points(work, SPREAD);
                    let outside = outside()?;
                    let answer = [points[0], outside].map(|point| u8::from(is_in_group(&point)));
                    Ok(Prepared::spread(answer.to_vec(), move |index| {
                        assert!(is_in_group(&points[index]), "in the group");
                    }))
                });
                let how = concat!(stringify!($hash), ", ", $suite);
                table.add(CURVE, concat!($label, "-hash"), how, |work| {
                    let dst = concat!("ASSAY-V01-CS01-with-", $suite);
                    let answer =
                        (0..ANSWERED).flat_map(|index| bytes(&hash(&work.message(index), dst)));
                    let hash = move |message: &[u8; 32]| to_affine(&hash(message, dst));
                    Ok(Prepared::of_messages(answer.collect(), work.message(0), hash))
                });
                let how = concat!(
                    stringify!($pippenger),
                    "; its thread pool's where all threads are used"
                );
                table.add(CURVE, concat!($label, "-msm"), how, |work| {
                    let points = points(work, work.size);
                    let scalars: Vec<u8> =
                        (0..work.size).flat_map(|index| scalar(work, "fr", index).b).collect();
                    // SAFETY: a plain number.
                    let scratch_bytes = unsafe { $scratch(work.size) };
                    let mut scratch: Vec<limb_t> = vec![0; scratch_bytes.div_ceil(8)];
                    let is_single = work.threads == 1;
                    let mut sum = move || match is_single {
                        true => pippenger(&points, &scalars, &mut scratch),
                        false => points.as_slice().mult(&scalars, 255),
                    };
                    Ok(Prepared::repeated(bytes(&sum()), sum))
                });
            }

            fn additions(table: &mut Table) {
                table.add(CURVE, concat!($label, "-add"), stringify!($add), |work| {
                    let points = points(work, 2);
                    let (x, mut y) = (from_affine(&points[0]), from_affine(&points[1]));
                    let doubled = &mut y;
                    in_place!($double(doubled));
                    Ok(Prepared::chained(x, move |x| in_place!($add(x, &y)), bytes))
                });
                table.add(CURVE, concat!($label, "-add-mixed"), stringify!($add_affine), |work| {
                    let points = points(work, 2);
                    let (x, y) = (from_affine(&points[0]), points[1]);
                    Ok(Prepared::chained(x, move |x| in_place!($add_affine(x, &y)), bytes))
                });
                table.add(CURVE, concat!($label, "-double"), stringify!($double), |work| {
                    let x = from_affine(&points(work, 1)[0]);
                    Ok(Prepared::chained(x, |x| in_place!($double(x)), bytes))
                });
            }
        }
    };
}

group! {
    g1, "g1", "BLS12381G1_XMD:SHA-256_SSWU_RO_", fp_bytes,
    blst_p1, blst_p1_affine, blst_p1_generator, blst_p1_mult, blst_p1_double, blst_p1_add_or_double,
    blst_p1_add_or_double_affine, blst_p1_to_affine, blst_p1_from_affine, blst_p1_affine_in_g1, blst_hash_to_g1,
    blst_p1s_mult_pippenger, blst_p1s_mult_pippenger_scratch_sizeof, blst_p1_uncompress, 48
}
group! {
    g2, "g2", "BLS12381G2_XMD:SHA-256_SSWU_RO_", fp2_bytes,
    blst_p2, blst_p2_affine, blst_p2_generator, blst_p2_mult, blst_p2_double, blst_p2_add_or_double,
    blst_p2_add_or_double_affine, blst_p2_to_affine, blst_p2_from_affine, blst_p2_affine_in_g2, blst_hash_to_g2,
    blst_p2s_mult_pippenger, blst_p2s_mult_pippenger_scratch_sizeof, blst_p2_uncompress, 96
}

fn pairings(table: &mut Table) {
    let pairs = |work: &Work| (g1::points(work, SPREAD), g2::points(work, SPREAD));
    table.add(CURVE, "miller-loop", "blst_miller_loop", move |work| {
        let (p, q) = pairs(work);
        // Results of libraries differ by factors that the final exponentiation removes.
        let reduced = blst_fp12::miller_loop(&q[0], &p[0]).final_exp();
        Ok(Prepared::spread(fp12_bytes(&reduced), move |index| {
            black_box(blst_fp12::miller_loop(&q[index], &p[index]));
        }))
    });
    table.add(CURVE, "final-exponentiation", "blst_final_exp", move |work| {
        let x = fp12(work, "fp12", 0);
        Ok(Prepared::repeated(fp12_bytes(&x.final_exp()), move || black_box(&x).final_exp()))
    });
    table.add(CURVE, "pairing", "blst_miller_loop, blst_final_exp", move |work| {
        let (p, q) = pairs(work);
        let e = blst_fp12::miller_loop(&q[0], &p[0]).final_exp();
        ensure!(e != blst_fp12::default(), "a pairing of points that gives one");
        Ok(Prepared::spread(fp12_bytes(&e), move |index| {
            black_box(blst_fp12::miller_loop(&q[index], &p[index]).final_exp());
        }))
    });
    table.add(CURVE, "pairing-of-eight", "blst_miller_loop_n, blst_final_exp", move |work| {
        let (p, q) = pairs(work);
        let product = move || miller_loop_of_eight(&q, &p).final_exp();
        Ok(Prepared::repeated(fp12_bytes(&product()), product))
    });
}

/// On the calling thread: the method of the crate's type uses all threads.
fn miller_loop_of_eight(q: &[blst_p2_affine], p: &[blst_p1_affine]) -> blst_fp12 {
    let (first_q, first_p) = (&q[..8], &p[..8]);
    let (qs, ps) = ([first_q.as_ptr(), ptr::null()], [first_p.as_ptr(), ptr::null()]);
    let mut product = blst_fp12::default();
    // SAFETY: both lists point to an array of eight points; null marks contiguous arrays.
    unsafe { blst_miller_loop_n(&mut product, qs.as_ptr(), ps.as_ptr(), 8) };
    product
}
