"""What is advised follows from what was seen: its scheduler, its framework, its kind of fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.steering import scheduler
from flatline.model import Verdict
from scenario import scenarios

NODE_LOST = (
    "LustreError: 167-0: scratch-OST0003-osc-ffff9c0e1b2c3000: This client was evicted by"
    " scratch-OST0003; in progress operations using this service will fail."
)
XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid=77, name=python3, GPU has fallen off the bus."
STEPS = "\n".join(
    f"2026-03-01 04:{n:02d}:00,000 INFO [rank 0] step {n * 10}/2000 loss {4 - n / 9:.4f}"
    for n in range(12)
)
NO_CUDA = "torch.cuda.OutOfMemoryError: CUDA out of memory."


def told(folder: Path, **files: str) -> Verdict:
    """The verdict on files of these texts; `__` in a name is a folder, the last `_` a dot."""
    for name, text in files.items():
        head, _, ending = name.rpartition("_")
        path = folder / f"{head.replace('__', '/')}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", "utf-8")
    return diagnose(collect(Request((str(folder),))))


def syslog(text: str) -> str:
    return f"2026-03-01T04:12:30.000000+00:00 node07 kernel: {text}"


QSTAT = "Job Id: 77.pbs\n    job_state = F\n    Exit_status = 1\n    exec_host = node07/0*64"
SLURM = "slurmstepd: error: *** JOB 77 ON node07 CANCELLED AT 2026-03-01T04:12:50 ***"
POD = f"[pod/trainer-0/main] {NO_CUDA}"


@pytest.mark.parametrize(
    ("beside", "command"),
    [("", None), (SLURM, "sbatch --exclude=node07"), ("kubelet", "kubectl cordon node07")],
)
def test_a_host_is_left_out_in_the_words_of_what_starts_the_run(
    tmp_path: Path, beside: str, command: str | None
) -> None:
    """`sbatch` where Slurm is seen, `kubectl` where the kubelet's files are, else no command."""
    name = "var__log__pods__trainer__0_log" if beside == "kubelet" else "job_log"
    log = STEPS + (f"\n{beside}" if beside == SLURM else "")
    verdict = told(tmp_path, node07__kern_log=syslog(XID), **{name: log})
    assert verdict.code == "B2"
    action = next(a for a in verdict.actions if a.kind == "exclude")
    assert (action.command, action.targets) == (command, ("node07",))
    assert "node07" in action.text


def test_pbs_leaves_no_host_out(tmp_path: Path) -> None:
    """Its operators take one offline."""
    verdict = told(tmp_path, node07__kern_log=syslog(XID), job_log=STEPS, qstat_txt=QSTAT)
    action = next(a for a in verdict.actions if a.kind == "exclude")

    assert (verdict.code, action.command) == ("B2", "pbsnodes -o node07")


def test_kubernetes_is_seen_in_the_prefix_of_its_logs(tmp_path: Path) -> None:
    """As `kubectl logs --prefix` writes it."""
    (tmp_path / "job.log").write_text(f"{POD}\n", "utf-8")
    assert scheduler(collect(Request((str(tmp_path),)))) == "kubernetes"


def test_an_evicted_client_is_not_told_to_free_disk_space(tmp_path: Path) -> None:
    """A server that does not serve is no full disk."""
    verdict = told(tmp_path, kern_log=syslog(NODE_LOST), job_log=STEPS)
    said = " ".join(action.text for action in verdict.actions)
    assert verdict.code == "C6"
    assert "server" in said
    assert not {"space", "quota"} & set(said.split())


def test_a_full_cache_is_told_to_free_space(tmp_path: Path) -> None:
    """Where the file system has no room, room is what is advised."""
    full = "OSError: Not enough disk space. Needed: 41.20 GiB (download: 12.00 GiB)"
    verdict = told(tmp_path, job_log=f"Traceback (most recent call last):\n{full}")
    assert "Free space" in " ".join(action.text for action in verdict.actions)


OOM = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes."


@pytest.mark.parametrize(
    ("raised", "named", "not_named"),
    [
        ("jax.errors.JaxRuntimeError", "XLA_PYTHON_CLIENT", "TF_FORCE"),
        ("tensorflow.python.framework.errors_impl.ResourceExhaustedError", "TF_FORCE", "XLA_P"),
    ],
)
def test_memory_advice_is_that_of_the_framework(
    tmp_path: Path, raised: str, named: str, not_named: str
) -> None:
    """JAX and TensorFlow print the same of XLA; sizes are said in GiB."""
    verdict = told(tmp_path, job_log=f"Traceback (most recent call last):\n{raised}: {OOM}")
    said = " ".join(action.text for action in verdict.actions)
    assert verdict.code == "B1"
    assert named in said
    assert not_named not in said
    assert "8.00 GiB" in verdict.headline
    assert "8589934592" not in verdict.headline


def test_what_was_lost_is_not_known_without_a_checkpoint_line(tmp_path: Path) -> None:
    """No line tells of a checkpoint: no step is said to be lost, only how many were made."""
    verdict = told(tmp_path, job_log=f"{STEPS}\n{NO_CUDA}")
    assert verdict.run.last_step == 110
    assert verdict.impact is None or verdict.impact.steps_lost is None


def test_what_was_lost_is_counted_from_the_checkpoint(tmp_path: Path) -> None:
    """Steps after the last one saved."""
    saved = "2026-03-01 04:05:30,000 INFO [rank 0] saved checkpoint at step 50 to /ckpt/50"
    rows = STEPS.splitlines()
    log = "\n".join([*rows[:6], saved, *rows[6:], NO_CUDA])
    verdict = told(tmp_path, job_log=log)
    assert verdict.impact is not None
    assert (verdict.impact.last_checkpoint_step, verdict.impact.steps_lost) == (50, 60)


@pytest.mark.parametrize(
    ("saved", "said"),
    [
        ({}, "if there is one"),
        ({40: "saved"}, "checkpoint at step 40,"),
        ({90: "saved"}, "No checkpoint before the onset is told of"),
    ],
)
def test_what_a_diverged_run_goes_back_to(
    tmp_path: Path, saved: dict[int, str], said: str
) -> None:
    """The last checkpoint before the onset, where one is told of."""
    rows = []
    for n in range(30):
        at = f"2026-03-01 04:{n:02d}"
        loss = f"{4 - n / 9:.4f}" if n < 7 else "nan"
        rows.append(f"{at}:00,000 INFO [rank 0] step {n * 10}/2000 loss {loss}")
        if n * 10 in saved:
            rows.append(f"{at}:30,000 INFO [rank 0] saved checkpoint at step {n * 10} to /ckpt")
    verdict = told(tmp_path, job_log="\n".join(rows))
    assert verdict.code == "E1"
    assert said in verdict.actions[0].text


def test_all_ranks_are_those_of_a_world_that_is_known(tmp_path: Path) -> None:
    """Ranks 1 and 2 of who knows how many are not all."""
    logs = {
        f"rank{n}_log": f"[rank{n}]: Traceback (most recent call last):\n[rank{n}]: {NO_CUDA}"
        for n in (1, 2)
    }
    assert told(tmp_path, **logs).headline.startswith("Ranks 1-2 ran out")


def test_all_ranks_of_a_known_world_are_all(tmp_path: Path) -> None:
    """Ranks without a hole from zero on."""
    logs = {
        f"rank{n}_log": f"[rank{n}]: Traceback (most recent call last):\n[rank{n}]: {NO_CUDA}"
        for n in range(4)
    }
    assert told(tmp_path, **logs).headline.startswith("All 4 ranks ran out")


def test_jax_is_not_told_of_torchs_flight_recorder(tmp_path: Path) -> None:
    """Gloo's and JAX's collectives leave no dump of NCCL's."""
    raised = (
        "jax.errors.JaxRuntimeError: UNKNOWN: Gloo all-reduce failed:"
        " [external/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.2]:2961"
    )
    verdict = told(tmp_path, p0_log=f"{STEPS}\n{raised}")
    assert verdict.code == "C2"
    assert "TORCH_NCCL" not in " ".join(action.command or "" for action in verdict.actions)


def test_no_line_is_cited_twice_for_one_claim(tmp_path: Path) -> None:
    """A line that a traceback and a signature both know is one piece of evidence."""
    raised = "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"
    verdict = told(tmp_path, job_log=f"Traceback (most recent call last):\n{raised}")
    for claim in verdict.shows:
        lines = [(cite.source, getattr(cite, "line", None)) for cite in claim.cites]
        assert len(lines) == len(set(lines))


@pytest.mark.parametrize(
    ("name", "ratio"),
    [
        ("server_stops_answering_during_a_save", 1.241),
        ("local_disk_times_out_again_and_again", 1.207),
        ("checkpoint_every_twenty_steps_is_slow", 1.826),
        ("garbage_collected_every_forty_steps", 1.167),
    ],
)
def test_what_was_blamed_for_pauses_costs_them(name: str, ratio: float) -> None:
    """Its seconds are in the finding: no phase of the pace need be slow."""
    verdict = next(one for one in scenarios() if one.name == name).verdict()

    assert verdict.impact is not None
    assert verdict.impact.slowdown_ratio == pytest.approx(ratio, abs=0.001)
