"""Parquet by range of heights: one query over all gives what it gives over the block files."""

from __future__ import annotations

import unittest
from pathlib import Path

from assay_cluster.stats import totals
from tests import support

QUERIES = (
    "SELECT COUNT(*), SUM(txs), SUM(inputs), SUM(outputs), MIN(height), MAX(height) FROM blocks",
    "SELECT segwit, COUNT(*), SUM(bytes) FROM txs GROUP BY segwit ORDER BY segwit",
    "SELECT b.hash, t.txid FROM txs t JOIN blocks b USING (height) WHERE t.coinbase ORDER BY b.height",
)


class Stats(unittest.TestCase):
    def setUp(self) -> None:
        self.chain = support.bitcoin()
        self.blocks = self.chain.folder / "chain"
        self.out = support.folder_of(self)
        if support.assay("chain", "sql", "SELECT 1", "--blocks", self.blocks).returncode != 0:
            self.skipTest("`assay` is built without the feature `tables`")

    def command(self, *more: str) -> list[str | Path]:
        fixed: list[str | Path] = ["--blocks", self.blocks, "--ranges", "7", "--out", self.out]
        return ["stats", *fixed, *support.shared(), *more]

    def test_ranges_say_what_the_whole_says(self) -> None:
        for number, query in enumerate(QUERIES):
            whole = support.good(support.assay("chain", "sql", query, "--blocks", self.blocks, "--json"))
            output = support.run(*self.command("--sql", query, "--json"))
            self.assertEqual(support.good(output), whole)
            if number:
                self.assertIn("7 of 7 ranges are there", output.stderr)
        counted = support.good(support.assay("chain", "stats", "--blocks", self.blocks, "--json"))["total"]
        sums = totals(self.out)
        for name in ("blocks", "txs", "inputs", "outputs", "bytes"):
            self.assertEqual(sums[name], counted[name])

    def test_wrong_arguments(self) -> None:
        for arguments, words in [
            (("--blocks", self.out / "nowhere"), "nowhere"),
            (("--blocks", self.blocks, "--ranges", "0"), "give 1 or more"),
            (("--blocks", self.blocks, "--json", "--csv"), "not allowed"),
        ]:
            with self.subTest(arguments=arguments):
                output = support.run("stats", *arguments, "--out", self.out)
                self.assertEqual((output.returncode, output.stdout), (2, ""), output.stderr)
                self.assertIn(words, output.stderr)
                self.assertNotIn("Traceback", output.stderr)


if __name__ == "__main__":
    unittest.main()
