"""The command line: what it says, on which stream, with which exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from walrusmq import __version__
from walrusmq.broker.settings import SETTINGS
from walrusmq.cli import COMMANDS, main


def command(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """``python -m walrusmq`` in a process of its own, with nothing in its environment but what is given."""
    return subprocess.run(
        [sys.executable, "-m", "walrusmq", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment or {},
        check=False,
    )


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"walrusmq {__version__}\n"


def test_the_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out and one.meaning in out for name, one in COMMANDS.items())
    assert max(map(len, out.splitlines())) <= 100


def test_no_command_is_a_usage_error_that_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "serve" in capsys.readouterr().err


@pytest.mark.parametrize(("word", "advice"), [("serv", "did you mean serve?"), ("zzz", "walrusmq --help")])
def test_an_unknown_command_is_a_usage_error_with_the_nearest(
    word: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word]) == 2
    captured = capsys.readouterr()
    assert advice in captured.err
    assert captured.out == ""


def test_the_module_and_the_command_are_the_same() -> None:
    installed = subprocess.run(
        [str(Path(sys.executable).with_name("walrusmq")), "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert command("--help").stdout == installed.stdout


@pytest.mark.parametrize("name", ["serve", "config"])
def test_each_command_that_takes_settings_lists_every_flag_with_its_meaning(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    out = " ".join(capsys.readouterr().out.split())
    for setting in SETTINGS.values():
        assert f"{setting.flag} " in out
        assert setting.meaning in out
    assert "--data-dir FOLDER " in out
    assert "--ready-file FILE " in out


def test_config_shows_each_setting_with_its_value_and_where_it_came_from(tmp_path: Path) -> None:
    file = tmp_path / "walrus.toml"
    file.write_text("monitor.check.ms = 20\n")
    done = command(
        "config",
        "--config",
        str(file),
        "--num-partitions=3",
        "--log-retention-ms",
        "-1",
        environment={"WALRUS_FSYNC": "never"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in done.stdout.splitlines()}
    assert list(rows) == list(SETTINGS)
    assert rows["num.partitions"] == ["3", "flag --num-partitions"]
    assert rows["log.retention.ms"] == ["-1", "flag --log-retention-ms"]
    assert rows["fsync"] == ["never", "environment WALRUS_FSYNC"]
    assert rows["monitor.check.ms"] == ["20", f"file {file}"]
    assert rows["listen"] == ["127.0.0.1:9092", "default"]
    assert rows["node.id"] == ["(unset)", "default"]


def test_config_as_json_also_has_what_is_allowed() -> None:
    shown = json.loads(command("config", "--json", "--fsync", "never").stdout)
    assert list(shown) == list(SETTINGS)
    assert shown["fsync"]["value"] == "never"
    assert shown["fsync"]["source"] == "flag"
    assert shown["fsync"]["default"] == "batch"
    assert shown["fsync"]["allowed"] == "batch, interval or never"
    assert shown["node.id"]["value"] is None


@pytest.mark.parametrize("name", ["serve", "config"])
@pytest.mark.parametrize(
    ("words", "environment", "code", "told"),
    [
        (["--num-partition", "3"], {}, 2, "did you mean --num-partitions?"),
        (["--port", "9092"], {}, 2, "did you mean --listen?"),
        (["--num", "3"], {}, 2, "there is no setting 'num'"),
        (["--num-partitions"], {}, 2, "expected one argument"),
        (["9092"], {}, 2, "what is '9092'?"),
        (["--num-partitions", "0"], {}, 1, "num.partitions is '0' (flag --num-partitions), but must be"),
        ([], {"WALRUS_FSYNC": "always"}, 1, "fsync is 'always' (environment WALRUS_FSYNC), but must be"),
        ([], {"WALRUS_LISTENER": "1"}, 1, "did you mean WALRUS_LISTEN?"),
        ([], {"WALRUSMQ_LISTEN": "1"}, 1, "did you mean WALRUS_LISTEN?"),
        (["--config", "/nowhere.toml"], {}, 1, "can't read the settings file /nowhere.toml"),
    ],
)
def test_a_mistake_is_one_line_on_stderr(
    name: str, words: list[str], environment: dict[str, str], code: int, told: str
) -> None:
    done = command(name, *words, environment=environment)
    assert done.returncode == code
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
