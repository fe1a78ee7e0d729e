//! Rows not on disk yet: sorted runs in memory.

use std::ops::ControlFlow;

use super::merge::merge_sorted;
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
