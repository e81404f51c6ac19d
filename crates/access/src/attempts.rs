//! Logins by where they come from: how many of one address are compared at once, and how late its refusals are sent.
//!
//! 1. An address has at most half of the places of the pool that hashes: no single client keeps others from logging in.
//! 2. From the fifth refusal of one role to one address on, each is sent later than the one before, up to [`DELAY_MAX`]. A minute without
//!    a refusal forgives all.
//! 3. A login that succeeds is not delayed: instances with an old password do not slow the others. It forgives nothing, because an
//!    attacker may have an account.
//!
//! An address of IPv6 stands for its network of 64 bits, which one customer has whole.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use halcyon_io::Mutex;
use halcyon_io::clock::{Instant, now};

use crate::cidr;

/// Refusals that are sent at once.
const FREE: u32 = 4;
const DELAY_FIRST: Duration = Duration::from_millis(100);
/// Chosen: drivers wait for five seconds and more, and then tell of a timeout instead of the refusal.
const DELAY_MAX: Duration = Duration::from_secs(2);
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);
/// Roles and addresses that are remembered; clients choose both.
const REFUSED_MAX: usize = 10_000;

#[derive(Debug)]
pub struct Attempts {
    /// Logins of one address that may be compared at once.
    most: usize,
    random: RandomState,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pending: HashMap<IpAddr, usize>,
    /// By the hash of address and role: names may be long.
    refused: HashMap<u64, Refused>,
}

#[derive(Debug, Clone, Copy)]
struct Refused {
    count: u32,
    last: Instant,
}

/// A login that is compared.
#[derive(Debug)]
pub struct Attempt<'a> {
    attempts: &'a Attempts,
    network: IpAddr,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut state = self.attempts.state.lock();
        let left = state.pending.get_mut(&self.network).map(|pending| {
            *pending = pending.saturating_sub(1);
            *pending
        });
        if left == Some(0) {
            state.pending.remove(&self.network);
        }
    }
}

impl Attempts {
    pub(crate) fn new(most: usize) -> Attempts {
        Attempts { most: most.max(1), random: RandomState::new(), state: Mutex::default() }
    }

    /// `None`: the address has as many logins as it may have.
    pub fn begin(&self, address: IpAddr) -> Option<Attempt<'_>> {
        let network = network(address);
        let mut state = self.state.lock();
        let pending = state.pending.entry(network).or_default();
        if *pending >= self.most {
            return None;
        }
        *pending += 1;
        Some(Attempt { attempts: self, network })
    }

    /// How long the refusal of a role is held back.
    pub fn refuse(&self, address: IpAddr, role: &str) -> Duration {
        let key = self.random.hash_one((network(address), role));
        let (now, mut state) = (now(), self.state.lock());
        let is_remembered = |refused: &Refused| now - refused.last < FORGIVEN_AFTER;
        if state.refused.len() >= REFUSED_MAX {
            state.refused.retain(|_, refused| is_remembered(refused));
        }
        let before = state.refused.get(&key).filter(|refused| is_remembered(refused));
        let count = before.map_or(0, |refused| refused.count).saturating_add(1);
        if before.is_some() || state.refused.len() < REFUSED_MAX {
            state.refused.insert(key, Refused { count, last: now });
        }
        match count.checked_sub(FREE + 1) {
            None => Duration::ZERO,
            Some(doublings) => {
                let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
                DELAY_FIRST.saturating_mul(factor).min(DELAY_MAX)
            }
        }
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address @ IpAddr::V6(_) => cidr::network(address, 64),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    /// Proves that one address cannot take the places of others, and gets its own back.
    #[test]
    fn an_address_has_its_share() {
        let attempts = Attempts::new(2);
        let (first, _second) = (attempts.begin(HERE).unwrap(), attempts.begin(HERE).unwrap());
        assert!(attempts.begin(HERE).is_none());
        assert!(attempts.begin(THERE).is_some());
        drop(first);
        assert!(attempts.begin(HERE).is_some());
        assert_eq!(attempts.state.lock().pending.len(), 1);
    }

    /// Proves that neighbours in an IPv6 network count as one, and that an IPv4 address is one in both of its forms.
    #[test]
    fn networks_count() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), HERE);
    }

    /// Proves that the first refusals come at once, later ones ever later up to a bound, and that other roles and addresses pay nothing.
    #[test]
    fn refusals_are_delayed() {
        let attempts = Attempts::new(2);
        let delays: Vec<u128> =
            (0..40).map(|_| attempts.refuse(HERE, "admin").as_millis()).collect();
        assert_eq!(delays[..9], [0, 0, 0, 0, 100, 200, 400, 800, 1600]);
        assert!(delays[9..].iter().all(|delay| *delay == 2000), "{delays:?}");
        assert_eq!(attempts.refuse(HERE, "app"), Duration::ZERO);
        assert_eq!(attempts.refuse(THERE, "admin"), Duration::ZERO);
    }

    /// Proves that names that a client makes up do not fill the memory, nor make it forget whom it delays.
    #[test]
    fn memory_is_bounded() {
        let attempts = Attempts::new(2);
        for _ in 0..20 {
            let _ = attempts.refuse(HERE, "admin");
        }
        for name in 0..2 * REFUSED_MAX {
            let _ = attempts.refuse(HERE, &name.to_string());
        }
        assert!(attempts.state.lock().refused.len() <= REFUSED_MAX);
        assert_eq!(attempts.refuse(HERE, "admin"), DELAY_MAX);
    }
}
