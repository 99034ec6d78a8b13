//! What Dify says, read leniently: versions differ in which keys are there and which are null. Only the text
//! must be there; a record without it is passed over.

use serde::Deserialize;
use serde_json::Value;

use super::DifyError;
use crate::types::protocol::Found;

#[derive(Deserialize)]
struct Answer {
    records: Option<Vec<Value>>,
}

/// The passages of an answer, best first as Dify ranks them.
///
/// # Errors
/// [`DifyError::Unreadable`]: no JSON object with `records`.
pub fn read(body: &[u8]) -> Result<Vec<Found>, DifyError> {
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|_| DifyError::Unreadable("it is no JSON of this API"))?;
    let records = answer
        .records
        .ok_or(DifyError::Unreadable("it has no records"))?;
    Ok(records.iter().filter_map(passage).collect())
}

fn passage(record: &Value) -> Option<Found> {
    let segment = record.get("segment")?;
    let text = |value: Option<&Value>| {
        let said = value?.as_str()?.replace('\0', "");
        let said = said.trim();
        (!said.is_empty()).then(|| said.to_owned())
    };
    let mut said = text(segment.get("content"))?;
    // Question and answer stand apart in datasets of that kind.
    if let Some(answer) = text(segment.get("answer")) {
        said.push('\n');
        said.push_str(&answer);
    }
    let document = segment.get("document");
    Some(Found {
        document: text(document.and_then(|document| document.get("name")))
            .unwrap_or_else(|| "知识库".to_owned()),
        version: None,
        number: None,
        section: String::new(),
        page: None,
        text: said,
    })
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_text_is_read_and_what_has_none_is_passed_over() {
        let body = json!({"query": {"content": "q"}, "records": [
            {"segment": {"content": "窗口 ±3 天", "document": {"name": "方案.docx"}}, "score": 0.9},
            {"segment": {"content": "问", "answer": "答", "document": null}, "score": null},
            {"segment": {"content": null}}, {"segment": null}, {}, 7,
        ]});
        let found = read(body.to_string().as_bytes()).unwrap();
        let told: Vec<(&str, &str)> = found
            .iter()
            .map(|f| (f.document.as_str(), f.text.as_str()))
            .collect();
        assert_eq!(told, [("方案.docx", "窗口 ±3 天"), ("知识库", "问\n答")]);
    }

    #[test]
    fn what_is_no_answer_is_refused_and_no_passages_are_an_answer() {
        for body in [
            "",
            "<html>",
            "[]",
            "{}",
            "{\"records\": null}",
            "{\"records\": {}}",
        ] {
            assert!(
                matches!(read(body.as_bytes()), Err(DifyError::Unreadable(_))),
                "{body}"
            );
        }
        assert_eq!(read(b"{\"records\": []}").unwrap(), []);
    }
}
