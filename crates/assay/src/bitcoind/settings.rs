//! Precedence of settings from several sources (Core `common/settings.cpp`).
//!
//! From highest to lowest: the command line, `settings.json`, the section of the chain in the
//! configuration file, and its lines outside of sections. Of several values in one source the last
//! one applies on the command line, the first one in the configuration file.

use std::collections::BTreeMap;

use anyhow::anyhow;

use super::grammar::{Value, Values, since_negation};
use super::numbers::{amount, port};
use super::options;

/// Settings of all sources.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) command_line: Values,
    /// Values of `settings.json`.
    pub(crate) stored: Values,
    /// Values of the configuration file by section; the empty name is for lines outside of sections.
    pub(crate) file: BTreeMap<String, Values>,
    /// Values implied by other options; ignored for options that are set.
    implied: BTreeMap<String, Value>,
    /// The active section: Core's name of the chain; empty until the chain is known.
    pub(crate) section: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    CommandLine,
    Stored,
    Section,
    NoSection,
}

impl Place {
    fn is_file(self) -> bool {
        matches!(self, Self::Section | Self::NoSection)
    }
}

impl Settings {
    pub(crate) fn new(command_line: Values) -> Self {
        Self { command_line, ..Self::default() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.implied.get(name) {
            return Some(value.clone());
        }
        for (place, values) in self.places(name) {
            let is_negated = values.last() == Some(&Value::No);
            // A negation outside of sections applies to every chain.
            if place == Place::NoSection && self.is_only_for_sections(name) && !is_negated {
                continue;
            }
            if is_negated {
                return Some(Value::No);
            }
            let given = since_negation(values);
            let value = if place.is_file() { given.first() } else { given.last() };
            if let Some(value) = value {
                return Some(value.clone());
            }
        }
        None
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|value| value.text().to_owned())
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value.flag())
    }
    pub(crate) fn port(&self, name: &str) -> anyhow::Result<Option<u16>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = port(&text);
        number.map(Some).ok_or_else(|| anyhow!("Invalid port specified in -{name}: '{text}'"))
    }

    /// An option that is a fee rate, in satoshi per 1,000 virtual bytes.
    pub(crate) fn fee_rate(&self, name: &str) -> anyhow::Result<Option<u64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let rate = amount(&text);
        rate.map(Some).ok_or_else(|| anyhow!("Invalid amount for -{name}=<amount>: '{text}'"))
    }

    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        self.get(name).map(|value| value.int())
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn is_negated(&self, name: &str) -> bool {
        self.get(name) == Some(Value::No)
    }

    /// All values of an option that may be repeated.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        if let Some(value) = self.implied.get(name) {
            return vec![value.text().to_owned()];
        }
        let mut list = Vec::new();
        let (mut is_done, mut is_taken_back) = (false, false);
        for (place, values) in self.places(name) {
            if place == Place::NoSection && self.is_only_for_sections(name) {
                continue;
            }
            // Core restores the values of the file if other values follow a negation.
            if !is_done || (place.is_file() && !is_taken_back) {
                list.extend(since_negation(values).iter().map(|value| value.text().to_owned()));
            }
            is_done |= values.contains(&Value::No);
            is_taken_back |= values.last() == Some(&Value::No) && list.is_empty();
        }
        list
    }

    /// True if a chain flag is on. Chain flags are read without a section, the last value applies
    /// in every source, and negations on the command line are ignored.
    pub(crate) fn chain_flag(&self, name: &str) -> bool {
        let places = self.places_of("", name);
        let values = places.into_iter().map(|(_, values)| since_negation(values));
        let mut last = values.filter_map(<[Value]>::last);
        last.next().is_some_and(Value::flag)
    }

    /// Sets an option that has no value; returns true if it did.
    pub(crate) fn imply(&mut self, name: &str, value: bool) -> bool {
        let is_free = !self.is_set(name);
        if is_free {
            let value = Value::Text(String::from(if value { "1" } else { "0" }));
            self.implied.insert(name.to_owned(), value);
        }
        is_free
    }

    /// Options outside of sections that apply to the main chain only and are set nowhere else, if another chain is selected.
    pub(crate) fn misplaced(&self) -> Vec<&'static str> {
        if self.section.is_empty() || self.section == MAIN {
            return Vec::new();
        }
        let network_only = options::OPTIONS.iter().filter(|option| option.is_network_only);
        let misplaced = network_only.map(|option| option.name).filter(|name| {
            let mut given = self.places(name);
            given.retain(|(_, values)| values.last() != Some(&Value::No));
            !given.is_empty() && given.iter().all(|(place, _)| *place == Place::NoSection)
        });
        misplaced.collect()
    }

    /// Names of all options with an effective value.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let all = options::OPTIONS.iter().map(|option| option.name);
        all.filter(|name| self.is_set(name)).collect()
    }

    fn is_only_for_sections(&self, name: &str) -> bool {
        self.section != MAIN && options::find(name).is_some_and(|option| option.is_network_only)
    }

    /// The sources that set an option, highest precedence first.
    fn places<'a>(&'a self, name: &str) -> Vec<(Place, &'a [Value])> {
        debug_assert!(options::find(name).is_some(), "-{name} is not in the table");
        self.places_of(&self.section, name)
    }

    fn places_of<'a>(&'a self, section: &str, name: &str) -> Vec<(Place, &'a [Value])> {
        let section = self.file.get(section).filter(|_| !section.is_empty());
        let all = [
            (Place::CommandLine, Some(&self.command_line)),
            (Place::Stored, Some(&self.stored)),
            (Place::Section, section),
            (Place::NoSection, self.file.get("")),
        ];
        let values = |values: Option<&'a Values>| values?.get(name).map(Vec::as_slice);
        let found = all.into_iter().filter_map(|(place, map)| Some((place, values(map)?)));
        found.filter(|(_, values)| !values.is_empty()).collect()
    }
}

/// Core's name of the main chain.
pub(crate) const MAIN: &str = "main";

#[cfg(test)]
pub(crate) mod tests {
    use super::super::grammar::CommandLine;
    use super::super::notes::Notes;
    use super::*;

    /// Settings of a command line and of the text of a file, on regtest.
    pub(crate) fn settings(arguments: &[&str], file: &str) -> Settings {
        let mut notes = Notes::default();
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        let line = CommandLine::parse(&arguments, &mut notes).unwrap();
        let mut settings = Settings::new(line.values);
        let file = super::super::file::ConfFile::parse(file.as_bytes()).unwrap();
        file.add_to(&mut settings.file, &mut notes).unwrap();
        settings.section = "regtest".to_owned();
        settings
    }

    #[test]
    fn the_command_line_goes_first_and_later_values_win() {
        let given = settings(&["-par=1", "-par=2"], "par=3\n[regtest]\npar=4\npar=5\n");
        assert_eq!(given.int("par"), Some(2));
        let given = settings(&[], "par=3\n[regtest]\npar=4\npar=5\n");
        assert_eq!(given.int("par"), Some(4), "the first of a section");
        assert_eq!(settings(&[], "par=3\npar=4").int("par"), Some(3));
        assert_eq!(settings(&[], "").int("par"), None);
        assert_eq!(settings(&["-par"], "").int("par"), Some(0));
    }

    #[test]
    fn negations_cancel_earlier_values() {
        assert_eq!(settings(&["-par=1", "-nopar"], "par=3").get("par"), Some(Value::No));
        assert_eq!(settings(&["-nopar", "-par=1"], "").int("par"), Some(1));
        assert_eq!(settings(&[], "par=3\n[regtest]\nnopar=1").int("par"), Some(0));
        assert_eq!(settings(&["-nolisten=0"], "").flag("listen"), Some(true));
    }

    #[test]
    fn lists_are_collected_until_a_negation() {
        let list = |arguments: &[&str], file| settings(arguments, file).list("uacomment").join(",");
        let file = "uacomment=c\n[regtest]\nuacomment=d\n";
        assert_eq!(list(&["-uacomment=a", "-uacomment=b"], file), "a,b,d,c");
        assert_eq!(list(&["-uacomment=a", "-nouacomment"], file), "");
        assert_eq!(list(&["-nouacomment", "-uacomment=b"], file), "b,d,c");
        assert_eq!(list(&[], "uacomment=c\n[regtest]\nnouacomment=1\n"), "");
        assert_eq!(list(&[], "[main]\nuacomment=c\n"), "");
    }

    #[test]
    fn options_of_a_network_need_its_section() {
        let given = settings(&[], "port=5\nconnect=a");
        assert_eq!((given.int("port"), given.list("connect").len()), (None, 0));
        assert_eq!(given.misplaced(), ["connect", "port"]);
        assert_eq!(settings(&["-port=1", "-noconnect"], "port=5").misplaced(), [""; 0]);
        let given = settings(&[], "noconnect=1\n[regtest]\nport=6");
        assert!(given.is_negated("connect"), "a negation counts everywhere");
        assert_eq!((given.int("port"), given.misplaced().len()), (Some(6), 0));
        let mut given = settings(&[], "port=5\n[main]\nport=6");
        given.section = MAIN.to_owned();
        assert_eq!((given.int("port"), given.misplaced().len()), (Some(6), 0));
        assert_eq!(settings(&[], "regtest.port=7").int("port"), Some(7));
    }

    #[test]
    fn switches_of_the_chain() {
        assert!(settings(&["-regtest"], "").chain_flag("regtest"));
        assert!(settings(&["-noregtest"], "regtest=1").chain_flag("regtest"), "as with Core");
        assert!(!settings(&["-regtest=0"], "regtest=1").chain_flag("regtest"));
        assert!(!settings(&[], "[regtest]\nregtest=1").chain_flag("regtest"));
        assert!(!settings(&[], "regtest=1\nregtest=0").chain_flag("regtest"), "the last one");
    }

    #[test]
    fn implied_values_do_not_override_set_ones() {
        let mut given = settings(&["-listen=1"], "");
        assert!(!given.imply("listen", false) && given.flag("listen") == Some(true));
        assert!(given.imply("dnsseed", false) && given.flag("dnsseed") == Some(false));
        assert!(!given.imply("dnsseed", true));
    }
}
