"""Requests answered in bounds: so many at once, so many that wait, so long each."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from kbsource.errors import RecordError, SetupError, named_faults
from mapping.serving.operations import Request, Served

THREADS, MOST_WAITING, LONGEST_S = 4, 64, 10.0
"""Requests that are answered at once, those and what waits for a thread, and seconds until an answer is given up."""


class Answering:
    """Answers requests in threads; whoever asks is on one event loop. What takes too long keeps its thread to its end,
    so that no more than ``THREADS`` are ever at work."""

    def __init__(self, served: Served, *, longest_s: float = LONGEST_S) -> None:
        self._served, self._longest_s, self._n_waiting = served, longest_s, 0
        self._threads = ThreadPoolExecutor(THREADS)

    async def answer(self, operation: type[Request], asked: bytes | dict[str, Any], *, strict: bool = True) -> bytes:
        """What an operation answers, as JSON.

        Args:
            asked: parameters, as JSON or by name; without ``strict`` numbers may be texts, as in an address.

        Raises:
            RecordError: a key of ``operations.STATUS``.
        """
        try:
            if isinstance(asked, bytes):
                request = msgspec.json.decode(asked, type=operation)
            else:
                request = msgspec.convert(asked, operation, strict=strict)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RecordError("bad_request", str(error)) from error
        if self._n_waiting >= MOST_WAITING:
            raise RecordError("busy", f"{MOST_WAITING} requests are waiting; ask again")
        work = asyncio.get_running_loop().run_in_executor(self._threads, self._answer, request)
        self._n_waiting += 1
        work.add_done_callback(self._end)
        try:
            return await asyncio.wait_for(asyncio.shield(work), self._longest_s)
        except TimeoutError as error:
            raise RecordError("too_slow", f"no answer in {self._longest_s:g} s; ask for less") from error

    def _end(self, work: asyncio.Future[bytes]) -> None:
        self._n_waiting -= 1
        if not work.cancelled():
            work.exception()  # whoever gave up does not ask for it

    def _answer(self, request: Request) -> bytes:
        try:
            with named_faults():
                return msgspec.json.encode(request.answer(self._served))
        except SetupError as error:
            raise RecordError("damaged", str(error)) from error
