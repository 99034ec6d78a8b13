//! `Retry-After`: how long a server asks to be left alone, in seconds or as a date.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// Longest wait a server can ask for: a day would be a day without anybody looking.
pub const LONGEST: Duration = Duration::from_secs(15 * 60);

/// How long, at most [`LONGEST`]. A date is compared with the server's own clock, else with `now`; one that is
/// past is no wait. `None` when nothing is said, or nothing that can be read.
pub(super) fn read(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse::<f64>() {
        // A negative or absurd number is none.
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        Err(_) => {
            let date = |text: &str| DateTime::parse_from_rfc2822(text).ok();
            let servers_now = headers.get(DATE).and_then(|now| date(now.to_str().ok()?));
            let now = servers_now.map_or(now, |now| now.to_utc());
            (date(text)?.to_utc() - now).to_std().unwrap_or_default()
        }
    };
    Some(wait.min(LONGEST))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    #[test]
    fn a_wait_is_read_in_seconds_and_as_a_date_and_never_longer_than_a_quarter_of_an_hour() {
        let now = "2026-12-01T00:00:00Z".parse().unwrap();
        for (value, date, seconds) in [
            ("7", None, Some(7.0)),
            (" 0 ", None, Some(0.0)),
            ("1.5", None, Some(1.5)),
            ("86400", None, Some(900.0)),
            ("Tue, 01 Dec 2026 00:00:30 GMT", None, Some(30.0)),
            ("Wed, 02 Dec 2026 00:00:30 GMT", None, Some(900.0)),
            ("Mon, 30 Nov 2026 00:00:00 GMT", None, Some(0.0)),
            // The server's clock is two minutes behind ours.
            (
                "Mon, 30 Nov 2026 23:58:20 GMT",
                Some("Mon, 30 Nov 2026 23:58:00 GMT"),
                Some(20.0),
            ),
            ("Tue, 01 Dec 2026 00:00:30 GMT", Some("soon"), Some(30.0)),
            ("-1", None, None),
            ("NaN", None, None),
            ("inf", None, None),
            ("soon", None, None),
            ("", None, None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            if let Some(date) = date {
                headers.insert(DATE, date.parse().unwrap());
            }
            let wanted = seconds.map(Duration::from_secs_f64);
            assert_eq!(read(&headers, now), wanted, "{value}");
        }
        assert_eq!(read(&HeaderMap::new(), now), None);
    }
}
