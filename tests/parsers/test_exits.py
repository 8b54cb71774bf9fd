"""What launchers say of how a process ended."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import ModuleType

import hyperscan
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flatline.model import Place
from flatline.parsers import (
    Reported,
    exits_composer,
    exits_deepspeed,
    exits_ide,
    exits_kaldi,
    exits_maxtext,
    exits_mpirun,
    exits_ray,
    exits_srun,
    exits_subprocess,
    exits_torchelastic,
)
from flatline.parsers._exits import ended, named, waited

MODULES = [
    exits_deepspeed,
    exits_composer,
    exits_ide,
    exits_kaldi,
    exits_maxtext,
    exits_mpirun,
    exits_ray,
    exits_srun,
    exits_subprocess,
    exits_torchelastic,
]


def read(module: ModuleType, lines: Iterable[str]) -> list[Reported]:
    """What one reader says of the lines its triggers let through."""
    reader = module.Reader()
    triggers = [re.compile(trigger) for trigger in module.TRIGGERS]
    said: list[Reported] = []
    for line in lines:
        if any(trigger.search(line) for trigger in triggers):
            said.extend(reader.feed(line))
    return said


@pytest.mark.parametrize(
    "status, end",
    [
        (0, (0, None)),
        (1, (1, None)),
        (-9, (None, 9)),
        (137, (137, 9)),
        (143, (143, 15)),
        (159, (159, 31)),
        (128, (128, None)),
        (160, (160, None)),
        (255, (255, None)),
        (3221225477, (3221225477, 11)),
        (-1073741819, (-1073741819, 11)),
        (-1073740791, (-1073740791, 6)),
        (3221225786, (3221225786, 2)),
        (3221225781, (3221225781, None)),
        (-99, (-99, None)),
    ],
)
def test_statuses(status: int, end: tuple[int | None, int | None]) -> None:
    """Python's negative codes are signals; 128+n is a code that reports a standard signal."""
    assert ended(status) == end


@pytest.mark.parametrize(
    "status, end", [(256, (1, None)), (9, (None, 9)), (139, (None, 11)), (36608, (143, None))]
)
def test_wait_statuses(status: int, end: tuple[int | None, int | None]) -> None:
    """The low seven bits are the signal, the next byte the code, bit 7 a core dump."""
    assert waited(status) == end


@pytest.mark.parametrize(
    "word, number",
    [
        ("Killed", 9),
        ("SIGSEGV", 11),
        ("segv", 11),
        ("Segmentation fault (core dumped)", 11),
        ("Aborted", 6),
        ("Bus error", 7),
        ("9", 9),
        ("Cancelled", None),
        ("", None),
    ],
)
def test_names_of_signals(word: str, number: int | None) -> None:
    """Names, numbers and what strsignal says."""
    assert named(word) == number


N3 = Place(host="n3", task=2)


@pytest.mark.parametrize(
    "line, said",
    [
        ("srun: error: n3: task 2: Exited with exit code 3", [Reported("srun", N3, 3)]),
        ("srun: error: n3: task 2: Killed", [Reported("srun", N3, None, 9)]),
        ("srun: error: n3: task 2: Exited with exit code 137", [Reported("srun", N3, 137, 9)]),
        ("srun: error: n3: task 2: Out Of Memory", [Reported("srun", N3, None, 9)]),
        ("srun: error: n3: task 2: Aborted (core dumped)", [Reported("srun", N3, None, 6)]),
        ("srun: error: n3: task2: Bus error", [Reported("srun", N3, None, 7)]),
        (
            "0: srun: error: n3: tasks 0,2-3: Terminated",
            [Reported("srun", Place(host="n3", task=t), None, 15) for t in (0, 2, 3)],
        ),
        (
            "srun: error: n[1-2]: tasks 0-1: Segmentation fault",
            [Reported("srun", Place(host=f"n{t + 1}", task=t), None, 11) for t in (0, 1)],
        ),
        (
            "srun: error: n[1,3]: tasks 2,4: Segmentation fault",
            [Reported("srun", Place(task=t), None, 11) for t in (2, 4)],
        ),
        (
            "srun: error: n[1-2]: tasks 1-2: Segmentation fault",
            [Reported("srun", Place(task=t), None, 11) for t in (1, 2)],
        ),
        ("srun: error: n3: task 2: Something new", []),
        ("srun: error: Node failure on n3", []),
        ("srun: error: Unable to allocate resources: Requested node", []),
    ],
)
def test_srun(line: str, said: list[Reported]) -> None:
    """Host, task, code and signal; several hosts on a line leave the tasks without one."""
    assert read(exits_srun, [line]) == said


def test_srun_caps_long_task_lists() -> None:
    """Sixty-four tasks, then one report for the rest; a hostile range costs nothing."""
    said = read(exits_srun, ["srun: error: n3: tasks 0-999: Killed"])
    assert [report.place.task for report in said] == [*range(64), None]
    hostile = read(exits_srun, ["srun: error: n3: tasks 0-999999999: Killed"])
    assert hostile == [Reported("srun", Place(host="n3"), None, 9)]


SUMMARY = """\
Failures:
[1]:
  time      : 2026-11-20_15:48:00
  host      : gpu07
  rank      : 5 (local_rank: 1)
  exitcode  : -15 (pid: 101)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 101
[2]:
  host      : gpu07
  rank      : 7 (local_rank: 3)
  exitcode  : -9 (pid: 103)  (SIGKILL)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  host      : localhost
  rank      : 4 (local_rank: 0)
  exitcode  : 1 (pid: 100)
============================================================
"""
AGENT = [
    "W1120 15:48:37 19305 torch/x/api.py:1028] Sending process 101 closing signal SIGTERM",
    "W1120 15:48:37 19305 torch/x/api.py:1028] Sending process 103 closing signal SIGTERM",
    "W1120 15:49:07 19305 torch/x/api.py:1047] Unable to shutdown process 103 via 15, forcefully",
    "E1120 15:49:07 19305 torch/x/api.py:1002] failed (exitcode: 1) local_rank: 0 (pid: 100) of",
]


def test_torchelastic_tells_its_own_doing_apart() -> None:
    """A worker the agent closed, one it had to kill, and what it calls the root cause."""
    failed, closed, forced, root = read(exits_torchelastic, [*AGENT, *SUMMARY.splitlines()])
    assert failed == Reported("torchelastic", Place(), 1)
    assert closed == Reported("torchelastic-closed", Place(host="gpu07", rank=5), None, 15)
    assert forced == Reported("torchelastic-forced", Place(host="gpu07", rank=7), None, 9)
    assert root == Reported("torchelastic", Place(rank=4), 1, first=True)


def test_torchelastic_signals_from_elsewhere() -> None:
    """Without the agent's own signal before it, a killed worker was killed by something else."""
    said = read(exits_torchelastic, SUMMARY.splitlines())
    assert {report.reporter for report in said} == {"torchelastic"}


def test_torchelastic_local_ranks() -> None:
    """A local rank becomes global only where the agent printed its global ranks."""
    line = "failed (exitcode: -11) local_rank: 1 (pid: 7) of binary: python"
    assert read(exits_torchelastic, [line])[0].place == Place()
    told = read(exits_torchelastic, ["  global_ranks=[4, 5, 6, 7]", line])
    assert told == [Reported("torchelastic", Place(rank=5), None, 11)]


def test_the_word_of_kaldis_queue() -> None:
    """A status past 128 is a signal's."""
    line = "queue.pl: job failed with status {}, log is in exp/tdnn/log/train.24.1.log"
    assert read(exits_kaldi, [line.format(134)]) == [Reported("run.pl", exit_code=134, signal=6)]
    assert read(exits_kaldi, [line.format(1)]) == [Reported("run.pl", exit_code=1)]
    assert not read(exits_kaldi, ["the job failed with status 134, see above"])


def test_torchelastic_in_one_line() -> None:
    """As a summary is pasted that lost its line breaks."""
    text = "rank2 (local rank: 2)exitcode: -9 (pid: 360)error file: <N/A>"
    assert [report.signal for report in read(exits_torchelastic, [text])] == [9]
    assert not read(exits_torchelastic, ["the last exitcode: -9 (pid: 360) was ours"])


def test_torchelastic_of_torch_1_8() -> None:
    """The older summary names the root first and writes no padding."""
    text = (
        "Root Cause:\n[0]:\n  rank: 1 (local_rank: 1)\n  exitcode: 1 (pid: 5)\nOther Failures:\n"
    )
    assert read(exits_torchelastic, text.splitlines()) == [
        Reported("torchelastic", Place(rank=1), 1, first=True)
    ]


@pytest.mark.parametrize(
    "line, said",
    [
        (
            "gpu1: [2023-11-29 08:57:32,274] [ERROR] [launch.py:321:sigkill_handler] "
            "['python', 'a.py', '--local_rank=7'] exits with return code = -9",
            [Reported("deepspeed", Place(), None, 9, first=True)],
        ),
        ("[INFO] [launch.py:315:sigkill_handler] Killing subprocess 49034", []),
        (
            "pdsh@login1: worker-2: ssh exited with exit code 255",
            [Reported("pdsh", Place(host="worker-2"), 255)],
        ),
        (
            "pdsh@login1: worker-2: ssh exited with exit code 247",
            [Reported("pdsh", Place(host="worker-2"), 247, 9)],
        ),
        ("prep tag exits with return code = 1", []),
    ],
)
def test_deepspeed(line: str, said: list[Reported]) -> None:
    """The printed command is the last one launched: its local rank is no place."""
    assert read(exits_deepspeed, [line]) == said


CALLED = "subprocess.CalledProcessError: Command "


@pytest.mark.parametrize(
    "line, said",
    [
        (
            f"{CALLED}'['/usr/bin/python3.11', 'train.py']' returned non-zero exit status 1.",
            [Reported("subprocess", exit_code=1)],
        ),
        (
            f"{CALLED}'['/opt/conda/bin/python', '-u', '-m', 'm.train']' died with "
            "<Signals.SIGKILL: 9>.",
            [Reported("subprocess", signal=9)],
        ),
        (
            f"{CALLED}'python train.py' returned non-zero exit status 137.",
            [Reported("subprocess", exit_code=137, signal=9)],
        ),
        (f"{CALLED}'['git', 'rev-parse']' returned non-zero exit status 128.", []),
        (f"{CALLED}'['ninja', '-v']' returned non-zero exit status 1.", []),
        (f"{CALLED}'['/usr/bin/python3', '-m', 'pip', 'x']' returned non-zero exit status 1.", []),
        (f"{CALLED}'['python', '-c', 'import x']' returned non-zero exit status 1.", []),
    ],
)
def test_python_launchers(line: str, said: list[Reported]) -> None:
    """Only a Python program that is the run counts; git, ninja, pip and -c do not."""
    assert read(exits_subprocess, [line]) == said


def test_mpirun_signals_also_where_the_sentence_wraps() -> None:
    """Open MPI 4 and 5, on one line, and with the signal or the node on the next."""
    whole = (
        "mpirun noticed that process rank 3 with PID 0 on node gpu1 exited on signal 9 (Killed)."
    )
    wrapped = [whole.replace("mpirun", "prterun")[:77], "signal 9 (Killed)."]
    early = [
        "mpirun noticed that process rank 3 with PID 7 on node",
        "gpu1 exited on signal 9 (Killed).",
    ]
    place = Place(host="gpu1", rank=3)
    assert read(exits_mpirun, [whole]) == [Reported("mpirun", place, None, 9, first=True)]
    assert read(exits_mpirun, wrapped) == [Reported("prterun", place, None, 9, first=True)]
    assert read(exits_mpirun, early) == [Reported("mpirun", place, None, 9, first=True)]


@pytest.mark.parametrize("name", ["[[63697,1],3]", "[prterun-gpu1-147515@1,3]"])
def test_mpirun_exit_codes(name: str) -> None:
    """The process name's last number is the rank; a code alone belongs to nobody."""
    said = read(exits_mpirun, [f"  Process name: {name}", "  Exit code:    134"])
    assert said == [Reported("mpirun", Place(rank=3), 134, 6, first=True)]
    assert read(exits_mpirun, ["  Exit code:    1"]) == []


def test_mpi_abort() -> None:
    """The rank that called MPI_Abort and the code it gave."""
    lines = ["MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD", "with errorcode 1."]
    assert read(exits_mpirun, lines) == [Reported("MPI_Abort", Place(rank=2), 1)]


@pytest.mark.parametrize(
    "lines, said",
    [
        (
            ["=   RANK 1 PID 65033 RUNNING AT n1", "=   KILLED BY SIGNAL: 9 (Killed)"],
            [Reported("hydra", Place(host="n1", rank=1), None, 9)],
        ),
        (
            ["=   PID 5279 RUNNING AT n1", "=   EXIT CODE: 139"],
            [Reported("hydra", Place(host="n1"), 139, 11)],
        ),
        (
            [
                "=   PID 5279 RUNNING AT n1",
                "=   EXIT CODE: 9",
                "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
            ],
            [
                Reported("hydra", Place(host="n1"), 9),
                Reported("hydra", Place(host="n1"), None, 9),
            ],
        ),
        (
            [
                "=   PID 5279 RUNNING AT n1",
                "=   EXIT CODE: 9",
                "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Terminated (signal 15)",
            ],
            [Reported("hydra", Place(host="n1"), 9)],
        ),
        (
            ["=   PID 5279 RUNNING AT n1", "=   EXIT CODE: 256"],
            [Reported("hydra", Place(host="n1"), 1)],
        ),
    ],
)
def test_hydra(lines: list[str], said: list[Reported]) -> None:
    """MPICH's block; a small EXIT CODE is a signal only where the exit string says the same."""
    assert read(exits_mpirun, lines) == said


def test_horovod() -> None:
    """Horovod names its ranks; negative and 128+n statuses are signals."""
    lines = [
        "Mon Nov 20 Process 3 exit with status code 137.",
        "Process 0 exit with status code 1.",
    ]
    assert read(exits_mpirun, lines) == [
        Reported("horovod", Place(rank=3), 137, 9),
        Reported("horovod", Place(rank=0), 1),
    ]


@pytest.mark.parametrize(
    "line, said",
    [
        (
            "Worker IP address: 10.80.8.181 Worker port: 45 Worker PID: 2 Worker exit type: "
            "SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error "
            "code 2. End of file. (1) The process is killed by SIGKILL by OOM killer (3) SIGSEGV",
            [Reported("ray", Place(host="10.80.8.181"))],
        ),
        (
            "Worker exit type: USER_ERROR Worker exit detail: Worker exits with an exit code 1.",
            [Reported("ray", Place(), 1)],
        ),
        (
            "Worker exit type: NODE_OUT_OF_MEMORY Worker exit detail: x",
            [Reported("ray", signal=9)],
        ),
        ("Worker exit type: INTENDED_USER_EXIT Worker exit detail: x", []),
    ],
)
def test_ray(line: str, said: list[Reported]) -> None:
    """The possible causes that Ray lists are no causes, its connection error no exit code."""
    assert read(exits_ray, [line]) == said


@pytest.mark.parametrize(
    "line, said",
    [
        ("3: NODE_EXIT host=gpu07 exit=137", [Reported("maxtext", Place(host="gpu07"), 137, 9)]),
        (
            "[Node 3 @ gpu07] Training subprocess killed by SIGSEGV (signal 11)",
            [Reported("maxtext", Place(host="gpu07"), None, 11)],
        ),
        (
            "[Node 3 @ gpu07] Training subprocess (pid=7) exited with code 1",
            [Reported("maxtext", Place(host="gpu07"), 1)],
        ),
        ("== Training FAILED (exit=137, 12s) ==", [Reported("maxtext", Place(), 137, 9)]),
        ("[Node 3 @ gpu07] Training subprocess exited with code 0", []),
        ("[Node 3 @ gpu07] Training subprocess started (pid=7)", []),
    ],
)
def test_maxtext(line: str, said: list[Reported]) -> None:
    """The node's rank is no task; a clean end is no report."""
    assert read(exits_maxtext, [line]) == said


@pytest.mark.parametrize("module", MODULES)
def test_triggers_compile_in_both_engines(module: ModuleType) -> None:
    """Every trigger is a pattern of Python and of Hyperscan."""
    database = hyperscan.Database()
    database.compile(expressions=[trigger.encode() for trigger in module.TRIGGERS])
    assert all(re.compile(trigger) for trigger in module.TRIGGERS)


WORDS = [
    "srun: error: n[1-",
    "]: tasks 0-",
    ",,",
    ": Killed",
    "exitcode : -",
    " (pid: 1",
    ")",
    "rank : 1",
    "(local_rank: 2)",
    "Root Cause:",
    "global_ranks=[",
    "noticed that process rank 1",
    "signal 9 (K",
    "Process name: [[1,1],2]",
    "Exit code:  1",
    "EXIT CODE: ",
    "999999999",
    "NODE_EXIT host=a exit=",
    "Worker exit type: A",
    "CalledProcessError: Command '['python'",
    " returned non-zero exit status 1",
]


@given(st.lists(st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=5), max_size=6))
def test_no_lines_raise(lines: list[list[str]]) -> None:
    """A reader answers any lines in any order, triggered or not."""
    for module in MODULES:
        reader = module.Reader()
        for words in lines:
            assert all(isinstance(said, Reported) for said in reader.feed("".join(words)))


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("Process finished with exit code 137 (interrupted by signal 9: SIGKILL)", (137, 9)),
        ("Process finished with exit code -1073741819 (0xC0000005)", (-1073741819, 11)),
        ("Process finished with exit code 1", (1, None)),
    ],
)
def test_the_console_of_an_editor(line: str, end: tuple[int, int | None]) -> None:
    """What it prints last, and what no program in it prints."""
    (said,) = read(exits_ide, [line, "the log says: Process finished with exit code 9"])
    assert (said.exit_code, said.signal) == end
    assert not read(exits_ide, ["Process finished with exit code 0"])


def test_a_child_on_windows() -> None:
    """Its path has backslashes, its status is an NTSTATUS."""
    line = (
        "subprocess.CalledProcessError: Command '['C:\\\\venv\\\\Scripts\\\\python.exe', "
        "'train.py']' returned non-zero exit status 3221225477."
    )
    (said,) = read(exits_subprocess, [line])
    assert (said.exit_code, said.signal) == (3221225477, 11)


def test_the_launcher_of_composer() -> None:
    """It names the first rank that it finds ended."""
    first, second, third = read(
        exits_composer,
        [
            "ERROR:composer.cli.launcher:Rank 1 crashed with exit code -7.",
            "Rank 0 crashed with exit code 1.",
            "Rank 0 crashed with exit code one.",
            "ERROR:composer.cli.launcher:Global rank 5 (PID 41207) exited with code -9",
            "Global rank 5 (PID 41207) exited with codec -9",
        ],
    )
    assert (first.place.rank, first.exit_code, first.signal) == (1, None, 7)
    assert (second.place.rank, second.exit_code, second.signal) == (0, 1, None)
    assert (third.place.rank, third.exit_code, third.signal) == (5, None, 9)


def test_an_agent_that_names_the_binary_first() -> None:
    """As a cloud's own build of the launcher prints it."""
    text = (
        "[ERROR] failed (exitcode: -9) for binary located at /envs/memvla/bin/python3.10 with"
        " local_rank: 0 (process ID: 71) [master-0]"
    )
    (event,) = read(exits_torchelastic, [text])
    assert event.signal == 9
