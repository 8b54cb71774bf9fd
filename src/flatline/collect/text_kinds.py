"""
What a text is by the shape of its lines: a host's own log (its kernel's, its journal), that of a
daemon of the whole cluster, or what a program printed.
"""

from __future__ import annotations

import re

from flatline.facts import KERNEL, LOG

OTHER = "other"
ENDS_BYTES = 4096
_KERNEL = re.compile(
    rb"^(?:<\d+>|\w{3} +\d+ [\d:]{8} \S+ kernel: |\S+ \S+ kernel: |kern\s*:\w+\s*: )?"
    rb"\[ *\d+\.\d{6}\]|^\w{3} +\d+ [\d:]{8} \S+ kernel: "
    rb"|^\d{4}-\d\d-\d\dT\S{8,40} \S{1,255} kernel: "
    rb"|^\d{4}-\d\d-\d\dT[\d:.,]{8,20}(?:Z|[+-]\d\d:?\d\d) kernel: ",
    re.MULTILINE,
)
_KERNEL_TIMED = re.compile(
    rb"^(?:kern *:\w+ *: )?(?:\[(?:\w{3} \w{3} +\d+ [ \d][\d:]{7} \d{4}|\w{3} +\d+ \d\d:[\d:]{2,5}"
    rb"| *\+\d+\.\d{6})\]"
    rb"|\d{4}-\d\d-\d\dT[\d:]{8},\d{6}[+-]\d\d:?\d\d) (?!\[\w+\d?\]:? )",
    re.MULTILINE,
)  # dmesg -T, -e and --time-format=iso, which programs may print too
_KERNEL_SAYS = re.compile(
    rb"(?<=[\]\d] )(?:NVRM:|nvidia[ -]|mlx\d_|amdgpu|EDAC |mce:|Out of memory|oom-kill:|oom_reaper"
    rb"|Memory cgroup|\S+ invoked oom-killer|nfs: |Lustre|LNet|audit:|systemd\[1\]|IPv6: |pcieport"
    rb"|pci |usb |bnxt_\w+ |infiniband |ionic |irdma |ice |hfi1 |EXT4-fs|XFS|CPU\d|perf: "
    rb"|Linux version|Command line: |INFO: task |ib\w* |eth\d"
    rb"|traps: |\S{1,64}\[\d+\]: segfault at [0-9a-f]+ ip |watchdog: BUG: |ceph: |libceph: |BTRFS "
    rb"|cxi_\w+ |tg3 |igb |ixgbe |i40e |nvme |efa |ena )"
)
_SYSTEM = re.compile(
    rb"^(?:\w{3} +\d+ [\d:]{8}|\d{4}-\d\d-\d\dT[\d:.,]{8,20}(?:Z|[+-]\d\d:?\d\d)) \S{1,255}"
    rb" (?:kernel|slurmd|slurmstepd|systemd[\w.-]*|nv[\w-]*|nvidia-[\w-]+|sshd|CRON|crond?"
    rb"|sudo|kubelet|containerd|dockerd|chronyd|ntpd|NetworkManager|rsyslogd|auditd?|dbus[\w-]*|mcelog|rasdaemon"
    rb"|smartd|ipmi\w*|opensm|ibacm|mmfs\w*|snapd|polkitd|rpc\.[\w-]+)(?:\[\d+\])?: ",
    re.MULTILINE,
)
"""A host's own journal: its kernel and its daemons."""
_PROGRAM = re.compile(
    rb"^\S[^\n\[]{8,300}? (?:python[\d.]*|torchrun|accelerate|train[\w.-]*|bash|sh|docker|podman)"
    rb"(?:\[\d+\])?: ",
    re.MULTILINE,
)
"""What a service of the host runs, whose output is in its journal."""
_DAEMON = re.compile(
    rb"^\[\d{4}-\d\d-\d\dT[\d:.]+\] (?:error: |debug\d?: {1,2}|info: )?"
    rb"(?:slurmctld version|slurmd version|CPUs=\d|sched: |_slurm_rpc|Node configuration|"
    rb"slurmdbd version|Processing RPC|launch task|task/|topology|cons_|Considering|"
    rb"Accounting storage|select/|gres|AuthInfo|Registering|job_step|Recovered)",
    re.MULTILINE,
)

_TELLING = re.compile(
    rb"\n(?:%b)" % b"|".join(shape.pattern for shape in (_DAEMON, _KERNEL, _KERNEL_TIMED)),
    re.MULTILINE,
)
"""With the newline before it, which is found four times as fast as the beginning of a line."""
_MAY_TELL = re.compile(rb"\n(?:[\[<]|kern|\d{4}-\d\d-\d\dT)")
"""This, or what a daemon calls the kernel, stands in all that these match."""


def text_kind(head: bytes, *, named: bool = False) -> str:
    ends = b"\n%b\n%b" % (head[:ENDS_BYTES], head[-ENDS_BYTES:])
    may_tell = b"kernel: " in ends or _MAY_TELL.search(ends)
    if not may_tell or _TELLING.search(ends) is None:
        return LOG  # what most files are, told in a fiftieth of the time
    if len(_DAEMON.findall(head)) >= 3:  # a daemon's own log speaks of every job on the node
        return OTHER
    # what one message goes on with dmesg indents: NVRM's on its versions has three such lines
    lines = max(1, head.count(b"\n") - head.count(b"\n "))
    kernel = len(_KERNEL.findall(head))
    journal = kernel and len(_SYSTEM.findall(head)) > lines / 2 and not _PROGRAM.search(head)
    if kernel > lines / 2 or journal:
        return KERNEL
    timed = len(_KERNEL_TIMED.findall(head)) > lines / 2
    return KERNEL if timed and (named or _KERNEL_SAYS.search(head)) else LOG
