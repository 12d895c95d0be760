"""Sizes and durations in words."""

import pytest

from gumbel_mpnn.util.live_line import duration, size


@pytest.mark.parametrize(
    ("bytes_", "words"),
    [(0, "0 bytes"), (1023, "1,023 bytes"), (1536, "1.5 KiB"), (5 * 2**40, "5 TiB"), (2**62, "4,096 PiB")],
)
def test_sizes_in_words(bytes_, words):
    assert size(bytes_) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 ms"),
        (0.0123, "12.3 ms"),
        (1, "1 s"),
        (119, "119 s"),
        (121, "2.02 min"),
        (7200, "2 h"),
        (1e11, "3,169 years"),
    ],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words
