//! Work-stealing deque: its worker pushes and pops at the bottom, thieves steal at the top.
//!
//! Chase and Lev, Dynamic Circular Work-Stealing Deque (SPAA 2005), with the memory orders of Lê,
//! Pop, Cohen and Zappa Nardelli, Correct and Efficient Work-Stealing for Weak Memory Models
//! (`PPoPP` 2013), and a ring of fixed size: a push to a full ring fails.

use std::ptr::NonNull;

use crate::sync::{AtomicPtr, AtomicUsize, Ordering, fence};

/// A deque of pointers with one owner and any number of thieves. Positions count up and wrap around after 2^64 pushes.
pub(crate) struct Deque<T> {
    /// Position of the next steal.
    top: AtomicUsize,
    /// Position of the next push; written by the owner only.
    bottom: AtomicUsize,
    /// Slots; their number is a power of two.
    ring: Box<[AtomicPtr<T>]>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Steal<T> {
    One(NonNull<T>),
    Empty,
    /// Lost a race against another thief or the owner.
    Lost,
}

impl<T> Deque<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        let slot = || AtomicPtr::new(std::ptr::null_mut());
        let ring = std::iter::repeat_with(slot).take(capacity.next_power_of_two()).collect();
        Self { top: AtomicUsize::new(0), bottom: AtomicUsize::new(0), ring }
    }

    fn slot(&self, position: usize) -> &AtomicPtr<T> {
        &self.ring[position & (self.ring.len() - 1)]
    }

    /// Exact for the owner's pushes; a hint for other threads.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        let (top, bottom) = (self.top.load(Ordering::Relaxed), self.bottom.load(Ordering::Relaxed));
        bottom.wrapping_sub(top) as isize <= 0
    }

    /// For the owner; false if the deque is full.
    pub(crate) fn push(&self, item: NonNull<T>) -> bool {
        let bottom = self.bottom.load(Ordering::Relaxed);
        if bottom.wrapping_sub(self.top.load(Ordering::Acquire)) >= self.ring.len() {
            return false;
        }
        self.slot(bottom).store(item.as_ptr(), Ordering::Relaxed);
        self.bottom.store(bottom.wrapping_add(1), Ordering::Release);
        true
    }

    /// Pops the newest item; for the owner.
    pub(crate) fn pop(&self) -> Option<NonNull<T>> {
        if self.is_empty() {
            return None;
        }
        let bottom = self.bottom.load(Ordering::Relaxed).wrapping_sub(1);
        self.bottom.store(bottom, Ordering::Relaxed);
        // A thief that has not read the new bottom has already advanced the top, as read here.
        fence(Ordering::SeqCst);
        let top = self.top.load(Ordering::Relaxed);
        let left = bottom.wrapping_sub(top) as isize;
        let is_mine = match left {
            1.. => return NonNull::new(self.slot(bottom).load(Ordering::Relaxed)),
            // A thief may win the last item.
            0 => self.take(top),
            _ => false,
        };
        self.bottom.store(bottom.wrapping_add(1), Ordering::Relaxed);
        if is_mine { NonNull::new(self.slot(bottom).load(Ordering::Relaxed)) } else { None }
    }

    /// Steals the oldest item; for any thread.
    pub(crate) fn steal(&self) -> Steal<T> {
        let top = self.top.load(Ordering::Acquire);
        fence(Ordering::SeqCst);
        let bottom = self.bottom.load(Ordering::Acquire);
        if bottom.wrapping_sub(top) as isize <= 0 {
            return Steal::Empty;
        }
        // Read first: once the top has advanced, the owner may overwrite the slot.
        let item = self.slot(top).load(Ordering::Relaxed);
        match NonNull::new(item) {
            Some(item) if self.take(top) => Steal::One(item),
            _ => Steal::Lost,
        }
    }

    fn take(&self, top: usize) -> bool {
        let next = top.wrapping_add(1);
        self.top.compare_exchange(top, next, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dangling pointer made from a number.
    fn item(number: usize) -> NonNull<u8> {
        NonNull::without_provenance(number.try_into().expect("not zero"))
    }

    #[cfg(not(loom))]
    #[test]
    fn newest_for_the_owner_and_oldest_for_thieves() {
        let deque = Deque::new(4);
        assert!(deque.is_empty());
        assert_eq!((deque.pop(), deque.steal()), (None, Steal::Empty));
        for round in 0..3 {
            let numbers = [1, 2, 3, 4].map(|number| item(10 * round + number));
            assert!(numbers.iter().all(|one| deque.push(*one)));
            assert!(!deque.push(item(99)), "it is full");
            assert_eq!(deque.pop(), Some(numbers[3]));
            assert_eq!(deque.steal(), Steal::One(numbers[0]));
            assert_eq!(deque.pop(), Some(numbers[2]));
            assert_eq!(deque.pop(), Some(numbers[1]));
            assert_eq!((deque.pop(), deque.steal()), (None, Steal::Empty));
        }
    }

    /// Under all interleavings of owner and thieves, every item is returned once.
    #[cfg(loom)]
    mod model {
        use loom::{sync::Arc, thread};

        use super::*;

        fn taken(deque: &Deque<u8>) -> Vec<usize> {
            match deque.steal() {
                Steal::One(one) => vec![one.addr().get()],
                Steal::Empty | Steal::Lost => Vec::new(),
            }
        }

        fn every_item_once(thieves: usize, steals: usize, owner: fn(&Deque<u8>) -> Vec<usize>) {
            let mut model = loom::model::Builder::new();
            // All interleavings of one thief; of two, those with a bounded number of preemptions.
            model.preemption_bound = (thieves > 1).then_some(2);
            model.check(move || {
                let deque = Arc::new(Deque::new(2));
                let thief = |_| {
                    let deque = Arc::clone(&deque);
                    thread::spawn(move || (0..steals).flat_map(|_| taken(&deque)).collect())
                };
                let thieves: Vec<thread::JoinHandle<Vec<usize>>> =
                    (0..thieves).map(thief).collect();
                let mut got = owner(&deque);
                for thief in thieves {
                    got.extend(thief.join().expect("no panic"));
                }
                got.extend(std::iter::from_fn(|| deque.pop()).map(|one| one.addr().get()));
                got.sort_unstable();
                assert_eq!(got, (1..=got.len()).collect::<Vec<_>>());
                assert!(got.len() >= 2, "{got:?}");
            });
        }

        fn push_and_pop(deque: &Deque<u8>) -> Vec<usize> {
            assert!(deque.push(item(1)) && deque.push(item(2)));
            deque.pop().map(|one| one.addr().get()).into_iter().collect()
        }

        #[test]
        fn one_thief() {
            every_item_once(1, 2, push_and_pop);
        }

        #[test]
        fn two_thieves() {
            every_item_once(2, 1, push_and_pop);
        }

        /// The third item overwrites the slot of the first, or its push fails.
        #[test]
        fn a_thief_while_the_ring_wraps() {
            every_item_once(1, 2, |deque| {
                let mut got = push_and_pop(deque);
                let next = 3;
                // A popped item is pushed under a new number, so that the numbers stay in sequence.
                if !deque.push(item(next)) {
                    got.push(next);
                }
                got
            });
        }
    }
}
