//! Calls the node through two RPC crates, which parse responses into their own types: every response must match its type.
//! Arguments: address, user, password, and a signed transaction to send.

// Every call would be reported, with the crate that replaces it.
#![allow(deprecated)]

use bitcoincore_rpc::RpcApi;
use bitcoincore_rpc::bitcoin::consensus::encode::deserialize_hex;
use bitcoincore_rpc::bitcoin::{Address, Network, Transaction};
use corepc_client::client_sync::Auth;
use corepc_client::client_sync::v31::Client;

/// The number of parsed responses, and the calls whose responses a crate could not parse.
#[derive(Default)]
struct Calls {
    ok: usize,
    failed: Vec<String>,
}

impl Calls {
    fn add<T, E: std::fmt::Display>(&mut self, name: &str, reply: Result<T, E>) -> Option<T> {
        match reply {
            Ok(value) => {
                self.ok += 1;
                Some(value)
            }
            Err(error) => {
                self.failed.push(format!("{name}: {error}"));
                None
            }
        }
    }
}

/// Calls methods of a client and ignores the results.
macro_rules! call {
    ($calls:ident, $client:ident: $($method:ident($($argument:expr),*)),* $(,)?) => {
        $($calls.add(concat!(stringify!($client), ".", stringify!($method)), $client.$method($($argument),*));)*
    };
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [_, url, user, password, raw] =
        std::env::args().collect::<Vec<_>>().try_into().map_err(|_| "needs four arguments")?;
    let tx: Transaction = deserialize_hex(&raw)?;
    let txid = tx.compute_txid();
    let address = Address::from_script(&tx.output[0].script_pubkey, Network::Regtest)?;

    let mut calls = Calls::default();
    let old = bitcoincore_rpc::Client::new(
        &url,
        bitcoincore_rpc::Auth::UserPass(user.clone(), password.clone()),
    )?;
    let tip = old.get_best_block_hash()?;
    let height = old.get_block_count()?;
    call!(calls, old:
        version(), get_blockchain_info(), get_block(&tip), get_block_info(&tip), get_block_header(&tip),
        get_block_header_info(&tip), get_block_stats(height), get_block_hash(height), get_difficulty(), get_chain_tips(),
        get_connection_count(), get_network_info(), get_net_totals(), get_peer_info(),
        get_index_info(), get_mining_info(), get_network_hash_ps(None, None), uptime(), get_tx_out_set_info(None, None, None),
        get_zmq_notifications(), estimate_smart_fee(2, None), get_added_node_info(None), list_banned(), ping(),
        test_mempool_accept(&[raw.clone()]), send_raw_transaction(raw.clone()), get_raw_mempool(), get_raw_mempool_verbose(),
        get_mempool_info(), get_mempool_entry(&txid), get_raw_transaction(&txid, None), get_raw_transaction_info(&txid, None),
        get_tx_out(&txid, 0, Some(true)), get_descriptor_info(&format!("addr({address})")),
        generate_to_address(1, &address), get_tx_out_proof(&[txid], None), get_block_filter(&tip),
    );
    let new = Client::new_with_auth(&url, Auth::UserPass(user, password))?;
    calls.add("check_expected_server_version", new.check_expected_server_version());
    let tip = new.best_block_hash()?;
    call!(calls, new:
        get_blockchain_info(), get_block(tip), get_block_verbose_zero(tip), get_block_verbose_one(tip),
        get_block_verbose_two(tip), get_block_verbose_three(tip), get_block_count(), get_block_filter(tip), get_block_hash(1),
        get_block_header(&tip), get_block_header_verbose(&tip), get_block_stats_by_height(1, None), get_chain_states(),
        get_chain_tips(), get_chain_tx_stats(), get_deployment_info(&tip), get_difficulty(), get_mempool_info(),
        get_raw_mempool(), get_tx_out(txid, 0), get_tx_out_proof(&[txid]), get_tx_out_set_info(), get_memory_info(), get_rpc_info(),
        logging(), uptime(), get_orphan_txs(), get_mining_info(), get_network_hash_ps(),
        get_prioritised_transactions(), get_added_node_info(), get_addr_man_info(), get_connection_count(), get_net_totals(),
        get_network_info(), get_node_addresses(), get_peer_info(), list_banned(), ping(), decode_raw_transaction(&tx),
        get_index_info(), validate_address(&address), get_zmq_notifications(), generate_to_address(1, &address),
        estimate_smart_fee(2), get_raw_addrman(), verify_chain(), save_mempool(), submit_package(&[tx.clone()], None, None),
    );
    let Calls { ok, failed } = calls;
    println!("{ok} methods answered with all that their types need");
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}
