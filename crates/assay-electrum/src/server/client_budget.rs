//! Resource usage of each address, over all its connections and across reconnects.
//!
//! After its last connection an address keeps its account until its budget is full again. The number of accounts without a
//! connection is limited. Beyond the limit the account closest to full is dropped first, so a large debt cannot be erased by
//! brief connections from many other addresses.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::config::{Config, Limits};
use super::workers::Priority;
use crate::address::{Subnet, customer};

pub(super) const ABSENT_MAX: usize = 65_536;
/// Memory per such account, with its map and set entries.
pub(super) const ABSENT_BYTES: usize = 512;
/// Concurrent TLS handshakes per address: the most expensive operation that a client can cause. The limit is per address, since
/// with a global one a single address could block all others with stalled handshakes.
const HANDSHAKES_MAX: usize = 4;
/// Cost of a connection, without its requests.
const CONNECTION_UNITS: f64 = 2.0;

/// Usage of an address, or of a single connection from a shared address.
#[derive(Debug)]
pub(super) struct Account {
    address: Option<IpAddr>,
    budget: Mutex<RateLimit>,
    subscriptions: AtomicUsize,
    output_bytes: AtomicUsize,
    pub(super) handshakes: Semaphore,
}

impl Account {
    pub(super) fn new(address: Option<IpAddr>, limits: &Limits, now: Instant) -> Self {
        Self {
            address,
            budget: Mutex::new(RateLimit::new(limits, now)),
            subscriptions: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            handshakes: Semaphore::new(HANDSHAKES_MAX),
        }
    }

    /// Rate limit decision for the next line.
    pub(super) fn admit(&self, throttle_max: Duration) -> Admission {
        self.budget.lock().admit(throttle_max, Instant::now())
    }

    /// Time until the client counts as light, assuming no further charges.
    pub(super) fn light_in(&self) -> Duration {
        self.budget.lock().light_in(Instant::now())
    }

    /// Charges the cost of a line.
    pub(super) fn spend(&self, units: f64) {
        self.budget.lock().spend(units, Instant::now());
    }

    pub(super) fn subscriptions(&self) -> usize {
        self.subscriptions.load(Ordering::Relaxed)
    }

    /// Counts one more subscription, up to `max`.
    pub(super) fn reserve_subscription(&self, max: usize) -> bool {
        let more = |count: usize| (count < max).then_some(count + 1);
        self.subscriptions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    pub(super) fn release_subscriptions(&self, count: usize) {
        self.subscriptions.fetch_sub(count, Ordering::Relaxed);
    }

    pub(super) fn output_bytes(&self) -> usize {
        self.output_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn add_output(&self, bytes: usize) {
        self.output_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn remove_output(&self, bytes: usize) {
        self.output_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("too many connections")]
    Server,
    #[error("too many connections from its address")]
    Address,
    /// The address has exceeded its rate limit so far that every request would be rejected.
    #[error("its address has used up its budget")]
    Budget,
}

/// An open connection; counted until dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    accounts: Arc<Accounts>,
    account: Arc<Account>,
}

impl ConnectionSlot {
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.accounts.leave(&self.account, Instant::now());
    }
}

#[derive(Debug)]
pub(super) struct Accounts {
    limits: Limits,
    proxies: Vec<Subnet>,
    connections: AtomicUsize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    by_address: HashMap<IpAddr, Entry>,
    /// Accounts without a connection, by the time when their budget is full.
    absent: BTreeSet<(Instant, IpAddr)>,
}

#[derive(Debug)]
struct Entry {
    account: Arc<Account>,
    connections: usize,
    /// Its key in `absent`.
    full_at: Instant,
}

impl Accounts {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            limits: config.limits.clone(),
            proxies: config.proxies.clone(),
            connections: AtomicUsize::new(0),
            table: Mutex::default(),
        }
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn len(&self) -> usize {
        self.table.lock().by_address.len()
    }

    /// Admits a connection of `peer`, within all limits.
    pub(super) fn connect(self: &Arc<Self>, peer: IpAddr) -> Result<ConnectionSlot, ConnectError> {
        let account = self.enter(peer, Instant::now())?;
        Ok(ConnectionSlot { accounts: Arc::clone(self), account })
    }

    /// Counts a connection; pass the result to [`Accounts::leave`].
    fn enter(&self, peer: IpAddr, now: Instant) -> Result<Arc<Account>, ConnectError> {
        if self.connections.fetch_add(1, Ordering::Relaxed) >= self.limits.connections_max {
            self.connections.fetch_sub(1, Ordering::Relaxed);
            return Err(ConnectError::Server);
        }
        if self.proxies.iter().any(|range| range.contains(peer)) {
            return Ok(Arc::new(Account::new(None, &self.limits, now)));
        }
        self.enter_address(customer(peer), now).inspect_err(|_| {
            self.connections.fetch_sub(1, Ordering::Relaxed);
        })
    }

    fn enter_address(&self, address: IpAddr, now: Instant) -> Result<Arc<Account>, ConnectError> {
        if self.limits.connections_per_ip_max == 0 {
            return Err(ConnectError::Address);
        }
        let mut table = self.table.lock();
        let Table { by_address, absent } = &mut *table;
        let entry = by_address.entry(address).or_insert_with(|| Entry {
            account: Arc::new(Account::new(Some(address), &self.limits, now)),
            connections: 0,
            full_at: now,
        });
        if entry.connections >= self.limits.connections_per_ip_max {
            return Err(ConnectError::Address);
        }
        {
            let mut budget = entry.account.budget.lock();
            if budget.admit(self.limits.throttle_max, now) == Admission::Reject {
                return Err(ConnectError::Budget);
            }
            budget.spend(CONNECTION_UNITS, now);
        }
        if entry.connections == 0 {
            absent.remove(&(entry.full_at, address));
        }
        entry.connections += 1;
        Ok(Arc::clone(&entry.account))
    }

    fn leave(&self, account: &Account, now: Instant) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
        let Some(address) = account.address else { return };
        let mut table = self.table.lock();
        let Table { by_address, absent } = &mut *table;
        let Some(entry) = by_address.get_mut(&address) else { return };
        entry.connections -= 1;
        if entry.connections == 0 {
            entry.full_at = now + account.budget.lock().full_in(now);
            absent.insert((entry.full_at, address));
        }
        while absent.len() > ABSENT_MAX
            || absent.first().is_some_and(|(full_at, _)| *full_at <= now)
        {
            let Some((_, address)) = absent.pop_first() else { break };
            by_address.remove(&address);
        }
    }
}

/// A client within this many units of its full budget counts as light and has priority.
const LIGHT_UNITS: f64 = 300.0;

/// Debt is capped at the refill of this many seconds, however long one request took.
const DEBT_SECONDS_MAX: f64 = 60.0;

/// Initial level of a new client, of the light units.
const NEW_CLIENT_UNITS: f64 = 100.0;

/// Share of the light units needed before a client counts as light again.
const RETURN_SHARE: f64 = 2.0 / 3.0;

/// Number of units that a light client may be below a full budget of `burst`.
fn light_units(burst: f64) -> f64 {
    LIGHT_UNITS.min(burst / 2.0)
}

/// A token bucket: refilled over time, drained by requests.
#[derive(Debug)]
pub(super) struct RateLimit {
    level: f64,
    burst: f64,
    per_second: f64,
    at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Admission {
    /// Process now, with this priority.
    Now(Priority),
    Delay(Duration),
    Reject,
}

impl RateLimit {
    pub(super) fn new(limits: &Limits, now: Instant) -> Self {
        let burst = f64::from(limits.units_burst);
        // Reconnecting does not make a client light.
        let level = burst - light_units(burst) + NEW_CLIENT_UNITS.min(light_units(burst));
        Self { level, burst, per_second: f64::from(limits.units_per_second), at: now }
    }

    pub(super) fn spend(&mut self, units: f64, now: Instant) {
        self.fill(now);
        self.level = (self.level - units).max(-DEBT_SECONDS_MAX * self.per_second.max(1.0));
    }

    /// Admission decision for the next request; rejects it if the delay would exceed `throttle_max`.
    pub(super) fn admit(&mut self, throttle_max: Duration, now: Instant) -> Admission {
        if self.per_second <= 0.0 {
            return Admission::Now(Priority::High);
        }
        self.fill(now);
        if self.level >= self.burst - light_units(self.burst) {
            return Admission::Now(Priority::High);
        }
        if self.level >= 0.0 {
            return Admission::Now(Priority::Normal);
        }
        let wait = -self.level / self.per_second;
        if wait <= throttle_max.as_secs_f64() {
            Admission::Delay(Duration::from_secs_f64(wait))
        } else {
            Admission::Reject
        }
    }

    /// Time until the client counts as light again. The threshold is higher than for staying light, as a hysteresis.
    pub(super) fn light_in(&mut self, now: Instant) -> Duration {
        if self.per_second <= 0.0 {
            return Duration::ZERO;
        }
        self.fill(now);
        let missing = self.burst - light_units(self.burst) * (1.0 - RETURN_SHARE) - self.level;
        Duration::from_secs_f64((missing / self.per_second).max(0.0))
    }

    pub(super) fn full_in(&mut self, now: Instant) -> Duration {
        if self.per_second <= 0.0 {
            return Duration::ZERO;
        }
        self.fill(now);
        Duration::from_secs_f64(((self.burst - self.level) / self.per_second).max(0.0))
    }

    fn fill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.level = (self.level + elapsed * self.per_second).min(self.burst);
    }
}

/// Cost of requests: a fixed part, processing time, and bytes transferred.
pub(super) fn units(requests: usize, work: Duration, bytes: usize) -> f64 {
    requests as f64 + work.as_secs_f64() * 10_000.0 + bytes as f64 / 4096.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(change: impl FnOnce(&mut Config)) -> Accounts {
        let mut config = Config::default();
        (config.limits.units_per_second, config.limits.units_burst) = (100, 1000);
        config.limits.connections_per_ip_max = 2;
        change(&mut config);
        Accounts::new(&config)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_have_a_limit_of_connections() {
        let accounts = accounts(|config| config.limits.connections_max = 5);
        let now = Instant::now();
        let enter = |text: &str| accounts.enter(ip(text), now);
        let first = enter("2001:db8::1").unwrap();
        enter("2001:db8::2").unwrap();
        assert_eq!(enter("2001:db8::3").unwrap_err(), ConnectError::Address);
        enter("2001:db8:0:1::3").unwrap();
        enter("127.0.0.1").unwrap();
        enter("::ffff:127.0.0.1").unwrap();
        assert_eq!(enter("127.0.0.1").unwrap_err(), ConnectError::Server);
        accounts.leave(&first, now);
        enter("2001:db8::3").unwrap();
        assert_eq!(accounts.connections(), 5);
    }

    #[test]
    fn reconnecting_does_not_fill_the_budget() {
        let accounts = accounts(|_| {});
        let now = Instant::now();
        let account = accounts.enter(ip("203.0.113.9"), now).unwrap();
        account.budget.lock().spend(1500.0, now);
        accounts.leave(&account, now);
        assert_eq!(accounts.enter(ip("203.0.113.9"), now).unwrap_err(), ConnectError::Budget);
        assert!(accounts.enter(ip("203.0.113.8"), now).is_ok(), "others are not concerned");
        // The longest wait is five seconds: at -500 units it may reconnect, and is delayed.
        let later = now + Duration::from_secs(3);
        let same = accounts.enter(ip("203.0.113.9"), later).unwrap();
        assert!(Arc::ptr_eq(&same, &account));
        let admission = same.budget.lock().admit(Duration::from_secs(5), later);
        assert!(matches!(admission, Admission::Delay(_)), "{admission:?}");
    }

    #[test]
    fn an_account_is_dropped_when_its_budget_is_full() {
        let accounts = accounts(|_| {});
        let now = Instant::now();
        let after = |seconds: u64| now + Duration::from_secs(seconds);
        let account = accounts.enter(ip("203.0.113.9"), now).unwrap();
        let other = accounts.enter(ip("203.0.113.8"), now).unwrap();
        account.budget.lock().spend(700.0, now);
        // 98 and 798 of 1,000 units remain: refilling takes nine seconds and two.
        accounts.leave(&account, now);
        accounts.leave(&other, now);
        assert_eq!(accounts.len(), 2);
        let third = accounts.enter(ip("203.0.113.7"), after(5)).unwrap();
        accounts.leave(&third, after(5));
        assert_eq!(accounts.len(), 2, "the second has gone");
        let fourth = accounts.enter(ip("203.0.113.6"), after(20)).unwrap();
        accounts.leave(&fourth, after(20));
        assert_eq!(accounts.len(), 1, "all but the last, which has just paid for its connection");
    }

    #[test]
    fn of_too_many_accounts_the_least_debt_is_dropped_first() {
        let accounts = accounts(|_| {});
        let now = Instant::now();
        let debtor = accounts.enter(ip("203.0.113.9"), now).unwrap();
        debtor.budget.lock().spend(1500.0, now);
        accounts.leave(&debtor, now);
        for number in 0..ABSENT_MAX as u32 + 1000 {
            let peer = IpAddr::V4((0x0b00_0000 + number).into());
            let account = accounts.enter(peer, now).unwrap();
            accounts.leave(&account, now);
        }
        assert_eq!(accounts.len(), ABSENT_MAX);
        assert_eq!(accounts.enter(ip("203.0.113.9"), now).unwrap_err(), ConnectError::Budget);
    }

    #[test]
    fn users_behind_a_proxy_have_an_account_for_each_connection() {
        let accounts = accounts(|config| config.proxies.push("10.0.0.0/8".parse().unwrap()));
        let now = Instant::now();
        let all: Vec<_> = (0..10).map(|_| accounts.enter(ip("10.1.2.3"), now).unwrap()).collect();
        all[0].budget.lock().spend(1e6, now);
        assert_eq!(all[1].admit(Duration::ZERO), Admission::Now(Priority::High));
        assert_eq!(accounts.len(), 0);
        for account in &all {
            accounts.leave(account, now);
        }
        assert_eq!(accounts.connections(), 0);
        // Other loopback addresses have no exemption.
        let account = accounts.enter(ip("127.66.0.1"), now).unwrap();
        assert_eq!((account.address, accounts.len()), (Some(ip("127.66.0.1")), 1));
    }

    #[test]
    fn subscriptions_have_a_limit() {
        let account = Account::new(None, &Limits::default(), Instant::now());
        assert!(account.reserve_subscription(2) && account.reserve_subscription(2));
        assert!(!account.reserve_subscription(2));
        account.release_subscriptions(1);
        assert!(account.reserve_subscription(2));
    }

    #[test]
    fn a_client_is_first_delayed_and_then_rejected() {
        let limits = Limits { units_per_second: 100, units_burst: 1000, ..Limits::default() };
        let start = Instant::now();
        let most = Duration::from_secs(2);
        let mut budget = RateLimit::new(&limits, start);
        assert_eq!(budget.admit(most, start), Admission::Now(Priority::High));
        // The initial level was 800 of 1,000.
        budget.spend(500.0, start);
        assert_eq!(budget.admit(most, start), Admission::Now(Priority::Normal));
        budget.spend(400.0, start);
        assert_eq!(budget.admit(most, start), Admission::Delay(Duration::from_secs(1)));
        budget.spend(200.0, start);
        assert_eq!(budget.admit(most, start), Admission::Reject);
        assert_eq!(
            budget.admit(most, start + Duration::from_secs(4)),
            Admission::Now(Priority::Normal)
        );
        assert_eq!(
            budget.admit(most, start + Duration::from_mins(1)),
            Admission::Now(Priority::High)
        );
        // The level never exceeds the burst.
        budget.spend(1001.0, start + Duration::from_mins(10));
        assert!(matches!(budget.admit(most, start + Duration::from_mins(10)), Admission::Delay(_)));
    }

    #[test]
    fn no_budget_is_no_limit() {
        let limits = Limits { units_per_second: 0, ..Limits::default() };
        let start = Instant::now();
        let mut budget = RateLimit::new(&limits, start);
        budget.spend(1e9, start);
        assert_eq!(budget.admit(Duration::ZERO, start), Admission::Now(Priority::High));
    }

    #[test]
    fn work_and_bytes_cost() {
        assert!((units(1, Duration::from_millis(1), 8192) - 13.0).abs() < 1e-9);
    }
}
