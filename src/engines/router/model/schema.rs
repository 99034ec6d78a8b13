//! The form of the answer, for servers that can be held to one. It is checked in any case.

use serde_json::{Value, json};

use super::MAX_INTENTS;

/// What the schema is called.
pub const NAME: &str = "intents";
/// Longest quoted part of a message, in characters.
pub const MAX_TEXT: usize = 400;
/// Longest entity, in characters.
pub const MAX_ENTITY: usize = 64;
/// Longest question, in characters.
pub const MAX_QUESTION: usize = 120;
/// Most records of one intent. More than any range a person may write.
pub const MAX_RECORDS: usize = 60;

/// JSON schema of the answer.
#[must_use]
pub fn schema() -> Value {
    let entity = json!({ "type": ["string", "null"], "maxLength": MAX_ENTITY });
    let sentence = json!({ "type": ["string", "null"], "maxLength": MAX_QUESTION });
    let properties = json!({
        "type": { "type": "string", "enum": [
            "QC_TASK", "QA_QUERY", "PROTOCOL_QA", "REPORT", "FEEDBACK", "HELP", "OUT_OF_SCOPE", "UNCLEAR"
        ] },
        "text": { "type": "string", "maxLength": MAX_TEXT },
        "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
        "record_ids": {
            "type": "array", "maxItems": MAX_RECORDS,
            "items": { "type": "string", "maxLength": MAX_ENTITY }
        },
        "visit": entity,
        "form": entity,
        "field": entity,
        "whole_project": { "type": "boolean" },
        "write": { "type": "boolean" },
        "past": { "type": "boolean" },
        "missing_info": sentence,
        "clarification_question": sentence,
    });
    let required: Vec<&String> = properties
        .as_object()
        .map(|map| map.keys().collect())
        .unwrap_or_default();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["intents"],
        "properties": { "intents": {
            "type": "array", "minItems": 1, "maxItems": MAX_INTENTS,
            "items": {
                "type": "object",
                "additionalProperties": false,
                "required": required,
                "properties": properties,
            }
        } }
    })
}
