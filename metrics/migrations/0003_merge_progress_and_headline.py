"""How the feed of a job takes a batch's progress and last values: in the database, inside ingest's one statement."""

from __future__ import annotations

from django.db import migrations

# The lowest rank that reports speaks for the newest attempt; whoever else reports is not shown. The estimate goes by the
# pace since the speaker's first report in this portal (from_step, from_at).
PROGRESS = """
CREATE FUNCTION metrics_progress(old jsonb, new jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN new IS NULL THEN old
        WHEN old <> '{}' AND ((new->>'attempt')::bigint, -(new->>'rank')::bigint)
            < ((old->>'attempt')::bigint, -(old->>'rank')::bigint) THEN old
        ELSE new || start || CASE
            WHEN (new->>'total')::float8 >= (new->>'step')::float8
                AND (new->>'step')::float8 > (start->>'from_step')::float8
                AND (new->>'at')::float8 > (start->>'from_at')::float8
            THEN jsonb_build_object('eta', ((new->>'total')::float8 - (new->>'step')::float8)
                * ((new->>'at')::float8 - (start->>'from_at')::float8)
                / ((new->>'step')::float8 - (start->>'from_step')::float8))
            ELSE '{}' END
        END
    FROM (SELECT CASE
        WHEN new->'attempt' = old->'attempt' AND new->'rank' = old->'rank'
            AND (old->>'from_step')::float8 <= (new->>'step')::float8
        THEN jsonb_build_object('from_step', old->'from_step', 'from_at', old->'from_at')
        ELSE jsonb_build_object('from_step', new->'step', 'from_at', new->'at')
    END AS start) AS pace
$$
"""

# Up to eight keys, those seen first. Rank 0 tells their values; another rank only adds keys that rank 0 does not report.
HEADLINE = """
CREATE FUNCTION metrics_headline(old jsonb, new jsonb, leads boolean) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN new = '{}' THEN old
        WHEN (SELECT count(*) FROM jsonb_object_keys(old || new)) <= 8
            THEN CASE WHEN leads THEN old || new ELSE new || old END
        ELSE (
            SELECT jsonb_object_agg(key, value) FROM (
                SELECT key, value FROM jsonb_each(CASE WHEN leads THEN old || new ELSE new || old END)
                ORDER BY old ? key DESC, key LIMIT 8
            ) AS first_seen
        )
    END
$$
"""


class Migration(migrations.Migration):
    dependencies = [("metrics", "0002_store_bodies_as_they_are"), ("jobs", "0001_initial")]
    operations = [
        migrations.RunSQL(PROGRESS, "DROP FUNCTION metrics_progress(jsonb, jsonb)"),
        migrations.RunSQL(HEADLINE, "DROP FUNCTION metrics_headline(jsonb, jsonb, boolean)"),
    ]
