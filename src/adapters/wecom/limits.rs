//! What WeCom drops without a word.
//!
//! Source: developer.work.weixin.qq.com, 访问频率限制 (path 90312): an app may send one member 30 messages a
//! minute and 1,000 an hour; what exceeds that is dropped, and the answer is `errcode` 0 all the same.
//! The third limit, 200 person-times a day for each seat of the company's plan, can't be counted here: no
//! call tells the seats.

use std::time::Duration;

/// At most `messages` within `window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// How many.
    pub messages: i64,
    /// By the time they were sent.
    pub window: Duration,
}

/// The time of a message is when its answer came; of one whose sender died, when it left, and no call
/// takes longer than this.
const TRANSIT: Duration = Duration::from_secs(10);

/// What one member gets at most.
pub const PER_MEMBER: [Limit; 2] = [
    Limit {
        messages: 30,
        window: Duration::from_secs(60).saturating_add(TRANSIT),
    },
    Limit {
        messages: 1_000,
        window: Duration::from_secs(3_600).saturating_add(TRANSIT),
    },
];
