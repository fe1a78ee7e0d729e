"""Validates a chain in parts on many machines: places the parts of `assay shard` by Ray.

The program `assay` does the work; this package starts it on every node, tries again what failed, and keeps the
results under the names that `assay shard run` gives them. Why parts may be apart: `docs/shard.md`.

From the bottom up: `plan` and `results` read and write the files, `node` is what runs on other machines, `cluster`
connects to Ray and checks the nodes, `campaign` places jobs and tries again, `progress` prints; `validate`, `pairs`
and `fuzz` are jobs and what their results mean, `cli` the arguments.
"""

__version__ = "0.1.0"
