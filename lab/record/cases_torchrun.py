"""Runs of torchrun and plain python that end on their own, diverge, hang or are started again."""

from __future__ import annotations

import signal

from lab.record.case import Case, listed
from lab.record.data import dump_records, index_for, write_records
from lab.record.play import pretrain, rank_pid, torchrun
from lab.record.stage import HOME, Stage

CASES: list[Case] = []
PROJECT = HOME / "proj"


@listed(
    CASES, origin="torchrun", about=("G1", "E1", "E3"), state="healthy", attribution="none",
    demo="healthy", title="A sound run of four ranks: the loss falls and the planned last step is reached.",
)  # fmt: skip
def ddp_reaches_planned_end(stage: Stage) -> None:
    """Four gloo ranks train for the planned 300 steps; nothing is done to them."""
    cell = stage.cell()
    child = torchrun(stage, cell, ["--steps", "300"])
    stage.end(child)


@listed(
    CASES, origin="torchrun", about=("C2", "A2"), code="C2", culprits=({"rank": 3},),
    not_culprits=({"rank": 0}, {"rank": 1}, {"rank": 2}), demo="one-rank-stopped",
    title="One rank was stopped; the other three waited for it in a collective until the timeout, and the launcher blames a victim.",
)  # fmt: skip
def one_rank_stopped(stage: Stage) -> None:
    """Rank 3 gets SIGSTOP from outside; the collectives have a timeout of 20 s.

    Ranks 0 to 2 time out.  The launcher then has to SIGKILL rank 3, which ignores SIGTERM because
    it is stopped; the launcher's own "root cause" is a rank that waited.
    """
    cell = stage.cell()
    child = torchrun(stage, cell, ["--steps", "2000", "--timeout", "20"])
    stage.line("job.log", r"step 110/")
    stage.kill(rank_pid(child, 3), signal.SIGSTOP, "the process of rank 3")
    stage.end(child)
    stage.keep(PROJECT / "logs", "logs")


@listed(
    CASES, origin="torchrun", about=("A3",), code="A3", fault_class="data", attribution="job",
    culprits=({"rank": 1},), not_culprits=({"rank": 0}, {"rank": 2}, {"rank": 3}),
    cited=(("job.log", r"KeyError: 'text'", 0),), demo="bad-record",
    title="A record without the field that the code reads ended one rank with a KeyError after 52 steps.",
)  # fmt: skip
def bad_record_key_error(stage: Stage) -> None:
    """One record of the data, read by rank 1 at step 53, has no `text` field."""
    records = write_records(PROJECT / "data" / "train.jsonl", 12_000)
    bad = records[index_for(1, 53, 4, 8)]
    bad["body"] = bad.pop("text")
    dump_records(PROJECT / "data" / "train.jsonl", records)
    stage.note("in the record that rank 1 reads at step 53, `text` was renamed to `body`")
    child = torchrun(stage, stage.cell(), ["--steps", "400"], data=False)
    stage.end(child)


@listed(
    CASES, origin="torchrun", about=("A3",), code="A3", attribution="job", culprits=({"rank": 2},),
    not_culprits=({"rank": 0}, {"rank": 1}, {"rank": 3}),
)  # fmt: skip
def bad_json_in_a_worker(stage: Stage) -> None:
    """A record that rank 2 reads at step 70 is cut in the middle; DataLoader workers read the data.

    The JSON error is raised in a worker and raised again in rank 2; the ranks' output is not
    prefixed by the launcher.
    """
    write_records(PROJECT / "data" / "train.jsonl", 12_000)
    path = PROJECT / "data" / "train.jsonl"
    lines = path.read_text().splitlines()
    at = index_for(2, 70, 4, 8)
    lines[at] = lines[at][:41]
    path.write_text("\n".join(lines) + "\n")
    stage.note(f"line {at + 1} of the data was cut after 41 characters")
    child = torchrun(
        stage, stage.cell(), ["--steps", "400", "--workers", "1"], data=False, tee=False
    )
    stage.end(child)


@listed(
    CASES, origin="torchrun", about=("E1",), code="E1", attribution="training", demo="nan-loss",
    title="The learning rate was far too high: the loss became NaN and the run went on to the end with it.",
)  # fmt: skip
def loss_goes_nan(stage: Stage) -> None:
    """Plain SGD warms up to a learning rate of 15 without clipping; the run goes to its end.

    The loss leaps, is NaN from about step 40 on, and NaN is what the last checkpoints hold.
    """
    args = ["--steps", "260", "--optimizer", "sgd", "--lr", "15", "--clip", "0", "--warmup", "200"]
    child = torchrun(stage, stage.cell(), args)
    stage.end(child)


@listed(CASES, origin="torchrun", about=("E1",), code="E1", attribution="training")
def loss_spikes_and_stays(stage: Stage) -> None:
    """AdamW warms up to a learning rate of 3 and keeps it; the loss leaps above its start and stays there."""
    args = ["--steps", "320", "--lr", "3", "--warmup", "120", "--decay", "none", "--clip", "0"]
    child = torchrun(stage, stage.cell(), args, tee=False)
    stage.end(child)


@listed(
    CASES, origin="torchrun", about=("C2",), code="C2", state=("found", "undetermined"),
    culprits=({"rank": 3},), not_culprits=({"rank": 0}, {"rank": 1}, {"rank": 2}),
)  # fmt: skip
def one_rank_runs_out_of_data(stage: Stage) -> None:
    """The ranks read files of their own and rank 3's is shorter: it leaves the loop at step 120.

    Rank 3 goes on to the last barrier while the others wait for its gradients: the collectives no
    longer match, until the timeout of 15 s.  Nothing printed says that rank 3 had less data, but
    its stack stands in barrier() where the others stand in backward().
    """
    for rank in range(4):
        write_records(
            PROJECT / "data" / f"part-{rank}.jsonl", 960 if rank == 3 else 2400, seed=rank
        )
    args = [
        "--data",
        "data/part-{rank}.jsonl",
        "--epochs",
        "1",
        "--steps",
        "300",
        "--timeout",
        "15",
    ]
    child = torchrun(stage, stage.cell(), args, data=False)
    stage.end(child)


@listed(CASES, origin="torchrun", about=("E3",), code="E3", attribution="job")
def three_steps_planned(stage: Stage) -> None:
    """A run that was planned for three optimizer steps and did them."""
    args = ["--steps", "3", "--log-every", "1"]
    child = torchrun(stage, stage.cell(), args)
    stage.end(child)


@listed(
    CASES, origin="torchrun", about=("E3", "G1"), code="E3", state=("found", "undetermined"),
)  # fmt: skip
def ended_inside_warmup(stage: Stage) -> None:
    """200 steps are planned and run, and the warm-up of the learning rate is 2000 steps long.

    The printed learning rate rises to the last line; nothing states the length of the warm-up,
    and the loss does fall.
    """
    args = ["--steps", "200", "--warmup", "2000"]
    child = torchrun(stage, stage.cell(), args)
    stage.end(child)


@listed(
    CASES, origin="torchrun", about=("G1", "A2"), state=("healthy", "found"), code=("G1", "A2"),
    not_culprits=({"rank": 0}, {"rank": 1}, {"rank": 3}),
)  # fmt: skip
def restarted_and_finished(stage: Stage) -> None:
    """torchrun --max-restarts 1; rank 2 gets SIGKILL once; the second attempt resumes and finishes."""
    env = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    restart(stage, ["--standalone", "--nproc-per-node=4", "--max-restarts=1"], env)


@listed(
    CASES, origin="torchrun", about=("A2", "C1"), code=("A2", "C1"), culprits=({"rank": 2},),
    not_culprits=({"rank": 1}, {"rank": 3}),
)  # fmt: skip
def restart_died_connecting(stage: Stage) -> None:
    """As restarted_and_finished, with a fixed master port instead of --standalone.

    Rank 2 gets SIGKILL in the first attempt.  The second attempt never trains: its ranks connect
    to addresses that the first attempt had left in the launcher's store and are refused.
    """
    restart(stage, ["--nproc-per-node=4", "--master-port=29500", "--max-restarts=1"])


def restart(stage: Stage, launch: list[str], env: dict[str, str] | None = None) -> None:
    cell = stage.cell()
    args = ["--steps", "400", "--resume", "auto", "--save-every", "100"]
    child = torchrun(stage, cell, args, launch=launch, env=env)
    stage.line("job.log", r"step 150/")
    stage.kill(rank_pid(child, 2), signal.SIGKILL, "the process of rank 2")
    stage.end(child)


@listed(CASES, origin="torchrun", about=("A1",), code="A1", attribution="job")
def missing_data_file(stage: Stage) -> None:
    """The data path is mistyped; every rank fails before the first step."""
    child = torchrun(stage, stage.cell(), ["--data", "data/trian.jsonl"])
    stage.end(child)


@listed(CASES, origin="torchrun", about=("A1",), code="A1", attribution="job")
def mistyped_option(stage: Stage) -> None:
    """An option that train.py does not know; argparse ends every rank with status 2."""
    child = torchrun(stage, stage.cell(), ["--learning-rate", "1e-3"], tee=False)
    stage.end(child)


@listed(CASES, origin="torchrun", about=("A1",), code="A1", attribution="job")
def module_not_installed(stage: Stage) -> None:
    """train.py imports a package that this environment does not have."""
    path = PROJECT / "train.py"
    text = path.read_text().replace("import torch\n", "import sentencepiece\nimport torch\n", 1)
    path.write_text(text)
    child = torchrun(stage, stage.cell(), [], tee=False)
    stage.end(child)


@listed(
    CASES,
    origin="python",
    about=("A1", "B2"),
    code="A1",
    attribution=("job", "infrastructure", "unknown"),
)
def no_driver_for_cuda(stage: Stage) -> None:
    """The program asks for a CUDA device on a host without an NVIDIA driver, with a CPU build of torch."""
    path = PROJECT / "pretrain.py"
    text = path.read_text().replace(
        "model = Block(len(chars))", 'model = Block(len(chars)).to("cuda")'
    )
    path.write_text(text)
    child = pretrain(stage, stage.cell(), [])
    stage.end(child)


@listed(CASES, origin="python", about=("A3", "A1", "B1"), code=("A3", "A1"), attribution="job")
def address_space_limit(stage: Stage) -> None:
    """The shell has `ulimit -v`; an allocation in host memory fails in mid-run.

    Looks like an out-of-memory of a GPU and is none: the allocator that fails is the CPU's.
    """
    path = PROJECT / "pretrain.py"
    text = path.read_text()
    grow = (
        "        if it and it % 100 == 0:\n            history.append(torch.zeros(80_000_000))\n"
    )
    text = text.replace("        began = time.time()\n", grow + "        began = time.time()\n")
    text = text.replace("    generator = torch", "    history = []\n    generator = torch", 1)
    path.write_text(text)
    cell = stage.cell()
    pretrain(stage, cell, ["--help"], log=".help").wait()
    (stage.run / ".help").unlink()
    (PROJECT / "run.sh").write_text("ulimit -v 1900000\npython pretrain.py --max-iters 600\n")
    child = stage.start(cell, ["bash", "run.sh"], "train.log")
    stage.end(child)
