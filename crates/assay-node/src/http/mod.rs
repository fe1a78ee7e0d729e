//! HTTP/1.1 server: access control, limits and scheduling of calls.

mod auth;
mod body;
mod open;
mod penalty;
mod server;
mod timeout_stream;
mod whitelist;

pub use self::auth::{AuthError, Authenticator, CookieFile, RpcAuth, RpcAuthParseError};
pub(crate) use self::open::OPEN_THREADS;
pub(crate) use self::server::unable_to_bind;
pub use self::server::{BindError, Limits, Server};
pub use self::whitelist::Whitelist;
pub use assay_electrum::address::{Subnet, SubnetParseError};
