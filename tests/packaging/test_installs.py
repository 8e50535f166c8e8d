"""Each way to install gives a working command in an empty environment, beside a user's modules of the same names."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from support.broker_process import BrokerProcess

ROOT = Path(__file__).parents[2]
PARTS = ("walrusmq", "broker", "consensus", "segments", "metrics", "protocol", "pyproject.toml", "README.md", "LICENSE")
FOLDER_NAMES = ("broker", "consensus", "segments", "metrics", "protocol")
LEFTOVERS = shutil.ignore_patterns("__pycache__", "*.egg-info")
INSTALL_TIMEOUT_S = 240

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def run(*command: str | Path, cwd: Path) -> None:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a release is made from, without anything that earlier builds left."""
    source = tmp_path_factory.mktemp("source")
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=LEFTOVERS)
        else:
            shutil.copy(ROOT / name, source / name)
    return source


@pytest.fixture(scope="session")
def sdist(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "build", "--sdist", "--outdir", out, source, cwd=out)
    return next(out.glob("*.tar.gz"))


@pytest.fixture(scope="session")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made straight from the sources, not by way of the sdist."""
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", out, source, cwd=out)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="session")
def wheel_of_sdist(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel-of-sdist")
    unpacked = tmp_path_factory.mktemp("unpacked")
    shutil.unpack_archive(sdist, unpacked)
    run(sys.executable, "-m", "build", "--wheel", "--outdir", out, next(unpacked.iterdir()), cwd=out)
    return next(out.glob("*.whl"))


def install(where: Path, *what: str | Path) -> Path:
    """Install into a new, empty environment; returns its bin folder."""
    venv.create(where, with_pip=False)
    python = where / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *what, cwd=where)
    return python.parent


def check_works(binaries: Path, workplace: Path) -> None:
    """Serve from a folder that has modules of its own under each of our folders' names."""
    workplace.mkdir()
    for name in FOLDER_NAMES:
        (workplace / f"{name}.py").write_text("IS_THE_USERS_OWN = True\n")
    names = ", ".join(FOLDER_NAMES)
    program = f"import {names}, walrusmq.broker.node\nassert all(m.IS_THE_USERS_OWN for m in ({names}))"
    run(binaries / "python", "-c", program, cwd=workplace)
    broker = BrokerProcess(workplace, command=[str(binaries / "walrusmq")]).start()
    try:
        assert broker.page("/readyz") == "ready\n"
        assert broker.metric("walrus_build_info") == 1
    finally:
        assert broker.stop() == 0


def test_the_wheel_works(wheel: Path, tmp_path: Path) -> None:
    check_works(install(tmp_path / "venv", wheel), tmp_path / "work")


def test_the_sdist_works(sdist: Path, tmp_path: Path) -> None:
    check_works(install(tmp_path / "venv", sdist), tmp_path / "work")


def test_the_wheel_made_from_the_sdist_works(wheel_of_sdist: Path, tmp_path: Path) -> None:
    check_works(install(tmp_path / "venv", wheel_of_sdist), tmp_path / "work")


def test_an_editable_install_works(source: Path, tmp_path: Path) -> None:
    check_works(install(tmp_path / "venv", "--editable", source), tmp_path / "work")


def test_both_wheels_hold_the_same_files(wheel: Path, wheel_of_sdist: Path) -> None:
    from zipfile import ZipFile

    names = [
        sorted(name for name in ZipFile(each).namelist() if ".dist-info/" not in name)
        for each in (wheel, wheel_of_sdist)
    ]
    assert names[0] == names[1]
    assert "walrusmq/py.typed" in names[0]
    assert {name.split("/")[0] for name in names[0]} == {"walrusmq"}
