"""
Labels of a columnar folder with their secrets masked.

A capsule that Flatline sealed holds none; one from elsewhere may.  What is asked for is compared
with what is shown, as of a database (`masked`): no query finds out, letter by letter, what a
secret is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flatline.redact import mask_value
from flatline.series.storage import Ints


def masked(strings: Sequence[str], names: Ints, values: Ints) -> tuple[list[str], Ints]:
    """The texts, and the values of labels as numbers of texts; two secrets stay two values."""
    texts = list(strings)
    pairs = names * len(texts) + values
    old: list[int] = []
    new: list[int] = []
    codes: dict[str, int] = {}
    taken: dict[tuple[int, str], int] = {}
    for pair in np.unique(pairs).tolist():
        name, value = divmod(pair, len(strings))
        shown = mask_value(strings[name], strings[value])
        if shown == strings[value]:
            continue
        codes = codes or {text: code for code, text in enumerate(texts)}
        count = taken[name, shown] = taken.get((name, shown), 0) + 1
        shown = shown if count == 1 else f"{shown}~{count}"
        if shown not in codes:
            codes[shown] = len(texts)
            texts.append(shown)
        old.append(pair)
        new.append(codes[shown])
    if not old:
        return texts, values
    at = np.searchsorted(old, pairs).clip(max=len(old) - 1)
    return texts, np.where(np.take(old, at) == pairs, np.take(new, at), values)
