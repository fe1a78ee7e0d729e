/*
 * Verifies a batch of ECDSA and BIP340 signatures, one of which is bad, and finds that one.
 *
 *   cargo build --profile c-library -p assay-secp-c
 *   cc -I crates/assay-secp-c/include crates/assay-secp-c/examples/verify.c \
 *      target/c-library/libassay_secp_c.a -lpthread -ldl -lm -o verify
 *   ./verify
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assay_secp.h"

#define COUNT 1200
#define BAD 823

/* A published signature in hexadecimal. */
struct vector {
    uint32_t kind;
    const char *key;
    const char *sig;
    const char *msg;
};

static const struct vector VECTORS[] = {
    /* ECDSA with nonces of RFC 6979: key 1, "Satoshi Nakamoto". */
    {ASSAY_SECP_KIND_ECDSA, "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
     "3045022100934b1ea10a4b3c1757e2b0c017d0b6143ce3c9a7e6a4a49860d7a6ab210ee3d8"
     "02202442ce9d2b916064108014783e923ec36b49743e2ffa1c4496f01a512aafd9e5",
     "a0dc65ffca799873cbea0ac274015b9526505daaaed385155425f7337704883e"},
    /* BIP340, row 0 of its table. */
    {ASSAY_SECP_KIND_BIP340, "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9",
     "e907831f80848d1069a5371b402410364bdf1c5f8307b0084c55f1ce2dca8215"
     "25f66a4a85ea8b71e482a74f382d2ce5ebeee8fdb2172f477df4900d310536c0",
     "0000000000000000000000000000000000000000000000000000000000000000"},
    /* Key n - 1, "Satoshi Nakamoto". */
    {ASSAY_SECP_KIND_ECDSA, "0379be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
     "3045022100fd567d121db66e382991534ada77a6bd3106f0a1098c231e47993447cd6af2d0"
     "02206b39cd0eb1bc8603e159ef5c20a5c8ad685a45b06ce9bebed3f153d10d93bed5",
     "a0dc65ffca799873cbea0ac274015b9526505daaaed385155425f7337704883e"},
    /* Row 1. */
    {ASSAY_SECP_KIND_BIP340, "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659",
     "6896bd60eeae296db48a229ff71dfe071bde413e6d43f917dc8dcf8c78de3341"
     "8906d11ac976abccb20b091292bff4ea897efcb639ea871cfa95f6de339e4b0a",
     "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89"},
    /* Key f8b8af8c..., "Alan Turing". */
    {ASSAY_SECP_KIND_ECDSA, "0292df7b245b81aa637ab4e867c8d511008f79161a97d64f2ac709600352f7acbc",
     "304402207063ae83e7f62bbb171798131b4a0564b956930092b33b07b395615d9ec7e15c"
     "022058dfcc1e00a35e1572f366ffe34ba0fc47db1e7189759b9fb233c5b05ab388ea",
     "4ba38d48a60f1b29e9eb726eaff08b2e83d8d81e031666fee50e85900d7dc1ef"},
    /* Row 2. */
    {ASSAY_SECP_KIND_BIP340, "dd308afec5777e13121fa72b9cc1b7cc0139715309b086c960e18fd969774eb8",
     "5831aaeed7b44bb74e5eab94ba9d4294c49bcf2a60728d8b4c200f50dd313c1b"
     "ab745879a5ad954a72c45a91c3a51d3c7adea98d82f8481e0e1e03674a6f3fb7",
     "7e2d58d8b3bcdf1abadec7829054f90dda9805aab56c77333024b9d0a508b75c"},
};

#define VECTOR_COUNT (sizeof VECTORS / sizeof VECTORS[0])

/* Operands of one check. ECDSA signatures have up to 72 bytes. */
struct signed_message {
    uint8_t key[33];
    uint8_t sig[72];
    uint8_t msg[32];
};

static size_t from_hex(const char *text, uint8_t *bytes) {
    size_t length = strlen(text) / 2;
    for (size_t i = 0; i < length; i++) {
        unsigned byte = 0;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1) {
            abort();
        }
        bytes[i] = (uint8_t)byte;
    }
    return length;
}

static void fail(const char *what, assay_secp_status status) {
    fprintf(stderr, "%s: %s\n", what, assay_secp_status_text(status));
    exit(1);
}

/* The indices of results that are 0 go to `bad`; returns how many there are. */
static size_t bad_results(const uint8_t *results, size_t *bad) {
    size_t found = 0;
    for (size_t i = 0; i < COUNT; i++) {
        if (results[i] == 0) {
            bad[found++] = i;
        }
    }
    return found;
}

int main(void) {
    static struct signed_message signatures[COUNT];
    static assay_secp_check checks[COUNT];
    static uint8_t results[COUNT];
    static size_t bad[COUNT];

    for (size_t i = 0; i < COUNT; i++) {
        const struct vector *vector = &VECTORS[i % VECTOR_COUNT];
        struct signed_message *to = &signatures[i];
        checks[i] = (assay_secp_check){
            .kind = vector->kind,
            .key = to->key,
            .key_len = from_hex(vector->key, to->key),
            .sig = to->sig,
            .sig_len = from_hex(vector->sig, to->sig),
            .msg = to->msg,
            .msg_len = from_hex(vector->msg, to->msg),
        };
    }
    /* One changed bit of a message. */
    signatures[BAD].msg[31] ^= 1;

    assay_secp_verifier *verifier = NULL;
    assay_secp_status status = assay_secp_verifier_new(NULL, &verifier);
    if (status != ASSAY_SECP_STATUS_OK) {
        fail("no verifier", status);
    }
    printf("assay-secp %s, backend %s\n", assay_secp_version(),
           assay_secp_verifier_backend(verifier));

    for (int is_weighted = 0; is_weighted < 2; is_weighted++) {
        status = is_weighted ? assay_secp_verify_weighted(verifier, checks, COUNT, results)
                             : assay_secp_verify(verifier, checks, COUNT, results);
        if (status != ASSAY_SECP_STATUS_OK) {
            fail("not verified", status);
        }
        size_t found = bad_results(results, bad);
        printf("%s: %zu of %d signatures is bad: %zu\n", is_weighted ? "weighted" : "each", found,
               COUNT, bad[0]);
        if (found != 1 || bad[0] != BAD) {
            return 1;
        }
    }

    /* A batch that cannot be verified: results are 0, and the check at fault can be found. */
    checks[5].sig_len = 63;
    status = assay_secp_verify(verifier, checks, COUNT, results);
    if (status != ASSAY_SECP_STATUS_BAD_LENGTH || bad_results(results, bad) != COUNT) {
        fail("a wrong length", status);
    }
    for (size_t i = 0; i < COUNT; i++) {
        if ((assay_secp_check_status(&checks[i]) != ASSAY_SECP_STATUS_OK) != (i == 5)) {
            fail("the wrong check is at fault", assay_secp_check_status(&checks[i]));
        }
    }
    assay_secp_verifier *none = NULL;
    if (assay_secp_verify(verifier, NULL, COUNT, results) != ASSAY_SECP_STATUS_NULL_POINTER ||
        assay_secp_verify(verifier, checks, 0, results) != ASSAY_SECP_STATUS_EMPTY_BATCH ||
        assay_secp_verifier_new("no such backend", &none) !=
            ASSAY_SECP_STATUS_UNKNOWN_BACKEND) {
        fail("arguments", status);
    }
    assay_secp_verifier_free(verifier);
    return 0;
}
