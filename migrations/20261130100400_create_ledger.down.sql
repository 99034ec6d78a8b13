DROP TABLE iit_schema.iit_audit_log;
DROP TABLE iit_schema.iit_pending_action_history;
DROP TABLE iit_schema.iit_pending_actions;
