"""Closes connections of the web servers whose requests are not sent completely or whose answers are not read.

Uvicorn limits how long a connection may idle between requests. It limits neither the time for the head and the body of
a request nor the time an answer waits to be read. A client that sends or reads a byte now and then could keep its
connection, and an answer in memory, forever.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

LONGEST_S = 10.0
"""Time limit from the start to the end of the head, and from there to the end of the body."""
HEAD_BYTES = 64 * 1024
LEAST_READ_BYTES = 128 * 1024
"""Bytes of a waiting answer that a client has to read within ``longest_s``, unless fewer are left."""


class BoundedConnection(H11Protocol):
    """A connection that is closed if the client is too slow.

    The client is too slow if the head or the body of a request takes longer than ``longest_s``, or if fewer than
    ``LEAST_READ_BYTES`` of an answer are read in that time.
    """

    longest_s = LONGEST_S
    _deadline: asyncio.TimerHandle | None = None
    _part: Any = None  #: part of a request that is awaited
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
        """Starts the timer of a part of a request when the part begins."""
        state = self.conn.their_state
        part = state if state in (h11.IDLE, h11.SEND_BODY) else None
        if part != self._part:
            self._forget()
            self._part = part
            if part is not None and not self.transport.is_closing():
                self._deadline = self.loop.call_later(self.longest_s, self.transport.close)

    def _watch_reading(self) -> None:
        """Starts the timer for reading if an answer is waiting."""
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
    """Returns the configuration that serves an application: without logging, over limited connections, without web
    sockets."""
    return uvicorn.Config(
        app,
        log_config=None,  # the default configuration would close every log handler of the process
        http=connection,
        ws="none",
        log_level="error",
        server_header=False,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )
