from walrusmq.broker.buffers import LARGEST_POOLED_BYTES, LEAST_BUFFER_BYTES, MAX_POOLED_BYTES, BufferPool


def test_a_returned_buffer_is_lent_again() -> None:
    pool = BufferPool()
    buffer = pool.take(100_000)
    assert len(buffer) >= 100_000
    pool.give_back(buffer)
    assert pool.take(70_000) is buffer


def test_what_is_lent_is_counted() -> None:
    pool = BufferPool()
    one, two = pool.take(1), pool.take(LEAST_BUFFER_BYTES + 1)
    assert pool.lent_bytes == len(one) + len(two)
    pool.give_back(one)
    pool.give_back(two)
    assert pool.lent_bytes == 0


def test_the_pool_keeps_no_more_than_its_limits() -> None:
    pool = BufferPool()
    huge = pool.take(LARGEST_POOLED_BYTES + 1)
    pool.give_back(huge)
    assert pool.pooled_bytes == 0
    lent = [pool.take(LARGEST_POOLED_BYTES) for _ in range(2 * MAX_POOLED_BYTES // LARGEST_POOLED_BYTES)]
    for buffer in lent:
        pool.give_back(buffer)
    assert pool.pooled_bytes == MAX_POOLED_BYTES
