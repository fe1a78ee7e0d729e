//! `getzmqnotifications`.

use super::Job;
use super::method::Method;
use crate::jsonrpc::Json;

pub(super) const GETZMQNOTIFICATIONS: Method = Method {
    name: "getzmqnotifications",
    category: "zmq",
    about: "The active ZeroMQ notifications.",
    args: &[],
    result: "\
[                        (json array)
  {                      (json object)
    \"type\" : \"str\",      (string) What is published, such as pubhashblock
    \"address\" : \"str\",   (string) Where
    \"hwm\" : n            (numeric) Messages that wait for a subscriber at most
  }, ...
]",
    example: "",
    prepare: |_, args| {
        Ok(Job::call(args, |node, out| {
            let mut list = Json::new(out).array();
            for one in node.rpc.zmq.get().into_iter().flatten() {
                let mut object = list.item().object();
                object.key("type").text(format_args!("pub{}", one.topic.name()));
                object.key("address").string(&one.zmq_address());
                object.key("hwm").int(one.high_water_mark);
                object.end();
            }
            list.end();
            Ok(())
        }))
    },
};
