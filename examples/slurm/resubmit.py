#!/usr/bin/env python3
"""
Submit a batch job and submit it again only where its verdict says that helps.

    resubmit.py [--tries N] [--flatline PROGRAM] -- SBATCH-ARGUMENTS...

After a try that failed, `flatline diagnose JOBID --format json` decides: `as_is` submits it again,
`exclude` does so without the nodes the verdict names; `fix_first`, `wait`, `unnecessary`,
`unknown`, a verdict below the confidence asked for, the same verdict twice, and Flatline failing
all end it.  Nothing a verdict holds is run: of its actions only the host names of `exclude` are
taken, checked, and given to sbatch as --exclude, together with those the job excluded itself.

The exit status is the last job's own (sbatch --wait); 2 where the call was wrong.  Every decision
is a line on standard error.  Python 3.8 or newer, nothing else.
"""

import argparse
import json
import re
import subprocess
import sys
import time

HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")
CONFIDENT = 0.8  # what the verdict's document calls confident
SETTLE_S = 5.0  # until the accounting has the job's end
DIAGNOSE_S = 300.0


def said(text):
    print(f"resubmit: {text}", file=sys.stderr, flush=True)


def submit(arguments, excluded):
    """(job id, exit status) of one try, after its end."""
    more = [f"--exclude={','.join(excluded)}"] if excluded else []
    child = subprocess.Popen(
        ["sbatch", "--parsable", "--wait", *more, *arguments], stdout=subprocess.PIPE, text=True
    )
    job = child.stdout.readline().strip().partition(";")[0]
    if not re.fullmatch(r"\d+", job):
        child.wait()
        sys.exit(child.returncode or 2)
    said(f"job {job} submitted" + (f" without {','.join(excluded)}" if excluded else ""))
    return job, child.wait()


def excluded_by(job):
    """The nodes the job excluded itself, as Slurm spells them."""
    shown = subprocess.run(
        ["scontrol", "show", "job", job], capture_output=True, text=True, timeout=60, check=False
    )
    found = re.search(r"\bExcNodeList=(\S+)", shown.stdout)
    return [] if found is None or found[1] == "(null)" else [found[1]]


def diagnosed(program, job):
    """The verdict, or None where Flatline gave none."""
    try:
        done = subprocess.run(
            [program, "diagnose", job, "--format", "json", "--quiet"],
            capture_output=True, text=True, timeout=DIAGNOSE_S, check=False,
        )  # fmt: skip
        if done.returncode not in (0, 1, 3):
            said(f"Flatline ended with {done.returncode}: {done.stderr.strip()[:200]}")
            return None
        return json.loads(done.stdout)["verdict"]
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError) as fault:
        said(f"no verdict: {fault}")
        return None


def accused(verdict):
    """Hosts the verdict excludes by name; None where one of them is no host name."""
    hosts = [h for a in verdict["actions"] if a["kind"] == "exclude" for h in a["targets"]]
    return list(dict.fromkeys(hosts)) if all(HOST.fullmatch(h) for h in hosts) else None


def decided(verdict, earlier, excluded, options):
    """(whether to go on, the nodes to leave out from now on, why)."""
    confidence, way = verdict["confidence"], verdict["resubmit"]
    what = (verdict["code"], verdict["headline"])
    if way not in ("as_is", "exclude"):
        return False, excluded, f"the verdict says {way!r}: {verdict['headline']}"
    if confidence < options.confidence:
        return False, excluded, f"the verdict is not confident: {confidence:.2f}"
    if what in earlier:
        return False, excluded, f"the same verdict again: {verdict['headline']}"
    if way == "as_is":
        return True, excluded, verdict["headline"]
    hosts = accused(verdict)
    if not hosts:
        return False, excluded, "the verdict names no node to leave out"
    wanted = list(dict.fromkeys([*excluded, *hosts]))
    if len(wanted) > options.most_excluded:
        return False, excluded, f"more than {options.most_excluded} nodes would be left out"
    return True, wanted, verdict["headline"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0].strip(),
        usage="resubmit.py [options] -- SBATCH-ARGUMENTS...",
    )
    add = parser.add_argument
    add("--tries", type=int, default=3, metavar="N", help="submissions in all (3)")
    add("--confidence", type=float, default=CONFIDENT, metavar="C", help="the least (0.8)")
    add("--most-excluded", type=int, default=4, metavar="N", help="nodes left out in all (4)")
    add("--flatline", default="flatline", metavar="PROGRAM", help="where it is not on the PATH")
    add("--settle", type=float, default=SETTLE_S, metavar="S", help=argparse.SUPPRESS)
    add("arguments", nargs="+", metavar="SBATCH-ARGUMENTS")
    options = parser.parse_args()
    excluded, own, earlier = [], None, set()
    for left in range(options.tries - 1, -1, -1):
        job, status = submit(options.arguments, [*(own or []), *excluded])
        if status == 0:
            said(f"job {job} completed")
            return 0
        own = excluded_by(job) if own is None else own
        time.sleep(options.settle)
        verdict = diagnosed(options.flatline, job)
        if verdict is None:
            return status
        again, excluded, why = decided(verdict, earlier, excluded, options)
        earlier.add((verdict["code"], verdict["headline"]))
        if not again or not left:
            why = why if not again else f"that was the last of {options.tries} tries: {why}"
            said(f"job {job} failed and is not submitted again: {why}")
            return status
        said(f"job {job} failed and is submitted again, {left} left: {why}")
    return status


if __name__ == "__main__":
    sys.exit(main())
