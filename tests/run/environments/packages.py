"""Packages made by a test, in a folder that uv takes for its index: no network is needed."""

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

BUILDING = """\
import base64, hashlib, json, os, zipfile

{first}

def build_wheel(folder, config=None, metadata=None):
    name = "{name}-{version}-py3-none-any.whl"
    info = "{name}-{version}.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("{name}.py", "")
        wheel.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        wheel.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "/RECORD", "")
    return name
"""


def of_index(folder: Path) -> dict[str, str]:
    """Return the variables by which uv knows this folder and nothing else, with a cache of its own."""
    folder.mkdir(exist_ok=True)
    settings = folder / "uv.toml"
    settings.write_text(f'no-index = true\nfind-links = ["{folder}"]\n')
    return {"UV_CONFIG_FILE": str(settings), "UV_CACHE_DIR": str(folder / "uv")}


def wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str], needs: tuple[str, ...] = ()
) -> None:
    """Put a wheel into the index."""
    info = f"{name}-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {need}\n" for need in needs)
    every = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    folder.mkdir(exist_ok=True)
    lines = []
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as written:
        for path, text in every.items():
            written.writestr(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(text)}\n")
        written.writestr(f"{info}/RECORD", "".join([*lines, f"{info}/RECORD,,\n"]))


def sdist(folder: Path, name: str, version: str, first: str) -> None:
    """Put a source package into the index, whose build code begins with `first`."""
    files = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "building"\nbackend-path = ["."]\n',
        "building.py": BUILDING.format(name=name, version=version, first=first),
    }
    folder.mkdir(exist_ok=True)
    with tarfile.open(folder / f"{name}-{version}.tar.gz", "w:gz") as written:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text.encode())
            written.addfile(entry, io.BytesIO(text.encode()))
