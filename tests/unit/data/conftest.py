"""No test of this room sees the network, the user's cache or a data root of this machine."""

import io
import urllib.request

import pytest


@pytest.fixture(autouse=True)
def cache(no_data_sets):
    return no_data_sets


class Response(io.BytesIO):
    """What urlopen gives, for a server that promises `length` bytes."""

    def __init__(self, content, length):
        super().__init__(content)
        self.headers = {} if length is None else {"Content-Length": str(length)}


@pytest.fixture
def serve(monkeypatch):
    """A function that makes every address answer with these bytes."""

    def serving(content, length=None):
        monkeypatch.setattr(urllib.request, "urlopen", lambda _, timeout: Response(content, length))

    return serving
