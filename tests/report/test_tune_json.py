import json

import jsonschema
from tests.report.made_up_tune import recommended

from velodrome.model.tuning import Goal
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
