"""Lines on standard error: what ended where, how fast, and how long the rest will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import ray
from ray.util.metrics import Counter

# Seconds without a line after which the running jobs are listed.
QUIET_S = 10
# Running jobs in such a line.
LISTED = 4


def say(text: str) -> None:
    """A line for the user."""
    print(f"assay-cluster: {text}", file=sys.stderr, flush=True)


class Progress:
    """Of jobs of known weight; `unit` is what is counted in them."""

    def __init__(self, weights: dict[int, float], already: int, unit: str, kind: str) -> None:
        self.weights = weights
        self.already = already
        self.unit = unit
        self.kind = kind
        self.ended: dict[int, int] = {}
        self.start = self.last = time.monotonic()
        self.board: Any = None
        self.metrics = (
            Counter(f"assay_{kind}s", f"{kind}s that ended"),
            Counter(f"assay_{unit}", f"{unit} of {kind}s that ended"),
        )

    def end(self, number: int, label: str, count: int, host: str, elapsed_s: float) -> None:
        """A job is done."""
        self.ended[number] = count
        for metric, value in zip(self.metrics, (1, count), strict=True):
            if value:
                metric.inc(value)
        rate = f", {_figure(count / elapsed_s)}/s" if count and elapsed_s > 0 else ""
        self._line(f"{label}: {count} {self.unit} in {elapsed_s:.2f} s{rate} on {host}; {self._whole()}")

    def tick(self, label: Callable[[int], str]) -> None:
        """Lists what is running if nothing was printed for a while."""
        if time.monotonic() - self.last < QUIET_S:
            return
        try:
            notes = ray.get(self.board.read.remote(list(self.ended)), timeout=5)
        except ray.exceptions.RayError:
            notes = {}
        running = [_running(label(number), note) for number, note in sorted(notes.items()) if number not in self.ended]
        listed = ", ".join(running[:LISTED]) or "nothing yet"
        more = f" and {len(running) - LISTED} more" if len(running) > LISTED else ""
        self._line(f"{self._whole()}; running: {listed}{more}")

    def _whole(self) -> str:
        elapsed_s = time.monotonic() - self.start
        done, count = len(self.ended), sum(self.ended.values())
        text = f"{done + self.already} of {len(self.weights) + self.already} {self.kind}s"
        if not done:
            return text
        whole = sum(self.weights.values())
        weight = sum(self.weights[number] for number in self.ended)
        left_s = elapsed_s * max(0, whole - weight) / weight if weight else 0
        return f"{text}, {_figure(count / elapsed_s)} {self.unit}/s, ETA {left_s:.0f} s"

    def _line(self, text: str) -> None:
        self.last = time.monotonic()
        say(text)


def _figure(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"


def _running(label: str, note: tuple[str, int, int, float]) -> str:
    _, done, total, rate = note
    if not total:
        return label
    left_s = (total - done) / rate if rate else 0
    return f"{label} {100 * done // total} % ({rate:.0f}/s, ETA {left_s:.0f} s)"
