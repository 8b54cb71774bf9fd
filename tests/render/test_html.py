"""The page for a browser: self-contained, inert, linked within itself, bounded."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.exhibit import Band, Curve, Curves, Exhibit, Mark, exhibit
from flatline.render import Ledger
from flatline.render.html import illustrate, render
from flatline.render.html.markup import asset
from flatline.wording.untrusted import neutral
from render import big_run, verdicts

PAYLOAD = (
    "<script>alert(1)</script>\"><img src=x onerror=alert(1)> '><svg onload=alert(1)>"
    " javascript:alert(1) </style></title> https://evil.example \x1b[31m\x1b]0;t\x07 \u202etxt"
    " &lt;b&gt; {{7*7}} ]]>"
)
TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vW7xY"
KEY_LINE = "Zm9vYmFyQ" + "0" * 55
VOID = {"meta", "br"}
URLS = {"href", "src", "action", "formaction", "data", "poster", "srcset", "xlink:href", "ping"}
ROOT = Path(__file__).parents[1]


class Page(HTMLParser):
    """The elements of a page; `faults` names what does not close as it opened."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        self.faults += [f"<{tag}> is left open" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes what is not open")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def attributes(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.elements if name in attrs]


def of_run(run: Path) -> str:
    facts = collect(Request((str(run),)))
    verdict = diagnose(facts)
    return illustrate(verdict, exhibit(facts, verdict))


def recorded(tmp_path: Path, name: str, old: str, new: str) -> Path:
    """A bundled scenario's first log, with something else in it."""
    source = sorted((ROOT / "scenarios" / name / "run").rglob("*.log"))[0]
    text = source.read_text("utf-8")
    assert old in text
    copy = tmp_path / "job.log"
    copy.write_text(text.replace(old, new), "utf-8")
    return copy


def big() -> str:
    facts = big_run.facts()
    verdict = replace(verdicts.huge(), culprits=(big_run.place(big_run.CULPRIT),))
    return illustrate(verdict, exhibit(facts, verdict))


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    """A page of each kind, and the largest."""
    names = ("found", "healthy", "undetermined", "huge")
    made = {name: Page(render(getattr(verdicts, name)())) for name in names}
    made["hostile"] = Page(render(verdicts.hostile(PAYLOAD)))
    made["big"] = Page(big())
    for name in ("one_rank_stopped", "loss_goes_nan", "restarted_and_finished", "slurm_node_lost"):
        made[name] = Page(of_run(ROOT / "scenarios" / name / "run"))
    return made


def test_every_page_is_well_formed(pages: dict[str, Page]) -> None:
    """What opens closes, in order, and no id stands twice."""
    for name, page in pages.items():
        assert (name, page.faults) == (name, [])
        ids = page.attributes("id")
        assert (name, len(ids)) == (name, len(set(ids)))


def test_no_page_reaches_out(pages: dict[str, Page]) -> None:
    """Links lead to anchors of the page, which exist; nothing else is loaded or sent."""
    for name, page in pages.items():
        ids = {f"#{anchor}" for anchor in page.attributes("id")}
        links = [link for attribute in URLS for link in page.attributes(attribute)]
        assert [(name, link) for link in links if link not in ids] == []
    assert "url(" not in asset("style.css")
    assert "@import" not in asset("style.css")


def test_only_our_script_may_run(pages: dict[str, Page]) -> None:
    """One script, which the policy names by its hash; no handler stands in an attribute."""
    digest = base64.b64encode(hashlib.sha256(asset("script.js").encode()).digest()).decode()
    for page in pages.values():
        policy = page.attributes("content")[0]
        assert policy.startswith("default-src 'none'")
        assert f"script-src 'sha256-{digest}'" in policy
        assert [tag for tag, _ in page.elements].count("script") == 1
        assert not [key for _, attrs in page.elements for key in attrs if key.startswith("on")]


def test_nothing_the_run_wrote_becomes_markup(pages: dict[str, Page]) -> None:
    """A hostile run makes no kind of element or attribute that an honest one does not."""
    dirty, clean = pages["hostile"], pages["found"]
    kinds = [
        {(tag, key) for tag, attrs in p.elements for key in (*attrs, "")} for p in (dirty, clean)
    ]
    assert kinds[0] == kinds[1]
    styles = set(dirty.attributes("style")) | set(dirty.attributes("class"))
    assert not [style for style in styles if "alert" in style or "evil" in style]


def test_hostile_names_and_logs_stay_text(tmp_path: Path) -> None:
    """From the file itself: a line beside the evidence, a rank's label, a host name."""
    evil = PAYLOAD.replace("\x1b", "").replace("\x07", "")
    copy = recorded(tmp_path, "one_rank_stopped", "RuntimeError:", f"RuntimeError: {evil}")
    made = of_run(copy)
    page = Page(made)
    assert page.faults == []
    assert not {"img", "iframe", "object", "base", "form"} & {tag for tag, _ in page.elements}
    assert "<script>alert" not in made
    assert not set(made) & set("\x1b\x07\u202e")
    assert any("<script>alert(1)</script>" in text for text in page.texts)


def test_secrets_beside_the_evidence_are_masked(tmp_path: Path) -> None:
    """Context is masked as citations are: tokens, passwords, a key over many lines."""
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *[KEY_LINE] * 50, "c2hvcnQ="])
    secret = f"token {TOKEN}\n{key}\n-----END RSA PRIVATE KEY-----\nDB_PASSWORD=hunter2secret"
    mark = "step 30/"
    copy = recorded(tmp_path, "loss_goes_nan", mark, f"x\n{secret}\n INFO [rank 0] {mark}")
    made = of_run(copy)
    assert "[masked]" in made
    for word in (TOKEN, KEY_LINE, "c2hvcnQ=", "hunter2secret"):
        assert word not in made


def test_every_claim_links_to_its_evidence() -> None:
    """Each citation of each claim has a link, and each piece stands in the page once."""
    verdict = verdicts.found()
    page, ledger = Page(render(verdict)), Ledger(verdict)
    assert {name for name, _ in ledger.items} <= set(page.attributes("id"))
    links = page.attributes("href")
    for claim in (*verdict.shows, *verdict.implies):
        assert all(f"#{name}" in links for name in ledger.ids(claim.cites))


def test_the_cited_line_is_marked_in_its_context(pages: dict[str, Page]) -> None:
    """Neighbours stand around it, and the mark is a sign and not a colour alone."""
    page = pages["one_rank_stopped"]
    assert [tag for tag, _ in page.elements].count("mark") >= 4
    assert "▸" in page.texts
    rows = page.attributes("class").count("hit")
    assert page.attributes("class").count("n") >= 4 * rows


def test_the_verdict_stands_first(pages: dict[str, Page]) -> None:
    """Headline, whether to resubmit and the impact come before anything else."""
    texts = " ".join(pages["found"].texts)
    places = [texts.index(word) for word in ("GPU 3 of node07", "yes, but not on", "412 steps")]
    assert max(places) < texts.index("What to do") < texts.index("What the data shows")


def test_sixteen_thousand_ranks_make_a_small_page(pages: dict[str, Page]) -> None:
    """Places that did the same share a row, curves are thinned, and the rest is counted."""
    made, page = big(), pages["big"]
    assert len(made.encode()) < 2_000_000
    texts = " ".join(page.texts)
    assert "ranks 1-9000,9002-16383" in texts
    assert "rank 9001" in texts
    assert "60,000 printed" in texts
    assert "1,008" in texts
    assert re.search(r"and 993 more", texts)


def test_evidence_beyond_what_is_shown_is_counted() -> None:
    """Its links lead to the count."""
    cites = tuple(replace(verdicts.XID, line=n) for n in range(1, 3001))
    claims = tuple(replace(verdicts.SHOWS[0], cites=(cite,)) for cite in cites[-50:])
    verdict = replace(verdicts.found(), shows=(replace(verdicts.SHOWS[0], cites=cites), *claims))
    page = Page(render(verdict))
    assert "evidence-left" in page.attributes("id")
    assert page.attributes("href").count("#evidence-left") >= 50
    assert any("more (e1121 to e" in text for text in page.texts)


@pytest.mark.parametrize(("disposition", "drawn"), [("timeout", True), ("unknown", False)])
def test_that_it_ended_the_run_is_drawn_where_the_end_is_known(
    disposition: str, *, drawn: bool
) -> None:
    """Dumps of a hang tell that ranks waited, not that the run ended."""
    found = verdicts.found()
    ending = replace(found.findings[0], finding=replace(found.findings[0].finding, ended_run=True))
    run = replace(found.run, disposition=disposition)
    page = Page(render(replace(found, findings=(ending, *found.findings[1:]), run=run)))

    assert ("it ended the attempt" in " ".join(page.texts)) is drawn


def test_the_same_run_gives_the_same_page() -> None:
    """Nothing of the machine or the moment stands in it."""
    run = ROOT / "scenarios" / "loss_goes_nan" / "run"
    assert of_run(run) == of_run(run)


def luminance(colour: str) -> float:
    channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_words_stand_out_in_every_scheme() -> None:
    """WCAG 2.2 AA: 4.5 to 1 for text, in light, dark and print."""
    schemes = re.findall(r":root \{(.*?)\}", asset("style.css"), re.DOTALL)
    assert len(schemes) == 3
    for scheme in schemes:
        colours = {k: v if len(v) == 7 else "#" + "".join(c * 2 for c in v[1:])
                   for k, v in re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", scheme)}  # fmt: skip
        for ground in ("ground", "raised", "wash"):
            for text in ("text", "soft", "link", "found"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        for text in ("healthy", "undetermined", "onset", "curve"):
            assert contrast(colours[text], colours["ground"]) >= 4.5, text
        assert contrast(colours["mark-text"], colours["mark"]) >= 4.5


def test_what_steers_is_spelled_out() -> None:
    """Everything that is written passes the same gate."""
    made = render(replace(verdicts.found(), headline="a\u202eb\x1bc"))
    assert neutral("a\u202eb\x1bc") in made


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 10**15), st.floats(allow_nan=True, allow_infinity=True)),
        min_size=2,
        max_size=20,
    )
)
def test_any_numbers_can_be_drawn(points: list[tuple[int, float]]) -> None:
    """Whatever a log prints as a loss, the drawing has finite positions only."""
    steps = sorted(step for step, _ in points)
    run = tuple((float(s - steps[0]), v) for s, (_, v) in zip(steps, points, strict=True))
    band = Band(0, "failed", 0.0, float(max(steps[-1] - steps[0], 1)), steps[0], steps[-1])
    marks = (Mark("onset", run[-1][0], steps[-1]),)
    curves = Curves(("a.log",), True, (band,), (Curve("loss", "", (run,), len(run)),), marks)
    page = Page(illustrate(verdicts.found(), Exhibit(curves)))
    drawn = " ".join([*page.attributes("d"), *page.attributes("style"), *page.attributes("x")])
    assert page.faults == []
    assert not re.search(r"nan|inf", drawn)


def test_a_step_stands_on_the_axis_once(tmp_path: Path) -> None:
    """Of three steps half ones were drawn as the whole ones beside them."""
    (tmp_path / "train.log").write_text(
        "".join(f"step {n}/900 loss {4.0 - n / 10}\n" for n in (1, 2, 3))
    )
    page = of_run(tmp_path)
    axis = re.findall(r'<div class="xs"[^>]*>(.*?)</div>', page)

    assert axis
    assert [re.findall(r">(\d+)<", one) for one in axis] == [["1", "2", "3"]] * len(axis)


def test_attempts_are_named_within_their_stretch() -> None:
    """A short one by its number, which the name of the next one does not draw over."""
    bands = Band(0, "failed", 0.0, 40.0, 1, 40), Band(1, "completed", 40.0, 1_000.0, 40, 1_000)
    line = ((0.0, 4.0), (999.0, 1.0))
    curves = Curves(("a.log",), True, bands, (Curve("loss", "", (line,), 2),), ())
    page = Page(illustrate(verdicts.found(), Exhibit(curves)))
    named = [attrs for _, attrs in page.elements if attrs.get("class") == "attempt"]

    assert [one.get("title") for one in named] == ["attempt 0, failed", None]
    assert ["max-width:" in (one["style"] or "") for one in named] == [True, True]
    assert {"0", "attempt 1"} <= set(page.texts)
