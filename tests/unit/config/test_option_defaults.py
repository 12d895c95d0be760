"""The default of every option of every component that settings name.

The fingerprint of a run leaves out options that have their default value. With another default the same fingerprint
would stand for other numbers, and old runs would pass for new ones. A default must therefore never change: give the
option a new name instead, whose default is the new value. What may change here is that options and components are
added.
"""

import pytest

from gumbel_mpnn.candidates import candidates
from gumbel_mpnn.rewiring.edge_models import scorers
from gumbel_mpnn.rewiring.regularizers import regularizers

OF_INTER_CLASS = {
    "weight": 1.0,
    "detach": True,
    "labels": "soft",
    "margin": 1.0,
    "weighting": "confidence",
    "prototypes": "neighborhoods",
    "factor": "mean",
}
DEFAULTS = {
    candidates: {
        "global": {"pairs": 0, "similarity": "cosine", "on": "x", "search": "auto", "parts": 1},
        "local": {"per_node": 5, "similarity": "cosine", "on": "x", "search": "auto", "parts": 1},
        "ricci": {"pairs": 0, "per_edge": 10, "seed": 0},
        "two_hop": {"per_node": 3, "seed": 0},
    },
    scorers: {
        "bilinear": {},
        "class-facts": {},
        "class-space": {},
        "constant": {},
        "literal": {"rank": 0},
        "mixed": {},
        "neighborhood": {},
    },
    regularizers: {
        "degree": {"weight": 1.0, "target": 5.0, "tolerance": 0.0, "two_sided": False},
        "inter-class": OF_INTER_CLASS,
        "label-consistency": {"weight": 1.0, "detach": True, "labels": "soft"},
        "mix": OF_INTER_CLASS,
        "neighborhood-consistency": {"weight": 1.0, "detach": True, "labels": "soft"},
        "prior": {"weight": 1.0, "keep": 0.95, "add": 0.05},
    },
}


@pytest.mark.parametrize("registry", DEFAULTS, ids=lambda registry: registry.kind)
def test_defaults_are_what_they_were(registry):
    found = {name: registry.defaults(name) for name in registry}
    assert found == DEFAULTS[registry]
    for name, options in found.items():
        assert {key: type(value) for key, value in options.items()} == {
            key: type(value) for key, value in DEFAULTS[registry][name].items()
        }
