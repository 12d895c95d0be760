"""A number that knows how many decimals it is shown with."""

from __future__ import annotations


class Fixed(float):
    """A float for all purposes but one: a table shows it with its own number of decimals."""

    digits: int

    def __new__(cls, value: float, digits: int) -> Fixed:
        """`value`, to be shown with `digits` decimals."""
        number = super().__new__(cls, value)
        number.digits = digits
        return number

    @classmethod
    def parse(cls, text: str) -> Fixed:
        """The number that a text says, with as many decimals as are written there."""
        return cls(float(text), len(text.partition(".")[2]))
