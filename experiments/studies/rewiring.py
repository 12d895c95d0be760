"""Paired comparison of Gumbel-MPNN with its backbone and its controls, with all and with few labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.experiment import Experiment, Job, Results
from experiments.published import published
from experiments.rows import (
    MODEL_NAMES,
    NO_DATA,
    PAIRED,
    Columns,
    differences,
    figures,
    override,
    paragraphs,
    percent,
    score,
    settings_of_rewired,
)
from gumbel_mpnn.report import Row, Table
from gumbel_mpnn.runs import Run, RunSpec

DATASETS = ("cora", "citeseer", "pubmed", "squirrel", "chameleon", "actor", "minesweeper", "tolokers")
FEW_LABELS = ("cora", "citeseer")
TUNED, FEW = "tuned", "few-labels"
BACKBONE, REWIRED, DROPPING = "gcn", "gumbel-mpnn", "drop-edge"
NOTHING_LEARNED = ("frozen", "random")
CONTROLS = (*NOTHING_LEARNED, DROPPING)

Runs = Mapping[str, Run | None]
"""Runs on one data set with one preset, by model."""


class Rewiring(Experiment):
    """The effect of rewiring on a GCN, and how much of it is there if no edge is learned."""

    name = "rewiring"
    title = "Gumbel-MPNN against its backbone"
    headings: Mapping[str, str] = {
        "backbone": "GCN %",
        "test": "Gumbel-MPNN %",
        "frozen": "frozen %",
        "to_frozen": "ours − frozen",
        "frozen_verdict": "verdict",
        "random": "random %",
        "to_random": "ours − random",
        "random_verdict": "verdict",
        "drop-edge": "DropEdge with agreement %",
        "to_drop-edge": "ours − DropEdge",
        "drop-edge_verdict": "verdict",
        "control": "best control",
        "gain_difference": "learned gain",
        "gain_low": "95 % from",
        "gain_high": "to",
        "gain_p": "corrected p",
        "gain_over": "tested over",
        "gain_verdict": "verdict",
        "paper": "paper's Gumbel-MPNN %",
    }

    def plan(self) -> list[Job]:
        """Return jobs for the GCN, shared with `backbones`, Gumbel-MPNN and its controls on every data set."""
        jobs = []
        for dataset, preset in [(name, TUNED) for name in DATASETS] + [(name, FEW) for name in FEW_LABELS]:
            jobs.append(Job(dataset, BACKBONE, preset, "backbones" if preset == TUNED else self.name))
            jobs += [Job(dataset, model, preset, self.name) for model in (REWIRED, *NOTHING_LEARNED)]
            if overrides := dropping(dataset, preset):
                jobs.append(Job(dataset, DROPPING, preset, self.name, overrides))
        return jobs

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each data set and number of labels, with p-values corrected for the number of rows."""
        found: dict[tuple[str, str], dict[str, Run | None]] = {}
        for job, run in results.items():
            found.setdefault((job.dataset, job.preset), {})[job.model] = run
        best = {key: best_control(runs) for key, runs in found.items()}
        others = {model: dict.fromkeys(found, model) for model in (BACKBONE, *CONTROLS)} | {"gain": best}
        paired = {
            name: differences({key: (runs.get(REWIRED), runs.get(other[key] or "")) for key, runs in found.items()})
            for name, other in others.items()
        }
        return [
            _row(*key, runs, best[key], {name: columns[key] for name, columns in paired.items()})
            for key, runs in found.items()
        ]

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a line for each data set and number of labels, with the models as columns."""
        names = ["data set", "labels", "GCN", "Gumbel-MPNN", "gain", "frozen", "random", "DropEdge", "learned", "over"]
        lines = [
            [
                row["dataset"],
                row["labels"],
                score(row, "backbone", ""),
                score(row),
                score(row, "difference", "", bold=row["verdict"] in ("better", "worse")),
                *(score(row, model, "") for model in CONTROLS),
                score(row, "gain_difference", "", bold=row["gain_verdict"] in ("better", "worse")),
                None if row["control"] is None else MODEL_NAMES[str(row["control"])],
            ]
            for row in rows
        ]
        return paragraphs(
            "Test accuracy in percent (ROC-AUC for minesweeper and tolokers) ± standard error; DropEdge has the"
            " agreement of Gumbel-MPNN. `learned` is the difference to the best of the backbone and the controls. Bold:"
            " significant by a paired test, corrected.",
            Table(names, lines).render("markdown"),
        )


def dropping(dataset: str, preset: str) -> tuple[str, ...]:
    """Return overrides for a DropEdge with the settings and the agreement of Gumbel-MPNN; none without agreement.

    It drops as many edges as Gumbel-MPNN at its start, the same in all layers.
    """
    rewiring = RunSpec.of(dataset, REWIRED, preset=preset).settings.rewiring
    assert rewiring is not None
    if not rewiring.agreement:
        return ()
    keep = rewiring.keep if rewiring.origin != "none" else 0.5
    own = {"edge_dropout": round(1 - keep, 6), "per_layer": False}
    same = {name: getattr(rewiring, name) for name in ("samples", "agreement", "agreement_ramp")}
    own_overrides = (override(f"model.{name}", value) for name, value in (own | same).items())
    return (*settings_of_rewired(dataset, preset, DROPPING), *own_overrides)


def best_control(runs: Runs) -> str | None:
    """Return the model with the highest mean test result among the backbone and the controls.

    None if one of them is missing; DropEdge counts where Gumbel-MPNN has agreement.
    """
    ours = runs.get(REWIRED)
    rewiring = None if ours is None else ours.settings.rewiring
    needed = (BACKBONE, *NOTHING_LEARNED, *([DROPPING] if rewiring is not None and rewiring.agreement else []))
    means = {model: run.test.mean for model in needed if (run := runs.get(model)) is not None}
    return max(means, key=means.__getitem__) if len(means) == len(needed) else None


def _row(dataset: str, preset: str, runs: Runs, best: str | None, paired: Mapping[str, Columns]) -> Row:
    run, backbone = runs.get(REWIRED), runs.get(BACKBONE)
    row: Columns = {
        "dataset": dataset,
        "labels": "few" if preset == FEW else "full",
        "backbone": percent(backbone),
        **dict.fromkeys(("test", "stderr", "n")),
        **paired[BACKBONE],
    }
    if run is not None:
        row |= figures(run, with_std=False)
    for model in CONTROLS:
        row |= {model: percent(runs.get(model)), f"to_{model}": paired[model]["difference"]}
        row[f"{model}_verdict"] = paired[model]["verdict"]
    row |= {"control": best, **{f"gain_{name}": paired["gain"][name] for name in PAIRED}}
    row["paper"] = published("accuracy")[dataset][REWIRED][0] if preset == TUNED else None
    return row if any(each is not None for each in runs.values()) else row | {"verdict": NO_DATA}
