"""What a log shows of other files its run did not say, and the run's own word still counts."""

import json
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

FULL = "OSError: [Errno 28] No space left on device"
BLOCK = [
    "Traceback (most recent call last):",
    '  File "/home/ines/fit.py", line 61, in <module>',
    "    save(model)",
    FULL,
]
STEPS = [f"step {n}/400 loss {4 / n:.3f}" for n in range(1, 9)]
DIED = ["job.sh: line 9: 5512 Killed                  python fit.py"]
PASSED_ON = {
    "a script that is listed": ["+ cat job.sbatch", "#!/bin/bash", *BLOCK, "+ srun python fit.py"],
    "lines of a program": ["+ head -n 20 fit.py", "import torch", *BLOCK, "+ true"],
    "a page": ["+ cat README.md", "If you meet", *BLOCK, "ask for space.", "+ true"],
    "a string of a traced command": ["+ KNOWN='first", *BLOCK, "last'", "+ export KNOWN"],
    "a commit": ["commit 1f3c9ab20d", "Author: Ines <i@example.org>", "",
                 *[f"    {x}" for x in BLOCK]],
    "a verdict": ["✗ FAULT: the disk is full", "", "Evidence", *[f"   {x}" for x in BLOCK]],
    "what options are for": ["usage: fit.py [-h]", "options:", f"  --quota N  against {FULL!r}",
                             f"             {FULL}"],
    "a statement": [f'    print("gave up: {FULL}")'],
    "a trap": [f"trap 'echo \"{FULL}\"' EXIT"],
    "a cell": ["| prompt | completion |", "|--------|------------|", f"| why | {FULL} |"],
    "a cell that is drawn": ["┏━━━━━━━━━━┳━━━━━━━━━━━━━┓", "┃ Prompt   ┃ Completion  ┃",
                             "┡━━━━━━━━━━╇━━━━━━━━━━━━━┩", f"│ why      │ {FULL} │"],
    "a frame": ["                    text  label", f"0  {FULL}  1"],
    "a turn of Llama 3": ["<|begin_of_text|><|start_header_id|>user<|end_header_id|>", *BLOCK,
                          "<|eot_id|>"],
}  # fmt: skip
DOUBTED = {
    "an earlier run's end": ["+ tail -n 8 slurm-77.out", *BLOCK, "+ srun python fit.py"],
    "a log that was searched": [f"slurm-77.out:812:{FULL}", "loading"],
    "what is quoted": ["the last job said", f"> {FULL}", "loading"],
    "a heading": ["--- end of the previous run ---", *BLOCK],
    "a fence": ["See", "```", *BLOCK, "```", "for more."],
    "a build of pip": ["  ╰─> [9 lines of output]", *[f"      {x}" for x in BLOCK],
                       "      [end of output]"],
    "a string with breaks": [repr("\n".join(BLOCK))],
    "a value of a row": [json.dumps({"id": 3, "body": FULL})],
    "a list that is logged": [f"2026-03-01 04:00:09,120 INFO {BLOCK!r}"],
    "a list": [repr(BLOCK)],
    "a setting": [f"LAST_NOTE={FULL}"],
    "advice": [f' - if a run ends with "{FULL}", ask for more'],
    "parts of a sample": ["Question: what is this?", *BLOCK, "Answer: a full disk"],
    "a sample of verl": ["[prompt] user", *BLOCK, "[response] a full disk", "[score] 1.0"],
}  # fmt: skip
SAID = {
    "alone": BLOCK,
    "below a command that runs": ["+ srun python fit.py", *BLOCK],
    "below a command that writes": ["+ cat part1.txt part2.txt > all.txt", *BLOCK],
    "below a filter of its output": ["+ srun python fit.py", "+ grep -v 'a b'", *BLOCK],
    "below what was piped into it": ["+ python fit.py", "+ cat rows.jsonl", *BLOCK, "+ true"],
    "below a program with settings": ["+ env A=1 python fit.py", *BLOCK],
    "once the trace was turned off": ["+ set +x", *BLOCK],
    "further down than was asked for": ["+ tail -n 2 slurm-77.out", "a", "b", *BLOCK],
    "after what was listed": ["+ cat conf.yaml", "lr: 1", "+ python fit.py", *BLOCK],
    "below a usage": ["usage: fit.py [-h]", FULL],
    "a row of a handler": [json.dumps({"rank": 0, "error": "\n".join(BLOCK)})],
    "an exception as Python shows it": [f"worker: {OSError(28, FULL)!r}"],
    "a log of quoted lines": [f"> {x}" for x in [*STEPS, *BLOCK]],
    "where a run goes on from": ["resuming from the last run, checkpoint 3:", *BLOCK],
    "a log that a person listed": ["$ cat fit.err", *BLOCK],
    "a process that names its rank": [f"LOCAL_RANK=3 {FULL}"],
    "what was being done": [f"failed when saving 'model.pt': {FULL}"],
    "a list that is logged as an error": [f"2026-03-01 04:00:09,120 ERROR {BLOCK!r}"],
    "a box of a report": ["| step | status |", "|------|--------|", f"| 8 | {FULL} |"],
}


def of(folder: Path, *lines: str) -> Verdict:
    (folder / "fit.log").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("how", PASSED_ON)
def test_what_is_shown_of_a_text_is_never_sure(tmp_path: Path, how: str) -> None:
    verdict = of(tmp_path, "loading", *PASSED_ON[how], *DIED)

    assert verdict.code == "A2" or verdict.confidence < 0.8


@pytest.mark.parametrize("how", DOUBTED)
def test_what_may_be_another_run_s_is_not_sure(tmp_path: Path, how: str) -> None:
    verdict = of(tmp_path, *STEPS, *DOUBTED[how], "bye")

    assert verdict.code in ("C6", None)
    assert verdict.confidence < 0.8


@pytest.mark.parametrize("how", SAID)
def test_what_a_run_says_beside_such_lines_is_still_told(tmp_path: Path, how: str) -> None:
    verdict = of(tmp_path, "loading", *SAID[how])

    assert verdict.code == "C6"
    assert verdict.confidence >= 0.8


def test_a_launcher_s_report_that_is_shown_is_doubted(tmp_path: Path) -> None:
    report = "srun: error: node9: task 3: Killed"

    assert of(tmp_path, *STEPS, "+ cat NOTES.md", report, "+ true").confidence < 0.8
    assert of(tmp_path, *STEPS, "+ true", report).code == "A2"


def test_a_scheduler_s_word_that_is_shown_is_doubted(tmp_path: Path) -> None:
    told = ("slurmstepd: error: *** JOB 77 ON node9 CANCELLED AT 2026-03-01T04:00:00"
            " DUE TO TIME LIMIT ***")  # fmt: skip

    assert of(tmp_path, *STEPS, "+ tail slurm-77.out", told, "+ true").confidence < 0.8
    assert of(tmp_path, *STEPS, told).code == "F3"


def test_a_sample_that_tells_of_the_last_step_reaches_no_plan(tmp_path: Path) -> None:
    sample = ["<bos><start_of_turn>user", *(f"step {n}/400 loss 0.1" for n in range(397, 401)),
              "training finished", "<end_of_turn>"]  # fmt: skip

    assert of(tmp_path, *STEPS, *sample).state != "healthy"
    assert of(tmp_path, *STEPS, *sample[1:-1]).state == "healthy"


def test_a_dated_line_from_long_before_the_run_did_not_end_it(tmp_path: Path) -> None:
    dated = [f"2026-03-01 04:00:0{n} {line}" for n, line in enumerate(STEPS)]
    lost = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python, GPU has fallen off the bus."

    assert of(tmp_path, *dated, f"[Thu Feb 13 01:00:00 2025] {lost}").code is None
    assert of(tmp_path, *dated, f"[Sun Mar  1 04:00:09 2026] {lost}").code == "B2"


@pytest.mark.parametrize("year", ["2025", "2026"])
def test_a_log_whose_clock_was_wrong_still_says_how_it_ended(tmp_path: Path, year: str) -> None:
    (tmp_path / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NodeList\n"
        "77|FAILED|1:0|2026-03-01T03:59:00|2026-03-01T04:05:00|n1\n"
    )
    dated = [f"{year}-03-01 04:00:0{n} {line}" for n, line in enumerate(STEPS)]
    ended = f"{year}-03-01 04:00:09 ERROR RuntimeError: CUDA out of memory. Tried to allocate 2.00"
    card = "(GPU 0; 79.15 GiB total capacity; 77.00 GiB already allocated; 1.20 GiB free)"

    assert of(tmp_path, *dated, f"{ended} GiB {card}").code == "B1"


def test_a_sentence_is_no_heading_of_a_table(tmp_path: Path) -> None:
    died = "4242  torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"

    assert of(tmp_path, *STEPS, "Output directory: /runs/a, resume=True", died).code == "B1"
    assert of(tmp_path, *STEPS, "   prompt   completion", died, "bye").confidence < 0.8


def test_a_collective_that_timed_out_in_another_s_log_is_not_sure(tmp_path: Path) -> None:
    told = (
        "[rank6]:[E301 04:09:00.112233445 ProcessGroupNCCL.cpp:632] [Rank 6] Watchdog caught"
        " collective operation timeout: WorkNCCL(SeqNum=4417, OpType=ALLREDUCE, NumelIn=64,"
        " NumelOut=64, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
    )

    assert of(tmp_path, *STEPS, f"slurm-77.out:812:{told}", "bye").confidence < 0.8
    assert of(tmp_path, *STEPS, told, "bye").confidence >= 0.8


@pytest.mark.parametrize(
    ("before", "sure"),
    [("", True), ("# ", False), ("echo ", False)],
    ids=["printed", "a comment", "a command"],
)
def test_what_was_printed_below_a_script(tmp_path: Path, before: str, sure: bool) -> None:
    """The script of a job may stand above what it printed."""
    script = ["#!/bin/bash", "#SBATCH --nodes=1", "srun apptainer exec app.sif python fit.py"]
    said = f'{before}FATAL:   "python": executable file not found in $PATH'
    (tmp_path / "slurm-8.out").write_text("\n".join([*script, said, ""]))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code == "F4" and verdict.confidence >= 0.8) == sure
