//! Zeroed memory straight from the kernel, which can be given back piece by piece.
#![expect(unsafe_code, reason = "mmap, madvise and munmap take and return raw pointers")]

use std::ops::{Deref, DerefMut, Range};

#[cfg(target_os = "linux")]
use ahead::Mapping;

/// Types for which zero bytes are a value, and that own nothing.
///
/// # Safety
/// Every bit pattern must be a value.
pub(super) unsafe trait Plain: Copy + Default {}

// SAFETY: every bit pattern is a number.
unsafe impl Plain for u8 {}
// SAFETY: every bit pattern is a number.
unsafe impl Plain for u64 {}

/// A slice of zeros, on huge pages where the kernel has some to give.
///
/// The cache is read at random, so with pages of 4 KiB nearly every access would also miss the TLB. On a first touch a huge
/// page is also cheaper than 512 small ones. Only what is touched takes memory, and what is [released](Self::release)
/// takes none any more, so that a copy of the whole can be made in the memory of one.
#[cfg(target_os = "linux")]
pub(super) struct Pages<T: Plain> {
    start: std::ptr::NonNull<T>,
    length: usize,
    /// What `start` points to; `None` where nothing is mapped.
    mapping: Option<std::sync::Arc<Mapping>>,
}

#[cfg(target_os = "linux")]
impl<T: Plain> Pages<T> {
    /// `length` zeros; `None` if the kernel refuses.
    pub(super) fn zeroed(length: usize) -> Option<Self> {
        let bytes = bytes_of::<T>(length)?;
        if bytes == 0 {
            return Some(Self { start: std::ptr::NonNull::dangling(), length, mapping: None });
        }
        let is_huge = bytes >= 2 * HUGE_PAGE_BYTES;
        // Huge pages lie at multiples of their size, so take one more and give back what sticks out.
        let slack = if is_huge { HUGE_PAGE_BYTES } else { 0 };
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new private mapping wherever the kernel likes touches no memory that exists.
        let mapped =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes + slack, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        let before =
            if is_huge { mapped.addr().next_multiple_of(slack) - mapped.addr() } else { 0 };
        let start = mapped.wrapping_byte_add(before);
        if before > 0 {
            // SAFETY: the first `before` bytes of the mapping just made, whole pages, referred to by nothing.
            unsafe { libc::munmap(mapped, before) };
        }
        if slack > before {
            let end = start.wrapping_byte_add(bytes);
            // SAFETY: the last bytes of the mapping just made, whole pages, referred to by nothing.
            unsafe { libc::munmap(end, slack - before) };
        }
        if is_huge {
            // SAFETY: the range is the mapping just made, and the advice changes which pages back it, never its contents.
            // It may be refused (no huge pages in this kernel), which is as good as not having asked.
            unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        }
        let mapping =
            Some(std::sync::Arc::new(Mapping { address: start.expose_provenance(), bytes }));
        Some(Self { start: std::ptr::NonNull::new(start.cast())?, length, mapping })
    }

    /// These elements will soon be written, as far as they exist: another thread gets their memory from the kernel meanwhile.
    pub(super) fn expect(&self, elements: Range<usize>) {
        let end = elements.end.min(self.length);
        if let Some(mapping) = &self.mapping
            && elements.start < end
        {
            ahead::populate(mapping, elements.start * size_of::<T>()..end * size_of::<T>());
        }
    }

    /// Gives the memory of these elements back, apart from pages that others share; they read as zeros or as before.
    pub(super) fn release(&mut self, elements: Range<usize>) {
        let Range { start, end } = elements;
        assert!(start <= end && end <= self.length, "only what is there can be released");
        let page = RELEASE_PAGE_BYTES / size_of::<T>();
        let (first, last) = (start.next_multiple_of(page), end / page * page);
        if first < last {
            let from = self.start.as_ptr().wrapping_add(first).cast();
            let bytes = (last - first) * size_of::<T>();
            // SAFETY: the range is whole pages inside this private mapping, which is borrowed mutably; afterwards they
            // hold zeros, which are values of T.
            unsafe { libc::madvise(from, bytes, libc::MADV_DONTNEED) };
        }
    }
}

#[cfg(target_os = "linux")]
fn bytes_of<T>(length: usize) -> Option<usize> {
    length.checked_mul(size_of::<T>())?.checked_next_multiple_of(RELEASE_PAGE_BYTES)
}

#[cfg(target_os = "linux")]
impl<T: Plain> Deref for Pages<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping holds `length` elements for as long as this value lives, and all bit patterns are values.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

#[cfg(target_os = "linux")]
impl<T: Plain> DerefMut for Pages<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the mapping is this value's own.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

// SAFETY: the mapping belongs to this value alone and its elements own nothing.
#[cfg(target_os = "linux")]
unsafe impl<T: Plain + Send> Send for Pages<T> {}
// SAFETY: shared references only read.
#[cfg(target_os = "linux")]
unsafe impl<T: Plain + Sync> Sync for Pages<T> {}

/// Elsewhere an ordinary allocation, given back as a whole.
#[cfg(not(target_os = "linux"))]
pub(super) struct Pages<T: Plain>(Vec<T>);

#[cfg(not(target_os = "linux"))]
impl<T: Plain> Pages<T> {
    #[expect(clippy::unnecessary_wraps, reason = "the other form can fail")]
    pub(super) fn zeroed(length: usize) -> Option<Self> {
        Some(Self(vec![T::default(); length]))
    }

    #[expect(clippy::unused_self, reason = "the other form does something")]
    pub(super) fn expect(&self, _elements: Range<usize>) {}

    #[expect(clippy::unused_self, reason = "the other form does something")]
    pub(super) fn release(&mut self, _elements: Range<usize>) {}
}

#[cfg(not(target_os = "linux"))]
impl<T: Plain> Deref for Pages<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

#[cfg(not(target_os = "linux"))]
impl<T: Plain> DerefMut for Pages<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

#[cfg(target_os = "linux")]
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A multiple of the page size of every Linux there is.
#[cfg(target_os = "linux")]
const RELEASE_PAGE_BYTES: usize = 64 << 10;

/// Memory that is got from the kernel before it is written to.
///
/// The first touch of a page waits until the kernel has cleared it, and in a virtual machine often until the host has found
/// memory as well: 2 to 4 ms for a huge page were seen there, a third of the time that a block of many outputs took. So a thread
/// of its own touches what comes next.
#[cfg(target_os = "linux")]
mod ahead {
    use std::ops::Range;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{SyncSender, sync_channel};
    use std::sync::{Arc, OnceLock};
    use std::thread;

    /// A mapping, which goes when nobody uses it any more.
    pub(super) struct Mapping {
        pub(super) address: usize,
        pub(super) bytes: usize,
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            let start = std::ptr::with_exposed_provenance_mut(self.address);
            // SAFETY: the mapping is this value's own, in whole, and nothing refers to it any more.
            unsafe { libc::munmap(start, self.bytes) };
        }
    }

    type Request = (Arc<Mapping>, Range<usize>);

    /// Requests that wait; one more is dropped, since whoever writes can touch a page just as well.
    const WAITING_MAX: usize = 16;

    /// Bytes asked of the kernel at a time: one huge page.
    const STEP_BYTES: usize = super::HUGE_PAGE_BYTES;

    /// Kernels before 5.14 do not know the request.
    static IS_REFUSED: AtomicBool = AtomicBool::new(false);

    /// Has these bytes of a mapping touched by another thread.
    pub(super) fn populate(mapping: &Arc<Mapping>, bytes: Range<usize>) {
        static SENDER: OnceLock<Option<SyncSender<Request>>> = OnceLock::new();
        if IS_REFUSED.load(Ordering::Relaxed) {
            return;
        }
        let sender = SENDER.get_or_init(|| {
            let (sender, requests) = sync_channel::<Request>(WAITING_MAX);
            let serve =
                move || requests.into_iter().for_each(|(mapping, bytes)| touch(&mapping, bytes));
            thread::Builder::new().name("coin-memory".into()).spawn(serve).ok().map(|_| sender)
        });
        if let Some(sender) = sender {
            // Full, or the thread is gone: then it is touched when it is written.
            let _ = sender.try_send((Arc::clone(mapping), bytes));
        }
    }

    fn touch(mapping: &Mapping, bytes: Range<usize>) {
        let first = bytes.start / super::RELEASE_PAGE_BYTES * super::RELEASE_PAGE_BYTES;
        let end = bytes.end.min(mapping.bytes);
        let mut at = first;
        while at < end && !IS_REFUSED.load(Ordering::Relaxed) {
            let length = (end - at).min(STEP_BYTES);
            let start = std::ptr::with_exposed_provenance_mut(mapping.address + at);
            // SAFETY: the range lies inside a mapping that `mapping` keeps alive; the kernel backs its pages as a write would
            // and changes nothing in them.
            if unsafe { libc::madvise(start, length, libc::MADV_POPULATE_WRITE) } != 0 {
                IS_REFUSED.store(true, Ordering::Relaxed);
            }
            at += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zero_writable_and_given_back() {
        for length in [0, 1, 4096, 100_000, (5 << 20) + 3] {
            let mut pages: Pages<u64> = Pages::zeroed(length).expect("there is memory");
            assert_eq!(pages.len(), length);
            assert!(pages.iter().all(|&word| word == 0));
            pages.expect(length / 2..usize::MAX);
            pages.fill(7);
            pages.release(length / 3..length / 2);
            let kept = |part: &[u64]| part.iter().all(|&word| word == 7);
            assert!(kept(&pages[..length / 3]) && kept(&pages[length / 2..]));
            assert!(pages.iter().all(|&word| word == 0 || word == 7));
            pages.fill(9);
            assert!(pages.iter().all(|&word| word == 9));
        }
        assert!(Pages::<u64>::zeroed(usize::MAX).is_none());
    }
}
