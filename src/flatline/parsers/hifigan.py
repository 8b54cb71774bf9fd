"""
HiFi-GAN and BigVGAN: `Steps : 4900, Gen Loss Total : 36.581, Mel-Spec. Error : 0.500, s/b : 0.65`.

The error of the spectrogram is the loss that is told: it is to fall, which the generator's whole
loss, that plays against discriminators, need not, nor is its gradient's norm near 1.  A checkpoint
is saved once "Complete." stands below the line that begins it, and was loaded likewise; its step
is in its name.

Source: train.py of jik876/hifi-gan and NVIDIA/BigVGAN; `save_checkpoint` and `load_checkpoint` of
their utils.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "hifigan"
FRAMEWORK = "hifigan"
TRIGGERS = (
    r"Steps ?: ?[0-9]+, Gen Loss Total ?: ",
    r"(Saving checkpoint to |Loading '?)[^ ]+_[0-9]{8}",
    r"Complete\.\s*$",
)
_STEP = Late(
    rf"Steps ?: ?([0-9]{{1,12}}), Gen Loss Total ?: ?{NUMBER}"
    rf", (?P<error>Mel(?:-Spec\.)? Error) ?: ?({NUMBER})"
    rf"(?:, s/b ?: ?({NUMBER}))?(?:,? lr ?: ?({NUMBER}))?"
)
_FILE = Late(r"\b(Saving checkpoint to|Loading) '?\S{1,400}?/g_([0-9]{8})'?\s*$")
_OTHER = Late(r"\b(?:Saving checkpoint to|Loading) ")
_KINDS = {"Saving checkpoint to": "checkpoint_saved", "Loading": "checkpoint_loaded"}


class Reader:
    """Reads one stream; holds the checkpoint that is under way."""

    def __init__(self) -> None:
        self._under_way: tuple[str, int] | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point, or the checkpoint of a generator that is whole."""
        text = text[:1000]
        if found := _STEP.search(text):
            return (
                Progress("train", int(found[1]), loss=number(found[3]),
                         loss_name=found["error"], step_s=number(found[4]),
                         lr=number(found[5])),
            )  # fmt: skip
        if found := _FILE.search(text):
            self._under_way = _KINDS[found[1]], int(found[2])
        elif _OTHER.search(text):
            self._under_way = None
        elif self._under_way is not None and "Complete." in text:
            (kind, step), self._under_way = self._under_way, None
            loaded = kind == "checkpoint_loaded"
            return (Progress("checkpoint_loaded" if loaded else "checkpoint_saved", step),)
        return ()
