"""Decides what the files of a run look like to Spark: every field with its type; reads none of them.

The log's contract is docs/log-format.md. A field that this page does not know is ignored, as there.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

LOG_VERSION: Final = 1
LINE_BYTES_MAX: Final = 1 << 20
CORRUPT: Final = "_corrupt"

TEXT: Final = StringType()
NUMBER: Final = DoubleType()
INTEGER: Final = LongType()
FLAG: Final = BooleanType()


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, type_) for name, type_ in fields.items()])


# What every line has, and the fields of all kinds together; a name means the same in every kind.
COMMON: Final = struct(v=INTEGER, t=NUMBER, host=TEXT, run=TEXT, proc=TEXT, kind=TEXT)

PREDICATE: Final = struct(
    attribute=TEXT,
    op=TEXT,
    type=TEXT,
    texts=ArrayType(TEXT),
    numbers=ArrayType(NUMBER),
    dates=ArrayType(NUMBER),
    flags=ArrayType(FLAG),
)

FIELDS: Final = StructType(
    [
        *struct(
            version=TEXT,
            broker=TEXT,
            address=TEXT,
            client=TEXT,
            peer=TEXT,
            role=TEXT,
            policy=TEXT,
            reason=TEXT,
            code=TEXT,
            message=TEXT,
            resumed=FLAG,
            ended=FLAG,
            holding=FLAG,
            id=TEXT,
            time=NUMBER,
            ack_s=NUMBER,
            latency_s=NUMBER,
            hops=INTEGER,
            to=ArrayType(TEXT),
            text=TEXT,
            filter=ArrayType(PREDICATE),
            texts=MapType(TEXT, TEXT),
            integers=MapType(TEXT, INTEGER),
            floats=MapType(TEXT, NUMBER),
            dates=MapType(TEXT, NUMBER),
            flags=MapType(TEXT, FLAG),
            subscription=TEXT,
            events=ArrayType(TEXT),
            fault=TEXT,
            value=NUMBER,
            for_s=NUMBER,
            lasted_s=NUMBER,
            count=INTEGER,
            used_bytes=INTEGER,
            watermark_bytes=INTEGER,
            memory_bytes=INTEGER,
            records_in=INTEGER,
            records_out=INTEGER,
            bytes_in=INTEGER,
            bytes_out=INTEGER,
            queue_length=INTEGER,
            dropped=INTEGER,
            publications=INTEGER,
            unwanted=INTEGER,
            subscriptions=INTEGER,
            advertisements=INTEGER,
            matchings=INTEGER,
            queueing_s=NUMBER,
            matching_s=NUMBER,
            cpu_s=NUMBER,
        ).fields,
        StructField("class", TEXT),
    ]
)

LINE: Final = StructType([*COMMON.fields, *FIELDS.fields, StructField(CORRUPT, TEXT)])

KINDS: Final = frozenset(
    (
        "start",
        "ready",
        "stop",
        "link_up",
        "link_down",
        "client_up",
        "client_down",
        "dial_failed",
        "error",
        "refuse",
        "refused",
        "pause",
        "resume",
        "memory",
        "counts",
        "load",
        "publish",
        "deliver",
        "advertise",
        "unadvertise",
        "subscribe",
        "unsubscribe",
        "detect",
        "connected",
        "disconnected",
        "fault",
        "heal",
        "notice",
    )
)
OTHER: Final = "other"  # what a kind that we do not know is filed under

# Which fields a kind cannot do without; a line that lacks one is of no use.
NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "publish": ("id", "client", "time"),
    "deliver": ("id", "client"),
    "subscribe": ("id", "client"),
    "unsubscribe": ("id", "client"),
    "detect": ("id", "client", "time"),
    "link_up": ("peer",),
    "link_down": ("peer",),
    "counts": ("peer", "role", "records_in", "records_out", "bytes_in", "bytes_out"),
    "load": ("publications", "unwanted"),
}

PLACE: Final = struct(file=TEXT, block=INTEGER, row=INTEGER, bytes=INTEGER)
BAD: Final = struct(reason_bad=TEXT, text_bad=TEXT)  # of a line that is no good, and then nothing else
# What bronze is called while it is made: the line in one piece, so that it is passed on and not taken apart.
WHOLE: Final = StructType([StructField("run", TEXT), *PLACE.fields, StructField("line", LINE), *BAD.fields])
# The run is the folder's name: what a line says of it is a program's word.
BRONZE: Final = StructType(
    [
        StructField("run", TEXT),
        *(field for field in COMMON.fields if field.name != "run"),
        *FIELDS.fields,
        *PLACE.fields,
        *BAD.fields,
    ]
)
QUARANTINE: Final = struct(run=TEXT, file=TEXT, offset=INTEGER, bytes=INTEGER, reason=TEXT, text=TEXT)
_CORRECTED: Final = [
    *struct(t=NUMBER, t_raw=NUMBER, error_s=NUMBER, at_s=NUMBER, host=TEXT, proc=TEXT).fields,
    *struct(time_t=NUMBER, time_error_s=NUMBER).fields,  # `time`, which is by the publisher's clock
    *FIELDS.fields,
    *PLACE.fields,
    StructField("kind_said", TEXT),
]
_FILED_UNDER: Final = struct(run=TEXT, kind=TEXT).fields
EVENTS: Final = StructType([*_CORRECTED, *_FILED_UNDER])
# What is kept: every line once, as it was read and corrected; `bronze` and `events` are two views of it.
LINES: Final = StructType([*_CORRECTED, StructField("v", INTEGER), *BAD.fields, *_FILED_UNDER])
AS_READ: Final = {"t_raw": "t", "kind_said": "kind"}  # what bronze calls them
NO_LINE: Final = "bad"  # what bad lines are filed under

# The folder of a run, beside the logs.
CLOCK: Final = struct(host=TEXT, at=NUMBER, offset_s=NUMBER, error_s=NUMBER)
VERSIONS: Final = struct(panda=TEXT, python=TEXT)
PLAN: Final = struct(
    name=TEXT,
    hosts=ArrayType(struct(name=TEXT, address=TEXT)),
    processes=ArrayType(
        struct(
            id=TEXT, host=TEXT, kind=TEXT, word=TEXT, arguments=ArrayType(TEXT), speaks=TEXT, phase=INTEGER
        )
    ),
    links=ArrayType(struct(a=TEXT, b=TEXT)),
    steps=ArrayType(
        struct(
            number=INTEGER,
            at_s=NUMBER,
            action=TEXT,
            host=TEXT,
            process=TEXT,
            fault=TEXT,
            peer=TEXT,
            value=NUMBER,
            for_s=NUMBER,
            text=TEXT,
            line=INTEGER,
        )
    ),
)
AGENT_EVENT: Final = struct(
    seq=INTEGER,
    t=NUMBER,
    kind=TEXT,
    number=INTEGER,
    action=TEXT,
    process=TEXT,
    planned=NUMBER,
    actual=NUMBER,
    lease=FLAG,
    error=TEXT,
    life=INTEGER,
    code=INTEGER,
    signal=INTEGER,
    expected=FLAG,
    peer=TEXT,
    up=FLAG,
    reason=TEXT,
    fault=TEXT,
    value=NUMBER,
    until=NUMBER,
    text=TEXT,
)
JOURNAL: Final = struct(t=NUMBER, kind=TEXT, host=TEXT, t0=NUMBER, event=AGENT_EVENT)
