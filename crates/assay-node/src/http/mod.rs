//! The HTTP/1.1 server: who may talk to it, how much it takes, and where the work runs.

mod auth;
mod body;
mod penalty;
mod server;
mod whitelist;

pub use self::auth::{AuthError, Authenticator, CookieFile, RpcAuth, RpcAuthParseError};
pub use self::server::{BindError, Limits, Server};
pub use self::whitelist::Whitelist;
pub use assay_electrum::address::{Subnet, SubnetParseError};
