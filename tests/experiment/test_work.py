"""The workload of a run in its manifest."""

import json

import pytest
from support.manifests import a_manifest

from stallmark.experiment.work import work_of_loads, work_of_queries
from stallmark.record.manifest.workload import Workload
from stallmark.scenarios.read import read_scenario


@pytest.mark.parametrize(
    ("scenario", "benchmark"), [("server-settings", "TPC-B"), ("demo", "TPC-E"), ("mail", "Jetstress")]
)
def test_a_run_names_the_benchmark_that_its_workload_is_derived_from(scenario: str, benchmark: str):
    read = read_scenario(scenario)
    assert work_of_loads(read, read.variants[0], "postgresql").workload.derived_from == benchmark


def test_a_run_of_queries_and_one_of_streams_name_it_as_well():
    assert work_of_queries(read_scenario("power-memory-storage"), [None]).workload.derived_from == "TPC-H"
    several = read_scenario("htap")
    work = work_of_loads(several, several.variants[1], "postgresql")
    streams = [load.workload for load in work.loads if load.kind == "streams"]
    assert [workload and workload.derived_from for workload in streams] == ["TPC-H"]
    assert work.workload.derived_from is None


def test_a_manifest_without_a_benchmark_has_no_such_key():
    assert "derived_from" not in json.loads(a_manifest(workload=Workload(name="mine")).model_dump_json())["workload"]
