//! Undo data and the coin codec: what decodes can be encoded again and is the same.

#![no_main]

use assay_store::{CoinRef, UndoReader, UndoWriter, decode_undo};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let decoded = decode_undo(data);
    if let Ok(reader) = UndoReader::new(data) {
        let streamed: Result<Vec<_>, _> = reader.collect();
        assert_eq!(streamed, decoded);
    }
    let Ok(coins) = decoded else { return };
    let mut writer = UndoWriter::new();
    for coin in &coins {
        writer.push(CoinRef::from(coin));
    }
    let again = writer.finish();
    assert_eq!(decode_undo(&again).as_ref(), Ok(&coins));
    // The writer's form is the shortest for every amount that could be money; others it writes out.
    if coins.iter().all(|coin| (0..1 << 60).contains(&coin.value)) {
        assert!(again.len() <= data.len());
    }
});
