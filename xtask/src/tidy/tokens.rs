//! Rust source as tokens: enough to see which paths it names and what its strings hold, without comments.

/// One token and its line, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
}

impl Token<'_> {
    pub(super) fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !self.is_string()
    }

    pub(super) fn is_string(&self) -> bool {
        self.text.trim_end_matches('#').ends_with('"')
    }
}

/// The tokens of `source`: names, `::`, and single signs. Comments, strings, characters, numbers and lifetimes are left out.
pub(super) fn of(source: &str) -> Vec<Token<'_>> {
    let mut tokens = with_strings(source);
    tokens.retain(|token| !token.is_string());
    tokens
}

/// The same with strings as in the source.
pub(super) fn with_strings(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(rest) = source.get(at..).filter(|rest| !rest.is_empty()) {
        let (length, is_token) = next(rest);
        let text = &rest[..length];
        if is_token {
            tokens.push(Token { text, line });
        }
        line += text.matches('\n').count();
        at += length;
    }
    tokens
}

/// Length in bytes of the first token, comment, literal or blank; true for a token.
fn next(rest: &str) -> (usize, bool) {
    let first = rest.chars().next().unwrap_or(' ');
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), false);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), false);
    }
    if let Some(length) = string(rest) {
        return (length, true);
    }
    if first == '\'' {
        return (quote(rest), false);
    }
    if rest.starts_with("::") {
        return (2, true);
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if is_word(first) {
        let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        return (length, !first.is_ascii_digit());
    }
    (first.len_utf8(), !first.is_whitespace())
}

/// Comments of this kind nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Length of a string literal with any prefix; `None` where none begins.
fn string(rest: &str) -> Option<usize> {
    let after = rest.trim_start_matches(['b', 'c', 'r']);
    let prefix = &rest[..rest.len() - after.len()];
    if !["", "b", "c", "r", "br", "cr"].contains(&prefix) {
        return None;
    }
    if prefix.ends_with('r') {
        let body = after.trim_start_matches('#');
        let hashes = after.len() - body.len();
        let body = body.strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let start = rest.len() - body.len();
        return Some(body.find(&end).map_or(rest.len(), |found| start + found + end.len()));
    }
    let body = after.strip_prefix('"')?;
    let start = rest.len() - body.len();
    let mut is_escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            '"' if !is_escaped => return Some(start + at + 1),
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    Some(rest.len())
}

/// Length of a character literal, or of a lifetime.
fn quote(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((escaped, c))) => {
            let from = escaped + c.len_utf8();
            rest[from..].find('\'').map_or(rest.len(), |end| from + end + 1)
        }
        (Some(_), Some((end, '\''))) => end + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        of(source).iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_literals_are_left_out() {
        let source = concat!(
            "use crate::a; // crate::b\n",
            "/* crate::c /* nested */ crate::d */\n",
            "let s = \"crate::e \\\" crate::f\"; let r = r#\"crate::g \" \"#;\n",
            "let c = '\"'; let n = '\\''; fn f<'a>(x: &'a str) {}"
        );
        let found = texts(source);
        assert_eq!(&found[..5], ["use", "crate", "::", "a", ";"]);
        for absent in ["b", "c", "d", "e", "g", "nested"] {
            let wanted = usize::from(absent == "c");
            assert_eq!(found.iter().filter(|text| **text == absent).count(), wanted, "{absent}");
        }
        assert!(found.ends_with(&["str", ")", "{", "}"]));
    }

    #[test]
    fn lines_are_counted() {
        let tokens = of("a\n\"x\ny\"\nb");
        let lines: Vec<_> = tokens.iter().map(|token| (token.text, token.line)).collect();
        assert_eq!(lines, [("a", 1), ("b", 4)]);
    }
}
