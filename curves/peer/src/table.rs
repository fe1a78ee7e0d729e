//! Operations that can be asked for, and what they are once prepared.

use anyhow::Result;
use serde::Deserialize;

use crate::trace::Trace;

/// What the other side wants prepared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Curve, or group of protocols: `bn254`, `kzg`, `evm`, `pool`.
    pub curve: String,
    /// Operation of it.
    pub operation: String,
    /// How many points, messages or whatever it is about.
    #[serde(default)]
    pub size: usize,
    /// Threads to use; 0 is as many as there are cores.
    #[serde(default)]
    pub threads: usize,
    /// Where inputs come from ([`crate::derive`]).
    pub seed: u64,
    /// Inputs that only the other side has, hexadecimal.
    #[serde(default)]
    pub inputs: String,
}

/// An operation with its inputs at hand.
pub struct Prepared {
    /// Canonical bytes of what it computes.
    pub answer: Vec<u8>,
    /// Does it so many times.
    pub run: Box<dyn FnMut(u64) + Send>,
    /// Does it once and records which thread works when, if it can.
    pub trace: Option<Box<dyn FnMut() -> Trace + Send>>,
}

impl Prepared {
    /// One whose steps do not depend on each other.
    pub fn new(answer: Vec<u8>, run: impl FnMut(u64) + Send + 'static) -> Self {
        Self { answer, run: Box::new(run), trace: None }
    }

    /// A check that holds for what is valid, over and over; the answer has its verdict on that and on what is not.
    pub fn checked(
        right: bool,
        wrong: bool,
        mut check: impl FnMut() -> bool + Send + 'static,
    ) -> Self {
        Self::new(vec![u8::from(right), u8::from(wrong)], move |iterations| {
            for _ in 0..iterations {
                assert!(check(), "what is valid was rejected");
            }
        })
    }

    /// The same with a run that is recorded.
    #[must_use]
    pub fn with_trace(self, trace: impl FnMut() -> Trace + Send + 'static) -> Self {
        Self { trace: Some(Box::new(trace)), ..self }
    }

    /// One that does `step` with the inputs 0, 1, … [`SPREAD`] in turns.
    pub fn spread(answer: Vec<u8>, mut step: impl FnMut(usize) + Send + 'static) -> Self {
        Self::new(answer, move |iterations| {
            for iteration in 0..iterations {
                step(iteration as usize % SPREAD);
            }
        })
    }

    /// One that works on its own last result, so that no step can be left out nor begin before the one before it has ended.
    /// Its answer is the state after [`CHAIN_STEPS`] steps.
    pub fn chained<S: Send + 'static>(
        mut state: S,
        step: impl Fn(&mut S) + Send + 'static,
        bytes: impl Fn(&S) -> Vec<u8>,
    ) -> Self {
        (0..CHAIN_STEPS).for_each(|_| step(&mut state));
        Self::new(bytes(&state), move |iterations| {
            for _ in 0..iterations {
                step(&mut state);
            }
            std::hint::black_box(&mut state);
        })
    }
}

/// Steps after which the state of a chain is its answer.
pub const CHAIN_STEPS: usize = 64;

/// How many different inputs an operation without a chain takes in turns.
pub const SPREAD: usize = 16;

/// How many of them are in the answer.
pub const ANSWERED: usize = 4;

type Prepare = dyn Fn(&Work) -> Result<Prepared> + Send + Sync;

/// An operation that can be asked for.
pub struct Operation {
    /// Its curve.
    pub curve: &'static str,
    /// Its name.
    pub name: String,
    /// What of the library does it.
    pub how: String,
    /// Whether it is there for its trace, and not listed among what is timed.
    pub is_for_trace: bool,
    /// Makes it.
    pub prepare: Box<Prepare>,
}

/// Operations of one library, in the order in which they were added.
#[derive(Default)]
pub struct Table(pub Vec<Operation>);

impl Table {
    /// Adds one.
    pub fn add(
        &mut self,
        curve: &'static str,
        name: impl Into<String>,
        how: impl Into<String>,
        prepare: impl Fn(&Work) -> Result<Prepared> + Send + Sync + 'static,
    ) {
        self.0.push(Operation {
            curve,
            name: name.into(),
            how: how.into(),
            is_for_trace: false,
            prepare: Box::new(prepare),
        });
    }

    /// Adds one that is there for its trace.
    pub fn add_traced(
        &mut self,
        curve: &'static str,
        name: impl Into<String>,
        how: impl Into<String>,
        prepare: impl Fn(&Work) -> Result<Prepared> + Send + Sync + 'static,
    ) {
        self.add(curve, name, how, prepare);
        self.0.last_mut().expect("just added").is_for_trace = true;
    }

    /// The operation of this name.
    pub fn find(&self, curve: &str, name: &str) -> Option<&Operation> {
        self.0.iter().find(|operation| operation.curve == curve && operation.name == name)
    }
}
