import struct

import pytest
from construct import Construct

from walrusmq.protocol.compiler import Run, Source, format_character, least_bytes
from walrusmq.protocol.layout import layout
from walrusmq.protocol.messages.produce import ProduceRequest
from walrusmq.protocol.primitives import Array, Int16, Int64, String, Uuid, Uvarint


def test_source_is_indented_by_blocks_and_runs_with_its_constants() -> None:
    source = Source()
    with source.block("def answer(flag):"):
        with source.block("if flag:"):
            source.line(f"return {source.constant('value', ('a', 'tuple'))}")
        source.line(f"return {source.constant('nothing', None)}")
    answer = source.function("answer", "a test")
    assert (answer(True), answer(False)) == (("a", "tuple"), None)


def test_an_object_has_one_name_and_two_objects_have_two() -> None:
    source, first, second = Source(), object(), object()
    assert source.constant("x", first) == source.constant("x", first)
    assert source.constant("x", first) != source.constant("x", second)
    assert source.fresh("m") != source.fresh("m")


def test_structs_are_made_once_for_a_format() -> None:
    source = Source()
    name = source.struct_method("pack", "h?")
    assert source.struct_method("pack", "h?") == name
    assert source.namespace[name](1, True) == struct.pack(">h?", 1, True)


def test_a_run_gathers_formats_and_is_empty_once_taken() -> None:
    run = Run()
    run.add("h", "a")
    run.add("x")
    assert run.take() == ("hx", ["a"])
    assert run.take() == ("", [])


def test_the_least_size_of_a_construct_is_known() -> None:
    assert [least_bytes(each) for each in (Int16, Int64, String, Uuid, Array(Int16), Uvarint)] == [2, 8, 2, 16, 4, 1]
    assert least_bytes(layout(ProduceRequest, 3)) == 2 + 2 + 4 + 4
    assert least_bytes(layout(ProduceRequest, 9)) == 1 + 2 + 4 + 1 + 1
    with pytest.raises(TypeError, match="no code can be made"):
        least_bytes(Construct())


def test_a_number_has_its_format_character() -> None:
    assert [format_character(each) for each in (Int16, Int64)] == ["h", "q"]
