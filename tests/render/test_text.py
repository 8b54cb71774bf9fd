"""The page for a terminal: what fits, what is folded, what cannot steer."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import replace

import pytest

from flatline.model import (
    AbsenceCite,
    Action,
    Attempt,
    Claim,
    LogCite,
    Place,
    RuledOut,
    Undetermined,
)
from flatline.render.text import Look, render
from flatline.wording.columns import break_command, cells, elided, excerpt, wrap
from render import verdicts

SGR = re.compile(r"\x1b\[[0-9;]*m")
PAYLOAD = (
    "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202egnp.exe\u2066\u2028\r\n\x00\u200b\ud800</script>"
)


def wide_lines(page: str, width: int) -> list[str]:
    return [line for line in page.splitlines() if cells(SGR.sub("", line)) > width]


@pytest.mark.parametrize("name", ["found", "healthy", "undetermined", "huge"])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_asked(name: str, width: int) -> None:
    """Only a quoted argument of a command may be wider: it cannot be broken and be pasted."""
    wide = wide_lines(render(getattr(verdicts, name)(), Look(width)), width)
    assert [line for line in wide if "Reason=" not in line] == []


def test_colour_changes_no_character() -> None:
    """Without its escapes a coloured page is the plain one."""
    plain = render(verdicts.found(), Look(80))
    painted = render(verdicts.found(), Look(80, colour=True))
    assert SGR.sub("", painted) == plain
    assert painted != plain


def test_a_plain_page_has_no_escape() -> None:
    """What goes into a pipe or a file is text."""
    assert "\x1b" not in render(verdicts.found())


def test_the_headline_is_first_and_the_way_on_is_near() -> None:
    """Blame, place and whether to resubmit stand within the first dozen lines."""
    lines = render(verdicts.found()).splitlines()
    assert lines[0].startswith("✗ FAULT: GPU 3 of node07")
    top = "\n".join(lines[:12])
    for words in ("B2 gpu-hardware-fault", "infrastructure", "rank 59 GPU 3 on node07"):
        assert words in top
    assert "yes, but not on node07" in top


def test_sections_come_in_the_order_of_the_question() -> None:
    """Shows, implies, cannot decide, do, evidence, then what stands beside."""
    page = render(verdicts.found())
    heads = [line for line in page.splitlines()[1:] if line and line[0] not in " ✗"]
    assert [re.sub(r" \(\d+\)", "", head) for head in heads] == [
        "What the data shows",
        "What it implies",
        "What it cannot decide",
        "What to do",
        "Evidence",
        "Other findings",
        "Ruled out",
        "Not decidable",
        "Gaps",
    ]


def test_nothing_the_run_wrote_steers_the_terminal() -> None:
    """No escape, control, direction or line separator survives, in colour or without."""
    for look in (Look(80), Look(80, colour=True)):
        page = SGR.sub("", render(verdicts.hostile(PAYLOAD), look))
        steering = set(page) - {"\n"}
        assert not {c for c in steering if ord(c) < 32 or 0x7F <= ord(c) < 0xA0}
        assert not steering & set("\u202e\u2066\u2028\u200b\ud800")
        assert "\\x1b]52" in page


def test_a_painted_page_has_only_its_own_escapes() -> None:
    """An SGR sequence of the run's own is spelled out, not obeyed."""
    page = render(verdicts.hostile("\x1b[8mhidden"), Look(80, colour=True))
    assert "\x1b[8m" not in page
    assert "\\x1b[8m" in page


def test_sixteen_thousand_ranks_are_said_in_a_line() -> None:
    """Places are ranges, and what a range cannot hold is counted."""
    page = " ".join(render(verdicts.huge()).split())
    assert "ranks 0-7 GPUs 0-7 on node0001" in page
    assert "16,360 places more: ranks 24-16383 GPUs 0-7 on node[0004-2048]" in page


def test_long_lists_are_folded_and_counted() -> None:
    """Nothing is left out in silence."""
    page = " ".join(render(verdicts.huge()).split())
    assert "and 28 more claims" in page
    assert "and 32 more findings: f8 C2" in page
    assert "(rank0.log, rank20.log, rank40.log and 247 more)" in page
    assert "and 12 more gaps" in page
    assert len(render(verdicts.huge()).splitlines()) < 200


def test_a_long_line_keeps_what_tells() -> None:
    """The exception at the end of a long line is worth more than its beginning."""
    text = "INFO " + "x" * 300 + " torch.OutOfMemoryError: tried to allocate 91.6 GiB " + "y" * 300
    shown = excerpt(text, 80, frozenset(), "…")
    assert "torch.OutOfMemoryError: tried to allocate 91.6 GiB" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert cells(shown) <= 80


def test_a_long_line_keeps_what_its_claim_repeats() -> None:
    """Where no word of failure stands, the words of the claim decide."""
    text = "a" * 200 + " seq=88123 " + "b" * 200
    assert "88123" in excerpt(text, 60, frozenset({"88123"}), "…")


def test_a_megabyte_of_telling_words_is_cut_down_at_once() -> None:
    """A hostile line costs no more than its first part."""
    assert cells(excerpt("error " * 200_000, 80, frozenset({"error"}), "…")) <= 80


def test_a_broken_command_is_the_same_command() -> None:
    """Continuation lines are joined by the shell to what was written."""
    command = "scontrol update NodeName=a State=DRAIN Reason='bad card, see ticket 12' --quiet"
    lines = break_command(command, 40)
    assert len(lines) > 1
    script = "set -- " + "\n".join(lines) + '\nprintf "%s\\n" "$@"'
    heard = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert heard.stdout.splitlines() == shlex.split(command)


def test_wide_characters_count_two_columns() -> None:
    """A page in Chinese or with emoji keeps to its width too."""
    assert cells("ノード07") == 8
    assert all(cells(line) <= 20 for line in wrap("節点 " * 30 + "節" * 40, 20))


def test_a_query_is_cut_behind_its_punctuation() -> None:
    """A PromQL query too long for a line can still be pasted."""
    assert wrap('max(a_long_metric_name{host="node07",gpu="3"})', 40)[0].endswith(",")


def test_where_the_terminal_has_no_unicode_ascii_is_used() -> None:
    """Marks and ellipses have an ASCII form."""
    page = render(verdicts.found(), Look(80, unicode=False))
    assert page.isascii()
    assert page.startswith("x FAULT")


def test_a_page_taller_than_the_terminal_repeats_its_answer() -> None:
    """What scrolled away at the top is said again where the eye is."""
    tall = render(verdicts.found(), Look(80, height=30)).splitlines()
    assert tall[-1].split() == ["resubmit", *["yes,", "but", "not", "on", "node07"]]
    assert tall[-1] not in render(verdicts.found(), Look(80, height=500)).splitlines()[-3:]


def test_brief_is_one_line() -> None:
    """A loop over many runs gives a list."""
    page = render(verdicts.found(), Look(40, brief=True))
    assert page.startswith("✗ B2 GPU 3 of node07")
    assert page.count("\n") == 1


def test_confidence_is_never_rounded_up_to_confident() -> None:
    """0.7999 is not 0.80."""
    page = " ".join(render(replace(verdicts.found(), confidence=0.7999)).split())
    assert "(confidence 0.79, below 0.80: not confident)" in page


def test_several_attempts_are_listed() -> None:
    """A requeued run shows what became of each try."""
    tries = (Attempt(0, "node_fail", last_step=900), Attempt(1, "completed", last_step=5000))
    run = replace(verdicts.RUN, attempts=tries)
    page = render(replace(verdicts.found(), run=run, attempt_codes={0: "F1"}))
    assert "Attempts (2)" in page
    assert "node fail, reached step 900, F1" in page


def test_a_target_the_action_does_not_name_is_added() -> None:
    """Where to do it is never lost."""
    action = Action("escalate", "Look at the switch.", targets=("leaf03", "leaf04"))
    assert "on leaf[03-04]" in render(replace(verdicts.found(), actions=(action,)))


def test_many_ids_are_ranges() -> None:
    """A claim with a hundred citations has one bracket."""
    cites = tuple(LogCite("a.log", n, "a") for n in range(1, 101))
    page = render(replace(verdicts.undetermined(), shows=(Claim("all", cites),)))
    assert "- all [e1-e100]" in page


def test_an_unknown_place_is_said() -> None:
    """A culprit nothing names is not an empty line."""
    page = render(replace(verdicts.found(), culprits=(Place(),)))
    assert "unknown place" in page


def test_needs_are_ranked_by_what_they_would_decide() -> None:
    """The telemetry that settles most families is asked for first."""
    page = render(replace(verdicts.found(), confidence=0.8))
    assert page.index("GPU activity (SM active): D1, D3") < page.index("GPU clocks: B3")


def test_evidence_is_shown_even_where_only_exclusions_cite() -> None:
    """An undetermined verdict still shows what was looked at."""
    kept = verdicts.found().ruled_out
    page = render(replace(verdicts.undetermined(), ruled_out=kept))
    assert "  e1   logs/8308" in page


LONG = 'max by (host, gpu) (max_over_time(DCGM_FI_DEV_GPU_TEMP{host=~"node0[1-9]"}[10m]))' * 3


def test_a_long_query_is_cut_to_a_line_and_it_is_said_where_it_is_whole() -> None:
    """Both its ends stay; a short one is left as it is, and nothing is said of cutting."""
    claim = Claim("It is hot.", (replace(verdicts.POWER, query=LONG),))
    page = render(replace(verdicts.found(), shows=(claim,)), Look(80))
    shown = [line for line in page.splitlines() if "max by (host, gpu)" in line]
    assert len(shown) == 1
    assert "…" in shown[0]
    assert shown[0].endswith("[10m]))")
    assert "queries cut short here: whole with --format json" in page
    assert "cut short" not in render(verdicts.found(), Look(200))


@pytest.mark.parametrize("width", [5, 20, 41])
def test_a_text_loses_its_middle(width: int) -> None:
    """It fits, wide characters counted, and begins and ends as it did."""
    text = "host=node07 \u65e5\u672c gpu=3 and so on to the end"
    cut = elided(text, width, "…")
    assert cells(cut) <= width
    assert (cut[0], cut[-1]) == (text[0], text[-1])


def test_what_stays_open_is_short() -> None:
    """Codes in a line, four needs, and where the rest is."""
    families = [Undetermined(f"D{n}", f"family-{n}", (f"need {n}",)) for n in range(1, 7)]
    page = render(replace(verdicts.found(), undetermined=tuple(families), confidence=0.89))
    part = page.split("Not decidable (6)")[1]
    assert part.splitlines()[1].strip() == "D1-D6"
    assert part.count("  - need ") == 4
    assert "and 2 more needs; family by family: undetermined in --format json" in part


def test_a_sure_verdict_only_counts_what_stays_open() -> None:
    """Nobody goes looking for what would decide the rest."""
    families = [Undetermined(f"D{n}", f"family-{n}", (f"need {n}",)) for n in range(1, 7)]
    page = render(replace(verdicts.found(), undetermined=tuple(families), confidence=0.9, gaps=()))
    part = page.split("\n\nNot decidable (6)")[1]
    assert part.strip("\n").split("\n") == ["  D1-D6; why: --format json"]
    assert "What would help" not in page


def test_an_exclusion_is_told_without_the_names_of_patterns() -> None:
    """What was searched for inside is no word for a reader; how much was searched is."""
    absent = AbsenceCite("2 files", ("family:B1",), ("a", "b"), 40, "no failed allocation")
    ruled = RuledOut("B1", "gpu-out-of-memory", "none failed", (absent,))
    page = render(replace(verdicts.found(), ruled_out=(ruled,), shows=(Claim("x", (absent,)),)))
    assert "no failed allocation (of 2 files, 40 lines)" in " ".join(page.split())
    assert "family:B1" not in page


def test_steps_are_not_said_to_be_lost_where_no_checkpoint_was_told_of() -> None:
    """At most so many, and why no more is known."""
    whole = verdicts.found()
    run = replace(whole.run, last_step=70)
    page = " ".join(render(replace(whole, impact=None, run=run)).split())
    assert "at most 70 steps lost: no line read tells of a checkpoint" in page
