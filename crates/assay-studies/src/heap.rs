//! Counts heap allocations of a piece of work.
//!
//! The allocator is the system's ([docs/adr/0006](../../../../docs/adr/0006-allocator.md)). Only threads that ask for
//! it are counted; on all others the cost is a read of one word that never changes.

#![expect(unsafe_code, reason = "an allocator is unsafe by its interface; this one only passes on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeapUse {
    /// Peak of the allocated bytes above those at the start.
    pub(crate) peak_bytes: u64,
    /// Number of allocations and reallocations.
    pub(crate) allocations: u64,
    /// Bytes still allocated at the end.
    pub(crate) kept_bytes: i64,
}

/// Heap use of `work` on this thread. Other threads are not counted, even if they run for `work`.
pub(crate) fn heap_use<T>(work: impl FnOnce() -> T) -> (T, HeapUse) {
    /// Stops counting on drop, also if the work panics.
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            COUNT.with(|count| count.set(None));
            COUNTING.fetch_sub(1, Ordering::Relaxed);
        }
    }
    COUNTING.fetch_add(1, Ordering::Relaxed);
    COUNT.with(|count| count.set(Some(HeapUse::default())));
    let counted = Counted;
    let value = work();
    let found = COUNT.with(Cell::get).unwrap_or_default();
    drop(counted);
    (value, found)
}

static COUNTING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Counts of this thread. The cell has no destructor, so that it is accessible during the whole life of a thread.
    static COUNT: Cell<Option<HeapUse>> = const { Cell::new(None) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

/// Records freed and requested bytes.
#[cold]
fn note(returned: usize, asked: usize) {
    COUNT.with(|count| {
        let Some(mut found) = count.get() else { return };
        found.kept_bytes += asked as i64 - returned as i64;
        found.peak_bytes = found.peak_bytes.max(found.kept_bytes.max(0) as u64);
        found.allocations += u64::from(asked > 0);
        count.set(Some(found));
    });
}

#[inline]
fn is_counting() -> bool {
    COUNTING.load(Ordering::Relaxed) != 0
}

// SAFETY: every call is forwarded unchanged to the system's allocator, which keeps the contract;
// counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_counting() {
            note(0, layout.size());
        }
        // SAFETY: the caller keeps the contract of `alloc`, which is the same for the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_counting() {
            note(0, layout.size());
        }
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the same for the system's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if is_counting() {
            note(layout.size(), 0);
        }
        // SAFETY: the memory was allocated by the system's allocator with this layout, as all memory here is.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_counting() {
            note(layout.size(), size);
        }
        // SAFETY: the memory was allocated by the system's allocator with this layout, as all memory here is.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn counts_this_thread_alone() {
        let (kept, found) = heap_use(|| {
            drop(black_box(vec![1u8; 1000]));
            let mut grown = black_box(Vec::<u8>::with_capacity(100));
            grown.reserve_exact(300);
            // The memory of the other thread is not counted, only that of starting it.
            let other = std::thread::spawn(|| drop(black_box(vec![1u8; 1 << 20])));
            other.join().expect("no panic");
            grown
        });
        assert!((1000..100_000).contains(&found.peak_bytes), "{found:?}");
        assert!(found.allocations >= 3, "{found:?}");
        assert!((300..100_000).contains(&found.kept_bytes), "{found:?}");
        drop(kept);
        assert_eq!(heap_use(|| ()).1, HeapUse::default());
    }
}
