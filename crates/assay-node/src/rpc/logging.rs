//! `logging`: switches log categories at run time.

use super::args;
use super::method::Prepare;
use super::{Job, bad};
use crate::jsonrpc::{Json, RpcError, Value};
use crate::log;

pub(super) const LOGGING: Prepare = |_, args| {
    let (included, excluded) = (names(args.value(0))?, names(args.value(1))?);
    Ok(Job::call(args, move |_, out| {
        for (names, is_on) in [(&included, true), (&excluded, false)] {
            if let Some(name) = names.iter().find(|name| !log::set_category(name, is_on)) {
                return Err(bad(format!("unknown logging category {name}")));
            }
        }
        let mut object = Json::new(out).object();
        for (name, is_on) in log::category_states() {
            object.key(name).bool(is_on);
        }
        object.end();
        Ok(())
    }))
};

fn names(given: Option<Value<'_>>) -> Result<Vec<String>, RpcError> {
    let names = given.and_then(Value::elements).unwrap_or_default().into_iter();
    names.map(|name| args::string_of(name).map(std::borrow::Cow::into_owned)).collect()
}
