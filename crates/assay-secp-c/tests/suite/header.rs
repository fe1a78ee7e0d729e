//! The header in `include/` equals cbindgen's output for this source.
//!
//! `ASSAY_UPDATE_HEADER=1 cargo test -p assay-secp-c header` regenerates it.

use std::fs;
use std::path::Path;

#[test]
fn header_is_what_cbindgen_makes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config =
        cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("a configuration");
    let mut made = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(folder.join("src/types.rs"))
        .with_src(folder.join("src/calls.rs"))
        .generate()
        .expect("a header")
        .write(&mut made);
    let made = String::from_utf8(made).expect("UTF-8");

    let path = folder.join("include/assay_secp.h");
    if std::env::var_os("ASSAY_UPDATE_HEADER").is_some() {
        fs::write(&path, &made).expect("the header can be written");
    }
    let kept = fs::read_to_string(&path).expect("the header is in include/");
    assert!(
        kept == made,
        "{} is not what cbindgen makes; to write it anew: ASSAY_UPDATE_HEADER=1 cargo test -p assay-secp-c header\n{made}",
        path.display()
    );
}
