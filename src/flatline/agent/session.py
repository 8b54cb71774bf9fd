"""
Questions about one run, to a model where there is one, and to the rules where not.

Everything of pydantic-ai is imported here and only when a model is asked or a recording is played.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from flatline.agent import rules
from flatline.agent.bench import Bench, Extras
from flatline.agent.endpoint import made as model_made
from flatline.agent.options import Settings, settings
from flatline.agent.shelf import shelf
from flatline.errors import UsageError
from flatline.mcp.roots import Roots
from flatline.model.reasoning import Reasoning, Spent

if TYPE_CHECKING:
    import argparse

    from flatline.agent.conversation import Conversation, Listener
    from flatline.agent.transcript import Recorded, Transcript
    from flatline.collect import Request
    from flatline.facts import Facts
    from flatline.model import Verdict
    from flatline.wording.progress import Progress


@dataclass(frozen=True, slots=True)
class Replayed:
    """A question of a recording, answered again; `differs` says in what, empty where nowhere."""

    question: str
    reasoning: Reasoning
    differs: tuple[str, ...]


class Session:
    """One run and whoever answers about it. Close it, or use it in `with`."""

    def __init__(self, bench: Bench, settings: Settings, listener: Listener) -> None:
        self.bench, self.settings, self._listener = bench, settings, listener
        self.why = settings.why
        self._runner: asyncio.Runner | None = None
        self._talk: Conversation | None = None
        self._client: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._talk is not None:
            self._talk.recorder.close()
        if self._runner is not None:
            with suppress(RuntimeError):
                if self._client is not None:
                    self._runner.run(self._client.aclose())
                self._runner.close()

    def asked(self, question: str) -> Reasoning:
        """The model's answer, or the rules' with the reason why there is none of a model."""
        talk = self._conversation()
        if talk is None:
            return rules.answered(self.bench, question, self.why)
        return self._grounded(question, self._run(talk, question))

    def _run(self, talk: Conversation, question: str, rounds: int | None = None) -> Reasoning:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(talk.answered(question, rounds))

    def _grounded(self, question: str, made: Reasoning) -> Reasoning:
        """Where the model came to no answer, what the rules say stands in its place."""
        if made.answered:
            return made
        own = rules.answered(self.bench, question, made.stopped or "")
        return replace(made, claims=own.claims, prose=own.prose)

    # --- a model ---

    def _conversation(self) -> Conversation | None:
        """Made when it is first needed; None where it cannot be, with the reason in `why`."""
        endpoint = self.settings.endpoint
        if self._talk is not None or endpoint is None:
            return self._talk
        try:
            model, self._client = model_made(endpoint)
        except UsageError as fault:
            self.why = str(fault)
            return None
        self._talk = self._opened(model, masked=self.settings.masked)
        self._talk.endpoint = endpoint
        self._talk.recorder.put(**self._head(str(endpoint), endpoint.where))
        return self._talk

    def _opened(self, model: Any, *, masked: bool) -> Conversation:
        from flatline.agent.conversation import Conversation
        from flatline.agent.transcript import Recorder
        from flatline.claims import Names, Rerun

        bench, endpoint = self.bench, self.settings.endpoint
        request = bench.request
        return Conversation(
            bench=bench,
            model=model,
            budget=self.settings.budget,
            ask=Rerun.of(bench.document, request.targets, request.prometheus, request.baseline),
            names=Names.of(bench.document, bench.facts.hosts) if masked else None,
            listener=self._listener,
            recorder=Recorder(self.settings.save, endpoint.key if endpoint else None),
            endpoint=None,
        )

    def _head(self, model: str, where: str) -> dict[str, Any]:
        from flatline.agent.transcript import KIND, head

        return {"kind": KIND, **head(self.bench.digest, model, where, self.settings.masked)}

    # --- a recording ---

    def replayed(self, path: Path) -> Iterator[Replayed]:
        """Every question of a recording, its tools and checks run again. Raises `UsageError`."""
        recording = self._recording(path)
        talk = self._tape(recording)
        if recording.run != self.bench.digest:
            self._listener.note(
                "the recording was made of another run, or of another verdict on it"
            )
        for question in recording.questions:
            yield self._again(talk, question, recording.model)

    def resumed(self, path: Path) -> None:
        """Plays a recording, so that the next question goes on from it. Raises `UsageError`."""
        endpoint = self.settings.endpoint
        if endpoint is None:
            return
        recording = self._recording(path)
        try:
            model, self._client = model_made(endpoint)
        except UsageError as fault:
            self.why = str(fault)
            return
        talk = self._tape(recording)
        talk.recorder.put(**self._head(str(endpoint), endpoint.where))
        for question in recording.questions:
            self._again(talk, question, recording.model)
        talk.model, talk.endpoint, talk.budget = model, endpoint, self.settings.budget
        self._talk = talk

    def _recording(self, path: Path) -> Transcript:
        try:
            from flatline.agent.transcript import read
        except ImportError as fault:
            raise UsageError(
                "a recording needs the extra: pip install 'flatline[agent]'"
            ) from fault
        return read(path)

    def _tape(self, recording: Transcript) -> Conversation:
        from flatline.agent.budget import Budget

        talk = self._opened(None, masked=recording.masked)
        talk.budget = Budget(calls=1 << 30, tokens=1 << 50, seconds=1e9)
        self._talk = talk
        return talk

    def _again(self, talk: Conversation, question: Recorded, model: str) -> Replayed:
        from flatline.agent.replay import Tape

        talk.model = Tape(question).model()
        before = len(talk.digests)
        made = self._run(talk, question.text, question.rounds)
        was: Mapping[str, Any] = question.answer or {}
        spent = was.get("spent")
        made = replace(made, model=model, spent=Spent(**spent) if spent else None)
        differs = list(_differences(asdict(made), was)) if question.answer else ["it was cut off"]
        changed = sum(
            new != old for new, old in zip(talk.digests[before:], question.tools, strict=False)
        )
        if changed:
            differs.append(f"{changed} of {len(question.tools)} tools answer otherwise now")
        made = self._grounded(question.text, made)
        return Replayed(question.text, made, tuple(differs))


WHY = "Why did this run end or go as it did, and what is the cause?"


def investigated(
    request: Request,
    progress: Progress | None,
    options: argparse.Namespace,
    listener: Listener,
    environ: Mapping[str, str],
) -> tuple[Verdict, Facts]:
    """The verdict with a model's answer beside it, and the facts. Raises `UsageError`."""
    chosen = settings(options, environ)
    bench = benched(request, chosen, progress)
    if progress is not None:
        progress.clear()
    with Session(bench, chosen, listener) as session:
        made = session.asked(WHY)
    if made.model is None:  # what the rules say stands above it already
        made = replace(made, claims=(), prose=())
    return replace(bench.verdict, reasoning=made), bench.facts


def benched(request: Request, chosen: Settings, progress: Progress | None) -> Bench:
    """The run, read now, with what the settings bring beside it."""
    sources = Roots(chosen.sources) if chosen.sources else None
    return Bench.of(request, Extras(sources, shelf()), progress)


def _differences(now: Mapping[str, Any], was: Mapping[str, Any]) -> Iterator[str]:
    """What of an answer is not as it was recorded."""
    for name in ("code", "answered", "stands", "overturned", "claims", "prose", "rejected",
                 "thoughts", "stopped"):  # fmt: skip
        if _plain(now[name]) != _plain(was.get(name)):
            yield f"its {name}"


def _plain(node: Any) -> Any:
    """As JSON has it: tuples are lists, secrets masked as a transcript masks them."""
    from flatline.redact import mask

    if isinstance(node, Mapping):
        return {key: _plain(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_plain(value) for value in node]
    return mask(node) if isinstance(node, str) else node
