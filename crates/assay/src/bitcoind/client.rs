//! Configuration of an RPC client, read as `bitcoin-cli` does (Core `rpc/request.cpp`, `bitcoin-cli.cpp`).

use std::path::{Path, PathBuf};

use assay_engine::{ChainParams, unknown_chain};

use super::grammar::CommandLine;
use super::notes::Notes;
use super::{chain, config};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientSettings {
    /// Name of the chain, as [`ChainParams::name`].
    pub(crate) chain: &'static str,
    pub(crate) rpc_port: u16,
    /// User and password, if configured.
    pub(crate) password: Option<(String, String)>,
    pub(crate) cookie: PathBuf,
}

impl ClientSettings {
    /// Reads `bitcoin.conf` in a data directory, if there is one, without writing anything. `chain`
    /// overrides the chain of the file; without it the file selects the chain, as for the node.
    pub(crate) fn read(chain: Option<&str>, datadir: Option<&Path>) -> anyhow::Result<Self> {
        let mut notes = Notes::default();
        let mut arguments = Vec::new();
        if let Some(name) = chain {
            let params = ChainParams::by_name(name)
                .ok_or_else(|| anyhow::Error::msg(unknown_chain(name)))?;
            // The command line has precedence over the file.
            arguments.extend(chain::SWITCHES.map(|switch| format!("-{switch}=0")));
            arguments.push(format!("-chain={}", params.name));
        }
        arguments.extend(datadir.map(|dir| format!("-datadir={}", dir.display())));
        let line = CommandLine::parse(&arguments, &mut notes).map_err(anyhow::Error::msg)?;
        let (settings, params, datadir) = config::read_for_client(line, &mut notes)?;
        let chain_dir = datadir.join(params.datadir_subfolder);
        let port = settings.int("rpcport").and_then(|port| u16::try_from(port).ok());
        let password = settings.text("rpcpassword").filter(|text| !text.is_empty());
        let cookie = settings.text("rpccookiefile").filter(|path| !path.is_empty());
        Ok(Self {
            chain: params.name,
            rpc_port: port.unwrap_or(params.rpc_port),
            password: password.map(|text| (settings.text("rpcuser").unwrap_or_default(), text)),
            cookie: chain_dir.join(cookie.as_deref().unwrap_or(".cookie")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chain: Option<&str>, text: Option<&str>) -> (anyhow::Result<ClientSettings>, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        if let Some(text) = text {
            std::fs::write(dir.path().join("bitcoin.conf"), text).unwrap();
        }
        (ClientSettings::read(chain, Some(dir.path())), dir.path().to_owned())
    }

    #[test]
    fn a_cookie_is_the_default() {
        for (given, chain, port, file) in [
            (None, "main", 8332, ".cookie"),
            (Some("main"), "main", 8332, ".cookie"),
            (Some("regtest"), "regtest", 18443, "regtest/.cookie"),
            (Some("testnet3"), "test", 18332, "testnet3/.cookie"),
        ] {
            let (settings, dir) = read(given, None);
            let cookie = dir.join(file);
            let expected = ClientSettings { chain, rpc_port: port, password: None, cookie };
            assert_eq!(settings.unwrap(), expected);
            assert!(!dir.exists(), "it is only read");
        }
    }

    #[test]
    fn the_section_of_the_chain_counts() {
        let text = "rpcuser=u\nrpcpassword=p\n[regtest]\nrpcport=1234\n[main]\nrpcport=99\n";
        let settings = read(Some("regtest"), Some(text)).0.unwrap();
        assert_eq!(settings.rpc_port, 1234);
        assert_eq!(settings.password, Some(("u".to_owned(), "p".to_owned())));
    }

    #[test]
    fn the_file_names_the_chain_and_an_argument_goes_before_it() {
        let sections = "[regtest]\nrpcport=1\n[signet]\nrpcport=2\n[main]\nrpcport=3\n";
        for named in ["regtest=1", "chain=regtest"] {
            let text = format!("{named}\n{sections}");
            for (given, chain, port) in [
                (None, "regtest", 1),
                (Some("regtest"), "regtest", 1),
                (Some("signet"), "signet", 2),
                (Some("main"), "main", 3),
            ] {
                let settings = read(given, Some(&text)).0.unwrap();
                assert_eq!((settings.chain, settings.rpc_port), (chain, port), "{named} {given:?}");
            }
            // A chain that Core does not know has no configuration file.
            let settings = read(Some("bch-regtest"), Some(&text)).0.unwrap();
            assert_eq!(settings.chain, "bch-regtest");
        }
        let error = read(None, Some("regtest=1\nsignet=1\n")).0.unwrap_err().to_string();
        assert!(error.starts_with("Invalid combination of -regtest"), "{error}");
        let error = read(None, Some("chain=x\n")).0.unwrap_err().to_string();
        assert_eq!(error, "Unknown chain x.");
        let error = read(Some("x"), None).0.unwrap_err().to_string();
        assert!(error.contains("known are"), "{error}");
    }
}
