//! Table of RPC methods.

use std::fmt::Write as _;

use super::Job;
use super::method::{HIDDEN, Kind, Method, Need, optional};
use super::{
    activity, addresses, bans, blocks, branches, chain, coins, combine, control, deployments,
    describe, dump, fees, fetch, filters, generate, index, load, logging, mempool, mempool_file,
    messages, mining, network, orphans, packages, peers, proof, prune, psbt, raw, relatives, scan,
    scan_blocks, sign_raw, statistics, submit, template, testing, traffic, transactions, zmq,
};
use crate::jsonrpc::Json;

const HELP: Method = Method {
    name: "help",
    category: "control",
    about: "Lists all methods, or explains one.",
    args: &[optional(
        "command",
        Kind::Text,
        Need::Default("all commands"),
        "The method to explain",
    )],
    result: "\"str\"    (string) The text",
    example: "\"getblock\"",
    prepare: |_, args| {
        let command = args.optional_string(0)?.map(std::borrow::Cow::into_owned);
        Ok(Job::call(args, move |_, out| {
            let text = match command.as_deref() {
                None | Some("") => overview(),
                Some(name) => {
                    explain(name).unwrap_or_else(|| format!("help: unknown command: {name}"))
                }
            };
            Json::new(out).string(&text);
            Ok(())
        }))
    },
};

pub(crate) fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().copied().find(|method| method.name == name)
}

/// One line per method, by category, without hidden ones.
pub(crate) fn overview() -> String {
    let mut methods = METHODS.to_vec();
    methods.retain(|method| method.category != HIDDEN);
    methods.sort_by_key(|method| (method.category, method.name));
    let mut text = String::new();
    let mut category = "";
    for method in methods {
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

const METHODS: &[&Method] = &[
    &zmq::GETZMQNOTIFICATIONS,
    &chain::GETBESTBLOCKHASH,
    &chain::GETBLOCKCHAININFO,
    &chain::GETBLOCKCOUNT,
    &chain::GETBLOCKHASH,
    &chain::GETDIFFICULTY,
    &chain::WAITFORBLOCK,
    &chain::WAITFORBLOCKHEIGHT,
    &chain::WAITFORNEWBLOCK,
    &blocks::GETBLOCK,
    &filters::GETBLOCKFILTER,
    &activity::GETDESCRIPTORACTIVITY,
    &fetch::GETBLOCKFROMPEER,
    &blocks::GETBLOCKHEADER,
    &branches::GETCHAINTIPS,
    &branches::INVALIDATEBLOCK,
    &branches::PRECIOUSBLOCK,
    &prune::PRUNEBLOCKCHAIN,
    &branches::RECONSIDERBLOCK,
    &scan_blocks::SCANBLOCKS,
    &scan::SCANTXOUTSET,
    &coins::GETTXOUT,
    &coins::GETTXOUTSETINFO,
    &dump::DUMPTXOUTSET,
    &load::GETCHAINSTATES,
    &load::LOADTXOUTSET,
    &relatives::GETMEMPOOLANCESTORS,
    &relatives::GETMEMPOOLCLUSTER,
    &relatives::GETMEMPOOLDESCENDANTS,
    &relatives::GETMEMPOOLFEERATEDIAGRAM,
    &relatives::GETTXSPENDINGPREVOUT,
    &orphans::GETORPHANTXS,
    &mempool::GETMEMPOOLENTRY,
    &mempool::GETMEMPOOLINFO,
    &mempool::GETRAWMEMPOOL,
    &mempool_file::IMPORTMEMPOOL,
    &mempool_file::SAVEMEMPOOL,
    &index::GETINDEXINFO,
    &testing::ECHO,
    &testing::ECHOJSON,
    &testing::MOCKSCHEDULER,
    &testing::SETMOCKTIME,
    &testing::SYNCWITHVALIDATIONINTERFACEQUEUE,
    &control::GETMEMORYINFO,
    &control::GETRPCINFO,
    &HELP,
    &logging::LOGGING,
    &control::STOP,
    &control::UPTIME,
    &deployments::GETDEPLOYMENTINFO,
    &generate::GENERATE,
    &generate::GENERATEBLOCK,
    &generate::GENERATETOADDRESS,
    &generate::GENERATETODESCRIPTOR,
    &mining::GETMININGINFO,
    &mining::GETNETWORKHASHPS,
    &mining::GETPRIORITISEDTRANSACTIONS,
    &mining::PRIORITISETRANSACTION,
    &template::GETBLOCKTEMPLATE,
    &submit::SUBMITBLOCK,
    &submit::SUBMITHEADER,
    &network::GETCONNECTIONCOUNT,
    &traffic::GETNETTOTALS,
    &network::GETNETWORKINFO,
    &network::GETPEERINFO,
    &addresses::ADDPEERADDRESS,
    &addresses::GETADDRMANINFO,
    &addresses::GETNODEADDRESSES,
    &addresses::GETRAWADDRMAN,
    &bans::CLEARBANNED,
    &bans::LISTBANNED,
    &bans::SETBAN,
    &peers::ADDCONNECTION,
    &peers::SENDMSGTOPEER,
    &peers::ADDNODE,
    &peers::DISCONNECTNODE,
    &peers::GETADDEDNODEINFO,
    &peers::PING,
    &traffic::SETNETWORKACTIVE,
    &proof::GETTXOUTPROOF,
    &proof::VERIFYTXOUTPROOF,
    &statistics::GETBLOCKSTATS,
    &statistics::GETCHAINTXSTATS,
    &statistics::VERIFYCHAIN,
    &fees::ESTIMATESMARTFEE,
    &describe::CREATEMULTISIG,
    &describe::DECODESCRIPT,
    &describe::DERIVEADDRESSES,
    &describe::GETDESCRIPTORINFO,
    &describe::VALIDATEADDRESS,
    &messages::SIGNMESSAGEWITHPRIVKEY,
    &messages::VERIFYMESSAGE,
    &sign_raw::SIGNRAWTRANSACTIONWITHKEY,
    &combine::COMBINERAWTRANSACTION,
    &psbt::ANALYZEPSBT,
    &psbt::COMBINEPSBT,
    &psbt::CONVERTTOPSBT,
    &psbt::CREATEPSBT,
    &psbt::DECODEPSBT,
    &psbt::DESCRIPTORPROCESSPSBT,
    &psbt::FINALIZEPSBT,
    &psbt::JOINPSBTS,
    &psbt::UTXOUPDATEPSBT,
    &raw::CREATERAWTRANSACTION,
    &raw::DECODERAWTRANSACTION,
    &transactions::GETRAWTRANSACTION,
    &submit::SENDRAWTRANSACTION,
    &packages::SUBMITPACKAGE,
    &packages::TESTMEMPOOLACCEPT,
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
    let mut text = find(name)?.help();
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
    use crate::rpc::method::ArgSpec;

    #[test]
    fn names_are_unique_and_required_arguments_come_first() {
        for (index, method) in METHODS.iter().enumerate() {
            assert!(METHODS[..index].iter().all(|other| other.name != method.name));
            let optional: Vec<bool> = method.args.iter().map(ArgSpec::optional).collect();
            assert!(optional.is_sorted(), "{}", method.name);
        }
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
        let mut ours: Vec<&str> = METHODS.iter().map(|method| method.name).chain(absent).collect();
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
    fn help_texts() {
        insta::assert_snapshot!("help_overview", overview());
        let mut names: Vec<_> = METHODS.iter().map(|method| method.name).collect();
        names.sort_unstable();
        let all: Vec<_> = names.iter().map(|name| explain(name).unwrap()).collect();
        insta::assert_snapshot!("help_methods", all.join("\n\n----\n\n"));
    }
}
