"""Values that are kept as long as the cluster image stays as it is."""

from __future__ import annotations

from walrusmq.broker.commands import RegisterNode
from walrusmq.broker.image import ClusterImage
from walrusmq.broker.image_cache import ImageCache


def test_a_value_is_kept_until_the_image_moves_on() -> None:
    image = ClusterImage()
    cache: ImageCache[str] = ImageCache(image)
    assert cache.get("a") is None
    assert cache.keep("a", "first") == "first"
    assert cache.get("a") == "first"
    image.apply(1, RegisterNode(node_id=1))
    assert cache.get("a") is None
    cache.keep("a", "second")
    assert cache.get("a") == "second"


def test_the_oldest_goes_when_there_are_as_many_as_there_may_be() -> None:
    cache: ImageCache[int] = ImageCache(ClusterImage(), limit=2)
    for key in (1, 2, 3):
        assert cache.get(key) is None
        cache.keep(key, key)
    assert [cache.get(key) for key in (1, 2, 3)] == [None, 2, 3]
