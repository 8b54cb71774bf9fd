"""
How a job of Kaldi's `run.pl`, `queue.pl` or `slurm.pl` ended, which ESPnet's recipes use as well.

    # Accounting: time=9 threads=1
    # Ended (code 255) at Sat Dec 12 03:15:49 GMT 2020, elapsed time 9 seconds

    # Ended (code 0; signal 9) at Sat Dec 12 03:15:49 GMT 2020, elapsed time 9 seconds

    queue.pl: job failed with status 134, log is in exp/tdnn/log/train.24.1.log

Older versions print the status of wait(2) there, which is past 255 for any exit code.  A code of 0
is not read: a recipe is many such jobs, and the end of one is not that of the run.
Source: egs/wsj/s5/utils/parallel of kaldi-asr/kaldi.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.parsers import Reported
from flatline.parsers._exits import ended, waited

FORMAT = "exits-kaldi"
FRAMEWORK = None
TRIGGERS = (
    r"# Ended \(code [1-9]",
    r"# Ended \(code [0-9]+; signal [1-9]",
    r"\.pl: job failed with status [1-9]",
)
_ENDED = re.compile(r"\s*# Ended \(code ([0-9]{1,6})(?:; signal ([1-9][0-9]?))?\) at ")
_FAILED = re.compile(
    r"(?:run|queue|slurm|ssh)\.pl: job failed with status ([1-9][0-9]{0,2}), log is in "
)
_CODES = 255


class Reader:
    """Reads one stream; keeps nothing between lines."""

    def feed(self, text: str) -> Iterable[Reported]:
        if failed := _FAILED.search(text):
            code, signal = ended(int(failed[1]))
            return (Reported("run.pl", exit_code=code, signal=signal),)
        found = _ENDED.match(text)
        if found is None or (int(found[1]) == 0 and not found[2]):
            return ()
        if found[2]:
            return (Reported("run.pl", signal=int(found[2])),)
        status = int(found[1])
        code, signal = waited(status) if status > _CODES else ended(status)
        return (Reported("run.pl", exit_code=code, signal=signal),)
