"""The clock of a progress bar: what tqdm's `format_interval` prints of the time it has run."""

from __future__ import annotations


def shown_s(text: str) -> float | None:
    """Seconds of `1:02:03` or `02:03`, which are whole ones; None where they are no such time."""
    seconds = 0
    for part in text.split(":"):
        if not part.isdigit() or len(part) > 9:
            return None
        seconds = 60 * seconds + int(part)
    return float(seconds)
