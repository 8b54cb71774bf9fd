"""Thoughts are parsed strictly: what is not as it was asked for is refused with the reason."""

from __future__ import annotations

import pytest

from flatline.agent.thoughts import Malformed, checked_graph, parse_round
from flatline.model.reasoning import Thought

CODES = frozenset({"C2", "B1", "G1"})
P1 = '<proposition id="p1" cites="e1, t2">Rank 3 stopped.</proposition>'
V1 = '<verification id="v1" on="p1" holds="no">It did not.</verification>'
ANSWER = '<answer family="C2"><claim>{"evidence": "e1"}</claim><prose>It waited.</prose></answer>'


def reasoning(*parts: str) -> str:
    return f"<reasoning>\n{' '.join(parts)}\n</reasoning>"


def test_a_round_gives_its_thoughts_with_what_they_rest_on() -> None:
    """Ids, edges and citations; text may hold angle brackets, ampersands and entities."""
    text = reasoning(P1, '<critique id="c1" on="p1">loss < 2 & R&D &lt; 3</critique>')
    thoughts, said = parse_round(f"First I look.\n{text}\nThat is all.", 1, [], CODES)
    assert [(t.id, t.role, t.on, t.cites) for t in thoughts] == [
        ("p1", "proposition", (), ("e1", "t2")),
        ("c1", "critique", ("p1",), ()),
    ]
    assert thoughts[1].text == "loss < 2 & R&D < 3"
    assert said is None


def test_the_last_round_gives_the_answer() -> None:
    """The family, claims as objects, prose; a verification says what it came to."""
    thoughts, said = parse_round(reasoning(P1, V1) + ANSWER, 3, [], CODES)
    assert thoughts[1].holds is False
    assert said is not None
    assert (said.code, said.claims, said.prose) == ("C2", ({"evidence": "e1"},), "It waited.")


def test_none_of_the_families_is_an_answer() -> None:
    """Nobody is made to choose what does not fit."""
    answer = ANSWER.replace("C2", "none")
    _, said = parse_round(reasoning(P1) + answer, 3, [], CODES)
    assert said is not None
    assert said.code is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I think it is C2.", "exactly one <reasoning>"),
        (reasoning(P1) + reasoning(P1), "exactly one <reasoning>"),
        (reasoning(), "no thought"),
        (reasoning("<hypothesis id='h1'>x</hypothesis>"), "<hypothesis> does not stand here"),
        (reasoning("so I think", P1), "'so I think' does not stand here"),
        (reasoning("<proposition>x</proposition>"), 'needs an id as id="p1"'),
        (reasoning("<proposition id='p1'> </proposition>"), "p1 says nothing"),
        (reasoning("<proposition id='p1'/>"), "is empty"),
        (reasoning("<proposition id='p1'>x"), "not closed"),
        (reasoning("<proposition id='p1' colour='red'>x</proposition>"), "no attribute 'colour'"),
        (reasoning("<proposition id=p1>x</proposition>"), 'name="value"'),
        (reasoning(P1, P1), "two thoughts are called 'p1'"),
        (reasoning("<critique id='c1' on='p9'>x</critique>"), "on 'p9', which is no thought"),
        (reasoning(P1, "<critique id='c1'>x</critique>"), 'a critique needs on="ID"'),
        (reasoning(P1, "<critique id='c1' on='p1' holds='no'>x</critique>"), "attribute 'holds'"),
        (reasoning(P1, "<verification id='v1' on='p1'>x</verification>"), 'has holds="yes"'),
        (reasoning("<proposition id='p1'>a <critique id='c1'>b</critique> c</proposition>"),
         "side by side"),
    ],
)  # fmt: skip
def test_what_is_not_as_it_was_asked_for_is_refused(text: str, why: str) -> None:
    """With what to write instead."""
    with pytest.raises(Malformed) as refused:
        parse_round(text, 1, [], CODES)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "no <answer"),
        (ANSWER + ANSWER, "one <answer>"),
        (ANSWER.replace("C2", "Z9"), "the family is one of B1, C2, G1, or none"),
        (ANSWER.replace(' family="C2"', ""), "the family is one of"),
        (ANSWER.replace('{"evidence": "e1"}', "it is e1"), "one JSON object, found 'it is e1'"),
        (ANSWER.replace('{"evidence": "e1"}', "[1]"), "one JSON object"),
        ('<answer family="C2"></answer>', "says nothing"),
        ('<answer family="C2">It is C2.</answer>', "does not stand here"),
    ],
)
def test_an_answer_that_is_none_is_refused(answer: str, why: str) -> None:
    """A family that is not named cannot be chosen."""
    with pytest.raises(Malformed) as refused:
        parse_round(reasoning(P1) + answer, 3, [], CODES)
    assert why in str(refused.value)


def test_a_circle_is_refused_wherever_it_closes() -> None:
    """The graph is acyclic, over all rounds."""
    thoughts = [
        Thought("p1", "proposition", "x", on=("r1",)),
        Thought("c1", "critique", "x", on=("p1",)),
        Thought("r1", "refinement", "x", on=("c1",)),
    ]
    with pytest.raises(Malformed, match="in a circle"):
        checked_graph(thoughts)


def test_thoughts_may_build_on_those_of_earlier_rounds() -> None:
    """And not use their ids again."""
    before, _ = parse_round(reasoning(P1), 1, [], CODES)
    after, _ = parse_round(reasoning('<critique id="c1" on="p1">x</critique>'), 2, before, CODES)
    assert after[0].on == ("p1",)
    with pytest.raises(Malformed, match="two thoughts"):
        parse_round(reasoning(P1), 2, before, CODES)


def test_entities_are_text_and_never_expanded() -> None:
    """No document type is read, so that no entity can grow."""
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + reasoning(
        '<proposition id="p1">&b; &#65;</proposition>'
    )
    thoughts, _ = parse_round(bomb, 1, [], CODES)
    assert thoughts[0].text == "&b; &#65;"


def test_a_flood_of_tags_is_read_in_time() -> None:
    """Linear in the text, whatever it is."""
    with pytest.raises(Malformed):
        parse_round("<reasoning>" + "<proposition " * 100_000, 1, [], CODES)
    many = "".join(f'<proposition id="p{n}">x</proposition>' for n in range(200))
    with pytest.raises(Malformed, match="60 at most"):
        parse_round(reasoning(many), 1, [], CODES)
