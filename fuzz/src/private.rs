//! Parsers that are private to their crates: `--cfg fuzzing` opens entry points to them.

use crate::input::Input;

/// Request bodies: any bytes get an answer that is JSON, the same however the body was cut into
/// pieces on the way; and arguments of every method are read without a panic.
pub fn jsonrpc(data: &[u8]) {
    let mut input = Input(data);
    let cuts: [u8; 4] = input.array();
    assay_node::fuzzing::request(input.rest(), &cuts.map(usize::from));
}

/// Lines from Electrum clients: every request found in one is JSON, and parameters of every method are read without a panic.
pub fn electrum(data: &[u8]) {
    assay_electrum::server::fuzzing::line(data);
}

/// Scripts as text, addresses and descriptors for RPC: any script can be shown, as JSON.
pub fn script_text(data: &[u8]) {
    assay_node::fuzzing::script(data);
}

/// Partially signed transactions: read, shown, finalised and written.
pub fn psbt(data: &[u8]) {
    assay_node::fuzzing::psbt(data);
}

/// Bloom filters of peers against the outputs and inputs of a transaction.
pub fn bloom(data: &[u8]) {
    assay_node::fuzzing::bloom(data);
}

/// Mempool files: what was read can be written and read again.
pub fn mempool_file(data: &[u8]) {
    assay_engine::fuzzing::mempool_file(data);
}

/// The files that are kept about peers, `peers.dat`, `anchors.dat` and `banlist.json`: rejected, or read into something whole that
/// is the same when it is written and read again.
pub fn peer_files(data: &[u8]) {
    let mut input = Input(data);
    let kind = input.byte();
    let is_sealed = kind & 4 != 0;
    match kind & 3 {
        0 => assay_node::fuzzing::address_file(input.rest(), is_sealed),
        1 => assay_node::fuzzing::anchors_file(input.rest(), is_sealed),
        _ => assay_node::fuzzing::ban_list(input.rest()),
    }
}

/// Files of the index: any bytes are rejected or read, and rows that are read are in range.
pub fn index(data: &[u8]) {
    assay_electrum::index::fuzzing::files(data);
}
