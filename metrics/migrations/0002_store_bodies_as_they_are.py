"""Bodies are compressed by us or not worth compressing: PostgreSQL stores them as they are, outside the row."""

from __future__ import annotations

from django.db import migrations

TABLES = ("metrics_pointbatch", "metrics_chunk")


class Migration(migrations.Migration):
    dependencies = [("metrics", "0001_initial")]
    operations = [
        migrations.RunSQL(
            sql=[f"ALTER TABLE {table} ALTER COLUMN body SET STORAGE EXTERNAL" for table in TABLES],
            reverse_sql=[f"ALTER TABLE {table} ALTER COLUMN body SET STORAGE EXTENDED" for table in TABLES],
        )
    ]
