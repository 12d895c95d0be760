"""No test of this room sees the network, the user's cache or a data root of this machine."""

import io
import urllib.request

import pytest


@pytest.fixture(autouse=True)
def cache(no_data_sets):
    return no_data_sets


@pytest.fixture
def serve(monkeypatch):
    """A function that makes every address answer with these bytes."""

    def serving(content):
        monkeypatch.setattr(urllib.request, "urlopen", lambda _, timeout: io.BytesIO(content))

    return serving
