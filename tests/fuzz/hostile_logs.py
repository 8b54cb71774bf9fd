"""Logs that are nearly real: true lines in any order, cut, labelled, coloured, dated, mutated."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import planted
from flatline import signatures

SCENARIOS = Path(__file__).parents[1] / "scenarios"
NUMBERS = (
    "0", "-1", "1", "7", "nan", "inf", "-inf", "1e308", "1e-320", str(2**31), str(2**63),
    str(2**64), "9" * 30, "9" * 400, "0x10", "1_000", "٣", "1.2.3", "1e999", "-0.0", "", "00",
)  # fmt: skip
SCRAPS = (
    "\0", "\x1b[31m", "\x1b[0m", "\x1b]8;;x\x07", "\x1b", "\r", "\b\b", "\u202e", "\u2066",
    "\u200b",
    "\ufeff", "\ud800", "\u2028", "\x85", "\x0c", "é", "😀", "ﬁ", "𝟙", "　", "\t", "  ", "{", "}",
    "%s", "{0}", "<b>", "|", "`", "$(reboot)", "';--", "../..", "https://x/[y](z)", "A" * 5_000,
    "0" * 2_000, "[" * 500, ": " * 300, "=" * 700, "'", '"', "\\",
)  # fmt: skip
LABELS = (
    "", "", "", "[rank0]: ", "[rank3]:[E ", "[default7]:", "0: ", "3: ", "1023: ", "node-1: ",
    "(Actor pid=1, ip=10.0.0.2) ", "[1,3]<stdout>:", "[1,3]<stderr>:", "worker-1: ", "[rank-1]: ",
    "[rank99999999999]: ", "n1: n2: ", "[0] ", "P0 ", "| ", "[2m[36m(x pid=2)[0m ",
)  # fmt: skip
TIMES = (
    "", "", "", "2026-03-01 04:12:55,123 ", "2026-03-01T04:12:55Z ", "2026-03-01 04:12:54 ",
    "1970-01-01 00:00:00 ", "0000-00-00 00:00:00 ", "9999-12-31 23:59:59 ",
    "9999-12-31T23:59:60Z ",
    "0001-01-01T00:00:00+14:00 ", "2026-02-30 25:61:61 ", "2100-12-31 23:59:59-23:59 ",
    "2026-03-29 02:30:00 ", "E0301 04:12:55.1 ", "I0229 23:59:60.123456 ", "Feb 29 12:00:00 ",
    "[ 99999999999.000000] ", "[    0.000001] ", "[1772338375.123456] ", "2010-01-01 00:00:00 ",
    "03/01/2026 04:12:55 ", "31/12/2026 23:59:59 ", '{"time": "2026-03-01T04:12:55Z"} ',
    ":::MLLOG {\"time_ms\": 9999999999999} ", "2026-03-01T04:12:55+99:99 ", "1e400 ",
)  # fmt: skip
FRAMES = (
    "Traceback (most recent call last):", '  File "/app/train.py", line 3, in <module>',
    '  File "/app/train.py", line ' + "9" * 30 + ", in f", "    main()", "    ^^^^^^",
    "  [Previous line repeated 996 more times]",
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
    "  + Exception Group Traceback (most recent call last):",
    "  | ExceptionGroup: x (2 sub-exceptions)",
    "  +-+---------------- 1 ----------------", "    | ValueError: 1",
    "    +------------------------",
    "ValueError: x", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9e99 GiB.",
    "KeyError: ''", "RayTaskError(X): x", "AssertionError", "a.b.c.DError: \u202ex", "Error: ",
    "RuntimeError: multi", "line", "message", "subprocess.CalledProcessError: x",
    "KeyboardInterrupt",
)  # fmt: skip
STEPS = (
    "step {}/{} loss {}", "iteration {}/ {} | consumed samples: {} | lm loss: {}E+00 |",
    "{{'loss': {}, 'grad_norm': {}, 'epoch': {}}}", "Epoch {}/{}",
    "{}/{} ━━━━ 1s 5ms/step - loss: {}",
    " 45%|████▌     | {}/{} [00:10<00:12, {}it/s, loss={}]",
    "Epoch {}: 10%| | {}/{} [00:01<00:09]",
    "[titan] step: {}  loss: {}  memory: {}GiB", "completed step: {}, seconds: {}, loss: {}",
    "step={} skipped=0 lr=[{}] loss: {}", "saved checkpoint at step {}", "Resuming from step {}",
    ":::MLLOG {{\"key\": \"train_loss\", \"value\": {}, \"metadata\": {{\"step\": {}}}}}",
    "max_steps={} num_train_epochs={}", "Training completed after {} steps of {}",
)  # fmt: skip
WIDTH = 40_000
SEPARATORS = ("\n", "\n", "\n", "\r\n", "\r", "\n\n", "\n" * 5)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@cache
def real_lines() -> tuple[str, ...]:
    """Samples and near misses of every signature, and lines of recorded runs."""
    found = [text for one in signatures.load() for text in (*one.samples, *one.near_misses)]
    for path in sorted(SCENARIOS.rglob("*")):
        if path.is_file() and path.suffix in (".log", ".out", ".txt"):
            lines = path.read_text("utf-8", "replace").split("\n")
            found += lines[:6] + lines[-12:]
    return tuple(dict.fromkeys(found))


def secret_lines() -> tuple[str, ...]:
    shaped = (f"key {secret} of nobody" for secret in planted.SHAPED.values())
    return (*shaped, *(line for line, _ in planted.NAMED.values()))


def stepping() -> SearchStrategy[str]:
    def filled(shape: str, numbers: list[str]) -> str:
        return shape.format(*numbers)

    return st.builds(
        filled, st.sampled_from(STEPS), st.lists(st.sampled_from(NUMBERS), min_size=4, max_size=4)
    )


def mutated(line: str, scrap: str, at: float, number: str | None) -> str:
    """The line with something put into it, or one of its numbers replaced."""
    if number is not None:
        return _NUMBER.sub(number, line, count=1 + int(at * 3))
    cut = int(at * len(line))
    return line[:cut] + scrap + line[cut:]


def lines() -> SearchStrategy[str]:
    """One line; a secret's own is never mutated, so that it stays one."""
    real = st.sampled_from(real_lines())
    plain = real | st.sampled_from(FRAMES) | stepping()
    part = st.floats(0, 1)
    changed = st.builds(
        mutated, plain, st.sampled_from(SCRAPS), part, st.none() | st.sampled_from(NUMBERS)
    )
    secret = st.sampled_from(secret_lines())
    return st.builds(
        lambda time, label, line: label + time + line,
        st.sampled_from(TIMES),
        st.sampled_from(LABELS),
        st.one_of(plain, plain, changed, st.sampled_from(SCRAPS), secret),
    )


def joined(parts: Iterable[tuple[str, str]]) -> str:
    return "".join(line + separator for line, separator in parts)


def encoded(text: str, encoding: str, tail: bytes) -> bytes:
    return text.encode(encoding, "surrogatepass" if encoding[:3] == "utf" else "replace") + tail


def logs() -> SearchStrategy[bytes]:
    """A whole log, in some encoding, with bytes of another behind it."""
    parts = st.lists(st.tuples(lines(), st.sampled_from(SEPARATORS)), max_size=40)
    encodings = ("utf-8", "utf-8", "utf-8", "utf-8", "utf-16", "utf-16-le", "utf-16-be", "latin-1",
                 "utf-32", "utf-8-sig")  # fmt: skip
    tail = st.just(b"") | st.binary(max_size=8)
    return st.builds(encoded, parts.map(joined), st.sampled_from(encodings), tail)


def wide() -> SearchStrategy[bytes]:
    """A log whose lines say one short thing ten thousand times over, behind a true line or not."""
    said = st.sampled_from((*SCRAPS, *FRAMES, *LABELS, *TIMES, *real_lines())).filter(bool)
    cut = st.tuples(said, st.integers(0, 60), st.integers(1, 24))
    piece = cut.map(lambda c: c[0][c[1] : c[1] + c[2]] or c[0][: c[2]])
    line = st.tuples(st.just("") | lines(), piece).map(
        lambda p: p[0] + p[1] * (WIDTH // len(p[1]))
    )
    repeated = st.lists(line, min_size=1, max_size=3).map(lambda kinds: kinds * (12 // len(kinds)))
    return repeated.map(lambda all_: encoded("\n".join(all_), "utf-8", b"\n"))
