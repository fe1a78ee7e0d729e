//! Fee estimation RPC. Estimates are not implemented, and the result reports this.

use super::method::{Kind, Method, Need, optional, required};
use super::{Job, bad};
use crate::jsonrpc::Json;

pub(super) const ESTIMATESMARTFEE: Method = Method {
    name: "estimatesmartfee",
    category: "util",
    about: "The fee rate that would confirm a transaction within a number of blocks. There is no estimator: the result always \
            says that there is not enough data.",
    args: &[
        required("conf_target", Kind::Number, "Blocks, 1 to 1008"),
        optional(
            "estimate_mode",
            Kind::Text,
            Need::Default("economical"),
            "\"unset\", \"economical\" or \"conservative\"",
        ),
    ],
    result: "\
{                            (json object)
  \"errors\" : [ \"str\" ],      (json array) Why there is no estimate
  \"blocks\" : n               (numeric) The number of blocks
}",
    example: "6",
    prepare: |_, args| {
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
    },
};

/// Core's longest horizon.
const TARGET_MAX: i32 = 1008;
