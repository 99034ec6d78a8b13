//! Numbers, read strictly: what a person would not write as a number is none.

/// A decimal number: optional sign, digits with an optional point, optional exponent; finite.
///
/// Refuses `inf`, `nan`, `0x10`, `5,3`, `<5`, `5.`, `1_000`.
pub(super) fn parse(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let well_formed = match fraction {
        None => is_digits(whole),
        Some(fraction) => is_digits(fraction) && (whole.is_empty() || is_digits(whole)),
    } && exponent
        .is_none_or(|e| is_digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
    if !well_formed {
        return None;
    }
    text.parse::<f64>().ok().filter(|x| x.is_finite())
}

/// A whole number: optional sign, digits.
pub(super) fn parse_integer(text: &str) -> Option<f64> {
    if is_digits(text.strip_prefix(['+', '-']).unwrap_or(text)) {
        text.parse::<f64>().ok().filter(|x| x.is_finite())
    } else {
        None
    }
}

/// A decimal number whose decimal sign is a comma.
pub(super) fn parse_comma(text: &str) -> Option<f64> {
    if text.contains('.') {
        return None;
    }
    parse(&text.replace(',', "."))
}

/// The shortest text a person would write for the number.
pub(super) fn show(x: f64) -> String {
    if x.fract() == 0.0 && x.abs() < 1e15 {
        // `+ 0.0` turns -0 into 0.
        format!("{:.0}", x + 0.0)
    } else {
        format!("{x}")
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_people_write_are_read() {
        for (text, x) in [
            ("18", 18.0),
            ("-4.50", -4.5),
            ("+3", 3.0),
            (".5", 0.5),
            ("1e3", 1000.0),
            ("2.5E-1", 0.25),
            ("007", 7.0),
        ] {
            assert_eq!(parse(text), Some(x), "{text}");
        }
        assert_eq!(parse_comma("5,3"), Some(5.3));
        assert_eq!(parse_integer("-12"), Some(-12.0));
    }

    #[test]
    fn everything_else_is_no_number() {
        for text in [
            "", " ", "inf", "-inf", "NaN", "infinity", "0x10", "5,3", "<5", ">5", "5.", ".", "-",
            "+", "e5", "1e", "1e+", "1_000", "1 000", "１８", "5 mg", "1e999", "--5", "1.2.3",
            "5%",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        for text in ["5.0", "1e3", "", "5,3"] {
            assert_eq!(parse_integer(text), None, "{text}");
        }
        for text in ["5.3", "5,3,1", ""] {
            assert_eq!(parse_comma(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_shown_without_a_useless_fraction() {
        assert_eq!(show(18.0), "18");
        assert_eq!(show(-0.0), "0");
        assert_eq!(show(2.5), "2.5");
    }
}
