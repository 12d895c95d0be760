"""Settings whose runs must have the same numbers whichever runs are trained together with them."""

from gumbel_mpnn.rewiring.regularizers import regularizers
from gumbel_mpnn.rewiring.scorers import scorers
from gumbel_mpnn.settings import resolve
from gumbel_mpnn.training import models

EPOCHS = 3
BUSY = {"rewiring": {"scorer": "mixed", "samples": 2, "agreement": 0.5}}
CASES = {
    # SDRF trains a GCN on a graph that it has changed before.
    **{name: (name, {}) for name in models if name != "sdrf"},
    **{f"scorer {name}": ("gumbel-mpnn", {"rewiring": {"scorer": name}}) for name in scorers},
    **{
        f"regularizer {name}": (
            "gumbel-mpnn",
            {"rewiring": {**BUSY["rewiring"], "regularizer": name, "regularizer.weight": 0.1}},
        )
        for name in regularizers
        if name != "prior"  # part of the others
    },
    "pair loss": ("gumbel-mpnn", {"rewiring": {"scorer": "class-facts", "scorer.pair_loss": 1.0, "origin": "learned"}}),
    "batch norm": ("gcn", {"model": {"norm": "batch", "residual": True, "input_dropout": 0.2}}),
    "layer norm": ("sage", {"model": {"norm": "layer", "input_layer": True, "num_layers": 3}}),
    "heads": ("gat", {"model": {"heads": 4, "residual": True}, "data": {"features": "standardized"}}),
    "decoys": ("gumbel-mpnn", {"rewiring": {"scorer": "neighborhood", "scorer.decoys": 0.5, "samples": 2}}),
    "two sigmoids": (
        "gumbel-mpnn",
        {"rewiring": {"scorer": "bilinear", "scorer.second_sigmoid": True, "evaluation": "mean_of_samples"}},
    ),
    "16 bits": ("sage", {"train": {"bfloat16": True}}),
    "class weights": ("gcn", {"train": {"class_weights": "balanced"}, "data": {"metric": "average_precision"}}),
}


def settings_of(case):
    model, tables = CASES[case]
    merged = {name: tables.get(name, {}) for name in ("model", "train", "data", "rewiring")}
    merged["model"] = {"hidden_channels": 20, **merged["model"]}
    merged["train"] = {"epochs": EPOCHS, "lr": 0.01, **merged["train"]}
    rewires = models[model].rewires
    if not rewires:
        del merged["rewiring"]
    return resolve("toy", model, merged, models.complete, rewires=rewires)
