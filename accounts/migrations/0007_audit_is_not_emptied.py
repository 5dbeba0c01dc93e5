"""The trail is not emptied either: a trigger for rows does not see TRUNCATE."""

from __future__ import annotations

from django.db import migrations

FORWARD = """
CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON accounts_auditevent
FOR EACH STATEMENT EXECUTE FUNCTION trainhall_audit_is_immutable();
"""
BACKWARD = "DROP TRIGGER audit_is_not_emptied ON accounts_auditevent;"


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_bound_tokens")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
