//! Searching block files for headers, and choosing a branch among what was found.

use std::sync::atomic::{AtomicU64, Ordering};

use assay_consensus::header::check_header;
use assay_consensus::params::ChainParams;
use assay_store::{BlockFiles, BlockFilesError, BlockPlace, Finding, StrayKind};
use assay_wire::Header;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::headers::{self, Choice, Entry};
use super::{
    FilePlace, InvalidBlock, MissingBlock, ScanReport, Stray, ValidateConfig, ValidateError,
    ValidateProgress,
};
use crate::engine::unix_time_s;

/// What files held.
#[derive(Default)]
pub(crate) struct Findings {
    /// Blocks, in the order of the files.
    entries: Vec<Entry>,
    /// The first few places without blocks, and how many there are.
    strays: Vec<Stray>,
    stray_count: usize,
    padding_bytes: u64,
}

/// Places without blocks that are named; pages of them are no help.
const STRAYS_MAX: usize = 16;

/// Searches all files in parallel.
pub(crate) fn search(
    params: &ChainParams,
    files: &BlockFiles,
    pool: &ThreadPool,
    progress: &dyn ValidateProgress,
) -> Result<Findings, BlockFilesError> {
    let bytes = files.bytes();
    let bytes_done = AtomicU64::new(0);
    let by_file: Result<Vec<Findings>, BlockFilesError> = pool.install(|| {
        (0..files.files().len() as u32)
            .into_par_iter()
            .with_max_len(1)
            .map(|file| {
                let mut reached = 0;
                search_file(params, files, file, &mut |at| {
                    // A damaged length makes the scan go back.
                    let step = at.saturating_sub(reached);
                    reached = reached.max(at);
                    let done = bytes_done.fetch_add(step, Ordering::Relaxed) + step;
                    progress.scanning(done, bytes);
                })
            })
            .collect()
    });
    let mut by_file = by_file?.into_iter();
    // A million headers take 96 MB: they are not held twice.
    let mut all = by_file.next().unwrap_or_default();
    let more: usize = by_file.as_slice().iter().map(|file| file.entries.len()).sum();
    all.entries.reserve_exact(more);
    for mut file in by_file {
        all.entries.append(&mut file.entries);
        all.strays.append(&mut file.strays);
        all.strays.truncate(STRAYS_MAX);
        all.stray_count += file.stray_count;
        all.padding_bytes += file.padding_bytes;
    }
    Ok(all)
}

/// Chooses a branch among the blocks found, and reports everything there is.
pub(crate) fn choose<'e>(
    config: &ValidateConfig,
    files: &BlockFiles,
    found: &'e Findings,
) -> Result<(ScanReport, Choice<'e>), ValidateError> {
    let params = &*config.params;
    let bytes = files.bytes();
    if found.entries.is_empty() {
        let (chain, files) = (params.name, files.files().len());
        return Err(ValidateError::NoBlocks { chain, files, bytes });
    }
    let now_s = unix_time_s() as i64;
    let choice = headers::choose(params, &found.entries, config.assume_valid, now_s);
    let assumed_height = match config.assume_valid {
        None => 0,
        Some(hash) => choice.ancestor_height.ok_or(ValidateError::UnknownAssumeValid { hash })?,
    };
    let place = |place: &BlockPlace| FilePlace::new(files, place);
    let report = ScanReport {
        files: files.files().len(),
        bytes,
        is_obfuscated: files.is_obfuscated(),
        blocks: choice.blocks,
        duplicates: choice.duplicates,
        height: choice.chain.height(),
        hash: choice.chain.hash(choice.chain.height()),
        stale_blocks: choice.stale_blocks,
        stale_branches: choice.stale_tips,
        unconnected: choice.unconnected,
        missing: choice
            .gaps
            .iter()
            .map(|gap| MissingBlock {
                hash: gap.hash,
                child: gap.child.hash,
                child_place: place(&gap.child.place),
            })
            .collect(),
        padding_bytes: found.padding_bytes,
        strays: found.strays.clone(),
        stray_count: found.stray_count,
        bad_header: choice.bad_header.as_ref().map(|bad| InvalidBlock {
            hash: bad.entry.hash,
            height: bad.height,
            reason: bad.error.reject_reason().into_owned(),
            debug: bad.error.to_string(),
            place: place(&bad.entry.place),
        }),
        assumed_height,
        elapsed_s: 0.0,
    };
    Ok((report, choice))
}

fn search_file(
    params: &ChainParams,
    files: &BlockFiles,
    file: u32,
    on_reached: &mut dyn FnMut(u64),
) -> Result<Findings, BlockFilesError> {
    let mut found = Findings::default();
    let has_work = |bytes: &[u8; Header::SIZE]| {
        let header = Header::parse(bytes);
        check_header(params, &header, &header.hash()).is_ok()
    };
    files.scan(file, &has_work, &mut |finding, reached| {
        match finding {
            Finding::Block { place, header } => {
                let header = Header::parse(&header);
                found.entries.push(Entry::new(&header, header.hash(), place));
            }
            Finding::Stray { bytes, kind: StrayKind::Padding, .. } => found.padding_bytes += bytes,
            Finding::Stray { file, offset, bytes, kind } => {
                found.stray_count += 1;
                if found.strays.len() < STRAYS_MAX {
                    let path = files.files()[file as usize].path.clone();
                    found.strays.push(Stray { place: FilePlace { path, offset, bytes }, kind });
                }
            }
        }
        on_reached(reached);
    })?;
    Ok(found)
}
