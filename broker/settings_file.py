"""A TOML file of settings: the keys are the dotted names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

from walrusmq.broker.setting_names import SettingError


def read_settings_file(path: str) -> list[tuple[str, str]]:
    """Names and values of a file, in its order, the values as text. Raises :class:`SettingError`.

    ``num.partitions = 3``, ``"num.partitions" = 3`` and ``[num] partitions = 3`` are the same to TOML and to us.
    """
    try:
        with open(path, "rb") as stream:
            tree = tomllib.load(stream)
    except OSError as error:
        raise SettingError(f"can't read the settings file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingError(f"the settings file {path} is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        # `fsync` and `fsync.interval.ms` can't both be bare keys: to TOML the first says that fsync is no table.
        raise SettingError(
            f"the settings file {path} is not valid TOML: {error} "
            f'(a key that begins with another key needs quotes: "fsync.interval.ms" = 500)'
        ) from error
    return list(_flat(tree, "", path))


def _flat(tree: dict[str, object], prefix: str, path: str) -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        name = prefix + key
        match value:
            case dict():
                yield from _flat(value, name + ".", path)
            case bool():
                yield name, "true" if value else "false"
            case int() | float() | str():
                yield name, str(value)
            case _:
                raise SettingError(f"{name} is {value!r} (file {path}), but must be text, a number, true or false")
