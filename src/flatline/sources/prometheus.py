"""
A server that speaks Prometheus's HTTP API, asked for what it can reduce itself.

Prometheus, Thanos, Mimir and VictoriaMetrics alike: the rewritten query is sent as it is, so that
aggregation happens where the samples lie, and only its answer travels.  Only reading endpoints are
asked.  What a server says of itself (`status/buildinfo`) is the engine a citation keeps.

Access comes from the environment or from files it names, never from the command line, and no
message holds it:

    FLATLINE_PROMETHEUS_TOKEN       a bearer token; or _TOKEN_FILE
    FLATLINE_PROMETHEUS_USER        with FLATLINE_PROMETHEUS_PASSWORD, or _PASSWORD_FILE
    FLATLINE_PROMETHEUS_HEADERS     further headers, `Name: value` a line; or _HEADERS_FILE
    FLATLINE_PROMETHEUS_ORG_ID      the tenant (X-Scope-OrgID)
    FLATLINE_PROMETHEUS_CA          certificates to trust (PEM)
    FLATLINE_PROMETHEUS_CERT, _KEY  the client's own certificate and key
    FLATLINE_PROMETHEUS_TIMEOUT_S   seconds one answer may take (30)
    HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY as everywhere

An answer is read up to a size and no further; a range too long or too large for one answer is
asked in windows; a busy server is asked again a few times; a redirect to another host is not
followed, so that no credential leaves the host it was meant for.
httpx is imported when a server is asked: it takes longer than diagnosing a small run.
"""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit, urlunsplit

from flatline.errors import (
    QueryRejected,
    SourceError,
    SourceRefused,
    SourceUnreachable,
    UsageError,
)
from flatline.model import Gap
from flatline.redact import excerpt, mask

if TYPE_CHECKING:
    import ssl

    import httpx

    from flatline.series.promql.evaluate import Matrix

ENV = "FLATLINE_PROMETHEUS_"
TIMEOUT_S = 30.0
CONNECT_S = 5.0
MAX_BYTES = 64 << 20
"""Most bytes of one answer, unpacked: what 240 steps of 8,000 series come to."""
MAX_STEPS = 10_000
"""Steps of one window; servers refuse more than 11,000 (`web/api/v1` of Prometheus)."""
TRIES = 3
PAUSE_S = (0.5, 2.0)
REDIRECTS = 3
SPAN_STEPS = 1_000
SAID_CHARS = 300
INFO = "_info"
"""How metrics end that are there for their labels, which no other of their exporter has
(OpenMetrics, "Info")."""
_TOO_MUCH = re.compile(
    r"(?i)maximum resolution|too many (?:samples|points|data points)|query length|"
    r"range (?:is )?too (?:long|large)|exceed(?:s|ed)?.{0,40}limit|limit.{0,40}exceed|"
    r"cannot select more than"
)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True, slots=True)
class Access:
    """How a server is reached; nothing of it is ever shown."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    user: str | None = field(default=None, repr=False)
    password: str = field(default="", repr=False)
    ca: str | None = None
    cert: tuple[str, str | None] | None = None
    timeout_s: float = TIMEOUT_S


def access(environment: Mapping[str, str]) -> Access:
    """What the environment says of it. Raises `UsageError` naming the variable that is wrong."""
    said = _Said(environment)
    token, user, cert = said("TOKEN"), said("USER"), said("CERT")
    if token and user:
        raise UsageError(f"{ENV}TOKEN and {ENV}USER are both set; a server takes one of them")
    headers = _headers(said("HEADERS") or "")
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if org := said("ORG_ID"):
        headers["X-Scope-OrgID"] = org
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or not (value.isprintable() and value.isascii()):
            raise UsageError(f"{ENV}*: the header {name[:40]!r} cannot be sent as it is given")
    return Access(
        headers=headers,
        user=user,
        password=said("PASSWORD") or "",
        ca=said("CA"),
        cert=(cert, said("KEY")) if cert else None,
        timeout_s=_timeout(said("TIMEOUT_S")),
    )


class _Said:
    """Settings by name: from the environment, or from the file it names."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def __call__(self, name: str) -> str | None:
        given = self._environment.get(ENV + name)
        file = self._environment.get(f"{ENV}{name}_FILE")
        if given or not file:
            return (given or "").strip() or None
        try:
            return Path(file).read_text("utf-8").strip() or None
        except (OSError, ValueError) as fault:
            reason = getattr(fault, "strerror", None) or "it is no text"
            raise UsageError(f"{ENV}{name}_FILE: {file}: {reason}") from fault


def _timeout(said: str | None) -> float:
    try:
        timeout_s = float(said) if said else TIMEOUT_S
    except ValueError:
        timeout_s = 0.0
    if not 0 < timeout_s <= 3600:
        raise UsageError(f"{ENV}TIMEOUT_S is a number of seconds above 0 and up to 3600")
    return timeout_s


def _headers(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if line.strip() and not colon:
            raise UsageError(f"{ENV}HEADERS: a line is `Name: value`")
        if line.strip():
            found[name.strip()] = value.strip()
    return found


def address(url: str) -> str:
    """
    The server's address in its one spelling, without a path to the API.

    Raises `UsageError` for what is no address, and for credentials in it.
    """
    try:
        parts = urlsplit(url)
        bad = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError:
        bad = True
    if bad or parts.query or parts.fragment or not url.isprintable():
        raise UsageError("--prometheus: give the server as http://HOST:PORT or https://HOST/PATH")
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "--prometheus: credentials do not belong on a command line, where others can read"
            f" them; set {ENV}USER and {ENV}PASSWORD_FILE, or {ENV}TOKEN_FILE"
        )
    path = re.sub(r"/(?:api/v1/?)?$", "", parts.path)
    return urlunsplit((parts.scheme, parts.netloc.lower(), path, "", ""))


class PrometheusServer:
    """
    The engine behind one address, over start..end.

    Raises SourceError where it does not answer as such a server does, at once: what is made was
    reached.  `transport` and `sleep` are seams for tests.
    """

    def __init__(
        self,
        url: str,
        start: datetime,
        end: datetime,
        how: Access,
        *,
        metrics: Sequence[Collection[str]] = (),
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`metrics` are groups of metrics that are of interest: the labels of a group are asked
        for together, and what lies outside them is not looked at."""
        self.source = address(url)
        self._start, self._end = start.timestamp(), end.timestamp()
        self._gaps: dict[Gap, None] = {}
        self._http = _Http(self.source, how, transport, sleep)
        self.name = self._identity()
        self._own_times = {"nocache": ["1"]} if "ictoria" in self.name else {}
        self._names = self._carried(metrics)
        self._span = self._sampled()

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return tuple(self._gaps)

    @property
    def span(self) -> tuple[float, float] | None:
        return self._span

    def names(self) -> Mapping[str, frozenset[str]]:
        """The metrics of interest; each has the labels any of its group has."""
        return self._names

    def values(self, metrics: Collection[str], label: str) -> frozenset[str]:
        names = "|".join(sorted(m for m in metrics if m in self._names))
        form = {"match[]": [f'{{__name__=~"{names}"}}'], **self._window()}
        path = f"label/{quote(label, safe='')}/values"
        return frozenset(_texts(self.data(path, form, get=True)))

    def answers_as(self, engine: str) -> bool:
        """The same product; its version may have moved since."""
        return _product(engine) == _product(self.name)

    def run(self, query: str, first: float, last: float, step_s: float) -> Matrix:
        from flatline.series.api import joined, matrix_of

        if first == last or step_s == 0:
            form = {"query": [query], "time": [_time(last)]}
            return matrix_of(self.data("query", form), [last], self._note)
        if step_s <= 0 or last < first:
            raise QueryRejected("a range needs a step above zero and an end not before its start")
        count = floor((last - first) / step_s + 1e-9) + 1
        times = [first + n * step_s for n in range(count)]
        parts = list(self._windows(query, times, step_s))
        return parts[0] if len(parts) == 1 else joined(parts)

    # --- what it asks ---

    def _windows(self, query: str, times: list[float], step_s: float) -> Iterator[Matrix]:
        """The query window by window; one whose answer is too much is halved.  VictoriaMetrics
        answers at times that suit its cache, unless told not to use it; others do not look."""
        from flatline.series.api import matrix_of

        left = [times[n : n + MAX_STEPS] for n in range(0, len(times), MAX_STEPS)]
        while left:
            part = left.pop(0)
            form = {"query": [query], "start": [_time(part[0])], "end": [_time(part[-1])],
                    "step": [_time(step_s)], **self._own_times}  # fmt: skip
            try:
                yield matrix_of(self.data("query_range", form), part, self._note)
            except TooMuch:
                if len(part) < 4:
                    raise
                half = len(part) // 2
                left[:0] = [part[:half], part[half:]]

    def _identity(self) -> str:
        """Product and version as the server says; the address alone proves neither."""
        try:
            told = self.data("status/buildinfo", {}, get=True)
        except (SourceUnreachable, SourceRefused):
            raise
        except SourceError:
            told = {}
        told = told if isinstance(told, dict) else {}
        version = _short(told.get("version") or "of unknown version")
        application = told.get("application")
        if isinstance(application, str) and application:
            return f"{_short(application)} {version}"
        if "x-server-hostname" in self._http.headers:  # VictoriaMetrics says a Prometheus version
            return f"VictoriaMetrics {self._http.victoria_version()}"
        if not told:
            return "a server of Prometheus's API, of unknown version"
        return f"{'Thanos' if version.startswith('0.') else 'Prometheus'} {version}"

    def _carried(self, groups: Sequence[Collection[str]]) -> dict[str, frozenset[str]]:
        there = set(_texts(self.data("label/__name__/values", self._window(), get=True)))
        found: dict[str, frozenset[str]] = {}
        infos = {name for group in groups for name in group if name.endswith(INFO)}
        for group in (*(set(group) - infos for group in groups), *({name} for name in infos)):
            held = sorted(there.intersection(group))
            if held:
                form = {"match[]": held, **self._window()}
                labels = frozenset(_texts(self.data("labels", form))) - {"__name__"}
                found.update((name, labels | found.get(name, frozenset())) for name in held)
        return found

    def _sampled(self) -> tuple[float, float] | None:
        """From the first to the last sample within the window of the metrics there are most
        likely to be: one of each set of labels."""
        one_of = {labels: name for name, labels in sorted(self._names.items(), reverse=True)}
        spans = [span for name in one_of.values() if (span := self._span_of(name))]
        return (min(s[0] for s in spans), max(s[1] for s in spans)) if spans else None

    def _span_of(self, metric: str) -> tuple[float, float] | None:
        step_s = max(1.0, floor((self._end - self._start) / SPAN_STEPS))
        counted = self.run(f"count({metric})", self._start, self._end, step_s)
        if not len(counted.labels):
            return None
        there = counted.times[counted.present[0]].tolist()
        ends = []
        for reduction, at in (("min", there[0]), ("max", there[-1])):
            found = self.run(f"{reduction}(timestamp({metric}))", at, at, 0.0)
            ends.append(float(found.values[0, 0]) if len(found.labels) else at)
        return max(ends[0], self._start), min(ends[1], self._end)

    def _window(self) -> dict[str, list[str]]:
        return {"start": [_time(self._start)], "end": [_time(self._end)]}

    def data(self, path: str, form: Mapping[str, Sequence[str]], *, get: bool = False) -> Any:
        """What it answers to one request of its API. Raises SourceError, TooMuch."""
        answer = self._http.ask(path, form, get=get)
        for warning in _texts(answer.get("warnings"))[:4]:
            self._note(f"the server warns: {_short(warning)}")
        if answer.get("isPartial") is True:
            self._note("the server answered in part only")
        return answer.get("data")

    def _note(self, reason: str) -> None:
        self._gaps.setdefault(Gap("metrics", reason, self.source))


# --- the wire -----------------------------------------------------------------------------------


class TooMuch(SourceError):
    """More than the server gives, or than is read, at once."""


class _Http:
    """One server: requests that are bounded in time, size, tries and where they may lead."""

    def __init__(
        self,
        base: str,
        how: Access,
        transport: httpx.BaseTransport | None,
        sleep: Callable[[float], None],
    ) -> None:
        import httpx

        self._base = base
        self._sleep = sleep
        self._get_only, self._late = False, 0
        self.headers: Mapping[str, str] = {}
        try:
            self._client = httpx.Client(
                headers={"Accept": "application/json", **how.headers},
                auth=(how.user, how.password) if how.user else None,
                verify=_trust(base, how),
                timeout=httpx.Timeout(how.timeout_s, connect=min(CONNECT_S, how.timeout_s)),
                transport=transport,
                follow_redirects=False,
            )
        except (OSError, ValueError, ImportError) as fault:  # ssl.SSLError is an OSError
            reason = getattr(fault, "strerror", None) or str(fault)
            raise UsageError(
                f"{ENV}* or a proxy setting cannot be used: {mask(reason)}"
            ) from fault
        weakref.finalize(self, self._client.close)

    def ask(self, path: str, form: Mapping[str, Sequence[str]], *, get: bool) -> dict[str, Any]:
        """The document the server answers with. Raises SourceError."""
        import orjson

        url = f"{self._base}/api/v1/{path}"
        status, body = self._patiently(url, form, get or self._get_only)
        if status in (404, 405) and not get and not self._get_only:
            status, body = self._patiently(url, form, True)
            self._get_only = status < 400
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = None
        if status in (401, 403):
            raise SourceRefused(f"{self._base} refuses (status {status}): see {ENV}TOKEN_FILE")
        if not isinstance(answer, dict):
            raise SourceError(f"{url} does not answer as Prometheus does (status {status})")
        if status >= 400 or answer.get("status") != "success":
            raise self._refusal(status, answer)
        return answer

    def _refusal(self, status: int, answer: Mapping[str, Any]) -> SourceError:
        said = _short(answer.get("error") or f"status {status}")
        if _TOO_MUCH.search(said):
            return TooMuch(f"{self._base} refuses: {said}")
        kind = QueryRejected if answer.get("errorType") == "bad_data" else SourceError
        return kind(f"{self._base} refuses: {said}")

    def _patiently(
        self, url: str, form: Mapping[str, Sequence[str]], get: bool
    ) -> tuple[int, bytes]:
        """Asked again where the server is busy or the way to it broke."""
        import httpx

        if self._late >= TRIES:
            raise SourceUnreachable(f"{self._base} was too late {TRIES} times; not asked again")
        for number in range(TRIES):
            wait = PAUSE_S[min(number, len(PAUSE_S) - 1)]
            try:
                status, body = self._redirected(url, form, get)
            except httpx.TimeoutException as fault:
                self._late += 1
                raise SourceUnreachable(f"{self._base} did not answer in time") from fault
            except httpx.InvalidURL as fault:
                raise UsageError(f"--prometheus: {mask(str(fault))}") from fault
            except httpx.HTTPError as fault:
                if number == TRIES - 1 or "CERTIFICATE" in str(fault):
                    said = _short(str(fault) or type(fault).__name__)
                    raise SourceUnreachable(f"{self._base} cannot be reached: {said}") from fault
            else:
                if (status < 500 and status != 429) or status == 501 or number == TRIES - 1:
                    return status, body
                wait = _retry_after(self.headers.get("retry-after"), wait)
            self._sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _redirected(
        self, url: str, form: Mapping[str, Sequence[str]], get: bool
    ) -> tuple[int, bytes]:
        for _ in range(REDIRECTS + 1):
            status, body, location = self._once(url, form, get)
            if location is None:
                return status, body
            there, here = urlsplit(location), urlsplit(url)
            if (there.scheme, there.netloc) != (here.scheme, here.netloc):
                host = _short(there.netloc)
                raise SourceRefused(f"{self._base} redirects to {host}, which is not followed")
            url = urlunsplit((there.scheme, there.netloc, there.path, "", ""))
        raise SourceRefused(f"{self._base} redirects in a circle")

    def _once(
        self, url: str, form: Mapping[str, Sequence[str]], get: bool
    ) -> tuple[int, bytes, str | None]:
        fields = {name: list(values) for name, values in form.items()}
        if get:
            request = self._client.build_request("GET", url, params=fields)
        else:
            request = self._client.build_request("POST", url, data=fields)
        response = self._client.send(request, stream=True)
        try:
            self.headers = response.headers
            if response.is_redirect:
                return response.status_code, b"", str(response.url.join(
                    response.headers["location"]))  # fmt: skip
            body = bytearray()
            for piece in response.iter_bytes():
                body += piece
                if len(body) > MAX_BYTES:
                    raise TooMuch(f"an answer of {self._base} has more than {MAX_BYTES} bytes")
            return response.status_code, bytes(body), None
        finally:
            response.close()

    def victoria_version(self) -> str:
        """As its own metrics say; its buildinfo names a Prometheus it stands in for."""
        try:
            _, body = self._redirected(f"{self._base}/metrics", {}, True)
        except (SourceError, OSError):
            return "of unknown version"
        found = re.search(rb'vm_app_version\{[^}]{0,200}short_version="v?([0-9.]{1,20})"', body)
        return found[1].decode() if found else "of unknown version"


def _trust(base: str, how: Access) -> ssl.SSLContext | bool:
    """The system's certificates, unless others are named; httpx's own where it has none."""
    import ssl  # with httpx, where a server is asked

    if base.startswith("http:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody, and is made in no time
    context = ssl.create_default_context(cafile=how.ca)
    if how.cert is not None:
        context.load_cert_chain(*how.cert)
    elif how.ca is None and not context.cert_store_stats()["x509_ca"]:
        return True
    return context


def _retry_after(said: str | None, otherwise: float) -> float:
    return min(float(said), 5.0) if said and re.fullmatch("[0-9]{1,5}", said) else otherwise


def _short(said: object) -> str:
    return excerpt(str(said), SAID_CHARS)


def _product(engine: str) -> str:
    return re.sub(r",? (?:of unknown version|v?\d\S*)$", "", engine)


def _time(seconds: float) -> str:
    return f"{seconds:.3f}".rstrip("0").rstrip(".")


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
