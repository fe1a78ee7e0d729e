//! Types shared by C and Rust, with C layout; no code here dereferences a pointer.

use core::ffi::{CStr, c_int};

/// Return value of a function. Only `ASSAY_SECP_STATUS_OK` means that results were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// A pointer that must not be null is null. A null operand is an empty one if its length is 0.
    NullPointer = 1,
    /// A pointer to a structure does not have its alignment.
    Misaligned = 2,
    /// A batch without checks.
    EmptyBatch = 3,
    /// More checks, or more bytes of an operand, than memory can hold.
    TooLarge = 4,
    /// `kind` is none of `assay_secp_kind`, or `parity` is neither 0 nor 1.
    BadKind = 5,
    /// An operand of fixed length has another length.
    BadLength = 6,
    /// No backend has this name.
    UnknownBackend = 7,
    /// This processor does not run the backend.
    UnavailableBackend = 8,
    /// The backend gave wrong results in its self-test: the processor or the build is faulty.
    FailedSelfTest = 9,
    /// Another thread is using the verifier. Each thread needs its own.
    Busy = 10,
    /// There is not enough memory for the batch.
    OutOfMemory = 11,
    /// A defect of this library, reported on standard error. The verifier can only be freed now.
    Defect = 12,
}

impl Status {
    /// Descriptions, in the order of the numbers.
    const TEXTS: [&CStr; 13] = [
        c"done",
        c"a pointer that must not be null is null",
        c"a pointer to a structure is misaligned",
        c"the batch has no checks",
        c"a count or length is larger than memory",
        c"a check's kind or parity has no meaning",
        c"an operand of fixed length has another length",
        c"no backend has this name",
        c"this processor does not run the backend",
        c"the backend fails its self-test on this processor",
        c"another thread is using the verifier",
        c"not enough memory for the batch",
        c"a defect of this library; the verifier can only be freed",
    ];

    /// Description of the status with this number. C may pass any number.
    pub(crate) fn text(number: c_int) -> Option<&'static CStr> {
        usize::try_from(number).ok().and_then(|number| Self::TEXTS.get(number).copied())
    }
}

/// Kind of a check, and its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Kind {
    /// ECDSA as Bitcoin Core's `CPubKey::Verify`; a high S is accepted.
    ///
    /// key: compressed, uncompressed or hybrid. sig: lax DER without hash type. Bytes that are no key
    /// or no signature, of any length, are invalid and no error. msg: 32 bytes.
    Ecdsa = 0,
    /// Schnorr signatures of BIP340.
    ///
    /// key: x coordinate, 32 bytes. sig: 64 bytes. msg: any length.
    Bip340 = 1,
    /// Schnorr signatures of Bitcoin Cash (May 2019).
    ///
    /// key: as of ECDSA. sig: 64 bytes. msg: 32 bytes.
    BchSchnorr = 2,
    /// Verifies that internal key + tweak G is the output key (BIP341).
    ///
    /// key: x coordinate of the internal key. sig: the tweak. msg: x coordinate of the output key.
    /// 32 bytes each; `parity` is that of the output key's y coordinate.
    TaprootTweak = 3,
}

impl Kind {
    /// The kind with this number. C may pass any number.
    pub(crate) fn of_number(number: u32) -> Option<Self> {
        [Self::Ecdsa, Self::Bip340, Self::BchSchnorr, Self::TaprootTweak]
            .into_iter()
            .find(|kind| *kind as u32 == number)
    }
}

/// One question. `assay_secp_kind` lists the operands of each kind; they are only read, and only
/// during the call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Check {
    /// One of `assay_secp_kind`.
    pub kind: u32,
    /// Of a Taproot tweak 1 if the y coordinate of the output key is odd, else 0. Otherwise 0.
    pub parity: u32,
    /// Key.
    pub key: *const u8,
    /// Bytes of the key.
    pub key_len: usize,
    /// Signature, or tweak.
    pub sig: *const u8,
    /// Bytes of the signature.
    pub sig_len: usize,
    /// Message, or output key.
    pub msg: *const u8,
    /// Bytes of the message.
    pub msg_len: usize,
}
