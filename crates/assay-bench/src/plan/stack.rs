//! The section `[stack]` of a plan: sizes of stack elements.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StackSettings {
    /// Bytes of `<data>`.
    pub sizes: Vec<usize>,
    /// Scripts: a leading `<data>` is an element of the witness, `<push>` a push of the same data anywhere in the script.
    pub templates: Vec<String>,
    /// Also `<data> HASH OP_DROP OP_1` for each other hashing opcode.
    pub hashing_opcodes: bool,
    pub wraps: Vec<Wrap>,
    /// Names of the rule sets; each script is measured under the first that accepts it. Default: [`StackSettings::rule_names`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<String>>,
    /// Additional rule sets: other limits in every kind of script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitSettings>,
    /// The wrapper of Bitcoin Core's kernel; by default its place in Cargo's target folder.
    pub kernel: Option<PathBuf>,
    /// The same built with a limit of 8,000 bytes (peers/kernel/README.md); by default its place in Cargo's target folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_8000: Option<PathBuf>,
    /// Folder with `script_tests.json`, `tx_valid.json` and `tx_invalid.json`; by default `$ASSAY_TEST_DATA/vectors`.
    pub vectors: Option<PathBuf>,
}

/// Element limits in every kind of script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Maximum bytes of a stack element.
    pub element_bytes_max: usize,
    /// Maximum bytes of an element copied by `OP_DUP`, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dup_bytes_max: Option<usize>,
}

/// Settings of the report.
impl Default for StackSettings {
    fn default() -> Self {
        let templates = ["<data> OP_SHA256 OP_DROP OP_1", "<data> OP_DUP OP_SHA256 OP_DROP OP_1"];
        Self {
            sizes: vec![1, 64, 65, 100, 520, 8000],
            templates: templates.map(str::to_owned).to_vec(),
            hashing_opcodes: true,
            wraps: vec![Wrap::P2wsh, Wrap::Tapscript],
            rules: None,
            limits: Vec::new(),
            kernel: None,
            kernel_8000: None,
            vectors: None,
        }
    }
}

/// Rule sets of the report's experiment and of the resulting proposal.
const RULES: [&str; 6] =
    ["today", "pqsig", "pqsig-dup", "report-8000-copies", "report-8000-dup", "report-8000"];

impl StackSettings {
    /// Names of the rule sets: the given ones; else none with `limits`, as in plans older than named rule sets; else the report's.
    pub fn rule_names(&self) -> Vec<&str> {
        match &self.rules {
            Some(rules) => rules.iter().map(String::as_str).collect(),
            None if self.limits.is_empty() => RULES.to_vec(),
            None => Vec::new(),
        }
    }
}

/// Script commitment of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wrap {
    /// None: the output contains the script, which has no arguments.
    Bare,
    /// By its hash (BIP-0141, version 0).
    P2wsh,
    /// As the only leaf of a Taproot output.
    Tapscript,
}

impl Wrap {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::P2wsh => "p2wsh",
            Self::Tapscript => "tapscript",
        }
    }
}
