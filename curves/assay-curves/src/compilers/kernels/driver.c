/* Runs the kernels on orders, a line of JSON each way: ["compute", KERNEL, A, B] and ["time", KERNEL, TIMING, N].
 *
 * A and B are hexadecimal, 16 digits a word, the highest word first. TIMING is latency (each call works on the result of the
 * one before) or throughput (eight such chains). Kernels are called through pointers that the compiler cannot follow.
 */
#include "kernels.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WORDS_MAX 6
#define CHAINS_MAX 8

typedef void in_place(u64 *a, u64 *b);
typedef void three(u64 *r, const u64 *a, const u64 *b);

struct kernel {
    const char *name;
    int words;
    in_place *volatile in_place;
    three *volatile three;
};

#define ENTRIES_OF(style) \
    {"add256_" #style, 4, add256_##style, 0}, \
    {"add_mod_4_" #style, 4, 0, add_mod_4_##style}, \
    {"add_mod_6_" #style, 6, 0, add_mod_6_##style}, \
    {"mont_mul_4_" #style, 4, 0, mont_mul_4_##style}, \
    {"mont_mul_6_" #style, 6, 0, mont_mul_6_##style}

static const struct kernel KERNELS[] = {ENTRIES_OF(portable), ENTRIES_OF(intrinsics), ENTRIES_OF(assembly)};

static const struct kernel *find(const char *name) {
    for (unsigned i = 0; i < sizeof KERNELS / sizeof KERNELS[0]; ++i)
        if (strcmp(KERNELS[i].name, name) == 0)
            return &KERNELS[i];
    return 0;
}

/* Whether the text was a number of so many words. */
static int parse(const char *text, int words, u64 *number) {
    if (strlen(text) != (size_t)words * 16)
        return 0;
    for (int i = words - 1; i >= 0; --i, text += 16)
        if (sscanf(text, "%16llx", &number[i]) != 1)
            return 0;
    return 1;
}

static void compute(const struct kernel *kernel, const char *a_text, const char *b_text) {
    u64 a[WORDS_MAX], b[WORDS_MAX];
    if (!parse(a_text, kernel->words, a) || !parse(b_text, kernel->words, b)) {
        puts("{\"error\":\"an operand has the wrong length\"}");
        return;
    }
    if (kernel->in_place)
        kernel->in_place(a, b);
    else
        kernel->three(a, a, b);
    fputs("{\"result\":\"", stdout);
    for (int i = kernel->words - 1; i >= 0; --i)
        printf("%016llx", a[i]);
    puts("\"}");
}

static u64 now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (u64)time.tv_sec * 1000000000 + (u64)time.tv_nsec;
}

static void repeat(const struct kernel *kernel, u64 a[CHAINS_MAX][8], u64 *b, unsigned chains, u64 count) {
    in_place *two = kernel->in_place;
    three *f = kernel->three;
    unsigned mask = chains - 1;
    if (two)
        for (u64 i = 0; i < count; ++i)
            two(a[i & mask], b);
    else
        for (u64 i = 0; i < count; ++i)
            f(a[i & mask], a[i & mask], b);
}

static void time_it(const struct kernel *kernel, const char *timing, u64 count) {
    static u64 a[CHAINS_MAX][8] __attribute__((aligned(64)));
    static u64 b[8] __attribute__((aligned(64)));
    unsigned chains = strcmp(timing, "throughput") == 0 ? CHAINS_MAX : 1;
    for (int i = 0; i < kernel->words; ++i) {
        for (unsigned chain = 0; chain < chains; ++chain)
            a[chain][i] = 0x123456789abcdef * (chain + 1) >> 4;
        b[i] = 0xfedcba987654321 >> i;
    }
    u64 cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID), wall_ns = now_ns(CLOCK_MONOTONIC);
    repeat(kernel, a, b, chains, count);
    wall_ns = now_ns(CLOCK_MONOTONIC) - wall_ns, cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    printf("{\"wall_ns\":%llu,\"cpu_ns\":%llu}\n", wall_ns, cpu_ns);
}

int main(void) {
    char line[512];
    while (fgets(line, sizeof line, stdin)) {
        for (char *c = line; *c; ++c)
            if (strchr("[\"],", *c))
                *c = ' ';
        char what[16] = "", name[64] = "", first[128] = "", second[128] = "";
        sscanf(line, "%15s %63s %127s %127s", what, name, first, second);
        const struct kernel *kernel = find(name);
        u64 count = 0;
        if (!kernel)
            puts("{\"error\":\"no such kernel\"}");
        else if (strcmp(what, "compute") == 0)
            compute(kernel, first, second);
        else if (strcmp(what, "time") == 0 && sscanf(second, "%llu", &count) == 1)
            time_it(kernel, first, count);
        else
            puts("{\"error\":\"no such order\"}");
        fflush(stdout);
    }
    return 0;
}
