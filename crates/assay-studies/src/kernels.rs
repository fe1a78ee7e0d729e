//! Bitcoin Core's kernel, measured against our engine: unmodified, and built with a limit of 8,000 bytes.

use std::cell::{OnceCell, RefCell};
use std::path::Path;

use anyhow::{Result, ensure};
use assay_bench::plan::Wrap;
use assay_consensus::script::RuleSet;
use assay_consensus::script::opcode::op;
use assay_lab::target::kernel::{Build, find_build};

use crate::peer::KernelPeer;
use crate::rules;
use crate::spend::Spend;

/// Name of the alternative that is unmodified Bitcoin Core.
pub(crate) const KERNEL: &str = "kernel";

/// Name of the alternative built with the report's limit.
pub(crate) const KERNEL_8000: &str = "kernel-8000";

/// A kernel peer with its rules.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) rules: RuleSet,
    pub(crate) peer: RefCell<KernelPeer>,
}

impl Kernel {
    /// Starts the program of a build; `None` if it has no given path and is not built.
    fn start(build: Build, named: Option<&Path>) -> Result<Option<Self>> {
        let program = match find_build(build, named) {
            Err(_) if named.is_none() => return Ok(None),
            found => found?,
        };
        let (name, rules) = match build {
            Build::Ordinary => (KERNEL, RuleSet::TODAY),
            Build::Element8000 => (KERNEL_8000, rules::by_name("report-8000")?),
        };
        let peer = RefCell::new(KernelPeer::start(&program)?);
        let kernel = Self { name, rules, peer };
        kernel.check_limit(&program)?;
        Ok(Some(kernel))
    }

    /// Verifies the limit that the program was built with: an element of that size passes, and one byte more does not.
    fn check_limit(&self, program: &Path) -> Result<()> {
        let limit = self.rules.element_bytes_max();
        for (bytes, expected) in [(limit, true), (limit + 1, false)] {
            let spend = Spend::new(Wrap::P2wsh, &[op::DROP, op::PUSH1], vec![vec![0; bytes]]);
            let spent = spend.spent();
            let passes =
                self.peer.borrow_mut().judge(spend.tx.view(), &spent, spend.flags, None)?;
            let program = program.display();
            let verdict = if passes { "pass" } else { "fail" };
            ensure!(
                passes == expected,
                "{program} failed: its limit of stack elements is not {limit} bytes: {bytes} bytes {verdict}"
            );
        }
        Ok(())
    }
}

/// The kernel peers that are built, started on first use.
#[derive(Debug, Default)]
pub(crate) struct Kernels(OnceCell<Vec<Kernel>>);

impl Kernels {
    /// All of them, from the given paths or from where Cargo builds them.
    pub(crate) fn get(
        &self,
        ordinary: Option<&Path>,
        element_8000: Option<&Path>,
    ) -> Result<&[Kernel]> {
        if let Some(kernels) = self.0.get() {
            return Ok(kernels);
        }
        let mut kernels = Vec::new();
        for (build, named) in [(Build::Ordinary, ordinary), (Build::Element8000, element_8000)] {
            kernels.extend(Kernel::start(build, named)?);
        }
        Ok(self.0.get_or_init(|| kernels))
    }
}
