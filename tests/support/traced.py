"""The sockets of a command and of all processes that it starts, as the kernel sees them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from ipaddress import ip_address
from pathlib import Path

TRACER = "strace"
_CALLS = "connect,bind,sendto,sendmsg,sendmmsg"
_ADDRESS = re.compile(
    r"sa_family=AF_INET6?, sin6?_port=htons\((?P<port>\d+)\).*?"
    r'(?:inet_addr\("(?P<v4>[^"]+)"\)|inet_pton\(AF_INET6, "(?P<v6>[^"]+)")'
)
_FAMILY = re.compile(r"sa_family=(\w+)")
_LOCAL_FAMILIES = {"AF_UNIX", "AF_NETLINK", "AF_UNSPEC"}
_RESOLVERS = ("io.systemd.Resolve", "avahi-daemon")
"""Sockets of this machine behind which others are asked for names."""
_DNS_PORTS = {53, 853, 5353}


@cache
def why_not_traced() -> str | None:
    """Why sockets cannot be traced here; None where they can."""
    if shutil.which(TRACER) is None:
        return f"needs {TRACER} (Debian and Ubuntu: apt install strace)"
    found = subprocess.run(
        [TRACER, "-f", "--seccomp-bpf", "-e", f"trace={_CALLS}", "true"], capture_output=True, text=True, check=False
    )
    return None if found.returncode == 0 else f"{TRACER} may not trace processes here: {found.stderr.strip()[-200:]}"


def tracing(command: Sequence[str], log: Path) -> list[str]:
    """The command line that runs a command and writes its socket calls into a file."""
    return [TRACER, "-f", "-qq", "--seccomp-bpf", "-s", "40", "-e", f"trace={_CALLS}", "-o", str(log), *command]


def sent_outside(log: Path) -> list[str]:
    """The socket calls in a file that reach beyond the machine, or ask anyone for a name."""
    return [line for line in log.read_text("utf-8", "replace").splitlines() if is_outside(line)]


def is_outside(line: str) -> bool:
    """Reports whether a call reaches beyond the machine, or asks anyone for a name.

    >>> is_outside('1 connect(4, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("192.0.2.7")}, 16) = 0')
    True
    >>> is_outside('1 connect(4, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("127.0.0.53")}, 16) = 0')
    True
    >>> is_outside('1 connect(4, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = 0')
    False
    """
    if any(name in line for name in _RESOLVERS):
        return True
    addresses = list(_ADDRESS.finditer(line))
    families = set(_FAMILY.findall(line)) - _LOCAL_FAMILIES
    if not addresses:
        return bool(families)  # neither of this machine nor of a kind that is known
    for found in addresses:
        address = ip_address(found["v4"] or found["v6"])
        address = getattr(address, "ipv4_mapped", None) or address
        if not address.is_loopback or int(found["port"]) in _DNS_PORTS:
            return True
    return False


def environment(home: Path) -> dict[str, str]:
    """The environment of a user who has nothing yet; what is left behind is below ``home``."""
    for name in ("home", "tmp"):
        (home / name).mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "HOME": str(home / "home"), "TMPDIR": str(home / "tmp")}
