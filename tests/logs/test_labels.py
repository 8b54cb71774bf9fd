"""Labels of launchers: taken off where they are labels, left where they are text."""

from __future__ import annotations

import random

import pytest

from flatline.logs.labels import Labelled, Labels
from flatline.model import Place


def srun(tasks: int, lines: int = 60, width: int | None = None) -> list[str]:
    """What `srun --label` prints of so many tasks, interleaved."""
    dice = random.Random(tasks)
    width = width or len(str(tasks - 1))
    return [f"{dice.randrange(tasks):>{width}}: step {n} done" for n in range(lines)]


def said(labels: Labels, text: str) -> tuple[int | None, int | None, str | None, str]:
    """(rank, task, host, text)."""
    found = labels.split(text)
    return found.place.rank, found.place.task, found.place.host, found.text


@pytest.mark.parametrize(
    ("tasks", "line", "task", "text"),
    (
        (4, "3: loss 2.5", 3, "loss 2.5"),
        (24, " 3: loss 2.5", 3, "loss 2.5"),
        (24, "17:   File kept", 17, "  File kept"),
        (24, "17:", 17, ""),
    ),
)
def test_srun_labels_are_tasks(tasks: int, line: str, task: int, text: str) -> None:
    """Blank-padded to one width; exactly one blank follows, the rest is the line's own."""
    assert said(Labels.learn(srun(tasks)), line) == (None, task, None, text)


def test_zero_padded_labels_of_older_slurm_are_tasks() -> None:
    """`03: ` in a file where all labels have two digits."""
    labels = Labels.learn(
        [line.replace(" ", "0", 1) if line[0] == " " else line for line in srun(24)]
    )

    assert said(labels, "03: x")[1] == 3


def test_a_component_of_a_heterogeneous_job_has_streams_of_its_own() -> None:
    """Task 3 of component 1 is not task 3 of component 0."""
    labels = Labels.learn([f"P{n % 2} {n % 4}: x {n}" for n in (3, 1, 0, 2, 2, 0, 3, 1) * 5])

    assert labels.split("P1 3: x").key != labels.split("P0 3: x").key
    assert labels.split("P1 3: x").text == "x"


@pytest.mark.parametrize(
    "sample",
    (
        ["0: airplane", "1: automobile", "2: bird", "3: cat", "4: deer", "5: dog"],
        ["loading", "0: something", "done", "step 1", "step 2", "step 3"] * 9,
        [f"{n}: acc {n}" for n in range(10)] * 9 + ["epoch done"] * 40,
        ["12:30: lunch", "10:15: tea"] * 9,
        [],
    ),
)
def test_numbers_before_a_colon_may_be_text(sample: list[str]) -> None:
    """A list, a stray line, a table of every epoch: nothing that srun labelled."""
    assert said(Labels.learn(sample), "0: something") == (None, None, None, "0: something")


def test_a_labelled_step_within_a_script_is_enough() -> None:
    """The batch script's own lines are most of the file."""
    labels = Labels.learn(["+ export X=1"] * 300 + srun(8) + ["+ exit"] * 99)

    assert said(labels, "7: x") == (None, 7, None, "x")


def test_only_the_width_of_the_file_is_a_label() -> None:
    """In a job of 24 tasks `3: ` is text, and a label stands once."""
    labels = Labels.learn(srun(24))

    assert said(labels, "3: x") == (None, None, None, "3: x")
    assert said(labels, " 3: 17: x") == (None, 3, None, "17: x")


def test_a_short_log_in_which_nobody_counts_is_labelled() -> None:
    """Four tasks said one line each, in the order they happened to."""
    labels = Labels.learn(["1: hi", "3: hi", "0: hi", "2: hi"])

    assert said(labels, "3: hi") == (None, 3, None, "hi")


def test_torchruns_label_is_a_local_rank() -> None:
    """It is handed on as such: whether it is the rank depends on the number of nodes."""
    found = Labels().split("[default3]:  File kept")

    assert (found.local_rank, found.place.rank, found.text) == (3, None, "  File kept")
    assert found.key != Labels().split("[default1]:x").key


def test_torchs_own_prefix_is_a_rank() -> None:
    """Behind torchrun's label or without it; one blank belongs to the prefix."""
    assert said(Labels(), "[default1]:[rank13]: Traceback")[::3] == (13, "Traceback")
    assert said(Labels(), "[rank13]:   File kept")[::3] == (13, "  File kept")
    assert said(Labels(), "[rank0]:[E1206 18:44:12.715 x.cpp:607] y")[::3] == (
        0,
        "[E1206 18:44:12.715 x.cpp:607] y",
    )


def test_a_role_of_the_users_own_is_learned() -> None:
    """`[trainer0]:` before most lines is torchrun's; `[step10]:` counts, and is text."""
    labels = Labels.learn([f"[trainer{n * 7 % 4}]:step {n}" for n in range(40)])
    steps = Labels.learn([f"[step{n}]: loss {n}" for n in range(40)])

    assert labels.split("[trainer2]:x").local_rank == 2
    assert steps.split("[step3]: loss 3").text == "[step3]: loss 3"


@pytest.mark.parametrize(
    ("line", "rank", "host", "text"),
    (
        ("[1,3]<stdout>:  File kept", 3, None, "  File kept"),
        ("[1,3]<stderr>: x", 3, None, " x"),
        ("[prterun-gpu01-77@1,12]<stdout>:x", 12, None, "x"),
        ("[5]<stderr>:x", 5, None, "x"),
        ("[1,mpirank:2,algo-1]<stdout>:x", 2, "algo-1", "x"),
        ("[2023-02-11T07:15:31.5Z] 0c1fe2a9 [rank=2] || x", 2, None, "x"),
        ("[2023-02-11T07:15:31Z]          || x", None, None, "x"),
        ("[2023-02-11T07:15:31Z] loss a || b", None, None, "[2023-02-11T07:15:31Z] loss a || b"),
    ),
)
def test_mpi_labels_are_ranks(line: str, rank: int, host: str | None, text: str) -> None:
    """Open MPI, PRRTE, horovodrun, SageMaker."""
    assert said(Labels(), line) == (rank, None, host, text)


def test_bare_brackets_are_ranks_where_the_file_says_so() -> None:
    """`mpiexec -l` prints `[3] `, and so do many others for other reasons."""
    learned = Labels.learn([f"[{n * 5 % 8}] step {n}" for n in range(60)])

    assert said(learned, "[7] x")[0] == 7
    assert said(Labels(), "[7] x") == (None, None, None, "[7] x")


def test_hosts_are_learned_from_what_comes_back() -> None:
    """pdsh and DeepSpeed; a name not seen in the sample counts by its shape."""
    labels = Labels.learn([f"vm-07-{n % 3:02d}: [INFO] x {n}" for n in range(60)])

    assert said(labels, "vm-07-99:   File kept") == (None, None, "vm-07-99", "  File kept")
    assert said(labels, "WARNING: x") == (None, None, None, "WARNING: x")


@pytest.mark.parametrize("word", ("WARNING", "loss", "epoch-1", "gpu0", "step-12"))
def test_headings_are_no_hosts(word: str) -> None:
    """However often they come back."""
    labels = Labels.learn([f"{word}: x {n}" for n in range(60)])

    assert said(labels, f"{word}: x") == (None, None, None, f"{word}: x")


def test_ray_names_process_and_address() -> None:
    """The address is the host as the evidence spells it; actors are streams."""
    line = "(RayTrainWorker pid=123, ip=10.0.0.2) [rank3]: x"
    found = Labels().split(line)

    assert (found.place.host, found.place.rank, found.text) == ("10.0.0.2", 3, "x")
    assert found.key != Labels().split(line.replace("123", "124")).key
    assert said(Labels(), "(pid=45601) x")[3] == "x"
    assert said(Labels(), "(see pid=3 below) x")[3] == "(see pid=3 below) x"


def test_time_stamps_of_collectors_are_labels_where_all_lines_have_them() -> None:
    """docker and kubectl; a program's own stamp is text."""
    stamped = Labels.learn(
        [f"2024-05-01T05:42:{n:02d}.123456789Z {n * 7 % 4}: x" for n in range(60)]
    )
    line = "2024-05-01T05:42:27.123Z own format"

    assert said(stamped, "2024-05-01T05:42:27.5Z 3: x")[1:] == (3, None, "x")
    assert said(Labels(), line)[3] == line
    assert said(Labels(), "2024-05-01T05:42:27.1Z stderr F x")[3] == "x"


def test_frames_that_are_stamped_are_a_collectors_whatever_stands_beside_them() -> None:
    """No program puts a time before each line of its traceback."""
    frames = [
        f'2024-05-01T05:42:27.12345678{n}Z   File "/app/train.py", line {n}, in main'
        for n in range(4)
    ]
    pasted = [f"[2024-05-01 05:42:2{n % 10},523] x: [WARNING] y" for n in range(20)]
    line = '2024-05-01T05:42:27.123456789Z   File "/app/train.py", line 8, in <module>'

    assert (
        said(Labels.learn(frames + pasted), line)[3]
        == '  File "/app/train.py", line 8, in <module>'
    )
    assert said(Labels.learn(frames[:1] + pasted), line)[3] == line


def test_a_time_in_brackets_before_each_line_of_a_traceback() -> None:
    """It comes off once: many programs date their own lines so."""
    head = "[2024-05-01 05:42:27] "
    frames = [f'{head}  File "/app/train.py", line {n}, in main' for n in range(3)]
    own = [f"[2024-05-01 05:42:{n:02d}] iteration {n}" for n in range(20)]
    row = f"{head}[2024-05-01 05:42:27] iteration 8"

    assert said(Labels.learn(frames), f"{head}KeyError: 3")[3] == "KeyError: 3"
    assert said(Labels.learn(frames), row)[3] == row.removeprefix(head)
    assert said(Labels.learn(own), row)[3] == row


def test_labels_nest_in_any_order() -> None:
    """A stamp, a task, torchrun, torch."""
    lines = [
        f"2024-05-01T05:42:27.5Z {n * 7 % 4}: [default{n * 3 % 8}]:step {n}" for n in range(80)
    ]
    found = Labels.learn(lines).split("2024-05-01T05:43:00.1Z 2: [default5]:[rank21]: x")

    assert (found.place, found.local_rank, found.text) == (Place(rank=21, task=2), 5, "x")


@pytest.mark.parametrize(
    ("line", "rank"),
    (
        ("2024-05-01 05:42:27,123 [rank2] INFO step 1", 2),
        ("[2024-05-01 05:42:27,123] [INFO] [logging.py:60:log_dist] [Rank 0] step=0", 0),
        ("[E ProcessGroupNCCL.cpp:474] [Rank 5] Watchdog caught", 5),
        ("[E1206 18:44:12.715 P.cpp:6] [PG ID 0 PG GUID 0(default_pg) Rank 6] Timeout", 6),
        ("[2024-05-01] [INFO] [axolotl.train:12] [PID:44] [RANK:7] x", 7),
        ("INFO:root:[rank3] x", 3),
        ("[20240501 05:42:27][rank-7/8][INFO ] [--------trainer.py:2560] : x", 7),
        ("2024-05-01 05:42:27 INFO rank=4 step=10", 4),
        ("[2024-05-01 05:42:27] [rank 3, local 1] ERROR x", 3),
        ("2024-05-01 05:42:27 | ERROR | my_trainer.loop | [Rank 5, at step 40] x", 5),
        ("2024-05-01 05:42:27 | ERROR | [rank 3, rank 5] did not answer", None),
        ("2024-05-01 05:42:27 | ERROR | [rank 3, 5] did not answer", None),
        ("lost a peer | [rank 3] x", None),
        ("[PG ID 3 PG GUID 7(tp) Rank 1] Timeout", None),
        ("the peer of [rank2] went away", None),
        ("Connection to rank=3 lost", None),
        ("LOCAL_RANK=3 x", None),
    ),
)
def test_a_programs_own_prefix_names_its_rank(line: str, rank: int | None) -> None:
    """It stays in the text; a rank within the message, or of a subgroup, is not the speaker's."""
    assert said(Labels(), line) == (rank, None, None, line)


def test_the_outer_label_goes_before_the_inner() -> None:
    """A rank of a process group does not replace the rank."""
    assert said(Labels(), "[rank9]:[E P.cpp:474] [Rank 1] Watchdog")[0] == 9


def test_a_jax_process_is_a_task() -> None:
    """`[p1] ` at the start of a line."""
    assert said(Labels(), "[p1] step 20") == (None, 1, None, "[p1] step 20")


def test_nccl_lines_name_host_and_gpu() -> None:
    """And are a stream of their own: they stand between the lines of a traceback."""
    found = Labels().split("r6i4n5:41698:41733 [3] NCCL INFO Bootstrap : Using ib0")
    warned = Labels().split("[2025-01-01 12:00:00] gpu-a.b:1:2 [0] misc/socket.cc:80 NCCL WARN x")

    assert (found.place, found.key != "") == (Place(host="r6i4n5", gpu="3"), True)
    assert warned.place == Place(host="gpu-a.b", gpu="0")


def test_a_line_without_a_label_is_itself() -> None:
    """No place, no key."""
    assert Labels().split("Epoch: [3] loss 2") == Labelled(Place(), "Epoch: [3] loss 2", "")


def test_the_segments_of_a_line_share_its_label() -> None:
    """A bar drew over the label's line; what it drew last has the same speaker."""
    labels = Labels.learn(srun(4))
    found = labels.split("RuntimeError: x", head="3:  10%|")

    assert (found.place.task, found.text) == (3, "RuntimeError: x")
    assert found.key == labels.split("3: y").key


def test_a_long_line_that_srun_cut_goes_on() -> None:
    """1,024 bytes of output make a message; its rest comes with the outer label alone."""
    labels = Labels.learn([line.replace(": ", ": [default0]:") for line in srun(4)])
    first = labels.split("3: [default1]:" + "x" * 1010)
    short = labels.split("3: [default1]:" + "x" * 500)

    assert labels.continues(first, labels.split("3: yyy rest"))
    assert not labels.continues(first, labels.split("2: yyy rest"))
    assert not labels.continues(first, labels.split("3: 2024-05-01 05:42:27 new"))
    assert not labels.continues(short, labels.split("3: yyy rest"))
    assert not Labels().continues(Labelled(Place(), "x" * 1010, ""), Labelled(Place(), "y", ""))


@pytest.mark.parametrize("host", ["gpu006", "10.0.7.12"])
def test_machines_that_pdsh_names(host: str) -> None:
    """Padded as no device is, or by its address."""
    lines = [f"{host}: part {n} of the model" for n in range(12)]
    said = Labels.learn(lines).split(lines[3])
    assert (said.place.host, said.text) == (host, "part 3 of the model")
    devices = [f"gpu{n % 8}: part {n} of the model" for n in range(24)]
    assert Labels.learn(devices).split(devices[3]).text == devices[3]


@pytest.mark.parametrize("mark", ["# ", "> ", "    "])
def test_a_log_that_was_kept_as_comments_or_quoted(mark: str) -> None:
    """What stands before all of its lines is no comment or indented part of one."""
    said = ["[rank0]: Traceback (most recent call last):", '[rank0]:   File "t.py", line 3']
    lines = [mark + line for line in said]
    labels = Labels.learn([*lines, mark.strip(), *(f"{mark}step {n}" for n in range(9))])

    assert labels.split(lines[1]).text == '  File "t.py", line 3'
    assert labels.split(lines[1]).place.rank == 0
    one = f"{mark}a b"
    assert Labels.learn([one, "step 1", "step 2"]).split(one).text == one


def test_what_kaldi_writes_of_a_job_is_no_log_kept_as_comments() -> None:
    lines = ["# nnet3-train a b", "# Started at Sat Dec 12 03:10:40 GMT 2020", "#"]
    ended = "# Ended (code 137) at Sat Dec 12 03:15:49 GMT 2020, elapsed time 309 seconds"

    assert Labels.learn([*lines, ended]).split(ended).text == ended


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("[node17] dmesg: [812.003451] NVRM: Xid (PCI:0000:3b:00): 79, x", "node17"),
        ("[c2-8.cluster] nvidia-smi: No devices were found", "c2-8.cluster"),
        ("[rank3] nvidia-smi: 8 GPUs found", None),
        ("[WARNING] dmesg: permission denied", None),
        ("[node17] model: 8 layers", None),
    ],
)
def test_a_check_of_a_node_names_it_before_the_tool(line: str, host: str | None) -> None:
    """A name in brackets alone may be a level, a logger, a part of the program."""
    assert Labels().split(line).place.host == host


@pytest.mark.parametrize("mark", ["web-ui-1  | ", "trainer_2 | ", "stderr: "])
def test_a_log_that_one_container_or_stream_gave(mark: str) -> None:
    """Every line has it; what is indented behind it stays so."""
    said = ["Traceback (most recent call last):", '  File "t.py", line 3', ""]
    lines = ["nohup: ignoring input", *(f"{mark}{line}".rstrip() for line in said)]
    lines += [f"{mark}step {n}" for n in range(40)]
    labels = Labels.learn(lines)

    assert [labels.split(line).text for line in lines[1:4]] == said
    assert labels.split(lines[0]).text == lines[0]


def test_a_table_is_of_no_one_container() -> None:
    table = [f"layer-{n} | {n} MB" for n in range(40)]
    assert Labels.learn(table).split(table[3]).text == table[3]


def test_what_is_quoted_below_a_heading() -> None:
    heading = ["Loading modules:", "  cuda/12.1"]
    lines = [*heading, *(f"> step {n}" for n in range(9))]

    assert Labels.learn(lines).split(lines[4]).text == "step 2"
    mixed = [*lines, "step 9", "step 10"]
    assert Labels.learn(mixed).split(lines[4]).text == "> step 2"


@pytest.mark.parametrize(
    ("line", "rank", "text"),
    [
        ("Wed May  7 06:21:20 2025[1,3]<stdout>:Epoch 1/40", 3, "Epoch 1/40"),
        ("Mon Nov 30 06:21:20 2026[2]<stderr>:loss 2.5", 2, "loss 2.5"),
        ("Wed May  7 06:21:20 2025 Epoch 1/40", None, "Wed May  7 06:21:20 2025 Epoch 1/40"),
        ("Wed May  7 06:21:20 2025[1,3] said", None, "Wed May  7 06:21:20 2025[1,3] said"),
    ],
)
def test_mpi_stamps_stand_right_before_its_label(line: str, rank: int | None, text: str) -> None:
    """`mpirun --timestamp-output`, `horovodrun -prefix-timestamp`."""
    assert said(Labels.learn([line] * 30), line) == (rank, None, None, text)


@pytest.mark.parametrize(("line", "rank"), [("[rank  9] step 4", 9), ("[rank 14] step 4", 14),
                                            ("[rank      9] step 4", None)])  # fmt: skip
def test_a_rank_that_is_padded(line: str, rank: int | None) -> None:
    """To the width of the highest one."""
    stamped = f"2025-09-02 09:33:22 {line}"
    assert said(Labels.learn([stamped] * 30), stamped)[0] == rank
