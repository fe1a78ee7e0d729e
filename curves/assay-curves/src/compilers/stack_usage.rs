//! Parser of the stack usage files that gcc and clang write with `-fstack-usage`.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// gcc counts the return address, clang does not.
const RETURN_ADDRESS: u64 = 8;

/// Bytes by function, without the return address.
pub(super) fn parse(text: &str, counts_return_address: bool) -> Result<BTreeMap<String, u64>> {
    let mut functions = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let mut fields = line.split('\t');
        let fields = (fields.next(), fields.next(), fields.next().is_some());
        let (Some((_, function)), Some(bytes), true) = (
            fields.0.and_then(|place| place.rsplit_once(':')),
            fields.1.and_then(|bytes| bytes.parse::<u64>().ok()),
            fields.2,
        ) else {
            bail!(
                "line {} of the stack usage is not `FILE:LINE:FUNCTION BYTES KIND`: {line}",
                index + 1
            );
        };
        let own = if counts_return_address { bytes.saturating_sub(RETURN_ADDRESS) } else { bytes };
        functions.insert(function.to_owned(), own);
    }
    Ok(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_gcc_and_clang() {
        let gcc = "../sources/portable.c:4:6:add256_portable\t8\tstatic\n\
            ../sources/portable.c:69:6:mont_mul_6_portable\t304\tdynamic,bounded\n";
        let found = parse(gcc, true).expect("gcc's");
        assert_eq!(found.get("add256_portable"), Some(&0));
        assert_eq!(found.get("mont_mul_6_portable"), Some(&296));
        let clang = "/tmp/a:b/portable.c:69:mont_mul_6_portable\t48\tstatic\n";
        assert_eq!(parse(clang, false).expect("clang's").get("mont_mul_6_portable"), Some(&48));
        assert!(parse("", true).expect("nothing").is_empty());
    }

    #[test]
    fn lines_of_another_format() {
        for line in
            ["main 8 static", "a.c:1:main\teight\tstatic", "main\t8\tstatic", "a.c:1:main\t8"]
        {
            let error = parse(&format!("a.c:1:f\t0\tstatic\n{line}\n"), false).expect_err(line);
            assert!(error.to_string().starts_with("line 2 of"), "{error}");
        }
    }
}
