//! Report 1: what larger stack elements cost (BIP-0360).
//!
//! Scripts with data of several sizes are verified as whole inputs, under today's limit of 520 bytes and under others. The
//! report's own benchmark (`src/bench/verify_script.cpp` of its branch of Bitcoin Core) puts the data into the witness of a
//! P2WSH input and applies the rules `P2SH` and `WITNESS`; so do we, and Bitcoin Core's kernel beside us as far as its
//! limit goes.

mod answers;
mod asm;
mod flips;
mod hashes;
pub mod heap;
mod memory;
mod published;
mod scripts;
pub mod soak;
mod spend;
mod template;
mod vectors;
mod verdicts;
mod worst;
mod worst_block;
mod worst_sigs;

use std::cell::{OnceCell, RefCell};
use std::collections::HashSet;
use std::path::PathBuf;

use assay_consensus::script::Limits;
use serde::{Deserialize, Serialize};
use template::Template;

use crate::harness::{Alternative, Row, Sample, repeats};
use crate::peer::KernelPeer;
use crate::suite::{Benchmark, Extent, Published, Study, Suite};
use crate::{BenchError, Progress};

pub use spend::Wrap;
pub use template::TemplateError;

/// Names of the alternatives.
const ASSAY: &str = "assay";
const KERNEL: &str = "kernel";

/// The section `[stack]` of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StackSettings {
    /// Bytes of `<data>`.
    pub sizes: Vec<usize>,
    /// Scripts: `<data>` in front is an element of the witness, `<push>` a push of the same data anywhere in the script.
    pub templates: Vec<String>,
    /// Also `<data> HASH OP_DROP OP_1` for each other hashing opcode.
    pub hashing_opcodes: bool,
    /// How outputs commit to the scripts.
    pub wraps: Vec<Wrap>,
    /// Limits under which they are run; the first one that lets a script pass is the one it is measured under.
    pub limits: Vec<LimitSettings>,
    /// The program around Bitcoin Core's kernel; if not given, where Cargo puts it.
    pub kernel: Option<PathBuf>,
    /// Folder with `script_tests.json`, `tx_valid.json` and `tx_invalid.json`; if not given, `$ASSAY_TEST_DATA/vectors`.
    pub vectors: Option<PathBuf>,
}

/// Limits of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Most bytes of a stack element.
    pub element_bytes_max: usize,
    /// Most bytes of one that `OP_DUP` copies, if that is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dup_bytes_max: Option<usize>,
}

impl LimitSettings {
    /// The rule that this is.
    fn limits(self) -> Result<Limits, BenchError> {
        let limits = Limits::new(self.element_bytes_max).ok_or(BenchError::Parameter {
            what: "element_bytes_max",
            wanted: "at most 1048576 bytes",
        })?;
        Ok(match self.dup_bytes_max {
            Some(max) => limits.with_dup_bytes_max(max),
            None => limits,
        })
    }
}

/// What the report asks for.
impl Default for StackSettings {
    fn default() -> Self {
        let templates = ["<data> OP_SHA256 OP_DROP OP_1", "<data> OP_DUP OP_SHA256 OP_DROP OP_1"];
        Self {
            sizes: vec![1, 64, 65, 100, 520, 8000],
            templates: templates.map(str::to_owned).to_vec(),
            hashing_opcodes: true,
            wraps: vec![Wrap::P2wsh, Wrap::Tapscript],
            limits: vec![
                LimitSettings { element_bytes_max: 520, dup_bytes_max: None },
                LimitSettings { element_bytes_max: 8000, dup_bytes_max: Some(520) },
                LimitSettings { element_bytes_max: 8000, dup_bytes_max: None },
            ],
            kernel: None,
            vectors: None,
        }
    }
}

/// What the section asks for.
#[derive(Debug)]
pub struct StackSuite {
    settings: StackSettings,
    kernel: OnceCell<Option<RefCell<KernelPeer>>>,
}

impl StackSuite {
    /// With these settings.
    pub fn new(settings: StackSettings) -> Self {
        Self { settings, kernel: OnceCell::new() }
    }

    /// The templates, each with a name of its own.
    fn templates(&self) -> Result<Vec<Template>, BenchError> {
        let hashes = if self.settings.hashing_opcodes { &HASHING_OPCODES[..] } else { &[] };
        let more = hashes.iter().map(|name| format!("<data> OP_{name} OP_DROP OP_1"));
        let mut templates: Vec<Template> = Vec::new();
        let (mut texts, mut names) = (HashSet::new(), HashSet::new());
        for text in self.settings.templates.iter().cloned().chain(more) {
            let mut template = Template::parse(&text)?;
            if !texts.insert(template.script(1)) && template.arguments(1).len() == 1 {
                continue;
            }
            if !names.insert(template.name().to_owned()) {
                template.name_in_full();
                names.insert(template.name().to_owned());
            }
            templates.push(template);
        }
        Ok(templates)
    }

    fn limits(&self) -> Result<Vec<Limits>, BenchError> {
        if self.settings.limits.is_empty() {
            return Err(BenchError::Parameter { what: "limits", wanted: "at least one" });
        }
        self.settings.limits.iter().map(|settings| settings.limits()).collect()
    }

    /// The kernel peer, started when it is first asked for; none if it was not named and has not been built.
    fn kernel(&self) -> Result<Option<&RefCell<KernelPeer>>, BenchError> {
        if let Some(kernel) = self.kernel.get() {
            return Ok(kernel.as_ref());
        }
        let named = self.settings.kernel.as_deref();
        let program = match assay_lab::target::kernel::find(named) {
            Ok(program) => Some(program),
            Err(_) if named.is_none() => None,
            Err(error) => {
                let path = error.looked.into_iter().next().unwrap_or_default();
                return Err(BenchError::File { path, source: std::io::ErrorKind::NotFound.into() });
            }
        };
        let peer = program.map(|program| KernelPeer::start(&program)).transpose()?;
        Ok(self.kernel.get_or_init(|| peer.map(RefCell::new)).as_ref())
    }

    /// The sizes that an extent has time for.
    fn sizes(&self, extent: Extent) -> Vec<usize> {
        let sizes = &self.settings.sizes;
        match extent {
            Extent::Smoke => [sizes.first(), sizes.last()].into_iter().flatten().copied().collect(),
            Extent::Quick | Extent::Full => sizes.clone(),
        }
    }
}

/// Opcodes that hash, without `OP_`.
const HASHING_OPCODES: [&str; 5] = ["SHA1", "RIPEMD160", "SHA256", "HASH160", "HASH256"];

impl Suite for StackSuite {
    fn benchmarks(&self, extent: Extent) -> Result<Vec<Benchmark<'_>>, BenchError> {
        let mut benchmarks = self.script_benchmarks(extent)?;
        benchmarks.extend(hashes::benchmarks(&self.sizes(extent)));
        Ok(benchmarks)
    }

    fn studies(
        &self,
        extent: Extent,
        rows: &[Row],
        progress: &dyn Progress,
    ) -> Result<Vec<Study>, BenchError> {
        let parts: [&dyn Fn() -> Result<Study, BenchError>; 5] = [
            &|| Ok(answers::study(rows)),
            &|| self.verdicts(extent),
            &|| self.worst(extent),
            &|| self.memory(extent),
            &|| self.flips(),
        ];
        progress.begin("questions about stack elements", parts.len() as u64);
        parts
            .into_iter()
            .map(|part| {
                let study = part()?;
                progress.step();
                Ok(study)
            })
            .collect()
    }

    fn published(&self) -> Vec<Published> {
        published::rows()
    }
}

/// An alternative that does its operation as often as it is told, and times that itself.
fn repeated<'a>(
    name: &str,
    mut run: impl FnMut(u64) -> Result<Sample, BenchError> + 'a,
) -> Alternative<'a> {
    // Not known before the first epoch.
    let mut times = 0;
    Alternative::fallible(name, move || {
        if times == 0 {
            run(1)?;
            let few = repeats(run(1)?);
            let op_ns = (run(few)?.wall_ns / few).max(1);
            times = (EPOCH_NS / op_ns).max(1);
        }
        run(times)
    })
}

/// Length of an epoch.
const EPOCH_NS: u64 = 5_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use crate::harness::{Rounds, compare};

    #[test]
    fn every_benchmark_gives_right_answers() {
        let suite = StackSuite::new(StackSettings::default());
        let benchmarks = suite.benchmarks(Extent::Smoke).expect("benchmarks");
        let mut names: Vec<&str> = benchmarks.iter().map(|it| it.name.as_str()).collect();
        assert!(names.contains(&"script/p2wsh/sha256/8000"), "{names:?}");
        assert!(names.contains(&"script/tapscript/dup-sha256/1"), "{names:?}");
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "each name once");
        let rounds = Rounds { count: 1, warm_up: 0 };
        for benchmark in &benchmarks {
            let mut alternatives = (benchmark.make)().expect("right answers");
            compare(&benchmark.name, &mut alternatives, rounds, &mut || {}).expect("figures");
        }
        let published = suite.published();
        for row in &published {
            let size = row.benchmark.rsplit('/').next().unwrap_or_default();
            let series = row.benchmark.trim_end_matches(|letter: char| letter != '/');
            let series = series.trim_end_matches('/');
            assert!(benchmarks.iter().any(|it| it.series == series), "{series} {size}");
        }
    }

    #[test]
    fn studies_come_to_an_end() {
        let suite = StackSuite::new(StackSettings::default());
        let studies = suite.studies(Extent::Smoke, &[], &Silent).expect("studies");
        assert!(studies.iter().all(|study| !study.prose.is_empty()));
    }

    #[test]
    fn settings_are_checked() {
        let bad = |settings: StackSettings| {
            StackSuite::new(settings).benchmarks(Extent::Smoke).err().map(|error| error.to_string())
        };
        let defaults = StackSettings::default;
        let templates = vec!["<data> OP_SHA257".to_owned()];
        assert!(
            bad(StackSettings { templates, ..defaults() }).is_some_and(|it| it.contains("257"))
        );
        assert!(bad(StackSettings { limits: vec![], ..defaults() }).is_some());
        let huge = LimitSettings { element_bytes_max: 1 << 30, dup_bytes_max: None };
        assert!(bad(StackSettings { limits: vec![huge], ..defaults() }).is_some());
        let kernel = Some(PathBuf::from("/nonexistent/kernel"));
        assert!(bad(StackSettings { kernel, ..defaults() }).is_some());
    }
}
