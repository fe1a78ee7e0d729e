/* The kernels in C with the 128-bit integers of gcc and clang, and nothing of a processor's. */
#include "kernels.h"

void add256_portable(u64 a[4], u64 b[4]) {
    u64 carry = 0;
    for (int i = 0; i < 4; ++i) {
        u128 sum = (u128)a[i] + b[i] + carry;
        a[i] = (u64)sum;
        carry = (u64)(sum >> 64);
    }
}

/* r = t - p where that is not negative, else t; t is below 2 p and fits n words. */
INLINE void reduce_once(u64 *r, const u64 *t, const u64 *p, int n) {
    u64 less[6], borrow = 0;
#define SUBTRACT(i) { \
        u128 difference = (u128)t[i] - p[i] - borrow; \
        less[i] = (u64)difference; \
        borrow = (u64)(difference >> 64) & 1; \
    }
    EACH(n, SUBTRACT);
    u64 keep = 0 - borrow;
#define SELECT(i) r[i] = (t[i] & keep) | (less[i] & ~keep);
    EACH(n, SELECT);
}

INLINE void add_mod(u64 *r, const u64 *a, const u64 *b, const u64 *p, int n) {
    u64 t[6], carry = 0;
#define ADD(i) { \
        u128 sum = (u128)a[i] + b[i] + carry; \
        t[i] = (u64)sum; \
        carry = (u64)(sum >> 64); \
    }
    EACH(n, ADD);
    reduce_once(r, t, p, n);
}

/* t += a times a word, then the multiple of p that clears the lowest word, which is dropped. */
INLINE void add_row(u64 *t, const u64 *a, u64 word, const u64 *p, int n) {
    u64 carry = 0;
#define MULTIPLY(j) { \
        u128 sum = (u128)a[j] * word + t[j] + carry; \
        t[j] = (u64)sum; \
        carry = (u64)(sum >> 64); \
    }
    EACH(n, MULTIPLY);
    u64 top = carry, m = t[0] * p[n];
    carry = 0;
#define CLEAR(j) { \
        u128 sum = (u128)m * p[j] + t[j] + carry; \
        t[(j) > 0 ? (j) - 1 : 0] = (u64)sum; \
        carry = (u64)(sum >> 64); \
    }
    EACH(n, CLEAR);
    /* The sum is below 2 p, which leaves bits of the last word free: no carry out of it. */
    t[n - 1] = top + carry;
}

/* Montgomery's product, a word of b at a time. */
INLINE void mont_mul(u64 *r, const u64 *a, const u64 *b, const u64 *p, int n) {
    u64 t[6] = {0};
#define ROW(i) add_row(t, a, b[i], p, n);
    EACH(n, ROW);
    reduce_once(r, t, p, n);
}

void add_mod_4_portable(u64 *r, const u64 *a, const u64 *b) { add_mod(r, a, b, P4, 4); }
void add_mod_6_portable(u64 *r, const u64 *a, const u64 *b) { add_mod(r, a, b, P6, 6); }
void mont_mul_4_portable(u64 *r, const u64 *a, const u64 *b) { mont_mul(r, a, b, P4, 4); }
void mont_mul_6_portable(u64 *r, const u64 *a, const u64 *b) { mont_mul(r, a, b, P6, 6); }
