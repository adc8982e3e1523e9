"""The cache that everything bounded in memory uses."""

from __future__ import annotations

from allot.lru_cache import LRUCache


def test_least_recently_used_entry_is_evicted() -> None:
    cache: LRUCache[str, int] = LRUCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)

    assert "b" not in cache
    assert (cache.get("a"), cache.get("c"), len(cache)) == (1, 3, 2)


def test_weight_is_bounded() -> None:
    cache: LRUCache[str, str] = LRUCache(10, max_weight=6, weigh=len)
    cache.put("a", "xxx")
    cache.put("b", "yyy")
    cache.put("a", "x")  # replaces the heavier value
    cache.put("c", "zz")
    assert len(cache) == 3

    cache.put("d", "w" * 5)
    assert ("a" in cache, "b" in cache, "c" in cache, "d" in cache) == (False, False, False, True)
    cache.put("e", "v" * 7)
    assert len(cache) == 0


def test_value_is_made_once() -> None:
    made: list[str] = []
    cache: LRUCache[str, str] = LRUCache(2)

    def make() -> str:
        made.append("a")
        return "value"

    assert [cache.get_or_make("a", make) for _ in range(3)] == ["value"] * 3
    assert made == ["a"]
    cache.pop("a")
    cache.pop("a")
    assert "a" not in cache
