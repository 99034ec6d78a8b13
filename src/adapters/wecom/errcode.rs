//! What WeCom's `errcode` means for a message we tried to send: one table.
//!
//! Source: developer.work.weixin.qq.com, 全局错误码 (path 90313), 访问频率限制 (path 90312) and the pages
//! of each call.

use std::net::IpAddr;

use super::error::SendError;
use crate::types::text::ellipsis;

/// How long an app that was refused as a whole keeps still. One message finds out whether it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Seconds before the first, second, … further try; the last one repeats.
    pub waits: &'static [u32],
    /// It does not pass by itself: somebody has to change something.
    pub needs_person: bool,
    /// The message itself could be the reason, so its tries are counted.
    pub suspects_message: bool,
}

/// It passes by itself.
const fn passing(waits: &'static [u32]) -> Pause {
    Pause {
        waits,
        needs_person: false,
        suspects_message: false,
    }
}

/// An administrator has to act. Asked again every few minutes, so that nobody has to tell us.
const ADMINISTRATOR: Pause = Pause {
    needs_person: true,
    ..passing(&[60, 120, 300])
};
/// WeCom blocks for a minute, an hour or a day and does not say which; a try costs nothing.
const FREQUENCY: Pause = passing(&[60, 300, 900, 3_600]);
const CONCURRENCY: Pause = passing(&[5, 10, 20, 40, 60]);
/// At most three quick retries, as WeCom asks. One message could be what it stumbles over.
const BUSY: Pause = Pause {
    suspects_message: true,
    ..passing(&[3, 9, 27, 300])
};
/// Somebody else's web page: a wrong address or a proxy, perhaps one that dislikes this text.
const STRANGER: Pause = Pause {
    needs_person: true,
    suspects_message: true,
    ..passing(&[30, 60, 300])
};
/// Nobody answers the phone, be it WeCom or the way there.
pub const UNREACHABLE: Pause = passing(&[2, 5, 15, 60]);
/// Somebody takes the call and says nothing.
pub const HANGING: Pause = passing(&[1, 5, 15, 60, 300]);

/// What a code means, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The token: a fresh one may help, once. If it does not, the app keeps still.
    Token,
    /// This message; it can't ever be sent as it is. Others can.
    Message,
    /// Every message of the app.
    App(Pause),
}

/// A row of the table.
#[derive(Debug)]
pub struct Known {
    /// WeCom's number.
    pub errcode: i64,
    /// What it means.
    pub meaning: Meaning,
    /// What to do about it.
    pub explanation: &'static str,
}

const fn known(errcode: i64, meaning: Meaning, explanation: &'static str) -> Known {
    Known {
        errcode,
        meaning,
        explanation,
    }
}

const TOKEN_REFUSED: &str = "刷新后的 access_token 仍被拒绝，请检查是否有别的程序在用同一应用的 Secret (a refreshed token was refused too; look for another program using this app's secret)";
const WRONG_SECRET: &str =
    "WECOM_SECRET 与应用不符，请从应用页重新复制 (wrong secret: copy it again from the app's page)";
const NO_SUCH_PERSON: &str = "收件人不存在或不在应用可见范围 (the recipient doesn't exist or is outside the app's visible range)";

const CARD_REFUSED: &str =
    "卡片的任务编号或按钮不合法 (WeCom does not take the card's task id or its buttons)";
const NO_SUCH_CARD: &str = "卡片不存在，或更新凭证已过期、已用过 (no such card, or the code to update it is used or too old)";

/// Every code that is treated in a way of its own.
pub static CODES: [Known; 30] = {
    use Meaning::{App, Message, Token};
    [
        known(-1, App(BUSY), "企业微信系统繁忙，稍后再试 (WeCom is busy)"),
        known(40_003, Message, NO_SUCH_PERSON),
        known(
            40_008,
            Message,
            "消息类型不被接受 (WeCom doesn't take this type of message)",
        ),
        known(
            40_013,
            App(ADMINISTRATOR),
            "WECOM_CORP_ID 无效，请从“我的企业”页复制 (wrong CorpID: copy it from the company page)",
        ),
        // The secret, not the token, whatever the number means elsewhere: a fresh token can't help.
        known(40_001, App(ADMINISTRATOR), WRONG_SECRET),
        known(40_091, App(ADMINISTRATOR), WRONG_SECRET),
        known(40_014, Token, TOKEN_REFUSED),
        known(41_001, Token, TOKEN_REFUSED),
        known(42_001, Token, TOKEN_REFUSED),
        known(
            40_056,
            App(ADMINISTRATOR),
            "WECOM_AGENT_ID 无效 (wrong agent id)",
        ),
        known(
            40_058,
            Message,
            "请求参数不合法 (WeCom calls a parameter invalid)",
        ),
        known(42_014, Message, CARD_REFUSED),
        known(
            42_015,
            Message,
            "卡片由别的应用发送，不能更新 (another app sent the card: it can't be updated)",
        ),
        known(42_016, Message, NO_SUCH_CARD),
        known(42_017, Message, CARD_REFUSED),
        known(42_018, Message, CARD_REFUSED),
        known(42_019, Message, CARD_REFUSED),
        known(42_020, Message, CARD_REFUSED),
        known(42_022, Message, NO_SUCH_CARD),
        known(
            43_012,
            Message,
            "应用未配置接收消息的 URL，不能发送带按钮的卡片；请配置回调，或设 WECOM_CARDS=off (a card with buttons needs the app's callback address: set it, or WECOM_CARDS=off)",
        ),
        known(44_004, Message, "消息内容为空 (the message is empty)"),
        known(
            45_002,
            Message,
            "消息超过长度上限 (the message is longer than WeCom allows)",
        ),
        known(
            45_009,
            App(FREQUENCY),
            "调用超过频率上限，稍后再试 (called too often)",
        ),
        known(
            45_033,
            App(CONCURRENCY),
            "并发调用超过上限，稍后再试 (too many calls at once)",
        ),
        known(
            48_002,
            App(ADMINISTRATOR),
            "应用没有发送消息接口的权限 (the app may not call this API)",
        ),
        known(
            60_011,
            Message,
            "应用无权给该成员发消息，请把成员加入应用可见范围 (no privilege: add the person to the app's visible range)",
        ),
        // The address is put in by `untrusted_ip`.
        known(60_020, App(ADMINISTRATOR), ""),
        known(60_111, Message, NO_SUCH_PERSON),
        known(81_013, Message, NO_SUCH_PERSON),
        known(
            301_002,
            App(ADMINISTRATOR),
            "WECOM_AGENT_ID 与 WECOM_SECRET 不属于同一应用 (agent id and secret belong to different apps)",
        ),
    ]
};

fn look_up(errcode: i64) -> Option<&'static Known> {
    CODES.iter().find(|known| known.errcode == errcode)
}

/// Token missing, invalid or expired: a fresh one may help, once.
#[must_use]
pub fn wants_new_token(errcode: i64) -> bool {
    look_up(errcode).is_some_and(|known| known.meaning == Meaning::Token)
}

/// The error for a non-zero `errcode` that a fresh token didn't cure. Nothing was delivered.
#[must_use]
pub fn explain(errcode: i64, errmsg: &str) -> SendError {
    let Some(known) = look_up(errcode) else {
        return SendError::Refused {
            errcode,
            permanent: false,
            explanation: format!("企业微信返回 (WeCom says): {}", ellipsis(errmsg, 200)),
        };
    };
    let explanation = match errcode {
        60_020 => untrusted_ip(errmsg),
        _ => known.explanation.to_owned(),
    };
    let pause = match known.meaning {
        Meaning::Message => {
            return SendError::Refused {
                errcode,
                permanent: true,
                explanation,
            };
        }
        Meaning::Token => ADMINISTRATOR,
        Meaning::App(pause) => pause,
    };
    SendError::Blocked {
        errcode,
        pause,
        explanation,
    }
}

/// What an answer that is not WeCom's says when it says that nothing was taken.
#[must_use]
pub fn stranger(status: u16, what: &str) -> SendError {
    let (pause, explanation) = match status {
        429 => (
            FREQUENCY,
            "HTTP 429，调用过于频繁 (called too often)".to_owned(),
        ),
        _ => (
            STRANGER,
            format!(
                "HTTP {status} 不是企业微信的回答，请检查 WECOM_API_BASE 与代理 (answer {what}: not WeCom; check WECOM_API_BASE and the proxy)"
            ),
        ),
    };
    SendError::Blocked {
        errcode: i64::from(status),
        pause,
        explanation,
    }
}

/// The sentence for 60020 names the address WeCom saw, because that is what the admin must enter.
fn untrusted_ip(errmsg: &str) -> String {
    let address = errmsg
        .split_once("from ip:")
        .and_then(|(_, rest)| rest.trim_start().split([',', ' ']).next())
        .and_then(|text| text.parse::<IpAddr>().ok())
        .map_or_else(
            || "本机出口地址 (this machine's outgoing address)".to_owned(),
            |ip| ip.to_string(),
        );
    format!("请把 {address} 加入应用的“企业可信IP” (add {address} to the app's trusted IPs)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_reads_as_one_sentence_and_says_whom_it_stops() {
        let mut codes: Vec<i64> = CODES.iter().map(|known| known.errcode).collect();
        codes.push(99_999);
        let lines: Vec<_> = codes
            .iter()
            .map(|&code| {
                let error = explain(code, "errmsg of WeCom");
                let whom = match error.pause() {
                    None => "this message".to_owned(),
                    Some(pause) => format!(
                        "the app, {:?} s{}{}",
                        pause.waits,
                        if pause.needs_person {
                            ", needs a person"
                        } else {
                            ""
                        },
                        if pause.suspects_message {
                            ", counted"
                        } else {
                            ""
                        },
                    ),
                };
                format!("{error}\n    {whom}")
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn no_code_stands_in_the_table_twice_and_no_pause_is_without_a_wait() {
        for known in &CODES {
            let rows = CODES.iter().filter(|other| other.errcode == known.errcode);
            assert_eq!(rows.count(), 1, "{}", known.errcode);
            if let Meaning::App(pause) = known.meaning {
                assert!(pause.waits.iter().all(|wait| *wait > 0) && !pause.waits.is_empty());
            }
        }
    }

    #[test]
    fn an_untrusted_address_is_named() {
        let errmsg = "not allow to access from your ip, hint: [1655], from ip: 203.0.113.9, more info at https://open.work.weixin.qq.com";
        assert!(explain(60_020, errmsg).to_string().contains("203.0.113.9"));
        for odd in ["", "from ip:", "from ip: nowhere, x"] {
            assert!(
                explain(60_020, odd).to_string().contains("本机出口地址"),
                "{odd}"
            );
        }
    }
}
