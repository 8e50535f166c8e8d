"""What handlers make of the cluster image and many clients ask for: kept for as long as the image stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from walrusmq.broker.image import ClusterImage

Value = TypeVar("Value")

#: Whole answers that a node keeps: clients of a kind ask in one version, and an answer about 10,000 partitions has
#: half a megabyte.
MAX_ENCODED_ANSWERS = 16


class ImageCache(Generic[Value]):
    """Values made of an image, by a key that says all else that they depend on. Never to be changed once kept."""

    __slots__ = ("_image", "_index", "_limit", "_values")

    def __init__(self, image: ClusterImage, limit: int | None = None) -> None:
        self._image = image
        self._index = -1
        self._limit = limit
        self._values: dict[Any, Value] = {}

    def get(self, key: Any) -> Value | None:
        """What was kept, if the image hasn't moved on since."""
        if self._index != self._image.applied_index:
            self._index = self._image.applied_index
            self._values.clear()
        return self._values.get(key)

    def keep(self, key: Any, value: Value) -> Value:
        """Keep a value that was made of the image as it is now, in place of the oldest if there are too many."""
        assert self._index == self._image.applied_index, "what was kept of an older image is asked for first"
        if self._limit is not None and len(self._values) >= self._limit:
            del self._values[next(iter(self._values))]
        self._values[key] = value
        return value
