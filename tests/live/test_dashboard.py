"""The Grafana dashboard: what it asks for is exported, and its structure is that of Grafana's published schema.

The schema is `kinds/dashboard/dashboard_kind.cue` of Grafana's repository; here is what it says of what we use.
"""

import json
import re
from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import Ge, Gt, Le, Lt
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel, ConfigDict

from stallmark.live.metrics import exposition

PATH = Path(__file__).parents[2] / "docs/grafana-dashboard.json"
UNITS = {"none", "s", "ops", "Bps", "percentunit"}
"""Ids of Grafana's units, of those that fit seconds, counts, bytes and shares of one."""


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Source(Part):
    type: Literal["prometheus"]
    uid: Literal["${datasource}"]


class GridPos(Part):
    x: Annotated[int, Ge(0), Lt(24)]
    y: Annotated[int, Ge(0)]
    w: Annotated[int, Gt(0), Le(24)]
    h: Annotated[int, Gt(0)]


class Target(Part):
    refId: str
    datasource: Source
    expr: str
    legendFormat: str
    range: bool
    instant: bool = False


class Threshold(Part):
    color: str
    value: float | None


class Thresholds(Part):
    mode: Literal["absolute", "percentage"]
    steps: list[Threshold]


class Defaults(Part):
    unit: str
    color: dict[Literal["mode"], Literal["thresholds", "palette-classic", "fixed"]]
    mappings: list
    thresholds: Thresholds
    custom: dict = {}
    min: float | None = None


class FieldConfig(Part):
    defaults: Defaults
    overrides: list


class Panel(Part):
    id: int
    type: Literal["timeseries", "stat"]
    title: str
    description: str
    datasource: Source
    gridPos: GridPos
    targets: list[Target]
    fieldConfig: FieldConfig
    options: dict


class Variable(BaseModel):
    type: Literal["query", "adhoc", "constant", "datasource", "interval", "textbox", "custom", "system"]
    name: str
    hide: Literal[0, 1, 2]
    query: str | dict


class Dashboard(Part):
    id: None
    uid: str
    title: str
    description: str
    tags: list[str]
    timezone: str
    editable: bool
    graphTooltip: Literal[0, 1, 2]
    schemaVersion: Annotated[int, Ge(36)]
    version: int
    refresh: str
    time: dict[Literal["from", "to"], str]
    timepicker: dict
    links: list
    annotations: dict[Literal["list"], list]
    templating: dict[Literal["list"], list[Variable]]
    panels: list[Panel]


@pytest.fixture(scope="module")
def dashboard() -> Dashboard:
    return Dashboard.model_validate_json(PATH.read_text())


def test_panels_have_queries_and_units_and_do_not_overlap(dashboard):
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard.panels:
        at = panel.gridPos
        assert panel.targets and panel.fieldConfig.defaults.unit in UNITS and panel.description
        assert [target.refId for target in panel.targets] == list("AB")[: len(panel.targets)]
        assert at.x + at.w <= 24
        for cell in [(x, y) for x in range(at.x, at.x + at.w) for y in range(at.y, at.y + at.h)]:
            assert taken.setdefault(cell, panel.title) == panel.title
    assert len({panel.id for panel in dashboard.panels}) == len(dashboard.panels) > 10


def test_what_shows_the_present_asks_for_no_more(dashboard):
    """Over a range, every phase and every run of the last half hour has a last value."""
    for panel in dashboard.panels:
        assert {(target.instant, target.range) for target in panel.targets} == {
            (panel.type == "stat", panel.type != "stat")
        }, panel.title


def test_what_it_asks_for_is_exported_with_these_labels(dashboard, view):
    exported: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(exposition(view().look()).decode()):
        for sample in family.samples:
            exported.setdefault(sample.name, set()).update(sample.labels)
    expressions = [target.expr for panel in dashboard.panels for target in panel.targets]
    for expression in expressions:
        for name, selector in re.findall(r"(stallmark_\w+)(\{[^}]*\})?", expression):
            assert name in exported, name
            assert set(re.findall(r"(\w+)=~?\"", selector)) <= exported[name], expression
        grouped = {label.strip() for by in re.findall(r"by \(([^)]*)\)", expression) for label in by.split(",")}
        assert grouped <= set.union(*(exported[name] for name in re.findall(r"stallmark_\w+", expression)))
        assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}")
        if re.search(r"_(total|sum|count|bucket)\{", expression):
            assert "rate(" in expression  # a counter by itself says nothing
    asked = json.dumps([variable.query for variable in dashboard.templating["list"]])
    assert set(re.findall(r"stallmark_\w+", asked)) <= set(exported)
    used = set(re.findall(r"\$(\w+)", " ".join(expressions))) - {"__rate_interval"}
    assert used | {"datasource"} == {variable.name for variable in dashboard.templating["list"]}
