//! Atomics, locks and parking: the standard library's, or in model tests loom's, which tries all interleavings.

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
