-- Tables that are updated at every step or message: vacuumed by their dead rows, not by their size, since
-- most rows of a grown table are settled and never change again. iit_jobs has such settings already.
ALTER TABLE iit_schema.iit_task_run SET
    (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
ALTER TABLE iit_schema.iit_outbox SET
    (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
ALTER TABLE iit_schema.iit_outbox_parts SET
    (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
