"""Documents made to take a machine's memory or its time end at a budget, bounded, with exit code 2.

The bombs are read by a process of its own, so that its peak memory is theirs. Times are of the CPU, and the bound is
five times what the slowest bomb takes on a slow machine (1 s): others are at work here, and a bomb that goes off takes
minutes.
"""

import json
import random
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.robustness.reading import read

MOST_S = 5.0
MOST_MB = 400
HEAD = "openapi: 3.0.0\n"
LINE = b'::1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 5\n'
REFUSED = "TooLargeError"
NOTHING = "OpenApiError"


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def posts(schema: object, operations: int = 1, **schemas: object) -> str:
    """Return a document whose operations each have a body of this schema."""
    body = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    paths = {f"/p{number}": {"post": body} for number in range(operations)}
    return json.dumps({"openapi": "3.0.0", "paths": paths, "components": {"schemas": schemas}})


def gets(operations: int, about: dict[str, Any], **more: object) -> str:
    paths = {f"/p{number}/{{id}}": {"get": about} for number in range(operations)}
    return json.dumps({"openapi": "3.0.0", "paths": paths, **more})


def chained(first: str, levels: int, level: Callable[[str], str]) -> str:
    """Return YAML in which each level is made of the one before it."""
    return HEAD + "\n".join(
        [f"a0: &a0 {first}", *(f"a{n}: &a{n} {level(f'*a{n - 1}')}" for n in range(1, levels))]
    )


def nested(levels: int, least: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = {"type": "array", "minItems": least, "items": schema}
    return schema


def fan(kind: str, wide: int, leaf: object) -> str:
    levels = {f"S{n}": {kind: [ref(f"S{n - 1}")] * wide} for n in range(1, 10)}
    return posts(ref("S9"), 500, S0=leaf, **levels)


def packed(piece: bytes, times: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([packer.compress(LINE), *(packer.compress(piece) for _ in range(times)), packer.flush()])


KEYS = [f"k{number}" for number in range(50_000)]
WIDE = {"type": "object", "properties": {key: {"type": "integer"} for key in KEYS}, "required": KEYS}
Q = {"name": "q", "in": "query"}
BOMBS: dict[str, tuple[Callable[[], str | bytes | Path], str]] = {
    # YAML
    "laughs.yaml": (lambda: chained("[" + "x, " * 9 + "x]", 10, lambda inner: f"[{', '.join([inner] * 10)}]"), REFUSED),
    "merges.yaml": (lambda: chained("{a: 1}", 10, lambda inner: f"{{<<: [{', '.join([inner] * 10)}]}}"), REFUSED),
    "chain.yaml": (lambda: chained("[]", 3_000, lambda inner: f"[{inner}]"), NOTHING),
    "texts.yaml": (lambda: f"{HEAD}a: &a {'x' * 100_000}\nb:\n" + "- *a\n" * 10_000, REFUSED),
    "circle.yaml": (lambda: HEAD + "a: &a {b: [*a]}", NOTHING),
    "deep.yaml": (lambda: HEAD + "a: " + "{a: " * 100_000, NOTHING),
    "number.yaml": (lambda: HEAD + "a: " + "1" * 1_000_000, NOTHING),
    "sexagesimal.yaml": (lambda: HEAD + "a: !!int " + "1:" * 300_000 + "1", NOTHING),
    "names.yaml": (lambda: HEAD + "".join(f"? &k{n} '{n}'\n: *k{n}\n" for n in range(20_000)), NOTHING),
    # JSON
    "deep.json": (lambda: '{"openapi": "3.0.0", "x": ' + "[" * 100_000, NOTHING),
    "lists.json": (lambda: '{"openapi": "3.0.0", "x": [' + "[]," * 3_000_000 + "1]}", REFUSED),
    "large.json": (lambda: Path("/dev/zero"), REFUSED),
    "number.json": (lambda: '{"openapi": ' + "1" * 100_000 + "}", NOTHING),
    # Schemas
    "items.json": (lambda: posts(nested(7, 100)), NOTHING),
    "items_of_all.json": (lambda: posts(nested(7, 100), 5_000), REFUSED),
    "length.json": (lambda: posts({"type": "array", "minItems": 100, "items": nested(1, 100) | {
        "items": {"type": "string", "minLength": 10_000}}}, 2_000), REFUSED),
    "lengths.json": (lambda: posts({"type": "string", "minLength": 10**9}), NOTHING),
    "all_of.json": (lambda: fan("allOf", 10, {"type": "integer"}), REFUSED),
    "one_of.json": (lambda: fan("oneOf", 1_000, {"type": "string", "pattern": "(a+)+$"}), REFUSED),
    "wide.json": (lambda: posts(ref("W"), 2_000, W=WIDE), NOTHING),
    "enum.json": (lambda: posts(ref("E"), 5_000, E={"enum": [None] * 200_000 + [1]}), NOTHING),
    "examples.json": (lambda: posts(ref("E"), 5_000, E={"example": ["x" * 90] * 9_000}), REFUSED),
    "circles.json": (lambda: posts(ref("A"), 2_000, A=ref("B"), B=ref("A")), NOTHING),
    "step.json": (lambda: posts({"type": "integer", "minimum": 10**14, "multipleOf": 5e-324}), "1 requests"),
    "braces.json": (lambda: posts({"example": "{" * 900_000}, 3), "3 requests"),
    "no_example.json": (lambda: gets(20_000, {"parameters": [{"name": "id", "in": "path"}]}), NOTHING),
    "many.json": (lambda: gets(30_000, {"parameters": [{"name": "id", "in": "path", "example": 1}]}), "500 requests"),
    "servers.json": (lambda: gets(1_000, {"parameters": [{"name": "id", "in": "path", "example": 1}]}, servers=[
        {"url": "/{x}" * 30_000, "variables": {"x": {"default": "y" * 30_000}}}]), REFUSED),
    "query.json": (lambda: gets(200, {"parameters": [{**Q, "example": "\u00e9" * 20_000}]}), NOTHING),
    # Access logs
    "zeros.log": (lambda: packed(b"\0" * 1_000_000, 100), REFUSED),
    "blank.log": (lambda: packed(b"\n" * 1_000_000, 60), REFUSED),
    "line.log": (lambda: LINE + b"x" * 20_000_000, "1 requests"),
    "no.log": (lambda: Path("/dev/zero"), "AccessLogError"),
    "brackets.log": (lambda: b"[a] " * 5_000_000, "AccessLogError"),
    "deep.log": (lambda: (b'{"a":' * 5_000 + b"\n") * 300, "AccessLogError"),
    # Files that people write
    "dotted.toml": (lambda: ".".join(["a"] * 100_000) + " = 1", REFUSED),
    "hidden.toml": (lambda: "# it's '''\n" + ".".join(["a"] * 100_000) + " = 1 # '''", REFUSED),
    "inline.toml": (lambda: "x = {k = '''a'''', " + ".".join(["b"] * 100_000) + " = '1'}", REFUSED),
    "header.toml": (lambda: f"[{'.'.join(['a'] * 2_000)}]\n" + "x = 1\n" * 50_000, REFUSED),
    "flat.toml": (lambda: "a = [" + "1," * 7_000_000 + "]", REFUSED),
    "deep.toml": (lambda: "a = " + "[" * 50_000, "RequestsFileError"),
    "deep_requests.json": (lambda: "[" * 50_000, "RequestsFileError"),
    "large.toml": (lambda: "#" * 17_000_000, REFUSED),
    "dotted.study": (lambda: ".".join(["a"] * 100_000) + " = 1", REFUSED),
    "large.study": (lambda: "#" * 257_000, REFUSED),
    "tables.study": (lambda: "x = {" + ", ".join(f"a{n} = 1" for n in range(20_000)) + "}", "StudyFileError"),
    "sessions.study": (lambda: "blocks = 1000\ncontestants = [" + ", ".join(
        f'{{stack = "x", name = "n{n}"}}' for n in range(4_000)) + "]\n" + "[[questions]]\nrecipe = 'x'\nloads = [{}]\n"
        * 2_000, "StudyFileError"),
}  # fmt: skip

READER = """
import json, re, sys, time
from pathlib import Path
from tests.robustness.reading import read
folder = Path(sys.argv[1])
for path in sorted(folder.iterdir()):
    began = time.process_time()
    outcome = read(path)
    # Not by getrusage: that counts what the tests' own process had when it started this one.
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1000
    print(json.dumps([path.name, outcome, time.process_time() - began, peak]), flush=True)
"""


def lay(name: str, folder: Path) -> None:
    """Put a bomb into a folder."""
    made = BOMBS[name][0]()
    if isinstance(made, Path):
        (folder / name).symlink_to(made)
    else:
        (folder / name).write_bytes(made if isinstance(made, bytes) else made.encode())


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_every_bomb_ends_within_seconds_in_bounded_memory(tmp_path: Path) -> None:
    for name in BOMBS:
        lay(name, tmp_path)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    ended = subprocess.run(
        [sys.executable, "-c", READER, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        cwd=Path(__file__).parents[2],
    )
    assert ended.returncode == 0, ended.stderr
    outcomes = {name: facts for name, *facts in map(json.loads, ended.stdout.splitlines())}
    assert {name: facts[0] for name, facts in outcomes.items()} == {
        name: wanted for name, (_, wanted) in BOMBS.items()
    }
    longest = max(outcomes, key=lambda name: outcomes[name][1])
    peak = max(facts[2] for facts in outcomes.values())
    print(
        f"{len(BOMBS)} bombs of {size / 1e6:.0f} MB: the longest, {longest}, took {outcomes[longest][1]:.2f} s of the "
        f"CPU; the most memory was {peak:.0f} MB"
    )
    assert outcomes[longest][1] < MOST_S, longest
    assert peak < MOST_MB


@pytest.mark.parametrize(
    ("words", "name", "place"),
    [
        (("requests", "--openapi"), "merges.yaml", "line 8"),
        (("requests", "--methods", "POST", "--openapi"), "all_of.json", "#/paths/~1p"),
        (("requests", "--access-log"), "blank.log", "line "),
        (("requests", "--requests"), "dotted.toml", "line 1"),
    ],
)
def test_a_command_tells_file_place_and_budget_and_ends_with_code_2(
    words: tuple[str, ...], name: str, place: str, tmp_path: Path
) -> None:
    lay(name, tmp_path)
    ended = subprocess.run(
        [sys.executable, "-m", "velodrome", *words, name],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
    )
    assert ended.returncode == 2, ended.stderr
    assert f"{name}, {place}" in ended.stderr
    assert "more than" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


# Documents at random: schemas that repeat, refer to and merge each other.

SMALL = st.integers(0, 4)
NUMBERS = st.sampled_from([0, 1, 2, 10, 99, 100, 101, 10**9, -1, 1e308, 5e-324, 10**4000])


@st.composite
def written(draw: st.DrawFn) -> str:
    """Write a document of YAML: each schema is made of those before it (by alias), or of any (by reference)."""
    many = draw(st.integers(1, 8))

    def other(at: int) -> str:
        by_alias = at > 0 and draw(st.booleans())
        return f"*s{draw(st.integers(0, at - 1))}" if by_alias else (
            f"{{$ref: '#/components/schemas/S{draw(st.integers(0, many))}'}}"
        )  # fmt: skip

    def schema(at: int) -> str:
        kind = draw(st.sampled_from(["array", "object", "all", "leaf", "example", "merge", "alias"]))
        times = draw(st.sampled_from([1, 2, 10, 50]))
        match kind:
            case "array":
                return f"{{type: array, minItems: {draw(NUMBERS)}, items: {other(at)}}}"
            case "object":
                keys = [f"k{number}" for number in range(times)]
                inside = ", ".join(f"{key}: {other(at)}" for key in keys)
                return f"{{type: object, required: [{', '.join(keys)}], properties: {{{inside}}}}}"
            case "all":
                word = draw(st.sampled_from(["allOf", "oneOf", "anyOf", "enum", "examples", "required"]))
                return f"{{{word}: [{', '.join([other(at)] * times)}]}}"
            case "example":
                return f"{{example: [{', '.join([other(at)] * times)}]}}"
            case "merge":
                return f"{{<<: [{', '.join([other(at)] * times)}], type: string, minLength: {draw(NUMBERS)}}}"
            case "alias" if at > 0:
                return f"[{', '.join([other(at)] * times)}]"
        return (
            f"{{type: {draw(st.sampled_from(['integer', 'number', 'string', 'boolean', 'x']))}, "
            f"minimum: {draw(NUMBERS)}, multipleOf: {draw(NUMBERS)}, maxLength: {draw(NUMBERS)}}}"
        )

    schemas = "\n".join(f"    S{at}: &s{at} {schema(at)}" for at in range(many))
    used = [f"*s{draw(st.integers(0, many - 1))}" for _ in range(draw(st.integers(1, 3)))]
    paths = "\n".join(
        f"  /p{number}: {{post: {{requestBody: {{content: {{application/json: {{schema: {alias}}}}}}}}}, "
        f"get: {{parameters: [{{name: q, in: query, required: true, schema: {alias}}}]}}}}"
        for number, alias in enumerate(used)
    )
    return f"{HEAD}components:\n  schemas:\n{schemas}\npaths:\n{paths}\n"


def read_in_time(path: Path) -> None:
    began = time.process_time()
    read(path)
    assert time.process_time() - began < 2 * MOST_S, path.read_bytes()[:10_000]


@settings(suppress_health_check=list(HealthCheck))
@given(written())
def test_any_document_that_repeats_itself_is_read_within_the_budget(tmp_path: Path, text: str) -> None:
    path = tmp_path / "openapi.yaml"
    path.write_text(text)
    read_in_time(path)


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@settings(suppress_health_check=list(HealthCheck), max_examples=3_000)
@given(written())
def test_thousands_of_documents_that_repeat_themselves(tmp_path: Path, text: str) -> None:
    path = tmp_path / "openapi.yaml"
    path.write_text(text)
    read_in_time(path)


SEEDS: dict[str, list[bytes]] = {
    "openapi.yaml": [
        chained("{a: 1}", 5, lambda inner: f"{{<<: [{inner}, {inner}], b: *a0}}").encode(),
        b"""openapi: 3.0.3
info: {title: Shop}
servers: [{url: 'https://{host}/v1', variables: {host: {default: a}}}]
paths:
  /items/{id}:
    parameters: [{$ref: '#/components/parameters/Id'}]
    get: {parameters: [{name: q, in: query, required: true, schema: &q {enum: [red, blue]}}], responses: {200: {}}}
    put: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}}}
components:
  parameters: {Id: {name: id, in: path, required: true, schema: {type: integer, minimum: 7, multipleOf: 2}}}
  schemas:
    Item: &item {type: object, required: [n], properties: {n: {type: array, minItems: 2, items: *q}}}
    More: {<<: *item, allOf: [*item, {$ref: '#/components/schemas/Item'}]}
""",
    ],
    "openapi.json": [posts(nested(2, 3), 2).encode(), posts(ref("A"), A={"oneOf": [ref("B")], "B": 1}).encode()],
    "mix.toml": [b"""[[request]]
name = "order"
weight = 2.5
method = "POST"
path = "/orders/{{random 1..500}}"
headers = { Content-Type = "application/json", "X.Y" = 'z' }
body = '''{"id": "{{uuid}}"}'''
expect-status = 201
"""],
    "mine.study": [b"""blocks = 2
contestants = ["uvicorn", {stack = "gunicorn-sync", workers = 2, python = "3.12", packages = {a = "1.0"}}]
[[questions]]
name = "naps"
loads = [{connections = [1, 2], duration = "1s"}, {rate = "100..500", step = 100, every = "1s"}]
recipe.steps = [{do = "together", steps = [{do = "sleep", ms = 5}]}, {do = "body", size = 84}]
[[claims]]
name = "S1"
says = "so"
checks = [{metric = "throughput_rps", of = "naps/uvicorn", at_least = 2}]
"""],
    "access.log": [LINE * 3 + b'{"ts": 1646861401.5, "request": {"method": "GET", "uri": "/a?b=1"}, "status": 200}\n'
                   + b'INFO:     127.0.0.1:54321 - "GET /cart?id=7 HTTP/1.1" 200 OK\n', packed(LINE, 3)],
}  # fmt: skip
PIECES = b"{ } [ ] , : ' \" \\ # .. | & * &a *a <<:_ !!int_ ?_ - NaN null {{ }} $ref 1e400 \x00 \xff".split()
PIECES += [b"\n", b" ", b"1" * 5_000, b"- " * 300]


def mutated(seeds: list[bytes], chance: random.Random) -> bytes:
    """Return one of them with some pieces of it cut out, written twice, written elsewhere, or something put in."""
    found = bytearray(chance.choice(seeds))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(found) + 1)
        size = chance.choice((1, 1, 2, 8, 40))
        match chance.randrange(5):
            case 0:
                del found[at : at + size]
            case 1:
                found[at:at] = chance.choice(PIECES)
            case 2:
                found[at:at] = found[at : at + size] * chance.choice((1, 2, 50))
            case 3 if at < len(found):
                found[at] = chance.randrange(256)
            case 4:
                other = chance.choice(seeds)
                start = chance.randrange(len(other) + 1)
                found[at : at + size] = other[start : start + size]
    return bytes(found)


def fuzzed(name: str, times: int, folder: Path) -> Iterator[str]:
    chance = random.Random(f"{name} {times}")
    path = folder / name
    for _ in range(times):
        path.write_bytes(mutated(SEEDS[name], chance))
        yield read(path)


@pytest.mark.parametrize("name", SEEDS)
def test_bytes_that_were_changed_at_random_are_an_answer_or_one_error(name: str, tmp_path: Path) -> None:
    found = list(fuzzed(name, 250, tmp_path))
    print(f"{name}: {len(found)} files, {sum('Error' in outcome for outcome in found)} refused")
    assert len(set(found)) > 1


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SEEDS)
def test_many_more_bytes_that_were_changed_at_random(name: str, tmp_path: Path) -> None:
    found = list(fuzzed(name, 20_000, tmp_path))
    print(f"{name}: {len(found)} files, {sum('Error' in outcome for outcome in found)} refused")
