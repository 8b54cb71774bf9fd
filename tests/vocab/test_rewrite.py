"""Canonical PromQL becomes the data's, and means the same."""

from __future__ import annotations

import pytest

from flatline.errors import QueryRejected
from flatline.model import Gap
from flatline.series.promql.parse import parse
from flatline.vocab import Exporter, bind, vocabularies
from flatline.vocab.kinds import unit_of
from flatline.vocab.rewrite import Native, Scope, restrictions, rewrite


def exporter(name: str, *labels: str) -> Exporter:
    vocabulary = next(v for v in vocabularies() if v.name == name)
    bound = bind(vocabulary, {c.metric: frozenset(labels) for c in vocabulary.carriers})
    assert bound is not None
    return bound


DCGM = exporter("dcgm-exporter", "Hostname", "gpu")
AMD = exporter("amd-device-metrics-exporter", "hostname", "gpu_id", "clock_index")
SMI = exporter("nvidia_gpu_exporter", "instance", "uuid")


def text(query: str, to: Exporter = DCGM) -> str:
    native = rewrite(query, to)
    assert isinstance(native, Native), native
    assert parse(native.text) == native.expr
    return native.text


@pytest.mark.parametrize(
    ("canonical", "native"),
    [
        ("gpu_power_watts", "DCGM_FI_DEV_POWER_USAGE"),
        ("gpu_sm_clock_hertz", "DCGM_FI_DEV_SM_CLOCK * 1000000"),
        (
            'avg_over_time(gpu_sm_clock_hertz{host="n1",gpu!="0"}[5m])',
            'avg_over_time(DCGM_FI_DEV_SM_CLOCK{Hostname="n1",gpu!="0"}[5m]) * 1000000',
        ),
        ("count_over_time(gpu_sm_clock_hertz[5m])", "count_over_time(DCGM_FI_DEV_SM_CLOCK[5m])"),
        ("max by (host) (gpu_power_watts)", "max by (Hostname) (DCGM_FI_DEV_POWER_USAGE)"),
        ("max without (gpu) (gpu_power_watts)", "max by (Hostname) (DCGM_FI_DEV_POWER_USAGE)"),
        (
            "gpu_sm_clock_hertz > 1e9",
            "(DCGM_FI_DEV_SM_CLOCK * 1000000) > 1000000000",
        ),
        (
            "gpu_power_watts / gpu_power_limit_watts",
            "DCGM_FI_DEV_POWER_USAGE / on (Hostname, gpu) DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
        ),
        ("sum(gpu_power_watts) / count(gpu_xid)",
         "sum(DCGM_FI_DEV_POWER_USAGE) / count(DCGM_FI_DEV_XID_ERRORS)"),
        ("timestamp(gpu_sm_clock_hertz)", "timestamp(DCGM_FI_DEV_SM_CLOCK)"),
    ],
)  # fmt: skip
def test_metric_labels_and_unit_are_rewritten(canonical: str, native: str) -> None:
    """In the parsed query, where they stand; the result is in the canonical unit."""
    assert text(canonical) == native


def test_parts_of_a_device_are_averaged() -> None:
    """An MI300 has a clock per die; `clock_index` does not reach the answer."""
    assert text("avg_over_time(gpu_sm_clock_hertz[1m])", AMD) == (
        "avg without (clock_index, clock_type) (avg_over_time("
        'gpu_clock{clock_type=~"system|GPU_CLOCK_TYPE_SYSTEM"}[1m])) * 1000000'
    )
    with pytest.raises(QueryRejected, match="mean"):
        rewrite("max_over_time(gpu_sm_clock_hertz[1m])", AMD)


def test_a_host_with_a_port_is_matched_without_it() -> None:
    """`instance` carries the exporter's port; a dot in a name is no wildcard."""
    found = text('gpu_power_watts{host="n1.lan"}', SMI)

    assert found == r'nvidia_smi_power_draw_watts{instance=~"(?:n1\\.lan)(:[0-9]+)?"}'


def test_a_signal_nothing_carries_is_a_gap() -> None:
    """That names it."""
    found = rewrite("gpu_xid + 1", SMI)

    assert isinstance(found, Gap)
    assert found.need.startswith("gpu_xid ")


@pytest.mark.parametrize(
    "query",
    [
        "gpu_sm_clok_hertz",
        'gpu_power_watts{UUID="x"}',
        "stdvar_over_time(gpu_sm_clock_hertz[5m])",
        "gpu_power_watts / sum by (host) (gpu_power_watts)",
        "sum by (rack) (gpu_power_watts)",
        '{__name__=~"gpu_.*"}',
    ],
)
def test_what_would_change_its_meaning_is_refused(query: str) -> None:
    """An unknown name, a label signals do not have, a unit that cannot be changed."""
    with pytest.raises(QueryRejected):
        rewrite(query, DCGM)


def test_a_scope_is_put_into_the_query() -> None:
    """Hosts join by short name; GPUs a job held differ from host to host."""
    scope = Scope(("n1", "n2.lan"), {"n1": ("0", "1")})
    groups, gaps = restrictions(scope, DCGM, ["n1.lan", "n2", "n3"])
    native = rewrite("rate(gpu_energy_joules_total[1m])", DCGM, groups)

    assert gaps == ()
    assert isinstance(native, Native)
    assert native.text == (
        "(rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
        '{Hostname="n1.lan",gpu=~"0|1"}[1m]) or '
        'rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{Hostname="n2"}[1m])) * 0.001'
    )


def test_what_a_scope_cannot_tell_is_a_gap() -> None:
    """A host nobody measured; GPU indexes where GPUs are named by UUID."""
    scope = Scope(("n1", "n9"), {"n1": ("0",)})

    groups, gaps = restrictions(scope, SMI, ["n1:9835"])

    assert [gap.where or gap.need for gap in gaps] == ["n9", "the GPUs the job held"]
    assert len(groups) == 1


@pytest.mark.parametrize(
    ("query", "unit"),
    [
        ("max(gpu_power_watts)", "watts"),
        ("rate(gpu_energy_joules_total[5m])", "joules/s"),
        ("gpu_power_watts / gpu_power_limit_watts", "ratio"),
        ("count(gpu_power_watts > 3)", "count"),
        ("gpu_sm_clock_hertz / 1e6", "hertz"),
        ("gpu_power_watts * gpu_sm_clock_hertz", ""),
    ],
)
def test_an_answer_says_its_unit(query: str, unit: str) -> None:
    """Where it follows from the signals; else nothing is claimed."""
    assert unit_of(parse(query)) == unit


SMI_AMD = exporter("amd_smi_exporter", "instance", "gpu_power", "productname")


def test_a_label_that_one_metric_alone_has_is_brought_under_the_common_one() -> None:
    """amd_smi_exporter calls the GPU's label as the metric; matchers go in under that name."""
    native = text('gpu_power_watts{gpu="3"}', SMI_AMD)

    assert native == (
        'label_replace(amd_gpu_power{gpu_power="3"}, "gpu", "$1", "gpu_power", "(.+)") * 1e-06'
    )


@pytest.mark.parametrize(
    "query",
    ['label_replace(gpu_power_watts, "rack", "$1", "host", "(.)")',
     'count_values("host", gpu_xid)', "absent_over_time(gpu_power_watts[5m])"],
)  # fmt: skip
def test_labels_in_strings_are_not_rewritten(query: str) -> None:
    """`host` there would mean another label of the data: refused, not answered differently."""
    with pytest.raises(QueryRejected, match="canonical labels"):
        rewrite(query, DCGM)


def test_a_subquery_is_rewritten_inside() -> None:
    """The metric and its unit, at every step of it."""
    assert text("max_over_time((gpu_sm_clock_hertz)[5m:1m])") == (
        "max_over_time(((DCGM_FI_DEV_SM_CLOCK * 1000000))[5m:1m])"
    )
