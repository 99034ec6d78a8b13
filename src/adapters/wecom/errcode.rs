//! What WeCom's `errcode` means for a message we tried to send.
//!
//! Source: developer.work.weixin.qq.com, 全局错误码 (path 90313) and the pages of each call.

use std::net::IpAddr;
use std::time::Duration;

use super::error::SendError;
use crate::types::text::ellipsis;

/// Token missing, invalid or expired: a fresh one may help, once.
#[must_use]
pub fn wants_new_token(errcode: i64) -> bool {
    matches!(errcode, 40_014 | 41_001 | 42_001)
}

/// The error for a non-zero `errcode` that a fresh token didn't cure. Nothing was delivered.
#[must_use]
pub fn explain(errcode: i64, errmsg: &str) -> SendError {
    let busy = |seconds| SendError::Busy {
        errcode,
        retry_after: Duration::from_secs(seconds),
    };
    let refused = |explanation: &str| SendError::Refused {
        errcode,
        permanent: true,
        explanation: explanation.to_owned(),
    };
    let rejected = |explanation: &str| SendError::TokenRejected {
        errcode,
        explanation: explanation.to_owned(),
    };
    match errcode {
        -1 => busy(3),
        45_033 => busy(5),
        45_009 => busy(60),
        code if wants_new_token(code) => rejected(
            "刷新后的 access_token 仍被拒绝，请检查是否有别的程序在用同一应用的 Secret (a refreshed token was refused too; look for another program using this app's secret)",
        ),
        40_001 | 40_091 => rejected(
            "WECOM_SECRET 与应用不符，请从应用页重新复制 (wrong secret: copy it again from the app's page)",
        ),
        40_013 => rejected(
            "WECOM_CORP_ID 无效，请从“我的企业”页复制 (wrong CorpID: copy it from the company page)",
        ),
        301_002 => refused(
            "WECOM_AGENT_ID 与 WECOM_SECRET 不属于同一应用 (agent id and secret belong to different apps)",
        ),
        40_056 => refused("WECOM_AGENT_ID 无效 (wrong agent id)"),
        60_020 => refused(&untrusted_ip(errmsg)),
        60_011 => refused(
            "应用无权给该成员发消息，请把成员加入应用可见范围 (no privilege: add the person to the app's visible range)",
        ),
        81_013 | 60_111 | 40_003 => refused(
            "收件人不存在或不在应用可见范围 (the recipient doesn't exist or is outside the app's visible range)",
        ),
        45_002 => refused("消息超过长度上限 (the message is longer than WeCom allows)"),
        44_004 => refused("消息内容为空 (the message is empty)"),
        40_058 => refused("请求参数不合法 (WeCom calls a parameter invalid)"),
        48_002 => refused("应用没有发送消息接口的权限 (the app may not call this API)"),
        _ => SendError::Refused {
            errcode,
            permanent: false,
            explanation: format!("企业微信返回 (WeCom says): {}", ellipsis(errmsg, 200)),
        },
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
    fn each_known_code_reads_as_one_sentence() {
        let codes = [
            -1, 40_001, 40_014, 40_056, 45_002, 45_009, 45_033, 60_011, 81_013, 301_002, 99_999,
        ];
        let sentences: Vec<_> = codes
            .iter()
            .map(|&code| explain(code, "errmsg of WeCom").to_string())
            .collect();
        insta::assert_snapshot!(sentences.join("\n"));
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
