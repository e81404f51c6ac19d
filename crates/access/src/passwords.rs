//! Passwords: bcrypt as jBCrypt reads it, on threads of their own.
//!
//! A hash takes some 50 ms, in steps ([`bcrypt_steps`]). At most [`WAITING_MAX`] of a thread wait; what comes on top is refused before it
//! is hashed, so that a flood of logins costs others nothing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use halcyon_io::{Pool, random};

use crate::bcrypt_steps;
use crate::password_policy::PasswordPolicy;

/// Hashes that wait for one thread. Chosen: the last one waits for some three seconds; ten times as many would outlast the patience of
/// drivers.
const WAITING_MAX: usize = 64;
/// The costliest hash that a statement may store: a second of a thread for each login, with which its own role could block others.
const COST_MAX: u32 = 14;

#[derive(Debug)]
pub struct Hashers {
    threads: usize,
    rounds: u32,
    /// Started with the first hash.
    pool: OnceLock<Threads>,
    pending: AtomicUsize,
}

struct Threads(Pool);

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Threads")
    }
}

/// Why a password was neither hashed nor compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error(
        "too many logins and password changes at once; try again later, or raise native_transport_max_auth_threads"
    )]
    Full,
    #[error("the password cannot be hashed: {0}")]
    Failed(String),
}

/// One that waits or runs.
struct Pending<'a>(&'a AtomicUsize);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A password that satisfies a policy, of the kernel's randomness; `None`: none was found.
pub fn generated(policy: &PasswordPolicy) -> Option<String> {
    let mut is_random = true;
    let mut random = |below: usize| {
        let mut bytes = [0; 8];
        is_random &= getrandom::fill(&mut bytes).is_ok();
        let scaled = u128::from(u64::from_ne_bytes(bytes)) * below as u128;
        usize::try_from(scaled >> 64).unwrap_or(0)
    };
    let password = policy.generate(&mut random);
    password.filter(|_| is_random)
}

impl Hashers {
    pub(crate) fn new(threads: usize, rounds: u32) -> Hashers {
        let (pool, pending) = (OnceLock::new(), AtomicUsize::new(0));
        Hashers { threads: threads.max(1), rounds, pool, pending }
    }

    /// Logins and password changes that wait or run at once.
    pub(crate) fn places(&self) -> usize {
        self.threads * WAITING_MAX
    }

    /// The hash to store.
    pub async fn hash(&self, password: String) -> Result<String, Full> {
        let (rounds, salt) = (self.rounds, salt());
        self.run(move || bcrypt_steps::hash(&password, rounds, salt)).await
    }

    /// Whether a stored hash is that of the password. One that cannot be read is of none.
    pub async fn verify(&self, password: String, hash: String) -> Result<bool, Full> {
        self.run(move || is_read_by_cassandra(&hash) && bcrypt_steps::verify(&password, &hash))
            .await
    }

    /// Takes as long as a comparison: the time of a refusal does not tell whether there is such a role.
    pub async fn pretend(&self, password: String) -> Result<(), Full> {
        self.hash(password).await.map(drop)
    }

    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Full> {
        let before = self.pending.fetch_add(1, Relaxed);
        let _pending = Pending(&self.pending);
        if before >= self.places() {
            return Err(Full::Full);
        }
        let pool = self.pool.get_or_init(|| Threads(Pool::start("auth", self.threads))).0;
        pool.run(job).await.map_err(|gone| Full::Failed(gone.to_string()))
    }
}

fn salt() -> [u8; 16] {
    let mut random = random();
    let (high, low) = (random.next_u64(), random.next_u64());
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

/// jBCrypt refuses other versions: what it cannot read would lock the role out when the directory goes back to Cassandra.
fn is_read_by_cassandra(hash: &str) -> bool {
    hash.starts_with("$2a$")
}

/// Whether `HASHED PASSWORD` may store it; if not, why. Nothing is hashed to find out.
pub fn hash_is_readable(hash: &str) -> Result<(), String> {
    let invalid = || "Invalid hashed password value. Please use jBcrypt.".to_owned();
    let parts = hash.parse::<bcrypt::HashParts>().map_err(|_| invalid())?;
    let of_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"./".contains(byte);
    let is_whole = hash.len() == 60
        && is_read_by_cassandra(hash)
        && hash.as_bytes().iter().skip(7).all(of_base64);
    match parts.get_cost() {
        4..=COST_MAX if is_whole => Ok(()),
        cost @ 15..=31 if is_whole => Err(format!(
            "Invalid hashed password value. Its cost is {cost}; at most {COST_MAX} is allowed."
        )),
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use halcyon_io::block_on;

    use super::*;

    /// Proves that a hash is of jBCrypt's version and of its password only, and that others are not compared.
    #[test]
    fn hashes_are_jbcrypts() {
        block_on(async {
            let hashers = Hashers::new(1, 4);
            let hash = hashers.hash("secret".to_owned()).await.unwrap();
            assert!(hash.starts_with("$2a$04$") && hash.len() == 60, "{hash}");
            assert_eq!(hash_is_readable(&hash), Ok(()));
            let verify =
                |password: &str, hash: &str| hashers.verify(password.to_owned(), hash.to_owned());
            assert_eq!(verify("secret", &hash).await, Ok(true));
            assert_eq!(verify("Secret", &hash).await, Ok(false));
            assert_eq!(verify("", &hash).await, Ok(false));
            assert_eq!(verify("secret", &hash.replace("$2a$", "$2b$")).await, Ok(false));
            assert_eq!(verify("secret", "secret").await, Ok(false));
            assert_ne!(hashers.hash("secret".to_owned()).await.unwrap(), hash);
            // That of Cassandra's default role, made by jBCrypt.
            let jbcrypt = "$2a$10$vb/O3/RPwwm2wlnmmyBkDOZ3lfsGzGGIY4lY1qJyQ6nFc3xUk1S5S";
            assert_eq!(hash_is_readable(jbcrypt), Ok(()));
        });
    }

    /// Proves that a hash that Cassandra cannot read, or that takes minutes, is not stored.
    #[test]
    fn unreadable_hashes_are_refused() {
        let hash = "$2a$10$vb/O3/RPwwm2wlnmmyBkDOZ3lfsGzGGIY4lY1qJyQ6nFc3xUk1S5S";
        for wrong in [
            String::new(),
            "secret".to_owned(),
            hash.replace("$2a$", "$2b$"),
            hash.replace("$10$", "$03$"),
            hash.replace("$10$", "$31$"),
            hash.replace("$10$", "$xx$"),
            format!("{hash}x"),
            hash.replace("vb/O3", "vb\0O3"),
            hash[..59].to_owned(),
        ] {
            assert!(hash_is_readable(&wrong).is_err(), "{wrong}");
        }
    }

    /// Proves that a login is refused before it is hashed when as many wait as may.
    #[test]
    fn a_full_pool_refuses() {
        block_on(async {
            let hashers = Hashers::new(1, 4);
            hashers.pending.store(WAITING_MAX, Relaxed);
            let refused = hashers.verify("secret".to_owned(), "x".to_owned()).await;
            assert_eq!(refused, Err(Full::Full));
            assert_eq!(hashers.pending.load(Relaxed), WAITING_MAX);
        });
    }
}
