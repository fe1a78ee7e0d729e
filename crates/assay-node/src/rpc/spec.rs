//! Arguments of an RPC method as its help describes them.

#[derive(Debug)]
pub(crate) struct ArgSpec {
    /// The name, then aliases after `|`.
    pub(crate) names: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    pub(crate) about: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Hex,
    Number,
    Bool,
    /// A number or a string.
    Amount,
    /// A number or a boolean.
    Verbosity,
    /// A string or a number.
    HashOrHeight,
    HexArray,
    /// An array of any values.
    Array,
    Object,
    /// An object whose members, of these names, may also be passed as named arguments (Core's `OBJ_NAMED_PARAMS`).
    Options(&'static [&'static str]),
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    /// Without a default.
    Optional,
    Default(&'static str),
}

impl ArgSpec {
    pub(crate) fn optional(&self) -> bool {
        self.need != Need::Required
    }

    pub(super) fn first_name(&self) -> &'static str {
        self.names.split('|').next().unwrap_or_default()
    }
}

impl Kind {
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Text | Self::Hex => "string",
            Self::Number => "numeric",
            Self::Bool => "boolean",
            Self::Amount => "numeric or string",
            Self::Verbosity => "numeric or boolean",
            Self::HashOrHeight => "string or numeric",
            Self::HexArray | Self::Array => "json array",
            Self::Object | Self::Options(_) => "json object",
            Self::Any => "any",
        }
    }
}

pub(crate) const fn required(names: &'static str, kind: Kind, about: &'static str) -> ArgSpec {
    ArgSpec { names, kind, need: Need::Required, about }
}

pub(crate) const fn optional(
    names: &'static str,
    kind: Kind,
    need: Need,
    about: &'static str,
) -> ArgSpec {
    ArgSpec { names, kind, need, about }
}
