//! Atomics, locks and parking of the standard library, or of loom in model tests, which explore all interleavings.

#[cfg(all(test, loom))]
pub(crate) use loom::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence},
    },
    thread::{Thread, current, park, yield_now},
};
#[cfg(not(all(test, loom)))]
pub(crate) use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence},
    },
    thread::{Thread, current, park, yield_now},
};
