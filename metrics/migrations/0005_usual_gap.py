from importlib import import_module

from django.db import migrations

before = import_module("metrics.migrations.0003_merge_progress_and_headline")

# As before, and `gap`: how many seconds usually lie between two reports, the newer ones counting more.
AND_GAP = """
CREATE OR REPLACE FUNCTION metrics_progress(old jsonb, new jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
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
            ELSE '{}' END || CASE
            WHEN new->'attempt' = old->'attempt' AND new->'rank' = old->'rank'
                AND (new->>'at')::float8 >= (old->>'at')::float8
            THEN jsonb_build_object('gap', CASE WHEN old ? 'gap'
                THEN 0.7 * (old->>'gap')::float8 + 0.3 * ((new->>'at')::float8 - (old->>'at')::float8)
                ELSE (new->>'at')::float8 - (old->>'at')::float8 END)
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


class Migration(migrations.Migration):
    dependencies = [("metrics", "0004_layouts_and_sources")]
    operations = [
        migrations.RunSQL(AND_GAP, before.PROGRESS.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")),
    ]
