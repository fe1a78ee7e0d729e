//! Fee estimation RPC. Estimates are not implemented, and the result reports this.

use super::method::Prepare;
use super::{Job, bad};
use crate::jsonrpc::Json;

pub(super) const ESTIMATESMARTFEE: Prepare = |_, args| {
    let target: i32 = args.integer(0)?;
    if !(1..=TARGET_MAX).contains(&target) {
        return Err(bad("Invalid conf_target, must be between 1 and 1008"));
    }
    let mode = args.optional_string(1)?.unwrap_or_default().to_ascii_lowercase();
    if !["", "unset", "economical", "conservative"].contains(&&*mode) {
        let text = "Invalid estimate_mode parameter, must be one of: \"unset\", \"economical\", \"conservative\"";
        return Err(bad(text));
    }
    Ok(Job::call(args, move |_, out| {
        let mut object = Json::new(out).object();
        let mut errors = object.key("errors").array();
        errors.item().string("Insufficient data or no feerate found");
        errors.end();
        // The minimum target is two blocks.
        object.key("blocks").int(target.max(2));
        object.end();
        Ok(())
    }))
};

/// Core's longest horizon.
const TARGET_MAX: i32 = 1008;
