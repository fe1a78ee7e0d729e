"""Plans and results as the program writes them, and damaged ones; no Ray."""

from __future__ import annotations

import random
import shutil
import stat
import subprocess
import unittest
from pathlib import Path

from assay_cluster.errors import Again, Failure
from assay_cluster.plan import Plan
from assay_cluster.results import Results
from tests import support


class Files(unittest.TestCase):
    def setUp(self) -> None:
        self.chain = support.bitcoin()
        self.dir = support.folder_of(self)

    def results(self) -> Path:
        run = support.assay("shard", "run", self.chain.plan, "--all", "--out", self.dir)
        self.assertEqual(run.returncode, 0, run.stderr)
        return self.dir

    def test_results_of_the_program_are_read(self) -> None:
        plan = Plan.open(self.chain.plan)
        self.assertEqual(len(plan.parts), 6)
        self.assertEqual(sum(part.inputs for part in plan.parts), self.chain.whole["inputs"])
        results = Results(self.results(), plan)
        for part in plan.parts:
            result = results.read(part.number)
            self.assertIsNotNone(result)
            self.assertIsNone(result and result.rejected)

    def test_a_result_with_any_bit_changed_is_rejected_here_and_by_merge(self) -> None:
        results = Results(self.results(), Plan.open(self.chain.plan))
        path = results.path(2)
        right = path.read_bytes()
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        for _ in range(25):
            wrong = bytearray(right)
            at = chance.randrange(len(wrong))
            wrong[at] ^= 1 << chance.randrange(8)
            path.write_bytes(wrong)
            with self.subTest(seed=seed, at=at):
                self.assertRaises(Failure, results.read, 2)
                self.assertEqual(support.assay("shard", "merge", self.chain.plan, self.dir).returncode, 2)
        for size in range(0, len(right), 97):
            self.assertRaises(Again, results.check, 2, right[:size])
        self.assertRaisesRegex(Again, "another part", results.check, 3, right)

    def test_results_of_other_salts_and_plans_are_rejected(self) -> None:
        results = Results(self.results(), Plan.open(self.chain.plan))
        right = results.path(0).read_bytes()
        (self.dir / "salt").write_text(support.SALT + "\n")
        with self.assertRaisesRegex(Failure, "another salt"):
            Results(self.dir, Plan.open(self.chain.plan)).read(0)
        (self.dir / "salt").write_text("salt\n")
        with self.assertRaisesRegex(Failure, "64 hexadecimal digits"):
            Results(self.dir, Plan.open(self.chain.plan))
        other = Plan.open(self.chain.make_plan("other", "regtest", parts=4))
        (self.dir / "salt").write_text(support.SALT + "\n")
        self.assertRaisesRegex(Again, "another plan", Results(self.dir, other).check, 0, right)

    def test_two_results_of_a_part_must_be_the_same(self) -> None:
        results = Results(self.results(), Plan.open(self.chain.plan))
        right = results.path(1).read_bytes()
        results.store(1, right)
        self.assertRaisesRegex(Failure, "another result", results.store, 1, right + b"\n")
        self.assertEqual(results.path(1).read_bytes(), right)

    def test_the_salt_is_for_its_owner_and_stays(self) -> None:
        plan = Plan.open(self.chain.plan)
        salt = Results(self.dir, plan).salt
        self.assertEqual(Results(self.dir, plan).salt, salt)
        self.assertEqual(stat.S_IMODE((self.dir / "salt").stat().st_mode), 0o600)
        # What is stored here the program goes on with.
        line = subprocess.run(
            [support.program(), "shard", "run", self.chain.plan, "--part", "4", "--out", self.dir],
            input=salt,
            capture_output=True,
            text=True,
        )
        self.assertEqual(line.returncode, 0, line.stderr)
        merged = support.assay("shard", "run", self.chain.plan, "--all", "--out", self.dir)
        self.assertIn("1 of 6 parts have a result", merged.stderr)
        self.assertEqual(merged.returncode, 0, merged.stderr)

    def test_damaged_plans_are_rejected(self) -> None:
        shutil.copytree(self.chain.plan, self.dir)
        path = self.dir / "plan.txt"
        text = path.read_text()
        for wrong, words in [
            ("", "not a plan"),
            (text.replace("plan 1", "plan 2", 1), "not a plan"),
            (text.replace("part blocks 1 ", "part blocks one ", 1), r"line \d+ is not one"),
            (text[: text.index("table")], "cut off"),
        ]:
            path.write_text(wrong)
            with self.subTest(words=words), self.assertRaisesRegex(Failure, words):
                Plan.open(self.dir)
        self.assertRaisesRegex(Failure, "no plan is there", Plan.open, self.dir / "nowhere")

    def test_a_muhash_needs_no_salt(self) -> None:
        muhash = self.chain.whole["utxo"]["muhash"]
        plan = Plan.open(self.chain.make_plan("muhash", "regtest", "--muhash", muhash))
        self.assertFalse(plan.needs_salt)
        run = support.assay("shard", "run", plan.dir, "--all", "--out", self.dir)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIsNotNone(Results(self.dir, plan).read(0))


if __name__ == "__main__":
    unittest.main()
