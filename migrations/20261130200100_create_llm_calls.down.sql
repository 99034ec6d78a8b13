DROP TABLE iit_schema.iit_llm_providers, iit_schema.iit_llm_spend, iit_schema.iit_llm_calls, iit_schema.iit_agent_trace;
