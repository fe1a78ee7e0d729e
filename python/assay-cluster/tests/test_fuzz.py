"""Fuzz targets over nodes: a finding ends the campaign and is kept, and corpora come together."""

from __future__ import annotations

import json
import os
import subprocess
import unittest
from pathlib import Path
from typing import Any

from tests import support

# Takes the program's and libFuzzer's arguments, and finds something with seed 3 in the target `b`.
STAND_IN = """#!/bin/sh
prefix= seed= merge= target= folders=
for word in "$@"; do case "$word" in
  --list) echo a; echo b; exit 0;;
  --target=*) target=${word#--target=};;
  -help=1) exit 0;;
  -seed=*) seed=${word#-seed=};;
  -artifact_prefix=*) prefix=${word#-artifact_prefix=};;
  -merge=1) merge=1;;
  -*) ;;
  *) folders="$folders $word";;
esac; done
set -- $folders
if [ "$merge" ]; then to=$1; shift; for from in "$@"; do cp "$from"/* "$to"; done; exit 0; fi
mkdir "/dev/shm/assay-fuzz-$$"
touch "/dev/shm/assay-fuzz-$$/stand-in"
echo "input of $target $seed" > "$1/$target-$seed"
[ "$target-$seed" = b-3 ] && { echo bad > "${prefix}crash-1"; echo "panicked" >&2; exit 77; }
[ "$seed" -gt 3 ] && sleep 600
echo "stat::number_of_executed_units: 1000" >&2
"""


class Fuzz(unittest.TestCase):
    def setUp(self) -> None:
        support.program()
        self.dir = support.folder_of(self)
        self.out = self.dir / "results"
        self.dir.mkdir(parents=True)
        self.program = self.dir / "fuzz"
        self.program.write_text(STAND_IN)
        self.program.chmod(0o755)

    def command(self, *more: str | Path) -> list[str | Path]:
        fixed: list[str | Path] = ["fuzz", "--program", self.program, "--out", self.out, "--seconds", "1"]
        return [*fixed, *support.shared(), "--json", *more]

    def report(self, output: subprocess.CompletedProcess[str], status: int = 0) -> Any:  # noqa: ANN401 (JSON)
        self.assertEqual(output.returncode, status, output.stderr)
        return json.loads(output.stdout)

    def test_corpora_come_together(self) -> None:
        # What other runs on this machine left is not this one's.
        before = set(Path("/dev/shm").glob("assay-fuzz-*/stand-in"))
        given = self.dir / "corpus"
        for name in ("a", "b"):
            (given / name).mkdir(parents=True)
            (given / name / "old").write_text("old\n")
        report = self.report(support.run(*self.command("--seeds", "1..2", "--corpus", given)))
        self.assertEqual((report["found"], report["executions"]), (False, 4000))
        self.assertEqual(report["corpus"], {"a": 3, "b": 3})
        names = sorted(path.name for path in (self.out / "corpus" / "b").iterdir())
        self.assertEqual(names, ["b-1", "b-2", "old"])
        self.assertEqual(set(Path("/dev/shm").glob("assay-fuzz-*/stand-in")) - before, set())
        again = support.run(*self.command("--seeds", "1..2", "--corpus", given))
        self.assertEqual(self.report(again), report)
        self.assertIn("4 of 4 runs have a result", again.stderr)

    def test_the_first_finding_ends_it(self) -> None:
        output = support.run(*self.command("--seeds", "3..9"))
        report = self.report(output, 1)
        [found] = [run for run in report["runs"] if run["found"]]
        self.assertEqual((found["target"], found["seed"]), ("b", 3))
        folder = self.out / "found" / "b-seed-3"
        self.assertEqual((folder / "crash-1").read_text(), "bad\n")
        self.assertIn("panicked", (folder / "log.txt").read_text())
        self.assertIn("the rest is cancelled", output.stderr)
        self.assertIn(str(folder / "crash-1"), output.stderr)
        # The finding stands; nothing more is run.
        self.assertEqual(self.report(support.run(*self.command("--seeds", "3..9")), 1), report)

    def test_a_target_of_the_repository(self) -> None:
        built = os.environ.get("ASSAY_FUZZ_PROGRAM")
        if not built:
            self.skipTest("no fuzz targets: run `cargo xtask fuzz` and set ASSAY_FUZZ_PROGRAM")
        target = "ids"
        fixed: list[str | Path] = ["fuzz", target, "--program", built, "--out", self.out, "--seconds", "2"]
        output = support.run(*fixed, *support.shared(), "--seeds", "1..2", "--json")
        report = self.report(output)
        self.assertGreater(report["executions"], 1000)
        self.assertGreater(report["corpus"][target], 0)

    def test_wrong_arguments(self) -> None:
        for arguments, words in [
            (("--program", self.dir / "nowhere", "--seeds", "1"), "cargo xtask fuzz"),
            (("--program", self.program, "--seeds", "1", "c"), "there is no target c; there are a, b"),
            (("--program", self.program, "--seeds", "2..1"), "holds no seed"),
        ]:
            with self.subTest(arguments=arguments):
                output = support.run("fuzz", *arguments, "--out", self.out)
                self.assertEqual((output.returncode, output.stdout), (2, ""), output.stderr)
                self.assertIn(words, output.stderr)
                self.assertNotIn("Traceback", output.stderr)


if __name__ == "__main__":
    unittest.main()
