"""
Kaldi's nnet3: the objective of a training job, and the iterations that its scripts tell of.

`Average objective function for 'output' for minibatches 0-9 is -0.31 over ... frames.` is a log
probability: it rises towards 0 and is no loss.  That of 'output-xent', which only regularises, is
left out.  `Iter: 12/440` of the Python scripts and `training, iteration 12 of 441` of the shell's
are printed as an iteration, a pass over some archives by a few jobs, begins: it is no step yet,
those before it are.  The last thing those of Python do is to print the folder's summary, in which
the final model stands beside some iterations, as evaluations; that of a folder at work has none.

Source: `ObjectiveFunctionInfo::PrintStatsForThisPhase` of src/nnet3/nnet-training.cc,
steps/nnet3/chain/train.py, steps/chain2/train.sh, steps/info/chain_dir_info.pl and
nnet3_dir_info.pl, kaldi-asr/kaldi 5.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, Late, count, number

FORMAT = "kaldi"
FRAMEWORK = "kaldi"
TRIGGERS = (
    r"Average objective function for 'output' (for|using) ",
    r" INFO \] Iter: [0-9]+/[0-9]+ ",
    r": training, iteration [0-9]+ of [0-9]+",
    r": num-iters=[0-9]+ nj=[0-9]",
)
_OBJECTIVE = Late(
    r"\bAverage objective function for 'output' (?:for|using [0-9]{1,9}) minibatches"
    r"(?: in  ?minibatch range)? [0-9]{1,12}-([0-9]{1,12}) is (?:\S{1,24} \+ \S{1,24} = )?"
    r"(-?(?:[0-9][0-9.e+-]{0,23}|nan|inf)) over "
)
_ITERATION = Late(
    r"(?: INFO \] Iter: ([0-9]{1,9})/([0-9]{1,9}) |: training, iteration ([0-9]{1,9}) of"
    r" ([0-9]{1,9})\b)"
)
_SUMMARY = Late(
    r"\S: num-iters=([0-9]{1,9}) nj=[0-9.]{1,20} .{1,600}?\b(logprob|loglike):train/valid"
    r"\[([0-9,]{0,80})(?:final|combined)\]=\([^/)]{1,200}/([^/)]{1,200})\)"
)


class Reader:
    """Each line speaks for itself."""

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:LONGEST]
        if found := _OBJECTIVE.search(text):
            step, value = int(found[1]) + 1, number(found[2])
            return (Progress("train", step, loss=value, loss_name="objective", falling=False),)
        if summary := _SUMMARY.search(text):
            return _summed_up(summary[1], summary[2], summary[3], summary[4])
        if (begun := _ITERATION.search(text)) is None:
            return ()
        done, last = count(begun[1] or begun[3]), count(begun[2] or begun[4])
        if done is None or last is None:
            return ()
        planned = last + 1 if begun[1] else last
        return (
            (Progress("train", done, planned),) if done else (Progress("plan", planned=planned),)
        )


def _summed_up(made: str, name: str, iterations: str, valid: str) -> Iterable[Progress]:
    """The held-out objective of each iteration named and of the final model, and the end."""
    at: list[str | None] = [*iterations.split(",")[:-1], None]
    for iteration, value in zip(at, valid.split(","), strict=False):
        yield Progress("eval", count(iteration), loss=number(value), loss_name=name, falling=False)
    yield Progress("finished", planned=count(made))
