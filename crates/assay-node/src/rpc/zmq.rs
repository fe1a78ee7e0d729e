//! `getzmqnotifications`.

use super::Job;
use super::method::Prepare;
use crate::jsonrpc::Json;

pub(super) const GETZMQNOTIFICATIONS: Prepare = |_, args| {
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
};
