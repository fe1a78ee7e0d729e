//! The network: nodes, links between them, and an observer of each.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use assay_report::stats::random::SplitMix64;

use super::proxy::{Disconnect, LinkState, Proxy};
use super::record::Record;
use super::watch::Observer;
use super::{MixedOptions, Programs, topology};
use crate::machine::disk::renew_folder;
use crate::network::link::Properties;
use crate::network::{ASK_PAUSE, LISTEN, Node};
use crate::process::ProcessError;
use crate::process::rpc::RpcError;
use crate::target::Family;
use crate::wallet::Base;

/// A node of the network.
pub(super) struct Member {
    /// Program and number, such as `assay-2`.
    pub(super) name: String,
    /// Index of its program.
    pub(super) program: usize,
    pub(super) family: Family,
    pub(super) makes_blocks: bool,
    pub(super) node: Node,
}

pub(super) struct Net {
    pub(super) members: Vec<Member>,
    pub(super) record: Arc<Record>,
    proxies: Vec<Proxy>,
    /// Time of the last connection attempt per link.
    asked: Vec<Option<Instant>>,
    observers: Vec<Observer>,
    properties: Properties,
    pub(super) ended: Vec<Disconnect>,
    /// Time at which all links were connected.
    pub(super) started: Instant,
}

impl Net {
    /// Starts the nodes, loads the chain, and connects the links.
    pub(super) fn start(
        options: &MixedOptions,
        programs: &Programs,
        base: &Base,
        random: &mut SplitMix64,
    ) -> anyhow::Result<Self> {
        let work = options.out_dir.join("work");
        renew_folder(&work)?;
        let mut members = Vec::new();
        for (at, program) in programs.of_nodes.iter().enumerate() {
            let number = 1 + programs.of_nodes[..at].iter().filter(|p| *p == program).count();
            let target = &programs.targets[*program];
            let name = format!("{}-{number}", target.name);
            let log = options.out_dir.join("logs").join(format!("{name}.log"));
            let node = Node::start_new(target, &work.join(&name), &log, |datadir, ports| {
                target.launch_member(datadir, ports)
            })?;
            let (family, makes_blocks) = (target.family, target.makes_blocks());
            members.push(Member { name, program: *program, family, makes_blocks, node });
        }
        for member in &members {
            base.give(&member.node)?;
        }
        let record = Arc::new(Record::new(members.len()));
        let properties =
            Properties { bytes_per_s: options.bits_per_s / 8.0, delay: options.round_trip / 2 };
        let mut net = Self {
            members,
            record,
            proxies: Vec::new(),
            asked: Vec::new(),
            observers: Vec::new(),
            properties,
            ended: Vec::new(),
            started: Instant::now(),
        };
        net.link(options.degree, random)?;
        Ok(net)
    }

    fn link(&mut self, degree: usize, random: &mut SplitMix64) -> anyhow::Result<()> {
        for (from, to) in topology::draw(self.members.len(), degree, random) {
            let proxy = self.proxy([from, to], self.proxies.len())?;
            self.proxies.push(proxy);
            self.asked.push(None);
        }
        for (at, member) in self.members.iter().enumerate() {
            let observer = Observer::start(at, member.node.p2p, &self.record);
            self.observers.push(observer.context(LISTEN)?);
        }
        let started = Instant::now();
        while !self.proxies.iter().all(Proxy::is_connected) {
            if started.elapsed() > CONNECT_TIMEOUT {
                bail!("not all nodes are connected after {} s", CONNECT_TIMEOUT.as_secs());
            }
            self.connect();
            thread::sleep(ASK_PAUSE);
        }
        self.started = Instant::now();
        Ok(())
    }

    fn proxy(&self, nodes: [usize; 2], index: usize) -> anyhow::Result<Proxy> {
        let far = self.members[nodes[1]].node.p2p;
        Proxy::start(nodes, far, 1 + index as u8, self.properties, &self.record).context(LISTEN)
    }

    pub(super) fn links(&self) -> usize {
        self.proxies.len()
    }

    /// Reconnects missing links, and records connections closed by nodes.
    pub(super) fn connect(&mut self) {
        for (proxy, asked) in self.proxies.iter().zip(&mut self.asked) {
            self.ended.extend(proxy.disconnects());
            let is_due = asked.is_none_or(|asked: Instant| asked.elapsed() > RETRY);
            if proxy.link_state() == LinkState::Broken || proxy.is_connected() || !is_due {
                continue;
            }
            *asked = Some(Instant::now());
            // A node may still see the cut connection as open, so the attempt is repeated.
            let _ = self.members[proxy.nodes()[0]].connect(proxy.address());
        }
    }

    /// Cuts the links between two sides.
    pub(super) fn cut(&self, sides: &[bool], link_state: LinkState) -> usize {
        self.record.changed();
        let across =
            self.proxies.iter().filter(|proxy| sides[proxy.nodes()[0]] != sides[proxy.nodes()[1]]);
        across.map(|proxy| proxy.set(link_state)).count()
    }

    /// Restores all links. Broken ones reconnect in a random direction.
    pub(super) fn mend(&mut self, random: &mut SplitMix64) -> anyhow::Result<()> {
        for at in 0..self.proxies.len() {
            match self.proxies[at].link_state() {
                LinkState::Open => {}
                LinkState::Held => self.proxies[at].set(LinkState::Open),
                LinkState::Broken => {
                    let [a, b] = self.proxies[at].nodes();
                    let nodes = if random.below(2) == 0 { [a, b] } else { [b, a] };
                    self.proxies[at] = self.proxy(nodes, at)?;
                    self.asked[at] = None;
                }
            }
        }
        self.record.changed();
        self.connect();
        Ok(())
    }

    /// Fails if a node has exited.
    pub(super) fn check_alive(&mut self) -> Result<(), ProcessError> {
        self.members.iter_mut().try_for_each(|member| member.node.check_alive())
    }

    /// Nodes that can generate blocks.
    pub(super) fn makers(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|at| self.members[*at].makes_blocks).collect()
    }

    /// Closes all links, then stops all nodes.
    pub(super) fn stop(self) -> Result<(), ProcessError> {
        drop((self.proxies, self.observers));
        self.members.into_iter().try_for_each(|member| member.node.stop())
    }
}

impl Member {
    /// Connects once, as to an automatic outbound peer: nodes tolerate more from manual peers.
    fn connect(&self, to: std::net::SocketAddr) -> Result<(), RpcError> {
        match self.family {
            Family::Btcd => self.node.call("addnode", &format!(r#"["{to}","onetry"]"#)),
            _ => self.node.choose(to),
        }
    }

    /// Txids in its mempool.
    pub(super) fn pool(&self) -> Result<Vec<String>, RpcError> {
        self.node.call("getrawmempool", "[]")
    }

    /// Submits a transaction; the inner error is its reject reason.
    pub(super) fn submit(&self, raw: &[u8]) -> Result<Result<(), String>, RpcError> {
        let params = format!(r#"["{}"]"#, faster_hex::hex_string(raw));
        match self.node.call::<String>("sendrawtransaction", &params) {
            Ok(_) => Ok(Ok(())),
            Err(RpcError::Node { message, .. }) => Ok(Err(message)),
            Err(error) => Err(error),
        }
    }
}

/// Longest wait until all links are connected.
const CONNECT_TIMEOUT: Duration = Duration::from_mins(1);
/// Interval between connection attempts.
const RETRY: Duration = Duration::from_secs(3);
