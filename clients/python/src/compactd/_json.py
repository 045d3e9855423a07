"""JSON with the place of each value, so that the text of a value can be sent as it came."""

import json
import re
from typing import Any, NamedTuple

_space = re.compile(r"[ \t\n\r]*").match


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse).raw_decode


class Value(NamedTuple):
    """A value and its text. An array that was split has the values of its elements."""

    data: Any
    text: str


def read(text: str) -> Any:
    """Return the one value of a text. Raises ValueError where the text is not JSON."""
    data, end = _decode(text, _skip(text, 0))
    return _end(text, end, data)


class Object:
    """The members of an object, each once, and where they are in its text."""

    def __init__(self, text: str, *split: str):
        """Read the object of a text. Arrays of the members in split are read by elements."""
        self.text = text
        self.members: dict[str, Value] = {}
        self.places: dict[str, tuple[int, int]] = {}

        def member(at: int) -> int:
            name, at = _decode(text, at)
            start = _skip(text, _sign(text, at, ":"))
            if not isinstance(name, str) or name in self.members:
                raise ValueError("not a name, or a second member of this name")
            data, end = (
                _elements(text, start) if name in split and text[start : start + 1] == "[" else _decode(text, start)
            )
            self.members[name], self.places[name] = Value(data, text[start:end]), (start, end)
            return end

        _end(text, _list(text, 0, "{}", member))

    def data(self, name: str) -> Any:
        """Return the data of a member, None where it is absent."""
        return self.members[name].data if name in self.members else None

    def text_of(self, name: str) -> str:
        """Return the text of a member, "" where it is absent."""
        return self.members[name].text if name in self.members else ""

    def replace(self, name: str, elements: list[str]) -> str:
        """Return the text with other elements in the array of a member."""
        start, end = self.places[name]
        return f"{self.text[:start]}[{','.join(elements)}]{self.text[end:]}"


def _elements(text: str, start: int) -> tuple[list[Value], int]:
    found: list[Value] = []

    def element(at: int) -> int:
        data, end = _decode(text, at)
        found.append(Value(data, text[at:end]))
        return end

    return found, _list(text, start, "[]", element)


def _list(text: str, start: int, brackets: str, item: Any) -> int:
    """Call item at the place of each item; it returns the place behind. Return that of the list."""
    at = _sign(text, start, brackets[0])
    first = _skip(text, at)
    if text[first : first + 1] == brackets[1]:
        return first + 1
    while True:
        at = _skip(text, item(_skip(text, at)))
        if text[at : at + 1] == brackets[1]:
            return at + 1
        at = _sign(text, at, ",")


def _sign(text: str, at: int, sign: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(f"no {sign} at {at}")
    return at + 1


def _skip(text: str, at: int) -> int:
    return _space(text, at).end()  # type: ignore[union-attr]  # it matches anywhere


def _end(text: str, at: int, data: Any = None) -> Any:
    if _skip(text, at) < len(text):
        raise ValueError("data after the JSON value")
    return data
