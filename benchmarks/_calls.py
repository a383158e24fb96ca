"""Every call of a process that changes files, seen by its parent before the system makes it, and failed on demand.

Linux stops the child at each such call and asks its parent (`seccomp` with user notification). Unlike a preloaded
library, this also sees what libc, SQLite, FAISS and Tantivy write, from every thread and every child of the child.
"""

import array
import ctypes
import os
import platform
import re
import select
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

# Numbers of the calls on x86-64, the place of a path, of a descriptor or of a folder's descriptor before a path.
WRITES = {1: "write", 18: "pwrite64", 20: "writev"}
OPENS = {2: (None, 0), 85: (None, 0), 257: (0, 1)}
FLUSHES = {74: "fsync", 75: "fdatasync"}
LINKS = {86: (None, 0, None, 1), 265: (0, 1, 2, 3)}
MOVES = {82: (None, 0, None, 1), 264: (0, 1, 2, 3), 316: (0, 1, 2, 3)}
REMOVES = {87: (None, 0), 84: (None, 0), 263: (0, 1)}
MKDIRS = {83: (None, 0), 258: (0, 1)}
FTRUNCATE, FALLOCATE, MMAP = 77, 285, 9
OTHERS = {
    26: "msync", 40: "sendfile", 76: "truncate", 88: "symlink", 162: "sync", 266: "symlinkat",
    275: "splice", 277: "sync_file_range", 296: "pwritev", 306: "syncfs", 326: "copy_file_range",
    328: "pwritev2", 425: "io_uring_setup", 437: "openat2",
}  # fmt: skip
"""Calls that the model of a disk does not know; nothing in a collection is written by them today."""
ONLY_WITH = {2: (1, os.O_CREAT | os.O_TRUNC), 257: (2, os.O_CREAT | os.O_TRUNC), MMAP: (3, 1)}
"""Calls of interest only where an argument has one of these bits, such as MAP_SHARED."""
WATCHED = (*WRITES, *OPENS, *FLUSHES, *MOVES, *LINKS, *REMOVES, *MKDIRS, FTRUNCATE, FALLOCATE, MMAP, *OTHERS)
PROT_WRITE, AT_FDCWD, ALLOW, NOTIFY = 2, 0xFFFFFF9C, 0x7FFF0000, 0x7FC00000
RECEIVE, SEND, CONTINUE = 0xC0502100, 0xC0182101, 1
REQUEST, ANSWER = struct.Struct("<QIIiIQ6Q"), struct.Struct("<QqiI")
MARK = "/dev/null"
"""What the child writes here is kept as a mark between its calls."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call about to be made.

    Attributes:
        kind: What it does: create, write, truncate, flush, rename, link, remove, mkdir, map, mark or other.
        path: Of the file or folder.
        name: The system's name of the call, where it matters.
        target: The new path, for a rename or a link.
        data: What is written, or the text of a mark.
        offset: Where in the file, None at its end; for a truncation, its new size.
        empties: Whether the file is emptied when it is opened.
    """

    kind: str
    path: str
    name: str = ""
    target: str = ""
    data: bytes = b""
    offset: int | None = None
    empties: bool = False


def mark(text: str) -> None:
    """Leave a mark between the calls of this process."""
    descriptor = os.open(MARK, os.O_WRONLY)
    os.write(descriptor, text.encode())
    os.close(descriptor)


def watched(work: Callable[[], object], decide: Callable[[Call], int]) -> int:
    """Run `work` in a child; return its wait status.

    Args:
        work: What the child does; it ends with exit code 1 where this raises.
        decide: Takes each call and returns the error number with which it fails, 0 where it is to be made.
    """
    if platform.machine() != "x86_64" or sys.platform != "linux":
        sys.exit(f"calls are watched on Linux on x86-64 alone, and this is {sys.platform} on {platform.machine()}")
    here, there = socket.socketpair()
    child = os.fork()
    if not child:
        code = 1
        with suppress(BaseException):
            _begin(there)
            work()
            code = 0
        os._exit(code)
    there.close()
    _, descriptors, *_ = socket.recv_fds(here, 1, 1)
    if not descriptors:
        sys.exit("this system does not let a process watch the calls of its child (seccomp, Linux 5.5)")
    _answer(descriptors[0], decide)
    os.close(descriptors[0])
    here.close()
    return os.waitpid(child, 0)[1]


def _begin(channel: socket.socket) -> None:
    """Have this process watched from now on, and pass the descriptor that tells its calls to the parent."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # no new privileges, which a filter asks for
    program = _filter()
    code = ctypes.create_string_buffer(program)
    header = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    descriptor = libc.syscall(317, 1, 8, header)
    if descriptor < 0:
        channel.close()
        raise OSError(ctypes.get_errno(), "seccomp")
    socket.send_fds(channel, [b"."], [descriptor])
    os.close(descriptor)
    channel.close()


def _filter() -> bytes:
    """Return a program for the kernel: ask the parent at the watched calls, allow every other."""
    load, equal, any_bit, give = 0x20, 0x15, 0x45, 0x06
    lines: list[tuple[int, int, int, int]] = []
    for number in WATCHED:
        lines.append((load, 0, 0, 0))
        if number in ONLY_WITH:
            place, bits = ONLY_WITH[number]
            lines += [(equal, 0, 3, number), (load, 0, 0, 16 + 8 * place), (any_bit, 0, 1, bits), (give, 0, 0, NOTIFY)]
        else:
            lines += [(equal, 0, 1, number), (give, 0, 0, NOTIFY)]
    return b"".join(struct.pack("<HBBI", *line) for line in [*lines, (give, 0, 0, ALLOW)])


def _answer(descriptor: int, decide: Callable[[Call], int]) -> None:
    """Answer every call until no watched process is left."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while poll.poll()[0][1] & select.POLLIN:
        request = array.array("B", bytes(REQUEST.size))
        with suppress(FileNotFoundError):  # the process has ended meanwhile
            ioctl(descriptor, RECEIVE, request, True)
            number, pid, _, nr, _, _, *arguments = REQUEST.unpack(request)
            call = _read(pid, nr, arguments)
            error = decide(call) if call else 0
            ioctl(descriptor, SEND, ANSWER.pack(number, 0, -error, 0 if error else CONTINUE))


def _read(pid: int, number: int, args: list[int]) -> Call | None:
    """Return a call as what it does; None where it changes no file."""
    if number in WRITES:
        return _write(pid, number, args)
    if number in OPENS:
        flags = args[OPENS[number][1] + 1] if number != 85 else os.O_CREAT | os.O_TRUNC
        return Call("create", _path(pid, args, *OPENS[number]), empties=bool(flags & os.O_TRUNC))
    if number in FLUSHES:
        return Call("flush", _name(pid, args[0]), FLUSHES[number])
    if number in MOVES:
        source, target = MOVES[number][:2], MOVES[number][2:]
        return Call("rename", _path(pid, args, *source), target=_path(pid, args, *target))
    if number in LINKS:
        source, target = LINKS[number][:2], LINKS[number][2:]
        return Call("link", _path(pid, args, *source), target=_path(pid, args, *target))
    if number in REMOVES or number in MKDIRS:
        kind, places = ("remove", REMOVES) if number in REMOVES else ("mkdir", MKDIRS)
        return Call(kind, _path(pid, args, *places[number]))
    if number in (FTRUNCATE, FALLOCATE):
        size = args[1] if number == FTRUNCATE else args[2] + args[3]
        kind = "truncate" if number == FTRUNCATE else "other"
        return Call(kind, _name(pid, args[0]), "fallocate", offset=size)
    if number == MMAP:
        return Call("map", _name(pid, args[4])) if args[2] & PROT_WRITE and args[4] < 1 << 31 else None
    return Call("other", _name(pid, args[0]), OTHERS[number])


def _write(pid: int, number: int, args: list[int]) -> Call | None:
    path = _name(pid, args[0])
    if not path.startswith("/"):
        return None
    data = _memory(pid, args[1], args[2]) if number != 20 else _gathered(pid, args[1], args[2])
    if path == MARK:
        return Call("mark", path, data=data)
    return Call("write", path, WRITES[number], data=data, offset=args[3] if number == 18 else _place(pid, args[0]))


def _gathered(pid: int, address: int, count: int) -> bytes:
    parts = struct.iter_unpack("<QQ", _memory(pid, address, 16 * count))
    return b"".join(_memory(pid, start, size) for start, size in parts)


def _place(pid: int, descriptor: int) -> int | None:
    """Return where the next write to a descriptor goes, None for the end of its file."""
    text = Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text()
    found = dict(re.findall(r"^(\w+):\s*(\w+)$", text, re.MULTILINE))
    return None if int(found["flags"], 8) & os.O_APPEND else int(found["pos"])


def _path(pid: int, args: list[int], folder: int | None, place: int) -> str:
    """Return the path that an argument gives, absolute."""
    text, address = b"", args[place]
    while b"\0" not in text:  # page by page: the next page may not exist
        size = 4096 - address % 4096
        text += _memory(pid, address, size)
        address += size
    path = os.fsdecode(text[: text.index(b"\0")])
    at = args[folder] & 0xFFFFFFFF if folder is not None else AT_FDCWD
    base = str(Path(f"/proc/{pid}/cwd").readlink()) if at == AT_FDCWD else _name(pid, at)
    return os.path.normpath(os.path.join(base, path))  # noqa: PTH118, as text: the file may not exist


def _name(pid: int, descriptor: int) -> str:
    """Return what a descriptor stands for: a path, or a text that does not begin with a slash."""
    try:
        return str(Path(f"/proc/{pid}/fd/{descriptor & 0xFFFFFFFF}").readlink())
    except FileNotFoundError:
        return "closed"


def _memory(pid: int, address: int, size: int) -> bytes:
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        memory.seek(address)
        return memory.read(size)
