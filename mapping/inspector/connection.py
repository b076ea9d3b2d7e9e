"""Connections of the web servers: requests that are not sent to their end are given up.

Uvicorn bounds how long a connection may idle between requests, but neither how long the head of a request takes nor its
body. A client that sends a byte now and then would hold its connection for ever.
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


class BoundedConnection(H11Protocol):
    """A connection that is closed when the head or the body of a request takes longer than ``longest_s``."""

    longest_s = LONGEST_S
    _deadline: asyncio.TimerHandle | None = None
    _part: Any = None  #: of a request that is awaited

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
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

    def _forget(self) -> None:
        self._part = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def server_config(app: ASGIApp, *, connection: type[BoundedConnection] = BoundedConnection) -> uvicorn.Config:
    """Returns how an application is served: quietly, over bounded connections, without web sockets."""
    return uvicorn.Config(
        app,
        http=connection,
        ws="none",
        log_level="error",
        server_header=False,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )
