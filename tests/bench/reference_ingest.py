"""The least a packed-row ingest can be: a bare ASGI application that decodes a batch, packs it and inserts one row.

No token, no check of any point, no feed, no answer to a repeat. What bench_ingest.py measures ours against.
"""

from __future__ import annotations

import os
import uuid
from typing import Any

import msgspec
import numpy as np
import orjson
from psycopg_pool import AsyncConnectionPool


class Series(msgspec.Struct):
    key: str
    step: list[int]
    time: list[float]
    value: list[float]


class Batch(msgspec.Struct):
    batch: str
    series: list[Series]


decode = msgspec.json.Decoder(Batch).decode
pool = AsyncConnectionPool(os.environ["DATABASE_URL"], open=False, max_size=8, kwargs={"autocommit": True})


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await receive()
        await pool.open(wait=True)
        async with pool.connection() as connection:
            await connection.execute(
                "CREATE TABLE IF NOT EXISTS reference (id bigserial PRIMARY KEY, batch uuid UNIQUE, body bytea);"
                "ALTER TABLE reference ALTER COLUMN body SET STORAGE EXTERNAL"
            )
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await pool.close()
        await send({"type": "lifespan.shutdown.complete"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    batch = decode(body)
    packed = orjson.dumps([one.key for one in batch.series]) + b"".join(
        np.array(column, dtype=kind).tobytes()
        for one in batch.series
        for column, kind in ((one.step, np.int64), (one.time, np.float64), (one.value, np.float64))
    )
    async with pool.connection() as connection:
        await connection.execute(
            "INSERT INTO reference (batch, body) VALUES (%s, %s)", [uuid.UUID(batch.batch), packed]
        )
    answer = orjson.dumps({"accepted": sum(len(one.step) for one in batch.series)})
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": answer})
