"""ElectrumX: an Electrum server that reads the chain from the node by RPC."""
import asyncio
import hashlib
import json
import os
import subprocess
import sys

from node import ADDRESS, Node, arguments, done, free_ports, spend_coinbase, wait_for


async def ask(port, calls):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    answers = []
    for index, (method, params) in enumerate(calls):
        writer.write(json.dumps({"id": index, "method": method, "params": params}).encode() + b"\n")
        answers.append(json.loads(await reader.readline()))
    writer.close()
    return answers


def call(port, method, *params):
    version = ("server.version", ["trial", "1.4"])
    answer = asyncio.run(ask(port, [version, (method, params)]))[1]
    assert "result" in answer, answer
    return answer["result"]


def main():
    program, folder = arguments()
    with Node(program, folder / "node", "-txindex") as node:
        hashes = node.mine(101, ADDRESS)
        (port,) = free_ports(1)
        database = folder / "database"
        database.mkdir()
        environment = os.environ | {
            "COIN": "Bitcoin", "NET": "regtest", "DB_DIRECTORY": str(database),
            "DAEMON_URL": f"http://{node.USER}:{node.PASSWORD}@127.0.0.1:{node.rpc_port}/",
            "SERVICES": f"tcp://127.0.0.1:{port}", "ALLOW_ROOT": "1", "PEER_DISCOVERY": "off",
        }
        bin = os.path.dirname(sys.executable)
        with open(folder / "electrumx.log", "w") as log:
            server = subprocess.Popen(
                [sys.executable, f"{bin}/electrumx_server"], env=environment, stdout=log, stderr=log
            )
            try:
                tip = wait_for("ElectrumX", lambda: call(port, "blockchain.headers.subscribe"))
                assert tip["height"] == 101, tip
                script = node.call("validateaddress", ADDRESS)["scriptPubKey"]
                name = hashlib.sha256(bytes.fromhex(script)).digest()[::-1].hex()
                balance = call(port, "blockchain.scripthash.get_balance", name)
                assert balance == {"confirmed": 101 * 50 * 10**8, "unconfirmed": 0}, balance
                raw = spend_coinbase(node, 1, {ADDRESS: "49.9999"})
                txid = call(port, "blockchain.transaction.broadcast", raw)
                wait_for("its mempool", lambda: call(port, "blockchain.scripthash.get_mempool", name))
                node.mine(1, ADDRESS)
                wait_for(
                    "the block",
                    lambda: call(port, "blockchain.headers.subscribe")["height"] == 102,
                )
                history = call(port, "blockchain.scripthash.get_history", name)
                assert {"tx_hash": txid, "height": 102} in history
                # A reorganisation: the block is replaced by two empty ones.
                node.call("invalidateblock", node.call("getbestblockhash"))
                node.call("generateblock", ADDRESS, [])
                node.call("generateblock", ADDRESS, [])
                wait_for(
                    "the other branch",
                    lambda: call(port, "blockchain.headers.subscribe")["height"] == 103
                    and {"tx_hash": txid, "height": 102}
                    not in call(port, "blockchain.scripthash.get_history", name),
                )
                assert len(hashes) == 101
            finally:
                server.terminate()
                server.wait()
    done("synced 103 blocks, balance, history, a transaction broadcast, a reorganisation")


main()
