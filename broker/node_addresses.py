"""Where a client reaches each node of the cluster (design.md §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from walrusmq.broker.context import Context


class NodeAddress(NamedTuple):
    """A node as clients are told of it."""

    node_id: int
    host: str
    port: int
    rack: str | None


def node_addresses(context: Context) -> list[NodeAddress]:
    """The nodes, by id, each at its listener of the name by which this client came in.

    Our own address follows the client's connection. A node without such a listener is left out: the client couldn't
    reach it.
    """
    node, connection = context.node, context.connection
    addresses = []
    for node_id, registered in sorted(node.image.nodes.items()):
        if node_id == node.node_id:
            address: tuple[str, int] | None = node.advertised_address(connection)
        else:
            address = registered.listeners.get(connection.listener_name)
        if address is not None:
            addresses.append(NodeAddress(node_id, address[0], address[1], registered.rack))
    return addresses
