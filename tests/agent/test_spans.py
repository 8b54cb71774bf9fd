"""Traced with OpenTelemetry as its conventions for generative AI have it, without content."""

from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent.scripted import FIRST, SECOND, Script, asked, conversation, third


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    """A process has one provider, and it cannot be set twice."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


def test_rounds_calls_and_tools_are_spans(spans: InMemorySpanExporter) -> None:
    """`invoke_agent`, `chat`, `execute_tool`, with tokens; no text of the run among them."""
    script = Script([("search_log", {"pattern": "Timed out"})], FIRST, SECOND, third())
    asked(conversation(script))
    found = spans.get_finished_spans()
    kinds = [(span.attributes or {}).get("gen_ai.operation.name") for span in found]
    assert kinds.count("invoke_agent") == 3
    assert kinds.count("chat") == 4
    assert kinds.count("execute_tool") == 1
    tool = next(s for s in found if (s.attributes or {}).get("gen_ai.tool.name") == "search_log")
    assert tool.name == "execute_tool search_log"
    chat = next(s for s in found if s.name.startswith("chat"))
    assert (chat.attributes or {})["gen_ai.usage.output_tokens"]
    words = " ".join(str(dict(span.attributes or {})) for span in found)
    assert "Timed out waiting" not in words
    assert "HOST-1" not in words
