DROP TABLE iit_schema.iit_placeholders;
