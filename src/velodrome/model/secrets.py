"""What must not be written down: secrets, known by their values, and `mask`, which takes them out of any text.

    secrets.of_variable("DATABASE_URL", "postgres://shop:hunter22@db/shop")
    secrets.mask("cannot connect to postgres://shop:hunter22@db")    -> "cannot connect to postgres://•••@db"

A secret is known by the name it stands under (`PASSWORD`, `X-Api-Key`, `?access_token=`), by its shape (a URL with
credentials, long and random), or because its user marked that name (`--secret NAME`). Whole values are replaced,
wherever they stand, as they are and percent-encoded, in base64 (also as a part of something longer, such as
`user:password`), and escaped as JSON, Python and HTML escape. Besides, credentials in URLs and secret parameters of
queries are taken out of every text, whether their values are known or not.

A value of fewer than SHORTEST characters, a number of fewer than LONGEST_NUMBER digits and the path of a file are no
secrets unless they are marked: to mask them would spoil figures and words that merely look alike.

The registry belongs to the process: what an app is given is known to whatever writes. Pure, and nothing is imported at
the top: `velodrome load` has no time for it before its first request.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import Any, TypeVar

    T = TypeVar("T")

MARK = "•••"
"""In the place of a value."""
SHORTEST = 6
"""Characters of a value that is taken for a secret although nobody marked it."""
LONGEST_NUMBER = 12
"""Digits from which on a number is taken for a secret: fewer are ports, amounts and dates."""
ALONE = 8
"""Characters below which a value is masked where it stands alone, and not as a part of a word."""
LONG, LONG_HEX = 20, 32
"""Characters from which on what looks drawn at random is a secret under whatever name."""
RANDOM_BITS, HEX_BITS = 3.4, 2.8
"""Entropy of such a value, in bits per character of its own letters; words and paths have less, or no digits."""
MOST_NAMES = 10_000
TELLING = 4
"""Characters of a secret at the end of a text that was cut off there: fewer tell nothing."""

WORDS = (
    *("PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIAL", "COOKIE"),
    *("APIKEY", "PRIVATE", "SIGNATURE", "AUTHORIZATION", "ACCESSKEY", "SESSIONID", "CONNECTIONSTRING"),
)
"""What a secret's name has in it, anywhere."""
PARTS = frozenset(
    ("KEY", "KEYS", "AUTH", "DSN", "PASS", "PWD", "PW", "SIG", "JWT", "BEARER", "CSRF", "XSRF", "SALT", "OTP")
)
"""What a secret's name has as a part of its own: `SENTRY_DSN`, `apiKey`, `X-Auth`."""
HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})
"""Headers that carry nothing else."""
ORDINARY = frozenset(
    (
        *("host", "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control"),
        *("content-encoding", "content-language", "content-type", "forwarded", "origin", "pragma", "range"),
        *("referer", "te", "traceparent", "user-agent", "via", "x-forwarded-for", "x-forwarded-host"),
        *("x-forwarded-port", "x-forwarded-proto", "x-real-ip", "x-requested-with"),
    )
)
"""Headers whose values are words of everyday: they are no secrets, but of secret shape."""
PLAIN = frozenset(
    ("true", "false", "none", "null", "disabled", "enabled", "default", "required", "optional", "changeme")
)
"""Settings that stand under secret-looking names and are none."""
FIXED = frozenset(
    (
        *(
            "name",
            "label",
            "study",
            "question",
            "contestant",
            "contestants",
            "candidates",
            "claims",
            "tables",
        ),
        *("interface", "named_interface", "form", "served", "packages", "python", "driver", "driver_version"),
        *("kind", "steps", "limits", "started_at", "velodrome", "fingerprint", "hdr", "hdr_due", "hdr_sent"),
        *("schema", "machine", "series", "severity", "failure", "outcomes"),
        "app",
    )
)
"""Fields of what is stored that are names and figures: what is read again is found by them. An app has its secrets
taken out before it is made (`withheld.py`)."""

_values: dict[str, None] = {}
_marked_names: set[str] = set()
_asked_names: dict[str, tuple[bool, bool]] = {}
"""Names in texts, and what is known of them: an access log has the same few again and again."""
_later: list[Callable[[], None]] = []


class _Made:
    """What is made when it is first needed: the forms of the secrets known so far, and the patterns."""

    forms: _Forms | None = None
    patterns: _Patterns | None = None


def mark(names: Iterable[str]) -> None:
    """Take whatever stands under these names for a secret, however short: `--secret NAME`."""
    _marked_names.update(_bare(name) for name in names)
    _asked_names.clear()


def marked_names() -> tuple[str, ...]:
    """Return the names that are marked, for another process of this run."""
    return tuple(sorted(_marked_names))


def later(what: Callable[[], None]) -> None:
    """Have secrets made known when a text is masked for the first time from now on, and not before."""
    _later.append(what)


def forget() -> None:
    """Know no secrets any more."""
    _values.clear()
    _marked_names.clear()
    _asked_names.clear()
    _later.clear()
    _Made.forms = None


def names_secret(name: str) -> bool:
    """Return whether what stands under a name is a secret."""
    return _is_telling(name) or any(part in PARTS for part in _parts(name))


def is_marked(name: str) -> bool:
    """Return whether its user named it by `--secret`."""
    return _bare(name) in _marked_names


def add(value: str, *, sure: bool = False) -> None:
    """Make a value known; `sure`: also if it is short, a number or a path."""
    value = value.strip()
    if value and value not in _values and MARK not in value and (sure or _is_secret(value)):
        _values[value] = None
        _Made.forms = None


def of_variable(name: str, value: str) -> None:
    """Make known what is secret of an environment variable."""
    if names_secret(name):
        add(value, sure=is_marked(name))
    of_text(value)
    if looks_random(value):
        add(value)


def of_header(name: str, value: str, *, given: bool = False) -> None:
    """Make known what is secret of a header or of gRPC metadata. `given`: by its user for all requests."""
    lower = name.lower()
    if not (
        lower in HEADERS or names_secret(name) or (given and lower not in ORDINARY) or looks_random(value)
    ):
        return
    sure = is_marked(name)
    add(value, sure=sure)
    scheme, blank, rest = value.partition(" ")
    if blank and "authorization" in lower:
        add(rest, sure=sure)
        _of_basic(scheme, rest)
    if "cookie" in lower:
        for pair in value.split(";"):
            key, equals, cookie = pair.partition("=")
            if equals:
                add(cookie.strip().strip('"'), sure=sure or is_marked(key.strip()))


def _of_basic(scheme: str, text: str) -> None:
    import base64  # noqa: PLC0415 - see the module

    if scheme.lower() != "basic":
        return
    try:
        credentials = base64.b64decode(text, validate=True).decode()
    except ValueError:
        return
    add(credentials)
    add(credentials.partition(":")[2])


def of_text(text: str) -> None:
    """Make known what is secret of a URL, a query, a body of JSON or of a form, a connection string, by the names."""
    from urllib.parse import unquote, unquote_plus  # noqa: PLC0415 - see the module

    patterns = _patterns()
    for found in patterns.userinfo.finditer(text):
        user, colon, password = found[1].partition(":")
        if not colon:
            if looks_random(user):
                add(user)
        elif password != user:  # `postgres:postgres` is a default, and a word that stands everywhere
            for part in (found[1], password, unquote(password)):
                add(part)
    for found in patterns.pair.finditer(text):
        if names_secret(found[1]) or is_marked(found[1]):
            for value in _alternatives(found[2]):
                add(value, sure=is_marked(found[1]))
                add(unquote_plus(value), sure=is_marked(found[1]))
    for found in patterns.field.finditer(text):
        if names_secret(found[1]):
            add(_unescape(found[2]), sure=is_marked(found[1]))


def of_request(
    path: str, headers: Iterable[tuple[str, str]], bodies: Iterable[str], given: Collection[str] = ()
) -> None:
    """Make known what is secret of a request; `given` are the names of headers that its user gives all of them."""
    of_text(path)
    names = {name.lower() for name in given}
    for name, value in headers:
        of_header(name, value, given=name.lower() in names)
    for body in bodies:
        of_text(body)


def looks_random(value: str) -> bool:
    """Return whether a value is long and looks drawn at random: no words, no path, no version, no date."""
    if not LONG <= len(value) <= 4096 or _is_path(value) or not _patterns().token.fullmatch(value):
        return False
    if _patterns().hexadecimal.fullmatch(value):
        return len(value) >= LONG_HEX and _bits(value) >= HEX_BITS
    # Parts of words (`eu-west-1-production-cluster`) have few digits, and those beside each other.
    letters = any(character.isalpha() for character in value)
    digits = [character.isdigit() for character in value]
    changes = sum(digits[at] != digits[at - 1] for at in range(1, len(digits)))
    mixed = any(character.islower() for character in value) and any(
        character.isupper() for character in value
    )
    return letters and changes >= (3 if mixed else 6) and _bits(value) >= RANDOM_BITS


def mask(text: str) -> str:
    """Return a text with MARK in the place of every secret in it."""
    if not text:
        return text
    forms = _known_forms()
    for anchor, pattern in forms.every:
        if anchor in text:
            text = text.replace(anchor, MARK) if pattern is None else pattern.sub(MARK, text)
    patterns = _patterns()
    if "://" in text:
        text = patterns.userinfo.sub(_without_userinfo, text)
    if "=" in text:
        text = patterns.pair.sub(_without_parameter, text)
    return _without_cut(text, forms)


def mask_noun(noun: T) -> T:
    """Return plain data (dataclasses, mappings, sequences) with every text in it masked, but for the FIXED fields.

    What holds no secret is the same object as before; numbers and flags are never touched.
    """
    found: Any = _mask_noun(noun)
    return found  # type: ignore[no-any-return]


def environment(of: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment, our own unless given, without variables that hold a secret: for processes that have no use
    for them.
    """
    import os  # noqa: PLC0415 - see the module

    variables = os.environ if of is None else of
    return {name: value for name, value in variables.items() if not _is_secret_variable(name, value)}


def of_environment(variables: Mapping[str, str]) -> None:
    """Make known what is secret of an environment that its user did not name to us: by names, and in URLs."""
    for name, value in variables.items():
        if names_secret(name):
            add(value, sure=is_marked(name))
        if "://" in value:
            of_text(value)


def _is_secret_variable(name: str, value: str) -> bool:
    if name.startswith(("PYTHON", "VELODROME", "XDG_", "LC_")) or name in ("PATH", "HOME", "TMPDIR"):
        return False
    return (names_secret(name) and (is_marked(name) or _is_secret(value))) or mask(value) != value


def _mask_noun(whole: Any) -> Any:
    if isinstance(whole, str):
        # A member of an enumeration is a text too, and one of velodrome's own.
        return mask(whole) if type(whole) is str else whole
    if isinstance(whole, (bool, int, float, bytes)) or whole is None:
        return whole
    if isinstance(whole, (tuple, list)):
        found = [_mask_noun(part) for part in whole]
        same = all(new is old or new == old for new, old in zip(found, whole, strict=True))
        return whole if same else type(whole)(found)
    if isinstance(whole, dict) or hasattr(whole, "items"):
        changed = {
            key: new
            for key, value in whole.items()
            if (key == "name" or key not in FIXED)
            and (new := _mask_noun(value)) is not value
            and new != value
        }
        return {**whole, **changed} if changed else whole
    if hasattr(type(whole), "__dataclass_fields__"):
        from dataclasses import replace  # noqa: PLC0415 - see the module

        changed = {}
        for field in type(whole).__dataclass_fields__.values():
            value = getattr(whole, field.name)
            if (
                field.init
                and field.name not in FIXED
                and (new := _mask_noun(value)) is not value
                and new != value
            ):
                changed[field.name] = new
        return replace(whole, **changed) if changed else whole
    return whole


class _Forms:
    """The secrets in every form in which they are looked for, longest first."""

    def __init__(self, values: Iterable[str]) -> None:
        import re  # noqa: PLC0415 - see the module

        found: dict[str, tuple[str, re.Pattern[str] | None]] = {}
        self.beginnings: list[str] = []
        """Where a text was cut off, a secret may have been."""
        for value in sorted(values, key=len, reverse=True):
            written = _pattern_of(value)
            short = len(value) < ALONE
            if written == value and not short:
                found[value] = value, None
            else:
                whole = rf"(?<!\w){written}(?!\w)" if short else written
                found[whole] = _anchor(value), re.compile(whole)
            if not short:
                self.beginnings += dict.fromkeys(_usual(value))
                for core in _cores(value):
                    run = rf"{_in_base64(core)}(?:[A-Za-z0-9_=-]|%3[Dd])*"
                    found[run] = _anchor(core), re.compile(run)
        self.every = list(found.values())
        """What has to be in a text for it to have a secret in it, and the secret; None: that is all of it."""


def _known_forms() -> _Forms:
    while _later:
        _later.pop()()
    if _Made.forms is None:
        _Made.forms = _Forms(_values)
    return _Made.forms


def _pattern_of(value: str) -> str:
    """Return the pattern of a value as it may be written: percent-encoded, escaped as JSON, Python or HTML escape, each
    letter in its own way."""
    import re  # noqa: PLC0415 - see the module
    from urllib.parse import unquote  # noqa: PLC0415

    decoded = unquote(value)
    texts = [value, decoded] if decoded != value and len(decoded) >= SHORTEST else [value]
    several = "|".join("".join(map(_letter_pattern, text)) for text in texts)
    plain = len(texts) == 1 and several == re.escape(value) == value
    return value if plain else f"(?:{several})"


def _letter_pattern(letter: str) -> str:
    """Return the pattern of a letter; a letter that nobody has to escape stands for itself."""
    import re  # noqa: PLC0415 - see the module
    from html.entities import codepoint2name  # noqa: PLC0415

    if letter.isascii() and (letter.isalnum() or letter in "_-"):
        return letter
    code = ord(letter)
    bytes_of_it = letter.encode("utf-8", "surrogatepass")
    ways = [
        rf"\\{{0,4}}{re.escape(letter)}",
        "".join(rf"%(?:25)*(?i:{byte:02x})" for byte in bytes_of_it),
        rf"&(?:#0*{code}|#[xX]0*(?i:{code:x})"
        + (f"|{codepoint2name[code]}" if code in codepoint2name else "")
        + ");",
        rf"\\{{1,4}}(?i:u{code:04x}|x{code:02x}|U{code:08x})",
    ]
    if code > 0xFFFF:
        units = letter.encode("utf-16-be", "surrogatepass").hex()
        ways.append(rf"\\{{1,4}}(?i:u{units[:4]})\\{{1,4}}(?i:u{units[4:]})")
    if letter in "\n\t\r":
        ways.append(rf"\\{{1,4}}{ {chr(10): 'n', chr(9): 't', chr(13): 'r'}[letter] }")
    if letter == " ":
        ways.append(r"\+")
    return f"(?:{'|'.join(ways)})"


def _anchor(value: str) -> str:
    """Return what of a value is written one way only: a text without it is not looked at any closer."""
    return max(_patterns().literal.findall(value), key=len, default="")


def _usual(value: str) -> Iterator[str]:
    """Yield a value as it is usually written, to be known by its beginning."""
    import json  # noqa: PLC0415 - see the module
    from urllib.parse import quote, quote_plus  # noqa: PLC0415

    yield from (value, quote(value, safe=""), quote_plus(value), quote(value))
    yield from (json.dumps(value)[1:-1], repr(value)[1:-1])


def _cores(value: str) -> Iterator[str]:
    """Yield what base64 makes of a value, wherever in something longer it begins, but for letters that its neighbours
    have a part in."""
    import base64  # noqa: PLC0415 - see the module

    data = value.encode("utf-8", "surrogatepass")
    for before in range(3):
        first = -(-before * 8 // 6)
        whole = (before + len(data)) * 8 // 6
        core = base64.b64encode(b"\0" * before + data).decode()[first:whole]
        if len(core) >= ALONE:
            yield core


def _in_base64(core: str) -> str:
    """Return the pattern of a piece of base64: standard, safe in URLs, percent-encoded."""
    return core.replace("+", "(?:[+-]|%2[Bb])").replace("/", "(?:[/_]|%2[Ff])")


def _without_userinfo(found: re.Match[str]) -> str:
    whole: str = found[0]
    user, colon, password = found[1].partition(":")
    if colon:
        return whole if not password or MARK in whole else whole.replace(found[1], MARK)
    return whole.replace(user, MARK) if looks_random(user) else whole


def _without_parameter(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    # Behind a blank, `key=` may be of a program's text; in a query it is a parameter.
    in_query = found.start() > 0 and found.string[found.start() - 1] in "?&;"
    known = _asked_names.get(name)
    if known is None:
        known = _asked_names[name] = names_secret(name), _is_telling(name)
        if len(_asked_names) > MOST_NAMES:
            _asked_names.clear()
    if MARK in value or not known[0 if in_query else 1]:
        return str(found[0])
    if not (is_marked(name) or any(map(_is_secret, _alternatives(value)))):
        return str(found[0])
    return f"{str(found[0])[: -len(value)]}{MARK}"


def _without_cut(text: str, forms: _Forms) -> str:
    """Return a text without the beginnings of secrets where it was cut off: at its end, or before `…`."""
    ends = [len(text)]
    at = text.find("…")
    while at >= 0:
        ends.append(at)
        at = text.find("…", at + 1)
    for end in sorted(ends, reverse=True):
        for form in forms.beginnings:
            begin = text.find(form[:TELLING], max(0, end - len(form) + 1), end)
            while begin >= 0 and not form.startswith(text[begin:end]):
                begin = text.find(form[:TELLING], begin + 1, end)
            if begin >= 0:
                text = text[:begin] + MARK + text[end:]
                break
    return text


def _is_secret(value: str) -> bool:
    """Return whether a value under a secret name is a secret: not too short, no mere number, setting or path."""
    plain = value.strip()
    if len(plain) < SHORTEST or plain.lower() in PLAIN or _is_number(plain):
        return False
    return not _is_path(plain) and not (plain.startswith("{{") and plain.endswith("}}"))


def _is_number(text: str) -> bool:
    return len(text) < LONGEST_NUMBER and text.replace(".", "").replace("-", "").isdigit()


def _is_path(text: str) -> bool:
    """Return whether a text is the path of a file: names behind slashes, none of which is drawn at random."""
    if not _patterns().path.fullmatch(text):
        return False
    longest = max(text.split("/"), key=len)
    return len(longest) < LONG or not looks_random(longest)


def _bits(text: str) -> float:
    import math  # noqa: PLC0415 - see the module

    counts = [text.count(letter) for letter in set(text)]
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def _is_telling(name: str) -> bool:
    """Return whether a name says by itself that a secret stands under it."""
    bare = _bare(name)
    return bare in _marked_names or any(word in bare for word in WORDS)


def _alternatives(value: str) -> list[str]:
    """Return what may stand in a template's `{{pick a|b}}`, or else the value itself."""
    if value.startswith("{{pick ") and value.endswith("}}"):
        return value[7:-2].split("|")
    return [] if value.startswith("{{") else [value]


def _unescape(text: str) -> str:
    import json  # noqa: PLC0415 - see the module

    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def _bare(name: str) -> str:
    return "".join(letter for letter in name.upper() if letter.isalnum())


def _parts(name: str) -> list[str]:
    """Return the words of a name: `X-Api-Key`, `API_KEY` and `apiKey` all have `KEY`."""
    return [part.upper() for part in _patterns().word.findall(name)]


class _Patterns:
    """Compiled once, when they are first needed."""

    def __init__(self) -> None:
        import re  # noqa: PLC0415 - see the module

        self.userinfo = re.compile(r"://([^/?#\s@'\"<>]{1,512})@")
        self.pair = re.compile(
            r"(?:(?<=[?&;\s'\"])|^)([A-Za-z][\w.\[\]-]{0,63})=((?:\{\{[^{}]*\}\}|[^&;\s'\"<>,)…»])+)"
        )
        """A parameter of a query, a field of a form, a word of a connection string."""
        self.field = re.compile(r'"([^"\\]{1,64})"\s*:\s*"((?:[^"\\]|\\.)*)"')
        """Of a JSON object."""
        self.token = re.compile(r"[A-Za-z0-9+/_.~=:$!@%^*-]+")
        self.hexadecimal = re.compile(r"[0-9a-fA-F-]+")
        self.path = re.compile(r"(?:~|\.{0,2})/[\w.@+ -]*(?:/[\w.@+ -]*)*")
        self.literal = re.compile(r"[A-Za-z0-9]+")
        self.word = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def _patterns() -> _Patterns:
    if _Made.patterns is None:
        _Made.patterns = _Patterns()
    return _Made.patterns
