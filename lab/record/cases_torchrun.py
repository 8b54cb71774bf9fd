"""Runs of torchrun and plain python that end on their own, hang, or never meet."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time

from lab.record.case import Case, listed
from lab.record.data import dump_records, index_for, write_records
from lab.record.play import pretrain, rank_pid, torchrun
from lab.record.stage import HOME, Cell, Stage

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
    child = torchrun(stage, stage.cell(), ["--steps", "400", "--workers", "1"], data=False, tee=False)
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
        write_records(PROJECT / "data" / f"part-{rank}.jsonl", 960 if rank == 3 else 2400, seed=rank)
    args = ["--data", "data/part-{rank}.jsonl", "--epochs", "1", "--steps", "300", "--timeout", "15"]
    child = torchrun(stage, stage.cell(), args, data=False)
    stage.end(child)


@listed(CASES, origin="torchrun", about=("C1",), code="C1", demo="second-node-never-came",
    title="The job was started for two nodes but only one ever joined, so the start-up rendezvous timed out.",
)  # fmt: skip
def second_node_never_joins(stage: Stage) -> None:
    """torchrun is told of two nodes and started on one; the join timeout is 20 s."""
    launch = ["--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-id=run7"]
    launch += ["--rdzv-endpoint=node01:29400", "--rdzv-conf=join_timeout=20"]
    child = torchrun(stage, stage.cell(), [], launch=launch)
    stage.end(child)


@listed(CASES, origin="torchrun", about=("C1", "C5"), code="C1")
def wrong_master_port(stage: Stage) -> None:
    """The second of two nodes is told another port than the first listens on.

    Both share a network; node 0 listens on 29500 and node 1 calls 29501.  Node 1 gives up after
    its store timeout of 20 s, node 0 after its own.
    """
    cell = stage.cell()
    common = ["--nnodes=2", "--nproc-per-node=2", "--master-addr=node01", "--rdzv-conf=timeout=20"]
    args = ["--timeout", "30"]
    one = torchrun(stage, cell, args, launch=[*common, "--node-rank=0", "--master-port=29500"], log="node0.log")
    two = torchrun(stage, cell, args, launch=[*common, "--node-rank=1", "--master-port=29501"], log="node1.log", data=False)
    stage.note("node 0 was given master port 29500, node 1 was given 29501")
    stage.end(two)
    stage.end(one)


@listed(CASES, origin="torchrun", about=("C1", "A1"), code=("C1", "A1"), attribution="job")
def master_port_in_use(stage: Stage) -> None:
    """Another process already listens on the master port."""
    cell = stage.cell()
    script = "import socket,time\ns=socket.socket()\ns.bind(('', 29500))\ns.listen()\ntime.sleep(60)\n"
    other = stage.start(cell, ["python", "-c", script], ".other")
    time.sleep(1)
    child = torchrun(stage, cell, [], tee=False)
    stage.end(child)
    other.kill()
    other.wait()
    (stage.run / ".other").unlink()


@listed(CASES, origin="torchrun", about=("E2",), code="E2", attribution="job")
def checkpoint_of_another_shape(stage: Stage) -> None:
    """A run of width 64 leaves a checkpoint; a run of width 96 is told to resume from it.

    Only the second run's log is kept.
    """
    cell = stage.cell()
    first = torchrun(stage, cell, ["--steps", "40", "--save-every", "40"], log=".first")
    first.wait()
    (stage.run / ".first").unlink()
    child = torchrun(stage, cell, ["--steps", "400", "--dim", "96", "--resume", "auto"])
    stage.end(child)


@listed(CASES, origin="torchrun", about=("E2",), code="E2", attribution="job")
def checkpoint_cut_short(stage: Stage) -> None:
    """A run leaves a checkpoint, the file is cut to 60 % of its length, and a run resumes from it."""
    cell = stage.cell()
    first = torchrun(stage, cell, ["--steps", "40", "--save-every", "40"], log=".first")
    first.wait()
    (stage.run / ".first").unlink()
    path = PROJECT / "ckpt" / "step_40.pt"
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * 0.6)])
    stage.note("step_40.pt was cut to 60 % of its length")
    child = torchrun(stage, cell, ["--steps", "400", "--resume", "auto"], tee=False)
    stage.end(child)


@listed(
    CASES, origin="torchrun", about=("E2", "G1"), code="E2", attribution="job", demo="resumed-from-nothing",
    cited=(("2/train.log", r"no checkpoint in .*starting from step 0", 0),),
    title="A run told to resume found no checkpoint where it looked and quietly began again at step 0.",
)  # fmt: skip
def resumed_from_nothing(stage: Stage) -> None:
    """A run of 200 steps saves to ckpt/; the next one is told to resume, but from ckpt-v2/.

    It finds nothing, says so in one line, and trains from step 1 to its planned end, 400.
    1/train.log is the parent run, 2/train.log the one in question.
    """
    cell = stage.cell()
    torchrun(stage, cell, ["--steps", "200"], tee=False, log="1/train.log").wait()
    stage.note("the second run was started with --resume auto --ckpt-dir ckpt-v2")
    args = ["--steps", "400", "--resume", "auto", "--ckpt-dir", "ckpt-v2"]
    child = torchrun(stage, cell, args, tee=False, log="2/train.log")
    stage.end(child)


@listed(CASES, origin="python", about=("E2",), code="E2", state=("found", "undetermined"), attribution=("job", "unknown"))
def resumed_from_nothing_without_a_word(stage: Stage) -> None:
    """One process saves to out/ and is started again to resume, but from another folder.

    The second command says `--init-from resume --out-dir out_b`; the program prints nothing when
    it finds no checkpoint.  Both commands append to one train.log, with the shell's own trace of
    them (`set -x`): what shows the restart is the trace, the saved checkpoint and `iter 0` again.
    """
    cell = stage.cell()
    pretrain(stage, cell, ["--help"], log=".help").wait()
    (stage.run / ".help").unlink()
    script = (
        "set -x\npython pretrain.py --max-iters 300 --out-dir out\n"
        "python pretrain.py --max-iters 600 --init-from resume --out-dir out_b\n"
    )
    (PROJECT / "run.sh").write_text(script)
    child = stage.start(cell, ["bash", "run.sh"], "train.log")
    stage.end(child)


@listed(CASES, origin="python", about=("G1", "E2"), state="healthy", attribution="none")
def resumed_where_it_ended(stage: Stage) -> None:
    """The near miss of resumed_from_nothing_without_a_word: the checkpoint is there and is read."""
    cell = stage.cell()
    pretrain(stage, cell, ["--help"], log=".help").wait()
    (stage.run / ".help").unlink()
    script = (
        "set -x\npython pretrain.py --max-iters 300 --out-dir out\n"
        "python pretrain.py --max-iters 600 --init-from resume --out-dir out\n"
    )
    (PROJECT / "run.sh").write_text(script)
    child = stage.start(cell, ["bash", "run.sh"], "train.log")
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


@listed(CASES, origin="torchrun", about=("C6", "A3"), code=("C6", "A3"))
def disk_full_saving_checkpoint(stage: Stage) -> None:
    """The checkpoint folder is a tmpfs of 3 MB; the second checkpoint does not fit."""
    cell = stage.cell()
    folder = "/home/user/proj/ckpt"
    cell.run_root(f"mkdir -p {folder} && mount -t tmpfs -o size=3m,mode=1777 tmpfs {folder}")
    args = ["--steps", "400", "--dim", "128", "--save-every", "60"]
    child = torchrun(stage, cell, args)
    stage.end(child)
    (stage.run / "df.txt").write_text(cell.run_root(f"df -h {folder}"))


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


@listed(CASES, origin="python", about=("A1", "B2"), code="A1", attribution=("job", "infrastructure", "unknown"))
def no_driver_for_cuda(stage: Stage) -> None:
    """The program asks for a CUDA device on a host without an NVIDIA driver, with a CPU build of torch."""
    path = PROJECT / "pretrain.py"
    text = path.read_text().replace("model = Block(len(chars))", 'model = Block(len(chars)).to("cuda")')
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
    grow = "        if it and it % 100 == 0:\n            history.append(torch.zeros(80_000_000))\n"
    text = text.replace("        began = time.time()\n", grow + "        began = time.time()\n")
    text = text.replace("    generator = torch", "    history = []\n    generator = torch", 1)
    path.write_text(text)
    cell = stage.cell()
    pretrain(stage, cell, ["--help"], log=".help").wait()
    (stage.run / ".help").unlink()
    (PROJECT / "run.sh").write_text("ulimit -v 1900000\npython pretrain.py --max-iters 600\n")
    child = stage.start(cell, ["bash", "run.sh"], "train.log")
    stage.end(child)


def two_hosts(stage: Stage) -> list[Cell]:
    """Two cells on one bridge, named gpu1 and gpu2."""
    down_network()
    script = "ip link add recbr0 type bridge; ip addr add 10.89.0.254/24 dev recbr0; ip link set recbr0 up;"
    for i in (1, 2):
        script += (
            f"ip netns add rec{i}; ip link add recv{i} type veth peer name eth0 netns rec{i};"
            f"ip link set recv{i} master recbr0 up; ip -n rec{i} addr add 10.89.0.{i}/24 dev eth0;"
            f"ip -n rec{i} link set eth0 up; ip -n rec{i} link set lo up;"
        )
    subprocess.run(["bash", "-ec", script], check=True)
    return [stage.cell(f"gpu{i}", netns=f"rec{i}") for i in (1, 2)]


def down_network() -> None:
    script = "ip link del recv1; ip link del recv2; ip netns del rec1; ip netns del rec2; ip link del recbr0; true"
    subprocess.run(["bash", "-c", script], check=True, stderr=subprocess.DEVNULL)


def start_on_two_hosts(stage: Stage, cells: list[Cell], args: list[str]) -> list[subprocess.Popen[bytes]]:
    common = ["--nnodes=2", "--nproc-per-node=2", "--master-addr=gpu1", "--master-port=29500"]
    env = {"GLOO_SOCKET_IFNAME": "eth0"}
    return [
        torchrun(stage, cell, args, launch=[*common, f"--node-rank={i}"], log=f"gpu{i + 1}.log", env=env, data=i == 0)
        for i, cell in enumerate(cells)
    ]


@listed(
    CASES, origin="torchrun", about=("C5", "C2"), code=("C5", "C2"), state=("found", "undetermined"),
)  # fmt: skip
def link_cut_between_hosts(stage: Stage) -> None:
    """Two hosts of two ranks each; the network cable of gpu2 is pulled in mid-run (its veth set down).

    The collectives time out after 20 s on every rank, and each host's launcher blames a rank of its
    own.  The logs show that all waited; nothing in them shows which side was cut.
    """
    try:
        children = start_on_two_hosts(stage, two_hosts(stage), ["--steps", "4000", "--timeout", "20"])
        stage.line("gpu1.log", r"step 150/")
        subprocess.run(["ip", "link", "set", "recv2", "down"], check=True)
        stage.note("the link of gpu2 was set down")
        for child in children:
            stage.end(child)
    finally:
        down_network()


@listed(CASES, origin="torchrun", about=("G1",), state="healthy", attribution="none")
def two_hosts_healthy(stage: Stage) -> None:
    """Two hosts of two ranks each train to the planned end; one log a host."""
    try:
        children = start_on_two_hosts(stage, two_hosts(stage), ["--steps", "250"])
        for child in children:
            stage.end(child)
    finally:
        down_network()


@listed(CASES, origin="torchrun", about=("C1", "C5"), code=("C1", "C5"))
def firewall_between_hosts(stage: Stage) -> None:
    """Two hosts; gpu1 drops every packet from gpu2 from the beginning (iptables)."""
    try:
        cells = two_hosts(stage)
        cells[0].run_root("iptables -A INPUT -s 10.89.0.2 -j DROP")
        stage.note("gpu1 drops what comes from gpu2")
        common = ["--nnodes=2", "--nproc-per-node=2", "--master-addr=gpu1", "--rdzv-conf=timeout=25"]
        env = {"GLOO_SOCKET_IFNAME": "eth0"}
        for i, cell in enumerate(cells):
            launch = [*common, "--master-port=29500", f"--node-rank={i}"]
            torchrun(stage, cell, [], launch=launch, log=f"gpu{i + 1}.log", env=env, data=i == 0)
        for child in stage.children():
            stage.end(child, 240)
    finally:
        down_network()


@listed(
    CASES, origin="torchrun", about=("C6",), code=("C6", "C2"), state=("found", "undetermined"),
)  # fmt: skip
def checkpoint_disk_stands_still(stage: Stage) -> None:
    """ckpt/ is an ext4 file system on a loop device that is frozen (fsfreeze) before the second save.

    Rank 0 stands in uninterruptible sleep in a write; the others time out in the next collective
    after 20 s.  ps.txt is `ps` of the ranks taken while they waited.  The disk is thawed at the end.
    """
    cell = stage.cell()
    image, folder = HOME.parent.parent / "disk.img", "/home/user/proj/ckpt"
    subprocess.run(["truncate", "-s", "64M", str(image)], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    shutil.rmtree(PROJECT / "ckpt", ignore_errors=True)
    cell.run_root(f"mkdir -p {folder} /mnt; mount -o loop,sync {image} {folder}; chmod 1777 {folder}")
    child = torchrun(stage, cell, ["--steps", "2000", "--save-every", "100", "--timeout", "20"])
    try:
        stage.line("job.log", r"step 150/")
        cell.run_root(f"fsfreeze -f {folder}")
        stage.note("ckpt/ was frozen with fsfreeze")
        stage.line("job.log", r"step 200/")
        time.sleep(8)
        ps = subprocess.run(["ps", "-eo", "pid,stat,wchan:24,etimes,args"], check=True, capture_output=True, text=True)
        kept = [x for x in ps.stdout.splitlines() if "train.py" in x and "torchrun" not in x]
        (stage.run / "ps.txt").write_text("\n".join([ps.stdout.splitlines()[0], *kept]) + "\n")
        stage.line("job.log", r"closing signal|SIGTERM|Timed out", 90)
        time.sleep(35)
    finally:
        cell.run_root(f"fsfreeze -u {folder}")
        stage.note("ckpt/ was thawed")
    stage.end(child)
