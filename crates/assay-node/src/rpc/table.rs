//! Table of RPC methods.

use std::fmt::Write as _;

use super::method::{self, Call, HIDDEN, Method};
use super::{
    activity, addresses, bans, blocks, branches, chain, coins, combine, control, deployments,
    describe, dump, filters, generate, index, load, mempool, mempool_file, messages, mining,
    network, orphans, packages, peers, proof, prune, psbt, raw, relatives, scan, scan_blocks,
    sign_raw, statistics, submit, template, testing, transactions,
};
use crate::jsonrpc::Json;

const HELP: Call = |_, args, out| {
    let command = args.optional_string(0)?.map(std::borrow::Cow::into_owned);
    let text = match command.as_deref() {
        None | Some("") => overview(),
        Some(name) => explain(name).unwrap_or_else(|| format!("help: unknown command: {name}")),
    };
    Json::new(out).string(&text);
    Ok(())
};

pub(crate) fn find(name: &str) -> Option<(&'static Method, Call)> {
    let (_, call) = CALLS.iter().find(|(known, _)| *known == name)?;
    Some((method::find(name)?, *call))
}

/// One line per method, by category, without hidden ones.
pub(crate) fn overview() -> String {
    let mut text = String::new();
    let mut category = "";
    for method in method::methods().iter().filter(|method| method.category != HIDDEN) {
        if method.category != category {
            let gap = if category.is_empty() { "" } else { "\n" };
            category = method.category;
            let (first, rest) = category.split_at(1);
            writeln!(text, "{gap}== {}{rest} ==", first.to_uppercase())
                .expect("writing to a string does not fail");
        }
        text.push_str(&method.synopsis());
        text.push('\n');
    }
    text.pop();
    text
}

/// The methods of `methods.txt`.
const CALLS: &[(&str, Call)] = &[
    ("dumptxoutset", dump::DUMPTXOUTSET),
    ("getbestblockhash", chain::GETBESTBLOCKHASH),
    ("getblock", blocks::GETBLOCK),
    ("getblockchaininfo", chain::GETBLOCKCHAININFO),
    ("getblockcount", chain::GETBLOCKCOUNT),
    ("getblockfilter", filters::GETBLOCKFILTER),
    ("getblockfrompeer", peers::GETBLOCKFROMPEER),
    ("getblockhash", chain::GETBLOCKHASH),
    ("getblockheader", blocks::GETBLOCKHEADER),
    ("getblockstats", statistics::GETBLOCKSTATS),
    ("getchainstates", load::GETCHAINSTATES),
    ("getchaintips", branches::GETCHAINTIPS),
    ("getchaintxstats", statistics::GETCHAINTXSTATS),
    ("getdeploymentinfo", deployments::GETDEPLOYMENTINFO),
    ("getdescriptoractivity", activity::GETDESCRIPTORACTIVITY),
    ("getdifficulty", chain::GETDIFFICULTY),
    ("getmempoolancestors", relatives::GETMEMPOOLANCESTORS),
    ("getmempoolcluster", relatives::GETMEMPOOLCLUSTER),
    ("getmempooldescendants", relatives::GETMEMPOOLDESCENDANTS),
    ("getmempoolentry", mempool::GETMEMPOOLENTRY),
    ("getmempoolinfo", mempool::GETMEMPOOLINFO),
    ("getrawmempool", mempool::GETRAWMEMPOOL),
    ("gettxout", coins::GETTXOUT),
    ("gettxoutproof", proof::GETTXOUTPROOF),
    ("gettxoutsetinfo", coins::GETTXOUTSETINFO),
    ("gettxspendingprevout", relatives::GETTXSPENDINGPREVOUT),
    ("importmempool", mempool_file::IMPORTMEMPOOL),
    ("invalidateblock", branches::INVALIDATEBLOCK),
    ("loadtxoutset", load::LOADTXOUTSET),
    ("preciousblock", branches::PRECIOUSBLOCK),
    ("pruneblockchain", prune::PRUNEBLOCKCHAIN),
    ("reconsiderblock", branches::RECONSIDERBLOCK),
    ("savemempool", mempool_file::SAVEMEMPOOL),
    ("scanblocks", scan_blocks::SCANBLOCKS),
    ("scantxoutset", scan::SCANTXOUTSET),
    ("verifychain", statistics::VERIFYCHAIN),
    ("verifytxoutproof", proof::VERIFYTXOUTPROOF),
    ("waitforblock", chain::WAITFORBLOCK),
    ("waitforblockheight", chain::WAITFORBLOCKHEIGHT),
    ("waitfornewblock", chain::WAITFORNEWBLOCK),
    ("getmemoryinfo", control::GETMEMORYINFO),
    ("getrpcinfo", control::GETRPCINFO),
    ("help", HELP),
    ("logging", control::LOGGING),
    ("stop", control::STOP),
    ("uptime", control::UPTIME),
    ("getblocktemplate", template::GETBLOCKTEMPLATE),
    ("getmininginfo", mining::GETMININGINFO),
    ("getnetworkhashps", mining::GETNETWORKHASHPS),
    ("getprioritisedtransactions", mining::GETPRIORITISEDTRANSACTIONS),
    ("prioritisetransaction", mining::PRIORITISETRANSACTION),
    ("submitblock", submit::SUBMITBLOCK),
    ("submitheader", submit::SUBMITHEADER),
    ("addnode", peers::ADDNODE),
    ("clearbanned", bans::CLEARBANNED),
    ("disconnectnode", peers::DISCONNECTNODE),
    ("getaddednodeinfo", peers::GETADDEDNODEINFO),
    ("getaddrmaninfo", addresses::GETADDRMANINFO),
    ("getconnectioncount", network::GETCONNECTIONCOUNT),
    ("getnettotals", network::GETNETTOTALS),
    ("getnetworkinfo", network::GETNETWORKINFO),
    ("getnodeaddresses", addresses::GETNODEADDRESSES),
    ("getpeerinfo", network::GETPEERINFO),
    ("listbanned", bans::LISTBANNED),
    ("ping", peers::PING),
    ("setban", bans::SETBAN),
    ("setnetworkactive", network::SETNETWORKACTIVE),
    ("analyzepsbt", psbt::ANALYZEPSBT),
    ("combinepsbt", psbt::COMBINEPSBT),
    ("combinerawtransaction", combine::COMBINERAWTRANSACTION),
    ("converttopsbt", psbt::CONVERTTOPSBT),
    ("createpsbt", psbt::CREATEPSBT),
    ("createrawtransaction", raw::CREATERAWTRANSACTION),
    ("decodepsbt", psbt::DECODEPSBT),
    ("decoderawtransaction", raw::DECODERAWTRANSACTION),
    ("decodescript", describe::DECODESCRIPT),
    ("descriptorprocesspsbt", psbt::DESCRIPTORPROCESSPSBT),
    ("finalizepsbt", psbt::FINALIZEPSBT),
    ("getrawtransaction", transactions::GETRAWTRANSACTION),
    ("joinpsbts", psbt::JOINPSBTS),
    ("sendrawtransaction", submit::SENDRAWTRANSACTION),
    ("signrawtransactionwithkey", sign_raw::SIGNRAWTRANSACTIONWITHKEY),
    ("submitpackage", packages::SUBMITPACKAGE),
    ("testmempoolaccept", packages::TESTMEMPOOLACCEPT),
    ("utxoupdatepsbt", psbt::UTXOUPDATEPSBT),
    ("createmultisig", describe::CREATEMULTISIG),
    ("deriveaddresses", describe::DERIVEADDRESSES),
    ("estimatesmartfee", mining::ESTIMATESMARTFEE),
    ("getdescriptorinfo", describe::GETDESCRIPTORINFO),
    ("getindexinfo", index::GETINDEXINFO),
    ("signmessagewithprivkey", messages::SIGNMESSAGEWITHPRIVKEY),
    ("validateaddress", describe::VALIDATEADDRESS),
    ("verifymessage", messages::VERIFYMESSAGE),
    ("getzmqnotifications", control::GETZMQNOTIFICATIONS),
    ("addconnection", peers::ADDCONNECTION),
    ("addpeeraddress", addresses::ADDPEERADDRESS),
    ("echo", testing::ECHO),
    ("echojson", testing::ECHO),
    ("generate", generate::GENERATE),
    ("generateblock", generate::GENERATEBLOCK),
    ("generatetoaddress", generate::GENERATETOADDRESS),
    ("generatetodescriptor", generate::GENERATETODESCRIPTOR),
    ("getmempoolfeeratediagram", relatives::GETMEMPOOLFEERATEDIAGRAM),
    ("getorphantxs", orphans::GETORPHANTXS),
    ("getrawaddrman", addresses::GETRAWADDRMAN),
    ("mockscheduler", testing::MOCKSCHEDULER),
    ("sendmsgtopeer", peers::SENDMSGTOPEER),
    ("setmocktime", testing::SETMOCKTIME),
    ("syncwithvalidationinterfacequeue", testing::SYNCWITHVALIDATIONINTERFACEQUEUE),
];

/// Methods of Bitcoin Core without a wallet that are absent, with the reason.
pub(crate) const ABSENT: &[(&str, &str)] = &[
    ("abortprivatebroadcast", PRIVATE_BROADCAST),
    ("echoipc", "there is no interprocess communication"),
    ("enumeratesigners", "there is no wallet that signers could sign for"),
    ("estimaterawfee", "fees are not estimated"),
    ("exportasmap", "addresses are not grouped by their networks"),
    ("getopenrpcinfo", "results are described in text alone, by help"),
    ("getprivatebroadcastinfo", PRIVATE_BROADCAST),
    ("rpc.discover", "results are described in text alone, by help"),
];

const PRIVATE_BROADCAST: &str = "transactions cannot be sent over Tor or I2P";

/// Output of `help` for one method; `None` for a name unknown to Bitcoin Core as well.
pub(crate) fn explain(name: &str) -> Option<String> {
    if let Some((name, reason)) = ABSENT.iter().find(|(absent, _)| *absent == name) {
        return Some(format!("{name} is not available: {reason}."));
    }
    let mut text = method::find(name)?.help();
    if name == "help" {
        text.push_str(
            "\n\nMethods of Bitcoin Core that are not available, those of wallets apart:",
        );
        for (name, reason) in ABSENT {
            write!(text, "\n{name}: {reason}").expect("writing to a string does not fail");
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declared_method_can_be_called() {
        let declared: Vec<&str> = method::methods().iter().map(|method| method.name).collect();
        let called: Vec<&str> = CALLS.iter().map(|(name, _)| *name).collect();
        assert_eq!(called, declared);
    }

    /// All methods of Bitcoin Core in August 2026 without wallet methods, including hidden ones.
    const CORE: &str = "\
        abortprivatebroadcast addconnection addnode addpeeraddress analyzepsbt clearbanned combinepsbt \
        combinerawtransaction converttopsbt createmultisig createpsbt createrawtransaction decodepsbt \
        decoderawtransaction decodescript deriveaddresses descriptorprocesspsbt disconnectnode dumptxoutset \
        echo echoipc echojson enumeratesigners estimaterawfee estimatesmartfee exportasmap finalizepsbt \
        generate generateblock generatetoaddress generatetodescriptor getaddednodeinfo getaddrmaninfo \
        getbestblockhash getblock getblockchaininfo getblockcount getblockfilter getblockfrompeer \
        getblockhash getblockheader getblockstats getblocktemplate getchainstates getchaintips \
        getchaintxstats getconnectioncount getdeploymentinfo getdescriptoractivity getdescriptorinfo \
        getdifficulty getindexinfo getmemoryinfo getmempoolancestors getmempoolcluster \
        getmempooldescendants getmempoolentry getmempoolfeeratediagram getmempoolinfo getmininginfo \
        getnettotals getnetworkhashps getnetworkinfo getnodeaddresses getopenrpcinfo getorphantxs \
        getpeerinfo getprioritisedtransactions getprivatebroadcastinfo getrawaddrman getrawmempool \
        getrawtransaction getrpcinfo gettxout gettxoutproof gettxoutsetinfo gettxspendingprevout \
        getzmqnotifications help importmempool invalidateblock joinpsbts listbanned loadtxoutset logging \
        mockscheduler ping preciousblock prioritisetransaction pruneblockchain reconsiderblock rpc.discover \
        savemempool scanblocks scantxoutset sendmsgtopeer sendrawtransaction setban setmocktime \
        setnetworkactive signmessagewithprivkey signrawtransactionwithkey stop submitblock submitheader \
        submitpackage syncwithvalidationinterfacequeue testmempoolaccept uptime utxoupdatepsbt \
        validateaddress verifychain verifymessage verifytxoutproof waitforblock waitforblockheight \
        waitfornewblock";

    #[test]
    fn every_core_method_is_present_or_listed_as_absent() {
        let mut core: Vec<&str> = CORE.split(' ').collect();
        let absent = ABSENT.iter().map(|(name, _)| *name);
        let mut ours: Vec<&str> = CALLS.iter().map(|(name, _)| *name).chain(absent).collect();
        core.sort_unstable();
        ours.sort_unstable();
        assert_eq!(ours, core);
        assert!(explain("help").unwrap().contains("estimaterawfee: "));
        assert_eq!(explain("nosuch"), None);
        let guide = include_str!("../../../../docs/guide/node.md");
        for (name, _) in ABSENT {
            assert!(guide.contains(&format!("`{name}`")), "the guide does not list {name}");
        }
    }

    #[test]
    fn help_lists_methods_by_category() {
        insta::assert_snapshot!("help_overview", overview());
    }
}
