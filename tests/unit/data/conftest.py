"""No test of this room sees the network, the user's cache or a data root of this machine."""

import urllib.error
import urllib.request

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    def no_network(url, timeout=None):
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home-cache"))
    monkeypatch.delenv("GUMBEL_MPNN_DATA", raising=False)
    return tmp_path / "home-cache" / "gumbel-mpnn"
