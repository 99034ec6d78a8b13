ALTER TABLE iit_schema.iit_task_run RESET
    (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
ALTER TABLE iit_schema.iit_outbox RESET
    (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
ALTER TABLE iit_schema.iit_outbox_parts RESET
    (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
