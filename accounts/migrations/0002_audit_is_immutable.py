"""The audit trail can only grow."""

from __future__ import annotations

from django.db import migrations

CREATE = """
CREATE FUNCTION trainhall_audit_is_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is never changed' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER audit_is_immutable BEFORE UPDATE OR DELETE ON accounts_auditevent FOR EACH ROW
    EXECUTE FUNCTION trainhall_audit_is_immutable();
"""
DROP = """
DROP TRIGGER audit_is_immutable ON accounts_auditevent;
DROP FUNCTION trainhall_audit_is_immutable();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]
    operations = [migrations.RunSQL(CREATE, DROP)]
