//! Writes JSON straight into a byte buffer.
//!
//! A response may be gigabytes (a block of 256 MB with its transactions), so no value tree is built. Members appear in the order
//! written; amounts are exact decimals and never pass through a float.
//!
//! Two interfaces: [`Json`] is the position of one value, which must be filled, and places the commas; [`Out`] gets the text
//! between values from the caller, for responses of a fixed form.
//!
//! ```
//! let mut out = Vec::new();
//! let mut object = assay_json::Json::new(&mut out).object();
//! object.key("height").int(7);
//! object.key("raw").hex(&[0xab]);
//! object.end();
//! assert_eq!(out, br#"{"height":7,"raw":"ab"}"#);
//! let mut out = assay_json::Out::new();
//! out.raw(r#"{"height":"#).int(7).raw(r#","raw":"#).hex(&[0xab]).raw("}");
//! assert_eq!(out.into_bytes(), br#"{"height":7,"raw":"ab"}"#);
//! ```
//!
//! Deliberately absent: parsing, for which `serde_json` is used.

mod builder;
mod out;
mod value;

pub use builder::{Array, Json, Object};
pub use out::Out;
pub use value::{push_hex, push_int};
