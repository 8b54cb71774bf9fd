"""
Claims that are true of the scenarios' verdicts, and lies made of them.

Truths are read here from the evidence's own record and from the raw files of the run, with regular
expressions of this module: nothing of the checker is used.  Each lie is a truth changed in one
respect, and is only taken where this module can tell that it is false.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from itertools import pairwise
from typing import Any

from flatline.claims import Claim
from flatline.model import Place
from flatline.render.json import document
from scenario import Scenario, scenarios

Json = dict[str, Any]
UNITS: dict[str, tuple[tuple[str, float], ...]] = {
    "hertz": (("MHz", 1e-6), ("GHz", 1e-9), ("Hz", 1.0)),
    "watts": (("W", 1.0), ("mW", 1e3), ("kW", 1e-3)),
    "ratio": (("%", 100.0), ("ratio", 1.0)),
    "bytes/s": (("MB/s", 1e-6), ("GB/s", 1e-9), ("Gbit/s", 8e-9)),
    "bytes": (("GiB", 2.0**-30), ("MB", 1e-6)),
    "celsius": (("°C", 1.0), ("C", 1.0)),
    "seconds/s": (("s/s", 1.0), ("ratio", 1.0)),
    "1/s": (("tokens/s", 1.0), ("1/s", 1.0)),
    "count/s": (("1/s", 1.0),),
    "count": (("count", 1.0),),
}
SIGNALS = {"DCGM_FI_DEV_POWER_USAGE": "gpu_power_watts",
           "DCGM_FI_DEV_SM_CLOCK": "gpu_sm_clock_hertz",
           "DCGM_FI_DEV_GPU_TEMP": "gpu_temperature_celsius",
           "DCGM_FI_DEV_GPU_UTIL": "gpu_utilization_ratio",
           "DCGM_FI_DEV_FB_USED": "gpu_memory_used_bytes"}  # fmt: skip


PLAIN = re.compile(r"(?:(?:avg|max|min)_over_time\()?\w+\{[^}]*\}(?:\[\w+\]\))?(?: \* [\d.]+)?")
"""A query that is a signal of one place."""


@dataclass(frozen=True)
class Truth:
    """A claim that is true of a scenario. `value` is the true value in `unit` of the evidence."""

    kind: str
    name: str
    claim: Claim
    value: float | None = None
    unit: str | None = None


@cache
def runs() -> dict[str, tuple[Scenario, Json]]:
    """Every scenario with its verdict as the JSON document has it."""
    made = {}
    for one in scenarios():
        told = json.loads(json.dumps(document(one.verdict()), default=str))
        if told["evidence"]:
            made[one.name] = (one, told)
    return made


def evidence(name: str) -> dict[str, Json]:
    return {item["id"]: item for item in runs()[name][1]["evidence"]}


@cache
def raw_lines(name: str, source: str) -> tuple[str, ...]:
    """The lines of a log as bytes on disk have them; () where it is not plain text."""
    path = runs()[name][0].run / source
    if not path.is_file():
        return ()
    text = path.read_bytes().decode("utf-8", "replace")
    return () if "\0" in text or "\r" in text or "\x1b" in text else tuple(text.split("\n"))


def raw_line(name: str, item: Json) -> str:
    lines = raw_lines(name, item["source"])
    return lines[item["line"] - 1] if 0 < item["line"] <= len(lines) else ""


def stamp(text: str) -> datetime | None:
    at = datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
    return at if at is not None and at.tzinfo is not None else None


# --- truths -------------------------------------------------------------------------------------

READERS: tuple[tuple[str, str, str | None], ...] = (
    ("step", r"(?<![\w])step (\d+)/", None),
    ("loss", r"(?<![\w])loss (\d+\.\d+)(?![\w.])", None),
    ("grad_norm", r"grad_norm (\d+\.\d+)(?![\w.])", None),
    ("lr", r"(?<!\w)lr (\d\.\d+e[+-]\d+)", None),
    ("step time", r"step_time (\d+\.\d+) ms", "ms"),
    ("tok/s", r"tok/s (\d+)", None),
    ("exit code", r"exitcode\s*: (-?\d+) ", None),
    ("pid", r"\(pid:? (\d+)\)", None),
)


def of_lines(name: str) -> Iterator[Truth]:
    for item in evidence(name).values():
        line = raw_line(name, item) if item["kind"] == "log" else ""
        if not line:
            continue
        words = line.split()
        middle = " ".join(line.strip().split(" ")[:6]) if len(words) > 6 else line.strip()
        if len(middle) > 5:
            yield Truth("quotation", name, Claim(item["id"], "line", "contains", middle))
        yield Truth(
            "line number",
            name,
            Claim(item["id"], "line number", "=", item["line"]),
            float(item["line"]),
        )
        for quantity, pattern, unit in READERS:
            found = re.findall(pattern, line)
            if (
                len(found) == 1
                and len(re.findall(rf"(?i)\b{quantity.replace(' ', '.?')}\b", line)) == 1
            ):
                value = float(found[0])
                yield Truth(
                    "number in a line",
                    name,
                    Claim(item["id"], quantity, "=", value, unit),
                    value,
                    unit,
                )
                yield Truth(
                    "bound in a line",
                    name,
                    Claim(item["id"], quantity, ">", value - abs(value) * 0.5 - 1, unit),
                    value,
                    unit,
                )
        same = [n for n, other in enumerate(raw_lines(name, item["source"]), 1)
                if line.strip() and line.strip()[:60] in other]  # fmt: skip
        if len(line.strip()) > 20 and same and same[-1] == item["line"]:
            yield Truth(
                "last such line", name, Claim(item["id"], "line", "last", line.strip()[:60])
            )


def of_times(name: str) -> Iterator[Truth]:
    iso = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")
    dated: list[tuple[Json, datetime]] = []
    for item in evidence(name).values():
        at = stamp(item.get("at") or "")
        if item["kind"] != "log" or at is None or item.get("at_assumed"):
            continue
        found = iso.search(raw_line(name, item)[:60])
        if found is None:
            continue
        parts = [int(part) for part in found.groups()[:6]]
        micros = int((found[7] or "0").ljust(6, "0"))
        if datetime(*parts, micros, tzinfo=UTC) != at:  # type: ignore[misc, arg-type]
            continue  # its zone is another: the test cannot tell by the line alone
        dated.append((item, at))
        here = at.astimezone(zone(5.5)).isoformat()
        start, end = at - timedelta(seconds=30), at + timedelta(seconds=30)
        yield Truth("time", name, Claim(item["id"], "time", "=", at.isoformat()))
        yield Truth("time, another zone", name, Claim(item["id"], "time", "=", here))
        yield Truth("time bound", name, Claim(item["id"], "time", "before", end.isoformat()))
        yield Truth(
            "window of a line",
            name,
            Claim(item["id"], "line number", "=", item["line"], window=(start, end)),
            float(item["line"]),
        )
    for (one, first), (other, second) in pairwise(dated):
        if one["source"] == other["source"] and abs((second - first).total_seconds()) > 3:
            in_order = one["line"] < other["line"]
            comparator = "before" if in_order else "after"
            yield Truth("order", name, Claim(one["id"], "time", comparator, other["id"]))


def zone(hours: float) -> timezone:
    return timezone(timedelta(hours=hours))


def of_queries(name: str) -> Iterator[Truth]:
    for item in evidence(name).values():
        if item["kind"] != "query" or not isinstance(item["value"], int | float):
            continue
        value, unit, query = float(item["value"]), item["unit"], item["query"]
        at = stamp(item["end"])
        assert at is not None
        own = unit if unit not in ("value", "code", "flag", "bitmask") else None
        base = Claim(item["id"], query, "=", value, own)
        yield Truth("query", name, base, value, unit)
        for written, scale in UNITS.get(unit, ()):
            shown = _rounded(value * scale)
            yield Truth(
                "query, another unit", name, replace(base, value=shown, unit=written), value, unit
            )
        low, high = value - abs(value) * 0.2 - 0.5, value + abs(value) * 0.2 + 0.5
        yield Truth("bound", name, replace(base, comparator=">=", value=low), value, unit)
        yield Truth("bound", name, replace(base, comparator="<", value=high), value, unit)
        if value:
            near = replace(base, comparator="approx", value=value * 1.04, tolerance_ratio=0.05)
            yield Truth("about", name, near, value, unit)
        yield Truth("window", name, replace(base, window=(at, at)), value, unit)
        span = re.search(r"\[(\d+)([smh])\]", query)
        if span is not None and query.count("[") == 1:
            length = timedelta(seconds=int(span[1]) * {"s": 1, "m": 60, "h": 3600}[span[2]])
            yield Truth("window", name, replace(base, window=(at - length, at)), value, unit)
        metric = re.search(r"[A-Za-z_]\w*(?=[{\[])", query)
        plain = PLAIN.fullmatch(query)
        if metric is not None and plain is not None and metric[0] in SIGNALS:
            yield Truth(
                "signal by its name", name, replace(base, quantity=SIGNALS[metric[0]]), value, unit
            )
        place = item.get("place") or {}
        if place.get("host"):
            where = Place(host=place["host"], gpu=place.get("gpu"))
            yield Truth("place of a query", name, replace(base, place=where), value, unit)


def _rounded(value: float) -> float:
    """To four digits, but never before the point."""
    return round(value, max(0, 3 - math.floor(math.log10(abs(value))))) if value else 0.0


def of_places(name: str) -> Iterator[Truth]:
    for item in evidence(name).values():
        place = {
            part: value for part, value in (item.get("place") or {}).items() if value is not None
        }
        for part in ("rank", "task", "host", "gpu"):
            if part in place:
                yield Truth("place", name, Claim(item["id"], part, "=", place[part]))
                if item["kind"] == "log" and raw_line(name, item):
                    where = Place(**{part: place[part]})
                    yield Truth(
                        "line at a place",
                        name,
                        Claim(item["id"], "line number", "=", item["line"], place=where),
                        float(item["line"]),
                    )


def of_records(name: str) -> Iterator[Truth]:
    for item in evidence(name).values():
        found = re.fullmatch(r"(record|row) (\d+), (\w+)", item.get("pointer") or "")
        if item["kind"] != "record" or found is None:
            continue
        text = (runs()[name][0].run / item["source"]).read_text()
        if found[1] == "row":
            rows = [line.split("|") for line in text.splitlines() if "|" in line]
            fields = dict(zip(rows[0], rows[int(found[2])], strict=False))
        else:
            blocks = re.split(r"\n(?=JobId=|NodeName=)", text)
            fields = dict(re.findall(r"(?<!\S)(\w+)=(\S+)", blocks[int(found[2]) - 1]))
        yield Truth("record", name, Claim(item["id"], found[3], "=", fields[found[3]]))
        exit_code = re.fullmatch(r"(\d+):(\d+)", fields.get("ExitCode", ""))
        if exit_code is not None:
            code, sig = map(int, exit_code.groups())
            yield Truth("exit code", name, Claim(item["id"], "exit code", "=", code), float(code))
            yield Truth("exit code", name, Claim(item["id"], "signal", "=", sig), float(sig))


def of_the_rest(name: str) -> Iterator[Truth]:
    known = evidence(name)
    for item in known.values():
        if item["kind"] == "absence":
            patterns = item["searched"]["patterns"]
            yield Truth("absence", name, Claim(item["id"], "line", "absent", patterns[0]))
            files = [raw_lines(name, source) for source in item["searched"]["files"]]
            if all(files):
                lines = sum(len(file) - (not file[-1]) for file in files)
                yield Truth(
                    "lines searched",
                    name,
                    Claim(item["id"], "lines searched", "=", lines),
                    float(lines),
                )
        if item["kind"] == "derived" and item["method"].startswith("elapsed"):
            one, two = (stamp(known[ref]["at"]) for ref in item["inputs"])
            assert one is not None
            assert two is not None
            length = (two - one).total_seconds()
            yield Truth(
                "elapsed",
                name,
                Claim(item["id"], "elapsed", "=", round(length, 2), "s"),
                length,
                "s",
            )
            yield Truth(
                "elapsed",
                name,
                Claim(item["id"], "elapsed", "=", round(length * 1e3), "ms"),
                length,
                "s",
            )


SOURCES: tuple[Callable[[str], Iterator[Truth]], ...] = (
    of_lines,
    of_times,
    of_queries,
    of_places,
    of_records,
    of_the_rest,
)


@cache
def every_truth() -> tuple[Truth, ...]:
    return tuple(truth for name in runs() for source in SOURCES for truth in source(name))


def chosen(items: tuple[Any, ...], most: int) -> list[Any]:
    """As even a choice over the kinds as there is, the same in every process."""
    dice = random.Random(20261122)
    kinds: dict[str, list[Any]] = {}
    for item in items:
        kinds.setdefault(item.kind, []).append(item)
    for group in kinds.values():
        dice.shuffle(group)
    out: list[Any] = []
    while len(out) < most and any(kinds.values()):
        for kind in sorted(kinds):
            if kinds[kind] and len(out) < most:
                out.append(kinds[kind].pop())
    return out
