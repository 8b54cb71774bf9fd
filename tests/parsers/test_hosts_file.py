"""Files that say which host an address is."""

from __future__ import annotations

import pytest

from flatline.errors import FormatError
from flatline.parsers import hosts_file, record_format_of

HOSTS = """\
127.0.0.1   localhost
# the cluster
10.31.8.1   n1.site.example n1
10.31.8.3\tn3
fe00::0     ip6-localnet
ff02::1     ip6-allnodes
"""


def test_whose_addresses_they_are() -> None:
    records = hosts_file.parse(HOSTS.encode(), "hosts")
    assert records.addresses == {"10.31.8.1": "n1", "10.31.8.3": "n3"}
    assert hosts_file.resolve(HOSTS.encode(), "10.31.8.3") == "n3"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (HOSTS, True),
        ("10.31.8.1 ada01\n10.31.8.2 ada02\n", True),
        ("10.31.8.1 ada01\n", False),
        ("10.31.8.1 ada01\nstep 3 loss 0.2\n", False),
        ("10.31.8.1 - - [27/Feb/2026:10:50:53 +0000] GET /\n10.31.8.1 - - GET /\n", False),
        ("0.31 loss\n0.30 loss\n", False),
    ],
)
def test_which_files_are_such(text: str, known: bool) -> None:
    assert (record_format_of("any", text.encode()) is hosts_file) is known


def test_one_line_of_something_else() -> None:
    with pytest.raises(FormatError):
        hosts_file.parse((HOSTS + "10.31.8.4\n").encode(), "hosts")
