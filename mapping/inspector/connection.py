"""Connections of the web servers: requests that are not sent to their end, and answers that are not read, are given up.

Uvicorn bounds how long a connection may idle between requests, but neither how long the head of a request takes nor its
body, nor how long an answer waits for its reader. A client that sends or reads a byte now and then would hold its
connection, and an answer in memory, for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

LONGEST_S = 10.0
"""From the beginning of a head to its end, and from there to the end of the body."""
HEAD_BYTES = 64 * 1024
LEAST_READ_BYTES = 128 * 1024
"""What a client must read of a waiting answer within ``longest_s``, or all of it."""


class BoundedConnection(H11Protocol):
    """A connection that is closed when the head or the body of a request takes longer than ``longest_s``, or when an
    answer is read slower than ``LEAST_READ_BYTES`` in that time."""

    longest_s = LONGEST_S
    _deadline: asyncio.TimerHandle | None = None
    _part: Any = None  #: of a request that is awaited
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()
        self._watch_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._forget_reading()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Starts the time of a part of a request when that part begins."""
        state = self.conn.their_state
        part = state if state in (h11.IDLE, h11.SEND_BODY) else None
        if part != self._part:
            self._forget()
            self._part = part
            if part is not None and not self.transport.is_closing():
                self._deadline = self.loop.call_later(self.longest_s, self.transport.close)

    def _watch_reading(self) -> None:
        """Starts the time in which a client must read, where something waits for it."""
        if self._reading is None and (waiting := self.transport.get_write_buffer_size()):
            self._reading = self.loop.call_later(self.longest_s, self._check_reading, waiting)

    def _check_reading(self, before: int) -> None:
        self._reading = None
        waiting = self.transport.get_write_buffer_size()
        if waiting and waiting > before - LEAST_READ_BYTES:
            self.transport.abort()
        else:
            self._watch_reading()

    def _forget_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _forget(self) -> None:
        self._part = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def server_config(app: ASGIApp, *, connection: type[BoundedConnection] = BoundedConnection) -> uvicorn.Config:
    """Returns how an application is served: quietly, over bounded connections, without web sockets."""
    return uvicorn.Config(
        app,
        log_config=None,  # uvicorn's own closes every handler of the process, of whoever it is
        http=connection,
        ws="none",
        log_level="error",
        server_header=False,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )
