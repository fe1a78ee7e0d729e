//! Merge of sorted sequences.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::row::Row;

/// Merges sorted sequences; ends after the first error.
pub(crate) struct Merge<I> {
    sources: Vec<I>,
    heads: BinaryHeap<Reverse<(Row, usize)>>,
    is_started: bool,
}

impl<I, E> Merge<I>
where
    I: Iterator<Item = Result<Row, E>>,
{
    pub(crate) fn new(sources: Vec<I>) -> Self {
        Self { heads: BinaryHeap::with_capacity(sources.len()), sources, is_started: false }
    }

    fn start(&mut self) -> Result<(), E> {
        self.is_started = true;
        for (index, source) in self.sources.iter_mut().enumerate() {
            if let Some(row) = source.next() {
                self.heads.push(Reverse((row?, index)));
            }
        }
        Ok(())
    }
}

impl<I, E> Iterator for Merge<I>
where
    I: Iterator<Item = Result<Row, E>>,
{
    type Item = Result<Row, E>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.is_started
            && let Err(error) = self.start()
        {
            return Some(Err(error));
        }
        let mut head = self.heads.peek_mut()?;
        let Reverse((row, index)) = *head;
        match self.sources[index].next() {
            Some(Ok(next)) => *head = Reverse((next, index)),
            Some(Err(error)) => return Some(Err(error)),
            None => {
                PeekMut::pop(head);
            }
        }
        Some(Ok(row))
    }
}

pub(crate) fn merge_sorted(mut a: &[Row], mut b: &[Row]) -> Vec<Row> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    while let (Some((first_a, rest_a)), Some((first_b, rest_b))) =
        (a.split_first(), b.split_first())
    {
        if first_a <= first_b {
            out.push(*first_a);
            a = rest_a;
        } else {
            out.push(*first_b);
            b = rest_b;
        }
    }
    out.extend_from_slice(a);
    out.extend_from_slice(b);
    out
}
