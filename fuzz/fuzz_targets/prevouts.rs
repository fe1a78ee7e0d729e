//! Files of spent outputs: what parses is all of the file.

#![no_main]

use assay_engine::parse_prevouts;
use assay_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let count = usize::from(input.byte());
    let file = input.rest();
    match parse_prevouts(file, count) {
        Ok(outputs) => {
            assert_eq!(outputs.len(), count);
            let mut again = Vec::new();
            for output in outputs {
                again.extend(output.value.to_le_bytes());
                again.extend((output.script_pubkey.len() as u32).to_le_bytes());
                again.extend(output.script_pubkey);
            }
            assert_eq!(again, file);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // A count that no file could hold.
    assert!(parse_prevouts(file, usize::MAX).is_err());
});
