r"""
TensorFlow's CNN benchmarks: `100\timages/sec: 152.1 +/- 0.2 (jitter = 2.2)\t1.678`.

The speed is the mean of the steps since the warm-up; behind it stand the loss and, where they are
asked for, the accuracies.  Where it runs under Horovod each process prints its own, and the first
of them the sum of all as the last word: `total images/sec: 608.38`.

Source: `benchmark_one_step`, `_benchmark_train` and `print_info` of scripts/tf_cnn_benchmarks/
benchmark_cnn.py, tensorflow/benchmarks, 2017 to 2021.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "tf_cnn_benchmarks"
FRAMEWORK = "tensorflow"
TRIGGERS = (
    r"images/sec: [0-9.]+ \+/- [0-9.]+ \(jitter = ",
    r"total images/sec: [0-9]",
)
RULES = (
    rule("train", r"(?:^|[\s:>\]])(?P<step>[0-9]{1,9})\s{1,8}(?=images/sec: <#> \+/- )",
         unit="images/s", says=fields(speed=r"images/sec: #", loss=r"jitter = [^)]{1,24}\)\s+#")),
    rule("finished", r"(?:^|[\s:>\]])total images/sec: <#>\s*$"),
)  # fmt: skip


class Reader(RuleReader):
    """Reads one stream: the total is the end where its own lines of steps stand above."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self._stepped = False

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        said = tuple(super().feed(text))
        self._stepped = self._stepped or any(one.kind == "train" for one in said)
        return said if self._stepped else ()
