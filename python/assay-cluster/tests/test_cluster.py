"""Three raylets on the loopback interface: what `assay validate` says comes out, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import unittest
from pathlib import Path

from tests import support


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        support.program()
        cls.raylets = support.raylets()

    raylets: support.Raylets

    def setUp(self) -> None:
        self.chain = support.bitcoin()
        self.dir = support.folder_of(self)
        self.out = self.dir / "results"
        self.dir.mkdir()

    def command(self, *more: str | Path, plan: Path | None = None) -> list[str | Path]:
        fixed: list[str | Path] = ["--out", self.out, "--address", self.raylets.address, "--json"]
        return ["validate", plan or self.chain.plan, *fixed, *more]

    def start(self, *more: str | Path) -> subprocess.Popen[str]:
        command = support.cluster(*self.command(*more))
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=os.environ)

    def check(self, output: subprocess.CompletedProcess[str]) -> None:
        """Checks that the parts say what one pass says, and that no second run of them says anything else."""
        merged = support.good(output)
        self.assertTrue(merged["valid"])
        for key in support.FIGURES:
            self.assertEqual(merged[key], self.chain.whole[key], key)
        again = self.dir / "again"
        again.mkdir()
        shutil.copy(self.out / "salt", again)
        run = support.assay("shard", "run", self.chain.plan, "--all", "--out", again)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(support.parts_in(self.out), support.parts_in(again))

    def finish(self, driver: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        stdout, stderr = driver.communicate(timeout=support.TIMEOUT_S)
        return subprocess.CompletedProcess(driver.args, driver.returncode, stdout, stderr)

    def test_the_verdict_of_one_pass_and_an_audit(self) -> None:
        output = support.run(*self.command("--audit", "100"))
        self.check(output)
        self.assertIn("on 3 nodes", output.stderr)
        self.assertIn("part 3 (blocks ", output.stderr)
        self.assertIn("6 of 6 parts, ", output.stderr)
        self.assertIn("audit: 6 parts gave the same bytes", output.stderr)

    def test_a_worker_and_a_raylet_are_killed(self) -> None:
        program = support.SlowProgram(self.dir / "program", 4)
        driver = self.start("--assay", program.path)
        support.wait_until(lambda: len(program.begun()) >= 2, "second part")
        first, worker, _ = program.begun()[0]
        os.kill(worker, signal.SIGKILL)
        support.wait_until(lambda: not support.is_alive(first), "end of the program of a dead worker")
        support.wait_until(lambda: len(program.begun()) >= 5, "fifth part")
        _, worker, _ = program.begun()[-1]
        self.raylets.kill_node_of(worker)
        output = self.finish(driver)
        self.raylets.nodes.append(self.raylets.add())
        self.check(output)
        self.assertIn("its worker process died; trying again", output.stderr)
        self.assertIn("its node died; trying again", output.stderr)
        self.assertNotIn("raylet", output.stderr.lower().replace("its raylet", ""))
        self.assertEqual(sorted(set(program.parts())), list(range(6)))
        self.assertGreaterEqual(len(program.parts()), 8)

    def test_the_driver_is_killed_and_nothing_is_repeated(self) -> None:
        program = support.SlowProgram(self.dir / "program", 1.5)
        driver = self.start("--assay", program.path)
        support.wait_until(lambda: len(support.parts_in(self.out)) >= 2, "second result")
        driver.kill()
        self.finish(driver)
        under_way = [process for process, _, _ in program.begun()]
        support.wait_until(lambda: not any(map(support.is_alive, under_way)), "end of the orphans")
        kept = support.parts_in(self.out)
        begun = len(program.parts())
        output = support.run(*self.command("--assay", program.path))
        self.check(output)
        self.assertIn(f"{len(kept)} of 6 parts have a result", output.stderr)
        self.assertEqual(len(program.parts()) - begun, 6 - len(kept))
        third = support.run(*self.command("--assay", program.path))
        self.assertEqual(json.loads(third.stdout), json.loads(output.stdout))
        self.assertEqual(len(program.parts()) - begun, 6 - len(kept))

    def test_an_interrupted_driver_goes_on(self) -> None:
        program = support.SlowProgram(self.dir / "program", 1.5)
        driver = self.start("--assay", program.path)
        support.wait_until(lambda: support.parts_in(self.out), "result")
        driver.send_signal(signal.SIGTERM)
        output = self.finish(driver)
        self.assertEqual(output.returncode, 130, output.stderr)
        under_way = [process for process, _, _ in program.begun()]
        support.wait_until(lambda: not any(map(support.is_alive, under_way)), "end of the orphans")
        self.check(support.run(*self.command("--assay", program.path)))

    def test_a_broken_rule_is_final(self) -> None:
        program = support.SlowProgram(self.dir / "program", 0.5)
        output = support.run(*self.command("--assay", program.path, plan=support.rejected_plan()))
        self.assertEqual(output.returncode, 1, output.stderr)
        verdict = json.loads(output.stdout)
        self.assertFalse(verdict["valid"])
        self.assertIn("missing", verdict["rejected"])
        self.assertIn("the rest is cancelled", output.stderr)
        self.assertNotIn("trying again", output.stderr)
        begun = program.parts()
        self.assertEqual(len(begun), len(set(begun)), "a part was tried again")
        # Nothing more is found out by running it again.
        again = support.run(*self.command("--assay", program.path, plan=support.rejected_plan()))
        self.assertEqual((again.returncode, json.loads(again.stdout)), (1, verdict))
        self.assertEqual(program.parts(), begun)

    def test_another_version_of_the_program_on_a_node(self) -> None:
        folders = self.dir / "here", self.dir / "there"
        for folder in folders:
            folder.mkdir()
            shutil.copy(support.program(), folder / "assay")
        other = folders[1] / "assay"
        other.unlink()
        other.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo assay 0.0.9 || exec {support.program()} "$@"\n')
        other.chmod(0o755)
        path = os.environ["PATH"]
        node = self.raylets.add(env_vars={"PATH": f"{folders[1]}{os.pathsep}{path}"})
        self.addCleanup(self.raylets.cluster.remove_node, node)
        env = {"PATH": f"{folders[0]}{os.pathsep}{path}"}
        output = support.run(*self.command("--assay", "assay"), env=env)
        self.fails(output, "has another program: assay 0.0.9", "the driver has assay")
        self.assertEqual(support.parts_in(self.out), {})

    def test_a_node_without_the_program_that_joins_late_is_left_out(self) -> None:
        folder = self.dir / "program"
        program = support.SlowProgram(folder, 2)
        driver = self.start("--assay", program.path)
        support.wait_until(lambda: len(program.begun()) >= 3, "third part")
        # From here on the program is another one, for the same reason that a late node has another one.
        program.path.write_text(program.path.read_text() + "\n# another\n")
        output = self.finish(driver)
        self.assertEqual(output.returncode, 2, output.stderr)
        self.assertIn("is another program than on the driver", output.stderr)
        self.assertIn("it failed on every node", output.stderr)
        self.assertIn("3 of 6 parts have a result", support.run(*self.command()).stderr)

    def test_wrong_salts_and_missing_files(self) -> None:
        self.check(support.run(*self.command()))
        (self.out / "part-00002.txt").unlink()
        right = (self.out / "salt").read_text()
        (self.out / "salt").write_text(support.SALT + "\n")
        self.fails(support.run(*self.command()), "of a run with another salt")
        (self.out / "salt").write_text(right)
        for flag, words in [("--blocks", "nowhere: not there"), ("--coins", "nowhere: not there")]:
            self.fails(support.run(*self.command(flag, self.dir / "nowhere")), words, "node ")
        self.fails(support.run(*self.command("--assay", self.dir / "nowhere")), "nowhere is not there")
        empty = self.dir / "empty"
        empty.mkdir()
        # The folder is there and its files are not: the program says so, and no other node does better.
        self.fails(support.run(*self.command("--blocks", empty)), "it failed on every node", "block files")
        self.fails(support.run(*self.command(plan=self.dir)), "no plan is there")
        self.check_resumes()

    def fails(self, output: subprocess.CompletedProcess[str], *words: str) -> None:
        self.assertEqual((output.returncode, output.stdout), (2, ""), output.stderr)
        self.assertNotIn("Traceback", output.stderr)
        for word in words:
            self.assertIn(word, output.stderr)

    def check_resumes(self) -> None:
        output = support.run(*self.command())
        self.assertIn("5 of 6 parts have a result", output.stderr)
        self.assertTrue(support.good(output)["valid"])

    def test_the_salt_is_in_no_argument_environment_or_log(self) -> None:
        program = support.SlowProgram(self.dir / "program", 2)
        driver = self.start("--assay", program.path)
        support.wait_until(lambda: len(program.begun()) >= 3, "third part")
        salt = (self.out / "salt").read_text().strip()
        found = 0
        for process in Path("/proc").iterdir():
            for name in ("cmdline", "environ"):
                try:
                    text = (process / name).read_bytes()
                except OSError:
                    continue
                found += b"--with-parent" in text
                self.assertNotIn(salt.encode(), text)
        self.assertGreaterEqual(found, 3)
        output = self.finish(driver)
        self.check(output)
        self.assertNotIn(salt, output.stdout + output.stderr)
        logs = Path(self.raylets.cluster.head_node.get_session_dir_path())
        files = [path for path in logs.rglob("*") if path.is_file() and path.stat().st_size]
        self.assertTrue(files)
        for path in files:
            data = path.read_bytes()
            self.assertNotIn(salt.encode(), data, path)
            self.assertNotIn(bytes.fromhex(salt), data, path)


if __name__ == "__main__":
    unittest.main()
