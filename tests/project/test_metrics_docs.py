"""The alerts and the dashboard in docs/ are well-formed and speak of metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import promql_parser
import pytest
import yaml
from dramatiq.brokers.stub import StubBroker

from dramatiq_echomq import StalledCheck
from dramatiq_echomq.prometheus import QueueCollector, StalledMetrics

from ..support.queue_data import put

DOCS = Path(__file__).parents[2] / "docs"
ALERTS = yaml.safe_load((DOCS / "prometheus-alerts.yml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((DOCS / "grafana-dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VERBS = re.compile(r"`(dramatiq-echomq (\w+)[^`]*)`")


def expressions() -> dict[str, str]:
    """Each expression by where it stands; what Grafana puts in is put in."""
    found = {rule["alert"]: rule["expr"] for rule in RULES}
    for panel in PANELS:
        for target in panel["targets"]:
            expression = target["expr"].replace("$queue", ".*").replace("$__rate_interval", "5m")
            found[f"{panel['title']} {target['refId']}"] = expression
    return found


def series_of(registry_or_collector) -> dict[str, set[str]]:
    """The names of the series that are exported, with their labels."""
    return {
        sample.name: set(sample.labels) - {"le"}
        for metric in registry_or_collector.collect()
        for sample in metric.samples
        if not sample.name.endswith("_created")
    }


@pytest.fixture
def exported(client) -> dict[str, set[str]]:
    """Every series that the package exports, with its labels."""
    put(client, meta={"version": "echomq:1"})
    metrics, broker = StalledMetrics(), StubBroker(middleware=[])
    check = StalledCheck("q", recovered_ids=("a",), recovered_ages=(5,))
    metrics.after_stalled_sweep(broker, "q", seconds=1, check=check, error=None)
    metrics.after_stalled_report(broker, "q", would_recover=(), would_fail=())
    metrics.after_locks_renewed(broker, smallest_ttl=1)
    return series_of(metrics.registry) | series_of(QueueCollector(client))


def selectors(node) -> list:
    """The selectors of an expression."""
    if isinstance(node, promql_parser.VectorSelector):
        return [node]
    parts = [getattr(node, name, None) for name in ("vs", "expr", "lhs", "rhs", "vector_selector")]
    parts += list(getattr(node, "args", None) or [])
    return [found for part in parts if part is not None and not isinstance(part, str) for found in selectors(part)]


@pytest.mark.parametrize("where", expressions())
def test_each_expression_can_be_parsed_and_names_what_is_exported(where, exported):
    expression = expressions()[where]
    used = selectors(promql_parser.parse(expression))

    assert len(used) == expression.count("dramatiq_echomq_")
    for selector in used:
        labels = {matcher.name for matcher in selector.matchers.matchers} - {"__name__"}
        assert labels <= exported[selector.name] | {"le"}


def test_what_is_said_of_a_label_is_there_to_be_said():
    for rule in RULES:
        said = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        assert said <= {"queue_name"}
        if said:
            assert "by (le)" not in rule["expr"]


def test_each_alert_says_how_bad_it_is_and_what_it_means():
    names = [rule["alert"] for rule in RULES]
    assert sorted(set(names)) == sorted(names)
    for rule in RULES:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))


def test_the_verbs_that_alerts_name_are_there():
    from dramatiq_echomq.cli.command import VERBS as there

    named = VERBS.findall((DOCS / "prometheus-alerts.yml").read_text())
    assert named
    assert {verb for _, verb in named} <= there.keys()


def test_every_metric_is_looked_at(exported):
    written = json.dumps([DASHBOARD, RULES])
    families = {re.sub("_(bucket|count|sum)$", "", name) for name in exported}
    assert {name for name in families if name not in written} == {"dramatiq_echomq_stalled_reports_total"}


def test_panels_have_ids_of_their_own_and_do_not_overlap():
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def test_the_dashboard_asks_the_data_source_that_was_chosen():
    assert {variable["name"] for variable in DASHBOARD["templating"]["list"]} == {"datasource", "queue"}
    for panel in PANELS:
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
