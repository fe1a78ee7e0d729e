"""On one machine, without a cluster; and what is wrong before Ray is needed."""

from __future__ import annotations

import json
import os
import unittest

from tests import support


class Local(unittest.TestCase):
    def setUp(self) -> None:
        self.chain = support.bitcoin()
        self.out = support.folder_of(self)

    def test_it_goes_on_with_what_the_program_left(self) -> None:
        run = support.assay("shard", "run", self.chain.plan, "--all", "--out", self.out)
        self.assertEqual(run.returncode, 0, run.stderr)
        before = support.parts_in(self.out)
        for part in (1, 5):
            (self.out / f"part-{part:05}.txt").unlink()
        output = support.run("validate", self.chain.plan, "--out", self.out, "--processes", "1", "--json")
        merged = support.good(output)
        for key in support.FIGURES:
            self.assertEqual(merged[key], self.chain.whole[key], key)
        self.assertEqual(support.parts_in(self.out), before)
        self.assertIn("4 of 6 parts have a result", output.stderr)
        # Complete results need no Ray; human-readable, what `assay shard merge` prints.
        output = support.run("validate", self.chain.plan, "--out", self.out)
        merged = support.assay("shard", "merge", self.chain.plan, self.out)
        self.assertEqual((output.returncode, output.stdout), (0, merged.stdout))

    def test_a_muhash_in_place_of_coins(self) -> None:
        plan = self.chain.make_plan("by-muhash", "regtest", "--muhash", self.chain.whole["utxo"]["muhash"])
        output = support.run("validate", plan, "--out", self.out, *support.shared(), "--audit", "40", "--json")
        self.assertEqual(support.good(output)["utxo"]["muhash"], self.chain.whole["utxo"]["muhash"])
        self.assertIn("2 parts gave the same bytes", output.stderr)

    def test_a_wrong_coin_left_over(self) -> None:
        # A bit of the last coin: an error or a rejection, never valid.
        coins = self.chain.folder / "spent" / "utxo.dat"
        wrong = bytearray(coins.read_bytes())
        wrong[-24] ^= 1
        changed = support.scratch() / "changed.dat"
        changed.write_bytes(wrong)
        output = support.run(
            "validate", self.chain.plan, "--out", self.out, "--coins", changed, *support.shared(), "--json"
        )
        self.assertIn(output.returncode, (1, 2), output.stderr)
        if output.stdout:
            self.assertFalse(json.loads(output.stdout)["valid"])

    def test_wrong_arguments(self) -> None:
        out = ("--out", self.out)
        for arguments, words in [
            ((), "COMMAND"),
            (("validate", self.chain.plan), "--out"),
            (("validate", self.chain.plan, *out, "--par", "0"), "give 1 or more"),
            (("validate", self.chain.plan, *out, "--retries", "many"), "no whole number"),
            (("validate", self.chain.plan, *out, "--audit", "101"), "give 0 to 100"),
            (("validate", self.chain.plan, *out, "--address", "x:1", "--processes", "2"), "with --address"),
            (("validate", self.chain.plan, "--out", __file__), "exists"),
            (("validate", self.chain.plan, *out, "--assay", "no-such-program"), "give its path"),
            (("validate", self.chain.plan, *out, "--address", "127.0.0.1:1"), "cannot connect to Ray"),
        ]:
            with self.subTest(arguments=arguments):
                output = support.run(*arguments)
                self.assertEqual((output.returncode, output.stdout), (2, ""), output.stderr)
                self.assertIn(words, output.stderr)
                self.assertNotIn("Traceback", output.stderr)

    def test_help(self) -> None:
        output = support.run("validate", "--help")
        self.assertEqual(output.returncode, 0)
        for words in ("--address", "--assay", "--audit", "Exit status"):
            self.assertIn(words, output.stdout)
        self.assertNotIn(os.environ["RAY_AUTH_TOKEN"], output.stdout)


if __name__ == "__main__":
    unittest.main()
