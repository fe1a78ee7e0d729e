//! Options of the log (Core `init/common.cpp`).

use anyhow::bail;
use assay_node::{LOG_ALL as ALL, LOG_CATEGORIES as CATEGORIES, LogConfig, LogLevel};

use super::notes::Notes;
use super::settings::Settings;

pub(crate) fn config(settings: &Settings, notes: &mut Notes) -> anyhow::Result<LogConfig> {
    let mut config = LogConfig {
        file: !settings.is_negated("debuglogfile"),
        path: settings
            .text("debuglogfile")
            .filter(|path| !path.is_empty() && !settings.is_negated("debuglogfile"))
            .map(Into::into),
        stdout: settings.flag("printtoconsole").unwrap_or(true),
        limits_rate: settings.flag("logratelimit").unwrap_or(true),
        shrinks: settings.flag("shrinkdebugfile"),
        ..LogConfig::default()
    };
    let shown = categories(settings, "debug")?;
    config.excluded = categories(settings, "debugexclude")?;
    let level = level(settings, notes)?;
    if !shown.is_empty() {
        config.level = level;
        let is_all = shown.iter().any(|name| ALL.contains(&name.as_str()));
        config.categories = (!is_all).then_some(shown);
    }
    Ok(config)
}

fn categories(settings: &Settings, option: &str) -> anyhow::Result<Vec<String>> {
    let mut names = settings.list(option);
    // `0` or `none` cancels everything before it.
    let last_off = names.iter().rposition(|name| name == "0" || name == "none");
    names.drain(..last_off.map_or(0, |index| index + 1));
    let is_known = |name: &str| CATEGORIES.contains(&name) || ALL.contains(&name);
    match names.iter().find(|name| !is_known(name)) {
        Some(name) => bail!("Unsupported logging category -{option}={name}."),
        None => Ok(names),
    }
}

fn level(settings: &Settings, notes: &mut Notes) -> anyhow::Result<LogLevel> {
    let mut level = LogLevel::DEBUG;
    for text in settings.list("loglevel") {
        let Some((category, named)) = text.split_once(':') else {
            let Some(found) = level_of(&text) else {
                bail!(
                    "Unsupported global logging level -loglevel={text}. Valid values: info, debug, trace."
                );
            };
            level = found;
            continue;
        };
        if level_of(named).is_none() || !CATEGORIES.contains(&category) {
            bail!(
                "Unsupported category-specific logging level -loglevel={text}. Expected -loglevel=<category>:<loglevel>. Valid \
                 categories: {}. Valid loglevels: info, debug, trace.",
                CATEGORIES.join(", ")
            );
        }
        notes.warn(format!(
            "-loglevel={text} has no effect: there is one level for all categories."
        ));
    }
    Ok(level)
}

fn level_of(name: &str) -> Option<LogLevel> {
    Some(match name {
        "info" => LogLevel::INFO,
        "debug" => LogLevel::DEBUG,
        "trace" => LogLevel::TRACE,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::settings::tests::settings;
    use super::*;

    fn config_of(arguments: &[&str]) -> Result<LogConfig, String> {
        let mut notes = Notes::default();
        let settings = settings(arguments, "");
        config(&settings, &mut notes).map_err(|error| error.to_string())
    }

    #[test]
    fn categories_and_levels() {
        let plain = config_of(&[]).unwrap();
        assert_eq!((plain.level, plain.stdout, plain.file), (LogLevel::INFO, true, true));
        let all = config_of(&["-debug", "-loglevel=trace", "-debugexclude=leveldb"]).unwrap();
        assert_eq!((all.level, all.categories), (LogLevel::TRACE, None));
        assert_eq!(all.excluded, ["leveldb"]);
        let some = config_of(&["-debug=rpc", "-debug=none", "-debug=net"]).unwrap();
        assert_eq!(some.categories.as_deref(), Some(&["net".to_owned()][..]));
        assert_eq!(config_of(&["-debug=0"]).unwrap().level, LogLevel::INFO);
        assert_eq!(config_of(&["-nodebug"]).unwrap().level, LogLevel::INFO);
        assert!(!config_of(&["-nodebuglogfile"]).unwrap().file);
        assert_eq!((plain.limits_rate, plain.shrinks), (true, None));
        let other = config_of(&["-nologratelimit", "-shrinkdebugfile"]).unwrap();
        assert_eq!((other.limits_rate, other.shrinks), (false, Some(true)));
    }

    #[test]
    fn errors_are_those_of_core() {
        let error = config_of(&["-debug=abc"]).unwrap_err();
        assert_eq!(error, "Unsupported logging category -debug=abc.");
        let error = config_of(&["-loglevel=abc"]).unwrap_err();
        assert!(error.starts_with("Unsupported global logging level -loglevel=abc."), "{error}");
        let error = config_of(&["-loglevel=net:abc"]).unwrap_err();
        assert!(error.starts_with("Unsupported category-specific"), "{error}");
    }
}
