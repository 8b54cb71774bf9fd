"""What a program prints of somebody's text is told from what it says."""

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.logs.quoted import passed_on, within_a_turn

FULL = "OSError: [Errno 28] No space left on device"
PASSED_ON = {
    "a row of a chat": '{"role": "user", "content": "%s"}',
    "a row of instructions": "ds[7]: {'instruction': 'Explain', 'input': '%s'}",
    "a question": "2026-03-01 10:00:00 INFO eval] Question: what is '%s'?",
    "a numbered sample": "sample 12: Once upon a time %s was said",
    "a template": "decoded: <s>[INST] %s [/INST] Free the disk.</s>",
    "a command of a trace": "++ grep -c '%s' old.log",
    "a comment": "# on `%s`: ask for a larger quota",
    "a condition": 'if grep -q "job: %s" out.log; then',
    "a list of a program": "    TRANSIENT = ['Connection reset', '%s']",
}
SAID = {
    "alone": "%s",
    "with a level": "ERROR: %s",
    "a row of a logger": '{"level": "error", "text": "%s"}',
    "an exception as Python shows it": "sample 12: RuntimeError('%s')",
    "a task of a launcher": "[rank3]: %s",
    "in a sentence of its own": "could not save: '%s'",
    "a user of a system": "quota of user ana: %s",
    "a sample that failed": "Error processing sample 3: %s",
}
CHATS = {
    "a template": ["<|im_start|>user", "My job says:", FULL, "<|im_end|>"],
    "headings": ["### Instruction:", "What does this mean?", "", FULL, "### Response:", "A disk."],
    "a sample under its heading": [
        "--- sampled output (step 40) ---",
        "The screen read",
        FULL,
        8 * "-",
    ],
}


@pytest.mark.parametrize("how", PASSED_ON)
def test_text_that_a_line_passes_on(how: str) -> None:
    line = PASSED_ON[how] % FULL

    assert passed_on(line, line.index("[Errno 28]"))


@pytest.mark.parametrize("how", SAID)
def test_what_a_line_says(how: str) -> None:
    line = SAID[how] % FULL

    assert not passed_on(line, line.index("OSError"))


@pytest.mark.parametrize("how", CHATS)
def test_a_line_within_a_chat(how: str) -> None:
    lines = CHATS[how]

    at = lines.index(FULL)

    assert within_a_turn(reversed(lines[:at]), lines[at + 1 :])
    assert not within_a_turn(reversed(lines[:at]), [])


@pytest.mark.parametrize("end", ["<|im_end|>", "2026-03-01 10:00:00 saving", "step 40 loss 2.1"])
def test_a_chat_is_over(end: str) -> None:
    assert not within_a_turn(reversed(["<|im_start|>user", "hello", end]), ["<|im_end|>"])


DIED = ["job.sh: line 22: 44121 Killed                  python train.py"]


@pytest.mark.parametrize(
    "lines", [*([form % FULL] for form in PASSED_ON.values()), *CHATS.values()]
)
def test_a_run_that_prints_of_errors_did_not_have_them(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "train.log").write_text("\n".join(["loading", *lines, *DIED]) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, {f.finding.code for f in verdict.findings}) == ("A2", {"A2"})


@pytest.mark.parametrize("form", SAID.values())
def test_a_run_that_says_so_had_it(tmp_path: Path, form: str) -> None:
    (tmp_path / "train.log").write_text("\n".join(["loading", form % FULL]) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == "C6"
