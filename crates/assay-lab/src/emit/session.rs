//! The emission to one node, on its own thread.

use std::cell::RefCell;
use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, ensure};
use assay_wire::Header;
use assay_wire::p2p::HEADERS_MAX;

use super::live::Live;
use super::report::TargetReport;
use super::{EmitOptions, EmitTarget, Login};
use crate::chain::Chain;
use crate::feed::p2p_feeder::P2pFeeder;
use crate::feed::tip_watch::TipWatch;
use crate::feed::{FeedError, FeedJob, Feeder, Reach, Rpc};
use crate::machine::clock::Clock;
use crate::network::Link;
use crate::network::link::Properties;
use crate::p2p::GENESIS;
use crate::plan::FeedPlan;
use crate::process::rpc::Client;
use crate::progress::{Event, Reporter};
use crate::results::BlockRecord;
use crate::run::whole_story;

/// A node that receives the chain.
pub(super) struct Session<'a> {
    pub(super) options: &'a EmitOptions,
    pub(super) chain: &'a Chain,
    pub(super) target: &'a EmitTarget,
    pub(super) live: &'a Live,
    pub(super) reporter: &'a (dyn Reporter + Sync),
    pub(super) clock: Clock,
    /// Last height to send.
    pub(super) until: u32,
}

/// Counts events of the feeder.
struct Counts<'a> {
    live: &'a Live,
    reporter: &'a dyn Reporter,
}

impl Reporter for Counts<'_> {
    fn event(&self, event: &Event<'_>) {
        if let Event::Transactions { sent, .. } = event {
            self.live.txs_now.store(*sent, Ordering::Relaxed);
        }
    }

    fn wants_stop(&self) -> bool {
        self.reporter.wants_stop()
    }
}

impl Session<'_> {
    /// Sends the missing blocks and returns the report.
    pub(super) fn report(&self) -> TargetReport {
        let report = RefCell::new(TargetReport::blank(self.target));
        let outcome = self.send(&report);
        let mut report = report.into_inner();
        if let Err(error) = outcome {
            let feed_error = error.downcast_ref::<FeedError>();
            report.is_interrupted = matches!(feed_error, Some(FeedError::Interrupted { .. }));
            report.fault = Some(whole_story(&*error));
        }
        report
    }

    fn send(&self, report: &RefCell<TargetReport>) -> anyhow::Result<()> {
        let client = self.client()?;
        // The link stays up until the end.
        let (link, peers_at) = self.link()?;
        let plan = FeedPlan { by: self.target.via, ..self.options.feed.clone() };
        let p2p_feeder = if plan.by.is_relay() {
            let chain = &self.chain.header.chain;
            Some(P2pFeeder::connect(peers_at, chain, &plan, self.clock)?)
        } else {
            None
        };
        let height = match (&client, &p2p_feeder) {
            (Some(client), _) => self.height_by_rpc(client)?,
            (None, Some(p2p_feeder)) => self.height_by_headers(p2p_feeder)?,
            (None, None) => 0,
        };
        report.borrow_mut().from_height = height + 1;
        ensure!(
            height == 0 || self.options.resume,
            "it has {height} blocks of this chain already; give --resume to send the rest"
        );
        let below = &self.chain.blocks[..height as usize];
        let header = |block| self.chain.read_header(block).map(|raw| Header::parse(&raw));
        let headers: Vec<Header> = below.iter().map(header).collect::<Result<_, _>>()?;
        let before = headers.last().map_or(GENESIS, Header::hash);
        if let Some(p2p_feeder) = &p2p_feeder {
            p2p_feeder.has_blocks(&headers);
        }
        let rpc = client
            .zip(self.client()?)
            .map(|(client, second)| Rpc { client, watch: TipWatch::start(second, self.clock) });
        let counts = Counts { live: self.live, reporter: self.reporter };
        let share = self.options.feed.seen.first().copied().unwrap_or(0.0);
        let job = FeedJob { chain: self.chain, plan: &plan, share, reporter: &counts };
        let reach = Reach { rpc, p2p_feeder, pid: None };
        let mut feeder = Feeder::new(job, self.clock, reach, before);
        let blocks =
            &self.chain.blocks[height as usize..(self.until as usize).max(height as usize)];
        let outcome = blocks.iter().try_for_each(|block| {
            if counts.wants_stop() {
                return Err(FeedError::Interrupted { height: block.height });
            }
            let record = feeder.feed(block)?;
            self.count(&record);
            report.borrow_mut().blocks.push(record);
            Ok(())
        });
        report.borrow_mut().tx_errors = feeder.finish().1;
        drop(link);
        Ok(outcome?)
    }

    fn count(&self, record: &BlockRecord) {
        let live = self.live;
        live.height.store(u64::from(record.height), Ordering::Relaxed);
        live.txs_now.store(0, Ordering::Relaxed);
        live.txs.fetch_add(record.txs_sent, Ordering::Relaxed);
        live.orphans.fetch_add(record.orphans, Ordering::Relaxed);
        live.in_mempool.fetch_add(record.txs_in_mempool, Ordering::Relaxed);
        live.rejected.fetch_add(record.txs_sent - record.txs_accepted, Ordering::Relaxed);
    }

    /// RPC connection to the node, if its address is known.
    fn client(&self) -> anyhow::Result<Option<Client>> {
        let Some(address) = self.target.rpc_address() else { return Ok(None) };
        let login = match &self.target.login {
            Login::None => String::new(),
            Login::Password(login) => login.clone(),
            Login::Cookie(path) => fs::read_to_string(path)
                .with_context(|| format!("cannot read the cookie {}", path.display()))?,
        };
        Ok(Some(Client::at(address, login.trim())))
    }

    /// The rate-limited link, if any, and the node's P2P address.
    fn link(&self) -> anyhow::Result<(Option<Link>, SocketAddr)> {
        let EmitTarget { address, delay, rate_mbit, .. } = *self.target;
        if delay.is_zero() && rate_mbit.is_none() {
            return Ok((None, address));
        }
        let bytes_per_s = rate_mbit.unwrap_or(RATE_MOST_MBIT) * 1e6 / 8.0;
        let properties = Properties { bytes_per_s, delay };
        let link = Link::to(address, LINK, properties).context("cannot make a link on loopback")?;
        let at = link.address();
        Ok((Some(link), at))
    }

    /// Height of the node; an error on another chain.
    fn height_by_rpc(&self, client: &Client) -> anyhow::Result<u32> {
        let rpc_address = self.target.rpc_address().unwrap_or(self.target.address);
        let rpc = || format!("{rpc_address} as RPC");
        let height: u32 = client.call("getblockcount", "[]").with_context(rpc)?;
        if height == 0 {
            return Ok(0);
        }
        let found: String =
            client.call("getblockhash", &format!("[{height}]")).with_context(rpc)?;
        self.check(height, &found)?;
        Ok(height)
    }

    fn height_by_headers(&self, p2p_feeder: &P2pFeeder) -> anyhow::Result<u32> {
        let (mut height, mut before) = (0, GENESIS);
        let stop = || self.reporter.wants_stop();
        loop {
            let above = p2p_feeder.headers_above(&before, &stop)?;
            for hash in &above {
                height += 1;
                self.check(height, &hash.to_string())?;
                before = *hash;
            }
            if above.len() < HEADERS_MAX {
                return Ok(height);
            }
        }
    }

    fn check(&self, height: u32, found: &str) -> anyhow::Result<()> {
        let ours = self.chain.blocks.get(height as usize - 1);
        let expected = ours.map_or("none", |block| block.hash.as_str());
        ensure!(
            found == expected,
            "its block at height {height} is {found}, not {expected}: it is on another chain"
        );
        Ok(())
    }
}

/// Loopback address of the link; differs from those of other experiments.
const LINK: u8 = 222;
/// Rate that counts as unlimited.
const RATE_MOST_MBIT: f64 = 100_000.0;
