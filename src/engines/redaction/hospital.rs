//! Numbers a hospital knows a patient by: known by the word before them, since each hospital writes them in
//! a way of its own. What a study writes otherwise goes into its `[privacy] patterns`.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    folded::Folded,
    kind::{Kind, Pattern, Span},
};

static LABELLED: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)(?:住院(?:登记|流水)?(?:号|ID|编号)|病案(?:号|编号)|病历(?:号|编号)|门(?:急)?诊(?:号|ID|编号)|急诊号|就诊(?:卡|流水)?(?:号|ID|编号)|诊疗卡号?|就诊卡|登记号|患者(?:ID|编码)|病人(?:ID|编码|号)|病理号|影像号|放射号|超声号|检查号|检验号|标本号|条码号|医保(?:卡|编)?号|社保(?:卡)?号|健康卡号|体检号|(?-u:\b)MRN(?-u:\b)|medical record (?:no\.?|number)|hospital (?:no\.?|number)|(?:in|out)patient (?:no\.?|number|id)|admission (?:no\.?|number))(?:码)?\s*(?:[:=#为是]|no\.?)*\s*([A-Za-z]{0,6}[\-_]?[0-9][0-9A-Za-z_\-]{1,24})").ok()
});

pub(super) const PATTERNS: [&Pattern; 1] = [&LABELLED];

/// All of them in `text`.
pub(super) fn find(text: &Folded, found: &mut Vec<Span>) {
    for value in LABELLED
        .iter()
        .flat_map(|p| p.captures_iter(&text.text))
        .filter_map(|groups| groups.get(1))
    {
        let at = text.original(value.start(), value.end());
        found.extend(at.map(|at| (at, Kind::Hospital)));
    }
}
