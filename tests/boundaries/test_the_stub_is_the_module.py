"""`_native.pyi` says exactly what the compiled module offers."""

import subprocess
import sys

import pytest


@pytest.mark.integration
def test_the_stub_is_the_module() -> None:
    command = [
        sys.executable,
        "-m",
        "mypy.stubtest",
        "velodrome._native",
        "--mypy-config-file",
        "pyproject.toml",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
