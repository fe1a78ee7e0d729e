//! The exported C functions, with all unsafe code of this crate.
//!
//! Each function checks its arguments as far as possible before it dereferences a pointer, and runs inside `caught`, because
//! unwinding into C is undefined.

#![expect(unsafe_code, reason = "pointers from C, exported names")]

use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, TryLockError};

use assay_secp::{Backend, BatchVerifier};

use crate::types::{Check, Kind, Status};

type Asked<'a> = assay_secp::Check<'a>;

type Method = fn(&mut BatchVerifier, &[Asked<'_>], &mut Vec<bool>);

/// Verifies batches and keeps memory from one to the next. One thread at a time may use it; any may.
#[derive(Debug)]
pub struct Verifier {
    /// Poisoned by a panic, and unusable afterwards.
    batch: Mutex<BatchVerifier>,
    backend: CString,
    has_failed_self_test: bool,
}

// C may move verifiers between threads.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Verifier>();
};

impl Verifier {
    pub(crate) fn new(batch: BatchVerifier) -> Result<Self, Status> {
        let backend = CString::new(batch.backend().name()).map_err(|_| Status::Defect)?;
        let has_failed_self_test = batch.has_failed_self_test();
        Ok(Self { batch: Mutex::new(batch), backend, has_failed_self_test })
    }

    /// Runs `work` unless another thread uses the verifier or an earlier panic poisoned it.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut BatchVerifier) -> Result<T, Status>,
    ) -> Result<T, Status> {
        match self.batch.try_lock() {
            Ok(mut batch) => work(&mut batch),
            Err(TryLockError::WouldBlock) => Err(Status::Busy),
            Err(TryLockError::Poisoned(_)) => Err(Status::Defect),
        }
    }
}

/// Turns a panic into [`Status::Defect`].
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, Status>) -> Result<T, Status> {
    // Any inconsistent state is behind the verifier's lock, which the panic poisons.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        // Dropping it could panic again.
        core::mem::forget(payload);
        Err(Status::Defect)
    })
}

fn status(result: Result<(), Status>) -> Status {
    result.err().unwrap_or(Status::Ok)
}

/// The version of this library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn assay_secp_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no zero byte"),
        };
    VERSION.as_ptr()
}

/// Description of a status, in English; never null.
#[unsafe(no_mangle)]
pub extern "C" fn assay_secp_status_text(status: c_int) -> *const c_char {
    Status::text(status).unwrap_or(c"not a status of this library").as_ptr()
}

/// Makes a verifier and stores it in `*verifier`, or null there if there is none.
///
/// Without a name (`backend` is null) the backend is the fastest that this processor runs and that
/// passes its self-test, in the end `libsecp256k1`, which every processor runs. The first verifier
/// of a process takes some milliseconds for the self-test.
///
/// # Safety
/// `backend` is null or a string that ends with a zero byte. `verifier` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn assay_secp_verifier_new(
    backend: *const c_char,
    verifier: *mut *mut Verifier,
) -> Status {
    if let Err(status) = pointer_is_good(verifier) {
        return status;
    }
    let made = caught(|| {
        let backend = if backend.is_null() {
            None
        } else {
            // SAFETY: the caller guarantees a zero-terminated string.
            Some(unsafe { CStr::from_ptr(backend) })
        };
        make(backend).map(Box::new)
    });
    let (made, status) = match made {
        Ok(made) => (Box::into_raw(made), Status::Ok),
        Err(status) => (core::ptr::null_mut(), status),
    };
    // SAFETY: not null and aligned, and the caller guarantees that it is writable.
    unsafe { verifier.write(made) };
    status
}

fn make(name: Option<&CStr>) -> Result<Verifier, Status> {
    let Some(name) = name else { return Verifier::new(BatchVerifier::new()) };
    let name = name.to_str().map_err(|_| Status::UnknownBackend)?;
    let backend = Backend::by_name(name).ok_or(Status::UnknownBackend)?;
    if !backend.available() {
        return Err(Status::UnavailableBackend);
    }
    let batch = BatchVerifier::with_backend(backend);
    if batch.backend() != backend {
        return Err(Status::FailedSelfTest);
    }
    Verifier::new(batch)
}

/// Frees a verifier; null is allowed.
///
/// # Safety
/// `verifier` is null or from `assay_secp_verifier_new`, has not been freed, and no thread is using
/// it or will.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn assay_secp_verifier_free(verifier: *mut Verifier) {
    if pointer_is_good(verifier).is_ok() {
        // SAFETY: made by `Box::into_raw`, and the caller transfers ownership.
        let verifier = unsafe { Box::from_raw(verifier) };
        // A failure cannot be reported.
        let _ = caught(|| {
            drop(verifier);
            Ok(())
        });
    }
}

/// The name of the backend that a verifier uses, valid until the verifier is freed; null for null.
///
/// # Safety
/// `verifier` is null or from `assay_secp_verifier_new` and has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn assay_secp_verifier_backend(verifier: *const Verifier) -> *const c_char {
    // SAFETY: the caller guarantees that it is null or a verifier.
    match unsafe { shared(verifier) } {
        Ok(verifier) => verifier.backend.as_ptr(),
        Err(_) => core::ptr::null(),
    }
}

/// 1 if the backend chosen without a name gave wrong results in its self-test, so that libsecp256k1
/// took its place; the processor or the build is faulty then. Otherwise 0, also for null.
///
/// # Safety
/// As `assay_secp_verifier_backend`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn assay_secp_verifier_has_failed_self_test(
    verifier: *const Verifier,
) -> c_int {
    // SAFETY: the caller guarantees that it is null or a verifier.
    unsafe { shared(verifier) }.is_ok_and(|verifier| verifier.has_failed_self_test).into()
}

/// Validity of a check for `assay_secp_verify`: `ASSAY_SECP_STATUS_OK`, or the status that
/// a batch with it would end with. This finds the check that a batch was rejected for.
///
/// # Safety
/// `check` is null or may be read, with the operands it points to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn assay_secp_check_status(check: *const Check) -> Status {
    status(caught(|| {
        // SAFETY: the caller guarantees that it is null or a check.
        let check = unsafe { shared(check) }?;
        // SAFETY: the caller guarantees that its operands are readable.
        unsafe { asked(check) }.map(drop)
    }))
}

/// Verifies `count` checks and sets each of `results` to 1 if its check is valid and to 0 if not.
///
/// Exact: each result is that of libsecp256k1. Any other status than `ASSAY_SECP_STATUS_OK` sets all
/// results to 0, as far as `results` and `count` allow it, and the checks are undecided.
///
/// # Safety
/// `verifier` is null or from `assay_secp_verifier_new` and has not been freed. `checks` is null or
/// has `count` checks whose operands may be read. `results` is null or has room for `count` bytes, and
/// lies apart from checks and operands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn assay_secp_verify(
    verifier: *mut Verifier,
    checks: *const Check,
    count: usize,
    results: *mut u8,
) -> Status {
    // SAFETY: the caller's guarantees.
    unsafe { verify_by(BatchVerifier::verify, verifier, checks, count, results) }
}

/// As `assay_secp_verify`, but 256 and more BIP340 signatures are verified as one weighted sum.
///
/// With vectors that takes about half the time if all are valid. An invalid BIP340 signature is accepted with a
/// probability below 2^-127; a valid one is never rejected, and other kinds are exact.
///
/// # Safety
/// As `assay_secp_verify`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn assay_secp_verify_weighted(
    verifier: *mut Verifier,
    checks: *const Check,
    count: usize,
    results: *mut u8,
) -> Status {
    // SAFETY: the caller's guarantees.
    unsafe { verify_by(BatchVerifier::verify_weighted, verifier, checks, count, results) }
}

/// # Safety
/// As [`assay_secp_verify`].
unsafe fn verify_by(
    method: Method,
    verifier: *mut Verifier,
    checks: *const Check,
    count: usize,
    results: *mut u8,
) -> Status {
    // SAFETY: the caller's guarantees.
    let valid = caught(|| unsafe { valid_by(method, verifier, checks, count) });
    // All reads are done, so even results that overlap checks are sound now.
    if results.is_null() {
        return Status::NullPointer;
    }
    match valid {
        Ok(valid) => {
            // SAFETY: `results` has room for `count` bytes, as many as there are in `valid`, where
            // each is 0 or 1; memory of our own does not overlap it.
            unsafe { results.copy_from_nonoverlapping(valid.as_ptr().cast(), count) };
            Status::Ok
        }
        Err(status) => {
            if count <= COUNT_MAX {
                // SAFETY: `results` has room for `count` bytes.
                unsafe { results.write_bytes(0, count) };
            }
            status
        }
    }
}

/// More checks do not fit into an address space.
const COUNT_MAX: usize = isize::MAX as usize / size_of::<Check>();

/// One entry per check.
///
/// # Safety
/// As [`assay_secp_verify`], for `verifier` and `checks`.
unsafe fn valid_by(
    method: Method,
    verifier: *mut Verifier,
    checks: *const Check,
    count: usize,
) -> Result<Vec<bool>, Status> {
    // SAFETY: the caller guarantees that it is null or a verifier.
    let verifier = unsafe { shared(verifier) }?;
    pointer_is_good(checks.cast_mut())?;
    if count == 0 {
        return Err(Status::EmptyBatch);
    }
    if count > COUNT_MAX {
        return Err(Status::TooLarge);
    }
    // SAFETY: not null, aligned, not larger than an address space, and the caller guarantees this number of checks.
    let checks = unsafe { core::slice::from_raw_parts(checks, count) };
    let (mut batch, mut valid) = (Vec::new(), Vec::new());
    batch.try_reserve_exact(count).map_err(|_| Status::OutOfMemory)?;
    valid.try_reserve_exact(count).map_err(|_| Status::OutOfMemory)?;
    for check in checks {
        // SAFETY: the caller guarantees that operands are readable.
        batch.push(unsafe { asked(check) }?);
    }
    verifier.with(|verifier| {
        method(verifier, &batch, &mut valid);
        if valid.len() == count { Ok(valid) } else { Err(Status::Defect) }
    })
}

/// Converts a C check.
///
/// # Safety
/// The operands must be readable for as long as the check.
unsafe fn asked(check: &Check) -> Result<Asked<'_>, Status> {
    let kind = Kind::of_number(check.kind).ok_or(Status::BadKind)?;
    let is_parity = matches!(kind, Kind::TaprootTweak);
    if check.parity > u32::from(is_parity) {
        return Err(Status::BadKind);
    }
    // SAFETY: the caller guarantees that operands are readable.
    let key = unsafe { operand(check.key, check.key_len) }?;
    // SAFETY: likewise.
    let sig = unsafe { operand(check.sig, check.sig_len) }?;
    // SAFETY: likewise.
    let msg = unsafe { operand(check.msg, check.msg_len) }?;
    Ok(match kind {
        Kind::Ecdsa => Asked::Ecdsa { pubkey: key, der_sig: sig, msg: fixed(msg)? },
        Kind::Bip340 => Asked::Schnorr { xonly: fixed(key)?, sig: fixed(sig)?, msg },
        Kind::BchSchnorr => Asked::SchnorrBch { pubkey: key, sig: fixed(sig)?, msg: fixed(msg)? },
        Kind::TaprootTweak => Asked::TaprootTweak {
            internal: fixed(key)?,
            tweak: fixed(sig)?,
            output: fixed(msg)?,
            parity: check.parity == 1,
        },
    })
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], Status> {
    bytes.try_into().map_err(|_| Status::BadLength)
}

/// # Safety
/// `data` must be readable for `length` bytes during `'a`.
unsafe fn operand<'a>(data: *const u8, length: usize) -> Result<&'a [u8], Status> {
    match (data.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Status::NullPointer),
        (false, _) if length > isize::MAX as usize => Err(Status::TooLarge),
        // SAFETY: not null, not larger than an address space, and the caller guarantees the rest.
        (false, _) => Ok(unsafe { core::slice::from_raw_parts(data, length) }),
    }
}

/// # Safety
/// `pointer` must be null, misaligned or readable during `'a`.
unsafe fn shared<'a, T>(pointer: *const T) -> Result<&'a T, Status> {
    pointer_is_good(pointer.cast_mut())?;
    // SAFETY: not null and aligned, and the caller guarantees the rest.
    Ok(unsafe { &*pointer })
}

fn pointer_is_good<T>(pointer: *mut T) -> Result<(), Status> {
    if pointer.is_null() {
        Err(Status::NullPointer)
    } else if !pointer.is_aligned() {
        Err(Status::Misaligned)
    } else {
        Ok(())
    }
}
