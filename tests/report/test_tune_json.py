import json
from dataclasses import replace

import jsonschema
from tests.report.made_up_tune import recommended

from velodrome.model.quantity import Interval
from velodrome.model.tuning import Goal, HostShare
from velodrome.report import recommendation, schema


def test_the_document_is_json_with_every_candidate() -> None:
    document = json.loads(json.dumps(recommendation.document(recommended()), allow_nan=False))
    jsonschema.validate(document, schema.tune())
    assert document["schema"] == "velodrome/tune/1"
    assert document["ending"] == "settled"
    assert len(document["candidates"]) == 5
    assert document["recommended"]["knobs"] == {"threads": 16, "workers": 2}
    assert document["recommended"]["called"] == "gunicorn · gthread ×2, 16 threads"
    assert set(document["files"]) == {"gunicorn.conf.py", "app.service", "Dockerfile", "nginx.conf"}
    assert document["proof"]["throughput_rps"] == 300.0


def test_the_least_cpu_at_a_rate_obeys_the_schema_too() -> None:
    document = json.loads(json.dumps(recommendation.document(recommended(Goal.CPU)), allow_nan=False))
    jsonschema.validate(document, schema.tune())
    assert document["rate"] == 300.0


def test_hosts_are_in_the_document_and_those_that_differ_in_the_text() -> None:
    hosts = (
        HostShare("eu-1", ("waitress",), 31, final=True, beside_final=None),
        HostShare("eu-2", ("gunicorn-sync",), 12, False, Interval(0.41, 0.5, 0.6), differs=True, apart=True),
        HostShare("eu-3", ("gunicorn-gevent",), 9, False, Interval(0.9, 1.01, 1.1)),
    )
    found = recommended()
    found = replace(found, tuned=replace(found.tuned, hosts=hosts))
    document = json.loads(json.dumps(recommendation.document(found)))
    jsonschema.validate(document, schema.tune())
    assert [(host["host"], host["final"], host["differs"]) for host in document["hosts"]] == [
        ("eu-1", True, False),
        ("eu-2", False, True),
        ("eu-3", False, False),
    ]
    first, second, third = (
        line for line in recommendation.lines(found) if line.strip().startswith(("eu-1", "eu-2", "eu-3"))
    )
    assert "the proof" in first
    assert "0.50 [0.41, 0.60] times what they did on eu-1" in second
    assert "do not count" in second
    assert "[" not in third
