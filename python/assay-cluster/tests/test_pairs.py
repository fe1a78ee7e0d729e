"""`assay-cluster run`: whole pairs on machines of their own, and what the program says of all of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import unittest
from pathlib import Path
from typing import Any

from assay_cluster.pairs import machine_name
from tests import support

SCALE = "0.01"


class Pairs(unittest.TestCase):
    def setUp(self) -> None:
        support.program()
        self.dir = support.folder_of(self)
        self.dir.mkdir()
        self.out = self.dir / "results"

    def plan(self) -> Path:
        """The plan without warm-up runs, as a file, with a block every 20 ms: a run takes more than a second."""
        path = self.dir / "quick.toml"
        text = support.assay("plan", "show", "aa").stdout.replace("warmup = 1", "warmup = 0")
        path.write_text(text.replace("[feed]\n", '[feed]\npace = "0.02s"\n'))
        return path

    def command(self, pairs: int, *more: str | Path, plan: str | Path = "aa") -> list[str | Path]:
        fixed: list[str | Path] = [
            "--out",
            self.out,
            "--address",
            support.raylets().address,
            "--chains",
            self.dir / "chains",
        ]
        return ["run", plan, "--pairs", str(pairs), *fixed, *more, "--", "--scale", SCALE]

    def results(self) -> dict[int, dict[str, Any]]:
        """By pair."""
        paths = self.out.glob("machines/*/pair-*/results.json")
        return {int(path.parent.name.removeprefix("pair-")): json.loads(path.read_text()) for path in paths}

    def test_pairs_over_machines_are_the_pairs_of_one(self) -> None:
        output = support.run(*self.command(6, "--json", plan=self.plan()))
        report = support.good(output)
        found = self.results()
        self.assertEqual(sorted(found), [1, 2, 3, 4, 5, 6])
        self.assertIn("on 3 nodes", output.stderr)
        self.assertIn("6 of 6 pairs", output.stderr)
        for number, results in found.items():
            first, second = (target["runs"] for target in results["targets"])
            self.assertEqual([run["repeat"] for run in first + second], [number - 1] * 2)
            # As in one execution, neither side always comes second. Starts are in whole seconds, and differ.
            self.assertNotEqual(first[0]["started"], second[0]["started"])
            self.assertEqual(first[0]["started"] < second[0]["started"], number % 2 == 1)
            self.assertEqual({run["status"] for run in first + second}, {"valid"})
        # One machine validates the same chain to the same coins.
        one = self.dir / "one"
        single = support.good(support.assay("run", "aa", "--pairs", "1", "--scale", SCALE, "--out", one, "--json"))
        self.assertEqual(single["chain"]["tip"], report["chain"]["tip"])
        [compared] = report["comparison"]["beside"]
        self.assertTrue(compared["is_aa"])
        self.assertEqual(sum(entry["pairs"] for entry in compared["machines"]), compared["pairs"][0]["counted"])
        self.assertEqual(compared["pairs"][0]["missing"], 0)
        self.assertEqual(len(compared["machines"]), len(list((self.out / "machines").iterdir())))
        self.assertFalse([row for row in compared["rows"] if row["verdict"] in ("faster", "slower")])
        page = (self.out / "run.md").read_text()
        for words in ("assay-cluster run ", "seed 1", "no difference shown", "Processor", "on one host"):
            self.assertIn(words, page.replace("undecided", "no difference shown"))
        # Nothing is repeated, and the same results say the same.
        again = support.run(*self.command(6, "--json", plan=self.plan()))
        repeated = support.good(again)
        for one in (report, repeated):
            # The time at which the floor was computed.
            del one["comparison"]["floor"]["created"]
        self.assertEqual(repeated, report)
        self.assertIn("6 of 6 pairs have a result", again.stderr)
        other = support.run(*self.command(7, "--json", plan=self.plan()))
        self.assertEqual((other.returncode, other.stdout), (2, ""), other.stderr)
        self.assertIn("other arguments", other.stderr)

    def test_a_pair_of_a_lost_node_is_repeated_whole(self) -> None:
        raylets = support.raylets()
        program = support.SlowProgram(self.dir / "program", 2, "--pair")
        command = support.cluster(*self.command(3, "--assay", program.path, "--json", plan=self.plan()))
        pipe = subprocess.PIPE
        driver = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=os.environ)
        support.wait_until(lambda: len(program.begun()) >= 3, "third pair")
        process, worker, pair = program.begun()[0]
        raylets.kill_node_of(worker)
        support.wait_until(lambda: not support.is_alive(process), "end of the program of a dead node")
        stdout, stderr = driver.communicate(timeout=support.TIMEOUT_S)
        raylets.nodes.append(raylets.add())
        self.assertEqual(driver.returncode, 0, stderr)
        self.assertIn(f"pair {pair}: its node died; trying again", stderr)
        self.assertEqual(program.parts().count(pair), 2)
        self.assertEqual(sorted(self.results()), [1, 2, 3])
        [compared] = json.loads(stdout)["comparison"]["beside"]
        self.assertEqual(compared["pairs"][0]["missing"], 0)

    def test_an_interruption_ends_what_runs(self) -> None:
        program = support.SlowProgram(self.dir / "program", 60, "--pair")
        command = support.cluster(*self.command(3, "--assay", program.path))
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
        support.wait_until(lambda: len(program.begun()) >= 3, "third pair")
        driver.send_signal(signal.SIGTERM)
        driver.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(driver.returncode, 130)
        processes = [process for process, _, _ in program.begun()]
        support.wait_until(lambda: not any(map(support.is_alive, processes)), "end of the programs")

    def test_wrong_arguments(self) -> None:
        fixed = ("--out", self.out, "--processes", "1")
        for arguments, words in [
            (("run", "aa", *fixed), "--pairs"),
            (("run", "aa", "--pairs", "0", *fixed), "give 1 to 100"),
            (("run", "aa", "--pairs", "2", "--par", "2", *fixed), "unrecognized"),
            (("run", self.dir / "no.toml", "--pairs", "2", *fixed), "No such file"),
            (("validate", self.dir, *fixed, "--", "--scale", "1"), "for `assay run`"),
            (("run", "no-such-plan", "--pairs", "1", *fixed), "no built-in plan"),
        ]:
            with self.subTest(arguments=arguments):
                output = support.run(*arguments)
                self.assertEqual((output.returncode, output.stdout), (2, ""), output.stderr)
                self.assertIn(words, output.stderr)
                self.assertNotIn("Traceback", output.stderr)
                shutil.rmtree(self.out, ignore_errors=True)

    def test_names_of_machines(self) -> None:
        self.assertEqual(machine_name("a" * 56, "db1 (10.0.0.1)", False), "db1-10.0.0.1")
        self.assertEqual(machine_name("b" * 56, "../vm (::1)", True), "vm-1-bbbbbbbb")


if __name__ == "__main__":
    unittest.main()
