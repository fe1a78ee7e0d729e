//! Targets on the command line and in plans.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A target: `[NAME:]NODE[+INDEX] [ARGUMENT …]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetSpec {
    /// Name in tables and file names; derived from program and version if not given.
    pub name: Option<String>,
    pub node: NodeSpec,
    pub index: Option<IndexSpec>,
    /// Arguments of the node, after all others.
    pub args: Vec<String>,
    /// Cores that the node is bound to; any if empty. Set by plans and callers, absent in the text.
    pub cores: Vec<usize>,
}

/// A node on the command line and in plans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeSpec {
    /// Assay's node, this program: `assay`.
    Assay,
    /// Another build of it: `assay=PATH`.
    AssayAt(PathBuf),
    /// Assay's engine without a node, which reads block files: `engine`, `engine=PATH` for another build. Syncs only.
    Engine(Option<PathBuf>),
    /// A program of the Bitcoin Core family: `bitcoind=PATH`.
    Bitcoind(PathBuf),
    /// A program of the Bitcoin Core family from the build cache: `core@REV`, `core@REV+clang`.
    Built(BuiltSpec),
    /// btcd: `btcd=PATH`.
    Btcd(PathBuf),
    /// Bitcoin Core's kernel in Assay's wrapper, searched if no path is given: `kernel`, `kernel=PATH`.
    Kernel(Option<PathBuf>),
}

/// A cached build: `core@REV`, and words that select among builds of the revision, each after a `+`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltSpec {
    /// Revision: a name under which it was built, or a prefix of its hash.
    pub revision: String,
    /// Compilers, presets, or ends of keys.
    pub with: Vec<String>,
}

impl fmt::Display for BuiltSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BUILT}{}", self.revision)?;
        self.with.iter().try_for_each(|word| write!(f, "+{word}"))
    }
}

impl BuiltSpec {
    /// Parses the part after [`BUILT`].
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split('+').map(str::to_owned);
        let spec = Self { revision: words.next()?, with: words.collect() };
        let is_given = |word: &String| !word.is_empty();
        (is_given(&spec.revision) && spec.with.iter().all(is_given)).then_some(spec)
    }
}

/// Prefix of build names.
const BUILT: &str = "core@";

/// An index on the command line and in plans, after the `+` of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexSpec {
    /// The index in Assay's node: `index`.
    Own,
    /// A program: `fulcrum=PATH`, `electrs=PATH`, `electrumx=PATH`.
    Program(IndexKind, PathBuf),
}

impl fmt::Display for IndexSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("index"),
            Self::Program(kind, path) => write!(f, "{}={}", kind.as_str(), path.display()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IndexKind {
    /// Assay's, in the node's process.
    Own,
    Fulcrum,
    Electrs,
    #[serde(rename = "electrumx")]
    ElectrumX,
}

impl IndexKind {
    /// Kinds that are separate programs.
    pub(crate) const PROGRAMS: [Self; 3] = [Self::Fulcrum, Self::Electrs, Self::ElectrumX];

    /// Name in targets, results and file names.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "index",
            Self::Fulcrum => "fulcrum",
            Self::Electrs => "electrs",
            Self::ElectrumX => "electrumx",
        }
    }

    pub(crate) fn takes(self, chain: &str) -> bool {
        // electrs only supports networks of Bitcoin.
        self != Self::Electrs || chain == "regtest"
    }
}

/// Human-readable list of targets.
pub(crate) const USE_TARGETS: &str = "use assay[=PATH], engine[=PATH], bitcoind=PATH, core@REV[+COMPILER] (a build of `assay builds make`), btcd=PATH or kernel[=PATH], and +index (ours), +fulcrum=PATH, +electrs=PATH or +electrumx=PATH for an index; a name before it ends with ':', arguments follow after blanks";

#[derive(Debug, thiserror::Error)]
pub enum TargetSpecError {
    #[error("unknown target {text:?}: {USE_TARGETS}")]
    Unknown { text: String },
    /// Assay's built-in index with another node.
    #[error("{text:?}: only our own node has an index of ours")]
    OwnIndex { text: String },
    #[error("{text:?}: a quotation mark has no partner")]
    Quotes { text: String },
}

impl TargetSpec {
    /// A node without an index.
    pub const fn node(node: NodeSpec) -> Self {
        Self { name: None, node, index: None, args: Vec::new(), cores: Vec::new() }
    }
}

impl FromStr for TargetSpec {
    type Err = TargetSpecError;

    fn from_str(text: &str) -> Result<Self, TargetSpecError> {
        let unknown = || TargetSpecError::Unknown { text: text.to_owned() };
        let words =
            split_words(text).ok_or_else(|| TargetSpecError::Quotes { text: text.to_owned() })?;
        let (what, args) = words.split_first().ok_or_else(unknown)?;
        let (name, what) = split_name(what);
        if name.is_some_and(|name| !is_target_name(name)) {
            return Err(unknown());
        }
        let (node, index) = split_index(what);
        let path = |path: &str| -> Result<PathBuf, TargetSpecError> {
            if path.is_empty() { Err(unknown()) } else { Ok(path.into()) }
        };
        let node = match node.split_once('=') {
            None if node == "assay" => NodeSpec::Assay,
            None if node == "engine" => NodeSpec::Engine(None),
            None if node == "kernel" => NodeSpec::Kernel(None),
            _ if node.starts_with(BUILT) => {
                NodeSpec::Built(BuiltSpec::parse(&node[BUILT.len()..]).ok_or_else(unknown)?)
            }
            Some(("assay", program)) => NodeSpec::AssayAt(path(program)?),
            Some(("engine", program)) => NodeSpec::Engine(Some(path(program)?)),
            Some(("bitcoind", program)) => NodeSpec::Bitcoind(path(program)?),
            Some(("btcd", program)) => NodeSpec::Btcd(path(program)?),
            Some(("kernel", program)) => NodeSpec::Kernel(Some(path(program)?)),
            _ => return Err(unknown()),
        };
        let is_ours = matches!(node, NodeSpec::Assay | NodeSpec::AssayAt(_));
        match &index {
            Some(IndexSpec::Own) if !is_ours => {
                return Err(TargetSpecError::OwnIndex { text: text.to_owned() });
            }
            Some(_)
                if matches!(
                    node,
                    NodeSpec::Btcd(_) | NodeSpec::Kernel(_) | NodeSpec::Engine(_)
                ) =>
            {
                return Err(unknown());
            }
            Some(IndexSpec::Program(_, path)) if path.as_os_str().is_empty() => {
                return Err(unknown());
            }
            _ => {}
        }
        Ok(Self {
            name: name.map(str::to_owned),
            node,
            index,
            args: args.to_vec(),
            cores: Vec::new(),
        })
    }
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_ref().map(|name| format!("{name}:")).unwrap_or_default();
        let node = match &self.node {
            NodeSpec::Assay => "assay".to_owned(),
            NodeSpec::AssayAt(path) => format!("assay={}", path.display()),
            NodeSpec::Engine(None) => "engine".to_owned(),
            NodeSpec::Engine(Some(path)) => format!("engine={}", path.display()),
            NodeSpec::Bitcoind(path) => format!("bitcoind={}", path.display()),
            NodeSpec::Built(build) => build.to_string(),
            NodeSpec::Btcd(path) => format!("btcd={}", path.display()),
            NodeSpec::Kernel(None) => "kernel".to_owned(),
            NodeSpec::Kernel(Some(path)) => format!("kernel={}", path.display()),
        };
        let index = self.index.as_ref().map(|index| format!("+{index}")).unwrap_or_default();
        f.write_str(&quoted(&format!("{name}{node}{index}")))?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

/// True if a name is valid in file names and tables.
pub(crate) fn is_target_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(allowed)
}

/// Splits off the name. A colon after the `=` belongs to a path.
fn split_name(text: &str) -> (Option<&str>, &str) {
    match text.find([':', '=']) {
        Some(at) if text[at..].starts_with(':') => (Some(&text[..at]), &text[at + 1..]),
        _ => (None, text),
    }
}

/// Splits at the last `+` that begins an index: paths may contain others.
fn split_index(text: &str) -> (&str, Option<IndexSpec>) {
    if let Some(node) = text.strip_suffix("+index") {
        return (node, Some(IndexSpec::Own));
    }
    let place = |kind: &IndexKind| {
        let mark = format!("+{}=", kind.as_str());
        text.rfind(&mark).map(|at| (at, at + mark.len(), *kind))
    };
    match IndexKind::PROGRAMS.iter().filter_map(place).max_by_key(|(at, ..)| *at) {
        Some((at, end, kind)) => (&text[..at], Some(IndexSpec::Program(kind, text[end..].into()))),
        None => (text, None),
    }
}

/// Splits at blanks outside of quotation marks, as a shell does; `None` if one is unbalanced.
fn split_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().push(chars.next()?),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Quotes a word for [`split_words`].
fn quoted(word: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '\'' | '"' | '\\');
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> TargetSpec {
        text.parse().expect("known")
    }

    #[test]
    fn specs() {
        assert_eq!(parse("assay"), TargetSpec::node(NodeSpec::Assay));
        let bitcoind = NodeSpec::Bitcoind("/opt/a=b/bitcoind".into());
        assert_eq!(parse("bitcoind=/opt/a=b/bitcoind"), TargetSpec::node(bitcoind));
        let index = Some(IndexSpec::Own);
        assert_eq!(parse("assay+index"), TargetSpec { index, ..TargetSpec::node(NodeSpec::Assay) });
        // A plus sign in a path is a part of the path.
        let pair = parse("bitcoind=/opt/c++/bitcoind+fulcrum=/opt/a+electrs=b/Fulcrum");
        assert_eq!(pair.node, NodeSpec::Bitcoind("/opt/c++/bitcoind+fulcrum=/opt/a".into()));
        let pair = parse("bitcoind=/opt/c++/bitcoind+fulcrum=/opt/f+g/Fulcrum");
        assert_eq!(pair.node, NodeSpec::Bitcoind("/opt/c++/bitcoind".into()));
        let index = IndexSpec::Program(IndexKind::Fulcrum, "/opt/f+g/Fulcrum".into());
        assert_eq!(pair.index, Some(index));
        let with = vec!["clang".to_owned(), "1a2b".to_owned()];
        let built = NodeSpec::Built(BuiltSpec { revision: "v28.0".to_owned(), with });
        assert_eq!(parse("core@v28.0+clang+1a2b"), TargetSpec::node(built));
        for text in [
            "assay",
            "assay=/a",
            "assay+index",
            "assay=/a+index",
            "assay+electrs=/e",
            "bitcoind=/b",
            "bitcoind=/b+fulcrum=/f",
            "bitcoind=/b+electrumx=/x",
            "core@v28.0",
            "core@88debb3e+clang-19",
            "before:core@a/branch+gcc+1a2b3c4d -dbcache=450",
            "core@v28.0+gcc+fulcrum=/f+g",
            "btcd=/x:y",
            "kernel",
            "kernel=/k",
            "engine",
            "engine=/a",
            "small:bitcoind=/b -dbcache=4 '-uacomment=two words'",
            "'old:bitcoind=/my nodes/b' '-it'\\''s'",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
        for bad in [
            "",
            "  ",
            "assay=",
            "bitcoind",
            "bitcoind=",
            "btcd",
            "bitcoind=/b+index",
            "core",
            "core@",
            "core@+clang",
            "core@v28.0+",
            "core@v28.0+index",
            "btcd=/b+fulcrum=/f",
            "kernel+index",
            "engine+index",
            "engine=",
            "assay+fulcrum=",
            "+index",
            "assay+indexes",
            ":assay",
            "../x:assay",
            "-x:assay",
            "assay 'open",
        ] {
            assert!(bad.parse::<TargetSpec>().is_err(), "{bad:?} is refused");
        }
    }

    #[test]
    fn names_and_arguments() {
        let spec = parse("small:bitcoind=\"/my nodes/b\"  -dbcache=4 'a b'\\ c \"\"");
        assert_eq!(spec.name.as_deref(), Some("small"));
        assert_eq!(spec.node, NodeSpec::Bitcoind("/my nodes/b".into()));
        assert_eq!(spec.args, ["-dbcache=4", "a b c", ""]);
    }
}
