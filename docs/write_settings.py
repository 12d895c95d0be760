"""Write settings.md, the page of all settings, from the code: `python docs/write_settings.py`."""

import dataclasses
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gumbel_mpnn as gm
from gumbel_mpnn.candidates import candidates
from gumbel_mpnn.rewiring.regularizers import regularizers
from gumbel_mpnn.rewiring.scorers import scorers
from gumbel_mpnn.settings.presets import read_rungs
from gumbel_mpnn.settings.registry import Registry
from gumbel_mpnn.settings.settings import TABLES
from gumbel_mpnn.training import models

PAGE = Path(__file__).parent / "settings.md"
KINDS: dict[str, tuple[str, Registry[Any]]] = {
    "candidates": ("Candidate strategies", candidates),
    "scorer": ("Scorers", scorers),
    "regularizer": ("Regularizers", regularizers),
}
START = """# Every setting

This page is written by `python docs/write_settings.py` from the code. A test checks that it is up to date.

Set any of them on the command line with `--set TABLE.NAME=VALUE`, in Python with
`gm.fit(data, settings={"train": {"lr": 0.01}})`, or in a TOML file that `--preset` names. A name that is unknown, or a
value of the wrong type, is an error that suggests what you may have meant. `gumbel-mpnn runs show RUN` shows what a run
was trained with. For which values to choose, see [advice](advice.md). *Searched* are the values that
[tuning](tuning.md) tries by default.
"""


def table(head: str, rows: list[list[str]]) -> str:
    """A Markdown table."""
    names = head.split("|")
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def typed(default: object) -> list[str]:
    """The type of a setting, and its default as one would write it in `--set`."""
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return [type(default).__name__, f"`{text}`" if text else "empty"]


def values(space: Any) -> str:
    """What `tune` tries: a list of values, or a range."""
    if not isinstance(space, Mapping):
        return ", ".join(map(str, space))
    step = ", logarithmic" if space.get("log") else f", step {space['step']}" if "step" in space else ""
    return f"{space['low']:g} to {space['high']:g}{step}"


def searched(about: Mapping[str, Any], option: str = "space") -> str:
    """What `tune` searches by default of an option, as the end of a sentence."""
    return f" Searched: {values(about[option])}." if about.get(option) is not None else ""


def of_settings(name: str) -> str:
    """The table of one class of settings."""
    rows = []
    for item in dataclasses.fields(TABLES[name]):
        if "help" in item.metadata:
            rule, (kind, default) = item.metadata["rule"], typed(item.default)
            allowed = f"{kind}, {rule.wanted}" if rule else kind
            rows.append([f"`{name}.{item.name}`", allowed, default, item.metadata["help"] + searched(item.metadata)])
    return table("setting|type|default|meaning", rows)


def explained(component: type) -> dict[str, str]:
    """The sentence of each argument in the docstring of a class, else of its base classes."""
    found: dict[str, str] = {}
    for cls in component.__mro__:
        arguments = (inspect.getdoc(cls) or "").partition("Args:\n")[2]
        for name, text in re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", arguments, re.M):
            found.setdefault(name, re.sub(r"\s+", " ", text))
    return found


def names_of(registry: Registry[Any]) -> list[str]:
    """Names of the components of the package, without those of plugins and experiments."""
    return [name for name in registry if registry[name].__module__.startswith("gumbel_mpnn.")]


def of_components(setting: str, registry: Registry[Any]) -> str:
    """A table of the components, and one of their options."""
    what, options = [], []
    for name in names_of(registry):
        first = (inspect.getdoc(registry[name]) or "").partition("\n\n")[0].replace("\n", " ")
        space = [f"`{option}` {values(value)}" for option, value in registry.space(name).items()]
        what.append([f"`{name}`", first + (f" Searched: {'; '.join(space)}." if space else "")])
        texts = explained(registry[name])
        for option, default in registry.defaults(name).items():
            options.append([f"`{name}`", f"`rewiring.{setting}.{option}`", *typed(default), texts[option]])
    tables = [table(f"rewiring.{setting}|is", what)]
    return "\n\n".join([*tables, table("of|setting|type|default|meaning", options)] if options else tables)


def of_models() -> str:
    """A table of the models, and one of their options."""
    defaults, meaning, owners, spaces = {}, explained(gm.GumbelMPNN), {}, {}
    for name in names_of(models):
        spaces |= models.space(name)
        meaning = explained(models[name]) | meaning
        for option, default in models.defaults(name).items():
            defaults[option] = default
            owners.setdefault(option, []).append(f"`{name}`")
    what = [[f"`{name}`", (inspect.getdoc(models[name]) or "").splitlines()[0]] for name in names_of(models)]
    rows = [
        [
            f"`model.{option}`",
            "all" if len(of) == len(names_of(models)) else ", ".join(of),
            *typed(default),
            meaning[option] + searched(spaces, option),
        ]
        for option, default in defaults.items()
        for of in [owners[option]]
    ]
    return f"{table('model|is', what)}\n\n{table('setting|models|type|default|meaning', rows)}"


def of_rungs() -> str:
    """The rungs of `auto`."""
    rows = [[f"`{rung.name}`", f"`{rung.model}`", rung.needs or "any", rung.about] for rung in read_rungs()]
    return table("rung|model|graphs with|is", rows)


PRESETS = """A preset is a set of settings for one model on one data set. `gumbel-mpnn data NAME` lists those of a
data set, and `--preset` names a family of presets: `tuned` (the default), `paper`, `literal`, `few-labels`, `robust`,
or one of your own, which `gumbel-mpnn tune --name` writes. Each family is a file in `src/gumbel_mpnn/settings/presets`.

In these files, and in those that you name with `--preset`, a component and its options are written as
`rewiring.candidates = {name = "two_hop", per_node = 3}`, or as `rewiring.candidates.per_node = 3` alone."""
RUNGS = "The model `auto` tries these, the plainest first; `settings/presets/auto.toml` has the settings of each."


def text() -> str:
    """The whole page."""
    parts = [START.strip()]
    for name, about in {"data": "Data", "train": "Training", "rewiring": "Rewiring"}.items():
        parts += [f"## {about}", of_settings(name)]
    for setting, (title, registry) in KINDS.items():
        parts += [f"## {title}", of_components(setting, registry)]
    parts += ["## Models", of_models(), "## Presets", PRESETS, "## Rungs of `auto`", RUNGS, of_rungs()]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
