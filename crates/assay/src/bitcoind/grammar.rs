//! Bitcoin Core's grammar of options: keys, values, and the command line (`common/args.cpp`).

use std::collections::BTreeMap;

use anyhow::bail;

use super::notes::Notes;
use super::options::{self, Opt};

/// Value of an option at one occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Negated: `-nox`, or `x=false` in `settings.json`.
    No,
    /// Negated twice: `-nox=0`.
    Yes,
    /// The text after the equals sign; empty without one.
    Text(String),
}

impl Value {
    /// Conversion to text (Core `SettingToString`).
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::No => "0",
            Self::Yes => "1",
            Self::Text(text) => text,
        }
    }

    /// Conversion to a flag: true without a value, or if the value is a number other than 0.
    pub(crate) fn flag(&self) -> bool {
        match self {
            Self::No => false,
            Self::Yes => true,
            Self::Text(text) => is_on(text),
        }
    }

    /// Conversion to an integer (Core `SettingToInt`).
    pub(crate) fn int(&self) -> i64 {
        match self {
            Self::No => 0,
            Self::Yes => 1,
            Self::Text(text) => atoi(text),
        }
    }

    /// Conversion to JSON, for the log.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::No => false.into(),
            Self::Yes => true.into(),
            Self::Text(text) => text.as_str().into(),
        }
    }
}

/// Values by option, in order of occurrence.
pub(crate) type Values = BTreeMap<String, Vec<Value>>;

/// A parsed key: `section.noname`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) is_negated: bool,
}

impl Key {
    pub(crate) fn parse(text: &str) -> Self {
        let (section, name) = text.split_once('.').unwrap_or(("", text));
        let (name, is_negated) = match name.strip_prefix("no") {
            Some(rest) => (rest, true),
            None => (name, false),
        };
        Self { section: section.to_owned(), name: name.to_owned(), is_negated }
    }

    /// Value of this key from the text after the equals sign.
    pub(crate) fn value(
        &self,
        text: Option<&str>,
        option: &Opt,
        notes: &mut Notes,
    ) -> anyhow::Result<Value> {
        let name = &self.name;
        if self.is_negated {
            if option.forbids_negation {
                bail!("Negating of -{name} is meaningless and therefore forbidden");
            }
            return Ok(match text {
                Some(text) if !is_on(text) => {
                    notes.warn(format!(
                        "Parsed potentially confusing double-negative -{name}={text}"
                    ));
                    Value::Yes
                }
                _ => Value::No,
            });
        }
        if text.is_none() && option.needs_value {
            bail!("Can not set -{name} with no value. Please specify value with -{name}=value.");
        }
        Ok(Value::Text(text.unwrap_or_default().to_owned()))
    }
}

#[derive(Debug, Default)]
pub(crate) struct CommandLine {
    pub(crate) values: Values,
    /// The first argument that is no option, which ends the options.
    pub(crate) stray: Option<String>,
}

impl CommandLine {
    /// Parses the arguments after the program's name.
    pub(crate) fn parse(arguments: &[String], notes: &mut Notes) -> anyhow::Result<Self> {
        let mut line = Self::default();
        for argument in arguments {
            if argument == "-" {
                break;
            }
            let Some(bare) = argument.strip_prefix('-') else {
                line.stray = Some(argument.clone());
                break;
            };
            let bare = bare.strip_prefix('-').unwrap_or(bare);
            let (key, text) = match bare.split_once('=') {
                Some((key, text)) => (key, Some(text)),
                None => (bare, None),
            };
            let key = Key::parse(key);
            let option = options::find(&key.name).filter(|_| key.section.is_empty());
            let Some(option) = option else { bail!("Invalid parameter {argument}") };
            let value = key.value(text, option, notes)?;
            line.values.entry(key.name).or_default().push(value);
        }
        let included = line.values.get("includeconf").map(|values| since_negation(values));
        if let Some([first, ..]) = included {
            bail!("-includeconf cannot be used from commandline; -includeconf={}", first.to_json());
        }
        Ok(line)
    }
}

/// The values after the last negation, which cancels all before it.
pub(crate) fn since_negation(values: &[Value]) -> &[Value] {
    let last = values.iter().rposition(|value| *value == Value::No);
    &values[last.map_or(0, |index| index + 1)..]
}

/// True for an empty text and for any number but 0. Other texts count as 0.
pub(crate) fn is_on(text: &str) -> bool {
    text.is_empty() || atoi(text) != 0
}

/// The number at the beginning of a text, after white space; 0 if there is none, and saturated on
/// overflow (Core `util/strencodings.h`, `LocaleIndependentAtoi`).
pub(crate) fn atoi(text: &str) -> i64 {
    let text = text.trim_matches(WHITE);
    let (text, had_plus) = match text.strip_prefix('+') {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (digits, is_negative) = match text.strip_prefix('-') {
        Some(_) if had_plus => return 0,
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let mut number = 0_i64;
    for digit in digits.bytes().map_while(|byte| char::from(byte).to_digit(10)) {
        let digit = i64::from(digit);
        number = number.saturating_mul(10);
        number =
            if is_negative { number.saturating_sub(digit) } else { number.saturating_add(digit) };
    }
    number
}

/// Characters that Core trims from numbers (`util/string.h`, `TrimStringView`).
pub(crate) const WHITE: [char; 6] = [' ', '\x0c', '\n', '\r', '\t', '\x0b'];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<CommandLine, String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        CommandLine::parse(&arguments, &mut Notes::default()).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn values(arguments: &[&str], name: &str, expected: &[Value]) {
        let line = parse(arguments).unwrap();
        assert_eq!(line.values.get(name).map_or(&[][..], Vec::as_slice), expected);
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn options_with_one_dash_or_two() {
        values(&["-port=5"], "port", &[text("5")]);
        values(&["--port=5"], "port", &[text("5")]);
        values(&["-port"], "port", &[text("")]);
        values(&["-port="], "port", &[text("")]);
        values(&["-port=a=b"], "port", &[text("a=b")]);
        values(&["-port=1", "-bind=x", "-port=2"], "port", &[text("1"), text("2")]);
        values(&["-?"], "?", &[text("")]);
    }

    #[test]
    fn negations() {
        values(&["-noport"], "port", &[Value::No]);
        values(&["-noport=1"], "port", &[Value::No]);
        values(&["-noport="], "port", &[Value::No]);
        values(&["-noport=0"], "port", &[Value::Yes]);
        values(&["-noport=x"], "port", &[Value::Yes]);
        values(&["--noport", "-port=3"], "port", &[Value::No, text("3")]);
        let mut notes = Notes::default();
        CommandLine::parse(&["-nolisten=0".to_owned()], &mut notes).unwrap();
        assert_eq!(notes.texts(), ["Parsed potentially confusing double-negative -listen=0"]);
    }

    #[test]
    fn options_end_at_the_first_other_argument() {
        let line = parse(&["-port=1", "stop", "-port=2", "-nosuch"]).unwrap();
        assert_eq!(line.values["port"], [text("1")]);
        assert_eq!(line.stray.as_deref(), Some("stop"));
        let line = parse(&["-port=1", "-", "-nosuch"]).unwrap();
        assert!(line.stray.is_none() && line.values.len() == 1);
        assert_eq!(parse(&[""]).unwrap().stray.as_deref(), Some(""));
    }

    #[test]
    fn errors_are_those_of_core() {
        for (argument, expected) in [
            ("-foo", "Invalid parameter -foo"),
            ("--foo=1", "Invalid parameter --foo=1"),
            ("-nofoo", "Invalid parameter -nofoo"),
            ("-regtest.port=1", "Invalid parameter -regtest.port=1"),
            ("--", "Invalid parameter --"),
            ("---port", "Invalid parameter ---port"),
            ("-nonoport", "Invalid parameter -nonoport"),
            ("-=", "Invalid parameter -="),
            ("-no", "Invalid parameter -no"),
            ("-é", "Invalid parameter -é"),
            ("-nodatadir", "Negating of -datadir is meaningless and therefore forbidden"),
            (
                "-loglevel",
                "Can not set -loglevel with no value. Please specify value with -loglevel=value.",
            ),
            ("-includeconf=x", "-includeconf cannot be used from commandline; -includeconf=\"x\""),
        ] {
            assert_eq!(parse(&[argument]).unwrap_err(), expected);
        }
        assert!(parse(&["-noincludeconf"]).is_ok());
    }

    #[test]
    fn numbers_are_read_as_core_reads_them() {
        for (text, expected) in [
            ("0", 0),
            ("5", 5),
            (" +5 ", 5),
            ("-5", -5),
            ("+-5", 0),
            ("5x", 5),
            ("x5", 0),
            ("", 0),
            ("-", 0),
            ("0x10", 0),
            ("9223372036854775807", i64::MAX),
            ("9223372036854775808", i64::MAX),
            ("-99999999999999999999", i64::MIN),
        ] {
            assert_eq!(atoi(text), expected, "{text:?}");
        }
        assert!(is_on("") && is_on("2") && !is_on("0") && !is_on("true") && !is_on("no"));
    }
}
