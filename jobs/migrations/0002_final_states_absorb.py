"""The database itself refuses to move a job out of a final state."""

from __future__ import annotations

from django.db import migrations

CREATE = """
CREATE FUNCTION trainhall_final_states_absorb() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job % is %: a final state is never left', OLD.id, OLD.status USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER final_states_absorb BEFORE UPDATE OF status ON jobs_job FOR EACH ROW
    WHEN (OLD.status IN ('succeeded', 'failed', 'cancelled') AND NEW.status IS DISTINCT FROM OLD.status)
    EXECUTE FUNCTION trainhall_final_states_absorb();
"""
DROP = """
DROP TRIGGER final_states_absorb ON jobs_job;
DROP FUNCTION trainhall_final_states_absorb();
"""


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial")]
    operations = [migrations.RunSQL(CREATE, DROP)]
