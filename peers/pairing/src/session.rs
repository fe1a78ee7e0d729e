//! The conversation: describe, prepare, time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use rayon::{ThreadPool, ThreadPoolBuilder};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::table::{Prepared, Table, Work};
use crate::{arkworks, assay, evm, kzg, pools, secp, supranational};

/// Names that can be asked for.
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

/// A library and what it can do.
pub struct Subject {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: String,
    /// What compiled it.
    pub compiler: String,
    /// Its operations.
    pub table: Table,
}

/// The subject of this name.
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

/// The one that is not in this program: Constantine, as a shared library at a path.
///
/// # Errors
/// When the file is not there, or is not that library.
pub fn constantine(path: &Path) -> Result<Subject> {
    let (version, compiler, table) = crate::constantine::open(path)?;
    Ok(Subject { name: CONSTANTINE, version, compiler, table })
}

/// The name of [`constantine`].
pub const CONSTANTINE: &str = "constantine";

/// What the other side says.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
enum Order {
    Describe,
    Prepare(Work),
    Time { iterations: u64 },
}

/// What is prepared, and the threads that rayon has for it.
struct Current {
    prepared: Prepared,
    pool: ThreadPool,
}

/// One conversation about one subject.
pub struct Session {
    subject: Subject,
    current: Option<Current>,
}

/// How much of an answer is shown besides its digest.
const SHOWN_BYTES: usize = 96;

impl Session {
    /// Nothing is prepared yet.
    pub fn new(subject: Subject) -> Self {
        Self { subject, current: None }
    }

    /// Does what a line says; an error is an answer too.
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
        }
    }

    fn describe(&self) -> Value {
        let Subject { name, version, compiler, table } = &self.subject;
        let operations: Vec<_> = table
            .0
            .iter()
            .map(|operation| {
                json!({ "curve": operation.curve, "operation": operation.name, "how": operation.how })
            })
            .collect();
        json!({ "name": name, "version": version, "compiler": compiler, "operations": operations })
    }

    fn prepare(&mut self, work: &Work) -> Result<Value> {
        // What the last operation kept is given back before the next one is timed.
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
            "digest": faster_hex::hex_string(&Sha256::digest(&prepared.answer)),
            "answer": faster_hex::hex_string(shown),
        });
        self.current = Some(Current { prepared, pool });
        Ok(answer)
    }

    fn time(&mut self, iterations: u64) -> Result<Value> {
        let Current { prepared, pool } = self.current.as_mut().context("nothing is prepared")?;
        // On a thread of the pool, so that what rayon splits stays in it; clocks are read there.
        let (wall_ns, cpu_ns) = pool.install(|| {
            let (cpu_start_ns, start) = (cpu_ns(), Instant::now());
            (prepared.run)(iterations);
            (start.elapsed().as_nanos() as u64, cpu_ns() - cpu_start_ns)
        });
        Ok(json!({ "wall_ns": wall_ns, "cpu_ns": cpu_ns }))
    }
}

/// CPU time of this process so far, all threads.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
