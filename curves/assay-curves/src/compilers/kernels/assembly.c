/* The kernels in inline assembly, the same text for gcc and clang: MULX with the two chains of carries of ADX.
 *
 * MULX and ADX are written out, so these need the processor and no flags.
 */
#include "kernels.h"

void add256_assembly(u64 a[4], u64 b[4]) {
    u64 t0, t1, t2, t3;
    /* Its result is in memory alone, without `volatile` it would be dropped. */
    __asm__ volatile(
        "movq (%[b]), %[t0]\n\t"
        "movq 8(%[b]), %[t1]\n\t"
        "movq 16(%[b]), %[t2]\n\t"
        "movq 24(%[b]), %[t3]\n\t"
        "addq %[t0], (%[a])\n\t"
        "adcq %[t1], 8(%[a])\n\t"
        "adcq %[t2], 16(%[a])\n\t"
        "adcq %[t3], 24(%[a])\n\t"
        : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3)
        : [a] "r"(a), [b] "r"(b)
        : "cc", "memory");
}

/* t = t - p where that is not negative. */
#define REDUCE_4(t0, t1, t2, t3) \
    do { \
        u64 s0, s1, s2, s3; \
        __asm__( \
            "movq %[v0], %[s0]\n\tmovq %[v1], %[s1]\n\tmovq %[v2], %[s2]\n\tmovq %[v3], %[s3]\n\t" \
            "subq (%[p]), %[s0]\n\tsbbq 8(%[p]), %[s1]\n\tsbbq 16(%[p]), %[s2]\n\tsbbq 24(%[p]), %[s3]\n\t" \
            "cmovncq %[s0], %[v0]\n\tcmovncq %[s1], %[v1]\n\tcmovncq %[s2], %[v2]\n\tcmovncq %[s3], %[v3]\n\t" \
            : [v0] "+&r"(t0), [v1] "+&r"(t1), [v2] "+&r"(t2), [v3] "+&r"(t3), \
              [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3) \
            : [p] "r"(P4) \
            : "cc", "memory"); \
    } while (0)

#define REDUCE_6(t0, t1, t2, t3, t4, t5) \
    do { \
        u64 s0, s1, s2, s3, s4, s5; \
        __asm__( \
            "movq %[v0], %[s0]\n\tmovq %[v1], %[s1]\n\tmovq %[v2], %[s2]\n\t" \
            "movq %[v3], %[s3]\n\tmovq %[v4], %[s4]\n\tmovq %[v5], %[s5]\n\t" \
            "subq (%[p]), %[s0]\n\tsbbq 8(%[p]), %[s1]\n\tsbbq 16(%[p]), %[s2]\n\t" \
            "sbbq 24(%[p]), %[s3]\n\tsbbq 32(%[p]), %[s4]\n\tsbbq 40(%[p]), %[s5]\n\t" \
            "cmovncq %[s0], %[v0]\n\tcmovncq %[s1], %[v1]\n\tcmovncq %[s2], %[v2]\n\t" \
            "cmovncq %[s3], %[v3]\n\tcmovncq %[s4], %[v4]\n\tcmovncq %[s5], %[v5]\n\t" \
            : [v0] "+&r"(t0), [v1] "+&r"(t1), [v2] "+&r"(t2), [v3] "+&r"(t3), [v4] "+&r"(t4), [v5] "+&r"(t5), \
              [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [s4] "=&r"(s4), [s5] "=&r"(s5) \
            : [p] "r"(P6) \
            : "cc", "memory"); \
    } while (0)

void add_mod_4_assembly(u64 *r, const u64 *a, const u64 *b) {
    u64 t0 = a[0], t1 = a[1], t2 = a[2], t3 = a[3];
    __asm__(
        "addq (%[b]), %[t0]\n\tadcq 8(%[b]), %[t1]\n\tadcq 16(%[b]), %[t2]\n\tadcq 24(%[b]), %[t3]\n\t"
        : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3)
        : [b] "r"(b)
        : "cc", "memory");
    REDUCE_4(t0, t1, t2, t3);
    r[0] = t0, r[1] = t1, r[2] = t2, r[3] = t3;
}

void add_mod_6_assembly(u64 *r, const u64 *a, const u64 *b) {
    u64 t0 = a[0], t1 = a[1], t2 = a[2], t3 = a[3], t4 = a[4], t5 = a[5];
    __asm__(
        "addq (%[b]), %[t0]\n\tadcq 8(%[b]), %[t1]\n\tadcq 16(%[b]), %[t2]\n\t"
        "adcq 24(%[b]), %[t3]\n\tadcq 32(%[b]), %[t4]\n\tadcq 40(%[b]), %[t5]\n\t"
        : [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), [t4] "+&r"(t4), [t5] "+&r"(t5)
        : [b] "r"(b)
        : "cc", "memory");
    REDUCE_6(t0, t1, t2, t3, t4, t5);
    r[0] = t0, r[1] = t1, r[2] = t2, r[3] = t3, r[4] = t4, r[5] = t5;
}

/* Adds rdx times a word of a factor: the low half by ADCX to the word `limb`, the high half by ADOX to the one above. */
#define STEP(factor, at, limb, above) \
    "mulxq " #at "(%[" #factor "]), %[lo], %[hi]\n\t" \
    "adcxq %[lo], %[" #limb "]\n\t" \
    "adoxq %[hi], %[" #above "]\n\t"

/* Both chains begin without a carry; the one of ADCX ends in the top word. */
#define CHAINS(steps, top) "xorl %k[lo], %k[lo]\n\t" steps "adcq $0, %[" #top "]\n\t"

#define STEPS_4(f, t0, t1, t2, t3, t4) STEP(f, 0, t0, t1) STEP(f, 8, t1, t2) STEP(f, 16, t2, t3) STEP(f, 24, t3, t4)
#define STEPS_6(f, t0, t1, t2, t3, t4, t5, t6) \
    STEP(f, 0, t0, t1) STEP(f, 8, t1, t2) STEP(f, 16, t2, t3) STEP(f, 24, t3, t4) STEP(f, 32, t4, t5) STEP(f, 40, t5, t6)

/* Adds the multiple of p that clears the lowest word, which then serves as the top word, zero. */
#define CLEAR_4(t0, t1, t2, t3, t4) \
    "movq %[" #t0 "], %%rdx\n\timulq 32(%[p]), %%rdx\n\t" CHAINS(STEPS_4(p, t0, t1, t2, t3, t4), t4)
#define CLEAR_6(t0, t1, t2, t3, t4, t5, t6) \
    "movq %[" #t0 "], %%rdx\n\timulq 48(%[p]), %%rdx\n\t" CHAINS(STEPS_6(p, t0, t1, t2, t3, t4, t5, t6), t6)

#define ROW_4(at, t0, t1, t2, t3, t4) \
    "movq " #at "(%[b]), %%rdx\n\t" CHAINS(STEPS_4(a, t0, t1, t2, t3, t4), t4) CLEAR_4(t0, t1, t2, t3, t4)
#define ROW_6(at, t0, t1, t2, t3, t4, t5, t6) \
    "movq " #at "(%[b]), %%rdx\n\t" CHAINS(STEPS_6(a, t0, t1, t2, t3, t4, t5, t6), t6) \
    CLEAR_6(t0, t1, t2, t3, t4, t5, t6)

/* The first row has nothing to be added to: one chain is enough. */
#define FIRST(at, limb, above) \
    "mulxq " #at "(%[a]), %[lo], %[" #above "]\n\tadcq %[lo], %[" #limb "]\n\t"

void mont_mul_4_assembly(u64 *r, const u64 *a, const u64 *b) {
    u64 t0, t1, t2, t3, t4, lo, hi;
    __asm__(
        "movq (%[b]), %%rdx\n\t"
        "mulxq (%[a]), %[t0], %[t1]\n\t"
        "xorl %k[lo], %k[lo]\n\t"
        FIRST(8, t1, t2) FIRST(16, t2, t3) FIRST(24, t3, t4)
        "adcq $0, %[t4]\n\t"
        CLEAR_4(t0, t1, t2, t3, t4)
        ROW_4(8, t1, t2, t3, t4, t0)
        ROW_4(16, t2, t3, t4, t0, t1)
        ROW_4(24, t3, t4, t0, t1, t2)
        : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [lo] "=&r"(lo), [hi] "=&r"(hi)
        : [a] "r"(a), [b] "r"(b), [p] "r"(P4)
        : "rdx", "cc", "memory");
    REDUCE_4(t4, t0, t1, t2);
    r[0] = t4, r[1] = t0, r[2] = t1, r[3] = t2;
}

void mont_mul_6_assembly(u64 *r, const u64 *a, const u64 *b) {
    u64 t0, t1, t2, t3, t4, t5, t6, lo, hi;
    __asm__(
        "movq (%[b]), %%rdx\n\t"
        "mulxq (%[a]), %[t0], %[t1]\n\t"
        "xorl %k[lo], %k[lo]\n\t"
        FIRST(8, t1, t2) FIRST(16, t2, t3) FIRST(24, t3, t4) FIRST(32, t4, t5) FIRST(40, t5, t6)
        "adcq $0, %[t6]\n\t"
        CLEAR_6(t0, t1, t2, t3, t4, t5, t6)
        ROW_6(8, t1, t2, t3, t4, t5, t6, t0)
        ROW_6(16, t2, t3, t4, t5, t6, t0, t1)
        ROW_6(24, t3, t4, t5, t6, t0, t1, t2)
        ROW_6(32, t4, t5, t6, t0, t1, t2, t3)
        ROW_6(40, t5, t6, t0, t1, t2, t3, t4)
        : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [t5] "=&r"(t5),
          [t6] "=&r"(t6), [lo] "=&r"(lo), [hi] "=&r"(hi)
        : [a] "r"(a), [b] "r"(b), [p] "r"(P6)
        : "rdx", "cc", "memory");
    REDUCE_6(t6, t0, t1, t2, t3, t4);
    r[0] = t6, r[1] = t0, r[2] = t1, r[3] = t2, r[4] = t3, r[5] = t4;
}
