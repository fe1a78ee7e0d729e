//! Loops: one task each, split when a thread is idle.

use std::ops::Range;

use crate::worker::Worker;

/// Iteration space of a loop: a range of numbers, or the [`chunks`] of a slice.
pub trait Items: Send + Sized {
    type Item;

    /// Number of remaining items.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes and returns the first item; there must be one.
    fn next(&mut self) -> Self::Item;

    /// Keeps the first `count` items, and returns the rest. There must be more than `count`.
    #[must_use]
    fn split_off(&mut self, count: usize) -> Self;
}

impl Items for Range<usize> {
    type Item = usize;

    #[inline]
    fn len(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    #[inline]
    fn next(&mut self) -> usize {
        self.start += 1;
        self.start - 1
    }

    fn split_off(&mut self, count: usize) -> Self {
        let middle = self.start + count;
        let rest = middle..self.end;
        self.end = middle;
        rest
    }
}

/// Iteration space over numbered chunks of a slice.
#[derive(Debug)]
pub struct Chunks<'a, T> {
    first: usize,
    size: usize,
    slice: &'a mut [T],
}

/// Splits a slice into chunks of `size` elements, numbered from 0; the last chunk may be shorter.
///
/// # Panics
///
/// If `size` is 0.
pub fn chunks<T>(slice: &mut [T], size: usize) -> Chunks<'_, T> {
    assert!(size > 0, "chunks of no elements");
    Chunks { first: 0, size, slice }
}

impl<'a, T: Send> Items for Chunks<'a, T> {
    type Item = (usize, &'a mut [T]);

    #[inline]
    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.slice.is_empty()
    }

    #[inline]
    fn next(&mut self) -> Self::Item {
        let size = self.size.min(self.slice.len());
        let chunk = self.slice.split_off_mut(..size).expect("within the slice");
        self.first += 1;
        (self.first - 1, chunk)
    }

    fn split_off(&mut self, count: usize) -> Self {
        let slice = self.slice.split_off_mut(count * self.size..).expect("within the slice");
        Self { first: self.first + count, size: self.size, slice }
    }
}

impl Worker {
    /// Calls `body` for each item.
    ///
    /// # Panics
    ///
    /// As `body` does; items after the one that panicked may or may not have been visited.
    #[inline]
    pub fn for_each<I: Items>(&self, items: I, body: impl Fn(&Self, I::Item) + Sync) {
        self.fold(items, || (), |worker, (), item| body(worker, item), |(), ()| ());
    }

    /// Folds the items in their order: `identity` starts each of the parts that the loop is split
    /// into, `fold` adds an item to the preceding ones, and `combine` joins adjacent parts.
    /// `combine` must be associative, but need not be commutative.
    ///
    /// # Panics
    ///
    /// As the closures do.
    #[inline]
    pub fn fold<I: Items, T: Send>(
        &self,
        items: I,
        identity: impl Fn() -> T + Sync,
        fold: impl Fn(&Self, T, I::Item) -> T + Sync,
        combine: impl Fn(T, T) -> T + Sync,
    ) -> T {
        part(self, items, &(identity, fold, combine))
    }
}

fn part<I: Items, T: Send>(
    worker: &Worker,
    mut items: I,
    closures: &(
        impl Fn() -> T + Sync,
        impl Fn(&Worker, T, I::Item) -> T + Sync,
        impl Fn(T, T) -> T + Sync,
    ),
) -> T {
    let (identity, fold, combine) = closures;
    let mut sum = identity();
    while !items.is_empty() {
        // Checked for every item: a load of an unmodified cache line costs less than a thread that
        // waits for a counter, which cannot predict the time of the next items.
        let hungry = worker.hungry();
        if hungry > 0 && items.len() > 1 {
            // One share each; the thief splits the shares of the others further.
            let rest = items.split_off((items.len() / (hungry + 1)).max(1));
            let (first, second) = worker.join(
                |worker| part(worker, items, closures),
                |worker| part(worker, rest, closures),
            );
            return combine(combine(sum, first), second);
        }
        sum = fold(worker, sum, items.next());
    }
    sum
}
