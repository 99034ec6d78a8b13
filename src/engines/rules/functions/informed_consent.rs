//! `informed_consent`: nobody is enrolled before he consented.

use super::{Args, NamedFunction, date, is_absent, shown};
use crate::engines::rules::{eval::Eval, moment::Order, names::RefId, result::Reason, typing::Ty};

/// The informed consent exists and is not later than the enrolment.
#[derive(Debug)]
struct InformedConsent {
    consent: RefId,
    enrollment: RefId,
}

pub(super) fn make(args: &mut Args<'_, '_>) -> Option<Box<dyn NamedFunction>> {
    let consent = args.role_field("consent_date", Ty::Date);
    let enrollment = args.role_field("enrollment_date", Ty::Date);
    Some(Box::new(InformedConsent {
        consent: consent?,
        enrollment: enrollment?,
    }))
}

impl NamedFunction for InformedConsent {
    fn fields(&self) -> Vec<RefId> {
        vec![self.consent, self.enrollment]
    }

    /// Enrolled without any consent on file is a violation and no query; who is not enrolled yet is undecided.
    fn decide<'a>(&'a self, eval: &Eval<'_, 'a>) -> Option<bool> {
        let enrollment = date(eval, self.enrollment);
        if enrollment.is_some() && is_absent(eval, self.consent) {
            return Some(false);
        }
        let consent = date(eval, self.consent);
        let (consent, enrollment) = (consent?, enrollment?);
        let answer = consent.compare(Order::LessEqual, enrollment);
        if answer.is_none() {
            for (field, moment) in [(self.consent, consent), (self.enrollment, enrollment)] {
                if moment.is_partial() {
                    eval.doubt(Reason::PartialDate, Some(field));
                }
            }
        }
        answer
    }

    fn detail(&self, eval: &Eval<'_, '_>) -> String {
        let enrollment = shown(eval, self.enrollment);
        if is_absent(eval, self.consent) {
            format!("已于 {enrollment} 入组，但没有知情同意日期")
        } else {
            format!(
                "入组日期 {enrollment} 早于知情同意日期 {}",
                shown(eval, self.consent)
            )
        }
    }

    fn role(&self, field: RefId) -> Option<&'static str> {
        if field == self.consent {
            Some("知情同意日期")
        } else {
            Some("入组日期")
        }
    }

    fn words(&self) -> String {
        "知情同意日期不得晚于入组日期".to_owned()
    }
}
