//! JSON-RPC lines, methods, versions, errors.

pub(super) mod error;
pub(super) mod methods;
pub(super) mod params;
pub(super) mod request;
pub(super) mod version;

pub(super) use assay_json::Out;
pub(super) use error::{Code, RpcError};
pub(super) use params::Params;
pub(super) use version::Version;

/// Software name in the protocol.
pub(super) const SOFTWARE: &str = concat!("Assay ", env!("CARGO_PKG_VERSION"));
