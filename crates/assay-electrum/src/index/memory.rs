//! Rows not on disk yet, as sorted runs in memory, and the merge of sorted sequences.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::ControlFlow;

use super::row::{Row, Table, Tables, TxNumber};
use super::run::Visit;

/// The rows of a range of transactions.
pub(crate) struct MemoryRun {
    pub(crate) first_tx: TxNumber,
    pub(crate) end_tx: TxNumber,
    tables: Tables,
}

impl MemoryRun {
    /// From sorted tables.
    pub(crate) fn new(range: (TxNumber, TxNumber), tables: Tables) -> Self {
        Self { first_tx: range.0, end_tx: range.1, tables }
    }

    pub(crate) fn row_count(&self) -> usize {
        self.tables.iter().map(Vec::len).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.row_count() * size_of::<Row>()
    }

    pub(crate) fn rows(&self, table: Table) -> &[Row] {
        &self.tables[table as usize]
    }

    /// Visits the rows with `from <= order < to`.
    pub(crate) fn scan(
        &self,
        table: Table,
        (from, to): (u128, u128),
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let rows = self.rows(table);
        let first = rows.partition_point(|row| row.order < from);
        rows[first..].iter().take_while(|row| row.order < to).try_for_each(|&row| visit(row))
    }

    pub(crate) fn merge(&self, next: &Self) -> Self {
        debug_assert_eq!(self.end_tx, next.first_tx);
        let tables = Table::ALL.map(|table| merge_sorted(self.rows(table), next.rows(table)));
        Self { first_tx: self.first_tx, end_tx: next.end_tx, tables }
    }

    /// The run without the transactions from `end_tx` on.
    pub(crate) fn cut(&self, end_tx: TxNumber) -> Self {
        let below =
            |table| self.rows(table).iter().filter(|row| row.tx() < end_tx).copied().collect();
        Self { first_tx: self.first_tx, end_tx, tables: Table::ALL.map(below) }
    }
}

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

fn merge_sorted(mut a: &[Row], mut b: &[Row]) -> Vec<Row> {
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
