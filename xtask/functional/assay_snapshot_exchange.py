#!/usr/bin/env python3
"""Snapshots of the UTXO set go from Bitcoin Core to Assay and back.

The chain is that of Core's feature_assumeutxo.py, whose coins at height 299 both programs know. Core's file must load in
Assay and Assay's file in Core, the files must be equal byte by byte, and both nodes must validate the blocks below. A damaged
file must be rejected with its name and, where a single field shows the damage, the byte offset.

`cargo xtask core-tests --source PATH --core BITCOIND assay_snapshot_exchange` runs it: BITCOIND is Assay there, and
BITCOIND_CORE Core's own program.
"""
import os
import re

from test_framework.authproxy import JSONRPCException
from test_framework.test_framework import BitcoinTestFramework, SkipTest
from test_framework.test_node import TestNode
from test_framework.util import assert_equal, sha256sum_file
from test_framework.wallet import MiniWallet
from test_framework.address import create_deterministic_address_bcrt1_p2tr_op_true

START, BASE, TIP = 199, 299, 399
HEADER_BYTES = 51
TXID_BYTES = 32


class SnapshotExchange(BitcoinTestFramework):
    def set_test_params(self):
        self.setup_clean_chain = True
        self.num_nodes = 4
        self.rpc_timeout = 240

    def skip_test_if_missing_module(self):
        if not os.environ.get("BITCOIND_CORE"):
            raise SkipTest("BITCOIND_CORE does not name Bitcoin Core's own program")

    def setup_network(self):
        self.add_nodes(self.num_nodes)
        self.core, self.ours, self.other_core, self.damaged = self.nodes
        for node in (self.core, self.other_core):
            node.args[0] = os.environ["BITCOIND_CORE"]
        self.start_nodes()
        versions = [node.getnetworkinfo()["subversion"] for node in self.nodes]
        self.log.info(f"Nodes: {versions}")
        assert "Satoshi" in versions[0] and "Satoshi" in versions[2]

    def make_chain(self):
        """The chain up to the base, block by block as feature_assumeutxo.py and the framework's cache have it."""
        core = self.core
        for node in self.nodes:
            node.setmocktime(core.getblockheader(core.getbestblockhash())["time"])
        addresses = [key.address for key in TestNode.PRIV_KEYS][:3]
        addresses.append(create_deterministic_address_bcrt1_p2tr_op_true()[0])
        for part in range(8):
            count = 24 if part == 7 else 25
            self.generatetoaddress(core, count, addresses[part % 4], sync_fun=self.no_op)
        assert_equal(core.getblockcount(), START)
        wallet = MiniWallet(core)
        for node in self.nodes:
            node.setmocktime(core.getblockheader(core.getbestblockhash())["time"])
        for number in range(BASE - START):
            if number % 3 == 0:
                wallet.send_self_transfer(from_node=core)
            self.generate(core, 1, sync_fun=self.no_op)
            if number == 4:
                # A stale block, whose making moves the times of those after it.
                best = core.getbestblockhash()
                core.invalidateblock(best)
                stale = self.generateblock(core, output="raw(aaaa)", transactions=[], sync_fun=self.no_op)["hash"]
                core.invalidateblock(stale)
                core.reconsiderblock(best)
        assert_equal(core.getblockcount(), BASE)

    def give_headers(self):
        for height in range(1, BASE + 1):
            header = self.core.getblockheader(self.core.getblockhash(height), False)
            for node in (self.ours, self.other_core, self.damaged):
                node.submitheader(header)

    def rejection(self, path):
        """Why the node does not load a file."""
        before = self.damaged.getchainstates()
        try:
            self.damaged.loadtxoutset(path)
        except JSONRPCException as error:
            # Nothing has changed.
            assert_equal(self.damaged.getchainstates(), before)
            assert path in error.error["message"], error.error
            return error.error["message"]
        raise AssertionError(f"{path} was loaded")

    def check_damage(self, good):
        self.log.info("Damaged files are rejected by Assay, with file and byte offset")
        bad = os.path.join(self.options.tmpdir, "damaged.dat")

        def message(data):
            with open(bad, "wb") as file:
                file.write(data)
            return self.rejection(bad)

        def flipped(offset, bit=0):
            data = bytearray(good)
            data[offset] ^= 1 << bit
            return message(bytes(data))

        for offset, field in ((0, 0), (4, 0), (5, 5), (6, 5), (7, 7), (10, 7), (11, 11), (42, 11)):
            assert f", byte offset {field}" in flipped(offset), flipped(offset)
        # The number of coins, as the header has it: too large by one bit, so the file ends too early.
        assert f", byte offset {len(good)})" in flipped(HEADER_BYTES - 3), "count"
        # The number of coins of the first transaction.
        count = HEADER_BYTES + TXID_BYTES
        assert f", byte offset {count})" in message(good[:count] + b"\xfd\xff\xff" + good[count + 3:]), "coins of a transaction"
        assert f", byte offset {len(good) // 2})" in message(good[:len(good) // 2]), "half a file"
        assert f", byte offset {len(good)})" in message(good + b"\0"), "a byte too many"
        named = 0
        offsets = range(HEADER_BYTES, len(good), max(1, len(good) // 100))
        for offset in offsets:
            text = flipped(offset, bit=7)
            found = re.search(r"byte offset (\d+)", text)
            assert found, text
            named += "after byte offset" not in text
        self.log.info(f"  {len(offsets)} of {len(good)} bytes flipped: {named} with an offset, the others by the hash of all coins")
        assert named > 0

    def wait_validated(self, node):
        self.wait_until(lambda: node.getblockcount() == TIP)
        self.wait_until(lambda: all(state["validated"] for state in node.getchainstates()["chainstates"]))

    def coins(self, node):
        info = node.gettxoutsetinfo("muhash")
        return {name: info[name] for name in ("height", "bestblock", "txouts", "muhash", "total_amount")}

    def load(self, node, path, written):
        loaded = node.loadtxoutset(path)
        assert_equal((loaded["base_height"], loaded["tip_hash"]), (BASE, written["base_hash"]))
        assert_equal(loaded["coins_loaded"], written["coins_written"])
        states = node.getchainstates()["chainstates"]
        assert_equal([(state["blocks"], state["validated"]) for state in states], [(0, True), (BASE, False)])

    def run_test(self):
        self.make_chain()
        written = self.core.dumptxoutset("core.dat", "latest")
        self.log.info(f"Bitcoin Core wrote {written}")
        self.generate(self.core, TIP - BASE, sync_fun=self.no_op)
        for node in self.nodes:
            node.setmocktime(self.core.getblockheader(self.core.getbestblockhash())["time"])
        self.give_headers()
        with open(written["path"], "rb") as file:
            self.check_damage(file.read())

        self.log.info("Core's file in Assay")
        self.load(self.ours, written["path"], written)
        self.connect_nodes(1, 0)
        self.wait_validated(self.ours)
        assert_equal(self.coins(self.ours), self.coins(self.core))

        self.log.info("Assay's file in Core")
        ours = self.ours.dumptxoutset("assay.dat", "rollback", {"rollback": BASE})
        assert_equal({**ours, "path": None}, {**written, "path": None})
        assert_equal(sha256sum_file(ours["path"]), sha256sum_file(written["path"]))
        self.load(self.other_core, ours["path"], written)
        self.connect_nodes(2, 1)
        self.wait_validated(self.other_core)
        assert_equal(self.coins(self.other_core), self.coins(self.core))
        self.log.info(f"The same coins at the tip: {self.coins(self.core)}")


if __name__ == "__main__":
    SnapshotExchange(__file__).main()
