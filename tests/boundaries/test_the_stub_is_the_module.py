"""`_native.pyi` says exactly what the compiled module offers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import velodrome

STUB = Path(velodrome.__file__).with_name("_native.pyi")


@pytest.mark.integration
def test_the_stub_is_the_module(tmp_path: Path) -> None:
    # In a package of its own: beside it, mypy would check the whole of velodrome first.
    package = tmp_path / "velodrome"
    package.mkdir()
    (package / "__init__.pyi").touch()
    (package / STUB.name).write_text(STUB.read_text())
    command = [sys.executable, "-m", "mypy.stubtest", "velodrome._native"]
    environment = {**os.environ, "MYPYPATH": str(tmp_path)}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "no issues found in 1 module" in result.stdout
