//! Protocol of a session: describe, prepare, time or trace.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use rayon::{ThreadPool, ThreadPoolBuilder};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::table::{Operation, Prepared, Table, Work};
use crate::trace::{Thread, Trace};
use crate::{arkworks, assay, evm, kzg, pools, secp, supranational};

/// Names of the subjects in this program.
pub const SUBJECTS: [&str; 12] = [
    "arkworks",
    "assay-pairing",
    "blst",
    "c-kzg",
    "libsecp256k1",
    "revm",
    "sequential",
    "assay-pool",
    "rayon",
    "chili",
    "orx-parallel",
    "scoped-threads",
];

pub struct Subject {
    pub name: &'static str,
    pub version: String,
    pub compiler: String,
    pub table: Table,
}

pub fn subject(name: &str) -> Option<Subject> {
    let (name, version, table) = match name {
        "arkworks" => ("arkworks", arkworks::VERSION, arkworks::table()),
        "assay-pairing" => ("assay-pairing", assay::VERSION, assay::table()),
        "blst" => ("blst", supranational::VERSION, supranational::table()),
        "c-kzg" => ("c-kzg", kzg::VERSION, kzg::table()),
        "libsecp256k1" => ("libsecp256k1", secp::VERSION, secp::table()),
        "revm" => ("revm-precompile", evm::VERSION, evm::table()),
        _ => {
            let name = pools::NAMES.into_iter().find(|pool| *pool == name)?;
            let (version, table) = pools::table(name)?;
            (name, version, table)
        }
    };
    let (version, compiler) = (version.to_owned(), env!("PEER_COMPILER").to_owned());
    Some(Subject { name, version, compiler, table })
}

/// Constantine, loaded as a shared library from a path.
///
/// # Errors
/// If the file does not exist or is another library.
pub fn constantine(path: &Path) -> Result<Subject> {
    let (version, compiler, table) = crate::constantine::open(path)?;
    Ok(Subject { name: CONSTANTINE, version, compiler, table })
}

/// Name of the subject [`constantine`].
pub const CONSTANTINE: &str = "constantine";

#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
enum Order {
    Describe,
    Prepare(Work),
    Time { iterations: u64 },
    Trace,
}

/// The prepared operation, and its rayon pool.
struct Current {
    prepared: Prepared,
    pool: ThreadPool,
}

pub struct Session {
    subject: Subject,
    current: Option<Current>,
}

/// Length of the part of a result that is printed in addition to its digest.
const SHOWN_BYTES: usize = 96;

impl Session {
    /// A session without a prepared operation.
    pub fn new(subject: Subject) -> Self {
        Self { subject, current: None }
    }

    /// Executes the order of a line; errors are answers too.
    pub fn obey(&mut self, line: &str) -> Value {
        let answer = catch_unwind(AssertUnwindSafe(|| self.answer(line)));
        let answer = answer.unwrap_or_else(|fault| {
            let text = fault.downcast_ref::<&str>().map(ToString::to_string);
            bail!(text.or_else(|| fault.downcast_ref().cloned()).unwrap_or_default())
        });
        answer.unwrap_or_else(|error| json!({ "error": format!("{error:#}") }))
    }

    fn answer(&mut self, line: &str) -> Result<Value> {
        match serde_json::from_str(line).context("not an order")? {
            Order::Describe => Ok(self.describe()),
            Order::Prepare(work) => self.prepare(&work),
            Order::Time { iterations } => self.time(iterations),
            Order::Trace => self.trace(),
        }
    }

    fn describe(&self) -> Value {
        let Subject { name, version, compiler, table } = &self.subject;
        let listed = |is_for_trace: bool| -> Vec<Value> {
            let is_listed = |operation: &&Operation| operation.is_for_trace == is_for_trace;
            table.0.iter().filter(is_listed).map(Operation::description).collect()
        };
        json!({
            "name": name, "version": version, "compiler": compiler,
            "operations": listed(false), "traces": listed(true),
        })
    }

    fn prepare(&mut self, work: &Work) -> Result<Value> {
        // Frees the previous operation before the next one is timed.
        self.current = None;
        let operation = self
            .subject
            .table
            .find(&work.curve, &work.operation)
            .with_context(|| format!("no operation {} of {}", work.operation, work.curve))?;
        let pool = ThreadPoolBuilder::new().num_threads(work.threads).build()?;
        let prepared = pool.install(|| (operation.prepare)(work))?;
        let shown = &prepared.answer[..prepared.answer.len().min(SHOWN_BYTES)];
        let answer = json!({
            "digest": digest(&prepared.answer),
            "answer": faster_hex::hex_string(shown),
        });
        self.current = Some(Current { prepared, pool });
        Ok(answer)
    }

    fn time(&mut self, iterations: u64) -> Result<Value> {
        let Current { prepared, pool } = self.current.as_mut().context("nothing is prepared")?;
        // On a thread of the pool, so that rayon splits work within it; the clocks are read there.
        let (wall_ns, cpu_ns) = pool.install(|| {
            let (cpu_start_ns, start) = (cpu_ns(), Instant::now());
            (prepared.run)(iterations);
            (start.elapsed().as_nanos() as u64, cpu_ns() - cpu_start_ns)
        });
        Ok(json!({ "wall_ns": wall_ns, "cpu_ns": cpu_ns }))
    }

    fn trace(&mut self) -> Result<Value> {
        let Current { prepared, pool } = self.current.as_mut().context("nothing is prepared")?;
        let trace = prepared.trace.as_mut().context("what is prepared has no trace")?;
        let Trace { wall_ns, mut threads, answer } = pool.install(trace);
        // A thread without a row has a lane as well.
        threads.resize(threads.len().max(pool.current_num_threads()), Thread::default());
        Ok(json!({ "wall_ns": wall_ns, "threads": threads, "digest": digest(&answer) }))
    }
}

impl Operation {
    fn description(&self) -> Value {
        json!({ "curve": self.curve, "operation": self.name, "how": self.how })
    }
}

fn digest(answer: &[u8]) -> String {
    faster_hex::hex_string(&Sha256::digest(answer))
}

/// CPU time of all threads of this process so far: some libraries start their own.
pub(crate) fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
