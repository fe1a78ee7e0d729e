//! Scripts that clients subscribed to, with the status of each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use assay_hash::Sha256;
use assay_wire::Txid;
use parking_lot::{Mutex, RwLock};

use super::accounts::Account;
use super::outbox::Outbox;
use super::protocol::error::CallError;
use super::publish::Published;
use crate::index::{Limits, ScriptHash};

/// Locks that the set is spread over. The follower asks for every script of a block.
const SHARDS: usize = 64;

/// The scripts that somebody subscribed to; the status of each is computed once for all of them.
#[derive(Debug)]
pub struct Watched {
    shards: Vec<RwLock<HashMap<ScriptHash, Arc<ScriptRecord>>>>,
    count: AtomicUsize,
    /// Scripts that came since [`Watched::newcomers`] was called last and have not gone again.
    newcomers: Mutex<HashSet<ScriptHash>>,
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            count: AtomicUsize::new(0),
            newcomers: Mutex::default(),
        }
    }
}

impl Watched {
    /// Whether somebody wants to hear of `script`. Cheap, and for any thread.
    pub fn is_watched(&self, script: &ScriptHash) -> bool {
        !self.is_empty() && self.shard(script).read().contains_key(script)
    }

    /// Number of scripts.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, script: &ScriptHash) -> &RwLock<HashMap<ScriptHash, Arc<ScriptRecord>>> {
        &self.shards[usize::from(script.0[0]) % SHARDS]
    }

    /// The record of a script, made if there is none. It may die before it is locked: then ask again.
    pub(super) fn enter(&self, script: &ScriptHash) -> Arc<ScriptRecord> {
        let mut shard = self.shard(script).write();
        if let Some(record) = shard.get(script) {
            return Arc::clone(record);
        }
        let record = Arc::new(ScriptRecord::new(*script));
        // Counted before it is in the set, so that `is_watched` never overlooks it.
        self.count.fetch_add(1, Ordering::Release);
        self.newcomers.lock().insert(*script);
        shard.insert(*script, Arc::clone(&record));
        record
    }

    pub(super) fn get(&self, script: &ScriptHash) -> Option<Arc<ScriptRecord>> {
        self.shard(script).read().get(script).map(Arc::clone)
    }

    /// Every script, a part at a time.
    pub(super) fn all(&self) -> impl Iterator<Item = Vec<Arc<ScriptRecord>>> {
        self.shards.iter().map(|shard| shard.read().values().map(Arc::clone).collect())
    }

    /// Looks at a script again with the next change.
    pub(super) fn try_later(&self, script: &ScriptHash) {
        self.newcomers.lock().insert(*script);
    }

    /// The scripts that came since the last call.
    pub(super) fn newcomers(&self) -> Vec<ScriptHash> {
        std::mem::take(&mut *self.newcomers.lock()).into_iter().collect()
    }

    /// Takes a record out that nobody needs any more; `state` is what it is locked with.
    pub(super) fn remove_unused(&self, record: &ScriptRecord, state: &mut ScriptState) {
        if state.subscribers.is_empty() && !state.dead {
            state.dead = true;
            let mut shard = self.shard(&record.script).write();
            shard.remove(&record.script);
            // Under the same lock: whoever enters it anew is a newcomer again.
            self.newcomers.lock().remove(&record.script);
            self.count.fetch_sub(1, Ordering::Release);
        }
    }
}

/// A client that subscribed to something.
#[derive(Clone, Debug)]
pub(super) struct Subscriber {
    /// Its number.
    pub(super) client: u64,
    pub(super) outbox: Arc<Outbox>,
    /// What its address uses.
    pub(super) account: Arc<Account>,
    /// Whether it speaks protocol 1.7 or later, where notifications about scripts have another name.
    pub(super) by_script: bool,
}

/// Of this many subscribers the one with the fewest subscriptions is looked for.
const WEIGHED: usize = 16;
/// What a record weighs that somebody is at work on.
pub(super) const WEIGHT_UNKNOWN: usize = 0;

/// Those who subscribed to something, sorted by number. Most have one, some have every client there is.
#[derive(Debug, Default)]
pub(super) struct Subscribers(Vec<Subscriber>);

impl Subscribers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn as_slice(&self) -> &[Subscriber] {
        &self.0
    }

    /// Subscribing twice is as good as once.
    pub(super) fn add(&mut self, new: Subscriber) {
        if let Err(at) = self.find(new.client) {
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, new);
        }
    }

    pub(super) fn remove(&mut self, client: u64) {
        if let Ok(at) = self.find(client) {
            self.0.remove(at);
        }
    }

    fn find(&self, client: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&client, |subscriber| subscriber.client)
    }

    /// Subscriptions of the address that has the fewest.
    pub(super) fn weight(&self) -> usize {
        let some = self.0.iter().take(WEIGHED);
        some.map(|subscriber| subscriber.account.subscriptions()).min().unwrap_or(0)
    }
}

/// A watched script.
#[derive(Debug)]
pub(super) struct ScriptRecord {
    pub(super) script: ScriptHash,
    pub(super) state: Mutex<ScriptState>,
    /// Whether it is to be looked at.
    pub(super) waits: AtomicBool,
}

impl ScriptRecord {
    fn new(script: ScriptHash) -> Self {
        Self { script, state: Mutex::default(), waits: AtomicBool::new(false) }
    }

    /// Subscriptions of the address that has the fewest.
    pub(super) fn weight(&self) -> usize {
        self.state.try_lock().map_or(WEIGHT_UNKNOWN, |state| state.subscribers.weight())
    }
}

/// What is known of a watched script.
#[derive(Debug, Default)]
pub(super) struct ScriptState {
    progress: Progress,
    /// What subscribers were told last; `None` before anything was computed.
    pub(super) status: Option<Status>,
    pub(super) subscribers: Subscribers,
    /// Whether the record is no longer in the set.
    pub(super) dead: bool,
}

impl ScriptState {
    /// The status at the present moment.
    pub(super) fn compute(
        &mut self,
        published: &Published,
        script: &ScriptHash,
        entries_max: usize,
    ) -> Result<Status, CallError> {
        self.progress.status(published, script, entries_max)
    }
}

/// The status of a script: the hash of its history, none where there is none.
pub(super) type Status = Option<[u8; 32]>;

/// The hash over the confirmed history of a script, as far as it goes: new blocks add to it, nothing is hashed twice.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    hasher: Sha256,
    empty: bool,
    /// Height from which on blocks have not been hashed.
    next: u32,
    /// Number of reorganisations that this was computed under.
    reorganisations: u64,
}

impl Default for Progress {
    fn default() -> Self {
        Self { hasher: Sha256::new(), empty: true, next: 0, reorganisations: 0 }
    }
}

impl Progress {
    fn status(
        &mut self,
        published: &Published,
        script: &ScriptHash,
        entries_max: usize,
    ) -> Result<Status, CallError> {
        let read =
            published.read(|moment, pool| (Arc::clone(moment), pool.history(script, entries_max)));
        let Some((moment, unconfirmed)) = read else { return Ok(None) };
        let unconfirmed = unconfirmed?.sorted();
        if self.reorganisations != moment.reorganisations {
            *self = Self { reorganisations: moment.reorganisations, ..Self::default() };
        }
        if self.next <= moment.tip.height {
            let limits = Limits { entries_max };
            let confirmed = moment.view.history(script, self.next, limits)?;
            let lines = confirmed.iter().map(|entry| (entry.txid, i64::from(entry.height)));
            self.empty &= confirmed.is_empty();
            hash_lines(&mut self.hasher, lines);
            self.next = moment.tip.height + 1;
        }
        if self.empty && unconfirmed.is_empty() {
            return Ok(None);
        }
        let mut hasher = self.hasher.clone();
        let lines = unconfirmed.iter().map(|entry| (entry.txid, i64::from(entry.height())));
        hash_lines(&mut hasher, lines);
        Ok(Some(hasher.finalize()))
    }
}

/// Hashes `txid:height:` for each line.
pub(super) fn hash_lines(hasher: &mut Sha256, lines: impl Iterator<Item = (Txid, i64)>) {
    const FULL: usize = 4096;
    let mut text = Vec::with_capacity(FULL + 128);
    for (txid, height) in lines {
        let mut reversed = txid.0;
        reversed.reverse();
        let start = text.len();
        text.resize(start + 64, 0);
        faster_hex::hex_encode(&reversed, &mut text[start..]).expect("64 digits");
        text.push(b':');
        push_decimal(&mut text, height);
        text.push(b':');
        if text.len() >= FULL {
            hasher.update(&text);
            text.clear();
        }
    }
    hasher.update(&text);
}

fn push_decimal(text: &mut Vec<u8>, number: i64) {
    let mut digits = [0u8; 20];
    let mut rest = number.unsigned_abs();
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        text.push(b'-');
    }
    text.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_the_specification() {
        // Protocol basics, "Status Example".
        let lines = [
            ("a6c9c361bd0bc536d6a22648efbf8f9b200e425ef6c3a7a9669dc444c532a347", 2472),
            ("9c42f84b2fcdaff676ba25d9d4941741cc0d1a01cce0c23fdc4c0b2afa38431c", 2473),
            ("770f2d4371b3fabb902dd9a103e2dd005fcd3971181078fca4a2a1d6ff127b30", 2473),
            ("80b19848aed792565ab7c5a79b7c2a00fbf985741579396ebe0ab6098e607311", 0),
            ("e02a1dadfa83b996b24175df807b271ea5d02937ef5b35c195fac1e1bdc3198f", 0),
            ("bb4c8ab438c13b89ca80d1d5bee25b0b6b7f55673f4d801998ba97db161d9e85", -1),
        ];
        let mut hasher = Sha256::new();
        let lines = lines.map(|(txid, height)| (txid.parse::<Txid>().unwrap(), height));
        hash_lines(&mut hasher, lines.into_iter());
        let mut text = [0; 64];
        let status = faster_hex::hex_encode(&hasher.finalize(), &mut text).unwrap().to_owned();
        assert_eq!(status, "78e96c6562cafa71c115503b9411fdfdc595a45031e2ab76ff75162fe1b0590d");
    }

    #[test]
    fn numbers_are_written_as_they_are_printed() {
        for number in [0, 7, -1, 10, 840_000, i64::from(u32::MAX), i64::MIN, i64::MAX] {
            let mut text = Vec::new();
            push_decimal(&mut text, number);
            assert_eq!(String::from_utf8(text).unwrap(), number.to_string());
        }
    }

    #[test]
    fn a_script_is_watched_while_somebody_needs_it() {
        let watched = Watched::default();
        let script = ScriptHash([7; 32]);
        assert!(!watched.is_watched(&script));
        let record = watched.enter(&script);
        assert!(watched.is_watched(&script));
        assert!(Arc::ptr_eq(&record, &watched.enter(&script)));
        assert_eq!(watched.newcomers(), [script]);
        assert_eq!(watched.newcomers(), []);
        assert_eq!(
            watched.all().flatten().map(|record| record.script).collect::<Vec<_>>(),
            [script]
        );
        watched.remove_unused(&record, &mut record.state.lock());
        assert!(!watched.is_watched(&script) && watched.is_empty());
    }
}
