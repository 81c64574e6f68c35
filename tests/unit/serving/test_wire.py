"""Jobs and replies as frames over a socket."""

import asyncio
import socket

from r2n.serving.replies import Reply
from r2n.serving.wire import HEAD, job_frame, read_frame, read_job, read_replies, replies_frame


def test_a_job_arrives_as_it_was_sent() -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendall(job_frame("query", [{"queries": ["\u202e\ud800"]}]))
        assert read_job(right) == ("query", [{"queries": ["\u202e\ud800"]}])


def test_where_the_other_side_has_gone_there_is_no_job() -> None:
    left, right = socket.socketpair()
    with right:
        left.sendall(HEAD.pack(10) + b"half")
        left.close()
        assert read_frame(right) is None
        assert read_job(right) is None


def test_replies_arrive_in_their_order() -> None:
    replies = [Reply(200, "a/b", b"first"), Reply(422, "c/d", b""), Reply(503, "e/f", b"\x00last")]

    async def received() -> tuple[list[Reply], bool]:
        reader = asyncio.StreamReader()
        reader.feed_data(replies_frame(replies, is_last=True))
        return await read_replies(reader)

    assert asyncio.run(received()) == (replies, True)
