//! Subjects: processes, and the one in this program.

use std::cell::RefCell;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use assay_bench::harness::{Figures, Row, Sample};
use assay_bench::plan::{PairingSettings, SubjectSettings};
use assay_bench::talk::Talk;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::data::BUILT_IN;
use super::own::{self, Own};
use super::protocol::{Answer, Description, Offer, Order, Trace};

impl Order {
    /// Adds the inputs that subjects cannot generate.
    pub(super) fn with_inputs(&self) -> Self {
        let inputs = match (self.curve.as_str(), self.operation.as_str()) {
            ("secp256k1", "ecdsa-verify") => own::ecdsa_inputs(self.seed, self.size),
            ("secp256k1", "schnorr-verify") => own::schnorr_inputs(self.seed, self.size),
            ("evm", "ecrecover") => own::recover_input(self.seed),
            _ => String::new(),
        };
        Self { inputs, ..self.clone() }
    }
}

#[derive(Debug)]
enum Worker {
    Process(Talk),
    Own(Box<Own>),
}

/// A library or pool that is measured.
#[derive(Debug)]
pub(super) struct Subject {
    pub name: String,
    pub description: Description,
    worker: RefCell<Worker>,
    current: RefCell<Option<Order>>,
}

impl Subject {
    fn process(name: &str, program: &Path, arguments: &[String]) -> Result<Self> {
        let mut talk = Talk::start(program, arguments)?;
        let description = talk.ask(&json!({ "do": "describe" }))?;
        Ok(Self::new(name, description, Worker::Process(talk)))
    }

    fn new(name: &str, description: Description, worker: Worker) -> Self {
        Self {
            name: name.to_owned(),
            description,
            worker: RefCell::new(worker),
            current: RefCell::new(None),
        }
    }

    /// Called functions for an operation; `None` if unsupported.
    pub(super) fn how(&self, curve: &str, operation: &str) -> Option<&str> {
        let is_it = |offer: &&Offer| offer.curve == curve && offer.operation == operation;
        self.description.operations.iter().find(is_it).map(|offer| offer.how.as_str())
    }

    /// Name in the figures of an operation, with the kind of timing if the description has it.
    pub(super) fn label(&self, curve: &str, operation: &str) -> String {
        let how = self.how(curve, operation).unwrap_or_default();
        match TIMINGS.into_iter().find(|timing| how.contains(timing)) {
            Some(timing) => format!("{} ({timing})", self.name),
            None => self.name.clone(),
        }
    }

    pub(super) fn prepare(&self, order: &Order) -> Result<Answer> {
        *self.current.borrow_mut() = None;
        let answer = match &mut *self.worker.borrow_mut() {
            Worker::Own(own) => own.prepare(order),
            Worker::Process(talk) => talk.ask(&Prepare { what: "prepare", order })?,
        };
        *self.current.borrow_mut() = Some(order.clone());
        Ok(answer)
    }

    /// Repeats an operation `iterations` times; prepares it first if another was prepared since.
    pub(super) fn time(&self, order: &Order, iterations: u64) -> Result<Sample> {
        if self.current.borrow().as_ref() != Some(order) {
            self.prepare(order)?;
        }
        match &mut *self.worker.borrow_mut() {
            Worker::Own(own) => Ok(own.time(iterations)),
            Worker::Process(talk) => {
                let times: Times = talk.ask(&json!({ "do": "time", "iterations": iterations }))?;
                Ok(Sample::timed(iterations, times.wall_ns, times.cpu_ns))
            }
        }
    }

    /// True if the operation can be traced.
    pub(super) fn has_trace(&self, curve: &str, operation: &str) -> bool {
        let is_it = |offer: &Offer| offer.curve == curve && offer.operation == operation;
        self.description.traces.iter().any(is_it)
    }

    /// Runs an operation once with a trace; prepares it first if another was prepared since.
    pub(super) fn trace(&self, order: &Order) -> Result<Trace> {
        if self.current.borrow().as_ref() != Some(order) {
            self.prepare(order)?;
        }
        match &mut *self.worker.borrow_mut() {
            Worker::Own(_) => bail!("there is no trace of {}", self.name),
            Worker::Process(talk) => talk.ask(&json!({ "do": "trace" })),
        }
    }
}

/// Kinds of timing: independent of secrets or not. Constant-time code is slower for its guarantee,
/// so the two kinds are ranked apart.
pub(super) const TIMINGS: [&str; 2] = ["constant time", "variable time"];

/// Kind of timing at the end of a name in figures.
pub(super) fn timing_of(label: &str) -> Option<&'static str> {
    let (_, kind) = label.strip_suffix(')')?.rsplit_once(" (")?;
    TIMINGS.into_iter().find(|timing| *timing == kind)
}

/// Figures of a subject, with any kind of timing in its name.
pub(super) fn figures_of<'r>(row: &'r Row, subject: &str) -> Option<&'r Figures> {
    let is_it = |figures: &&Figures| {
        let rest = figures.name.strip_prefix(subject);
        rest.is_some_and(|rest| {
            rest.is_empty()
                || timing_of(&figures.name).is_some_and(|timing| rest == format!(" ({timing})"))
        })
    };
    row.figures.iter().find(is_it)
}

#[derive(Serialize)]
struct Prepare<'a> {
    #[serde(rename = "do")]
    what: &'static str,
    #[serde(flatten)]
    order: &'a Order,
}

#[derive(Deserialize)]
struct Times {
    wall_ns: u64,
    cpu_ns: u64,
}

/// Name of the library of report 5, and the variable with its path.
const CONSTANTINE: &str = "constantine";
const CONSTANTINE_VARIABLE: &str = "ASSAY_CONSTANTINE";

#[derive(Clone, Debug)]
pub(super) struct Absent {
    pub names: Vec<String>,
    pub program: PathBuf,
    /// Command that builds it.
    pub build: &'static str,
}

#[derive(Debug)]
pub(super) struct Subjects {
    /// Available subjects, in the order of columns.
    pub all: Vec<Subject>,
    pub absent: Vec<Absent>,
}

impl Subjects {
    /// Starts the available subjects. One that a plan names must be available; a program that does
    /// not know a subject's name is an older build, and counts as missing.
    pub(super) fn start(settings: &PairingSettings) -> Result<Self> {
        let mut subjects = Self { all: Vec::new(), absent: Vec::new() };
        let is_wanted = |name: &str| !settings.without.iter().any(|left_out| left_out == name);
        for (program, path) in BUILT_IN.programs.iter().zip([&settings.peer, &settings.gnark]) {
            let path = program.path(path.as_deref());
            let mut absent =
                Absent { names: Vec::new(), program: path.clone(), build: &program.build };
            for name in program.names.iter().filter(|name| is_wanted(name)) {
                let started = path
                    .is_file()
                    .then(|| Subject::process(name, &path, std::slice::from_ref(name)));
                match started {
                    Some(Ok(subject)) => subjects.all.push(subject),
                    _ => absent.names.push(name.clone()),
                }
            }
            if !absent.names.is_empty() {
                subjects.absent.push(absent);
            }
        }
        if is_wanted(own::NAME) {
            let description = own::description();
            subjects.all.push(Subject::new(own::NAME, description, Worker::Own(Box::default())));
        }
        if is_wanted(CONSTANTINE) {
            subjects.all.extend(Self::constantine(settings)?);
        }
        for SubjectSettings { name, command } in &settings.subjects {
            let (program, arguments) = command
                .split_first()
                .context("a subject's command: give a program, and arguments if it needs any")?;
            subjects.all.push(Subject::process(name, Path::new(program), arguments)?);
        }
        Ok(subjects)
    }

    /// The library of report 5; required if the user names it.
    fn constantine(settings: &PairingSettings) -> Result<Option<Subject>> {
        let named = settings.constantine.clone();
        let Some(library) = named.or_else(|| env::var_os(CONSTANTINE_VARIABLE).map(PathBuf::from))
        else {
            return Ok(None);
        };
        let peer = BUILT_IN.programs[0].path(settings.peer.as_deref());
        let arguments = [CONSTANTINE.to_owned(), library.display().to_string()];
        Subject::process(CONSTANTINE, &peer, &arguments).map(Some)
    }

    pub(super) fn of(&self, name: &str) -> Option<&Subject> {
        self.all.iter().find(|subject| subject.name == name)
    }

    /// The first missing program, if no process is available at all.
    pub(super) fn all_absent(&self) -> Option<&Absent> {
        let is_process = |subject: &Subject| subject.name != own::NAME;
        if self.all.iter().any(is_process) { None } else { self.absent.first() }
    }
}
