//! The data dictionary table: REDCap's API form (18 keys) or its download form (long headers).

use std::collections::HashMap;

use crate::types::dictionary::{Choice, Field, FieldKind};

use super::{
    super::error::{EdcError, Warning},
    table::{Table, TableRow},
};

/// API keys and the start of the download's long header, both without punctuation.
const COLUMNS: [(&str, &str); 18] = [
    ("field_name", "variablefieldname"),
    ("form_name", "formname"),
    ("section_header", "sectionheader"),
    ("field_type", "fieldtype"),
    ("field_label", "fieldlabel"),
    ("select_choices_or_calculations", "choices"),
    ("field_note", "fieldnote"),
    (
        "text_validation_type_or_show_slider_number",
        "textvalidationtype",
    ),
    ("text_validation_min", "textvalidationmin"),
    ("text_validation_max", "textvalidationmax"),
    ("identifier", "identifier"),
    ("branching_logic", "branchinglogic"),
    ("required_field", "requiredfield"),
    ("custom_alignment", "customalignment"),
    ("question_number", "questionnumber"),
    ("matrix_group_name", "matrixgroup"),
    ("matrix_ranking", "matrixranking"),
    ("field_annotation", "fieldannotation"),
];

/// A metadata header in its API form; an unknown one as it is.
#[must_use]
pub fn column(header: &str) -> String {
    let plain: String = header
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    COLUMNS
        .iter()
        .find(|(key, long)| header == *key || plain.starts_with(long))
        .map_or_else(|| header.to_owned(), |(key, _)| (*key).to_owned())
}

/// The fields of a dictionary, in its order.
///
/// # Errors
/// [`EdcError::Faulty`] with the line: a missing column, a field without name or form, a field twice,
/// an unknown field type, no field at all.
pub fn fields(table: &Table, warnings: &mut Vec<Warning>) -> Result<Vec<Field>, EdcError> {
    for name in ["field_name", "form_name", "field_type"] {
        table.require(
            name,
            "write a REDCap data dictionary, as downloaded or as exported by the API",
        )?;
    }
    let absent: Vec<&str> = [
        "select_choices_or_calculations",
        "text_validation_type_or_show_slider_number",
        "branching_logic",
        "required_field",
    ]
    .into_iter()
    .filter(|name| table.position(name).is_none())
    .collect();
    if !absent.is_empty() {
        warnings.push(table.warning(format!(
            "has no column {}; nothing that depends on it is checked",
            absent.join(", ")
        )));
    }
    let blank_is_na = written_by_r(table);
    if blank_is_na {
        warnings
            .push(table.warning("writes NA for blank cells, which were read as blank".to_owned()));
    }
    let mut lines: HashMap<String, u64> = HashMap::with_capacity(table.rows.len());
    let mut fields = Vec::with_capacity(table.rows.len());
    for row in &table.rows {
        let field = field(table, row, blank_is_na)?;
        if let Some(first) = lines.insert(field.name.clone(), row.line) {
            return Err(table.fault(
                row.line,
                &format!(
                    "field `{}` stands here again, first in line {first}",
                    field.name
                ),
                "keep one of them",
            ));
        }
        warn_of_choices(table, &field, warnings);
        fields.push(field);
    }
    if fields.is_empty() {
        return Err(table.fault(1, "lists no field", "export the data dictionary again"));
    }
    Ok(fields)
}

/// R writes blanks as `NA`; in these columns NA can mean nothing else.
fn written_by_r(table: &Table) -> bool {
    [
        "identifier",
        "required_field",
        "matrix_ranking",
        "text_validation_type_or_show_slider_number",
    ]
    .iter()
    .any(|column| table.rows.iter().any(|row| table.cell(row, column) == "NA"))
}

fn field(table: &Table, row: &TableRow, blank_is_na: bool) -> Result<Field, EdcError> {
    let cell = |column: &str| match table.cell(row, column) {
        "NA" if blank_is_na => "",
        text => text,
    };
    let name = table.cell(row, "field_name").to_owned();
    if name.is_empty() {
        return Err(table.fault(
            row.line,
            "the field has no name",
            "name it or delete the row",
        ));
    }
    let form = table.cell(row, "form_name").to_owned();
    if form.is_empty() {
        return Err(table.fault(
            row.line,
            &format!("field `{name}` stands on no form"),
            "write its form name",
        ));
    }
    let kind = kind(cell("field_type")).ok_or_else(|| {
        table.fault(
            row.line,
            &format!("field `{name}` has the type `{}`, which REDCap does not know", cell("field_type")),
            "write one of text, notes, dropdown, radio, checkbox, yesno, truefalse, slider, calc, file, descriptive, sql",
        )
    })?;
    let written = cell("select_choices_or_calculations");
    Ok(Field {
        label: cell("field_label").to_owned(),
        validation: cell("text_validation_type_or_show_slider_number").to_ascii_lowercase(),
        min: cell("text_validation_min").to_owned(),
        max: cell("text_validation_max").to_owned(),
        choices: match kind {
            FieldKind::Dropdown | FieldKind::Radio | FieldKind::Checkbox => choices(written),
            FieldKind::YesNo => choices("1, Yes | 0, No"),
            FieldKind::TrueFalse => choices("1, True | 0, False"),
            _ => Vec::new(),
        },
        calculation: if kind == FieldKind::Calc {
            written.to_owned()
        } else {
            String::new()
        },
        branching: cell("branching_logic").to_owned(),
        required: is_yes(cell("required_field")),
        identifier: is_yes(cell("identifier")),
        annotation: cell("field_annotation").to_owned(),
        name,
        form,
        kind,
    })
}

fn kind(written: &str) -> Option<FieldKind> {
    Some(match written.to_ascii_lowercase().as_str() {
        "text" => FieldKind::Text,
        "notes" | "textarea" => FieldKind::Notes,
        "dropdown" | "select" => FieldKind::Dropdown,
        "radio" => FieldKind::Radio,
        "checkbox" => FieldKind::Checkbox,
        "yesno" => FieldKind::YesNo,
        "truefalse" => FieldKind::TrueFalse,
        "slider" => FieldKind::Slider,
        "calc" => FieldKind::Calc,
        "file" => FieldKind::File,
        "descriptive" => FieldKind::Descriptive,
        "sql" => FieldKind::Sql,
        _ => return None,
    })
}

fn is_yes(written: &str) -> bool {
    matches!(
        written.to_ascii_lowercase().as_str(),
        "y" | "yes" | "1" | "true"
    )
}

/// `1, A | 2, B`, with or without blanks; the first comma parts code and label; a choice without a
/// comma is its own code.
#[must_use]
pub fn choices(written: &str) -> Vec<Choice> {
    written
        .split('|')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (code, label) = part.split_once(',').unwrap_or((part, part));
            Choice {
                code: code.trim().to_owned(),
                label: label.trim().to_owned(),
            }
        })
        .collect()
}

fn warn_of_choices(table: &Table, field: &Field, warnings: &mut Vec<Warning>) {
    let is_list = matches!(
        field.kind,
        FieldKind::Dropdown | FieldKind::Radio | FieldKind::Checkbox
    );
    if is_list && field.choices.is_empty() {
        warnings.push(table.warning(format!("field `{}` has no choices", field.name)));
    }
    let mut seen: HashMap<String, &str> = HashMap::new();
    for choice in &field.choices {
        let key = if field.kind == FieldKind::Checkbox {
            field.checkbox_column(&choice.code)
        } else {
            choice.code.clone()
        };
        if let Some(first) = seen.insert(key, &choice.code) {
            warnings.push(table.warning(format!(
                "choices `{first}` and `{}` of field `{}` cannot be told apart in an export",
                choice.code, field.name
            )));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(written: &str) -> Vec<(String, String)> {
        choices(written)
            .into_iter()
            .map(|c| (c.code, c.label))
            .collect()
    }

    fn expected(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(c, l)| ((*c).to_owned(), (*l).to_owned()))
            .collect()
    }

    #[test]
    fn choices_are_read_in_every_written_form() {
        assert_eq!(pairs("1, A | 2, B"), expected(&[("1", "A"), ("2", "B")]));
        assert_eq!(pairs("1, A|2, B"), expected(&[("1", "A"), ("2", "B")]));
        assert_eq!(pairs("1,A|2,B|"), expected(&[("1", "A"), ("2", "B")]));
        assert_eq!(
            pairs("-1, Yes, but late | NA, 不适用, 无"),
            expected(&[("-1", "Yes, but late"), ("NA", "不适用, 无")])
        );
        assert_eq!(
            pairs("red | green"),
            expected(&[("red", "red"), ("green", "green")])
        );
        assert_eq!(pairs(""), expected(&[]));
    }

    #[test]
    fn long_headers_of_every_redcap_age_mean_the_api_keys() {
        for (header, key) in [
            ("Variable / Field Name", "field_name"),
            ("Form Name", "form_name"),
            ("Field Type", "field_type"),
            ("Field Label", "field_label"),
            ("Field Note", "field_note"),
            (
                "Choices, Calculations, OR Slider Labels",
                "select_choices_or_calculations",
            ),
            ("Choices OR Calculations", "select_choices_or_calculations"),
            ("Identifier?", "identifier"),
            ("Branching Logic (Show field only if...)", "branching_logic"),
            ("Required Field?", "required_field"),
            ("Field Annotation", "field_annotation"),
            ("field_annotation", "field_annotation"),
            ("my own remark", "my own remark"),
        ] {
            assert_eq!(column(header), key);
        }
    }
}
