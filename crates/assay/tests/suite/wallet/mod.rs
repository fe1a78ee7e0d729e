//! A real wallet on our server: Debian's `electrum` without a window, on a regtest chain of our node.
//!
//! Every step asserts on the output of the wallet. If the wallet is not installed, the test reports
//! that and passes; `.ci/run` installs it.

#![expect(clippy::print_stderr, reason = "a failing step shows what came before it, and the logs")]

mod miner;
mod node;
mod process;
#[expect(clippy::module_inception, reason = "the wallet's own commands")]
mod wallet;

use node::Node;
use wallet::{Entry, Wallet};

/// An address outside of the wallet: the key of BIP-0173's examples, on regtest.
const STRANGER: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
const COIN: i64 = 100_000_000;

#[test]
fn a_wallet_receives_pays_and_follows_the_chain() {
    let Some((program, version)) = wallet::program() else {
        println!(
            "skipped: the wallet electrum is not installed (Debian: apt-get install electrum)"
        );
        return;
    };
    println!("electrum {version}");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut node = Node::start(&dir.path().join("node"));
    for _ in 0..101 {
        node.mine();
    }
    let server = format!("127.0.0.1:{}:t", node.electrum_port);
    let mut wallet = Wallet::start(&program, &dir.path().join("wallet"), &server);
    wallet.wait_height(101);
    let seed = wallet.create();
    wallet.wait_balance("0", "0");

    let received = node.pay(&wallet.unused_script(), 10 * COIN);
    wallet.wait_balance("0", "10");
    wallet.wait_history(&[Entry::new(&received, "10.", 0)]);
    let fork = node.tip;
    node.mine();
    wallet.wait_balance("10", "0");
    wallet.wait_history(&[Entry::new(&received, "10.", 1)]);

    let paid = wallet.pay(STRANGER, "3", "0.0001");
    let mempool: Vec<String> =
        node.mempool().iter().map(|tx| tx.view().txid().to_string()).collect();
    assert_eq!(mempool, [paid.as_str()], "what the wallet sent is in the node's mempool");
    let history = |received_depth, paid_depth| {
        [Entry::new(&received, "10.", received_depth), Entry::new(&paid, "-3.0001", paid_depth)]
    };
    wallet.wait_history(&history(1, 0));
    node.mine();
    wallet.wait_history(&history(2, 1));
    wallet.wait_balance("6.9999", "0");

    // Three empty blocks replace two: both transactions become unconfirmed, and are confirmed again.
    let mut branch = fork;
    for _ in 0..3 {
        branch = node.mine_on(branch, &[]);
    }
    node.tip = branch;
    node.assert_tip();
    wallet.wait_height(104);
    wallet.wait_history(&history(0, 0));
    assert_eq!(node.mempool().len(), 2, "what the lost blocks confirmed waits again");
    node.mine();
    wallet.wait_height(105);
    wallet.wait_history(&history(1, 1));
    wallet.wait_balance("6.9999", "0");

    node.kill();
    wallet.wait_disconnected();
    node.start_again();
    wallet.wait_height(105);
    node.mine();
    wallet.wait_height(106);
    wallet.wait_history(&history(2, 2));
    wallet.wait_balance("6.9999", "0");
    wallet.stop();

    // A second wallet with the same seed has the same history, over TLS.
    let server = format!("127.0.0.1:{}:s", node.tls_port);
    let mut other = Wallet::start(&program, &dir.path().join("other"), &server);
    other.wait_height(106);
    other.restore(&seed);
    other.wait_history(&history(2, 2));
    other.wait_balance("6.9999", "0");
    other.stop();
}
