"""Functions are compiled with and without a folder to keep them in, and what is kept is never out of date."""

import shutil
import subprocess
import sys

import numba
import pytest

from gumbel_mpnn.util import jit
from gumbel_mpnn.util.jit import compiled


def twice(number: int) -> int:
    """A function to compile."""
    return 2 * number


def test_it_compiles_where_nothing_can_be_written(monkeypatch):
    def refuse(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function 'twice': no locator available")
        return njit(*arguments, **options)

    njit = numba.njit
    monkeypatch.setattr(numba, "njit", refuse)
    assert compiled(twice)(21) == 42


CALLER = """
from kernels.jit import compiled
from kernels.callee import step

@compiled
def caller(number):
    return step(number)
"""
CALLEE = """
from kernels.jit import compiled
from kernels.constants import AMOUNT

@compiled
def step(number):
    return number {sign} AMOUNT
"""
PROGRAM = "from kernels.caller import caller; print(caller(40), sum(caller.stats.cache_hits.values()))"


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """A package: the caller calls a function of a second file, which reads a constant of a third."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "kernels").mkdir()
    shutil.copy(jit.__file__, tmp_path / "kernels" / "jit.py")  # alone it is imported quickly
    files = {"__init__": "", "caller": CALLER, "callee": CALLEE.format(sign="+"), "constants": "AMOUNT = 2\n"}
    for name, source in files.items():
        (tmp_path / "kernels" / f"{name}.py").write_text(source)
    return tmp_path / "kernels"


def result():
    """What a fresh process computes, and how many of its functions were kept from another one."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]


def test_what_was_kept_goes_when_a_file_changes_that_it_was_made_of(kernels):
    assert [result(), result()] == [[42, 0], [42, 1]]
    (kernels / "callee.py").write_text(CALLEE.format(sign="-"))
    assert result() == [38, 0]
    (kernels / "constants.py").write_text("AMOUNT = 3\n")
    assert [result(), result()] == [[37, 0], [37, 1]]
