"""How an annotation notes itself on what it decorates, and how it is found again.

As in Java, an annotation belongs to one class or function and is not inherited. Decorators run from the lowest to the
topmost, so each puts itself in front: the notes stand in the order of the source.
"""

from __future__ import annotations

from typing import Final, TypeVar, cast

__all__ = ["annotate", "annotations_of", "require_class"]

_A = TypeVar("_A")
_NOTES: Final = "__jms_annotations__"


def annotate(target: object, annotation: object) -> None:
    """Put an annotation in front of those that a class or function has itself.

    Args:
        target: A class or function.
        annotation: The annotation.
    Raises:
        TypeError: The target is neither.
    """
    if not (isinstance(target, type) or callable(target)) or not hasattr(target, "__dict__"):
        raise TypeError(f"{type(annotation).__name__} can decorate a class or a function, not {target!r}")
    setattr(target, _NOTES, (annotation, *annotations_of(target, object)))


def annotations_of(target: object, kind: type[_A]) -> tuple[_A, ...]:
    """Give the annotations of one kind that a class or function has itself, in the order of the source.

    Args:
        target: A class or function.
        kind: The class of annotation to look for.
    Returns:
        The annotations; empty if there are none.
    """
    notes = cast("tuple[object, ...]", getattr(target, "__dict__", {}).get(_NOTES, ()))
    return tuple(note for note in notes if isinstance(note, kind))


def require_class(target: object, annotation: object) -> None:
    """Refuse to decorate anything but a class.

    Raises:
        TypeError: The target is no class.
    """
    if not isinstance(target, type):
        raise TypeError(f"{type(annotation).__name__} can decorate a class, not {target!r}")
