"""What an outside provider sees holds no name, and what it answers has them all again."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from claims.truths import runs
from flatline.claims import Names

HOSTS = ("node1", "node10", "node2", "gpu-a100-07", "nid001234", "login", "kepler")
USERS = ("ana", "train", "kim.lee", "x_zoe", "adam")
PROJECTS = ("phys-42", "chemlab")
PIECES = (
    "node1", "node10", "node12", "node1.hpc.example.edu", "node[01-04]", "node[1-2,10]", "kepler",
    "gpu-a100-07:9100", "nid001234", "ana", "banana", "ana_notes", "kim.lee", "train", "train.py",
    "/home/ana/run/train.py", "/home/kim.lee/.venv/lib/python3.11/site-packages/torch/nn/x.py",
    "/usr/lib/x.so", "/scratch/x_zoe/out", "User=train ", "UserId=ana(1000) ",
    "Account=chemlab ", "--account=phys-42 ", '"user": "adam"', "10.0.0.7", "127.0.0.1",
    "fe80::1", "a.b@c.example.org", "HOST-1", "HOSTS-2(HOST-1)", "USER-3", "TEXT-1", "PATH-",
    "HOST-", "12", "1,410 MHz", "0000:3b:00.0", "12:30:45", "step 30/260", "loss nan", "\n", " ",
    "(", ")", ",", "(3 hosts)", "=", ":", "[", "é", "node\u0660", "https://vm.corp.example/x",
    "root@2026-11-20T19:06:14", "kim@2026-11-20T19:06:14",
    "JobID|User|Account|NodeList\n1|ana|chemlab|node[1-2]\n",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=14).map("".join)


def known() -> Names:
    names = Names.of({"run": {"hosts": list(HOSTS)}, "evidence": []})
    for user in USERS:
        names.learn(f"UserId={user}(1000) ")
    for project in PROJECTS:
        names.learn(f"Account={project} ")
    return names


@given(st.lists(texts, max_size=4))
@settings(max_examples=600, deadline=None)
def test_what_was_masked_is_restored(parts: list[str]) -> None:
    """Of every text, also one that looks masked already; in any order within a conversation."""
    names = known()
    masked = [names.mask(part) for part in parts]

    assert [names.restore(part) for part in masked] == parts


@given(texts)
@example("node1.hpc.example.eduHOST-1.node1")
@settings(max_examples=600, deadline=None)
def test_no_name_is_left(text: str) -> None:
    """As a word of its own; a user or host whose name is a word of the trade is left where it may
    be that word."""
    masked = known().mask(text)
    bare = re.sub(r"(?:HOSTS|HOST|USER|PROJECT|PATH|IP|MAIL|DOMAIN|TEXT)-[0-9]+", "X0", masked)

    for name in {*HOSTS, *USERS, *PROJECTS} - {"login", "train", "adam"}:
        whole = rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"
        assert re.search(whole, bare) is None, masked


@given(st.lists(st.sampled_from([p for p in PIECES if re.search(r"\d", p)]), max_size=8))
@settings(max_examples=200, deadline=None)
def test_numbers_stay(parts: list[str]) -> None:
    """Nothing but names is altered: clocks, steps, addresses of devices and ports."""
    numbers = ("1,410 MHz", "0000:3b:00.0", "12:30:45", "step 30/260", "127.0.0.1")
    masked = known().mask(" ".join(parts))

    for number in numbers:
        assert masked.count(number) == parts.count(number)


CASES = (
    ("node1 and node10", "HOST-1 and HOST-2"),
    ("node1.hpc.example.edu:9100", "HOST-1.DOMAIN-1:9100"),
    ("node1.log", "HOST-1.log"),
    ("NodeList=node[1-2,10]", "NodeList=HOSTS-1(HOST-1,HOST-2,HOST-3)"),
    ("banana ana_notes by ana", "banana USER-1_notes by USER-1"),
    ("User=train trained the train loop", "User=USER-1 trained the train loop"),
    ('File "/home/ana/p/train.py", line 230', 'File "PATH-1/train.py", line 230'),
    ("/home/ana/v/lib/site-packages/torch/x.py", "PATH-1/site-packages/torch/x.py"),
    ("/usr/lib/x86_64/libcuda.so /dev/shm", "/usr/lib/x86_64/libcuda.so /dev/shm"),
    ("Account=chemlab --account=phys-42", "Account=PROJECT-1 --account=PROJECT-2"),
    ("from 10.0.0.7:443 to 127.0.0.1", "from IP-1:443 to 127.0.0.1"),
    ("HOST-1 said", "TEXT-1 said"),
    ("login failed on host=login", "login failed on host=HOST-1"),
    ('{Hostname="node10",gpu="5"}', '{Hostname="HOST-1",gpu="5"}'),
    ("max_over_time(gpu_power_watts[5m])", "max_over_time(gpu_power_watts[5m])"),
    ("mail a.b@c.example.org", "mail MAIL-1"),
    ("[kim@2026-11-20T19:06:14]", "[USER-1@2026-11-20T19:06:14]"),
    ("SUBMIT by root@2026-11-20T19:06:14", "SUBMIT by root@2026-11-20T19:06:14"),
    ("JobID|User|Account|x\n1|zoe|chem|y", "JobID|User|Account|x\n1|USER-1|PROJECT-1|y"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "there"), CASES)
def test_a_name_is_told_from_what_looks_like_it(text: str, there: str) -> None:
    """Each from a fresh conversation, so that numbers begin at one."""
    names = known()

    assert names.mask(text) == there
    assert names.restore(there) == text


def test_an_answer_is_restored_as_it_was_written() -> None:
    """A placeholder for nothing stays; one in a sentence is the name again."""
    names = known()
    names.mask("node10")
    names.mask("node[1-2] /home/ana/p/x.py")

    assert names.restore("HOST-1 in PATH-1/x.py, not HOST-99 (HOSTS-1)") == (
        "node10 in /home/ana/p/x.py, not HOST-99 (node[1-2])"
    )


def test_the_arguments_of_a_call_are_restored() -> None:
    """String by string, so that no name can break the document."""
    names = known()
    names.mask("node1 node10")
    call = {"evidence": "e1", "place": {"host": "HOST-2", "rank": 3}, "window": ["HOST-1"]}

    assert names.restored(call) == {
        "evidence": "e1", "place": {"host": "node10", "rank": 3}, "window": ["node1"],
    }  # fmt: skip


def test_a_text_cannot_have_what_matters_hidden() -> None:
    """Whoever writes a log may call a user or a host what the evidence is called."""
    names = Names()
    text = "User=nan User=e1 host=rank3 User=B2 Account=healthy host=gpu5"

    names.learn(text)
    assert names.mask("e1: loss nan of rank3, B2, not healthy, rank4, gpu5") == (
        "e1: loss nan of rank3, B2, not healthy, rank4, gpu5"
    )


def test_a_name_has_one_placeholder_throughout() -> None:
    """Also where it was unknown when it came first."""
    names = Names()

    assert names.mask("node77 is down") == "node77 is down"
    assert names.mask("Hostname=node77") == "Hostname=HOST-1"
    assert names.mask("node77 is down") == "HOST-1 is down"


def test_every_scenario_goes_out_without_its_hosts_and_comes_back() -> None:
    """Evidence of the recorded runs: their hosts and users, and every number."""
    for name, (_, told) in runs().items():
        names = Names.of(told)
        context = "\n".join(_said(item) for item in told["evidence"])
        sent = names.mask(context)
        bare = re.sub(r"(?:HOSTS|HOST|USER|PROJECT|PATH|IP|MAIL|DOMAIN|TEXT)-[0-9]+", " ", sent)
        assert names.restore(sent) == context, name
        for host in told["run"]["hosts"]:
            assert re.search(rf"(?<![\w-]){re.escape(host)}(?![\w-])", bare) is None, (name, host)
        for loss in re.findall(r"loss \d+\.\d+", context):
            assert loss in sent


def _said(item: dict[str, Any]) -> str:
    place = item.get("place") or {}
    return f"{item['id']} {item.get('text')} {item.get('query') or ''} {place.get('host') or ''}"
