"""lnd, a Lightning node: one that reads the chain by RPC and ZeroMQ, and one that is a light client with filters (BIP157)."""
import json
import pathlib
import subprocess

from node import ADDRESS, Node, PATIENCE_S, arguments, done, free_ports, wait_for

CAPACITY = 1_000_000


class Lnd:
    """One lnd without a password. Ends with the `with` block that it is opened in."""

    def __init__(self, folder, *options):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.p2p_port, self.rpc_port, rest_port = free_ports(3)
        self.command = [
            "lnd", f"--lnddir={self.folder}", "--noseedbackup", "--no-macaroons", "--nobootstrap",
            f"--listen=127.0.0.1:{self.p2p_port}", f"--rpclisten=127.0.0.1:{self.rpc_port}",
            f"--restlisten=127.0.0.1:{rest_port}", "--bitcoin.regtest", "--trickledelay=50",
            # So that a payment can be sent at once.
            "--bitcoin.defaultchanconfs=1", *options,
        ]
        self.log = open(self.folder / "output", "a")

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        self.key = wait_for("lnd", lambda: self("getinfo")["identity_pubkey"])
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()

    def __call__(self, *words):
        command = [
            "lncli", "--no-macaroons", f"--rpcserver=127.0.0.1:{self.rpc_port}",
            f"--tlscertpath={self.folder}/tls.cert", "--network=regtest", *words,
        ]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        assert ended.returncode == 0, f"{words}: {ended.stderr}"
        return json.loads(ended.stdout)

    def is_at(self, node):
        info = self("getinfo")
        return info["synced_to_chain"] and info["block_hash"] == node.call("getbestblockhash")

    def balance(self):
        return int(self("walletbalance")["confirmed_balance"])


def fund(node, lnd):
    node.mine(1, lnd("newaddress", "p2wkh")["address"])
    node.mine(100, ADDRESS)
    wait_for("coins", lambda: lnd.is_at(node) and lnd.balance() == 50 * 10**8)


def channel(node, one, other):
    """Opens a channel, pays through it, and returns its funding outpoint."""
    for lnd in (one, other):
        wait_for("lnd to be started", lambda: lnd("state")["state"] == "SERVER_ACTIVE")
    one("connect", f"{other.key}@127.0.0.1:{other.p2p_port}")
    one("openchannel", f"--node_key={other.key}", f"--local_amt={CAPACITY}")
    wait_for("the funding transaction", lambda: node.call("getrawmempool"))
    node.mine(6, ADDRESS)
    for lnd in (one, other):
        wait_for("the channel", lambda: lnd("listchannels", "--active_only")["channels"])
    pay(one, other)
    return one("listchannels")["channels"][0]["channel_point"]


def pay(one, other):
    before = int(other("channelbalance")["balance"])
    request = other("addinvoice", "--amt=1000")["payment_request"]
    wait_for("the payment", lambda: one("payinvoice", "--force", "--json", request))
    wait_for("its arrival", lambda: int(other("channelbalance")["balance"]) == before + 1000)


def main():
    program, folder = arguments()
    blocks, txs = free_ports(2)
    options = [
        f"-zmqpubrawblock=tcp://127.0.0.1:{blocks}", f"-zmqpubrawtx=tcp://127.0.0.1:{txs}",
        "-blockfilterindex=1", "-peerblockfilters=1",
    ]
    with Node(program, folder / "node", *options) as node:
        node.mine(1, ADDRESS)
        backend = [
            "--bitcoin.node=bitcoind", f"--bitcoind.rpchost=127.0.0.1:{node.rpc_port}",
            f"--bitcoind.rpcuser={node.USER}", f"--bitcoind.rpcpass={node.PASSWORD}",
            f"--bitcoind.zmqpubrawblock=tcp://127.0.0.1:{blocks}",
            f"--bitcoind.zmqpubrawtx=tcp://127.0.0.1:{txs}",
        ]
        light = ["--bitcoin.node=neutrino", f"--neutrino.connect=127.0.0.1:{node.p2p_port}"]
        with Lnd(folder / "light", *light) as carol:
            with Lnd(folder / "full", *backend) as alice:
                fund(node, alice)
                wait_for("the light client", lambda: carol.is_at(node))
                point = channel(node, alice, carol)
                # A reorganisation: the last block is replaced by two.
                node.call("invalidateblock", node.call("getbestblockhash"))
                # To another address, as the same block would be as invalid.
                node.mine(2, alice("newaddress", "p2wkh")["address"])
                for lnd in (alice, carol):
                    wait_for("the other branch", lambda: lnd.is_at(node))
                pay(alice, carol)
            with Lnd(folder / "full", *backend) as alice:
                node.mine(1, ADDRESS)
                wait_for("the chain after a restart", lambda: alice.is_at(node))
                wait_for("the channel", lambda: alice("listchannels", "--active_only")["channels"])
                pay(alice, carol)
                before = alice.balance()
                alice("closechannel", "--force", "--chan_point", point)
                wait_for("the commitment", lambda: node.call("getrawmempool"))

                def is_swept():
                    node.mine(10, ADDRESS)
                    wait_for("the chain", lambda: alice.is_at(node) and carol.is_at(node))
                    return alice.balance() > before and carol.balance() > 0

                wait_for("coins of both", is_swept)
    done(
        "by RPC and ZeroMQ, and with filters: sync, channel, 3 payments, a reorganisation, a restart, force close, both swept"
    )


main()
