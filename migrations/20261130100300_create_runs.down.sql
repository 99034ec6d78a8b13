DROP TABLE iit_schema.iit_task_step;
DROP TABLE iit_schema.iit_task_run;
DROP TABLE iit_schema.iit_batch_pages;
DROP TABLE iit_schema.iit_batches;
DROP FUNCTION iit_schema.iit_refuse_change();
