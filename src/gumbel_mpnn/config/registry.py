"""Registries of components: a class is registered by name, and its signature defines its options."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from gumbel_mpnn._util.errors import LARGEST_INTEGER, UserError, did_you_mean, unknown_name

T = TypeVar("T")


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
        self._aliases: dict[str, str] = {}
        self._passed_on: dict[str, Callable[[], Mapping[str, Any]]] = {}

    def register(
        self, name: str, *aliases: str, passes_on: Callable[[], Mapping[str, Any]] = dict
    ) -> Callable[[type[T]], type[T]]:
        """Class decorator that registers a class under a name and its aliases.

        `passes_on` returns further options with their defaults, which the constructor takes as `**options` and passes
        on to a part of the component.
        """

        def add(component: type[T]) -> type[T]:
            for key in (name, *aliases):
                if normal_name(key) in self._aliases:
                    raise ValueError(f"a {self.kind} called {key!r} is registered already")
            if self.parent is not None:  # first, since it may refuse the name
                self.parent.register(name, *aliases, passes_on=passes_on)(component)
            self._aliases |= {normal_name(key): name for key in (name, *aliases)}
            self._components[name] = component
            self._passed_on[name] = passes_on
            return component

        return add

    def canonical(self, name: str) -> str:
        """Registered name of the component that is called `name` or has this alias."""
        if normal_name(name) not in self._aliases:
            raise unknown_name(self.kind, name, self._components)
        return self._aliases[normal_name(name)]

    def __getitem__(self, name: str) -> type[T]:
        return self._components[self.canonical(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._components)

    def __contains__(self, name: str) -> bool:
        return normal_name(name) in self._aliases

    def defaults(self, name: str) -> dict[str, Any]:
        """Options of a component with their defaults: keyword arguments of its constructor and of its base classes."""
        options: dict[str, Any] = {}
        for cls in reversed(self[name].__mro__[:-1]):
            if "__init__" in cls.__dict__:
                parameters = inspect.signature(cls.__dict__["__init__"]).parameters.values()
                options |= {p.name: p.default for p in parameters if p.default is not p.empty}
        options |= self._passed_on[self.canonical(name)]()
        return {key: default for key, default in options.items() if key not in self.reserved}

    def space(self, name: str) -> dict[str, Any]:
        """What `tune` searches of a component by default: the attribute `space` of its class and its base classes.

        It has the options that are searched, each with a list of values or a range, as in a space file.
        """
        found: dict[str, Any] = {}
        for cls in reversed(self[name].__mro__):
            found |= cls.__dict__.get("space", {})
        return found

    def all_defaults(self) -> dict[str, Any]:
        """Options of all components with their defaults."""
        return {key: default for name in self for key, default in self.defaults(name).items()}

    def complete(self, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Check `options` of a component, and add the defaults of all others."""
        known = self.defaults(name)
        for key, value in options.items():
            if key not in known:
                raise UserError(f"{self.kind} {name!r} has no option {key!r}: {did_you_mean(key, known)}")
            known[key] = checked_like(known[key], value, f"option {key!r} of {self.kind} {name!r}")
        return known

    def changed(self, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Check `options` of a component, and drop those with their default value."""
        defaults, given = self.defaults(name), self.complete(name, options)
        return {key: given[key] for key in options if given[key] != defaults[key]}


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
