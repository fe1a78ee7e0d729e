//! One round: a fresh data folder, a schedule, and kills until the schedule is done.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use assay_report::stats::random::SplitMix64;

use super::index::Tip;
use super::kill_plan::KillPlan;
use super::oracle::{Oracle, header_of, submit, utxo_set};
use super::peer::{Peer, flags};
use super::report::{Activity, Tally};
use super::schedule::{Step, last_heights, schedule};
use super::{ASK_PAUSE, Fault, Setup, is_loss};
use crate::electrum::ElectrumError;
use crate::process::rpc::{Answer, Client, RpcError};
use crate::process::{Ports, Process};
use crate::progress::Event;

/// Mean of the exponential distribution of life times after the first response.
const MEAN_LIFE: Duration = Duration::from_millis(350);
/// In one of this many cases the test waits for the node to catch up.
const FOLLOWED_ONE_IN: u64 = 2;
/// One life in this many ends during start-up.
const KILL_AT_START_ONE_IN: u64 = 6;
/// One life in this many ends during or after the index comparison.
const KILL_AT_INDEX_ONE_IN: u64 = 3;
/// Latest time of a kill during start-up.
const START_KILL_MS: u64 = 120;
/// The pass of a panic point has up to this many bits.
const PANIC_STEP_BITS: u64 = 11;
/// Longest wait after a restart for the best chain to become active.
const TIP_TIMEOUT: Duration = Duration::from_mins(2);

/// JSON-RPC error code of an unknown block.
const NOT_FOUND: i64 = -5;

pub(crate) struct Round<'a> {
    pub(crate) setup: &'a Setup<'a>,
    pub(crate) oracle: &'a Oracle,
    pub(crate) datadir: &'a Path,
    pub(crate) cache_mib: u32,
    pub(crate) random: SplitMix64,
    pub(crate) tally: &'a mut Tally,
    /// Highest acknowledged height of each chain.
    pub(super) acknowledged: [u32; 2],
    /// Node that serves the blocks, if they are not submitted.
    pub(super) peer: Option<Peer>,
    /// Block in submission at the time of the kill: it may or may not be stored.
    in_flight: Option<(usize, u32)>,
    /// Invalidated block, perhaps not yet reconsidered.
    invalidated: Option<String>,
    body: Vec<u8>,
}

/// A failed call may mean that the node died.
fn explain(process: &mut Process, error: anyhow::Error) -> anyhow::Error {
    let death = match error.downcast_ref::<RpcError>() {
        Some(source) => process.death(source),
        None if error.is::<ElectrumError>() => process.end_soon(),
        None => None,
    };
    death.map_or(error, anyhow::Error::from)
}

/// Stops the node properly, unless its planned end comes first.
fn stop(process: Process, client: &Client, kill_plan: Option<KillPlan>) -> anyhow::Result<End> {
    match (process.stop(client), kill_plan) {
        (Ok(_), _) => Ok(End::Stopped),
        (Err(error), Some(kill_plan)) if kill_plan.has_come_as(&error) => {
            Ok(End::Killed(Activity::Stopping))
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// End of a life that is decided before it begins.
enum Early {
    /// SIGKILL after this delay from the start.
    Kill(Duration),
    /// A panic at the given pass of a marked point.
    Panic { point: String, step: u64 },
}

/// A started node that responds.
struct Started {
    process: Process,
    client: Client,
    /// Address of its index server, if any.
    server: SocketAddr,
    kill_plan: Option<KillPlan>,
}

/// End of a life.
enum End {
    Killed(Activity),
    /// The steps are done, or the schedule requires a stop.
    Stopped,
}

impl<'a> Round<'a> {
    pub(crate) fn new(
        setup: &'a Setup<'a>,
        oracle: &'a Oracle,
        datadir: &'a Path,
        (cache_mib, seed): (u32, u64),
        tally: &'a mut Tally,
    ) -> Self {
        Self {
            setup,
            oracle,
            datadir,
            cache_mib,
            random: SplitMix64::new(seed),
            tally,
            acknowledged: [0; 2],
            peer: None,
            in_flight: None,
            invalidated: None,
            body: Vec::new(),
        }
    }

    /// Runs lives until every block is stored, then compares with the ledger.
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        let heights = [0, 1].map(|rival| self.setup.chains[rival].tip.height);
        let steps = schedule(heights, &mut self.random);
        let last = last_heights(heights);
        if let Some(dir) = &self.setup.peer_dir {
            self.peer = Some(Peer::start(self.setup, dir)?);
        }
        let mut next = 0;
        while next < steps.len() {
            self.setup.reporter.check_stop()?;
            if let End::Killed(activity) = self.live(&steps, &mut next)? {
                self.tally.killed(activity);
                let (done, of) = (self.tally.kills, self.setup.options.kills);
                self.setup.reporter.event(&Event::Count { done, of, unit: "kills" });
            }
        }
        // The last start is undisturbed, so it verifies the state left by the last kill.
        let Started { process, client, server, .. } =
            self.start(None)?.context("the node exited during an undisturbed start")?;
        self.verify(&client)?;
        self.verify_index(&client, server, None)?;
        if let Some(peer) = &self.peer {
            peer.connect(&client)?;
            self.follow_peer(&client, &mut Activity::Extending)?;
        } else {
            self.submit_rest(&client, last)?;
        }
        let (found, tip) = (utxo_set(&client)?, &self.setup.chains[0].tip);
        if (&found.tip, &found.muhash) != (&tip.hash, &tip.utxo_muhash) {
            return Err(Fault::wrong_set(&found, &tip.utxo_muhash));
        }
        self.verify_index(&client, server, None)?;
        process.stop(&client)?;
        self.peer.map_or(Ok(()), Peer::stop)
    }

    /// Submits the blocks that the last kill lost.
    fn submit_rest(&mut self, client: &Client, last: [u32; 2]) -> anyhow::Result<()> {
        for rival in [0, 1] {
            for height in self.acknowledged[rival] + 1..=last[rival] {
                self.submit(client, rival, height)?;
            }
        }
        Ok(())
    }

    /// One life of the node, from start to end.
    fn live(&mut self, steps: &[Step], next: &mut usize) -> anyhow::Result<End> {
        let wants_kill = self.tally.kills < self.setup.options.kills;
        let early = wants_kill.then(|| self.early_kill_plan()).flatten();
        let Some(Started { mut process, client, server, kill_plan }) = self.start(early)? else {
            return Ok(End::Killed(Activity::Starting));
        };
        let pid = process.pid();
        let mut end = |error: anyhow::Error, kill_plan: Option<&KillPlan>, activity| {
            if is_loss(&error) && kill_plan.is_some_and(KillPlan::has_come) {
                Ok(End::Killed(activity))
            } else {
                Err(explain(&mut process, error))
            }
        };
        // A killer that is too late for the start may hit the comparison.
        if let Err(error) = self.verify(&client) {
            return end(error, kill_plan.as_ref(), Activity::Starting);
        }
        // Some lives end during catch-up or queries of the index, the others later.
        let has_index = self.oracle.index.is_some();
        let early = wants_kill && has_index && self.random.below(KILL_AT_INDEX_ONE_IN) == 0;
        let mut kill_plan = kill_plan;
        if early && kill_plan.is_none() {
            kill_plan = Some(KillPlan::kill(pid, self.life_time()));
        }
        let every = self.setup.options.index.every.max(1) as usize;
        if has_index
            && self.tally.starts_s.len().is_multiple_of(every)
            && let Err(error) = self.verify_index(&client, server, kill_plan.as_ref())
        {
            return end(error, kill_plan.as_ref(), Activity::Indexing);
        }
        let kill = || KillPlan::kill(pid, self.life_time());
        let kill_plan = kill_plan.or_else(|| wants_kill.then(kill));
        let mut activity = Activity::Extending;
        if let Some(Err(error)) = self.peer.as_ref().map(|peer| peer.connect(&client)) {
            return end(error, kill_plan.as_ref(), activity);
        }
        while let Some(step) = steps.get(*next).filter(|step| **step != Step::Restart) {
            if let Err(error) = self.step(*step, &client, &mut activity) {
                return end(error, kill_plan.as_ref(), activity);
            }
            *next += 1;
        }
        *next += usize::from(steps.get(*next) == Some(&Step::Restart));
        stop(process, &client, kill_plan)
    }

    /// Chooses an end that is decided before the life begins.
    fn early_kill_plan(&mut self) -> Option<Early> {
        if let Some(points) = &self.setup.options.panic_points {
            let point = points[self.random.below(points.len() as u64) as usize].clone();
            // Early and late passes are equally likely in magnitude; a life may end before its pass.
            let magnitude = self.random.below(PANIC_STEP_BITS) + 1;
            return Some(Early::Panic { point, step: self.random.below(1 << magnitude) });
        }
        let at_start = self.random.below(KILL_AT_START_ONE_IN) == 0;
        at_start.then(|| Early::Kill(Duration::from_millis(self.random.below(START_KILL_MS))))
    }

    /// Starts the node and waits for its first response; `None` if it ended earlier as planned.
    fn start(&mut self, early: Option<Early>) -> anyhow::Result<Option<Started>> {
        let ports = Ports::free()?;
        let mut launch = self.setup.launch(self.datadir, &ports, Some(self.cache_mib));
        if let Some(Early::Panic { point, step }) = &early {
            launch.env.push(("ASSAY_PANIC_AT".into(), format!("{point}:{step}").into()));
        }
        if self.peer.is_some() {
            launch.args.extend(flags(&ports));
        }
        let start = Instant::now();
        let mut process = Process::start(launch, ports.rpc, &self.setup.log)?;
        let kill_plan = early.map(|early| match early {
            Early::Kill(delay) => KillPlan::kill(process.pid(), delay),
            Early::Panic { .. } => KillPlan::defect(process.pid()),
        });
        match process.wait_answer(ASK_PAUSE) {
            Ok((cookie, _)) => {
                // The first start of a round has nothing to recover; it is one in dozens and is included.
                self.tally.starts_s.push(start.elapsed().as_secs_f64());
                let client = process.client(&cookie);
                let server = ports.electrum_address();
                Ok(Some(Started { process, client, server, kill_plan }))
            }
            Err(error)
                if kill_plan.as_ref().is_some_and(|kill_plan| kill_plan.has_come_as(&error)) =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn step(&mut self, step: Step, client: &Client, activity: &mut Activity) -> anyhow::Result<()> {
        match step {
            Step::Submit { rival, height } if self.peer.is_some() => {
                self.give_to_peer(client, (rival, height), activity)
            }
            Step::Submit { rival, height } => {
                // Resubmit blocks that a crash lost.
                for height in self.acknowledged[rival] + 1..=height {
                    let leads = height > self.acknowledged[1 - rival];
                    let trails_by_one = height == self.acknowledged[1 - rival] + 1;
                    *activity = if leads && trails_by_one {
                        Activity::Reorganising
                    } else {
                        Activity::Extending
                    };
                    self.submit(client, rival, height)?;
                }
                Ok(())
            }
            Step::TurnBack { below_tip } => {
                *activity = Activity::TurningBack;
                self.turn_back(client, below_tip)?;
                self.peer.as_ref().map_or(Ok(()), |peer| peer.reconnect(client))
            }
            Step::Restart => Ok(()),
        }
    }

    fn submit(&mut self, client: &Client, rival: usize, height: u32) -> anyhow::Result<()> {
        let chain = &self.setup.chains[rival];
        let block = &chain.blocks[height as usize - 1];
        self.in_flight = Some((rival, height));
        if let Some(reason) = submit(client, chain, block, &mut self.body)? {
            return Err(Fault::rejected(block, &reason));
        }
        self.in_flight = None;
        self.acknowledged[rival] = height;
        self.tally.acknowledged += 1;
        Ok(())
    }

    fn turn_back(&mut self, client: &Client, below_tip: u32) -> anyhow::Result<()> {
        let height: u32 = client.call("getblockcount", "[]")?;
        let at = height.saturating_sub(below_tip);
        if at == 0 {
            return Ok(());
        }
        let hash: String = client.call("getblockhash", &format!("[{at}]"))?;
        self.invalidated = Some(hash.clone());
        let params = format!(r#"["{hash}"]"#);
        client.call::<()>("invalidateblock", &params)?;
        client.call::<()>("reconsiderblock", &params)?;
        self.invalidated = None;
        self.tally.turns_back += 1;
        Ok(())
    }

    /// Compares all queryable state with the expected state.
    fn verify(&mut self, client: &Client) -> anyhow::Result<()> {
        if let Some(hash) = &self.invalidated {
            match client.call::<()>("reconsiderblock", &format!(r#"["{hash}"]"#)) {
                // A node that lost the block lost its verdict too; the loss is counted below.
                Ok(()) | Err(RpcError::Node { code: NOT_FOUND, .. }) => self.invalidated = None,
                Err(error) => return Err(error.into()),
            }
        }
        self.find_lost(client)?;
        self.read_last_blocks(client)?;
        let tip = self.wait_for_tip(client)?;
        let set = utxo_set(client)?;
        let Some(expected) = self.oracle.muhash(&set.tip) else {
            return Err(Fault::unknown_tip(&set.tip, set.height));
        };
        if set.tip != tip || set.muhash != expected {
            return Err(Fault::wrong_set(&set, expected));
        }
        self.tally.verified += 1;
        Ok(())
    }

    /// Waits for the index to reach the node's tip and compares its responses.
    fn verify_index(
        &mut self,
        client: &Client,
        server: SocketAddr,
        kill_plan: Option<&KillPlan>,
    ) -> anyhow::Result<()> {
        let Some(index) = &self.oracle.index else { return Ok(()) };
        let hash: String = client.call("getbestblockhash", "[]")?;
        let height: u32 = client.call("getblockcount", "[]")?;
        let header = header_of(client, &hash)?;
        let took = index.verify(server, &Tip { hash: &hash, height, header: &header }, &|| {
            kill_plan.is_some_and(KillPlan::has_come_already)
        })?;
        self.tally.index_s.push(took.as_secs_f64());
        self.tally.answers += index.scripts.len() as u64;
        Ok(())
    }

    /// Counts acknowledged blocks that the node lost, and determines the state of the block in flight.
    fn find_lost(&mut self, client: &Client) -> anyhow::Result<()> {
        for rival in [0, 1] {
            let in_flight = self.in_flight.is_some_and(|(of, _)| of == rival);
            let asked = self.acknowledged[rival] + u32::from(in_flight);
            let unknown = self.unknown_headers(client, rival, asked)?;
            let known = unknown.first().map_or(asked, |first| *first);
            let lost = unknown.iter().filter(|at| **at < self.acknowledged[rival]).count();
            self.tally.lost += lost as u64;
            self.acknowledged[rival] = known;
        }
        self.in_flight = None;
        Ok(())
    }

    /// Indices (height − 1) of the first `count` blocks whose headers the node does not know.
    fn unknown_headers(
        &self,
        client: &Client,
        rival: usize,
        count: u32,
    ) -> anyhow::Result<Vec<u32>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let blocks = &self.setup.chains[rival].blocks[..count as usize];
        let params: Vec<String> =
            blocks.iter().map(|block| format!(r#"["{}",false]"#, block.hash)).collect();
        let answers = client.batch(params.iter().map(|params| ("getblockheader", &params[..])))?;
        let is_unknown = |(_, answer): &(u32, Answer)| answer.is_err();
        Ok((0..).zip(answers).filter(is_unknown).map(|(at, _)| at).collect())
    }

    /// Compares the last acknowledged block of each chain byte by byte.
    fn read_last_blocks(&self, client: &Client) -> anyhow::Result<()> {
        for (rival, chain) in self.setup.chains.iter().enumerate() {
            let Some(index) = self.acknowledged[rival].checked_sub(1) else { continue };
            let block = &chain.blocks[index as usize];
            let found: String = client.call("getblock", &format!(r#"["{}",0]"#, block.hash))?;
            let mut expected = vec![0; 2 * block.bytes as usize];
            let mut at = 0;
            chain.read_block(block, |piece| {
                let end = at + 2 * piece.len();
                faster_hex::hex_encode(piece, &mut expected[at..end])
                    .expect("the output is twice as long as the input");
                at = end;
            })?;
            if found.as_bytes() != expected {
                let text = format!("block {} comes back with other bytes", block.hash);
                return Err(Fault::of_node(text));
            }
        }
        Ok(())
    }

    /// The tip must be the end of the longer chain, or of either if they are equally long.
    fn wait_for_tip(&self, client: &Client) -> anyhow::Result<String> {
        if self.peer.is_some() {
            return self.tip_without_peers(client);
        }
        let highest = self.acknowledged.into_iter().max().unwrap_or(0);
        let allowed: Vec<&str> = (0..2)
            .filter(|rival| self.acknowledged[*rival] == highest && highest > 0)
            .map(|rival| self.setup.chains[rival].blocks[highest as usize - 1].hash.as_str())
            .collect();
        let start = Instant::now();
        loop {
            let tip: String = client.call("getbestblockhash", "[]")?;
            if allowed.contains(&tip.as_str()) || highest == 0 {
                return Ok(tip);
            }
            if start.elapsed() > TIP_TIMEOUT {
                return Err(Fault::wrong_tip(&tip, &allowed.join(" or ")));
            }
            thread::sleep(ASK_PAUSE);
        }
    }

    /// Exponentially distributed: the hazard is constant over a life.
    fn life_time(&mut self) -> Duration {
        let uniform = (self.random.below(1 << 32) + 1) as f64 / (1_u64 << 32) as f64;
        MEAN_LIFE.mul_f64(-uniform.ln())
    }
}

impl Round<'_> {
    /// Submits blocks up to this one to the peer; waits for the node only about every second time, so that it syncs many at once.
    fn give_to_peer(
        &mut self,
        client: &Client,
        (rival, height): (usize, u32),
        activity: &mut Activity,
    ) -> anyhow::Result<()> {
        let is_followed = self.random.below(FOLLOWED_ONE_IN) == 0;
        let Some(peer) = &mut self.peer else { return Ok(()) };
        peer.give(self.setup, rival, height)?;
        let leader = peer.tip().0;
        if !is_followed {
            let active = self.note_tip(client)?;
            *activity = activity_of(active, leader);
            return Ok(());
        }
        self.follow_peer(client, activity)
    }

    /// Waits until the node has the peer's tip.
    fn follow_peer(&mut self, client: &Client, activity: &mut Activity) -> anyhow::Result<()> {
        let Some(peer) = &self.peer else { return Ok(()) };
        let (leader, height) = peer.tip();
        let start = Instant::now();
        loop {
            let active = self.note_tip(client)?;
            *activity = activity_of(active, leader);
            if active.is_some_and(|(_, at)| at == height) {
                return Ok(());
            }
            if start.elapsed() > TIP_TIMEOUT {
                let found: String = client.call("getbestblockhash", "[]")?;
                let expected = &self.setup.chains[leader].blocks[height as usize - 1].hash;
                return Err(Fault::wrong_tip(&found, expected));
            }
            thread::sleep(ASK_PAUSE);
        }
    }

    /// Queries the tip: it and all its ancestors are acknowledged. Returns chain and height, `None` for the genesis block.
    fn note_tip(&mut self, client: &Client) -> anyhow::Result<Option<(usize, u32)>> {
        let tip: String = client.call("getbestblockhash", "[]")?;
        let place = self.oracle.place(&tip);
        if let Some((rival, height)) = place {
            let known = &mut self.acknowledged[rival];
            self.tally.acknowledged += u64::from(height.saturating_sub(*known));
            *known = height.max(*known);
        }
        Ok(place)
    }

    /// A node without connections has its previous tip, or a later one that it had not reported.
    fn tip_without_peers(&self, client: &Client) -> anyhow::Result<String> {
        let tip: String = client.call("getbestblockhash", "[]")?;
        let height = self.oracle.place(&tip).map_or(0, |(_, height)| height);
        let highest = self.acknowledged.into_iter().max().unwrap_or(0);
        if height >= highest {
            return Ok(tip);
        }
        Err(Fault::wrong_tip(&tip, &format!("one at height {highest} or above")))
    }
}

fn activity_of(active: Option<(usize, u32)>, leader: usize) -> Activity {
    match active {
        Some((rival, _)) if rival != leader => Activity::Reorganising,
        _ => Activity::Extending,
    }
}
