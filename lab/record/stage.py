"""
The place where a case is played: a private view of the machine with neutral names.

A `Cell` is a set of Linux namespaces (mounts, host name, network) held open by one sleeping
process.  Inside it the user is `user`, the home is /home/user and the host has the name it was
given; outside it nothing changes.  A `Stage` is one case being played in one cell: it starts
programs, lets time pass until a line appears, finds a rank's process, and keeps what is left.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(os.environ.get("RECORD_ROOT", "/var/tmp/record"))
TORCH_VENV = Path(os.environ.get("RECORD_TORCH_VENV", "/tmp/vt"))
JAX_VENV = Path(os.environ.get("RECORD_JAX_VENV", "/tmp/vj"))
PROGRAMS = Path(__file__).parent / "programs"
HOME = ROOT / "home" / "user"
PROJECT = "/home/user/proj"
UID = 1000

_MOUNTS = """
set -e
mount --bind {root}/home /home
mount --bind {torch} /home/user/.venv
mount --bind {jax} /home/user/.venv-jax
mount --bind {root}/etc/passwd /etc/passwd
mount --bind {root}/etc/group /etc/group
mount --bind {root}/etc/hosts /etc/hosts
mount --bind {root}/etc/resolv.conf /etc/resolv.conf
mount -t tmpfs -o mode=1777,size=2g tmpfs /tmp
mount -t tmpfs -o mode=1777,size={shm} tmpfs /dev/shm
hostname {host}
{network}
exec sleep infinity
"""


def prepare_root() -> None:
    """Lays out the neutral home and the files of /etc that a cell sees."""
    for part in ("home/user/.venv", "home/user/.venv-jax", "home/user/proj", "etc"):
        (ROOT / part).mkdir(parents=True, exist_ok=True)
    etc = ROOT / "etc"
    passwd = Path("/etc/passwd").read_text().rstrip("\n")
    kept = [x for x in passwd.splitlines() if int(x.split(":")[2]) < UID or "nobody" in x]
    kept.append(f"user:x:{UID}:{UID}::/home/user:/bin/bash")
    (etc / "passwd").write_text("\n".join(kept) + "\n")
    groups = [x for x in Path("/etc/group").read_text().splitlines() if int(x.split(":")[2]) < UID]
    (etc / "group").write_text("\n".join([*groups, f"user:x:{UID}:"]) + "\n")
    (etc / "resolv.conf").write_text("")
    hosts = ["127.0.0.1 localhost", "127.0.1.1 node01"]
    hosts += [f"10.89.0.{i} gpu{i}" for i in range(1, 5)] + ["10.89.0.254 head"]
    (etc / "hosts").write_text("\n".join(hosts) + "\n")


class Cell:
    """Namespaces of one host. `netns` joins a named network instead of a private one."""

    def __init__(
        self,
        host: str = "node01",
        shm: str = "1g",
        netns: str | None = None,
        *,
        own_net: bool = True,
    ) -> None:
        prepare_root()
        script = _MOUNTS.format(
            root=ROOT, torch=TORCH_VENV, jax=JAX_VENV, shm=shm, host=host,
            network="ip link set lo up" if own_net and not netns else "",
        )  # fmt: skip
        command = ["unshare", "--mount", "--uts", "--propagation", "private"]
        if netns:
            command = ["nsenter", f"--net=/run/netns/{netns}", *command]
        elif own_net:
            command.append("--net")
        self.holder = subprocess.Popen([*command, "bash", "-c", script])
        self._await_ready()

    def _await_ready(self) -> None:
        for _ in range(100):
            name = Path(f"/proc/{self.holder.pid}/comm").read_text().strip()
            if name == "sleep":
                return
            if self.holder.poll() is not None:
                raise RuntimeError("the cell did not come up")
            time.sleep(0.05)
        raise RuntimeError("the cell did not come up in 5 s")

    def enter(self, *, root: bool = False) -> list[str]:
        """The words to put before a command so that it runs inside."""
        words = ["nsenter", "-t", str(self.holder.pid), "-m", "-u", "-n"]
        if not root:
            ids = [f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
            words += ["setpriv", *ids, "prlimit", "--core=0"]
        return words

    def run_root(self, script: str) -> str:
        """Runs a shell script as root inside and returns what it prints."""
        command = [*self.enter(root=True), "bash", "-c", script]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def close(self) -> None:
        self.holder.kill()
        self.holder.wait()


class Stage:
    """One case being played. `run` is the folder of what will be kept."""

    def __init__(self, name: str, run: Path) -> None:
        self.name, self.run = name, run
        self.notes: list[str] = []
        self.began = datetime.now(UTC)
        self._cells: list[Cell] = []
        self._children: list[subprocess.Popen[bytes]] = []
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir(parents=True)
        prepare_root()
        self.project = HOME / "proj"
        shutil.rmtree(self.project, ignore_errors=True)
        shutil.copytree(PROGRAMS, self.project)
        self.own()

    def own(self) -> None:
        """Gives the project to the neutral user."""
        subprocess.run(["chown", "-R", f"{UID}:{UID}", str(HOME / "proj")], check=True)
        os.chown(HOME, UID, UID)

    def note(self, text: str) -> None:
        """Says for the README what was done from outside, and when."""
        self.notes.append(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC: {text}")

    def cell(self, host: str = "node01", **options: object) -> Cell:
        made = Cell(host, **options)  # type: ignore[arg-type]
        self._cells.append(made)
        return made

    def start(
        self,
        cell: Cell,
        command: Sequence[str],
        log: str,
        *,
        env: Mapping[str, str] | None = None,
        err: str | None = None,
        wrap: Sequence[str] = (),
        append: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Starts a program as the neutral user; `log` (and `err`) are file names under run/."""
        words = [f"{k}={v}" for k, v in {**environment(), **(env or {})}.items()]
        clean = ["env", "-i", "--default-signal=INT", "-C", PROJECT]
        full = [*wrap, *cell.enter(), *clean, *words, *command]
        out_path = self.run / log
        out_path.parent.mkdir(parents=True, exist_ok=True)
        with out_path.open("ab" if append else "wb") as out:
            if err is None:
                child = subprocess.Popen(
                    full,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            else:
                with (self.run / err).open("wb") as errors:
                    child = subprocess.Popen(
                        full,
                        stdout=out,
                        stderr=errors,
                        stdin=subprocess.DEVNULL,
                        start_new_session=True,
                    )
        self._children.append(child)
        return child

    def line(self, log: str, pattern: str, timeout_s: float = 120) -> re.Match[str]:
        """Waits until a line of a log matches."""
        until = time.monotonic() + timeout_s
        path = self.run / log
        while time.monotonic() < until:
            if path.exists():
                text = path.read_text(errors="replace")
                if found := re.search(pattern, text, re.MULTILINE):
                    return found
            time.sleep(0.1)
        raise TimeoutError(f"{self.name}: no line {pattern!r} in {log} after {timeout_s} s")

    def children(self) -> list[subprocess.Popen[bytes]]:
        """Every program started so far, oldest first."""
        return list(self._children)

    def end(self, child: subprocess.Popen[bytes], timeout_s: float = 180) -> int:
        """Waits for the end of a program and notes its exit status."""
        code = child.wait(timeout=timeout_s)
        self.note(f"the command ended with exit status {code}")
        return code

    def kill(self, pid: int, sig: signal.Signals, what: str) -> None:
        os.kill(pid, sig)
        self.note(f"{sig.name} sent from outside to {what} (pid {pid})")

    def keep(self, path: Path, name: str) -> None:
        """Copies a file or folder the run wrote into run/ under `name`."""
        target = self.run / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(path, target)

    def close(self) -> None:
        for child in self._children:
            if child.poll() is None:
                for pid in (*descendants(child.pid), child.pid):
                    os.kill(pid, signal.SIGKILL)
                child.wait()
        for cell in self._cells:
            cell.close()


def environment() -> dict[str, str]:
    """The variables every program starts with, and no others."""
    return {
        "HOME": "/home/user",
        "USER": "user",
        "LOGNAME": "user",
        "LANG": "C.UTF-8",
        "PATH": "/home/user/.venv/bin:/usr/bin:/bin",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def descendants(pid: int) -> Iterator[int]:
    """Every process below `pid`, by /proc, children before their parents."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in children:
            yield from descendants(int(child))
            yield int(child)


def process_where(pid: int, variable: str, value: str, program: str) -> int:
    """The process below `pid` that has VARIABLE=value and `program` in its command line."""
    for child in sorted(descendants(pid)):
        try:
            environ = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
            command = Path(f"/proc/{child}/cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if (
            f"{variable}={value}".encode() in environ
            and program in command
            and "torchrun" not in command
        ):
            return child
    raise LookupError(f"no process with {variable}={value} runs {program}")


@contextmanager
def memory_limit(name: str, limit_bytes: int) -> Iterator[Path]:
    """A memory cgroup (version 1) with a hard limit, removed at the end."""
    group = Path("/sys/fs/cgroup/memory") / name
    group.mkdir(parents=True, exist_ok=True)
    (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
    try:
        yield group
    finally:
        for _ in range(50):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.2)


def kernel_lines() -> list[str]:
    """The kernel log as dmesg prints it, without this machine's own housekeeping."""
    text = subprocess.run(["dmesg"], check=True, capture_output=True, text=True).stdout
    return [x for x in text.splitlines() if "idle-reclaim" not in x]
