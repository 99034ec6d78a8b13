DROP TABLE iit_schema.iit_protocol_passages;
DROP TABLE iit_schema.iit_protocol_documents;
DROP FUNCTION iit_schema.iit_protocol_phrase(TEXT);
DROP FUNCTION iit_schema.iit_protocol_vector(TEXT, TEXT);
DROP FUNCTION iit_schema.iit_protocol_tokens(TEXT);
DROP FUNCTION iit_schema.iit_fold(TEXT);
