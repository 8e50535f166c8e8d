import subprocess
import sys

import pytest

from walrusmq.protocol.messages import API_BY_KEY, MESSAGES_BY_NAME, Api
from walrusmq.protocol.schema import schema_of

HEAVY = ("asyncio", "dataclasses", "uuid", "email", "ssl", "json", "hypothesis", "prometheus_client", "lz4", "cramjam")


@pytest.mark.parametrize("api", API_BY_KEY.values(), ids=lambda api: api.name)
def test_an_api_has_the_key_and_the_stable_versions_of_its_messages(api: Api) -> None:
    for cls in (api.request, api.response):
        schema = schema_of(cls)
        assert schema.api_key == api.key
        stable = [version for version in schema.versions if version not in schema.unstable]
        assert stable == list(range(api.min_version, api.max_version + 1))


def test_only_produce_is_advertised_from_a_version_that_nobody_could_use() -> None:
    advertised = {api.name: api.advertised_min_version for api in API_BY_KEY.values()}
    assert advertised == {**{api.name: api.min_version for api in API_BY_KEY.values()}, "Produce": 0}


def loaded_by(program: str) -> set[str]:
    """The modules that a program loads beyond construct."""
    whole = f"import sys, construct; before = set(sys.modules); {program}; print(*(set(sys.modules) - before))"
    return set(subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True).stdout.split())


def test_the_apis_load_nothing_heavy_beyond_construct() -> None:
    loaded = loaded_by("import walrusmq.protocol.frames")
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)
    assert "walrusmq.protocol.decoder_compiler" not in loaded, "compilers are loaded at the first use of a codec"


def test_a_family_of_messages_is_loaded_when_it_is_first_asked_for() -> None:
    program = "from walrusmq.protocol.messages import API_BY_KEY; API_BY_KEY[3].request"
    families = {name for name in loaded_by(program) if name.startswith("walrusmq.protocol.messages.")}
    assert families == {"walrusmq.protocol.messages.metadata"}


def test_other_messages_are_found_by_their_names() -> None:
    assert {name: cls.__name__ for name, cls in MESSAGES_BY_NAME.items()} == {name: name for name in MESSAGES_BY_NAME}
    assert "GroupMetadataKey" in MESSAGES_BY_NAME
    assert "ProduceRequest" not in MESSAGES_BY_NAME
    assert len(MESSAGES_BY_NAME) == len(list(MESSAGES_BY_NAME))
