//! Where somebody lives: by the word before it, by the chain of places it is made of, or by street and number.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    folded::Folded,
    kind::{Kind, Pattern, Span},
};

const PROVINCE: &str = "(?:北京|天津|上海|重庆|河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南|广东|海南|四川|贵州|云南|陕西|甘肃|青海|台湾|内蒙古|广西|西藏|宁夏|新疆|香港|澳门)";
/// A number of a house, a block, a flat, and what may follow it.
const HOUSE: &str = "(?:[0-9]{1,5}|[一二三四五六七八九十百]{1,5})(?:-[0-9]{1,4})*(?:号院|号楼|号|弄|栋|幢|座|单元|楼|层|室|户|组)";
const DOOR: &str =
    r"(?:[A-Za-z]?[0-9]{1,5}(?:-[0-9]{1,4})*(?:号院|号楼|号|弄|栋|幢|座|单元|楼|层|室|户|组)?)";

/// What follows the word is the address, up to the next sign.
static LABELLED: Pattern = LazyLock::new(|| {
    Regex::new(r#"(?i)(?:(?:家庭|现|常|通讯|联系|户籍|邮寄|居住|详细|工作单位)?(?:住址|地址)|户籍(?:所在)?地|居住地|户口所在地|籍贯|(?-u:\b)(?:home |mailing )?address(?-u:\b))\s*[:=]\s*"?([^\n\r，,。;；"\\|<>{}]{2,80})"#).ok()
});
/// What follows may be an address, or a ward.
static LIVES: Pattern = LazyLock::new(|| {
    Regex::new(r#"(?:家住|现住在?|居住(?:于|在)|现居|家住在|定居|住在|住址(?:为|是)?|地址(?:为|是))\s*([\p{Han}0-9A-Za-z\-()（）#·]{3,60})"#).ok()
});
/// Province, then smaller and smaller places, then street and house if they are told.
static CHAIN: Pattern = LazyLock::new(|| {
    Regex::new(&format!(
        r"{PROVINCE}(?:省|市|壮族自治区|回族自治区|维吾尔自治区|自治区|特别行政区)?(?:[\p{{Han}}]{{1,8}}?(?:市|自治州|州|盟|区|县|旗|镇|乡|街道|村)){{1,5}}(?:[\p{{Han}}0-9]{{1,12}}?(?:路|街|大道|巷|弄|胡同|小区|新村|花园|家园|公寓|苑|里|园|组)){{0,3}}{DOOR}{{0,6}}"
    ))
    .ok()
});
/// A street and a house in it.
static STREET: Pattern = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?:[\p{{Han}}]{{1,8}}?(?:市|区|县|镇|乡|街道)){{0,3}}[\p{{Han}}]{{2,8}}?(?:路|大街|街|大道|巷|胡同|弄)(?:东|西|南|北|中)?(?:段)?{HOUSE}{DOOR}{{0,5}}"
    ))
    .ok()
});
/// An estate and a block in it, a village and a group in it.
static ESTATE: Pattern = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?:[\p{{Han}}]{{1,8}}?(?:市|区|县|镇|乡|街道)){{0,3}}[\p{{Han}}]{{2,8}}?(?:小区|新村|花园|家园|公寓|嘉园|雅苑|苑|社区){HOUSE}{DOOR}{{0,5}}|[\p{{Han}}]{{2,6}}?(?:县|市|区)[\p{{Han}}]{{1,6}}?(?:镇|乡|街道)[\p{{Han}}]{{1,8}}?(?:村|社区|组)(?:{HOUSE})?{DOOR}{{0,3}}"
    ))
    .ok()
});
static FLAT: Pattern = LazyLock::new(|| {
    Regex::new(r"[0-9]{1,4}(?:号楼|栋|幢|座)[0-9]{1,3}单元[0-9]{1,5}(?:室|号|户)?").ok()
});

pub(super) const PATTERNS: [&Pattern; 6] = [&LABELLED, &LIVES, &CHAIN, &STREET, &ESTATE, &FLAT];

/// All of them in `text`.
pub(super) fn find(text: &Folded, found: &mut Vec<Span>) {
    let mut add =
        |start, end| found.extend(text.original(start, end).map(|at| (at, Kind::Address)));
    let captured = |pattern: &'static Pattern| {
        pattern
            .iter()
            .flat_map(|p| p.captures_iter(&text.text))
            .filter_map(|groups| groups.get(1))
    };
    for value in captured(&LABELLED) {
        let shown = value.as_str().trim_end();
        if !is_nothing(shown) {
            add(value.start(), value.start() + shown.len());
        }
    }
    for value in captured(&LIVES) {
        if is_place(value.as_str()) {
            add(value.start(), value.end());
        }
    }
    for pattern in [&CHAIN, &STREET, &ESTATE, &FLAT] {
        for m in pattern.iter().flat_map(|p| p.find_iter(&text.text)) {
            if !is_region_only(m.as_str()) {
                add(m.start(), m.end());
            }
        }
    }
}

fn is_nothing(text: &str) -> bool {
    matches!(
        text,
        "不详" | "未知" | "未提供" | "拒绝提供" | "略" | "无" | "保密" | "已隐去"
    )
}

/// Somebody may live in a ward for a while, and with somebody.
fn is_place(text: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    has(&[
        "省", "市", "区", "县", "镇", "乡", "村", "路", "街", "巷", "号", "弄", "栋", "小区",
    ]) && !has(&["病区", "病房", "病室", "医院", "监护", "ICU", "科室", "床"])
}

/// Words that end like a place and are none, and places as large as a city.
fn is_region_only(text: &str) -> bool {
    let ends = |words: &[&str]| words.iter().any(|word| text.ends_with(word));
    ends(&[
        "地区", "病区", "院区", "疫区", "市区", "城区", "郊区", "社区", "区区",
    ]) && !text.contains(|c: char| c.is_ascii_digit())
        || text.contains("医院") && !text.contains(|c: char| c.is_ascii_digit())
}
