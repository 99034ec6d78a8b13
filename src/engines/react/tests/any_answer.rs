//! Whatever a model says.

use proptest::prelude::*;

use super::super::{decide, figures, verify::Evidence};
use super::{given, question, says, today};

fn evidence(result: &str) -> Evidence {
    Evidence::of(&[question("多少？"), given("1", result)], today())
}

/// A number as people write it.
fn spellings(value: u32, cents: u32) -> Vec<String> {
    let fraction = format!("{cents:02}");
    let thousands = {
        let digits = value.to_string();
        let mut out = String::new();
        for (at, c) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                out.push(',');
            }
            out.push(c);
        }
        out
    };
    let wide: String = format!("{value}.{fraction}")
        .chars()
        .map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap())
        .collect();
    vec![
        format!("{value}.{fraction}"),
        format!("{value}.{fraction}0"),
        format!("{thousands}.{fraction}"),
        wide,
    ]
}

proptest! {
    #[test]
    fn a_figure_of_a_result_stands_in_every_spelling(value in 0_u32..5_000_000, cents in 0_u32..100) {
        let evidence = evidence(&format!("{{\"value\":{value}.{cents:02},\"n\":7}}"));
        for spelled in spellings(value, cents) {
            let answer = format!("结果为 {spelled} 单位");
            prop_assert_eq!(evidence.unverified(&answer), Vec::<String>::new(), "{}", answer);
        }
    }

    #[test]
    fn another_whole_number_never_stands(value in 0_u32..1_000_000, other in 0_u32..1_000_000) {
        prop_assume!(value != other);
        let evidence = evidence(&format!("{{\"value\":{value}}}"));
        // Years may be read as such; they don't stand either.
        let answer = format!("共 {other} 例");
        prop_assert_eq!(evidence.unverified(&answer).len(), 1, "{}", answer);
        let answer = format!("共{other}年");
        prop_assert_eq!(evidence.unverified(&answer).len(), 1, "{}", answer);
    }

    #[test]
    fn a_mean_may_be_rounded_and_not_bent(cents in 0_u32..1_000_000, decimals in 1_usize..4) {
        let mean = f64::from(cents) / 7.0;
        let evidence = evidence(&format!("{{\"mean\":{mean}}}"));
        let rounded = format!("平均 {mean:.decimals$} 岁");
        prop_assert_eq!(evidence.unverified(&rounded), Vec::<String>::new(), "{}", rounded);
        let step = 10_f64.powi(-i32::try_from(decimals).unwrap());
        let bent = format!("平均 {:.decimals$} 岁", mean + 1.6 * step);
        prop_assert_eq!(evidence.unverified(&bent).len(), 1, "{}", bent);
    }

    #[test]
    fn a_day_nobody_gave_never_stands(days in 1_u64..4000) {
        let there = chrono::NaiveDate::from_ymd_opt(2016, 3, 2).unwrap();
        let other = there + chrono::Days::new(days);
        prop_assume!(other != today());
        let evidence = evidence(&format!("{{\"date\":\"{there}\"}}"));
        prop_assert_eq!(evidence.unverified(&format!("于 {there} 入组")), Vec::<String>::new());
        for spelled in [other.to_string(), other.format("%Y年%-m月%-d日").to_string(), other.format("%Y/%m/%d").to_string()] {
            prop_assert_eq!(evidence.unverified(&spelled), vec![spelled.clone()]);
        }
    }

    #[test]
    fn no_text_breaks_the_reading_of_it(text in "\\PC{0,80}", digits in "[0-9零一二十百约%.,年月日:例位PV -]{0,40}") {
        for text in [&text, &digits, &format!("{digits}{text}")] {
            let _ = figures::of(text);
            let named = evidence(text).unverified(text);
            // What the evidence says word for word stands: an answer is read like a result, lists apart.
            prop_assert_eq!(named, Vec::<String>::new(), "{}", text);
            let _ = decide::decide(&says(text), false, |_| false);
        }
    }
}
