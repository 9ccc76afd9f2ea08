"""What is known after a unit, and what has to be evaluated again.

libclang reports a specialization that fails once in a translation unit. Whatever else in the unit needs the same one
shows no error, and a wrong size. So a size counts only from a unit without any error; the rest of the unit goes round
again without those that failed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cutlint.clang.records import Error, Evaluated, Failure, Sizes

Batch = tuple[int, ...]  # numbers of instantiations that share a unit


class Settled(msgspec.Struct, frozen=True):
    """What a unit has decided, by number of the instantiation, the batches that are to be evaluated again, and a failure
    of libclang that cannot be got round."""

    sizes: dict[int, Sizes]
    refused: dict[int, Error]
    again: tuple[Batch, ...]
    failure: str | None = None


def settle(batch: Batch, answer: Evaluated | Failure) -> Settled:
    """What the `answer` to the unit of `batch` says. Every number is decided, or in a batch smaller than this one."""
    if isinstance(answer, Failure):
        if len(batch) == 1:
            return Settled({}, {}, (), answer.message)
        return Settled({}, {}, _halves(batch))
    if not answer.errors and not answer.stray:
        return Settled({batch[index]: sizes for index, sizes in answer.sizes.items()}, {}, ())
    if len(batch) == 1:
        found = (*answer.errors.get(0, ()), *answer.stray)
        return Settled({}, {batch[0]: _reason(found)}, ())
    if not answer.errors:
        return Settled({}, {}, _halves(batch))
    refused: dict[int, Error] = {}
    suspects: list[int] = []  # refused, but the reason may have been told to another probe of this unit
    clean: list[int] = []
    for index, number in enumerate(batch):
        found = answer.errors.get(index, ())
        if not found:
            clean.append(number)
        elif len(answer.errors) > 1 and not any(each.asserted for each in found):
            suspects.append(number)
        else:
            refused[number] = _reason(found)
    again: list[Batch] = [tuple(clean)] if clean else []
    if suspects:
        again += [tuple(suspects)] if refused or clean else _halves(tuple(suspects))
    return Settled({}, refused, tuple(again))


def _reason(errors: Sequence[Error]) -> Error:
    """The first static_assert among `errors`, else the first."""
    return next((each for each in errors if each.asserted), errors[0])


def _halves(batch: Batch) -> tuple[Batch, ...]:
    middle = len(batch) // 2
    return batch[:middle], batch[middle:]
