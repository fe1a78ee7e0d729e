"""A node on regtest that clients are tried against: all ports on loopback, chosen by the system."""
import base64
import http.client
import json
import pathlib
import socket
import subprocess
import sys
import time

PATIENCE_S = 120


def free_ports(count):
    """Ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for(what, condition):
    """Asks ten times a second until `condition` gives something; its exceptions count as nothing."""
    deadline = time.monotonic() + PATIENCE_S
    last = None
    while time.monotonic() < deadline:
        try:
            if found := condition():
                return found
        except Exception as error:  # noqa: BLE001
            last = error
        time.sleep(0.1)
    raise TimeoutError(f"{what}: not within {PATIENCE_S} s ({last})")


class RpcError(Exception):
    pass


class Node:
    """`bitcoind` with a user and a password for RPC. Ends with the `with` block that it is opened in."""

    USER, PASSWORD = "user", "password"

    def __init__(self, program, folder, *options):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rpc_port, self.p2p_port = free_ports(2)
        self.command = [
            str(program), "-regtest", f"-datadir={self.folder}", "-listen=1",
            f"-bind=127.0.0.1:{self.p2p_port}", f"-rpcport={self.rpc_port}", "-connect=0",
            f"-rpcuser={self.USER}", f"-rpcpassword={self.PASSWORD}", *options,
        ]

    def __enter__(self):
        self.log = open(self.folder / "output", "w")
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        wait_for("the node", lambda: self.call("getblockchaininfo"))
        return self

    def __exit__(self, *_):
        self.process.terminate()
        status = self.process.wait(PATIENCE_S)
        self.log.close()
        # What ended the block, if anything did, is raised all the same.
        assert status == 0, f"the node ended with {status}"

    def call(self, method, *params):
        connection = http.client.HTTPConnection("127.0.0.1", self.rpc_port, timeout=PATIENCE_S)
        credentials = base64.b64encode(f"{self.USER}:{self.PASSWORD}".encode()).decode()
        body = json.dumps({"method": method, "params": params, "id": 1})
        connection.request("POST", "/", body, {"Authorization": f"Basic {credentials}"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        if answer["error"]:
            raise RpcError(answer["error"])
        return answer["result"]

    def mine(self, count, address):
        return self.call("generatetoaddress", count, address)


# Its key is 1.
ADDRESS = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"
KEY = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA"


def sign(node, txid, vout, coin_script, amount, outputs):
    """A signed transaction in hex that spends one output of `ADDRESS`; `amount` in coins."""
    raw = node.call("createrawtransaction", [{"txid": txid, "vout": vout}], outputs)
    coin = {"txid": txid, "vout": vout, "scriptPubKey": coin_script, "amount": amount}
    signed = node.call("signrawtransactionwithkey", raw, [KEY], [coin])
    assert signed["complete"], signed
    return signed["hex"]


def spend_coinbase(node, height, outputs):
    """The same of the coinbase of a block."""
    coinbase = node.call("getblock", node.call("getblockhash", height), 2)["tx"][0]
    output = coinbase["vout"][0]
    return sign(node, coinbase["txid"], 0, output["scriptPubKey"]["hex"], output["value"], outputs)


def arguments():
    """The node's program and a folder for everything else."""
    return sys.argv[1], pathlib.Path(sys.argv[2])


def done(text):
    """What the client did, for the table; the last line that a trial prints."""
    print(text)
