//! Reads the configuration of a node in Core's order (`common/init.cpp`, `common/config.cpp`): the
//! command line, the configuration file with its includes, and `settings.json`.

use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

use anyhow::{anyhow, bail};
use assay_engine::ChainParams;

use super::chain;
use super::file::ConfFile;
use super::grammar::{CommandLine, Value, Values, since_negation};
use super::notes::Notes;
use super::options;
use super::settings::Settings;
use super::stored::StoredSettings;

/// Configuration of a node from all sources.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) settings: Settings,
    pub(crate) params: Arc<ChainParams>,
    pub(crate) datadir: PathBuf,
}

/// Section name, file and line number of each section.
type Sections = Vec<(String, String, usize)>;

impl Loaded {
    /// Reads all files that the command line leads to, and creates the folder of the chain.
    pub(crate) fn new(line: CommandLine, notes: &mut Notes) -> anyhow::Result<Self> {
        let mut settings = Settings::new(line.values);
        let first_dir = datadir(&settings)?;
        if let Some(name) = missing_datadir(&settings, &first_dir) {
            bail!("Specified data directory \"{name}\" does not exist.");
        }
        let conf_path = conf_path(&settings, &first_dir);
        let mut sections = Sections::new();
        read_files(&mut settings, conf_path.as_deref(), &mut sections, notes)?;
        let datadir = datadir(&settings)?;
        if let Some(name) = missing_datadir(&settings, &datadir) {
            bail!(
                "Error reading configuration file: specified data directory \"{name}\" does not exist."
            );
        }
        let params = Arc::new(chain::params(&mut settings)?);
        let chain_dir = datadir.join(params.datadir_subfolder);
        make_chain_dir(&chain_dir)
            .map_err(|error| anyhow!("cannot make the folder {}: {error}", chain_dir.display()))?;
        reject_ignored_file(&settings, &datadir, &first_dir, conf_path.as_deref(), notes)?;
        let stored = read_stored(&mut settings, &chain_dir, notes)?;
        if let Some(stray) = line.stray {
            bail!(
                "Command line contains unexpected token '{stray}', see bitcoind -h for a list of options."
            );
        }
        describe(&settings, conf_path.as_deref(), &chain_dir, &stored, notes);
        warn_of_sections(&sections, notes);
        Ok(Self { settings, params, datadir })
    }
}

/// Settings, chain and data directory for a client of a running node. The chains of BCH, which Core
/// does not know, have no configuration file; only the command line can select them.
pub(super) fn read_for_client(
    line: CommandLine,
    notes: &mut Notes,
) -> anyhow::Result<(Settings, ChainParams, PathBuf)> {
    let mut settings = Settings::new(line.values);
    let first_dir = datadir(&settings)?;
    let named = settings.text("chain").and_then(|name| ChainParams::by_name(&name));
    if let Some(params) = named.filter(|params| !chain::is_known_to_core(params)) {
        return Ok((settings, params, first_dir));
    }
    let conf_path = conf_path(&settings, &first_dir);
    read_files(&mut settings, conf_path.as_deref(), &mut Sections::new(), notes)?;
    let params = chain::known(&chain::name(&settings)?)?;
    params.name.clone_into(&mut settings.section);
    let datadir = datadir(&settings)?;
    Ok((settings, params, datadir))
}

/// The value of `-datadir`.
fn given_datadir(settings: &Settings) -> Option<String> {
    settings.text("datadir").filter(|dir| !dir.is_empty())
}

/// The value of `-datadir` if that folder does not exist.
fn missing_datadir(settings: &Settings, dir: &Path) -> Option<String> {
    given_datadir(settings).filter(|_| !dir.is_dir())
}

/// The data directory from the settings read so far.
fn datadir(settings: &Settings) -> anyhow::Result<PathBuf> {
    let path = given_datadir(settings).map_or_else(default_datadir, PathBuf::from);
    absolute(&path).map_err(|error| anyhow!("cannot find the folder {}: {error}", path.display()))
}

fn default_datadir() -> PathBuf {
    let home = env::var_os("HOME").filter(|home| !home.is_empty());
    Path::new(home.as_deref().unwrap_or("/".as_ref())).join(".bitcoin")
}

/// Creates the folder of the chain and its `wallets` folder. Core creates both even without wallets, and scripts rely on it.
fn make_chain_dir(dir: &Path) -> io::Result<()> {
    if dir.exists() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(dir.join("wallets"))
}

/// Path of the configuration file; `None` with `-noconf`.
fn conf_path(settings: &Settings, datadir: &Path) -> Option<PathBuf> {
    if settings.is_negated("conf") {
        return None;
    }
    let given = settings.text("conf").filter(|path| !path.is_empty());
    Some(datadir.join(given.as_deref().unwrap_or(CONF_FILE)))
}

fn read_files(
    settings: &mut Settings,
    path: Option<&Path>,
    sections: &mut Sections,
    notes: &mut Notes,
) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let failed = |error| anyhow!("Error reading configuration file: {error}");
    let shown = path.display().to_string();
    if path.is_dir() {
        bail!("Error reading configuration file: Config file \"{shown}\" is a directory.");
    }
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound && !settings.is_set("conf") => {
            return Ok(());
        }
        Err(_) => bail!(
            "Error reading configuration file: specified config file \"{shown}\" could not be opened."
        ),
    };
    read_file(&bytes, &shown, settings, sections, notes).map_err(failed)?;
    if settings.command_line.contains_key("includeconf") {
        return Ok(());
    }
    let chain = chain::name(settings)?;
    let names = [chain.as_str(), ""];
    let before = names.map(|section| included(settings, section).len());
    let files: Vec<String> = names.iter().flat_map(|section| included(settings, section)).collect();
    for file in files {
        include(&file, settings, sections, notes).map_err(failed)?;
    }
    warn_of_nested(settings, names, before, notes)
}

/// Warns of includes in an included file, which are ignored: includes do not nest.
fn warn_of_nested(
    settings: &Settings,
    names: [&str; 2],
    before: [usize; 2],
    notes: &mut Notes,
) -> anyhow::Result<()> {
    let mut nested = Vec::new();
    for (section, before) in names.into_iter().zip(before) {
        nested.extend(included(settings, section).into_iter().skip(before));
    }
    let chain = chain::name(settings)?;
    if chain != names[0] {
        nested.extend(included(settings, &chain));
    }
    for file in nested {
        notes.print(format!(
            "warning: -includeconf cannot be used from included files; ignoring -includeconf={file}"
        ));
    }
    Ok(())
}

fn included(settings: &Settings, section: &str) -> Vec<String> {
    let values = settings.file.get(section).and_then(|values| values.get("includeconf"));
    let values = values.map_or(&[][..], |values| since_negation(values));
    values.iter().map(|value| value.text().to_owned()).collect()
}

fn include(
    name: &str,
    settings: &mut Settings,
    sections: &mut Sections,
    notes: &mut Notes,
) -> anyhow::Result<()> {
    let path = datadir(settings)?.join(name);
    if path.is_dir() {
        bail!("Included config file \"{}\" is a directory.", path.display());
    }
    let Ok(bytes) = fs::read(&path) else { bail!("Failed to include configuration file {name}") };
    read_file(&bytes, name, settings, sections, notes)?;
    notes.info(format!("Included configuration file {name}"));
    Ok(())
}

fn read_file(
    bytes: &[u8],
    shown: &str,
    settings: &mut Settings,
    sections: &mut Sections,
    notes: &mut Notes,
) -> anyhow::Result<()> {
    let file = ConfFile::parse(bytes)?;
    let found = file.sections.iter();
    sections.extend(found.map(|(name, line)| (name.clone(), shown.to_owned(), *line)));
    file.add_to(&mut settings.file, notes)
}

/// Rejects an unused configuration file in the data directory, which is most likely a mistake.
fn reject_ignored_file(
    settings: &Settings,
    datadir: &Path,
    first_dir: &Path,
    used: Option<&Path>,
    notes: &mut Notes,
) -> anyhow::Result<()> {
    let own = datadir.join(CONF_FILE);
    if !own.exists() {
        return Ok(());
    }
    let dir = datadir.display();
    let Some(used) = used else {
        notes.info(format!(
            "Data directory \"{dir}\" contains a \"{CONF_FILE}\" file which is explicitly ignored using -noconf."
        ));
        return Ok(());
    };
    let canonical = |path: &Path| fs::canonicalize(path).ok();
    if canonical(used) == canonical(&own) {
        return Ok(());
    }
    let source = match settings.text("conf").filter(|path| !path.is_empty()) {
        Some(path) => format!("command line argument \"-conf={path}\""),
        None => format!("data directory \"{}\"", first_dir.display()),
    };
    let text = format!(
        "Data directory \"{dir}\" contains a \"{CONF_FILE}\" file which is ignored, because a different configuration file \
         \"{}\" from {source} is being used instead. Possible ways to address this would be to:\n\
         - Delete or rename the \"{CONF_FILE}\" file in data directory \"{dir}\".\n\
         - Change datadir= or conf= options to specify one configuration file, not two, and use includeconf= to include any \
         other configuration files.",
        used.display()
    );
    if settings.flag("allowignoredconf") != Some(true) {
        bail!(
            "{text}\n- Set allowignoredconf=1 option to treat this condition as a warning, not an error."
        );
    }
    notes.warn(text);
    Ok(())
}

fn read_stored(
    settings: &mut Settings,
    chain_dir: &Path,
    notes: &mut Notes,
) -> anyhow::Result<StoredSettings> {
    if settings.is_negated("settings") {
        return Ok(StoredSettings::default());
    }
    let given = settings.text("settings").filter(|path| !path.is_empty());
    let path = chain_dir.join(given.as_deref().unwrap_or(SETTINGS_FILE));
    let stored = StoredSettings::read(&path)
        .map_err(|error| anyhow!("Settings file could not be read:\n- {error}"))?;
    settings.stored = stored.values(notes);
    stored
        .write(&path)
        .map_err(|error| anyhow!("Settings file could not be written:\n- {error}"))?;
    Ok(stored)
}

/// Log lines about the sources of the settings (Core `init/common.cpp`, `StartLogging`; `ArgsManager::LogArgs`).
fn describe(
    settings: &Settings,
    conf_path: Option<&Path>,
    chain_dir: &Path,
    stored: &StoredSettings,
    notes: &mut Notes,
) {
    notes.info(format!("Default data directory {}", default_datadir().display()));
    notes.info(format!("Using data directory {}", chain_dir.display()));
    notes.info(match conf_path {
        None => "Config file: <disabled>".to_owned(),
        Some(path) if path.exists() => format!("Config file: {}", path.display()),
        Some(path) => format!("Config file: {} (not found, skipping)", path.display()),
    });
    let mut list = |prefix: &str, section: &str, values: &Values| {
        let section = if section.is_empty() { String::new() } else { format!("[{section}] ") };
        for (name, values) in values {
            let is_secret = options::find(name).is_some_and(|option| option.is_secret);
            let shown = |value: &Value| {
                if is_secret { "****".to_owned() } else { value.to_json().to_string() }
            };
            for value in values {
                notes.info(format!("{prefix} {section}{name}={}", shown(value)));
            }
        }
    };
    for (section, values) in &settings.file {
        list("Config file arg:", section, values);
    }
    list("Command-line arg:", "", &settings.command_line);
    stored.describe(notes);
}

fn warn_of_sections(sections: &Sections, notes: &mut Notes) {
    let unknown = sections.iter().filter(|(name, ..)| !chain::NAMES.contains(&name.as_str()));
    let lines: Vec<String> = unknown
        .map(|(name, file, line)| format!("{file}:{line} Section [{name}] is not recognized."))
        .collect();
    if !lines.is_empty() {
        notes.warn_aloud(lines.join("\n"));
    }
}

/// Core's `BITCOIN_CONF_FILENAME`.
const CONF_FILE: &str = "bitcoin.conf";
/// Core's `BITCOIN_SETTINGS_FILENAME`.
const SETTINGS_FILE: &str = "settings.json";
