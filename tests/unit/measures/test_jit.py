"""Functions are compiled with and without a folder to keep them in."""

import numba

from gumbel_mpnn.measures.jit import compiled


def twice(number: int) -> int:
    """A function to compile."""
    return 2 * number


def test_a_compiled_function_gives_the_same():
    assert compiled(twice)(21) == 42
    assert isinstance(compiled(twice), numba.core.dispatcher.Dispatcher)


def test_it_compiles_where_nothing_can_be_written(monkeypatch):
    def refuse(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function 'twice': no locator available")
        return njit(*arguments, **options)

    njit = numba.njit
    monkeypatch.setattr(numba, "njit", refuse)
    assert compiled(twice)(21) == 42
