//! The language: lines of JSON-RPC, versions, errors.

pub(super) mod error;
pub(super) mod json;
pub(super) mod params;
pub(super) mod request;
pub(super) mod version;

pub(super) use error::{Code, RpcError};
pub(super) use json::Out;
pub(super) use params::Params;
pub(super) use version::Version;
