//! Serialising a block, and finding out how many bytes that takes.

use std::hint::black_box;
use std::sync::Arc;

use assay_bench::BenchError;
use assay_bench::harness::Alternative;
use assay_bench::suite::Benchmark;
use assay_wire::{Block, Encoding};

use super::calls::{Scale, expect, file_error, store_error};
use super::names::{ASSAY, FIELDS, SERIALISE, SINGLE, SIZE_COMPUTER, SLICES};
use super::serial::{Bytes, OwnedBlock, SizeComputer, Slices};
use super::subjects::{LazySubject, Subject};

/// The report's `SerializeBlock` and `SizeComputerBlock`, and reading from memory, Core's `DeserializeBlock`.
pub(super) fn benchmarks<'a>(subject: &LazySubject, scale: Scale) -> Vec<Benchmark<'a>> {
    type Make = fn(&str, &Arc<Subject>, Scale) -> Result<Vec<Alternative<'static>>, BenchError>;
    let operations: [(&str, Make); 3] =
        [("serialise-block", serialise), ("size", size), ("deserialise-block", deserialise)];
    operations
        .into_iter()
        .map(|(operation, make)| {
            let name = format!("{operation}/{}", subject.name);
            let (subject, benchmark) = (subject.clone(), name.clone());
            Benchmark {
                name,
                series: operation.to_owned(),
                size: None,
                unit: "blocks",
                bytes_per_op: None,
                baseline: None,
                make: Box::new(move || make(&benchmark, &subject.get()?, scale)),
            }
        })
        .collect()
}

const NEVER: &str = "a vector takes all that is written to it";

/// Each starts with room for all, as Core's does.
fn serialise(
    name: &str,
    subject: &Arc<Subject>,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let slices = |subject: &Subject| {
        let mut bytes = Slices(Vec::with_capacity(subject.raw.len()));
        subject.owned.write(&mut bytes).expect(NEVER);
        bytes.0
    };
    let single = |subject: &Subject| {
        let mut bytes = Bytes(Vec::with_capacity(subject.raw.len()));
        subject.owned.write(&mut bytes).expect(NEVER);
        bytes.0
    };
    let ours = |subject: &Subject| subject.block.bytes().to_vec();
    for (alternative, bytes) in
        [(SLICES, slices(subject)), (SINGLE, single(subject)), (ASSAY, ours(subject))]
    {
        expect(bytes == subject.raw, name, alternative, "other bytes")?;
    }
    let [one, two, three] = [(); 3].map(|()| Arc::clone(subject));
    Ok(vec![
        scale.calls(SLICES, 1, move || slices(black_box(&one)))?,
        scale.calls(SINGLE, 1, move || single(black_box(&two)))?,
        scale.calls(ASSAY, 1, move || ours(black_box(&three)))?,
    ])
}

/// The size of every transaction, as weights and limits need it.
fn size(
    name: &str,
    subject: &Arc<Subject>,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let serialised = |subject: &Subject| {
        let mut bytes = Bytes(Vec::new());
        subject.owned.write(&mut bytes).expect(NEVER);
        bytes.0.len()
    };
    let counted = |subject: &Subject| {
        let mut size = SizeComputer::default();
        subject.owned.write(&mut size).expect(NEVER);
        size.0
    };
    let ours = |subject: &Subject| {
        let block = &subject.block;
        let header = 80 + assay_wire::encode::compact_size_len(block.tx_count() as u64);
        header + block.txs().map(|tx| tx.total_size()).sum::<usize>()
    };
    for (alternative, size) in [
        (SERIALISE, serialised(subject)),
        (SIZE_COMPUTER, counted(subject)),
        (ASSAY, ours(subject)),
    ] {
        expect(size == subject.raw.len(), name, alternative, "another size")?;
    }
    let [one, two, three] = [(); 3].map(|()| Arc::clone(subject));
    Ok(vec![
        scale.calls(SERIALISE, 1, move || serialised(black_box(&one)))?,
        scale.calls(SIZE_COMPUTER, 1, move || counted(black_box(&two)))?,
        scale.calls(ASSAY, 1, move || ours(black_box(&three)))?,
    ])
}

fn deserialise(
    name: &str,
    subject: &Arc<Subject>,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let fields = |subject: &Subject| OwnedBlock::read(&mut &subject.raw[..]);
    let failed = file_error(std::path::Path::new("memory"));
    expect(fields(subject).map_err(failed)? == subject.owned, name, FIELDS, "another block")?;
    let ours = |raw: Vec<u8>| Block::parse(raw, Encoding::Segwit).map_err(store_error);
    let parsed = ours(subject.raw.clone())?;
    expect(parsed.txids(0..parsed.tx_count()) == subject.txids, name, ASSAY, "another block")?;
    let [one, two] = [(); 2].map(|()| Arc::clone(subject));
    Ok(vec![
        scale.calls(FIELDS, 1, move || fields(black_box(&one)).is_ok())?,
        // The bytes are given away, so a copy of them is in the time.
        scale.calls(ASSAY, 1, move || ours(black_box(&two).raw.clone()).is_ok())?,
    ])
}
