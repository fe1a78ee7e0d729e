//! `logging`: switches log categories at run time.

use super::args;
use super::method::{Kind, Method, Need, optional};
use super::{Job, bad};
use crate::jsonrpc::{Json, RpcError, Value};
use crate::log;

pub(super) const LOGGING: Method = Method {
    name: "logging",
    category: "control",
    about: "Shows of which categories the log has details, and switches them on or off: first those of include on, then those \
            of exclude off. \"all\" or \"1\" stands for all of them.",
    args: &[
        optional("include", Kind::Array, Need::Optional, "Categories to switch on"),
        optional("exclude", Kind::Array, Need::Optional, "Categories to switch off"),
    ],
    result: "\
{                             (json object)
  \"category\" : true|false,    (boolean) Whether the log has its details; one member per category
  ...
}",
    example: "[\"all\"], [\"http\"]",
    prepare: |_, args| {
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
    },
};

fn names(given: Option<Value<'_>>) -> Result<Vec<String>, RpcError> {
    let names = given.and_then(Value::elements).unwrap_or_default().into_iter();
    names.map(|name| args::string_of(name).map(std::borrow::Cow::into_owned)).collect()
}
