//! `age_requirement`: who is not of age needs a guardian's consent.

use super::{Args, NamedFunction, date, is_absent, read, shown};
use crate::engines::rules::{eval::Eval, names::RefId, number, typing::Ty};

/// The subject is of age, or a guardian has consented.
#[derive(Debug)]
struct AgeRequirement {
    age: RefId,
    guardian: Option<RefId>,
    min_age: f64,
}

pub(super) fn make(args: &mut Args<'_, '_>) -> Option<Box<dyn NamedFunction>> {
    let min_age = match args.given.get("min_age") {
        None => 18.0,
        Some(value) => match value.as_f64().filter(|age| (0.0..=150.0).contains(age)) {
            Some(age) => age,
            None => return args.fault("min_age", "is a number of years".to_owned()),
        },
    };
    let age = args.role_field("age", Ty::Num);
    let has_guardian = args.given.contains_key("guardian_consent_date")
        || args.names.study().role("guardian_consent_date").is_some();
    let guardian = has_guardian
        .then(|| args.role_field("guardian_consent_date", Ty::Date))
        .flatten();
    Some(Box::new(AgeRequirement {
        age: age?,
        guardian,
        min_age,
    }))
}

impl NamedFunction for AgeRequirement {
    fn fields(&self) -> Vec<RefId> {
        std::iter::once(self.age).chain(self.guardian).collect()
    }

    fn decide<'a>(&'a self, eval: &Eval<'_, 'a>) -> Option<bool> {
        let age = read(eval, self.age, |value| {
            value.number().filter(|age| *age >= 0.0)
        });
        if age.is_some_and(|age| age >= self.min_age) {
            return Some(true);
        }
        match self.guardian {
            Some(guardian) if !is_absent(eval, guardian) => date(eval, guardian).map(|_| true),
            _ => age.map(|_| false),
        }
    }

    fn detail(&self, eval: &Eval<'_, '_>) -> String {
        let min = number::show(self.min_age);
        let age = shown(eval, self.age);
        match self.guardian {
            Some(_) => format!("年龄 {age} 岁，不足 {min} 岁，且没有法定监护人知情同意日期"),
            None => format!("年龄 {age} 岁，不足 {min} 岁"),
        }
    }

    fn words(&self) -> String {
        format!(
            "受试者应满 {} 岁，或有法定监护人知情同意",
            number::show(self.min_age)
        )
    }
}
