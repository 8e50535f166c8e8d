"""Settings: one rule for every spelling, and one clear message for whatever can't be taken."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.broker.setting_names import OTHER_NAMES, SettingError, Source, UnknownSetting
from walrusmq.broker.setting_types import Address, AddressText, Integer
from walrusmq.broker.settings import SETTINGS, Settings
from walrusmq.broker.unsupported_settings import UNSUPPORTED_SETTINGS

#: A second value for each kind of setting, unlike any default.
OTHER_TEXTS = {
    "data.dir": "/elsewhere",
    "cluster.id": "MkU3OEVBNTcwNTJENDM2Qg",
    "broker.rack": "rack-7",
    "listen": "0.0.0.0:19092",
    "advertised.listener": "broker.example.com:29092",
    "internal.listen": "[::1]:19093",
    "http.listen": "127.0.0.1:0",
    "auto.create.topics.enable": "false",
    "compression.type": "lz4",
    "log.cleanup.policy": "compact,delete",
    "log.cleaner.min.cleanable.ratio": "0.25",
    "log.message.timestamp.type": "LogAppendTime",
    "fsync": "never",
    "log.level": "debug",
    "ready.file": "/run/ready.json",
}
NUMBER = "1048577"


def other_text(name: str) -> str:
    return OTHER_TEXTS.get(name, "3" if name == "default.replication.factor" else NUMBER)


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_is_taken_from_its_flag_its_variable_and_its_file_key(name: str, tmp_path: Path) -> None:
    text = other_text(name)
    file = tmp_path / "walrus.toml"
    file.write_text(f'{name} = "{text}"\n')
    ways = {
        Source.FLAG: Settings.load({name: text}),
        Source.ENVIRONMENT: Settings.load({}, {SETTINGS[name].variable: text}),
        Source.FILE: Settings.load({}, {}, str(file)),
    }
    for source, settings in ways.items():
        assert settings.text(name) == text
        assert settings.source(name) is source
        assert settings.is_given(name)


@pytest.mark.parametrize("name", SETTINGS)
def test_each_default_is_itself_allowed(name: str) -> None:
    setting = SETTINGS[name]
    text = setting.render(setting.default)
    assert text is None or setting.type.parse(text) == setting.default
    assert Settings().source(name) is Source.DEFAULT


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_says_what_it_means_and_what_is_allowed(name: str) -> None:
    setting = SETTINGS[name]
    assert setting.meaning.endswith(".")
    assert setting.type.allowed
    assert setting.flag == "--" + name.replace(".", "-")
    assert setting.variable == "WALRUS_" + name.upper().replace(".", "_")


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "walrus.toml"
    file.write_text("num.partitions = 2\nmonitor.check.ms = 20\nlog.retention.bytes = 2000\n")
    settings = Settings.load(
        {"num.partitions": "4"},
        {"WALRUS_NUM_PARTITIONS": "3", "WALRUS_MONITOR_CHECK_MS": "30", "WALRUS_CONFIG": str(file), "PATH": "/bin"},
    )
    assert settings.num_partitions == 4
    assert settings.origin("num.partitions") == "flag --num-partitions"
    assert settings.monitor_check_ms == 30
    assert settings.origin("monitor.check.ms") == "environment WALRUS_MONITOR_CHECK_MS"
    assert settings.log_retention_bytes == 2000
    assert settings.origin("log.retention.bytes") == f"file {file}"
    assert settings.origin("listen") == "default"


def test_a_file_that_is_named_by_a_flag_wins_over_the_variable(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("num.partitions = 2\n")
    (tmp_path / "b.toml").write_text("num.partitions = 3\n")
    settings = Settings.load({}, {"WALRUS_CONFIG": str(tmp_path / "a.toml")}, str(tmp_path / "b.toml"))
    assert settings.num_partitions == 3


@pytest.mark.parametrize(
    "content",
    [
        "num.partitions = 3\nauto.create.topics.enable = false",
        '"num.partitions" = 3\n"auto.create.topics.enable" = false',
        "auto.create.topics.enable = false\n[num]\npartitions = 3",
        'num.partitions = "3"\nauto.create.topics.enable = "false"',
    ],
)
def test_a_file_may_use_any_spelling_that_toml_has_for_a_dotted_key(content: str, tmp_path: Path) -> None:
    file = tmp_path / "walrus.toml"
    file.write_text(content)
    settings = Settings.load({}, {}, str(file))
    assert settings.num_partitions == 3
    assert settings.auto_create_topics_enable is False


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("num.partitions = ", "not valid TOML"),
        ('fsync = "never"\nfsync.interval.ms = 5', "needs quotes"),
        ("num.partitions = 1.5", "must be a whole number from 1"),
        ("num.partitions = [1]", "must be text, a number, true or false"),
        ("num.partition = 1", "did you mean num.partitions?"),
        ("num.partitions = 0", "num.partitions is '0' (file"),
        ("\xff", "not"),
    ],
)
def test_a_file_that_cant_be_taken_is_named_with_the_reason(content: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "walrus.toml"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(SettingError) as caught:
        Settings.load({}, {}, str(file))
    assert told in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_file_that_isnt_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="No such file"):
        Settings.load({}, {"WALRUS_CONFIG": str(tmp_path / "none.toml")})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("num.partitions", "0"),
        ("num.partitions", "1_0"),
        ("num.partitions", "٣"),
        ("num.partitions", ""),
        ("message.max.bytes", "1MB"),
        ("message.max.bytes", "2147483648"),
        ("log.retention.ms", "-2"),
        ("auto.create.topics.enable", "yes"),
        ("fsync", "always"),
        ("log.message.timestamp.type", "createtime"),
        ("cluster.id", "short"),
        ("data.dir", " "),
        ("listen", "localhost"),
        ("listen", ":9092"),
        ("listen", "::1:9092"),
        ("listen", "127.0.0.1:65536"),
        ("advertised.listener", "host:0"),
        ("advertised.listener", "9092"),
    ],
)
def test_a_wrong_value_is_refused_with_name_value_origin_and_what_is_allowed(name: str, text: str) -> None:
    with pytest.raises(SettingError) as caught:
        Settings.load({}, {SETTINGS[name].variable: text})
    message = str(caught.value)
    assert name in message
    assert repr(text) in message
    assert SETTINGS[name].variable in message
    assert SETTINGS[name].type.allowed in message


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("WALRUS_NUM_PARTITION", "WALRUS_NUM_PARTITIONS"),
        ("WALRUS_DATADIR", "WALRUS_DATA_DIR"),
        ("WALRUS_LISTENER", "WALRUS_LISTEN"),
        ("WALRUS_PORT", "WALRUS_LISTEN"),
        ("WALRUS_LOG_DIRS", "WALRUS_DATA_DIR"),
        ("WALRUSMQ_DATA_DIR", "WALRUS_DATA_DIR"),
        ("WALRUSMQ_NUM_PARTITION", "WALRUS_NUM_PARTITIONS"),
        ("WALRUSMQ_PORT", "WALRUS_LISTEN"),
        ("WALRUSMQ_CONFIG", "WALRUS_CONFIG"),
    ],
)
def test_an_unknown_variable_of_ours_stops_the_start_and_names_the_nearest(variable: str, nearest: str) -> None:
    with pytest.raises(UnknownSetting, match=f"{variable}.*did you mean {nearest}\\?"):
        Settings.load({}, {variable: "1"})


@pytest.mark.parametrize("variable", ["WALRUSMQ_VERSION", "WALRUSMQ_HOME", "WALRUSES_DATA_DIR"])
def test_variables_of_others_that_begin_much_like_ours_are_passed_over(variable: str) -> None:
    assert not Settings.load({}, {variable: "1"}).sources


def test_a_name_that_others_have_for_a_flag_is_answered_with_ours() -> None:
    with pytest.raises(UnknownSetting, match="did you mean --listen"):
        Settings.load({"port": "9092"})


def test_a_name_unlike_any_points_to_the_list() -> None:
    with pytest.raises(UnknownSetting, match="walrusmq config"):
        Settings.load({"zzz": "1"})


def test_a_file_may_have_a_fraction_where_a_setting_is_one(tmp_path: Path) -> None:
    file = tmp_path / "walrus.toml"
    file.write_text("log.cleaner.min.cleanable.ratio = 0.25")
    assert Settings.load({}, {}, str(file)).log_cleaner_min_cleanable_ratio == 0.25


@pytest.mark.parametrize("name", sorted(UNSUPPORTED_SETTINGS))
def test_a_setting_of_kafkas_without_effect_here_stops_the_start_by_its_name(name: str) -> None:
    assert name not in SETTINGS
    told = f"did you mean --{OTHER_NAMES[name]}".replace(".", "-") if name in OTHER_NAMES else f"Kafka's setting {name}"
    with pytest.raises(UnknownSetting, match=re.escape(told)):
        Settings.load({name: "1"})


def test_settings_that_would_have_no_effect_yet_are_unknown() -> None:
    for name in ("lease.ms", "join", "cluster.secret", "log.cleaner.threads"):
        with pytest.raises(UnknownSetting):
            Settings.load({name: "1"})


def test_what_kubernetes_tells_of_a_service_named_walrusmq_is_no_setting() -> None:
    links = {
        "WALRUSMQ_SERVICE_HOST": "10.0.0.1",
        "WALRUSMQ_SERVICE_PORT": "9092",
        "WALRUSMQ_SERVICE_PORT_LISTEN": "9092",
        "WALRUSMQ_PORT": "tcp://10.0.0.1:9092",
        "WALRUSMQ_PORT_9092_TCP_ADDR": "10.0.0.1",
    }
    assert not Settings.load({}, links).sources


def test_what_kubernetes_tells_of_a_service_named_walrus_is_no_setting() -> None:
    links = {
        "WALRUS_SERVICE_HOST": "10.0.0.1",
        "WALRUS_SERVICE_PORT": "9092",
        "WALRUS_SERVICE_PORT_KAFKA": "9092",
        "WALRUS_PORT": "tcp://10.0.0.1:9092",
        "WALRUS_PORT_9092_TCP": "tcp://10.0.0.1:9092",
        "WALRUS_PORT_9092_TCP_ADDR": "10.0.0.1",
        "WALRUS_0_SERVICE_HOST": "10.0.0.2",
    }
    assert not Settings.load({}, links).sources
    with pytest.raises(UnknownSetting):
        Settings.load({}, {"WALRUS_PORT": "9092"})


def test_batch_and_a_flush_count_contradict_each_other() -> None:
    with pytest.raises(SettingError, match="leave one of the two out"):
        Settings.load({"fsync": "batch", "log.flush.interval.messages": "100"})
    Settings.load({"fsync": "batch", "log.flush.interval.messages": "1"})
    Settings.load({"fsync": "interval", "log.flush.interval.messages": "100"})


def test_two_listeners_cant_share_an_address() -> None:
    with pytest.raises(SettingError, match=r"http\.listen .* and listen .* are both 127\.0\.0\.1:9092"):
        Settings.load({"http.listen": "9092"})
    Settings.load({"http.listen": "0", "listen": "0"})


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("127.0.0.1:9502", ("127.0.0.1", 9502), "127.0.0.1:9502"),
        ("9502", ("127.0.0.1", 9502), "127.0.0.1:9502"),
        ("0", ("127.0.0.1", 0), "127.0.0.1:0"),
        ("my-host_1.example:1", ("my-host_1.example", 1), "my-host_1.example:1"),
        ("[::1]:9092", ("::1", 9092), "[::1]:9092"),
        ("[::]:0", ("::", 0), "[::]:0"),
    ],
)
def test_an_address_is_host_and_port_with_brackets_round_ipv6(text: str, address: tuple[str, int], shown: str) -> None:
    settings = Settings.load({"listen": text})
    assert settings.listen == address
    assert settings.text("listen") == shown


@given(st.text())
def test_any_text_is_an_address_that_shows_itself_or_is_refused(text: str) -> None:
    kind = AddressText(bare_port_host="127.0.0.1")
    try:
        address = kind.parse(text)
    except ValueError:
        return
    assert kind.parse(str(address)) == address
    assert isinstance(address, Address)


@given(st.text(), st.integers(), st.integers())
def test_any_text_is_a_number_within_bounds_or_is_refused(text: str, least: int, most: int) -> None:
    try:
        value = Integer(least, most).parse(text)
    except ValueError:
        return
    assert least <= value <= most


def test_open_files_default_to_half_of_what_the_process_may_open() -> None:
    import resource

    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert Settings().max_open_files == min(soft_limit // 2, 16_384)


def test_importing_the_settings_doesnt_import_what_only_mistakes_and_files_need() -> None:
    code = (
        "import sys; import walrusmq.broker.settings as s; s.Settings.load({'listen': '0'}, {'WALRUS_FSYNC': 'never'});"
    )
    code += "print([name for name in ('difflib', 'tomllib', 'argparse', 'json', 'uuid', 'ssl') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "[]"


def test_what_is_set_at_run_time_wins_and_gives_way_to_what_the_node_was_started_with() -> None:
    settings = Settings.load({"log.roll.ms": "1000"})
    settings.change({"log.roll.ms": "2000", "message.max.bytes": "5"}, {"log.roll.ms": "3000"})
    assert (settings.log_roll_ms, settings.message_max_bytes) == (3000, 5)
    assert settings.is_given("message.max.bytes")
    assert (settings.source("log.roll.ms"), settings.source("message.max.bytes")) == (
        Source.THIS_NODE,
        Source.ALL_NODES,
    )
    assert settings.origin("log.roll.ms") == "set for this node at run time"
    assert settings.value_at_start("log.roll.ms") == 1000
    settings.change({}, {})
    assert (settings.log_roll_ms, settings.message_max_bytes) == (1000, 1048588)
    assert (settings.source("log.roll.ms"), settings.source("message.max.bytes")) == (Source.FLAG, Source.DEFAULT)
    assert not settings.is_given("message.max.bytes")


def test_what_another_version_has_set_at_run_time_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings()
    settings.change({"no.such": "1", "node.id": "7", "log.roll.ms": "x", "log.segment.bytes": "2000000"}, {})
    assert (settings.node_id, settings.log_roll_ms, settings.log_segment_bytes) == (None, 604_800_000, 2_000_000)
    assert [record.args[0] for record in caplog.records if isinstance(record.args, tuple)] == [
        "no.such",
        "node.id",
        "log.roll.ms",
    ]
