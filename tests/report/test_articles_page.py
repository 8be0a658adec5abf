"""The page of the published comparisons is what its tool makes of the verdicts kept beside it."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from tests.report import made_up
from tests.report.made_up_claims import with_claims

from velodrome.model import results
from velodrome.model.results import Header
from velodrome.report import json

TOP = Path(__file__).parents[2]
KEPT = TOP / "docs/articles"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("articles_page", TOP / "tools/articles_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_run_is_kept_small_and_makes_a_page(tool: ModuleType, tmp_path: Path) -> None:
    run = tmp_path / "run/io-models"
    run.mkdir(parents=True)
    json.write(run / "verdict.json", replace(with_claims(), study="articles/io-models"))
    header = Header(made_up.STUDY, 1, dict(made_up.MACHINE), "0.1.0", "2026-11-20T12:00:00+00:00")
    lines = [results.dump_header(header), *map(results.dump, made_up.results())]
    (run / "results.jsonl").write_text("".join(f"{line}\n" for line in lines))
    tool.keep(tmp_path / "run", tmp_path / "kept")
    kept = tool.stored(tmp_path / "kept")
    assert kept["io-models"].answers == ()
    assert kept["io-models"].claims == with_claims().claims
    text = tool.page(kept)
    assert "In all: 1 holds, 1 does not hold here, 2 undecided." in text
    assert "`velodrome run articles/io-models --quick`" in text
    assert "| throughput, gevent over sync | 2.63× | 2.6× \\[2.4, 2.9\\] | holds |" in text
    assert "- **canary**: No marker was lost &lt;b&gt;." in text
    assert "uvicorn " in text


def test_a_folder_without_a_run_is_reported(tool: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="holds no verdict"):
        tool.keep(tmp_path, tmp_path / "kept")


def test_the_run_of_a_single_study_replaces_that_study_alone(tool: ModuleType, tmp_path: Path) -> None:
    run, kept = tmp_path / "run", tmp_path / "kept"
    run.mkdir()
    kept.mkdir()
    other = replace(with_claims(), study="articles/grpc-concurrency")
    json.write(kept / "grpc-concurrency.json", other)
    json.write(run / "verdict.json", replace(with_claims(), study="articles/io-models"))
    header = Header(made_up.STUDY, 1, dict(made_up.MACHINE), "0.1.0", "2026-11-20T12:00:00+00:00")
    (run / "results.jsonl").write_text(f"{results.dump_header(header)}\n")
    tool.keep(run, kept)
    assert list(tool.stored(kept)) == ["grpc-concurrency", "io-models"]
    assert tool.stored(kept)["grpc-concurrency"] == other


@pytest.mark.skipif(
    not KEPT.is_dir(), reason="no full run is kept in docs/articles yet: tools/articles_page.py RUN"
)
def test_the_page_is_made_of_what_is_kept(tool: ModuleType) -> None:
    assert (TOP / "docs/articles.md").read_text() == tool.page(tool.stored(KEPT))
