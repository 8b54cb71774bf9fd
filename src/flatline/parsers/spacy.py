"""
spaCy's command line: how a training of `spacy train` ends.

    ✔ Saved pipeline to output directory
    output/model-last

It is the last that it prints, also where it stopped for patience.  Its table of losses and scores
is read under its heading (`headed`).

Source: `train` of spacy/training/loop.py, explosion/spaCy.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "spacy"
FRAMEWORK = "spaCy"
TRIGGERS = (r"Saved pipeline to output directory",)
RULES = (rule("finished", r"^(?:\S{1,2} )?Saved pipeline to output directory\b"),)


def Reader() -> RuleReader:
    return RuleReader(RULES)
