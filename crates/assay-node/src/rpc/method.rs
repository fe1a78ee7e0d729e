//! RPC methods and their arguments as `methods.txt` declares them, and the help texts made of it.

use std::fmt::Write as _;
use std::sync::LazyLock;

use super::Node;
use super::args::Args;
use super::spec::ArgSpec;
use crate::jsonrpc::{Params, RpcError};

/// Implementation of a method; writes the result.
pub(crate) type Call = fn(&Node<'_>, &Args<'_>, &mut Vec<u8>) -> Result<(), RpcError>;

#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) category: &'static str,
    about: &'static str,
    pub(crate) args: Vec<ArgSpec>,
    /// Human-readable description of the result.
    result: &'static str,
    example: &'static str,
}

/// Category of methods omitted from the overview.
pub(crate) const HIDDEN: &str = "hidden";

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    let categories = include_str!("methods.txt").split("\n= ").skip(1);
    let methods = categories.flat_map(|text| {
        let category = text.lines().next().unwrap_or_default();
        text.split("\n== ").skip(1).map(move |text| Method::parse(category, text))
    });
    methods.collect()
});

pub(crate) fn methods() -> &'static [Method] {
    &METHODS
}

pub(crate) fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// Help of one method; empty for an unknown name.
pub(super) fn help(name: &str) -> String {
    find(name).map(Method::help).unwrap_or_default()
}

impl Method {
    fn parse(category: &'static str, text: &'static str) -> Self {
        let (head, shown) = text.split_once("\nresult:\n").unwrap_or((text, ""));
        let (result, example) = shown.rsplit_once("\nexample:").unwrap_or_default();
        let mut lines = head.lines();
        let [name, about] = [(); 2].map(|()| lines.next().unwrap_or_default());
        let args = lines.filter(|line| !line.is_empty()).map(|line| {
            ArgSpec::parse(line).expect("methods.txt has lines `- NAMES (KIND, NEED) DESCRIPTION`")
        });
        Self { name, category, about, args: args.collect(), result, example: example.trim() }
    }

    pub(crate) fn arguments<'a>(&'static self, params: Params<'a>) -> Result<Args<'a>, RpcError> {
        Args::new(&self.args, params, || self.help())
    }

    /// Name and arguments in one line; optional ones in parentheses.
    pub(super) fn synopsis(&self) -> String {
        let mut text = self.name.to_owned();
        let mut optional = false;
        for arg in &self.args {
            text.push(' ');
            if arg.optional() != optional {
                text.push_str(if optional { ") " } else { "( " });
                optional = arg.optional();
            }
            let name = arg.first_name();
            // Writing to a string cannot fail.
            let _ = match arg.kind {
                "string" => write!(text, "\"{name}\""),
                "json array" if arg.of.is_empty() => write!(text, "[{name},...]"),
                "json array" => write!(text, "[{},...]", arg.of),
                _ => text.write_str(name),
            };
        }
        if optional {
            text.push_str(" )");
        }
        text
    }

    pub(crate) fn help(&self) -> String {
        let Self { name, about, result, example, .. } = self;
        if result.is_empty() {
            // Only a notice that the method was removed.
            return format!("{name}\n\n{about}\n");
        }
        let mut text = format!("{}\n\n{about}\n", self.synopsis());
        if !self.args.is_empty() {
            text.push_str("\nArguments:\n");
            let width = self.args.iter().map(|arg| arg.first_name().len()).max().unwrap_or(0);
            for (index, arg) in self.args.iter().enumerate() {
                let ArgSpec { kind, need, about, .. } = arg;
                let optional = if need.starts_with("default=") { "optional, " } else { "" };
                let (number, name) = (index + 1, arg.first_name());
                writeln!(text, "{number}. {name:width$}    ({kind}, {optional}{need}) {about}")
                    .expect("writing to a string does not fail");
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_well_formed() {
        for (index, method) in METHODS.iter().enumerate() {
            let name = method.name;
            assert!(METHODS[..index].iter().all(|other| other.name != name), "{name}");
            let optional: Vec<bool> = method.args.iter().map(ArgSpec::optional).collect();
            assert!(optional.is_sorted(), "{name}");
            assert!(!method.about.is_empty() && !method.category.is_empty(), "{name}");
            assert!(!method.result.is_empty() || name == "generate", "{name}");
            for arg in &method.args {
                let is_unchecked = ["numeric or string", "numeric or boolean", "string or numeric"]
                    .contains(&arg.kind)
                    || arg.kind == "any";
                assert!(is_unchecked || arg.json_type().is_some(), "{name}: {}", arg.kind);
                let is_default = arg.need.starts_with("default=");
                assert!(is_default || ["required", "optional"].contains(&arg.need), "{name}");
            }
        }
    }

    #[test]
    fn prints_the_help_of_a_method() {
        assert_eq!(
            help("getblockhash"),
            "getblockhash height\n\nHash of the block of the active chain at a height.\n\n\
             Arguments:\n1. height    (numeric, required) The height\n\n\
             Result:\n\"hex\"    (string) The block hash\n\n\
             Example:\n> curl --user myusername --data-binary '{\"jsonrpc\": \"2.0\", \"id\": \"curltest\", \
             \"method\": \"getblockhash\", \"params\": [1000]}' \
             -H 'content-type: application/json' http://127.0.0.1:8332/"
        );
        let lines = |name| help(name).lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            lines("testmempoolaccept")[0],
            "testmempoolaccept [\"rawtx\",...] ( maxfeerate )"
        );
        let verbosity =
            "2. verbosity    (numeric or boolean, optional, default=1) How much to show, 0 to 3";
        assert!(lines("getblock").contains(&verbosity.to_owned()), "{:?}", lines("getblock"));
    }
}
