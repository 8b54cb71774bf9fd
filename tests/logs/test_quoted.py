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
    "a sample that was left out": "skipped example 55: %s",
    "what was being done": "during generation: %s",
    "a sample's own exception": "Sample 12: %s",
    "a row that is dated": '{"text": "%s", "time": "2026-03-01T10:00:00"}',
    "a row of a stream": '{"content": "%s", "type": "stderr"}',
    "a list of errors": "errors: ['%s']",
    "an exception that names a token": "%s: 'cache of <|eot_id|>.bin'",
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


RAN_OUT = [
    "Traceback (most recent call last):",
    '  File "train.py", line 99, in <module>',
    "    loss.backward()",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
    " capacity of 79.15 GiB of which 1.02 GiB is free.",
]
LAST_PRINTED = {
    "a template": ["### Instruction:", "Give three tips.", "", "### Response:", "Sleep."],
    "a turn": ["<|im_start|>user", "hi<|im_end|>", "<|im_start|>assistant", "hello"],
    "an instruction": ["[INST] hello"],
    "a heading": ["--- generated text ---", "Once upon a time"],
    "a heading drawn as launchers do": ["====== Prompt ======", "Once upon a time"],
}
LAUNCHERS = {
    "torchrun": ["=" * 60, "train.py FAILED", "-" * 60, "Failures:", "=" * 60],
    "mpirun": ["-" * 74, "Primary job  terminated normally, but 1 process returned", "-" * 74],
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("printed", LAST_PRINTED)
def test_a_run_that_dies_once_it_printed_a_sample(
    tmp_path: Path, printed: str, launcher: str
) -> None:
    lines = ["loading", *LAST_PRINTED[printed], *RAN_OUT, *LAUNCHERS[launcher]]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == "B1"


def test_a_servers_status_is_no_text() -> None:
    assert not passed_on("response: 503 Server Error: Service Unavailable", 14)


@pytest.mark.parametrize("form", SAID.values())
def test_a_run_that_says_so_had_it(tmp_path: Path, form: str) -> None:
    (tmp_path / "train.log").write_text("\n".join(["loading", form % FULL]) + "\n")

    assert diagnose(collect(Request((str(tmp_path),)))).code == "C6"
