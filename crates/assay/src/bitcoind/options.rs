//! All options of Bitcoin Core's `bitcoind`, and the effect of each here.
//!
//! The list is complete (Core `init.cpp`, `init/common.cpp`, `chainparamsbase.cpp`, `wallet/init.cpp`), so that an
//! existing `bitcoin.conf` loads, and only misspelt names are rejected.

#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "properties, each on its own")]
pub(crate) struct Opt {
    /// Name without the dash.
    pub(crate) name: &'static str,
    /// Argument in the help after the name: `=<n>`, or empty.
    pub(crate) argument: &'static str,
    pub(crate) fate: Fate,
    /// True if outside of sections the option applies to the main chain only.
    pub(crate) is_network_only: bool,
    /// True if `-no…` is an error.
    pub(crate) forbids_negation: bool,
    pub(crate) needs_value: bool,
    /// True if the log masks the value.
    pub(crate) is_secret: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Has the effect that its help describes.
    Works(&'static str),
    /// Accepted and ignored: the node behaves the same without it.
    Dropped,
    /// Any value but the default is an error with this reason: ignoring the option would violate the user's intent.
    Rejected { default: &'static str, reason: &'static str },
}

impl Opt {
    const fn new(name: &'static str, argument: &'static str, fate: Fate) -> Self {
        Self {
            name,
            argument,
            fate,
            is_network_only: false,
            forbids_negation: false,
            needs_value: false,
            is_secret: false,
        }
    }

    const fn network_only(mut self) -> Self {
        self.is_network_only = true;
        self
    }

    const fn forbids_negation(mut self) -> Self {
        self.forbids_negation = true;
        self
    }

    const fn needs_value(mut self) -> Self {
        self.needs_value = true;
        self
    }

    const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }
}

const fn works(name: &'static str, argument: &'static str, help: &'static str) -> Opt {
    Opt::new(name, argument, Fate::Works(help))
}

const fn dropped(name: &'static str) -> Opt {
    Opt::new(name, "", Fate::Dropped)
}

const fn rejected(name: &'static str, reason: &'static str) -> Opt {
    Opt::new(name, "", Fate::Rejected { default: "0", reason })
}

const fn fixed(name: &'static str, default: &'static str, reason: &'static str) -> Opt {
    Opt::new(name, "", Fate::Rejected { default, reason })
}

pub(crate) fn find(name: &str) -> Option<&'static Opt> {
    let found = OPTIONS.binary_search_by(|option| option.name.cmp(name));
    found.ok().map(|index| &OPTIONS[index])
}

/// All options, sorted by name.
pub(crate) const OPTIONS: &[Opt] = &[
    dropped("?"),
    works("acceptnonstdtxn", "", "Relay transactions of any form, on test chains (0)."),
    dropped("acceptstalefeeestimates"),
    works("addnode", "=<ip>", "Stay connected to this peer. May be given several times.").network_only(),
    dropped("addresstype"),
    works("alertnotify", "=<cmd>", "Run this command when there is something to warn of, with the warning for %s."),
    works("allowignoredconf", "", "Warn, rather than stop, when the data directory has a bitcoin.conf that is not used."),
    rejected("asmap", "addresses are not grouped by their networks"),
    works(
        "assumevalid",
        "=<hex>",
        "Hash of a block: scripts of it and of its ancestors are assumed valid; 0 verifies all.",
    ),
    dropped("avoidpartialspends"),
    works("bantime", "=<n>", "Seconds that a ban lasts where setban names no time (86400)."),
    works(
        "bind",
        "=<addr>[:<port>][=onion]",
        "Listen for peers on this address; with =onion behind it, for those that Tor forwards. May be given several times.",
    )
    .network_only(),
    works(
        "blockfilterindex",
        "=<type>",
        "Keep an index of compact block filters, built in the background: basic, or 1 for all kinds there are (0).",
    ),
    works("blockmaxweight", "=<n>", "Weight of a block template (4000000)."),
    works("blockmintxfee", "=<amt>", "Least fee rate in a block template, BTC per 1,000 virtual bytes (0.00000001)."),
    works("blocknotify", "=<cmd>", "Run this command when the best block changes, with its hash for %s."),
    fixed("blockreconstructionextratxn", "100", "how many extra transactions are kept for compact blocks cannot be changed"),
    works("blockreservedweight", "=<n>", "Weight that a template leaves to header and coinbase (8000)."),
    works("blocksdir", "=<dir>", "Folder for block and undo files, in a folder of the chain (the data directory); must exist."),
    works("blocksonly", "", "Take transactions from no peer but those with the permission relay (off)."),
    works(
        "blocksxor",
        "",
        "Obfuscate block and undo files where none are yet; a key that is there counts in any case, and 0 does not go with it (1).",
    ),
    works("blockversion", "=<n>", "Version of block templates, for tests."),
    works("bytespersigop", "=<n>", "Virtual bytes that a signature operation counts for at least (20)."),
    rejected("capturemessages", "messages are not written to files"),
    works("chain", "=<chain>", "The chain: main, test, testnet4, signet or regtest."),
    dropped("changetype"),
    works("checkaddrman", "=<n>", "Check the tables of known addresses once in so many uses (0, never)."),
    dropped("checkblockindex"),
    works("checkblocks", "=<n>", "Blocks to check at the start (6; 0: all)."),
    works("checklevel", "=<n>", "How thoroughly: read them (0), check them alone (1), read what they spent (2), take them back (3), connect them again (4), in memory (3)."),
    dropped("checkmempool"),
    dropped("checkpoints"),
    dropped("choosedatadir"),
    works("cjdnsreachable", "", "Addresses of IPv6 that begin with fc are of the CJDNS network, and can be reached (off)."),
    rejected("coinstatsindex", "there is no index of coin statistics"),
    works("conf", "=<file>", "Configuration file, relative to the data directory (bitcoin.conf)."),
    works(
        "connect",
        "=<ip>",
        "Connect to this peer and to no others of our own accord; 0 connects to none. May be given several times.",
    )
    .network_only(),
    dropped("consolidatefeerate"),
    rejected("daemon", "run it under a service manager, or in the background of a shell"),
    rejected("daemonwait", "run it under a service manager, or in the background of a shell"),
    works("datacarrier", "", "Relay outputs that carry data (1)."),
    works("datacarriersize", "=<n>", "Bytes of outputs that carry data, in one transaction (100000)."),
    works("datadir", "=<dir>", "Data directory (~/.bitcoin); must exist.").forbids_negation(),
    dropped("dbbatchsize"),
    works("dbcache", "=<n>", "Memory for coins, MiB (450)."),
    rejected("dbcrashratio", "crashes are not simulated"),
    works(
        "debug",
        "=<category>",
        "Write details of a category to the log, or of all: no value, 1 or all. May be given several times.",
    ),
    works("debugexclude", "=<category>", "Leave the details of a category out of the log."),
    works("debuglogfile", "=<file>", "The log, relative to the chain's folder (debug.log); -nodebuglogfile writes none."),
    works("deprecatedrpc", "=<name>", "Show a field in its older form: warnings as one text."),
    dropped("disablewallet"),
    dropped("discardfee"),
    works("discover", "", "Find our own addresses out: those listened on, and what peers see (1, unless -externalip, -proxy or -listen=0 is given)."),
    works("dns", "", "Look names of peers up (1)."),
    works("dnsseed", "", "Ask DNS for addresses of nodes where few are known (1, unless -connect is given)."),
    works("dustrelayfee", "=<amt>", "Fee rate by which outputs are dust, BTC per 1,000 virtual bytes (0.00003)."),
    works("externalip", "=<ip>", "Our own address as others can reach it. May be given several times."),
    dropped("fallbackfee"),
    works("fastprune", "", "Block files of 64 KiB, and a lower height from which they may be removed, for tests."),
    works("fixedseeds", "", "Use addresses that are built in where no others are known (1)."),
    dropped("forcecompactdb"),
    works("forcednsseed", "", "Ask DNS for addresses although some are known (0)."),
    dropped("h"),
    works("help", "", "Print this help and exit."),
    dropped("help-debug"),
    rejected("i2pacceptincoming", "I2P is not supported"),
    rejected("i2psam", "I2P is not supported"),
    works("inboundrelaypercent", "=<n>", "Of the peers that connect to us, those in percent that may hear of transactions (50)."),
    works("includeconf", "=<file>", "In the configuration file: another one to read, relative to the data directory."),
    works("incrementalrelayfee", "=<amt>", "What a replacement pays beyond what it replaces, BTC per 1,000 virtual bytes (0.000001)."),
    rejected("ipcbind", "interprocess communication is not supported"),
    dropped("keypool"),
    dropped("lang"),
    dropped("limitancestorcount"),
    dropped("limitancestorsize"),
    works("limitclustercount", "=<n>", "Unconfirmed transactions that may be connected (64)."),
    works("limitclustersize", "=<n>", "Virtual size of connected unconfirmed transactions, 1,000 bytes (101)."),
    dropped("limitdescendantcount"),
    dropped("limitdescendantsize"),
    works("listen", "", "Listen for peers (1, unless -connect is given)."),
    dropped("listenonion"),
    works("loadblock", "=<file>", "Take the blocks of this file in at the start. May be given several times."),
    works("logips", "", "Show the addresses of peers in the log (0)."),
    works(
        "loglevel",
        "=<level>|<category>:<level>",
        "How much -debug writes to the log: info, debug or trace (debug).",
    )
    .forbids_negation()
    .needs_value(),
    dropped("loglevelalways"),
    works(
        "logratelimit",
        "",
        "Each place in the program writes at most 1 MiB an hour to the log file, -debug aside (1).",
    ),
    dropped("logsourcelocations"),
    dropped("logthreadnames"),
    dropped("logtimemicros"),
    dropped("logtimestamps"),
    dropped("maxapsfee"),
    works("maxconnections", "=<n>", "Peers at once; 11 places are for those that the node connects to (125)."),
    works("maxmempool", "=<n>", "Memory for unconfirmed transactions, MB (300)."),
    dropped("maxreceivebuffer"),
    dropped("maxsendbuffer"),
    dropped("maxsigcachesize"),
    works("maxtipage", "=<n>", "Age of the tip up to which the chain counts as caught up with, seconds (86400)."),
    dropped("maxtxfee"),
    works(
        "maxuploadtarget",
        "=<n>",
        "Bytes to send to peers in a day, in MiB or with a unit (k, K, m, M, g, G, t, T); past it old blocks are not given (0: no limit).",
    ),
    works("mempoolexpiry", "=<n>", "Hours after which an unconfirmed transaction is forgotten (336)."),
    works(
        "metrics",
        "=<addr>:<port>",
        "Serve Prometheus metrics over HTTP on this address of this machine. Bitcoin Core has no such option.",
    ),
    dropped("min"),
    works("minimumchainwork", "=<hex>", "Work below which a chain is not that of the network."),
    works("minrelaytxfee", "=<amt>", "Least fee rate for relay, BTC per 1,000 virtual bytes (0.000001)."),
    dropped("mintxfee"),
    works("mocktime", "=<n>", "The time to begin with, seconds since 1970, for tests: the clock then stands still."),
    dropped("natpmp"),
    works("networkactive", "", "Make and take connections from the beginning on; setnetworkactive changes it (1)."),
    works("onion", "=<ip:port>", "SOCKS5 proxy for connections to hosts on Tor (that of -proxy); -noonion connects to none."),
    works("onlynet", "=<net>", "Connect to hosts of this network alone: ipv4, ipv6, onion or cjdns; may be given more than once."),
    works("par", "=<n>", "Threads that verify scripts; 0 takes one for each core, -n leaves n cores free (0)."),
    works("peerblockfilters", "", "Give block filters to peers (BIP157); needs -blockfilterindex (0)."),
    works("peerbloomfilters", "", "Let peers set Bloom filters and show them the mempool (BIP37, BIP35) (0)."),
    works("peertimeout", "=<n>", "Seconds that a new peer may be silent (60)."),
    works("permitbaremultisig", "", "Relay bare multi-signature outputs (1)."),
    works("persistmempool", "", "Keep the mempool through a restart (1)."),
    rejected("persistmempoolv1", "the file of the mempool is written in version 2"),
    works("pid", "=<file>", "File with the process id, relative to the chain's folder (bitcoind.pid)."),
    works("port", "=<port>", "Listen for peers on this port.").network_only(),
    dropped("prevoutfetchthreads"),
    works("printpriority", "", "Log the fee rate of each transaction of a block template (0)."),
    works("printtoconsole", "", "Write the log to standard output too (1)."),
    rejected("privatebroadcast", "transactions cannot be sent over Tor or I2P"),
    works("proxy", "=<addr>[=<network>]", "SOCKS5 proxy for connections to other networks, or to one of them (port 9050); names of hosts go to it, too.").needs_value(),
    works("proxyrandomize", "", "Credentials of its own for each connection through the proxy, so that Tor takes another way for each (on)."),
    works(
        "prune",
        "=<n>",
        "Remove old blocks, all but the latest 288: 1 when pruneblockchain asks for it, 550 and more to stay below so many MiB (0: keep all). Not with -txindex.",
    ),
    works("regtest", "", "The chain for regression tests."),
    works("reindex", "", "Build the index of blocks and the coins again from the block files."),
    works("reindex-chainstate", "", "Build the coins again from the archived blocks."),
    dropped("resetguisettings"),
    works("rest", "", "Answer REST requests, which need no password, where RPC is served (0)."),
    works("rpcallowip", "=<ip>", "Addresses that may use RPC, as address/bits or address/mask; needs -rpcbind. May be given several times."),
    works("rpcauth", "=<userpw>", "A user of RPC with a hashed password, as share/rpcauth makes it. May be given several times.").secret(),
    works("rpcbind", "=<addr>[:port]", "Listen for RPC on this address; needs -rpcallowip. May be given several times.").network_only(),
    works("rpccookiefile", "=<loc>", "The cookie, relative to the chain's folder (.cookie)."),
    works(
        "rpccookieperms",
        "=<readable-by>",
        "Who may read the cookie: owner, group or all (owner).",
    ),
    dropped("rpcdoccheck"),
    works("rpcpassword", "=<pw>", "Password of -rpcuser.").secret(),
    works("rpcport", "=<port>", "Listen for RPC on this port.").network_only(),
    works("rpcservertimeout", "=<n>", "Seconds that a connection for RPC may be silent (30)."),
    works("rpcthreads", "=<n>", "RPC calls at once (16)."),
    works("rpcuser", "=<user>", "A user of RPC; no cookie is made then.").secret(),
    works("rpcwhitelist", "=<user>:<methods>", "Methods that a user may call, with commas in between; of several lists of one user, what all allow."),
    works("rpcwhitelistdefault", "", "Users without -rpcwhitelist may call nothing (1 if -rpcwhitelist is given)."),
    works("rpcworkqueue", "=<n>", "RPC calls that may wait for a thread (64)."),
    works("seednode", "=<ip>", "Connect to this peer for addresses where there are none, then leave it. May be given several times."),
    works("server", "", "Serve RPC (1)."),
    works("settings", "=<file>", "File of settings, relative to the chain's folder (settings.json); -nosettings uses none."),
    works(
        "shrinkdebugfile",
        "",
        "Cut a log file of more than 11 MB down to its last 10 MB at the start (1 without -debug).",
    ),
    works("shutdownnotify", "=<cmd>", "Run this command when the node begins to stop. May be given several times."),
    dropped("signer"),
    works("signet", "", "The chain with signed blocks."),
    works("signetchallenge", "=<hex>", "Script of a signet of its own.").forbids_negation(),
    works("signetseednode", "=<name>", "A name to ask DNS for on a signet of its own. May be given several times.").forbids_negation(),
    dropped("spendzeroconfchange"),
    dropped("splash"),
    works("startupnotify", "=<cmd>", "Run this command when the node has started."),
    rejected("stopafterblockimport", "the node does not stop by itself after an import"),
    works("stopatheight", "=<n>", "Stop when the tip has reached this height (0: never)."),
    works("test", "=<option>", "With -regtest: addrman gives known addresses the same places on every node; bip94 enforces the rule of BIP94; reindex_after_failure_noninteractive_yes does -reindex where the index is missing."),
    works("testactivationheight", "=<name@height>", "Height of a soft fork, for tests: segwit, bip34, dersig, cltv or csv, or bip54, which is proposed."),
    works("testnet", "", "The third test chain."),
    works("testnet4", "", "The fourth test chain."),
    fixed("timeout", "5000", "the time that a connection may take to be made cannot be changed"),
    rejected("torcontrol", "Tor is not supported"),
    dropped("torpassword").secret(),
    dropped("txconfirmtarget"),
    works("txindex", "", "Find confirmed transactions by their ids: an index, built in the background (0)."),
    rejected("txospenderindex", "there is no index of spent outputs"),
    rejected("txreconciliation", "transactions are not reconciled with peers (BIP330)"),
    works("txsendrate", "=<n>", "Transactions a second that are announced to peers which connected to us, in the long run (14)."),
    works("uacomment", "=<cmt>", "A comment in the user agent. May be given several times."),
    dropped("uiplatform"),
    dropped("unsafesqlitesync"),
    works("v2transport", "", "Encrypt connections to peers that can (1)."),
    rejected("vbparams", "the deployments of a chain cannot be changed"),
    works("version", "", "Print the version and exit."),
    rejected("wallet", "there is no wallet").network_only(),
    dropped("walletbroadcast"),
    dropped("walletcrosschain"),
    dropped("walletdir").network_only(),
    dropped("walletnotify"),
    dropped("walletrbf"),
    dropped("walletrejectlongchains"),
    works("whitebind", "=<[permissions@]addr>", "Listen for peers on this address and port, and give them permissions. May be given several times."),
    works("whitelist", "=<[permissions@]IP address or network>", "Permissions of peers by address. May be given several times."),
    works("whitelistforcerelay", "", "A -whitelist that names no permissions gives forcerelay (0)."),
    works("whitelistrelay", "", "A -whitelist that names no permissions gives relay (1)."),
    works("zmqpubhashblock", "=<address>", "Publish hashes of new tips on this address, tcp://HOST:PORT or unix:PATH. May be given several times."),
    works("zmqpubhashblockhwm", "=<n>", "Messages of -zmqpubhashblock that wait for a subscriber (1000)."),
    works("zmqpubhashtx", "=<address>", "Publish ids of transactions on this address."),
    works("zmqpubhashtxhwm", "=<n>", "Messages of -zmqpubhashtx that wait for a subscriber (1000)."),
    works("zmqpubrawblock", "=<address>", "Publish new tips, serialised, on this address."),
    works("zmqpubrawblockhwm", "=<n>", "Messages of -zmqpubrawblock that wait for a subscriber (1000)."),
    works("zmqpubrawtx", "=<address>", "Publish transactions, serialised, on this address."),
    works("zmqpubrawtxhwm", "=<n>", "Messages of -zmqpubrawtx that wait for a subscriber (1000)."),
    works("zmqpubsequence", "=<address>", "Publish every change of chain and mempool, numbered, on this address."),
    works("zmqpubsequencehwm", "=<n>", "Messages of -zmqpubsequence that wait for a subscriber (1000)."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_in_order_and_found() {
        assert!(OPTIONS.is_sorted_by(|one, next| one.name < next.name));
        for option in OPTIONS {
            assert_eq!(find(option.name).map(|found| found.name), Some(option.name));
        }
        assert!(find("nosuch").is_none());
        // Such a name would parse as a negation.
        assert!(!OPTIONS.iter().any(|option| option.name.starts_with("no")));
    }
}
