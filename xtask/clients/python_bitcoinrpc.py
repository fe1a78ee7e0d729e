"""python-bitcoinrpc and python-bitcoinlib: two libraries that call the node by RPC."""
import bitcoin
import bitcoin.rpc
from bitcoin.core import CTransaction, lx
from bitcoinrpc.authproxy import AuthServiceProxy, JSONRPCException

from node import ADDRESS, Node, arguments, done, spend_coinbase


def main():
    program, folder = arguments()
    with Node(program, folder / "node", "-txindex") as node:
        url = f"http://{node.USER}:{node.PASSWORD}@127.0.0.1:{node.rpc_port}"
        rpc = AuthServiceProxy(url)
        hashes = rpc.generatetoaddress(101, ADDRESS)
        assert rpc.getblockcount() == 101 and rpc.getbestblockhash() == hashes[-1]
        assert [rpc.getblockhash(height) for height in range(1, 102)] == hashes
        raw = spend_coinbase(node, 1, {ADDRESS: "49.9999"})
        txid = rpc.sendrawtransaction(raw)
        assert rpc.getrawmempool() == [txid]
        try:
            rpc.getblockhash(1000)
        except JSONRPCException as error:
            assert error.error == {"code": -8, "message": "Block height out of range"}, error.error
        else:
            raise AssertionError("no error")

        bitcoin.SelectParams("regtest")
        lib = bitcoin.rpc.Proxy(service_url=url)
        assert lib.getblockcount() == 101
        mined = lib.generatetoaddress(1, ADDRESS) if hasattr(lib, "generatetoaddress") else None
        if mined is None:
            rpc.generatetoaddress(1, ADDRESS)
        block = lib.getblock(lib.getbestblockhash())
        assert [tx.GetTxid() for tx in block.vtx][1] == lx(txid)
        found = lib.getrawtransaction(lx(txid))
        assert isinstance(found, CTransaction) and found.serialize().hex() == raw
        done("102 blocks, a transaction sent, mined and read back, an error by its code")


main()
