"""Runs a function of a Lua module, each time in a state of its own."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any

from kbsource.site import Site
from kbsource.titles import clean_title, upper_first
from kbsource.wikitext.expansion.definitions import BoundError, Definitions, Frame, Invoke
from kbsource.wikitext.lua.host import Host

MAX_MEMORY = 24 << 20
"""Bytes that a module may take; what MediaWiki allows is twice as much, for all modules of a page together."""
MAX_NESTED = 10
"""Modules at work, each called by wikitext of the one before."""
_UNITS_A_RUN = 250  # of making a state and loading the library
_MAX_REMEMBERED_BYTES = 32 << 20
_LIBRARY = ("sandbox", "patterns", "frame", "matcher", "ustring", "language", "text", "html", "pages")
_LOADED_AT_ONCE = _LIBRARY[:3]  # the others when they are asked for
_COMPILE = b"""function(source, name)
    local compiled, problem = loadstring(source, name)
    if compiled then return string.dump(compiled), '' end
    return nil, problem
end"""
_LOAD = b"""(function()
    local load = loadstring
    return function(compiled, ...) return load(compiled)(...) end
end)()"""
_BYTECODE = "\x1b"  # no module may bring its own


def make_invoke(definitions: Definitions, site: Site, exists: Callable[[str], bool] | None = None) -> Invoke:
    """Gives what runs the modules of a wiki.

    Args:
        definitions: modules and templates of the dump.
        site: the wiki.
        exists: says whether there is an article of a title; None: there are none.
    """
    return LuaModules(definitions, site, exists or (lambda title: False))


class LuaModules:
    """The modules of one wiki; an ``Invoke``. Compiled modules are remembered; nothing else passes from run to run.

    A state that runs were to share would let one see what another left, and what a limit finds would hang on it.
    """

    def __init__(self, definitions: Definitions, site: Site, exists: Callable[[str], bool]) -> None:
        self._definitions = definitions
        self._site = site
        self._exists = exists
        self._compiler = _new_state().eval(_COMPILE)
        self._compiled: dict[str, tuple[bytes | None, str]] = {}
        self._n_bytes = 0
        self._n_running = 0
        folder = resources.files("kbsource.wikitext.lua").joinpath("library")
        self._library = {
            name: self._compile(folder.joinpath(f"{name}.lua").read_text("utf-8"), f"={name}")[0] for name in _LIBRARY
        }

    def compiled(self, name: str) -> tuple[bytes | None, str]:
        """Gives the compiled module of a name in normal form, and what is wrong where there is none."""
        found = self._compiled.get(name)
        if found is None:
            source = self._definitions.module(name)
            if source is None or source.startswith(_BYTECODE):
                found = (None, f"module '{name}' not found")
            else:
                found = self._compile(source, f"=Module:{name}")
            self._n_bytes += len(found[0] or b"")
            if self._n_bytes > _MAX_REMEMBERED_BYTES:
                self._compiled.clear()
                self._n_bytes = len(found[0] or b"")
            self._compiled[name] = found
        return found

    def library(self, name: str) -> bytes | None:
        """Gives a compiled part of the library."""
        return self._library[name]

    def __call__(self, module: str, function: str, frame: Frame) -> str | None:
        """Gives the wikitext that a function of a module returns; None where it fails."""
        import lupa.lua51

        name = upper_first(clean_title(module), self._site.lang)
        if self.compiled(name)[0] is None:
            return None
        if self._n_running >= MAX_NESTED:
            raise BoundError("depth")
        frame.spend(_UNITS_A_RUN)
        host = Host(frame, self._site, self._definitions, self, self._exists)
        self._n_running += 1
        try:
            run = self._start(host)
            text = run(f"Module:{name}".encode(), function.strip().encode())
        except lupa.lua51.LuaMemoryError as error:
            raise BoundError("memory") from error
        except lupa.lua51.LuaError as error:
            if host.bound is None and "stopped" not in str(error).split("\n", 1)[0]:
                return None
            raise host.bound or BoundError("memory") from error
        finally:
            self._n_running -= 1
        if host.bound is not None:
            raise host.bound
        return bytes(text).decode("utf-8", "replace")

    def _compile(self, source: str, name: str) -> tuple[bytes | None, str]:
        import lupa.lua51

        try:
            compiled, problem = self._compiler(source.encode("utf-8", "replace"), name.encode())
        except lupa.lua51.LuaMemoryError:
            return None, "not enough memory"
        return compiled, bytes(problem).decode("utf-8", "replace")

    def _start(self, host: Host) -> Any:
        state = _new_state()
        load, kit = state.eval(_LOAD), state.table()
        for name in _LOADED_AT_ONCE:
            run = load(self._library[name], kit, host)
        return run


def _new_state() -> Any:
    """Gives a Lua state that reaches nothing of Python but what is handed to it."""
    import lupa.lua51

    return lupa.lua51.LuaRuntime(
        encoding=None,
        register_eval=False,
        register_builtins=False,
        unpack_returned_tuples=True,
        attribute_filter=_refuse,
        max_memory=MAX_MEMORY,
    )


def _refuse(value: object, name: object, is_set: bool) -> object:
    raise AttributeError("no attribute of a Python object is open to Lua")
