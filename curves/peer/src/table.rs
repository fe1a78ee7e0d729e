//! Operations of a subject, and prepared operations.

use std::hint::black_box;

use anyhow::Result;
use serde::Deserialize;

use crate::trace::Trace;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Curve, or group of protocols: `bn254`, `kzg`, `evm`, `pool`.
    pub curve: String,
    pub operation: String,
    /// Size, such as a number of points or messages.
    #[serde(default)]
    pub size: usize,
    /// Number of threads; 0 for one per core.
    #[serde(default)]
    pub threads: usize,
    /// Seed of the inputs ([`crate::derive`]).
    pub seed: u64,
    /// Inputs that do not follow from the seed, hexadecimal.
    #[serde(default)]
    pub inputs: String,
}

pub struct Prepared {
    /// Canonical bytes of the result.
    pub answer: Vec<u8>,
    /// Repeats the operation.
    pub run: Box<dyn FnMut(u64) + Send>,
    /// Runs the operation once with a trace, if supported.
    pub trace: Option<Box<dyn FnMut() -> Trace + Send>>,
}

impl Prepared {
    /// An operation with independent steps.
    pub fn new(answer: Vec<u8>, run: impl FnMut(u64) + Send + 'static) -> Self {
        Self { answer, run: Box::new(run), trace: None }
    }

    /// An operation without inputs that change.
    pub fn repeated<T>(answer: Vec<u8>, mut call: impl FnMut() -> T + Send + 'static) -> Self {
        Self::new(answer, move |iterations| {
            for _ in 0..iterations {
                black_box(call());
            }
        })
    }

    /// An operation on a message that changes.
    pub fn of_messages<T>(
        answer: Vec<u8>,
        mut message: [u8; 32],
        mut call: impl FnMut(&[u8; 32]) -> T + Send + 'static,
    ) -> Self {
        Self::repeated(answer, move || {
            message[0] = message[0].wrapping_add(1);
            call(&message)
        })
    }

    /// A check of valid input, repeated; the answer has its verdicts on valid and on invalid input.
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

    /// Adds a traced run.
    #[must_use]
    pub fn with_trace(self, trace: impl FnMut() -> Trace + Send + 'static) -> Self {
        Self { trace: Some(Box::new(trace)), ..self }
    }

    /// An operation whose `step` cycles through the inputs 0, 1, … [`SPREAD`].
    pub fn spread(answer: Vec<u8>, mut step: impl FnMut(usize) + Send + 'static) -> Self {
        Self::new(answer, move |iterations| {
            for iteration in 0..iterations {
                step(iteration as usize % SPREAD);
            }
        })
    }

    /// An operation on its own last result, so that no step can be skipped or overlap the previous
    /// one. The answer is the state after [`CHAIN_STEPS`] steps.
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
            black_box(&mut state);
        })
    }
}

/// Number of steps of a chain before its state is the answer.
pub const CHAIN_STEPS: usize = 64;

/// Number of inputs that an operation without a chain cycles through.
pub const SPREAD: usize = 16;

/// Number of their results in the answer.
pub const ANSWERED: usize = 4;

type Prepare = dyn Fn(&Work) -> Result<Prepared> + Send + Sync;

pub struct Operation {
    /// Curve or group of protocols.
    pub curve: &'static str,
    pub name: String,
    /// Called functions of the library.
    pub how: String,
    /// True if the operation is only traced, and not listed among the timed ones.
    pub is_for_trace: bool,
    pub prepare: Box<Prepare>,
}

/// Operations of one library, in order of addition.
#[derive(Default)]
pub struct Table(pub Vec<Operation>);

impl Table {
    pub fn add(
        &mut self,
        curve: &'static str,
        name: impl Into<String>,
        how: impl Into<String>,
        prepare: impl Fn(&Work) -> Result<Prepared> + Send + Sync + 'static,
    ) {
        let (name, how) = (name.into(), how.into());
        let prepare = Box::new(prepare);
        self.0.push(Operation { curve, name, how, is_for_trace: false, prepare });
    }

    /// Adds an operation that is only traced.
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

    pub fn find(&self, curve: &str, name: &str) -> Option<&Operation> {
        self.0.iter().find(|operation| operation.curve == curve && operation.name == name)
    }
}
