"""A run, served: jobs and replies between the server and its workers, as frames over a socket.

A frame is its length (8 bytes) and its bytes. A job is a JSON document. Replies are one JSON frame with the status,
kind and size of each, and one frame with their bodies.
"""

import asyncio
import json
import socket
import struct
from collections.abc import Sequence
from typing import Any

from r2n.serving.replies import Reply

HEAD = struct.Struct("!Q")


def framed(body: bytes) -> bytes:
    """Bytes as a frame."""
    return HEAD.pack(len(body)) + body


def job_frame(job: str, asked: Any) -> bytes:
    """A job as a frame."""
    return framed(json.dumps({"job": job, "asked": asked}).encode())


def read_job(connection: socket.socket) -> tuple[str, Any] | None:
    """The next job; None where the other side has gone."""
    body = read_frame(connection)
    if body is None:
        return None
    document = json.loads(body)
    return document["job"], document["asked"]


def read_frame(connection: socket.socket) -> bytes | None:
    """The next frame; None where the other side has gone."""
    head = _exactly(connection, HEAD.size)
    return None if head is None else _exactly(connection, HEAD.unpack(head)[0])


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 2**20))
        if not part:
            return None
        parts += part
    return bytes(parts)


def replies_frame(replies: Sequence[Reply], *, is_last: bool = False) -> bytes:
    """Replies as frames; `is_last`: this worker takes no other job."""
    heads = [{"status": reply.status, "kind": reply.kind, "size": len(reply.body)} for reply in replies]
    head = json.dumps({"replies": heads, "is_last": is_last}).encode()
    return framed(head) + framed(b"".join(reply.body for reply in replies))


async def read_replies(reader: asyncio.StreamReader) -> tuple[list[Reply], bool]:
    """The replies to a job, and whether the worker takes another."""
    head = json.loads(await _frame(reader))
    body, start, replies = await _frame(reader), 0, []
    for part in head["replies"]:
        replies.append(Reply(part["status"], part["kind"], body[start : start + part["size"]]))
        start += part["size"]
    return replies, head["is_last"]


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = HEAD.unpack(await reader.readexactly(HEAD.size))[0]
    return await reader.readexactly(size)
