"""Hints as another program reads them: the formulas of BIP 456 in plain Python, against the UTXO set; no Ray."""

from __future__ import annotations

import hashlib
import unittest
from collections.abc import Iterator
from pathlib import Path

from tests import support

REGTEST = bytes.fromhex("fabfb5da")
OP_RETURN = 0x6A
SCRIPT_BYTES_MAX = 10_000


class Bytes:
    """Takes values off the front of some bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        taken = self.data[self.at : self.at + count]
        assert len(taken) == count, "cut off"
        self.at += count
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def compact_size(self) -> int:
        first = self.number(1)
        return first if first < 253 else self.number({253: 2, 254: 4, 255: 8}[first])

    def varint(self) -> int:
        value = 0
        while True:
            byte = self.number(1)
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                return value
            value += 1

    def is_over(self) -> bool:
        return self.at == len(self.data)


def bits(data: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in data)


def block_hints(data: Bytes) -> list[int]:
    """The indices of one block."""
    count = data.compact_size()
    if count == 0:
        return []
    greatest = data.compact_size()
    low_bits = ((greatest + 1) // count).bit_length() - 1
    low = bits(data.take(-(-count * low_bits // 8)))
    high = bits(data.take(-(-(count + (greatest >> low_bits)) // 8)))
    ones = [at for at, bit in enumerate(high) if bit == "1"]
    assert len(ones) == count, "as many ones as indices"
    found = []
    for at, one in enumerate(ones):
        # The published vectors have the least significant bit first.
        part = low[at * low_bits : (at + 1) * low_bits][::-1]
        found.append((one - at) << low_bits | int(part or "0", 2))
    assert found[-1] == greatest, "the last one is the greatest"
    return found


def hints(path: Path) -> list[list[int]]:
    """The indices of all blocks, from the genesis block on."""
    data = Bytes(path.read_bytes())
    assert data.take(5) == b"UTXO\0", "magic and version"
    found = [block_hints(data) for _ in range(data.number(4) + 1)]
    assert data.is_over(), "nothing follows"
    return found


def sha256d(data: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def tx(data: Bytes) -> tuple[bytes, list[bytes]]:
    """The id of the next transaction, and the scripts of its outputs."""
    start = data.at
    data.take(4)
    has_witness = data.data[data.at] == 0
    if has_witness:
        data.take(2)
    body, inputs = data.at, data.compact_size()
    for _ in range(inputs):
        data.take(36)
        data.take(data.compact_size() + 4)
    scripts = []
    for _ in range(data.compact_size()):
        data.take(8)
        scripts.append(data.take(data.compact_size()))
    end = data.at
    if has_witness:
        for _ in range(inputs):
            for _ in range(data.compact_size()):
                data.take(data.compact_size())
    return sha256d(data.data[start : start + 4] + data.data[body:end] + data.take(4)), scripts


def blocks(folder: Path) -> Iterator[list[tuple[bytes, list[bytes]]]]:
    """The transactions of each block from height 1 on."""
    by_parent = {}
    parents, hashes = [], set()
    for path in sorted(folder.rglob("blk*.dat")):
        data = Bytes(path.read_bytes())
        while data.data[data.at : data.at + 4] == REGTEST:
            data.take(4)
            raw = data.take(data.number(4))
            by_parent[raw[4:36]] = raw
            parents.append(raw[4:36])
            hashes.add(sha256d(raw[:80]))
    (parent,) = (parent for parent in parents if parent not in hashes)
    while parent in by_parent:
        raw = by_parent[parent]
        block = Bytes(raw)
        block.take(80)
        yield [tx(block) for _ in range(block.compact_size())]
        parent = sha256d(raw[:80])


def hinted(lists: list[list[int]], folder: Path) -> set[tuple[bytes, int]]:
    """The outpoints that hints name."""
    found: set[tuple[bytes, int]] = set()
    chain = list(blocks(folder))
    assert len(chain) + 1 == len(lists), "a list for each block, and one for the genesis block"
    for wanted, txs in zip(lists[1:], chain, strict=True):
        spendable = [
            (txid, vout)
            for txid, scripts in txs
            for vout, script in enumerate(scripts)
            if script[:1] != bytes([OP_RETURN]) and len(script) <= SCRIPT_BYTES_MAX
        ]
        found.update(spendable[index] for index in wanted)
    return found


def snapshot(path: Path) -> set[tuple[bytes, int]]:
    """The outpoints in a snapshot of the UTXO set in Bitcoin Core's format."""
    data = Bytes(path.read_bytes())
    data.take(43)
    count, found = data.number(8), set()
    while not data.is_over():
        txid = data.take(32)
        for _ in range(data.compact_size()):
            found.add((txid, data.compact_size()))
            data.varint()
            data.varint()
            kind = data.varint()
            data.take(20 if kind < 2 else 32 if kind < 6 else kind - 6)
    assert len(found) == count, "as many coins as the header says"
    return found


class Hints(unittest.TestCase):
    def test_the_published_vectors(self) -> None:
        vectors = [
            (range(13, 41, 3), "0a288d8d8016ad50"),
            (range(5, 118, 7), "11758d8d8d8d804a4949292524"),
            (range(17, 165, 3), "32a4aaaaaaaaaaaa800094a5294a5294a5294a5294a5294a5290"),
        ]
        for indices, encoded in vectors:
            data = Bytes(bytes.fromhex(encoded))
            self.assertEqual(block_hints(data), list(indices))
            self.assertTrue(data.is_over())

    def test_hints_name_the_coins_of_the_utxo_set(self) -> None:
        chain = support.bitcoin()
        lists = hints(chain.folder / "hints.dat")
        self.assertEqual(lists[0], [])
        coins = snapshot(chain.folder / "spent" / "utxo.dat")
        self.assertGreater(len(coins), 100)
        self.assertEqual(hinted(lists, chain.folder / "chain"), coins)

    def test_parts_with_hints_give_what_one_pass_gives(self) -> None:
        chain = support.bitcoin()
        plan = chain.make_plan("hinted", "regtest", "--hints", str(chain.folder / "hints.dat"))
        out = support.folder_of(self)
        merged = support.good(support.assay("shard", "run", plan, "--all", "--out", out, "--json"))
        self.assertTrue(merged["valid"])
        for figure in support.FIGURES:
            self.assertEqual(merged[figure], chain.whole[figure], figure)
