//! Queue of watched items to look up again, in the order of notification.
//!
//! Clients with few subscriptions are notified first: an item's class is the number of subscriptions of the address that has the
//! fewest among its watchers. A change that affects fifty thousand subscriptions of one client is processed in short slices after
//! the others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::outpoints::OutpointRecord;
use super::scripts::ScriptRecord;
use crate::server::schedule::SLICE;

/// Upper bound of the first class; each class has twice the bound of the previous one.
const FEW: usize = 128;
const CLASSES: usize = 14;
/// One of this many consecutive items comes from the last class, to prevent starvation.
const LAST_EVERY: u32 = 16;

/// A watched item.
#[derive(Debug)]
pub(in crate::server) enum Item {
    Script(Arc<ScriptRecord>),
    Outpoint(Arc<OutpointRecord>),
}

impl Item {
    fn is_queued(&self) -> &AtomicBool {
        match self {
            Self::Script(record) => &record.is_queued,
            Self::Outpoint(record) => &record.is_queued,
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Script(record) => record.weight(),
            Self::Outpoint(record) => record.weight(),
        }
    }
}

/// Items in classes, without duplicates, so its size is bounded by the number of watched items.
#[derive(Debug, Default)]
pub(in crate::server) struct NotifyQueue {
    classes: [VecDeque<Item>; CLASSES],
    in_a_row: u32,
}

impl NotifyQueue {
    pub(in crate::server) fn len(&self) -> usize {
        self.classes.iter().map(VecDeque::len).sum()
    }

    /// Adds an item unless it is queued.
    pub(in crate::server) fn add(&mut self, item: Item) {
        if !item.is_queued().swap(true, Ordering::Relaxed) {
            self.classes[class(item.weight())].push_back(item);
        }
    }

    /// Passes items to `refresh` for one time slice. On `false` the item is queued again and the slice ends with `false`.
    pub(in crate::server) fn run_slice(&mut self, mut refresh: impl FnMut(&Item) -> bool) -> bool {
        let start = Instant::now();
        while let Some(item) = self.next() {
            // First: any later change queues it again.
            item.is_queued().store(false, Ordering::Release);
            if !refresh(&item) {
                self.add(item);
                return false;
            }
            if start.elapsed() >= SLICE {
                break;
            }
        }
        true
    }

    fn next(&mut self) -> Option<Item> {
        self.in_a_row += 1;
        let from_last = self.in_a_row >= LAST_EVERY;
        let mut classes = self.classes.iter_mut();
        let class = if from_last {
            self.in_a_row = 0;
            classes.rfind(|class| !class.is_empty())
        } else {
            classes.find(|class| !class.is_empty())
        };
        class?.pop_front()
    }
}

fn class(subscriptions: usize) -> usize {
    let doublings = (subscriptions / FEW).checked_ilog2().map_or(0, |log| log as usize + 1);
    doublings.min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use assay_wire::{OutPoint, Txid};

    use super::*;

    fn item(vout: u32) -> Item {
        Item::Outpoint(Arc::new(OutpointRecord::new(OutPoint { txid: Txid([7; 32]), vout })))
    }

    fn vout(item: &Item) -> u32 {
        match item {
            Item::Outpoint(record) => record.outpoint.vout,
            Item::Script(_) => unreachable!("there is none"),
        }
    }

    #[test]
    fn classes_double() {
        for (subscriptions, expected) in
            [(0, 0), (127, 0), (128, 1), (255, 1), (256, 2), (50_000, 9), (usize::MAX, 13)]
        {
            assert_eq!(class(subscriptions), expected, "{subscriptions}");
        }
    }

    #[test]
    fn last_class_progresses_without_duplicates() {
        let mut queue = NotifyQueue::default();
        for number in 0..100 {
            let class = if number < 10 { 9 } else { 0 };
            let item = item(number);
            item.is_queued().store(true, Ordering::Relaxed);
            queue.classes[class].push_back(item);
        }
        let mut order = Vec::new();
        while let Some(item) = queue.next() {
            order.push(vout(&item));
        }
        assert_eq!(order.len(), 100);
        assert_eq!(order[..16], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 0]);
        let record = Arc::new(OutpointRecord::new(OutPoint { txid: Txid([7; 32]), vout: 1 }));
        queue.add(Item::Outpoint(Arc::clone(&record)));
        queue.add(Item::Outpoint(Arc::clone(&record)));
        let mut seen = 0;
        while queue.len() > 0 {
            queue.run_slice(|_| {
                seen += 1;
                seen > 1
            });
        }
        assert_eq!(seen, 2, "once for each time that it was asked for, and again after a failure");
    }
}
