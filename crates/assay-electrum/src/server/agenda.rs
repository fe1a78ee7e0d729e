//! What is to be looked at because it may have changed, in the order in which clients are to hear of it.
//!
//! Whoever watches little hears first: what is watched waits in a class by the number of subscriptions of the address that has
//! the fewest of those who watch it. A change that concerns fifty thousand subscriptions of one client is worked off in short
//! slices behind whatever concerns others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::outpoints::OutpointRecord;
use super::watch::ScriptRecord;

/// After this much time, news that came meanwhile is taken up.
pub(super) const SLICE: Duration = Duration::from_millis(2);
/// Subscriptions of those in the first class; each class has twice as many as the one before.
const FEW: usize = 128;
const CLASSES: usize = 14;
/// Of this many in a row, one is taken from the last class: they move, however slowly.
const LAST_EVERY: u32 = 16;

/// Something that is watched.
#[derive(Debug)]
pub(super) enum Item {
    Script(Arc<ScriptRecord>),
    Outpoint(Arc<OutpointRecord>),
}

impl Item {
    fn waits(&self) -> &AtomicBool {
        match self {
            Self::Script(record) => &record.waits,
            Self::Outpoint(record) => &record.waits,
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Script(record) => record.weight(),
            Self::Outpoint(record) => record.weight(),
        }
    }
}

/// Items in classes. Nothing is in it twice, so that it never holds more than is watched.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    classes: [VecDeque<Item>; CLASSES],
    in_a_row: u32,
}

impl Agenda {
    pub(super) fn len(&self) -> usize {
        self.classes.iter().map(VecDeque::len).sum()
    }

    /// Adds what is not there yet.
    pub(super) fn add(&mut self, item: Item) {
        if !item.waits().swap(true, Ordering::Relaxed) {
            self.classes[class(item.weight())].push_back(item);
        }
    }

    /// Hands items to `look` for a while. Those for which it returns `false` wait again, and the slice ends.
    pub(super) fn work(&mut self, mut look: impl FnMut(&Item) -> bool) -> bool {
        let start = Instant::now();
        while let Some(item) = self.next() {
            // First: whatever changes from now on puts it there again.
            item.waits().store(false, Ordering::Release);
            if !look(&item) {
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
    fn the_last_class_moves_and_nothing_waits_twice() {
        let mut agenda = Agenda::default();
        for number in 0..100 {
            let class = if number < 10 { 9 } else { 0 };
            let item = item(number);
            item.waits().store(true, Ordering::Relaxed);
            agenda.classes[class].push_back(item);
        }
        let mut order = Vec::new();
        while let Some(item) = agenda.next() {
            order.push(vout(&item));
        }
        assert_eq!(order.len(), 100);
        assert_eq!(order[..16], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 0]);
        let record = Arc::new(OutpointRecord::new(OutPoint { txid: Txid([7; 32]), vout: 1 }));
        agenda.add(Item::Outpoint(Arc::clone(&record)));
        agenda.add(Item::Outpoint(Arc::clone(&record)));
        let mut seen = 0;
        while agenda.len() > 0 {
            agenda.work(|_| {
                seen += 1;
                seen > 1
            });
        }
        assert_eq!(seen, 2, "once for each time that it was asked for, and again after a failure");
    }
}
