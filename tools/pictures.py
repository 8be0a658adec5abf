"""Makes the pictures of the README in docs/pictures/, and the lines of the README that show them:

    tools/pictures.py                races a small app on this machine and shows that race
    tools/pictures.py RUN            shows a stored run, judged again
    tools/pictures.py --transcript   only the terminal, from the race that is kept as text in docs/three-apps.md

`terminal.svg` is the recording of a terminal, made with the SVG export of rich. `report.png` is the top of the HTML
report of the same race, as Chromium shows it; a race that is kept as text has none.

Let nothing else run on the machine meanwhile. A race whose verdict is «cannot tell» leaves the pictures as they are.
"""

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

TOP = Path(__file__).parents[1]
PICTURES = TOP / "docs" / "pictures"
README = TOP / "README.md"
BEGIN, END = "<!-- pictures: written by tools/pictures.py -->", "<!-- end of pictures -->"
COLUMNS = 112
MOST_LINES = 46
"""Lines of a recording that are kept, from its end: the verdict stands last."""
WIDTH, HEIGHT = 1120, 900
"""Of the picture of the report, in pixels."""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")

SHOP = '''
"""A shop of one page: it adds up a cart and responds with JSON."""

import json

CART = [{"article": f"article {n}", "price": n * 3.5} for n in range(40)]


def application(environ, start_response):
    total = 0.0
    for _ in range(60):
        total = sum(line["price"] for line in CART)
    body = json.dumps({"cart": CART, "total": total}).encode()
    head = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response("200 OK", head)
    return [body]
'''
COMPARE = ("compare", "shop:application", "--request", "GET /cart?id=7", "--rate", "300", "-z", "3s")


def main(words: list[str]) -> None:
    """Make the pictures from a race, a stored run, or the transcript of one."""
    if words == ["--transcript"]:
        keep(*transcript(TOP / "docs" / "three-apps.md"))
        return
    with tempfile.TemporaryDirectory() as folder:
        if words:
            run, typed = Path(words[0]).resolve(), f"velodrome judge {words[0]}"
            shown = recorded(["judge", str(run)], folder)
        else:
            run = Path(folder) / "run"
            typed = "velodrome " + " ".join(f"'{word}'" if " " in word else word for word in COMPARE)
            (Path(folder) / "shop.py").write_text(SHOP, encoding="utf-8")
            shown = recorded([*COMPARE, "--wait", "--out", str(run)], folder)
        if "cannot tell" in shown:
            sys.exit(
                "the race could not tell, so the pictures stay as they are; let nothing else run meanwhile"
            )
        keep(typed, standing(shown.replace(folder, "~/shop").replace(str(TOP), "~/velodrome")))
        photographed(run / "report.html", PICTURES / "report.png")
    show()


def keep(typed: str, lines: list[str]) -> None:
    """Write the picture of the terminal, and show in the README what pictures there are."""
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / "terminal.svg").write_text(drawn(typed, lines), encoding="utf-8")
    show()


def show() -> None:
    """Write the lines of the README that show the pictures there are."""
    titles = {"terminal.svg": "The verdict in the terminal", "report.png": "The top of the HTML report"}
    found = [
        f"![{title}](docs/pictures/{name})\n" for name, title in titles.items() if (PICTURES / name).exists()
    ]
    before, begin, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"README.md has lost its marks: {BEGIN} … {END}")
    README.write_text(f"{before}{BEGIN}\n" + "\n".join(found) + f"{END}{after}", encoding="utf-8")


def recorded(words: list[str], folder: str) -> str:
    """Run a command of velodrome on a terminal of its own and return all that it printed, with its colours."""
    printed = bytearray()

    def read(terminal: int) -> bytes:
        printed.extend(data := os.read(terminal, 1 << 16))
        return data

    os.environ |= {"COLUMNS": str(COLUMNS), "LINES": "60", "TERM": "xterm-256color"}
    os.environ.pop("NO_COLOR", None)
    os.chdir(folder)
    code = os.waitstatus_to_exitcode(pty.spawn([sys.executable, "-m", "velodrome", *words], read))
    os.chdir(TOP)
    if code:
        sys.exit(f"velodrome {' '.join(words)} ended with exit code {code}")
    return printed.decode("utf-8", "replace")


def standing(shown: str) -> list[str]:
    """Return the lines that stand on a terminal after it moved up and erased, as a live table makes it do."""
    lines, at = [""], 0
    for piece in re.findall(r"\x1b\[\d*A|\x1b\[2K|\x1b\[[\d;]*m|\x1b\[\?\d+[hl]|\n|[^\x1b\r\n]+", shown):
        if piece == "\n":
            at += 1
            if at == len(lines):
                lines.append("")
        elif piece.startswith("\x1b[") and piece.endswith("A"):
            at = max(0, at - int(piece[2:-1] or 1))
        elif piece == "\x1b[2K":
            lines[at] = ""
        elif not piece.startswith("\x1b[?"):
            lines[at] += piece
    return lines


def transcript(page: Path) -> tuple[str, list[str]]:
    """Return the command of the first transcript of a page, and what it printed after its progress."""
    found = re.search(r"```\n\$ (.*?)\n(.*?)\nexit 0", page.read_text(encoding="utf-8"), re.DOTALL)
    if found is None:
        sys.exit(f"{page} holds no transcript")
    return found[1], [line for line in found[2].split("\n") if not re.match(r"\[ ?\d+/\d+\]", line)]


def drawn(typed: str, lines: list[str]) -> str:
    """Return as SVG what stands on a terminal: the command, and the end of what it printed."""
    console = Console(
        record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Text.assemble(("$ ", "green"), (typed, "bold")))
    for line in lines[-MOST_LINES:]:
        console.print(Text.from_ansi(line), no_wrap=False, overflow="fold")
    return console.export_svg(title="velodrome", unique_id="terminal")


def photographed(page: Path, picture: Path) -> None:
    """Write the top of a page as Chromium shows it."""
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        sys.exit("no Chromium on PATH: apt-get install chromium")
    options = ("--headless", "--no-sandbox", "--hide-scrollbars", "--force-color-profile=srgb")
    size = f"--window-size={WIDTH},{HEIGHT}"
    subprocess.run(
        [chromium, *options, size, f"--screenshot={picture}", page.as_uri()], check=True, capture_output=True
    )


if __name__ == "__main__":
    main(sys.argv[1:])
