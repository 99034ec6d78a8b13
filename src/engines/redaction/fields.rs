//! Which fields of a dictionary identify a person: those it flags, and those whose name or label says so,
//! since many dictionaries flag nothing.

use crate::types::dictionary::{Dictionary, Field, ValueType};

use super::kind::Kind;

/// A field whose values are never shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identifying {
    /// Variable name.
    pub name: String,
    /// What people see.
    pub label: String,
    /// What its values are.
    pub kind: Kind,
    /// Its values are codes of a list, which mean nothing elsewhere.
    pub coded: bool,
}

/// The fields of `dictionary` that identify a person.
#[must_use]
pub fn identifying(dictionary: &Dictionary) -> Vec<Identifying> {
    let id = dictionary
        .record_id_field()
        .map(|field| field.name.as_str());
    dictionary
        .fields()
        .iter()
        .filter_map(|field| {
            let said = kind_of(field);
            let is_id = Some(field.name.as_str()) == id;
            let kind = match said {
                // Record ids are codes of the study, whatever they are called.
                _ if is_id && !field.identifier => return None,
                Some(kind) => kind,
                None if field.identifier => Kind::Identifier,
                None => return None,
            };
            let kind = match field.value_type() {
                ValueType::Date | ValueType::DateTime if kind != Kind::Birth => Kind::Identifier,
                _ => kind,
            };
            Some(Identifying {
                name: field.name.clone(),
                label: label(&field.label),
                kind,
                coded: matches!(field.value_type(), ValueType::Code | ValueType::Codes),
            })
        })
        .collect()
}

/// The label as it would stand before a value.
fn label(label: &str) -> String {
    label.trim().trim_end_matches([':', '：']).trim().to_owned()
}

/// What a field's own name and label say its values are; only of fields somebody types into.
fn kind_of(field: &Field) -> Option<Kind> {
    let typed = matches!(
        field.value_type(),
        ValueType::Text | ValueType::Date | ValueType::DateTime | ValueType::Integer
    );
    if !typed {
        return None;
    }
    if field.validation == "email" {
        return Some(Kind::Email);
    }
    if field.validation.starts_with("phone") {
        return Some(Kind::Phone);
    }
    let name = field.name.to_lowercase();
    let is = |names: &[&str]| {
        names.iter().any(|word| {
            name == *word
                || ["patient", "pt", "subject", "subj", "sub"]
                    .iter()
                    .any(|who| {
                        name.strip_prefix(who)
                            .is_some_and(|rest| rest.trim_start_matches('_') == *word)
                    })
        })
    };
    let label = field.label.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| label.contains(word));
    let is_date = matches!(field.value_type(), ValueType::Date | ValueType::DateTime);
    let is_text = field.value_type() == ValueType::Text;
    if is(&[
        "dob",
        "birth_date",
        "birthdate",
        "birthday",
        "date_of_birth",
        "brthdtc",
        "brthdt",
        "birthdtc",
    ]) || says(&[
        "出生日期",
        "出生年月",
        "生日",
        "date of birth",
        "birth date",
        "birthdate",
    ]) {
        return Some(Kind::Birth);
    }
    if is_date {
        return None;
    }
    if is(&[
        "idcard",
        "id_card",
        "id_no",
        "id_number",
        "national_id",
        "sfz",
        "sfzh",
        "passport",
        "passport_no",
    ]) || says(&["身份证", "证件号", "护照", "passport", "national id"])
    {
        return Some(Kind::Certificate);
    }
    if is(&[
        "phone",
        "tel",
        "telephone",
        "mobile",
        "cell",
        "phone_number",
        "cellphone",
        "wechat",
        "qq",
    ]) || says(&[
        "手机",
        "联系电话",
        "电话号",
        "联系方式",
        "微信号",
        "phone",
        "telephone",
    ]) {
        return Some(Kind::Phone);
    }
    if is(&[
        "mrn",
        "zyh",
        "bah",
        "inpatient_no",
        "inpatient_id",
        "hospital_no",
        "hospital_id",
        "admission_no",
        "outpatient_no",
        "chart_no",
        "medical_record_number",
        "case_no",
    ]) || says(&[
        "住院号",
        "病案号",
        "病历号",
        "门诊号",
        "就诊卡",
        "就诊号",
        "登记号",
        "医保号",
        "社保号",
        "medical record number",
        "hospital number",
    ]) {
        return Some(Kind::Hospital);
    }
    if !is_text {
        return None;
    }
    if is(&["email", "e_mail", "mail"]) || says(&["邮箱", "电子邮件", "e-mail", "email"]) {
        return Some(Kind::Email);
    }
    if is(&[
        "address",
        "addr",
        "home_address",
        "street",
        "postal_address",
    ]) || says(&["住址", "地址", "户籍", "籍贯", "home address", "street"])
    {
        return Some(Kind::Address);
    }
    if is(&["bank_card", "bank_account", "card_no"]) || says(&["银行卡", "银行账"]) {
        return Some(Kind::Bank);
    }
    let is_name = is(&[
        "name",
        "full_name",
        "fullname",
        "first_name",
        "last_name",
        "firstname",
        "lastname",
        "surname",
        "xm",
        "initials",
        "guardian_name",
        "contact_name",
        "name_cn",
        "name_pinyin",
    ]) || says(&[
        "姓名",
        "patient name",
        "full name",
        "first name",
        "last name",
    ]);
    is_name.then_some(Kind::Name)
}
