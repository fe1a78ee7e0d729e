"""Campaigns over seeds: what one run reports comes out of many, and the first find ends them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Any

from tests import support

# 100,000 blocks take a quarter of an hour; these take seconds.
BLOCKS, ROUND = "90", "20"


def peer_kernel() -> str:
    """The program around Bitcoin Core's kernel; built on its own, since it compiles Bitcoin Core."""
    found = shutil.which(os.environ.get("ASSAY_PEER_KERNEL", "assay-peer-kernel"))
    if found is None:
        raise unittest.SkipTest("no program `assay-peer-kernel`: build peers/kernel and set ASSAY_PEER_KERNEL")
    return str(Path(found).absolute())


def settled(value: Any) -> Any:  # noqa: ANN401 (JSON)
    """Counts with the script errors of a block as one reason.

    Of several inputs that fail the kernel names the one that a thread of its own found first, so two runs of the same
    blocks may name different errors (peers/kernel/README.md).
    """
    if not isinstance(value, dict):
        return value
    counts: dict[str, Any] = {}
    for name, inner in value.items():
        reason = "block-script-verify-flag-failed"
        if name.startswith(reason):
            counts[reason] = counts.get(reason, 0) + inner
        else:
            counts[name] = settled(inner)
    return counts


class Campaigns(unittest.TestCase):
    def setUp(self) -> None:
        self.out = support.folder_of(self)

    def report(self, output: subprocess.CompletedProcess[str], status: int = 0) -> Any:  # noqa: ANN401 (JSON)
        self.assertEqual(output.returncode, status, output.stderr)
        return json.loads(output.stdout)

    def test_the_kernel_as_one_run_has_it(self) -> None:
        program = peer_kernel()
        numbers = ("--seed", "7", "--first-round", "3", "--blocks", BLOCKS, "--round-blocks", ROUND)
        command = [program, "compare", *numbers, "--jobs", "2", "--json", "--out", str(self.out / "one")]
        one = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        campaign = ("compare-kernel", *numbers, "--rounds", "2", "--out", self.out, "--program", program, "--json")
        many = self.report(support.run(*campaign, *support.shared()))
        self.assertEqual((many["found"], many["ranges"]), (False, 3))
        self.assertGreater(sum(one["classes"][name]["blocks"] for name in one["classes"]), 60)
        for key in one.keys() - {"elapsed_s"}:
            self.assertEqual(settled(many[key]), settled(one[key]), key)
        # What has ended is not done again, and does not mix with anything else.
        (self.out / "range-00001.json").unlink()
        again = support.run(*campaign, *support.shared())
        self.assertEqual({**self.report(again), "elapsed_s": 0}, {**many, "elapsed_s": 0})
        self.assertIn("2 of 3 ranges have a result", again.stderr)
        other = support.run(*campaign, "--seed", "8")
        self.assertEqual((other.returncode, other.stdout), (2, ""), other.stderr)
        self.assertIn("other arguments", other.stderr)

    def test_crashes(self) -> None:
        campaign = ("crash", "--seeds", "5..6", "--kills", "2", "--scale", "0.01", "--out", self.out, "--json")
        output = support.run(*campaign, "--assay", support.program(), *support.shared())
        report = self.report(output)
        self.assertEqual((report["found"], report["blocks_lost"]), (False, 0))
        self.assertEqual([run["seed"] for run in report["runs"]], [5, 6])
        self.assertEqual(report["kills"], sum(run["kills"] for run in report["runs"]))
        self.assertGreaterEqual(report["kills"], 4)

    def test_the_first_find_ends_it(self) -> None:
        """A program that finds something in its third range, and never ends in the fourth."""
        program = support.scratch() / "finder"
        program.write_text(
            "#!/bin/sh\n"
            '[ "$1" = --version ] && { echo finder 1; exit; }\n'
            'out=; seed=; while [ $# -gt 0 ]; do case "$1" in --out) out=$2;; --seed) seed=$2;; esac; shift; done\n'
            'case "$seed" in 4) sleep 600;; 3) mkdir "$out/node"; echo evidence > "$out/node/log";; esac\n'
            '[ "$seed" != 3 ]; code=$?\n'
            'echo "{\\"seed\\": $seed, \\"kills\\": 1, \\"kills_by_activity\\": {\\"x$seed\\": 1}, \\"rounds\\": 1, '
            '\\"blocks_acknowledged\\": 10, \\"blocks_lost\\": $code, \\"turns_back\\": 0, \\"verified\\": 1}"\n'
            "exit $code\n"
        )
        program.chmod(0o755)
        campaign = ("crash", "--seeds", "1..9", "--kills", "1", "--out", self.out, "--assay", program, "--json")
        output = support.run(*campaign, *support.shared())
        report = self.report(output, 1)
        self.assertTrue(report["found"])
        self.assertEqual(report["blocks_lost"], 1)
        self.assertEqual((self.out / "found" / "range-00002" / "node" / "log").read_text(), "evidence\n")
        self.assertIn("the rest is cancelled", output.stderr)
        again = support.run(*campaign)
        self.assertEqual(self.report(again, 1), report)
        text = support.run(*campaign[:-1])
        # The third range may end before the first ones.
        self.assertRegex(text.stdout, "^a find in [1-9] kills, [1-9] ranges$")

    def test_wrong_arguments(self) -> None:
        for arguments, words in [
            (("crash", "--out", self.out, "--seeds", "5..4"), "holds no seed"),
            (
                ("crash", "--out", self.out, "--seeds", "1", "--scale", "-1", *support.shared()),
                "failed on every node",
            ),
            (("compare-kernel", "--out", self.out, "--blocks", "0"), "give 1 or more"),
            (("compare-kernel", "--out", self.out, "--program", "no-such-program"), "give its path"),
        ]:
            with self.subTest(arguments=arguments):
                output = support.run(*arguments)
                self.assertEqual((output.returncode, output.stdout), (2, ""), output.stderr)
                self.assertIn(words, output.stderr)
                self.assertNotIn("Traceback", output.stderr)


if __name__ == "__main__":
    unittest.main()
