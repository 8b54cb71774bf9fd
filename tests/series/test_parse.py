"""Text to query and back, and what is refused before the parser sees it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flatline.errors import QueryRejected
from flatline.series.promql.parse import parse
from flatline.series.promql.tree import Call, Selector, render

QUERIES = [
    'sum by (host) (rate(a{x="1",y=~"n[0-9]+"}[5m] offset 1m)) / 2',
    "a + on (x) group_left (y) b * ignoring () c",
    "-(a ^ 2) > bool 1e-07",
    "max_over_time(rate(a[1m])[1h:30s])",
    "quantile without (gpu) (0.5, a @ end())",
    "a @ 1700000000.123 offset -1h30m5s20ms",
    '{"dotted.name","dotted.label"="x"} or vector(NaN)',
    "topk(scalar(k), a) unless on () b",
    "-1 ^ 2",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_rendered_query_is_the_same_query(query: str) -> None:
    """What is written into evidence reads back as what was asked."""
    tree = parse(query)

    assert render(parse(render(tree))) == render(tree)


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_any_label_value_survives(value: str) -> None:
    """Quotes, backslashes, newlines, controls: a hostile label cannot end its string."""
    selector = Selector("a", parse('a{l="x"}').matchers)  # type: ignore[union-attr]
    matcher = type(selector.matchers[0])("l", "=", value)

    again = parse(render(Selector("a", (matcher,))))

    assert again == Selector("a", (matcher,))


def test_raw_strings_are_raw() -> None:
    r"""`\n` in back quotes is a backslash and an n."""
    found = parse(r"a{l=`x\n`}")

    assert isinstance(found, Selector)
    assert found.matchers[0].value == r"x\n"


@pytest.mark.parametrize(
    "query",
    [
        "+".join(["a"] * 5000),
        "(" * 100 + "a" + ")" * 100,
        "-" * 1000 + "a",
        "a{" + ",".join(f'l{i}="x"' for i in range(5000)) + "}",
    ],
    ids=["operators", "parentheses", "signs", "matchers"],
)
def test_a_query_that_would_overflow_the_parser_is_refused(query: str) -> None:
    """5,000 chained operators end the process if they reach it."""
    with pytest.raises(QueryRejected, match="too large"):
        parse(query)


@pytest.mark.parametrize(
    "query",
    ["", "a{", 'a{l="x}', "a @ -5", 'a{l="\\xff"}', 'a{x="1" or y="2"}', "a{l='x\ny'}", "a $ b"],
)
def test_what_is_no_query_is_refused(query: str) -> None:
    """With a message, never a traceback; a negative @ is not taken for 0."""
    with pytest.raises(QueryRejected):
        parse(query)


def test_comments_and_quotes_in_strings_are_text() -> None:
    """A # within a string begins no comment."""
    found = parse('abs(a{l="#)"}) # the end')

    assert isinstance(found, Call)
    assert render(found) == 'abs(a{l="#)"})'
