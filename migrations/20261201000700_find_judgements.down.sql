DROP INDEX iit_schema.iit_task_run_parent;
