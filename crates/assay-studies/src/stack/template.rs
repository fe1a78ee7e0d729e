//! Scripts with a placeholder for data of any size: `<data> OP_SHA256 OP_DROP OP_1`.

use anyhow::{Context as _, Result, bail, ensure};
use assay_consensus::script::asm;

/// Byte that fills the placeholders, as in the report.
const FILLING: u8 = 0x42;

/// A script with placeholders for data of any size.
///
/// `<data>` at the start is an element of the initial stack from the witness, as in the report; `<push>` is a push of
/// the data by the script itself, at any position. The other words are opcodes, numbers, `0x…` raw bytes and `'text'`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    text: String,
    name: String,
    arguments: usize,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Bytes(Vec<u8>),
    Push,
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (mut parts, mut names, mut arguments) = (Vec::new(), Vec::new(), 0);
        for word in text.split_ascii_whitespace() {
            match word {
                "<data>" if parts.is_empty() => arguments += 1,
                "<data>" => bail!(
                    "template `{text}`: `<data>` is an element of the witness and stands in front of the script; write `<push>` to push data in the script"
                ),
                "<push>" => parts.push(Part::Push),
                _ => {
                    let mut bytes = Vec::new();
                    asm::word(&mut bytes, word).with_context(|| {
                        format!(
                            "template `{text}`: `{word}` is no opcode, number, 0x followed by pairs of hex digits, 'text', `<data>` or `<push>`"
                        )
                    })?;
                    parts.push(Part::Bytes(bytes));
                }
            }
            let name = word.strip_prefix("OP_").unwrap_or(word).to_ascii_lowercase();
            names.push(name.trim_matches(|letter| "<>'".contains(letter)).to_owned());
        }
        let has_size = arguments > 0 || parts.contains(&Part::Push);
        ensure!(has_size, "template `{text}`: it has neither `<data>` nor `<push>`, so no size");
        // Cleanup and final opcodes occur in every script and are left out of names.
        let says = |name: &&String| {
            !["data", "drop", "2drop", "nip"].contains(&name.as_str())
                && name.parse::<i64>().is_err()
        };
        let mut name = names.iter().filter(says).cloned().collect::<Vec<_>>().join("-");
        if name.is_empty() {
            name = names.join("-");
        }
        Ok(Self { text: text.to_owned(), name, arguments, parts })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Short name: `dup-sha256`.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sets a name that contains every word.
    pub(super) fn name_in_full(&mut self) {
        let letters = self.text.to_ascii_lowercase().replace("op_", "");
        let words: Vec<String> = letters
            .split_ascii_whitespace()
            .map(|word| word.chars().filter(char::is_ascii_alphanumeric).collect())
            .collect();
        self.name = words.join("-");
    }

    pub(super) fn arguments(&self, size: usize) -> Vec<Vec<u8>> {
        vec![vec![FILLING; size]; self.arguments]
    }

    pub(super) fn script(&self, size: usize) -> Vec<u8> {
        let mut script = Vec::new();
        for part in &self.parts {
            match part {
                Part::Bytes(bytes) => script.extend_from_slice(bytes),
                Part::Push => asm::push(&mut script, &vec![FILLING; size]),
            }
        }
        script
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reports_templates() {
        let template = Template::parse("<data> OP_SHA256 OP_DROP OP_1").expect("a template");
        assert_eq!(template.name(), "sha256");
        assert_eq!(template.arguments(3), [[0x42; 3]]);
        assert_eq!(template.script(3), [0xa8, 0x75, 0x51]);
        let template = Template::parse("<data> OP_DUP OP_SHA256 OP_DROP OP_1").expect("a template");
        assert_eq!(template.name(), "dup-sha256");
        let mut template = Template::parse("<push> HASH160 <push> 2DROP TRUE").expect("a template");
        assert_eq!(template.script(1), [1, 0x42, 0xa9, 1, 0x42, 0x6d, 0x51]);
        assert_eq!((template.name(), template.arguments(1).len()), ("push-hash160-push-true", 0));
        template.name_in_full();
        assert_eq!(template.name(), "push-hash160-push-2drop-true");
        let bare = Template::parse("<data> DROP 1").expect("a template");
        assert_eq!(bare.name(), "data-drop-1");
    }

    #[test]
    fn template_errors_are_reported() {
        for (text, part) in [
            ("OP_SHA256 OP_DROP OP_1", "no size"),
            ("", "no size"),
            ("OP_1 <data> OP_DROP", "<push>"),
            ("<data> OP_SHA257 OP_DROP", "`OP_SHA257`"),
            ("<date> OP_SHA256", "`<date>`"),
        ] {
            let error = Template::parse(text).expect_err("a mistake").to_string();
            assert!(error.contains(part) && error.contains(text), "{error}");
        }
    }
}
