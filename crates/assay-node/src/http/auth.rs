//! RPC credentials: the cookie file, `rpcuser`/`rpcpassword` and `rpcauth` of Bitcoin Core (`httprpc.cpp`,
//! `rpc/request.cpp`, `share/rpcauth/rpcauth.py`).

use std::fs::{self, OpenOptions, Permissions};
use std::hint::black_box;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::whitelist::Whitelist;

const COOKIE_USER: &str = "__cookie__";

#[derive(Debug, Default)]
pub struct Authenticator {
    entries: Vec<RpcAuth>,
    whitelist: Whitelist,
}

/// Salted password hash in the format of Core's `rpcauth`, `user:salt$hash`: HMAC-SHA-256 of the password under the salt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcAuth {
    user: String,
    /// Used as text, not decoded.
    salt: String,
    /// Lowercase hexadecimal digits. No password matches any other text, as in Core, which does not validate it.
    hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid rpcauth entry for user {user:?}: expected user:salt$hash")]
pub struct RpcAuthParseError {
    /// Text before the first colon; the rest may be secret.
    pub user: String,
}

#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("no random bytes for the password salt or the cookie: {0}")]
    Random(getrandom::Error),
    #[error(transparent)]
    Entry(#[from] RpcAuthParseError),
    #[error("cannot write the cookie file {}: {source}", path.display())]
    Cookie { path: PathBuf, source: io::Error },
}

impl Authenticator {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a user; keeps only a salted hash of the password.
    ///
    /// # Errors
    /// No random bytes for the salt.
    pub fn add_password(&mut self, user: &str, password: &str) -> Result<(), AuthError> {
        let salt = random_hex::<16>()?;
        let hash = keyed_hex(&salt, password);
        self.entries.push(RpcAuth { user: user.to_owned(), salt, hash });
        Ok(())
    }

    pub fn add_entry(&mut self, entry: RpcAuth) {
        self.entries.push(entry);
    }

    pub fn set_whitelist(&mut self, whitelist: Whitelist) {
        self.whitelist = whitelist;
    }

    pub(crate) fn allows(&self, user: &str, method: &str) -> bool {
        self.whitelist.allows(user, method)
    }

    /// Checks an `Authorization` header; returns the user name if valid. All wrong passwords of a user take the same time.
    pub(crate) fn check(&self, header: &[u8]) -> Option<String> {
        let encoded = header.strip_prefix(b"Basic ")?.trim_ascii();
        let decoded = STANDARD.decode(encoded).ok()?;
        let colon = decoded.iter().position(|&byte| byte == b':')?;
        let (user, password) = (&decoded[..colon], &decoded[colon + 1..]);
        let known = self.entries.iter().any(|entry| {
            equal_in_constant_time(entry.user.as_bytes(), user)
                && equal_in_constant_time(
                    keyed_hex(&entry.salt, password).as_bytes(),
                    entry.hash.as_bytes(),
                )
        });
        known.then(|| String::from_utf8_lossy(user).into_owned())
    }
}

impl FromStr for RpcAuth {
    type Err = RpcAuthParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(':').collect();
        let secret: Option<Vec<&str>> = parts.get(1).map(|secret| secret.split('$').collect());
        match (&parts[..], secret.as_deref()) {
            ([user, _], Some([salt, hash])) => {
                Ok(Self { user: (*user).into(), salt: (*salt).into(), hash: (*hash).into() })
            }
            _ => Err(RpcAuthParseError { user: parts[0].to_owned() }),
        }
    }
}

/// Cookie: a random password in a file that only the owner of the data directory can read. Dropping the value removes the file.
#[derive(Debug)]
pub struct CookieFile {
    path: PathBuf,
}

impl CookieFile {
    /// Writes a new cookie to `path` with permission bits `mode`, atomically, and registers it with `authenticator`.
    ///
    /// # Errors
    /// No random bytes, or a write error.
    pub fn create(
        path: &Path,
        mode: u32,
        authenticator: &mut Authenticator,
    ) -> Result<Self, AuthError> {
        let secret = random_hex::<32>()?;
        let temporary = path.with_extension("tmp");
        let write = || -> io::Result<()> {
            // A file left by a killed process could have wider permissions: create a new one.
            match fs::remove_file(&temporary) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            // Independent of the umask.
            file.set_permissions(Permissions::from_mode(mode))?;
            file.write_all(format!("{COOKIE_USER}:{secret}").as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, path)
        };
        write().map_err(|source| AuthError::Cookie { path: path.to_owned(), source })?;
        authenticator.add_password(COOKIE_USER, &secret)?;
        Ok(Self { path: path.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for CookieFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!("Unable to remove the cookie file {}: {error}", self.path.display());
        }
    }
}

/// HMAC-SHA-256 of the password under the salt, hexadecimal.
fn keyed_hex(salt: &str, password: impl AsRef<[u8]>) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(salt.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(password.as_ref());
    faster_hex::hex_string(&mac.finalize().into_bytes())
}

fn random_hex<const N: usize>() -> Result<String, AuthError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(AuthError::Random)?;
    Ok(faster_hex::hex_string(&bytes))
}

/// Compares in constant time for equal lengths. The length is not hidden.
fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && black_box(a.iter().zip(b).fold(0, |acc, (x, y)| black_box(acc | (x ^ y)))) == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn basic(credentials: &str) -> Vec<u8> {
        format!("Basic {}", STANDARD.encode(credentials)).into_bytes()
    }

    #[test]
    fn rpcauth_entries_of_bitcoin_core_are_understood() {
        // Salt and hash as printed by `rpcauth.py`: HMAC-SHA-256 keyed with the salt's text.
        let entry = format!("alice:8c3f5a1d0e${}", keyed_hex("8c3f5a1d0e", "hunter2"));
        let mut authenticator = Authenticator::new();
        authenticator.add_entry(entry.parse().unwrap());
        for (header, user) in [
            (basic("alice:hunter2"), Some("alice")),
            (basic("alice:hunter3"), None),
            (basic("alice:"), None),
            (basic("bob:hunter2"), None),
            (basic("alicehunter2"), None),
            (b"Basic !!".to_vec(), None),
            (b"Bearer abc".to_vec(), None),
            (Vec::new(), None),
        ] {
            assert_eq!(authenticator.check(&header).as_deref(), user);
        }
    }

    #[test]
    fn hmac_agrees_with_rfc_4231() {
        // RFC 4231, test case 2.
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(keyed_hex("Jefe", "what do ya want for nothing?"), expected);
    }

    #[test]
    fn passwords_may_contain_colons_and_users_may_not() {
        let mut authenticator = Authenticator::new();
        authenticator.add_password("u", "a:b:c").unwrap();
        assert_eq!(authenticator.check(&basic("u:a:b:c")).as_deref(), Some("u"));
        assert_eq!(authenticator.check(&basic("u:a:b")), None);
    }

    #[test]
    fn malformed_rpcauth_entries_name_the_user_and_hide_the_rest() {
        let hash = "0".repeat(64);
        for text in [
            "alice".to_owned(),
            "alice:salt".to_owned(),
            format!("alice:sa:lt${hash}"),
            format!("alice:salt$x${hash}"),
        ] {
            let error = text.parse::<RpcAuth>().unwrap_err();
            assert_eq!(error.user, "alice");
            assert!(!error.to_string().contains("sa:lt"));
        }
    }

    #[test]
    fn short_rpcauth_hash_never_matches() {
        for text in ["alice:salt$12", "alice:$", "alice:salt$gg"] {
            let mut authenticator = Authenticator::new();
            authenticator.add_entry(text.parse().unwrap());
            assert_eq!(authenticator.check(&basic("alice:")), None, "{text}");
        }
    }

    #[test]
    fn cookie_is_private_atomic_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".cookie");
        fs::write(path.with_extension("tmp"), "leftover").unwrap();
        let mut authenticator = Authenticator::new();
        let cookie = CookieFile::create(&path, 0o600, &mut authenticator).unwrap();
        let text = fs::read_to_string(cookie.path()).unwrap();
        let (user, secret) = text.split_once(':').unwrap();
        assert_eq!((user, secret.len()), (COOKIE_USER, 64));
        assert!(secret.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(authenticator.check(&basic(&text)).as_deref(), Some(COOKIE_USER));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        drop(cookie);
        assert!(!path.exists());
    }

    #[test]
    fn unwritable_cookie_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("missing").join(".cookie");
        let error = CookieFile::create(&path, 0o600, &mut Authenticator::new()).unwrap_err();
        assert!(matches!(error, AuthError::Cookie { path: p, .. } if p == path));
    }
}
