//! Terminates a process after a failed spot check or self-test, and writes evidence.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use assay_secp::{Backend, Disagreement};
use assay_store::defect;
use faster_hex::hex_string;

use super::settings;
use crate::clock::unix_time_s;

/// A defect of the vector code or of the machine.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// Description of the defect, one sentence.
    defect: String,
    /// Names and values in output order.
    fields: Vec<(&'static str, String)>,
}

impl Evidence {
    /// A proven check of the sample that libsecp256k1 rejects.
    pub(super) fn disagreement(found: &Disagreement, core: Option<usize>) -> Self {
        let mut fields = vec![
            ("check", found.kind.to_owned()),
            ("backend", found.backend.name().to_owned()),
            ("proof", found.proof.name().to_owned()),
            ("proven_again", found.is_proven_again.to_string()),
            ("library_again", found.library_again.to_string()),
        ];
        for (name, bytes) in &found.operands {
            fields.push((name, hex_string(bytes)));
        }
        Self::new(found.to_string(), core, fields)
    }

    /// A self-test that failed on a core after the first one had passed.
    pub(super) fn self_test(backend: Backend, core: Option<usize>) -> Self {
        let name = backend.name();
        let defect = format!("{name} fails its self-test, which it passed when the process began");
        Self::new(defect, core, vec![("backend", name.to_owned())])
    }

    fn new(defect: String, core: Option<usize>, mut fields: Vec<(&'static str, String)>) -> Self {
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        fields.push(("core", core.map_or_else(|| "unknown".to_owned(), |core| core.to_string())));
        fields.push(("thread", thread));
        fields.push(("processor", processor()));
        fields.push(("version", env!("CARGO_PKG_VERSION").to_owned()));
        Self { defect, fields }
    }

    /// One JSON object with a line per field; all values are strings.
    fn json(&self, time_s: u64) -> String {
        let mut json = format!("{{\n  \"defect\": {},\n  \"time\": {time_s}", quoted(&self.defect));
        for (name, value) in &self.fields {
            let _ = write!(json, ",\n  \"{name}\": {}", quoted(value));
        }
        json.push_str("\n}\n");
        json
    }
}

/// Writes the evidence to the log, to standard error and, if there is a datadir, to a file in it, and ends the process. Never
/// returns, since the caller's results must not be used.
#[cold]
pub(super) fn stop_with_evidence(evidence: &Evidence) -> ! {
    /// Held to the end: if several threads find a defect, the first evidence is written completely.
    static FIRST: Mutex<()> = Mutex::new(());
    let _first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    let time_s = unix_time_s();
    let json = evidence.json(time_s);
    let place = match settings::current().evidence_dir.map(|dir| write(&dir, time_s, &json)) {
        Some(Ok(path)) => format!("; evidence: {}", path.display()),
        Some(Err(error)) => format!("; the evidence could not be written to a file: {error}"),
        None => String::new(),
    };
    let reason = format!(
        "{}. Signatures that this process found valid since its last self-test are in doubt, so it stops{place}. \
         ASSAY_BACKEND=libsecp256k1 runs without vectors.",
        evidence.defect
    );
    defect::stop(&format!("{reason}\n{json}"))
}

fn write(dir: &Path, time_s: u64, json: &str) -> std::io::Result<PathBuf> {
    use std::io::Write as _;

    let path = dir.join(format!("defect-{time_s}.json"));
    let mut file = std::fs::File::create(&path)?;
    file.write_all(json.as_bytes())?;
    file.sync_all()?;
    Ok(path)
}

/// Processor name reported by the system.
fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim().to_owned());
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if char.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", char as u32);
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_json() {
        let evidence =
            Evidence::new("a \"b\" \\\n".to_owned(), Some(3), vec![("x", hex_string(&[1, 0xab]))]);
        let json: serde_json::Value = serde_json::from_str(&evidence.json(7)).unwrap();
        assert_eq!(json["defect"], "a \"b\" \\\n");
        assert_eq!((&json["time"], &json["core"]), (&7.into(), &"3".into()));
        assert_eq!(json["x"], "01ab");
        assert!(!json["processor"].as_str().unwrap().is_empty());
    }
}
