"""Where clients are told to reach each node."""

from __future__ import annotations

from support.handler_fakes import FakeConnection, FakeContext, FakeNode

from walrusmq.broker.node_addresses import NodeAddress, node_addresses


def addresses(node: FakeNode, **connection: str) -> list[NodeAddress]:
    return node_addresses(FakeContext(node, 0, FakeConnection(**connection)))  # type: ignore[arg-type]


def test_our_own_address_follows_the_clients_connection() -> None:
    assert addresses(FakeNode(), local_host="192.168.7.7") == [NodeAddress(1, "192.168.7.7", 9092, None)]


def test_others_are_at_their_listener_of_the_same_name_in_the_order_of_their_ids() -> None:
    node = FakeNode()
    node.join(3, CLIENT=("three", 3000), OTHER=("other", 1))
    node.join(2, "rack", CLIENT=("two", 2000))
    assert addresses(node)[1:] == [NodeAddress(2, "two", 2000, "rack"), NodeAddress(3, "three", 3000, None)]


def test_a_node_that_the_client_cannot_reach_is_left_out() -> None:
    node = FakeNode()
    node.join(2, OTHER=("two", 2000))
    assert [address.node_id for address in addresses(node)] == [1]
    assert [address.node_id for address in addresses(node, listener_name="OTHER")] == [1, 2]
