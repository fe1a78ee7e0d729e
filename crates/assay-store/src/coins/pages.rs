//! Zeroed memory from the kernel that can be released piecewise.
#![expect(unsafe_code, reason = "mmap, madvise and munmap take and return raw pointers")]

use std::ops::{Deref, DerefMut, Range};

#[cfg(target_os = "linux")]
use ahead::Mapping;

/// Types with valid zero bytes and without owned resources.
///
/// # Safety
/// Every bit pattern must be a valid value.
pub(super) unsafe trait Plain: Copy + Default {}

// SAFETY: every bit pattern is a valid number.
unsafe impl Plain for u8 {}
// SAFETY: every bit pattern is a valid number.
unsafe impl Plain for u64 {}

/// A slice of zeros, on huge pages if the kernel has some.
///
/// The cache is read at random, so with pages of 4 KiB nearly every access would also miss the TLB. The first touch of a huge
/// page also costs less than the first touch of 512 small ones. Only touched pages take memory, and [released](Self::release)
/// pages take none, so that a copy of the whole needs the memory of one.
#[cfg(target_os = "linux")]
pub(super) struct Pages<T: Plain> {
    start: std::ptr::NonNull<T>,
    length: usize,
    /// Owner of the memory at `start`; `None` if nothing is mapped.
    mapping: Option<std::sync::Arc<Mapping>>,
}

#[cfg(target_os = "linux")]
impl<T: Plain> Pages<T> {
    /// `length` zeros; `None` if the kernel cannot map them.
    pub(super) fn zeroed(length: usize) -> Option<Self> {
        let bytes = bytes_of::<T>(length)?;
        if bytes == 0 {
            return Some(Self { start: std::ptr::NonNull::dangling(), length, mapping: None });
        }
        let is_huge = bytes >= 2 * HUGE_PAGE_BYTES;
        // Huge pages are aligned to their size, so map one more and unmap the excess.
        let slack = if is_huge { HUGE_PAGE_BYTES } else { 0 };
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new private mapping at an address of the kernel's choice overlaps no existing memory.
        let mapped =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes + slack, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        let before =
            if is_huge { mapped.addr().next_multiple_of(slack) - mapped.addr() } else { 0 };
        let start = mapped.wrapping_byte_add(before);
        if before > 0 {
            // SAFETY: the first `before` bytes of the new mapping, whole pages without references.
            unsafe { libc::munmap(mapped, before) };
        }
        if slack > before {
            let end = start.wrapping_byte_add(bytes);
            // SAFETY: the last bytes of the new mapping, whole pages without references.
            unsafe { libc::munmap(end, slack - before) };
        }
        if is_huge {
            // SAFETY: the range is the new mapping, and the advice changes which pages back it, never its contents. A failure (no
            // huge pages in this kernel) has no effect.
            unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        }
        let mapping =
            Some(std::sync::Arc::new(Mapping { address: start.expose_provenance(), bytes }));
        Some(Self { start: std::ptr::NonNull::new(start.cast())?, length, mapping })
    }

    /// Hints that these elements, as far as they exist, will soon be written: another thread populates their memory.
    pub(super) fn expect(&self, elements: Range<usize>) {
        let end = elements.end.min(self.length);
        if let Some(mapping) = &self.mapping
            && elements.start < end
        {
            ahead::populate(mapping, elements.start * size_of::<T>()..end * size_of::<T>());
        }
    }

    /// Releases the memory of these elements, except for pages shared with others; they read as zeros or as before.
    pub(super) fn release(&mut self, elements: Range<usize>) {
        let Range { start, end } = elements;
        assert!(start <= end && end <= self.length, "only what is there can be released");
        let page = RELEASE_PAGE_BYTES / size_of::<T>();
        let (first, last) = (start.next_multiple_of(page), end / page * page);
        if first < last {
            let from = self.start.as_ptr().wrapping_add(first).cast();
            let bytes = (last - first) * size_of::<T>();
            // SAFETY: the range is whole pages inside this private mapping, which is borrowed mutably; afterwards they hold
            // zeros, which are valid values of T.
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
        // SAFETY: the mapping holds `length` elements for as long as this value lives, and all bit patterns are valid.
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

/// Other platforms: an ordinary allocation, released as a whole.
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

/// A multiple of the page size of every Linux platform.
#[cfg(target_os = "linux")]
const RELEASE_PAGE_BYTES: usize = 64 << 10;

/// Populates memory ahead of writes.
///
/// The first touch of a page waits until the kernel has cleared it, and in a virtual machine often until the host has allocated
/// memory too. There 2 to 4 ms per huge page were measured, a third of the time of a block with many outputs. A separate thread
/// therefore touches the next pages.
#[cfg(target_os = "linux")]
mod ahead {
    use std::ops::Range;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{SyncSender, sync_channel};
    use std::sync::{Arc, OnceLock};
    use std::thread;

    /// A mapping, unmapped with its last reference.
    pub(super) struct Mapping {
        pub(super) address: usize,
        pub(super) bytes: usize,
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            let start = std::ptr::with_exposed_provenance_mut(self.address);
            // SAFETY: the mapping is this value's own, in whole, and no reference to it exists.
            unsafe { libc::munmap(start, self.bytes) };
        }
    }

    type Request = (Arc<Mapping>, Range<usize>);

    /// Queue length. Requests beyond it are dropped, since the writer can touch the pages itself.
    const WAITING_MAX: usize = 16;

    /// Bytes per populate call: one huge page.
    const STEP_BYTES: usize = super::HUGE_PAGE_BYTES;

    /// Kernels before 5.14 do not support the request.
    static IS_REFUSED: AtomicBool = AtomicBool::new(false);

    /// Populates these bytes of a mapping on another thread.
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
            // The queue is full or the thread has ended: the write will touch the page.
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
