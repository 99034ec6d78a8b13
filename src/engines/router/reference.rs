//! 他, 这个患者, 上一个, 那位: words that stand for a patient named before.

use super::message::{head, patterns, tail};

/// A word that stands for one patient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference {
    pub start: usize,
    pub end: usize,
}

patterns! {
    REFERENCE = r"(?x)
        (?:这|那|该|此|上|前)(?:一)?(?:个|位|名|例)?(?:患者|病人|受试者|参与者|病例)|(?:上
        |前)一(?:个|位|例)|刚(?:才|刚)(?:那|这|说的|讨论的|提到的)?(?:个|位|名|例)?(?:的)?(?:患者
        |病人|受试者)?|(?:这|那)位|(?:这|那)个人|同一(?:个|位|名)?(?:患者|病人|受试者)|(?:这|那)个
        |(?-u:\bta\b)|[他她它]";
    /// 其他, 吉他, 排他, 维他命: not a person.
    NOT_BEFORE = r"(?:其|吉|排|利|维|无|摩|异)$";
    /// 他们, 他人, 他汀, 他莫昔芬, 他克莫司…: several people, or a drug.
    NOT_AFTER = r"^(?:们|人|汀|莫|克莫|达拉|唑|扎|米巴|滨|西|氟|命|乡|国|妈的)";
    /// What may follow 上一个, 这个, 那个 or 刚才 when they stand for a patient on their own.
    BARE_AFTER = r"^\s*(?:$|[,。;?!]|的(?:访视|数据|[^月周版])|(?:年龄|性别|入排|入组|情况|状态|质控|ae|血|体)|呢|怎么样|也|再|质控|检查|做|查)";
    BARE = r"^(?:(?:上|前)一(?:个|位|例)|(?:这|那)个|刚(?:才|刚)(?:那|这)?(?:个|位)?)$";
    /// After 那位: a description, so somebody else may be meant (那位新来的).
    DESCRIBED_AFTER = r"^(?:新|姓|叫|老|年|男|女|发|住|从|来自|刚|最|在|\d)";
    /// Before it: a place, so somebody else may be meant (5楼那位).
    PLACE_BEFORE = r"(?:楼|床|室|病房|医院|中心|科|组)的?$";
    PERSON = r"^(?:这|那)(?:位|个人)$";
    JUST_NOW = r"^刚(?:才|刚)$";
    /// More than one: these must be named.
    PLURAL = r"[他她它]们|这些(?:患者|病人|受试者|人)|那些(?:患者|病人|受试者|人)|(?:这|那)(?:几|两|三)(?:个|位|名|例)";
}

/// The references of a part of a message, in order; positions are those of `text`.
pub(super) fn references(text: &str) -> Vec<Reference> {
    REFERENCE
        .find_iter(text)
        .filter(|hit| {
            let before = tail(text.get(..hit.start()).unwrap_or_default(), 2);
            let after = head(text.get(hit.end()..).unwrap_or_default(), 4);
            let word = hit.as_str();
            let described = PERSON.is_match(word) && DESCRIBED_AFTER.is_match(after);
            if JUST_NOW.is_match(word) || described || PLACE_BEFORE.is_match(before) {
                return false;
            }
            if matches!(word, "他" | "她" | "它") {
                return !NOT_BEFORE.is_match(before) && !NOT_AFTER.is_match(after);
            }
            !BARE.is_match(word) || BARE_AFTER.is_match(after)
        })
        .map(|hit| Reference {
            start: hit.start(),
            end: hit.end(),
        })
        .collect()
}

/// Whether the text speaks of several patients named before.
pub(super) fn is_plural(text: &str) -> bool {
    PLURAL.is_match(text)
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
    fn words_for_one_patient_are_found() {
        for text in [
            "他怎么样了",
            "她的年龄",
            "它的访视",
            "ta的年龄",
            "这个患者入组了吗",
            "那个病人的血压",
            "该受试者有ae吗",
            "上一个",
            "上一个呢",
            "上一位患者",
            "刚才那个病人",
            "这位有没有ae",
            "这个怎么样了",
            "对那个质控",
        ] {
            assert_eq!(references(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn words_that_only_look_like_it_are_not() {
        for text in [
            "其他患者呢",
            "其他人还有发烧的吗",
            "其它访视",
            "用他汀类的有几个",
            "阿托伐他汀",
            "他莫昔芬",
            "他克莫司",
            "弹吉他",
            "他人代签",
            "他们的平均年龄",
            "上一个访视超窗了吗",
            "这个月入组几个",
            "那个发烧的病人是谁",
            "刚才发的周报",
            "维他命",
        ] {
            assert_eq!(references(text), [], "{text}");
        }
    }

    #[test]
    fn several_patients_are_noticed() {
        assert!(is_plural("他们的平均年龄"));
        assert!(is_plural("把这几个都质控"));
        assert!(!is_plural("他的年龄"));
    }
}
