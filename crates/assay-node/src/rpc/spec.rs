//! Specification of an argument, as `methods.txt` declares it.

#[derive(Debug)]
pub(crate) struct ArgSpec {
    /// The name, then aliases after `|`.
    pub(super) names: &'static str,
    /// As help prints it, such as `json array`.
    pub(super) kind: &'static str,
    /// Elements of an array, or members of an object that may also be passed as named arguments (Core's `OBJ_NAMED_PARAMS`).
    pub(super) of: &'static str,
    /// `required`, `optional` or `default=…`.
    pub(super) need: &'static str,
    pub(super) about: &'static str,
}

impl ArgSpec {
    /// Reads a line of `methods.txt`; `None` for another form.
    pub(super) fn parse(line: &'static str) -> Option<Self> {
        let (names, rest) = line.strip_prefix("- ")?.split_once(" (")?;
        let (properties, about) = rest.split_once(") ")?;
        let (kind, need) = properties.split_once(", ")?;
        let (kind, of) = kind.split_once(" of ").unwrap_or((kind, ""));
        Some(Self { names, kind, of, need, about })
    }

    pub(crate) fn optional(&self) -> bool {
        self.need != "required"
    }

    pub(super) fn first_name(&self) -> &'static str {
        self.names.split('|').next().unwrap_or_default()
    }

    /// JSON type checked before the method runs.
    pub(super) fn json_type(&self) -> Option<&'static str> {
        match self.kind {
            "string" => Some("string"),
            "numeric" => Some("number"),
            "boolean" => Some("bool"),
            "json array" => Some("array"),
            "json object" => Some("object"),
            _ => None,
        }
    }

    /// Members that may also be passed as named arguments.
    pub(super) fn options(&self) -> Option<impl Iterator<Item = &'static str>> {
        let has_options = self.kind == "json object" && !self.of.is_empty();
        has_options.then(|| self.of.split(' '))
    }
}
