/* What all C kernels share: the type of words, the primes, and steps for each word.
 *
 * Numbers are words of 64 bits, the lowest first. Factors and summands are below the prime; results are too.
 */
#ifndef KERNELS_H
#define KERNELS_H

/* The intrinsics take this type; on Linux uint64_t is another one of the same size, which gcc 14 rejects. */
typedef unsigned long long u64;
typedef unsigned __int128 u128;

#define INLINE static inline __attribute__((always_inline))

/* A step for each of 4 or 6 words, the number known when this is compiled. Constantine unrolls as well, so its C compiler sees no
 * loops over words; and whether a compiler unrolls nested loops is another question than what it makes of carries.
 */
#define EACH(n, STEP) \
    do { \
        STEP(0) STEP(1) STEP(2) STEP(3) \
        if ((n) > 4) { \
            STEP(4) STEP(5) \
        } \
    } while (0)

/* The prime of BN254, and minus its inverse modulo 2^64 in the last word. */
static const u64 P4[5] = {
    0x3c208c16d87cfd47, 0x97816a916871ca8d, 0xb85045b68181585d, 0x30644e72e131a029, 0x87d20782e4866389,
};

/* The prime of BLS12-381, and the same of it. */
static const u64 P6[7] = {
    0xb9feffffffffaaab, 0x1eabfffeb153ffff, 0x6730d2a0f6b0f624, 0x64774b84f38512bf,
    0x4b1ba7b6434bacd7, 0x1a0111ea397fe69a, 0x89f3fffcfffcfffd,
};

void add256_portable(u64 a[4], u64 b[4]);
void add256_intrinsics(u64 a[4], u64 b[4]);
void add256_assembly(u64 a[4], u64 b[4]);

#define KERNELS_OF(style) \
    void add_mod_4_##style(u64 *r, const u64 *a, const u64 *b); \
    void add_mod_6_##style(u64 *r, const u64 *a, const u64 *b); \
    void mont_mul_4_##style(u64 *r, const u64 *a, const u64 *b); \
    void mont_mul_6_##style(u64 *r, const u64 *a, const u64 *b);
KERNELS_OF(portable)
KERNELS_OF(intrinsics)
KERNELS_OF(assembly)

#endif
