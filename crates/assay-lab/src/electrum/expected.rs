//! Reads script ledgers, the expected responses of an index.
//!
//! The laboratory does not parse scripts, so it cannot map script hashes to outputs. The forge does, and writes a *script ledger*
//! as JSON lines (docs/formats.md).

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, ensure};
use assay_ledger::scripts::{ScriptLine, ScriptsLine};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

const FORMAT: u32 = 1;
const NOT_A_LINE: &str = "not a line of a script ledger";

/// Status of a history of the first `count` transactions; `None` if it is empty.
pub(crate) fn status_of(script: &ScriptLine, count: usize) -> Option<String> {
    let mut hasher = Sha256::new();
    for (height, txid) in &script.history[..count] {
        hasher.update(format!("{txid}:{height}:"));
    }
    (count > 0).then(|| faster_hex::hex_string(&hasher.finalize()))
}

/// Distinguishes the first line, so that the other lines, maybe millions, need not be parsed for it.
#[derive(Deserialize)]
struct Kind {
    kind: String,
}

/// A script ledger read line by line: at most one script is in memory.
#[derive(Debug)]
pub struct ScriptsFile {
    path: PathBuf,
    lines: io::Lines<BufReader<File>>,
    line: u64,
    header: ScriptsLine,
    left: u64,
}

impl ScriptsFile {
    /// Opens a script ledger and reads its first line.
    ///
    /// # Errors
    /// When it cannot be read or has another format.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let cannot_read = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(cannot_read)?;
        let mut lines = BufReader::with_capacity(1 << 18, file).lines();
        let name = path.display();
        let first = lines.next().ok_or_else(|| anyhow!("{name}: it is empty"))?;
        let first = first.with_context(cannot_read)?;
        let syntax = || format!("{name}, line 1: {NOT_A_LINE}");
        let Kind { kind } = serde_json::from_str(&first).with_context(syntax)?;
        ensure!(kind == "scripts", "{name}: its first line is missing");
        let header: ScriptsLine = serde_json::from_str(&first).with_context(syntax)?;
        ensure!(header.format == FORMAT, "{name}: only format 1 is known");
        let left = header.scripts;
        Ok(Self { path: path.to_owned(), lines, line: 1, header, left })
    }

    pub fn header(&self) -> &ScriptsLine {
        &self.header
    }

    fn read_line(&mut self) -> anyhow::Result<Option<ScriptLine>> {
        let name = self.path.display();
        let Some(text) = self.lines.next() else {
            ensure!(self.left == 0, "{name}: it ends too early");
            return Ok(None);
        };
        let text = text.with_context(|| format!("cannot read {name}"))?;
        self.line += 1;
        ensure!(self.left > 0, "{name}: it has more scripts than it says");
        self.left -= 1;
        let line = self.line;
        let script = serde_json::from_str(&text);
        script.with_context(|| format!("{name}, line {line}: {NOT_A_LINE}"))
    }
}

impl Iterator for ScriptsFile {
    type Item = anyhow::Result<ScriptLine>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_line().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"kind":"scripts","format":1,"tip_height":3,"tip_hash":"aa","tip_header":"00","scripts":1,"scripts_total":1,"sample_seed":null,"history":2,"unspent":1}"#;
    const SCRIPT: &str = r#"{"kind":"script","script_hash":"cc","status":"dd","history":[[1,"t1"],[3,"t3"]],"coins":[{"height":1,"txid":"t1","vout":0,"value":5,"spent":3},{"height":3,"txid":"t3","vout":1,"value":4}]}"#;

    fn read(lines: &[&str]) -> anyhow::Result<Vec<ScriptLine>> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("scripts.jsonl");
        std::fs::write(&path, lines.join("\n")).expect("writable");
        ScriptsFile::open(&path)?.collect()
    }

    #[test]
    fn scripts_at_heights() {
        let scripts = read(&[HEADER, SCRIPT]).expect("a script ledger");
        let script = &scripts[0];
        let unspent = |height| script.unspent_at(height).map(|coin| coin.value).collect::<Vec<_>>();
        assert_eq!(
            (unspent(0), unspent(1), unspent(2), unspent(3)),
            (vec![], vec![5], vec![5], vec![4])
        );
        assert_eq!(script.history_at(2).len(), 1);
        assert_eq!(script.history_at(3).len(), 2);
    }

    #[test]
    fn statuses_are_of_a_part_of_the_history() {
        let script = ScriptLine { history: vec![(1, "10".repeat(32))], ..ScriptLine::default() };
        assert_eq!(status_of(&script, 0), None);
        let status = faster_hex::hex_string(&Sha256::digest(format!("{}:1:", "10".repeat(32))));
        assert_eq!(status_of(&script, 1), Some(status));
    }

    #[test]
    fn broken_ledgers() {
        let of = |lines: &[&str]| read(lines).expect_err("refused").to_string();
        assert!(of(&[]).ends_with("it is empty"));
        assert!(of(&[SCRIPT]).ends_with("its first line is missing"));
        assert!(of(&[HEADER]).ends_with("it ends too early"));
        assert!(of(&[HEADER, SCRIPT, SCRIPT]).ends_with("more scripts than it says"));
        assert!(of(&[HEADER, "{}"]).ends_with("line 2: not a line of a script ledger"));
        let other = HEADER.replace("\"format\":1", "\"format\":9");
        assert!(of(&[&other, SCRIPT]).ends_with("only format 1 is known"));
    }
}
