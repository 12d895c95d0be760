"""Registries of components: a class is registered by name, and its signature defines its options.

Components of the user are registered by plugins: files or modules that an environment variable lists.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module, util
from pathlib import Path
from typing import Any, Generic, TypeVar

from gumbel_mpnn.util.errors import LARGEST_INTEGER, UserError, did_you_mean, unknown_name

T = TypeVar("T")
PLUGINS = "GUMBEL_MPNN_PLUGINS"
"""Environment variable with a comma-separated list of Python files or module names."""


class Registry(Generic[T]):
    """Components of one kind by name; case is ignored in names, and `_` and `-` are the same.

    `reserved` are keyword arguments of the constructors that are not options of the user. Components are also added to
    the `parent`.
    """

    def __init__(self, kind: str, reserved: Iterable[str] = (), parent: Registry[Any] | None = None) -> None:
        self.kind = kind
        self.reserved = frozenset(reserved)
        self.parent = parent
        self._components: dict[str, type[T]] = {}
        self._names: dict[str, str] = {}
        self._parts: dict[str, Mapping[str, Registry[Any]]] = {}

    def register(self, name: str, *aliases: str, **parts: Registry[Any]) -> Callable[[type[T]], type[T]]:
        """Class decorator that registers a class under a name and its aliases.

        `backbone=backbones` says that the option `backbone` names a component of that registry, and that its options
        are options of this component too, which the constructor takes as `**options`.
        """

        def add(component: type[T]) -> type[T]:
            for key in (name, *aliases):
                if normal_name(key) in self._names:
                    raise ValueError(f"a {self.kind} called {key!r} is registered already")
            if self.parent is not None:  # first, since it may refuse the name
                self.parent.register(name, *aliases, **parts)(component)
            self._names |= {normal_name(key): name for key in (name, *aliases)}
            self._components[name] = component
            self._parts[name] = parts
            return component

        return add

    def canonical(self, name: str) -> str:
        """Registered name of the component that is called `name` or has this alias."""
        if normal_name(name) not in self._names:
            raise unknown_name(self.kind, name, self._components)
        return self._names[normal_name(name)]

    def __getitem__(self, name: str) -> type[T]:
        return self._components[self.canonical(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._components)

    def __contains__(self, name: str) -> bool:
        return normal_name(name) in self._names

    def defaults(self, name: str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Options of a component with their defaults: keyword arguments of its constructor and of its base classes.

        The options of a part, such as a backbone, are those of the part that is named in `options`, else by default.
        """
        found: dict[str, Any] = {}
        for cls in reversed(self[name].__mro__[:-1]):
            if "__init__" in cls.__dict__:
                parameters = inspect.signature(cls.__dict__["__init__"]).parameters.values()
                found |= {p.name: p.default for p in parameters if p.default is not p.empty}
        for option, registry in self._parts[self.canonical(name)].items():
            part = checked_like(found[option], (options or {}).get(option, found[option]), f"option {option!r}")
            found |= registry.defaults(part)
        return {key: default for key, default in found.items() if key not in self.reserved}

    def all_defaults(self) -> dict[str, Any]:
        """Options of all components with their defaults."""
        return {key: default for name in self for key, default in self.defaults(name).items()}

    def space(self, name: str) -> dict[str, Any]:
        """What `tune` searches of a component by default: the attribute `space` of its class and its base classes.

        It has the options that are searched, each with a list of values or a range, as in a space file.
        """
        found: dict[str, Any] = {}
        for cls in reversed(self[name].__mro__):
            found |= cls.__dict__.get("space", {})
        return found

    def complete(self, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Check `options` of a component, and add the defaults of all others."""
        known = self.defaults(name, options)
        for key, value in options.items():
            if key not in known:
                parts = [f" with {part} {known[part]!r}" for part in self._parts[self.canonical(name)]]
                what = f"{self.kind} {name!r}{''.join(parts)}"
                raise UserError(f"{what} has no option {key!r}: {did_you_mean(key, known)}")
            known[key] = checked_like(known[key], value, f"option {key!r} of {self.kind} {name!r}")
        return known


def checked_like(default: Any, value: Any, what: str) -> Any:
    """Return `value` if it has the type of `default` (an int is converted to a float), else raise a `UserError`."""
    wanted = type(default)
    if wanted is float and type(value) in (int, float):
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise UserError(f"{what} must be finite")
    if type(value) is int and abs(value) > LARGEST_INTEGER:
        raise UserError(f"{what} must be an integer of 64 bits, at most {LARGEST_INTEGER}")
    if type(value) is not wanted:
        raise UserError(f"{what} must be of type {wanted.__name__}, like {default!r}, but is {value!r}")
    return value


def normal_name(name: str) -> str:
    """Normalize a name for comparison: lower case, with `-` instead of `_`."""
    return name.lower().replace("_", "-")


def load_plugins() -> None:
    """Import the plugins once, which registers their components."""
    for name in os.environ.get(PLUGINS, "").split(","):
        if name.strip():
            _load(name.strip())


@cache
def _load(name: str) -> None:
    try:
        if not name.endswith(".py"):
            import_module(name)
            return
        path = Path(name).expanduser().resolve()
        spec = util.spec_from_file_location(f"gumbel_mpnn_plugin_{path.stem}", path)
        if spec is None or spec.loader is None or not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        module = util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(f"cannot load the plugin {name!r} of {PLUGINS}: {type(error).__name__}: {error}") from error
