//! Description of an RPC method and its help text.

use std::fmt::Write as _;

use super::args::Args;
pub(crate) use super::spec::{ArgSpec, Kind, Need, optional, required};
use super::{Job, Rpc};
use crate::jsonrpc::{Params, RpcError};

#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) category: &'static str,
    pub(crate) about: &'static str,
    pub(crate) args: &'static [ArgSpec],
    /// Human-readable description of the result.
    pub(crate) result: &'static str,
    pub(crate) example: &'static str,
    pub(crate) prepare: fn(&Rpc, &Args<'_>) -> Result<Job, RpcError>,
}

/// Category of methods omitted from the overview.
pub(crate) const HIDDEN: &str = "hidden";

impl Method {
    pub(crate) fn arguments<'a>(&'static self, params: Params<'a>) -> Result<Args<'a>, RpcError> {
        Args::new(self.name, self.args, params, || self.help())
    }

    /// Name and arguments in one line; optional ones in parentheses.
    pub(super) fn synopsis(&self) -> String {
        let mut text = self.name.to_owned();
        let mut optional = false;
        for arg in self.args {
            text.push(' ');
            if arg.optional() != optional {
                text.push_str(if optional { ") " } else { "( " });
                optional = arg.optional();
            }
            let name = arg.first_name();
            match arg.kind {
                Kind::Text | Kind::Hex => {
                    write!(text, "\"{name}\"").expect("writing to a string does not fail");
                }
                Kind::HexArray => text.push_str("[\"rawtx\",...]"),
                Kind::Array => {
                    write!(text, "[{name},...]").expect("writing to a string does not fail");
                }
                _ => text.push_str(name),
            }
        }
        if optional {
            text.push_str(" )");
        }
        text
    }

    pub(crate) fn help(&self) -> String {
        if self.result.is_empty() {
            // Only a notice that the method was removed.
            return format!("{}\n\n{}\n", self.name, self.about);
        }
        let mut text = format!("{}\n\n{}\n", self.synopsis(), self.about);
        if !self.args.is_empty() {
            text.push_str("\nArguments:\n");
            let width = self.args.iter().map(|arg| arg.first_name().len()).max().unwrap_or(0);
            for (index, arg) in self.args.iter().enumerate() {
                let need = match arg.need {
                    Need::Required => ", required".to_owned(),
                    Need::Optional => ", optional".to_owned(),
                    Need::Default(default) => format!(", optional, default={default}"),
                };
                let (name, kind, about) = (arg.first_name(), arg.kind.describe(), arg.about);
                writeln!(text, "{}. {name:width$}    ({kind}{need}) {about}", index + 1)
                    .expect("writing to a string does not fail");
            }
        }
        let (name, result, example) = (self.name, self.result, self.example);
        write!(
            text,
            "\nResult:\n{result}\n\nExample:\n\
             > curl --user myusername --data-binary '{{\"jsonrpc\": \"2.0\", \"id\": \"curltest\", \
             \"method\": \"{name}\", \"params\": [{example}]}}' \
             -H 'content-type: application/json' http://127.0.0.1:8332/"
        )
        .expect("writing to a string does not fail");
        text
    }
}
