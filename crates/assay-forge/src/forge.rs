//! The forge: runs the phases, signs, writes, and finishes the ledger.

use std::{collections::BTreeMap, path::Path, time::Instant};

use faster_hex::hex_string;

use crate::{
    forge_state::{ForgeState, Made},
    history::{self, HistoryShape},
    ledger::{ChainLine, Ledger},
    options::{ForgeOptions, OptionsError, Params},
    recipe::{Recipe, RecipeKind},
    scaling::Scaling,
    shape::Shape,
    summary::{Estimate, ForgeError, Progress, Summary},
    widths::{WidthForge, WidthShape},
};

/// Approximate size of the chain that [`forge`] would make.
///
/// # Errors
/// If the options do not fit the recipe.
pub fn estimate(recipe: &Recipe, options: &ForgeOptions) -> Result<Estimate, OptionsError> {
    ChainKind::new(recipe, options).map(|kind| kind.estimate())
}

/// Forges a chain into `dir`: new, empty, or left by an interrupted forge; only a history resumes, other chains start again.
///
/// The same recipe, seed, scale, variant and key rule yield the same files for any number of threads. The ledger gets its final
/// name last: a directory without it is incomplete.
///
/// # Errors
/// If the options do not fit the recipe, or the directory cannot be written.
pub fn forge(
    recipe: &Recipe,
    options: &ForgeOptions,
    dir: &Path,
    progress: &mut dyn Progress,
) -> Result<Summary, ForgeError> {
    let begun = Instant::now();
    let kind = ChainKind::new(recipe, options)?;
    let params = kind.params();
    let threads = params.threads;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|number| format!("forge-{number}"))
        .build()
        .map_err(|source| ForgeError::Threads { threads, source })?;
    progress.start(&kind.estimate());
    let chain = chain_line(recipe, &params, options, &kind);
    let made = match &kind {
        ChainKind::History(shape) => history::make(shape, pool, &chain, dir, progress)?,
        ChainKind::Scaling(shape) => {
            let mut state = ForgeState::create(params, pool, &chain, dir, progress)?;
            Scaling { shape, state: &mut state }.phases()?;
            state.finish()?
        }
        ChainKind::Widths(shape) => {
            let mut state = ForgeState::create(params, pool, &chain, dir, progress)?;
            WidthForge { shape, state: &mut state }.phases()?;
            state.finish()?
        }
    };
    let Made { blocks, ranges, tip, schnorr, phases, signing_seconds, utxo_seconds } = made;
    let wall_seconds = begun.elapsed().as_secs_f64();
    Ok(Summary {
        threads,
        signatures: tip.signatures,
        schnorr_signatures: schnorr,
        making_seconds: wall_seconds - utxo_seconds,
        signing_seconds,
        utxo_seconds,
        wall_seconds,
        phases,
        ledger: Ledger { chain, blocks, ranges, tip },
    })
}

enum ChainKind {
    Scaling(Box<Shape>),
    Widths(WidthShape),
    History(Box<HistoryShape>),
}

impl ChainKind {
    fn new(recipe: &Recipe, options: &ForgeOptions) -> Result<Self, OptionsError> {
        let is_history = matches!(recipe.kind, RecipeKind::History(_));
        if options.byte_scale.to_bits() != 1.0_f64.to_bits() && !is_history {
            return Err(OptionsError::NoByteScale { recipe: recipe.name().to_owned() });
        }
        Ok(match &recipe.kind {
            RecipeKind::Scaling(file) => Self::Scaling(Box::new(Shape::new(file, options)?)),
            RecipeKind::Widths(file) => Self::Widths(WidthShape::new(file, options)?),
            RecipeKind::History(file) => Self::History(Box::new(HistoryShape::new(file, options)?)),
        })
    }

    fn params(&self) -> Params {
        match self {
            Self::Scaling(shape) => shape.params.clone(),
            Self::Widths(shape) => shape.params.clone(),
            Self::History(shape) => shape.params.clone(),
        }
    }

    fn estimate(&self) -> Estimate {
        match self {
            Self::Scaling(shape) => shape.estimate(),
            Self::Widths(shape) => shape.estimate(),
            Self::History(shape) => shape.estimate(),
        }
    }
}

fn chain_line(
    recipe: &Recipe,
    params: &Params,
    options: &ForgeOptions,
    kind: &ChainKind,
) -> ChainLine {
    let (byte_scale, activation) = match kind {
        ChainKind::History(shape) => (Some(shape.byte_scale), shape.activation()),
        _ => (None, BTreeMap::new()),
    };
    ChainLine {
        byte_scale,
        activation,
        format: 1,
        recipe: recipe.name().to_owned(),
        chain: params.network.name().to_owned(),
        seed: params.seed,
        scale: params.scale,
        variant: options.variant.name().to_owned(),
        distinct_keys: params.distinct,
        stop_height: options.stop_height,
        end_time: params.end_time,
        magic: hex_string(&params.network.params().disk_magic),
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        recipe_sha256: hex_string(&recipe.sha256()),
        files: None,
    }
}
