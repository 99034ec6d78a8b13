//! Visit, form, field, whole project, past: what a request is about, where it says so plainly.

use super::message::patterns;

patterns! {
    VISIT_CODE = r"(?:^|[^a-z0-9.])(v\d{1,2}|c\d{1,2}d\d{1,3}|eot|eos)(?:[^a-z0-9.]|$|\.\s|\.$)";
    VISIT_NUMBER = r"(?:visit|访视)\s*(\d{1,2})(?:[^\d天日]|$)";
    VISIT_ORDINAL = r"第\s*(\d{1,2}|[一二三四五六七八九十])\s*(?:次|个)?(?:计划)?(?:访视|随访)";
    VISIT_NAME = r"筛选(?:期|访视)|基线(?:期|访视)?|末次访视|治疗结束访视|安全性随访|第\s*\d{1,3}\s*周(?:访视|随访)?";
    FORM = r"(?x)
        (?:不良事件|严重不良事件|ae|sae|合并用药|合并治疗|既往史|病史|既往病史|人口学(?:资料|信息)?
        |生命体征|实验室检查|体格检查|心电图|影像学?|知情同意|入排标准|入选排除|给药|用药|给药记录
        |访视|随访|肿瘤评估|疗效评价|血常规|生化|问卷|妊娠|研究结束|方案偏离)(?:记录)?(?:表单?|页
        |crf|form)|病历记录表|(?:^|[^a-z])(?:adverse[_\ ]events?|demographics|vital[_\ ]signs
        |concomitant[_\ ]medications?|medical[_\ ]history|eligibility)\ form";
    FIELD = r"(?x)
        年龄|性别|身高|体重|bmi|血压|收缩压|舒张压|体温|心率|呼吸频率|ecog|血红蛋白|白细胞|中性粒
        |血小板|肌酐|转氨酶|胆红素|血糖|(?:知情同意书?|icf)(?:的)?签署(?:日期|时间)
        |知情(?:同意)?(?:日期|时间)|入组(?:日期|时间)|出生(?:日期|年月)|随机(?:日期|号)|给药(?:日期
        |时间)|民族|诊断";
    WHOLE = r"(?x)
        全项目|整个?项目|项目(?:里|内|中)?(?:的)?(?:所有|全部|全体)|(?:全部|所有|全体|全组
        |每一?(?:个|位|名|例)|各个?)的?(?:在组|入组|已入组)?的?(?:患者|病人|受试者|病例|参与者|记录
        |人|例)|(?:患者|病人|受试者|病例)们?(?:全部?|全都|都|统统|挨个|逐一|逐个)|全量|批量|全体
        |逐个患者|(?-u:\b)(?:all|everyone|everybody|entire|whole)(?-u:\b)";
    /// All but some: that can't be said without names.
    REST = r"其他|其它|其余|剩下|剩余|别的|另外的";
    /// 全部 or 所有 with nothing named after it but the verb.
    WHOLE_BARE = r"(?x)
        (?:^|[对把给将,])(?:全部|所有|全都|所有的|全部的)(?:都|再|重新|做|进行|跑|过|的?数据|质控
        |检查|核查|校验|核对|$)|(?:质控|检查|核查|校验|核对|跑)(?:一下|一遍|下)?(?:全部
        |所有)(?:的)?(?:数据)?\s*$|全都?(?:质控|检查|核查|校验|跑|查)";
    PAST = r"(?x)
        上周|上个?星期|上个?月|上个?季度|去年|前年|今年以来|历史|历次|趋势|变化|走势|以前|之前|曾经
        |过去|此前|最近[一二两三四五六七八九十几\d]+个?(?:周|星期|月|季度|天)
        |近[一二两三四五六七八九十几\d]+个?(?:周|星期|月|季度)|逐(?:周|月)|以来|每(?:周|月)的?|上次
        |上回|第\s*\d+\s*周的?(?:周报|报告)|20\d\d-w\d\d|last\ (?:week|month|quarter|year)|trend
        |history|over\ time";
}

/// The visit named in a folded text: `V3`, `C1D1`, or the words used.
pub(super) fn visit(text: &str) -> Option<String> {
    if let Some(code) = VISIT_CODE.captures(text).and_then(|c| c.get(1)) {
        return Some(code.as_str().to_ascii_uppercase());
    }
    let number = VISIT_ORDINAL
        .captures(text)
        .or_else(|| VISIT_NUMBER.captures(text))
        .and_then(|c| c.get(1).map(|m| arabic(m.as_str())));
    if let Some(number) = number {
        return Some(format!("V{number}"));
    }
    VISIT_NAME
        .find(text)
        .map(|name| name.as_str().replace(' ', ""))
}

fn arabic(number: &str) -> String {
    const DIGITS: [&str; 10] = ["一", "二", "三", "四", "五", "六", "七", "八", "九", "十"];
    let plain = number.trim_start_matches('0');
    DIGITS
        .iter()
        .position(|digit| *digit == number)
        .map_or_else(|| plain.to_owned(), |at| (at + 1).to_string())
}

/// The form named in a folded text, as `(start, end)`.
pub(super) fn form(text: &str) -> Option<(usize, usize)> {
    FORM.find(text).map(|hit| (hit.start(), hit.end()))
}

/// The field named in a folded text, as `(start, end)`.
pub(super) fn field(text: &str) -> Option<(usize, usize)> {
    FIELD.find(text).map(|hit| (hit.start(), hit.end()))
}

/// Whether the text means every record.
pub(super) fn whole_project(text: &str) -> bool {
    !REST.is_match(text) && (WHOLE.is_match(text) || WHOLE_BARE.is_match(text))
}

/// Whether the text is about the past or a trend.
pub(super) fn about_past(text: &str) -> bool {
    PAST.is_match(text)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        compile_all();
    }

    #[test]
    fn visits_are_named_one_way() {
        for (text, expected) in [
            ("p001的v3访视", Some("V3")),
            ("访视3超窗", Some("V3")),
            ("第3次访视", Some("V3")),
            ("第三次随访", Some("V3")),
            ("visit 03", Some("V3")),
            ("c1d1给药", Some("C1D1")),
            ("基线的血压", Some("基线")),
            ("第12周访视", Some("第12周访视")),
            ("v2.6 版本", None),
            ("访视3天内", None),
            ("年龄", None),
        ] {
            assert_eq!(visit(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_whole_project_is_meant_only_when_people_are() {
        for text in [
            "对全项目做质控",
            "全部受试者质控一遍",
            "把所有病人都检查一下",
            "qc all",
            "质控全部",
            "所有患者的入排",
            "把患者全部检查一遍",
            "全部质控",
        ] {
            assert!(whole_project(text), "{text}");
        }
        for text in [
            "质控p001的所有访视",
            "p001的全部数据",
            "质控一下",
            "检查入排",
            "其他患者都质控一遍",
            "除了p001其他都质控",
        ] {
            assert!(!whole_project(text), "{text}");
        }
    }
}
