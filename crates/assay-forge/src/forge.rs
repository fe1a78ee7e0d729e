//! The forge itself: goes through the phases, signs, writes, and closes the ledger.

use std::{path::Path, time::Instant};

use thiserror::Error;

use crate::{
    coins::Coins,
    ledger::{ChainLine, Ledger, Line, Phase},
    lock::LockBook,
    options::{ForgeOptions, OptionsError, Shape},
    output::{Output, OutputError},
    progress::{Estimate, Progress},
    recipe::{Recipe, RecipeKind},
    scaling::Scaling,
    widths::{WidthShape, WidthWorks},
    works::{Frame, Works, hex},
    yardstick::Rates,
};

/// Why a chain could not be forged.
#[derive(Debug, Error)]
pub enum ForgeError {
    /// The options do not suit the recipe.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The chain directory could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The threads could not be started.
    #[error("cannot start {threads} threads")]
    Threads {
        /// How many.
        threads: usize,
        /// Why.
        source: rayon::ThreadPoolBuildError,
    },
}

/// What was forged, and how fast.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The ledger as written.
    pub ledger: Ledger,
    /// Threads that worked.
    pub threads: usize,
    /// Signatures made.
    pub signatures: u64,
    /// Those of them that are Schnorr signatures.
    pub schnorr_signatures: u64,
    /// Wall time of making blocks: planning, deriving keys, signing, ordering, writing. Only hashing the final UTXO set is left out.
    pub making_seconds: f64,
    /// Part of it in which signatures were made (with the hashes they cover).
    pub signing_seconds: f64,
    /// Wall time of hashing the final UTXO set.
    pub utxo_seconds: f64,
    /// Wall time of everything.
    pub wall_seconds: f64,
    /// Wall time and signatures of each phase.
    pub phases: Vec<PhaseTime>,
}

impl Summary {
    /// Signatures per second over the whole making of blocks.
    pub fn signatures_per_second(&self) -> f64 {
        self.signatures as f64 / self.making_seconds.max(f64::MIN_POSITIVE)
    }

    /// The time that libsecp256k1 alone would take for these signatures on all threads, at the given rates of one thread
    /// ([`yardstick::sign_rate`](crate::yardstick::sign_rate)), over the time of making the blocks. 1 is perfect.
    pub fn efficiency(&self, one_thread: &Rates) -> f64 {
        let ecdsa = (self.signatures - self.schnorr_signatures) as f64 / one_thread.ecdsa_per_s;
        let schnorr = self.schnorr_signatures as f64 / one_thread.schnorr_per_s;
        (ecdsa + schnorr) / self.threads as f64 / self.making_seconds.max(f64::MIN_POSITIVE)
    }
}

/// The cost of one phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseTime {
    /// Which.
    pub phase: Phase,
    /// Its blocks.
    pub blocks: u32,
    /// Its signatures.
    pub signatures: u64,
    /// Its wall time.
    pub seconds: f64,
}

/// What [`forge`] would make, roughly.
///
/// # Errors
///
/// If the options do not suit the recipe.
pub fn estimate(recipe: &Recipe, options: &ForgeOptions) -> Result<Estimate, OptionsError> {
    Making::new(recipe, options).map(|making| making.estimate())
}

/// Forges a chain into `dir`, which must be new, empty, or left by an interrupted forge.
///
/// The same recipe, seed, scale, variant and key rule give the same files for any number of threads. The ledger gets its final name last:
/// a directory without it is incomplete.
///
/// # Errors
///
/// If the options do not suit the recipe, or the directory cannot be written.
pub fn forge(
    recipe: &Recipe,
    options: &ForgeOptions,
    dir: &Path,
    progress: &mut dyn Progress,
) -> Result<Summary, ForgeError> {
    let begun = Instant::now();
    let making = Making::new(recipe, options)?;
    let frame = making.frame();
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(frame.threads)
        .thread_name(|number| format!("forge-{number}"))
        .build()
        .map_err(|source| ForgeError::Threads { threads: frame.threads, source })?;
    let mut output = Output::create(dir, frame.network.magic())?;
    let chain = chain_line(recipe, &frame, options);
    output.line(&Line::Chain(chain.clone()))?;
    progress.start(&making.estimate());
    let locks = LockBook::new(frame.last_height, frame.distinct);
    let previous = frame.network.genesis_hash();
    let mut works = Works {
        frame,
        threads,
        locks,
        coins: Coins::default(),
        output,
        previous,
        blocks: Vec::new(),
        schnorr: 0,
        signing_seconds: 0.0,
        progress,
    };
    let phases = match &making {
        Making::Scaling(shape) => Scaling { shape, works: &mut works }.phases()?,
        Making::Widths(shape) => WidthWorks { shape, works: &mut works }.phases()?,
    };
    let making_seconds = begun.elapsed().as_secs_f64();
    let hashing = Instant::now();
    let tip = works.tip();
    let utxo_seconds = hashing.elapsed().as_secs_f64();
    works.output.line(&Line::Tip(tip.clone()))?;
    works.output.finish()?;
    Ok(Summary {
        threads: works.frame.threads,
        signatures: tip.signatures,
        schnorr_signatures: works.schnorr,
        making_seconds,
        signing_seconds: works.signing_seconds,
        utxo_seconds,
        wall_seconds: begun.elapsed().as_secs_f64(),
        phases,
        ledger: Ledger { chain, blocks: works.blocks, tip },
    })
}

/// What is to be made, in concrete numbers.
enum Making {
    Scaling(Box<Shape>),
    Widths(WidthShape),
}

impl Making {
    fn new(recipe: &Recipe, options: &ForgeOptions) -> Result<Self, OptionsError> {
        Ok(match &recipe.kind {
            RecipeKind::Scaling(file) => Self::Scaling(Box::new(Shape::new(file, options)?)),
            RecipeKind::Widths(file) => Self::Widths(WidthShape::new(file, options)?),
        })
    }

    fn frame(&self) -> Frame {
        match self {
            Self::Scaling(shape) => shape.frame(),
            Self::Widths(shape) => shape.frame.clone(),
        }
    }

    fn estimate(&self) -> Estimate {
        match self {
            Self::Scaling(shape) => shape.estimate(),
            Self::Widths(shape) => shape.estimate(),
        }
    }
}

fn chain_line(recipe: &Recipe, frame: &Frame, options: &ForgeOptions) -> ChainLine {
    ChainLine {
        format: 1,
        recipe: recipe.name().to_owned(),
        chain: frame.network.name().to_owned(),
        seed: frame.seed,
        scale: frame.scale,
        variant: options.variant.name().to_owned(),
        distinct_keys: frame.distinct,
        stop_height: options.stop_height,
        end_time: frame.end_time,
        magic: hex(&frame.network.magic()),
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        recipe_sha256: hex(&recipe.sha256()),
    }
}
