"""How orders and answers go through a pipe: a length of four bytes, then a msgpack record."""

from __future__ import annotations

from typing import IO

import msgspec

from cutlint.clang.records import Answer, Header, Order, Setup, Unit

_ENCODER = msgspec.msgpack.Encoder()
_ORDERS: msgspec.msgpack.Decoder[Setup | Header | Unit] = msgspec.msgpack.Decoder(Order)
_ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def send(pipe: IO[bytes], record: Order | Answer) -> None:
    """Write one record. Raises OSError when nobody reads any more."""
    data = _ENCODER.encode(record)
    pipe.write(len(data).to_bytes(4, "little") + data)
    pipe.flush()


def receive_order(pipe: IO[bytes]) -> Setup | Header | Unit | None:
    """The next order; None at the end."""
    data = _receive(pipe)
    return None if data is None else _ORDERS.decode(data)


def receive_answer(pipe: IO[bytes]) -> Answer | None:
    """The next answer; None when the worker has ended."""
    data = _receive(pipe)
    return None if data is None else _ANSWERS.decode(data)


def _receive(pipe: IO[bytes]) -> bytes | None:
    length = pipe.read(4)
    if len(length) < 4:
        return None
    data = pipe.read(int.from_bytes(length, "little"))
    return data if len(data) == int.from_bytes(length, "little") else None
