"""bitcoincore-rpc and corepc-client: crates that call the node by RPC, with a type for every reply."""
import subprocess

from node import ADDRESS, Node, arguments, done, free_ports, spend_coinbase


def main():
    program, folder = arguments()
    (blocks,) = free_ports(1)
    options = ["-txindex", "-blockfilterindex=1", f"-zmqpubrawblock=tcp://127.0.0.1:{blocks}"]
    with Node(program, folder / "node", *options) as node:
        node.mine(101, ADDRESS)
        raw = spend_coinbase(node, 1, {ADDRESS: "49.9999"})
        url = f"http://127.0.0.1:{node.rpc_port}"
        command = ["assay-clients-rust-rpc", url, node.USER, node.PASSWORD, raw]
        done(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


main()
