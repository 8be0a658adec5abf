"""A file of environment variables: what is read of it, and what is refused without telling a value."""

from pathlib import Path

import pytest

from velodrome.model.errors import EnvFileError, HeaderFileError
from velodrome.plan import surroundings
from velodrome.plan.requests import lines


def test_what_dotenv_files_have_is_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "\ufeff# of the shop\r\n\r\nNAME=corner shop  # not this\nexport A='as $it \"stands\" # here' # but this\n"
        'B="two\nlines\\n\\t\\"and\\" \\$x"\n  C = spaced \nEMPTY=\nHOME\nHASH=a#b\nURL=http://a/?b=c&d=e=f\nLAST="x"',
        encoding="utf-8",
    )
    assert surroundings.read_env_file(tmp_path / ".env") == (
        "NAME=corner shop",
        'A=as $it "stands" # here',
        'B=two\nlines\n\t"and" $x',
        "C=spaced",
        "EMPTY=",
        "HOME",
        "HASH=a#b",
        "URL=http://a/?b=c&d=e=f",
        "LAST=x",
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("A=1\nB='s3cret", 2),
        ("A=1\n\n=s3cret", 3),
        ("s3cret pass", 1),
        ('A="s3cret" more', 1),
        ("A=s3c\0ret", 1),
    ],
)
def test_what_is_none_is_refused_by_its_line(text: str, line: int, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(text)
    with pytest.raises(EnvFileError, match=f"line {line}: ") as refused:
        surroundings.read_env_file(tmp_path / ".env")
    assert "s3c" not in str(refused.value) or text.startswith("s3cret")
    assert refused.value.exit_code == 2


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvFileError, match="No such file"):
        surroundings.read_env_file(tmp_path / ".env")
    (tmp_path / ".env").write_bytes(b"A=\xff\xfe")
    with pytest.raises(EnvFileError, match="not text"):
        surroundings.read_env_file(tmp_path / ".env")


def test_headers_stand_in_a_file_one_a_line(tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_text("# of the shop\n\nAuthorization: Bearer a:b\r\n  X-Api-Key:k \n")
    assert lines.read_headers(lines.lines_of(file)) == (("Authorization", "Bearer a:b"), ("X-Api-Key", "k"))
    file.write_text("Host: shop\ns3cret\n")
    with pytest.raises(HeaderFileError, match="line 2: ") as refused:
        lines.lines_of(file)
    assert "s3cret" not in str(refused.value)
