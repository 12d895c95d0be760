"""How the process of a worker begins and ends."""

import signal
import subprocess
import sys

ENDED_AFTER_ITS_WORK = """
import os, signal
from functools import partial
from gumbel_mpnn.runs.workers import _assist

_assist(partial(print, flush=True), 1, 2, ["worked"])
os.kill(os.getpid(), signal.SIGTERM)
"""
ENDED_DURING_ITS_WORK = """
import os, signal
from gumbel_mpnn.runs.workers import _assist

def work(place):
    os.kill(os.getpid(), signal.SIGTERM)
    print("worked on")

_assist(work, 1, 2, [])
print("ended")
"""
ENDED_WHERE_PYTHON_IGNORES_ERRORS = """
import os, signal, time, weakref
from gumbel_mpnn.runs.workers import _assist

class Node:
    pass

def work(place):
    nodes = [Node()]
    reference = weakref.ref(nodes[0], lambda _: os.kill(os.getpid(), signal.SIGTERM))
    nodes.clear()
    while True:
        time.sleep(0.01)

_assist(work, 1, 2, [])
print("ended")
"""


def run(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def test_a_worker_that_is_ended_after_its_work_says_nothing():
    """The calling process ends its workers whether they still work or not."""
    assert run(ENDED_AFTER_ITS_WORK) == (-signal.SIGTERM, "1 worked\n", "")


def test_a_worker_that_is_ended_during_its_work_stops_in_order():
    assert run(ENDED_DURING_ITS_WORK) == (0, "ended\n", "")


def test_a_worker_stops_even_if_python_ignored_the_first_interrupt():
    assert run(ENDED_WHERE_PYTHON_IGNORES_ERRORS) == (0, "ended\n", "")
