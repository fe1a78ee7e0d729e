/*
 * Verifies batches of secp256k1 signatures: ECDSA, BIP340, Bitcoin Cash Schnorr, Taproot tweaks.
 * Made by cbindgen from crates/assay-secp-c/src; `cargo test -p assay-secp-c` compares it.
 *
 * Link with libassay_secp_c.a, and on Linux with -lpthread -ldl -lm; crates/assay-secp-c/README.md.
 * The results and their exactness are documented in crates/assay-secp/README.md.
 */

#ifndef ASSAY_SECP_H
#define ASSAY_SECP_H

#include <stddef.h>
#include <stdint.h>

// Return value of a function. Only `ASSAY_SECP_STATUS_OK` means that results were written.
typedef enum assay_secp_status {
    // Done.
    ASSAY_SECP_STATUS_OK = 0,
    // A pointer that must not be null is null. A null operand is an empty one if its length is 0.
    ASSAY_SECP_STATUS_NULL_POINTER = 1,
    // A pointer to a structure does not have its alignment.
    ASSAY_SECP_STATUS_MISALIGNED = 2,
    // A batch without checks.
    ASSAY_SECP_STATUS_EMPTY_BATCH = 3,
    // More checks, or more bytes of an operand, than memory can hold.
    ASSAY_SECP_STATUS_TOO_LARGE = 4,
    // `kind` is none of `assay_secp_kind`, or `parity` is neither 0 nor 1.
    ASSAY_SECP_STATUS_BAD_KIND = 5,
    // An operand of fixed length has another length.
    ASSAY_SECP_STATUS_BAD_LENGTH = 6,
    // No backend has this name.
    ASSAY_SECP_STATUS_UNKNOWN_BACKEND = 7,
    // This processor does not run the backend.
    ASSAY_SECP_STATUS_UNAVAILABLE_BACKEND = 8,
    // The backend gave wrong results in its self-test: the processor or the build is faulty.
    ASSAY_SECP_STATUS_FAILED_SELF_TEST = 9,
    // Another thread is using the verifier. Each thread needs its own.
    ASSAY_SECP_STATUS_BUSY = 10,
    // There is not enough memory for the batch.
    ASSAY_SECP_STATUS_OUT_OF_MEMORY = 11,
    // A defect of this library, reported on standard error. The verifier can only be freed now.
    ASSAY_SECP_STATUS_DEFECT = 12,
} assay_secp_status;

// Kind of a check, and its operands.
typedef enum assay_secp_kind {
    // ECDSA as Bitcoin Core's `CPubKey::Verify`; a high S is accepted.
    //
    // key: compressed, uncompressed or hybrid. sig: lax DER without hash type. Bytes that are no key
    // or no signature, of any length, are invalid and no error. msg: 32 bytes.
    ASSAY_SECP_KIND_ECDSA = 0,
    // Schnorr signatures of BIP340.
    //
    // key: x coordinate, 32 bytes. sig: 64 bytes. msg: any length.
    ASSAY_SECP_KIND_BIP340 = 1,
    // Schnorr signatures of Bitcoin Cash (May 2019).
    //
    // key: as of ECDSA. sig: 64 bytes. msg: 32 bytes.
    ASSAY_SECP_KIND_BCH_SCHNORR = 2,
    // Verifies that internal key + tweak G is the output key (BIP341).
    //
    // key: x coordinate of the internal key. sig: the tweak. msg: x coordinate of the output key.
    // 32 bytes each; `parity` is that of the output key's y coordinate.
    ASSAY_SECP_KIND_TAPROOT_TWEAK = 3,
} assay_secp_kind;

// Verifies batches and keeps memory from one to the next. One thread at a time may use it; any may.
typedef struct assay_secp_verifier assay_secp_verifier;

// One question. `assay_secp_kind` lists the operands of each kind; they are only read, and only
// during the call.
typedef struct assay_secp_check {
    // One of `assay_secp_kind`.
    uint32_t kind;
    // Of a Taproot tweak 1 if the y coordinate of the output key is odd, else 0. Otherwise 0.
    uint32_t parity;
    // Key.
    const uint8_t *key;
    // Bytes of the key.
    size_t key_len;
    // Signature, or tweak.
    const uint8_t *sig;
    // Bytes of the signature.
    size_t sig_len;
    // Message, or output key.
    const uint8_t *msg;
    // Bytes of the message.
    size_t msg_len;
} assay_secp_check;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of this library, such as "0.1.0".
const char *assay_secp_version(void);

// Description of a status, in English; never null.
const char *assay_secp_status_text(int status);

// Makes a verifier and stores it in `*verifier`, or null there if there is none.
//
// Without a name (`backend` is null) the backend is the fastest that this processor runs and that
// passes its self-test, in the end `libsecp256k1`, which every processor runs. The first verifier
// of a process takes some milliseconds for the self-test.
//
// # Safety
// `backend` is null or a string that ends with a zero byte. `verifier` may be written to.
enum assay_secp_status assay_secp_verifier_new(const char *backend,
                                               struct assay_secp_verifier **verifier);

// Frees a verifier; null is allowed.
//
// # Safety
// `verifier` is null or from `assay_secp_verifier_new`, has not been freed, and no thread is using
// it or will.
void assay_secp_verifier_free(struct assay_secp_verifier *verifier);

// The name of the backend that a verifier uses, valid until the verifier is freed; null for null.
//
// # Safety
// `verifier` is null or from `assay_secp_verifier_new` and has not been freed.
const char *assay_secp_verifier_backend(const struct assay_secp_verifier *verifier);

// 1 if the backend chosen without a name gave wrong results in its self-test, so that libsecp256k1
// took its place; the processor or the build is faulty then. Otherwise 0, also for null.
//
// # Safety
// As `assay_secp_verifier_backend`.
int assay_secp_verifier_has_failed_self_test(const struct assay_secp_verifier *verifier);

// Validity of a check for `assay_secp_verify`: `ASSAY_SECP_STATUS_OK`, or the status that
// a batch with it would end with. This finds the check that a batch was rejected for.
//
// # Safety
// `check` is null or may be read, with the operands it points to.
enum assay_secp_status assay_secp_check_status(const struct assay_secp_check *check);

// Verifies `count` checks and sets each of `results` to 1 if its check is valid and to 0 if not.
//
// Exact: each result is that of libsecp256k1. Any other status than `ASSAY_SECP_STATUS_OK` sets all
// results to 0, as far as `results` and `count` allow it, and the checks are undecided.
//
// # Safety
// `verifier` is null or from `assay_secp_verifier_new` and has not been freed. `checks` is null or
// has `count` checks whose operands may be read. `results` is null or has room for `count` bytes, and
// lies apart from checks and operands.
enum assay_secp_status assay_secp_verify(struct assay_secp_verifier *verifier,
                                         const struct assay_secp_check *checks,
                                         size_t count,
                                         uint8_t *results);

// As `assay_secp_verify`, but 256 and more BIP340 signatures are verified as one weighted sum.
//
// With vectors that takes about half the time if all are valid. An invalid BIP340 signature is accepted with a
// probability below 2^-127; a valid one is never rejected, and other kinds are exact.
//
// # Safety
// As `assay_secp_verify`.
enum assay_secp_status assay_secp_verify_weighted(struct assay_secp_verifier *verifier,
                                                  const struct assay_secp_check *checks,
                                                  size_t count,
                                                  uint8_t *results);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ASSAY_SECP_H */
