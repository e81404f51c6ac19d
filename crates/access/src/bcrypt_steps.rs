//! bcrypt in steps (Provos and Mazières, "A Future-Adaptable Password Scheme", 1999), on the Blowfish of RustCrypto.
//!
//! The crate `bcrypt` computes a hash as a whole, some 50 ms. A kernel that preempts lazily leaves the core to it until the next tick, for
//! which requests of others wait up to 4 ms; so this gives the core away between two rounds. It writes and reads jBCrypt's text form.

use base64ct::{Base64Bcrypt, Encoding};
use bcrypt::HashParts;
use blowfish::Blowfish;
use halcyon_io::give_way;
use subtle::ConstantTimeEq;

/// What two keys that are expanded take, in the units of [`give_way`]: some 40 µs, as long as it allows between two pauses.
const ROUND: usize = 32 << 10;
/// Of a password and its NUL, what counts.
const KEY_MAX: usize = 72;
/// "OrpheanBeholderScryDoubt"
const TEXT: [u32; 6] =
    [0x4f72_7068, 0x6561_6e42, 0x6568_6f6c, 0x6465_7253, 0x6372_7944, 0x6f75_6274];

/// As jBCrypt stores it.
pub(crate) fn hash(password: &str, cost: u32, salt: [u8; 16]) -> String {
    let hash = compute(password, cost, salt);
    let [salt, hash] = [&salt[..], &hash].map(Base64Bcrypt::encode_string);
    format!("$2a${cost:02}${salt}{hash}")
}

/// Whether a stored hash is that of the password. One that cannot be read is of none.
pub(crate) fn verify(password: &str, stored: &str) -> bool {
    let Ok(parts) = stored.parse::<HashParts>() else { return false };
    let made = hash(password, parts.get_cost(), parts.get_salt_raw());
    made.as_bytes().ct_eq(stored.as_bytes()).into()
}

fn compute(password: &str, cost: u32, salt: [u8; 16]) -> [u8; 23] {
    let key: Vec<u8> = password.bytes().take(KEY_MAX).chain([0]).take(KEY_MAX).collect();
    let mut state = Blowfish::bc_init_state();
    state.salted_expand_key(&salt, &key);
    for _ in 0..1u64 << cost {
        state.bc_expand_key(&key);
        state.bc_expand_key(&salt);
        give_way(ROUND);
    }
    let mut hash = [0; 23];
    let mut to = hash.iter_mut();
    for pair in TEXT.chunks_exact(2) {
        let &[left, right] = pair else { continue };
        let mut block = [left, right];
        for _ in 0..64 {
            block = state.bc_encrypt(block);
        }
        // The last of the 24 bytes is not stored.
        let made = block.into_iter().flat_map(u32::to_be_bytes);
        to.by_ref().zip(made).for_each(|(to, byte)| *to = byte);
    }
    hash
}

#[cfg(test)]
mod tests {
    use bcrypt::Version;

    use super::*;

    /// Proves that the steps compute what the crate computes: of an empty password, of long ones, of one with NUL, at each cost.
    #[test]
    fn steps_compute_bcrypt() {
        let long = "é".repeat(60);
        for (cost, password) in [(4, ""), (5, "secret"), (6, "a\0b"), (4, &long), (4, &long[..72])]
        {
            let salt = std::array::from_fn(|at| (at * 31) as u8 ^ cost as u8);
            let whole = bcrypt::hash_with_salt(password, cost, salt).unwrap();
            let whole = whole.format_for_version(Version::TwoA);
            assert_eq!(hash(password, cost, salt), whole, "{password}");
            assert!(verify(password, &whole) && bcrypt::verify(password, &whole).unwrap());
            assert!(!verify("another", &whole));
        }
        assert!(!verify("secret", "$2a$04$short"));
    }
}
