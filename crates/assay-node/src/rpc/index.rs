//! How far the index is.

use super::Job;
use super::table::{ArgSpec, Kind, Method, Need, optional};
use crate::jsonrpc::Json;

pub(super) const GETINDEXINFO: Method = Method {
    name: "getindexinfo",
    category: "util",
    about: "The state of the indexes that the node keeps. There is one, of scripts, where the node runs with --index.",
    args: &[NAME],
    result: "\
{                             (json object)
  \"electrum\" : {              (json object) The index of scripts
    \"synced\" : true|false,    (boolean) Whether it is at the tip
    \"best_block_height\" : n   (numeric) The height it has reached
  }
}",
    example: "",
    prepare: |_, args| {
        let name = args.optional_string(0)?.map(std::borrow::Cow::into_owned);
        Ok(Job::call(args, move |node, out| {
            let is_wanted = name.as_deref().is_none_or(|name| name == INDEX_NAME);
            let mut object = Json::new(out).object();
            if let Some(index) = node.rpc.index.get().filter(|_| is_wanted) {
                let tip = index.tip();
                let mut entry = object.key(INDEX_NAME).object();
                let is_synced = tip.is_some_and(|tip| tip.hash == node.engine.tip().hash);
                entry.key("synced").bool(is_synced);
                entry.key("best_block_height").int(tip.map_or(0, |tip| tip.height));
                entry.end();
            }
            object.end();
            Ok(())
        }))
    },
};

const NAME: ArgSpec =
    optional("index_name", Kind::Text, Need::Optional, "Only the index of this name");
const INDEX_NAME: &str = "electrum";
