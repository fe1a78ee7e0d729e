//! Parser of `bitcoin.conf` (Core `common/config.cpp`).

use std::collections::BTreeMap;

use anyhow::bail;

use super::grammar::{Key, Values};
use super::notes::Notes;
use super::options;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfFile {
    /// Pairs of `section.name` and value.
    entries: Vec<(String, String)>,
    /// Sections with their line numbers.
    pub(crate) sections: Vec<(String, usize)>,
}

impl ConfFile {
    /// Parses the contents of a file.
    pub(crate) fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        let mut file = Self::default();
        let mut prefix = String::new();
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let number = index + 1;
            let comment = line.iter().position(|byte| *byte == b'#');
            let line = &line[..comment.unwrap_or(line.len())];
            let Ok(line) = std::str::from_utf8(line) else {
                bail!("parse error on line {number}: the text is not UTF-8");
            };
            let line = line.trim_matches(WHITE);
            if line.is_empty() {
                continue;
            }
            if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                file.sections.push((section.to_owned(), number));
                prefix = format!("{section}.");
                continue;
            }
            if line.starts_with('-') {
                bail!(
                    "parse error on line {number}: {line}, options in configuration file must be specified without leading -"
                );
            }
            let Some((name, value)) = line.split_once('=') else {
                let negated = line.strip_prefix("no").map(|_| {
                    format!(", if you intended to specify a negated option, use {line}=1 instead")
                });
                bail!("parse error on line {number}: {line}{}", negated.unwrap_or_default());
            };
            let name = format!("{prefix}{}", name.trim_matches(WHITE));
            if comment.is_some() && name.contains("rpcpassword") {
                bail!(
                    "parse error on line {number}, using # in rpcpassword can be ambiguous and should be avoided"
                );
            }
            if let Some(dot) = name.rfind('.').filter(|dot| prefix.len() <= *dot) {
                file.sections.push((name[..dot].to_owned(), number));
            }
            file.entries.push((name, value.trim_matches(WHITE).to_owned()));
        }
        Ok(file)
    }

    /// Adds the values by section. Unknown names are skipped: the file may be that of a newer version.
    pub(crate) fn add_to(
        &self,
        sections: &mut BTreeMap<String, Values>,
        notes: &mut Notes,
    ) -> anyhow::Result<()> {
        for (name, value) in &self.entries {
            let key = Key::parse(name);
            if key.name == "conf" {
                bail!(
                    "conf cannot be set in the configuration file; use includeconf= if you want to include additional config files"
                );
            }
            if key.name == "reindex" {
                notes.warn(
                    "reindex=1 is set in the configuration file, which will significantly slow down startup. Consider \
                     removing or commenting out this option for better performance, unless there is currently a condition \
                     which makes rebuilding the indexes necessary"
                        .to_owned(),
                );
            }
            let Some(option) = options::find(&key.name) else {
                notes.warn(format!("Ignoring unknown configuration value {name}"));
                continue;
            };
            let value = key.value(Some(value), option, notes)?;
            sections.entry(key.section).or_default().entry(key.name).or_default().push(value);
        }
        Ok(())
    }
}

const WHITE: [char; 4] = [' ', '\t', '\r', '\n'];

#[cfg(test)]
mod tests {
    use super::super::grammar::Value;
    use super::*;

    #[test]
    fn lines_sections_and_comments() {
        let text = " regtest = 1 # chain\r\n\n#all\n[regtest]\n\tport=5\nuacomment=a b \nsignet.par=3\n[x]\n\npar=\n";
        let file = ConfFile::parse(text.as_bytes()).unwrap();
        let entries: Vec<_> =
            file.entries.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            entries,
            [
                ("regtest", "1"),
                ("regtest.port", "5"),
                ("regtest.uacomment", "a b"),
                ("regtest.signet.par", "3"),
                ("x.par", ""),
            ]
        );
        let sections: Vec<_> =
            file.sections.iter().map(|(name, line)| (name.as_str(), *line)).collect();
        assert_eq!(sections, [("regtest", 4), ("regtest.signet", 7), ("x", 8)]);
        let file = ConfFile::parse(b"main.par=1").unwrap();
        assert_eq!(file.sections, [("main".to_owned(), 1)]);
        assert_eq!(ConfFile::parse(b"").unwrap(), ConfFile::default());
    }

    #[test]
    fn errors_are_those_of_core() {
        for (text, expected) in [
            ("garbage", "parse error on line 1: garbage"),
            (
                "\nnono",
                "parse error on line 2: nono, if you intended to specify a negated option, use nono=1 instead",
            ),
            (
                "-dash=1",
                "parse error on line 1: -dash=1, options in configuration file must be specified without leading -",
            ),
            (
                "[main]\nrpcpassword=a#b",
                "parse error on line 2, using # in rpcpassword can be ambiguous and should be avoided",
            ),
        ] {
            assert_eq!(ConfFile::parse(text.as_bytes()).unwrap_err().to_string(), expected);
        }
        let error = ConfFile::parse(b"par=\xff").unwrap_err().to_string();
        assert_eq!(error, "parse error on line 1: the text is not UTF-8");
        assert!(ConfFile::parse(b"par=1 # \xff").is_ok());
    }

    #[test]
    fn unknown_names_are_left_out() {
        let (mut sections, mut notes) = (BTreeMap::new(), Notes::default());
        let file = ConfFile::parse(b"foo=1\nnolisten=1\n[a]\npar=2\nfoo=3").unwrap();
        file.add_to(&mut sections, &mut notes).unwrap();
        assert_eq!(sections[""]["listen"], [Value::No]);
        assert_eq!(sections["a"]["par"], [Value::Text("2".to_owned())]);
        assert_eq!(
            notes.texts(),
            [
                "Ignoring unknown configuration value foo",
                "Ignoring unknown configuration value a.foo"
            ]
        );
        let file = ConfFile::parse(b"conf=x").unwrap();
        assert!(file.add_to(&mut sections, &mut notes).is_err());
    }
}
