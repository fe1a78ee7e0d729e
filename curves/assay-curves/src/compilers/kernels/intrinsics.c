/* The kernels in C with intrinsics: _addcarry_u64, _subborrow_u64, and _mulx_u64 where the flags allow it. */
#include "kernels.h"
#include <stdint.h>
#include <x86intrin.h>

/* As in "Compiler caveats" of Constantine's performance document, but for the type of words. */
void add256_intrinsics(u64 a[4], u64 b[4]) {
    uint8_t carry = 0;
    for (int i = 0; i < 4; ++i)
        carry = _addcarry_u64(carry, a[i], b[i], &a[i]);
}

/* Both halves of a product. */
INLINE u64 product(u64 a, u64 b, u64 *high) {
#if defined(__BMI2__)
    return _mulx_u64(a, b, high);
#else
    u128 both = (u128)a * b;
    *high = (u64)(both >> 64);
    return (u64)both;
#endif
}

INLINE void reduce_once(u64 *r, const u64 *t, const u64 *p, int n) {
    u64 less[6];
    uint8_t borrow = 0;
#define SUBTRACT(i) borrow = _subborrow_u64(borrow, t[i], p[i], &less[i]);
    EACH(n, SUBTRACT);
    u64 keep = 0 - (u64)borrow;
#define SELECT(i) r[i] = (t[i] & keep) | (less[i] & ~keep);
    EACH(n, SELECT);
}

INLINE void add_mod(u64 *r, const u64 *a, const u64 *b, const u64 *p, int n) {
    u64 t[6];
    uint8_t carry = 0;
#define ADD(i) carry = _addcarry_u64(carry, a[i], b[i], &t[i]);
    EACH(n, ADD);
    reduce_once(r, t, p, n);
}

/* t += a times a word, one chain of carries over the low halves and one over the high ones; t has n + 1 words. */
INLINE void add_row(u64 *t, const u64 *a, u64 word, int n) {
    u64 low[6], high[6];
#define MULTIPLY(j) low[j] = product(a[j], word, &high[j]);
    EACH(n, MULTIPLY);
    uint8_t carry = 0;
#define ADD_LOW(j) carry = _addcarry_u64(carry, t[j], low[j], &t[j]);
    EACH(n, ADD_LOW);
    t[n] += carry;
    carry = 0;
#define ADD_HIGH(j) carry = _addcarry_u64(carry, t[(j) + 1], high[j], &t[(j) + 1]);
    EACH(n, ADD_HIGH);
}

/* As the portable one; words move down by where they are looked for, since copies would go through memory. */
INLINE void mont_mul(u64 *r, const u64 *a, const u64 *b, const u64 *p, int n) {
    u64 t[13] = {0};
#define ROW(i) add_row(t + i, a, b[i], n), add_row(t + i, p, t[i] * p[n], n);
    EACH(n, ROW);
    reduce_once(r, t + n, p, n);
}

void add_mod_4_intrinsics(u64 *r, const u64 *a, const u64 *b) { add_mod(r, a, b, P4, 4); }
void add_mod_6_intrinsics(u64 *r, const u64 *a, const u64 *b) { add_mod(r, a, b, P6, 6); }
void mont_mul_4_intrinsics(u64 *r, const u64 *a, const u64 *b) { mont_mul(r, a, b, P4, 4); }
void mont_mul_6_intrinsics(u64 *r, const u64 *a, const u64 *b) { mont_mul(r, a, b, P6, 6); }
