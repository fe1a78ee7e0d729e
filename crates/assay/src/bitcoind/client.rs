//! What a client of a running node reads of its configuration, as bitcoin-cli does (Core `rpc/request.cpp`, `bitcoin-cli.cpp`).

use std::path::{Path, PathBuf};

use assay_engine::ChainParams;

use super::config;
use super::grammar::CommandLine;
use super::notes::Notes;

/// Where a node is asked, and with what credentials.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientSettings {
    /// Port of JSON-RPC on this machine.
    pub(crate) rpc_port: u16,
    /// User and password, where the configuration has them.
    pub(crate) password: Option<(String, String)>,
    /// The file with the cookie.
    pub(crate) cookie: PathBuf,
}

impl ClientSettings {
    /// Reads bitcoin.conf in a data directory, where there is one; nothing is made or changed.
    ///
    /// # Errors
    /// In Core's words.
    pub(crate) fn read(params: &ChainParams, datadir: Option<&Path>) -> anyhow::Result<Self> {
        let mut notes = Notes::default();
        let mut arguments = vec![format!("-chain={}", params.name)];
        arguments.extend(datadir.map(|dir| format!("-datadir={}", dir.display())));
        let line = CommandLine::parse(&arguments, &mut notes).map_err(anyhow::Error::msg)?;
        let (settings, datadir) = config::read_for_client(line, params, &mut notes)?;
        let chain_dir = datadir.join(params.datadir_subfolder);
        let port = settings.int("rpcport").and_then(|port| u16::try_from(port).ok());
        let password = settings.text("rpcpassword").filter(|text| !text.is_empty());
        let cookie = settings.text("rpccookiefile").filter(|path| !path.is_empty());
        Ok(Self {
            rpc_port: port.unwrap_or(params.rpc_port),
            password: password.map(|text| (settings.text("rpcuser").unwrap_or_default(), text)),
            cookie: chain_dir.join(cookie.as_deref().unwrap_or(".cookie")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chain: &str, text: Option<&str>) -> (ClientSettings, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        if let Some(text) = text {
            std::fs::write(dir.path().join("bitcoin.conf"), text).unwrap();
        }
        let params = ChainParams::by_name(chain).unwrap();
        let settings = ClientSettings::read(&params, Some(dir.path())).unwrap();
        (settings, dir.path().to_owned())
    }

    #[test]
    fn a_cookie_is_the_default() {
        for (chain, port, file) in
            [("main", 8332, ".cookie"), ("regtest", 18443, "regtest/.cookie")]
        {
            let (settings, dir) = read(chain, None);
            let cookie = dir.join(file);
            assert_eq!(settings, ClientSettings { rpc_port: port, password: None, cookie });
            assert!(!dir.exists(), "it is only read");
        }
    }

    #[test]
    fn the_section_of_the_chain_counts() {
        let text = "rpcuser=u\nrpcpassword=p\n[regtest]\nrpcport=1234\n[main]\nrpcport=99\n";
        let (settings, _) = read("regtest", Some(text));
        assert_eq!(settings.rpc_port, 1234);
        assert_eq!(settings.password, Some(("u".to_owned(), "p".to_owned())));
    }
}
