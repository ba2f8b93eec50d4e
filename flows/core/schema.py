"""What a tool's arguments are, from its signature, as a JSON schema; and whether given ones fit. Pure, and no more than tools need."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union

_PLAIN: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null", None: "null"}
_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
    "array": (list, tuple),
    "object": (Mapping,),
}


def of_function(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of a function's arguments, all passed by name.

    Raises:
        TypeError: it takes something that JSON has not, or cannot be called by name.
    """
    try:
        hints = typing.get_type_hints(inspect.unwrap(function))
    except (NameError, TypeError, AttributeError):
        hints = {}
    properties: dict[str, Any] = {}
    required: list[str] = []
    more = False
    for name, parameter in inspect.signature(function).parameters.items():
        if name in ("self", "cls") and not properties:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise TypeError(f"{name} cannot be passed by name")
        if parameter.kind is parameter.VAR_KEYWORD:
            more = True
            continue
        properties[name] = of_type(hints.get(name, Any), name)
        if parameter.default is parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}


def of_type(hint: Any, name: str) -> dict[str, Any]:
    """The schema of one annotation; {} for Any.

    Raises:
        TypeError: JSON has no such type.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is inspect.Parameter.empty:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [of_type(one, name) for one in arguments]}
    if origin is typing.Annotated:
        return of_type(arguments[0], name)
    kind = origin or hint
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return {"type": "object"}
    if kind in (list, tuple) or (isinstance(kind, type) and kind is not str and issubclass(kind, Sequence) and kind is not bytes):
        items = of_type(arguments[0], name) if arguments and kind is not tuple else {}
        return {"type": "array", **({"items": items} if items else {})}
    raise TypeError(f"{name} is {getattr(hint, '__name__', hint)!s:.60}, which JSON has not")


def misfit(value: Any, schema: Mapping[str, Any], path: str = "arguments") -> str:
    """How a value does not fit, in words without the value; "": it fits."""
    if "enum" in schema and value not in schema["enum"]:
        return f"{path} must be one of {', '.join(map(repr, schema['enum']))}"
    if "anyOf" in schema and all(misfit(value, one, path) for one in schema["anyOf"]):
        return f"{path} must be of another type"
    kind = schema.get("type")
    if kind and (not isinstance(value, _PYTHON[kind]) or (isinstance(value, bool) and kind in ("integer", "number"))):
        return f"{path} must be of the type {kind}"
    if kind == "array" and "items" in schema:
        return next((found for one in value if (found := misfit(one, schema["items"], f"an item of {path}"))), "")
    if kind == "object" and "properties" in schema:
        return _members(value, schema, path)
    return ""


def _members(value: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> str:
    if missing := [name for name in schema["required"] if name not in value]:
        return f"{path} lack {', '.join(missing)}"
    known = schema["properties"]
    unknown = [str(name)[:40] for name in value if name not in known]
    if unknown and not schema["additionalProperties"]:
        return f"{path} have no {', '.join(map(repr, unknown[:5]))}; they are {', '.join(known) or 'none'}"
    return next((found for name, one in value.items() if name in known and (found := misfit(one, known[name], name))), "")
