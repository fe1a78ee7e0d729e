//! Decides whether a block is valid given the outputs it spends.
//!
//! Everything here is a function of its arguments. The caller brings the chain's headers
//! ([`chain::Ancestors`]), the outputs that inputs spend ([`tx::SpentCoin`]), the identifiers
//! already hashed, and the cryptography ([`script::SignatureChecker`]). Chains differ by data
//! ([`params::ChainParams`]).
//!
//! ```
//! use assay_consensus::{block, params::ChainParams};
//! use assay_wire::Block;
//!
//! let params = ChainParams::by_name("regtest").expect("regtest is known");
//! let genesis = Block::parse(params.genesis_block(), params.encoding)?;
//! let txids: Vec<_> = genesis.txs().map(|tx| tx.txid()).collect();
//! assert_eq!(block::check_block(&params, &genesis, &txids), Ok(()));
//!
//! let error = block::check_merkle_root(genesis.header(), &[]).expect_err("no such root");
//! assert_eq!(error.reject_reason(), "bad-txnmrklroot");
//! # Ok::<(), assay_wire::ParseError>(())
//! ```
//!
//! Deliberately absent: files, sockets, clocks, threads and logs; policy of a mempool; signature
//! verification itself; the upgrades of Bitcoin Cash after May 2020, except its bounds on the size
//! and version of transactions.

pub mod amount;
pub mod block;
pub mod chain;
pub mod commitment;
mod genesis;
pub mod header;
mod hex;
pub mod locktime;
pub mod params;
pub mod pow;
pub mod script;
pub mod signet;
pub mod sigops;
pub mod subsidy;
pub mod tx;
pub mod uint256;
pub mod versionbits;

pub use genesis::GenesisSpec;
