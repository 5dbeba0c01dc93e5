"""Which feed tells of a topic."""

from __future__ import annotations

from functools import partial

from metrics import snapshot
from metrics.feeds import Database, Feed, LinesFeed, PointsFeed, StateFeed
from metrics.list_feed import ListsFeed
from metrics.topics import Topic


def source_of(topic: Topic) -> str:
    """Topics of one source share one reading: all workers of a job, all lists."""
    match topic.kind:
        case "jobs" | "cluster" | "inbox":
            return topic.kind
    return f"{topic.kind}/{topic.id}"


def feed_of(topic: Topic, database: Database) -> Feed:
    source = source_of(topic)
    match topic.kind:
        case "points":
            return PointsFeed(source, topic.id, database)
        case "logs":
            return LinesFeed(source, topic.id, database)
        case "job":
            return StateFeed(source, database, partial(snapshot.job, topic.id), numbered=True)
        case "namespace":
            return StateFeed(source, database, partial(snapshot.namespace, topic.id), numbered=False, pace=1)
        case "cluster":
            return StateFeed(source, database, snapshot.clusters, numbered=False, pace=1)
        case "inbox":
            return StateFeed(source, database, dict, numbered=False)
    return ListsFeed(database)
