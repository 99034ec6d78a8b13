//! Commands: a check or a change, wanted or taken back. A negation nobody can place takes back.

use super::{
    cues::Cue,
    message::{head, patterns, tail},
};

patterns! {
    /// Words that look like a negation and are none.
    NEGATION = r"(?x)
        (?P<not>不(?:对|给|把|将)\s*(?:患者|病人|受试者|编号|[a-z0-9他她这那该全所]))|(?P<safe>性别
        |类别|级别|区别|个别|分别|鉴别|特别|识别|判别|差别|别的|别人|能不能|可不可以|可不可|要不要
        |是不是|对不对|会不会|行不行|好不好|需不需要|有没有|不良|不符|不合|不一致|不全|不明
        |不同(?:的|于)|不足|不对|不是|不错|不过|不好意思|不止|不仅|不只|不但|不管|不论|不然
        |不用?(?:那么|太|这么)?着?急|(?:千万)?(?:别|不要|不能|不可|切勿|勿|don'?t\ |do\ not\ )(?:再
        |给我)?(?:忘记?|漏掉?|落下|遗漏|错过|耽误|forget|miss)|没问题|未来|无论)|(?P<neg>(?:明天|后天|下周[一二三四五六日天]?|下个?月|晚点|晚些时候|晚一?点|待会儿?|等会儿?|过几天|改天|回头|稍后|以后|tomorrow|later)(?:再(?:说|议|做|跑|弄|看|质控|检查|核查|查)?|(?:对|给|把)|(?:质控|qc|跑))|不要|不用
        |不必|不需要?|不须|无需|无须|毋须|不再|暂不|先不|暂时不|没必要|没有必要|没(?:有)?(?:让|叫|说
        |要|想|打算)|不(?:想|希望|打算|同意|许|准)|甭|勿|莫要|休要|算了|免了|别|don't
        |(?-u:\b)(?:dont|do\ not|doesn'?t|does\ not|won'?t|shouldn'?t|should\ not|must\ not|mustn'?t
        |no\ need|not|never|without)(?-u:\b)|不(?:质控|质检|检查|核查|核对|校验|进行|qc|check|跑|查
        |核|做|改|修改|录|删|动|弄|看))|(?P<end>不得|不能|不可以?|不宜|不去|禁止|停止|终止|暂停|中止
        |取消|拒绝|避免|跳过|略过|免除|放弃|推迟|暂缓|作废|撤销|停掉|(?-u:\b)(?:cannot|can'?t|stop
        |skip|cancel|avoid|abort)(?-u:\b))|(?P<state>(?:没有?|未|无)(?:质控|质检|检查|核查|核对|校验
        |跑|查|做|改|修改|录|删|动))";
    /// Between a stop word and a deed: what is stopped is something else (停止用药).
    OTHER_OBJECT = r"用药|治疗|给药|服药|试验|研究|标准|随访|合并|使用|入组|标签";
    /// A record right after a negation: 不要P002.
    NAME_AFTER = r"^\s*(?:患者|病人|受试者|编号|id)?\s*[:=]?\s*[a-z]{0,6}[-_]?\d";
    NOTHING_MORE = r"^(?:吧|了|掉|啦|先|一下|它|算了|再说|\s)*$";
    /// Before a verb that opens a command.
    LEAD = r"(?x)
        (?:^|请|帮我|帮忙|麻烦|再|先|去|来|给我|重新|你|您|[他她它]|ta|患者|病人|受试者|进行|做|开始
        |立即|马上|现在|赶紧|都|全部|逐一|一起|也|可以|能|要|想|老师|[a-z0-9]|\s)$";
    /// Before an English verb that wishes a change.
    WISH_BEFORE = r"(?:^|please|pls|you|to|and|then|just|,)\s*$";
    WISH_OBJECT = r"(?x)
        年龄|性别|体重|身高|日期|时间|数据|字段|记录|患者|病人|受试者|质疑|(?-u:\b)(?:to|all|pending
        |query|queries|record|data|value|age|sex|weight|date|writes?)(?-u:\b)";
    /// A verb that a bare negation takes back: 不用查.
    NEGATED_VERB = r"(?x)
        ^(?:再|去|先|急着|着急|给(?:我|他|她)|帮(?:我|忙)|对.{1,12}?)*(?:查|做|跑|弄|动|检|核|管|改
        |录|删|质|填|写|发|qc|check|run|change|delete)|^$|^(?:吧|了|啦|先|吧了)+$";
    OTHER_VERB = r"查|看|告诉|问|说|发|生成|总结|导出|列|急|管";
    FORBIDS = r"(?x)
        (?:不要|不用|别|不能|勿|不得|不许|禁止|不可|don'?t|do\ not|never)\s*(?:在|未经|没有?|没经
        |除非|当|等|趁|随便|擅自|without|unless|if)|^(?:请|先|千万|一定)?(?:不要|别|勿|don'?t
        |do\ not)(?:给|对|把|让)?$";
    CHECK = r"(?x)
        质控|审核|审查|查验|排查|质空|质孔|置控|治控|只控|执控|质检|核查|核对|校验|检查|复核|稽核
        |入排|(?:查|过|跑|做|扫|核|检|走)(?:一|1|上|个)(?:遍|次|轮)|跑(?:一下|下)?(?:所有
        |全部)?(?:的)?(?:规则|逻辑)|(?-u:\b)(?:qc|check(?:ing)?|validate|verify|validation
        |quality\ control)(?-u:\b|(?:\d))|(?-u:\bqc)";
    /// After a check word: it is a thing, not a deed.
    THING_AFTER = r"(?x)
        ^\s*(?:results?|reports?|status|passed|history|findings)|^(?:的)?(?:结果|问题|报告|记录|状态|情况
        |进度|历史|规则|结论|日志|意见|总结|计划|流程|手册|员|老师|团队|发现|通过|不通过|没通过
        |未通过|没过|过了|过没|过吗|过的|了(?:吗|没|么|几|多少)|了的|完(?:了|成|毕|没)|没(?:有)?$
        |是(?:什么|啥|不是)|什么(?:时候|意思)|意思|次数|频率|率|要多久|多久|几次|失败|标准)";
    THING_AFTER_INITIAL = r"(?x)
        ^(?:的)?(?:结果|报告|单|所见|费|员|老师|规则|进度|历史|记录|通过|没通过|不通过|过了|过没
        |过吗|了(?:吗|没|么|几)|是(?:什么|啥)|什么(?:时候|意思)|要多久|多久|完(?:了|没)|次数)";
    /// Before 检查: an examination of the body, or one that was done.
    EXAM_BEFORE = r"(?x)
        (?:体格|体|影像学?|ct|mri|pet|b超|超声|心电图?|实验室|血液?|尿液?|常规|病理|骨扫描|妇科|眼科
        |神经系统?|身体|辅助|内镜|胃镜|做过|做了|做完|哪些|什么|的|几次|有|完成|预约|安排|复查|门诊
        |住院)$";
    EXAM_AFTER = r"^(?:可以|需要|要|能|应|日期|时间|项目|项|值|指标|室|数据)";
    /// Before 入排: a question about a state.
    STATE_BEFORE = r"(?:符合|满足|是否|通过|达到|违反|不|没)$";
    STATE_AFTER = r"^(?:的)?(?:有没有|有无|有什么|有问题|对不对|是否|能不能|标准|条件|状态|情况|结果|失败|通过|符合|是|吗|呢|了)";
    /// A question about a check, not the wish for one.
    ABOUT_CHECK = r"(?x)
        为什么|为啥|为何|怎么(?:没|不|还|又)|多久|多长时间|要不要|需不需要|需要.{0,14}吗|是否需要
        |要.{0,10}(?:质控|检查)吗|上次|上回|上一次|最近一次的?(?:质控|检查)|谁(?:做|来|负责|质|检
        |核)?|几次|多少|是否(?:已|通过|做过|完成)|有没有(?:做|被|进行|通过)?过?(?:质控|质检|核查
        |校验|检查|核对)|(?:质控|质检|核查|校验|检查|核对|qc)(?:过|完|好)(?:了)?(?:吗|没有|没|么|$)
        |什么时候|何时|还没|已经|已(?:质控|检查|核查)|未(?:质控|检查|核查)|没(?:质控|检查|核查)
        |(?:质控|质检|核查|检查)(?:出|发现)(?:了|过)?(?:哪些|什么|几|多少|的)|(?:质控|检查
        |核查)(?:哪些|什么)|哪些.{0,10}(?:质控|核查)|介绍|解释|区别|正在(?:质控|检查)";
    WRITE = r"(?x)
        修改|撤掉|去掉|移除|划掉|补(?:一下|上|一条|充一下|个|进去)|更改|改(?:成|为|到|一下|下|正|掉
        |回)|更正|更新|变更|纠正|订正|录入|录一下|录下|补录|填写|填入|填上|补填|填成|填为|写入|写成
        |写到|新增[一1]|新建|添加|[加添][一1][条个次]|删除|删掉|删了?(?:吧|$)|删[一这那]|清空|抹掉
        |作废|撤销|撤回|关闭|关掉|设(?:为|成|置)|置为|标记?(?:为|成)|批准|审批通过|同意(?:写入|修改)
        |把.{1,24}(?:改|换成|填|设[为成]|删|标记|置为|关掉|关闭|关了|录入|补录)|(?-u:\b)(?:change
        |update|set|delete|remove|insert|add|edit|modify|overwrite|enter|close|approve)(?-u:\b)";
    /// After a writing word: it was done, or it is a thing.
    DONE_AFTER = r"^(?:了|过|好了|完|的|人|时间|日期|记录|情况|进度|历史|频率|者|权限|痕迹|没|吗)";
    /// Before a writing word: a question, or something not done.
    DONE_BEFORE = r"(?x)
        (?:谁|什么时候|何时|有没有|是否|已经?|哪些|哪几|未|没|没有|尚未|还没|最近|被|几次|次|上次
        |上周|本周|刚|昨天|数据|any|last|been|was|were|latest|recent|recently)$";
    /// `close`, `关闭` of something that is no data.
    CLOSE_WHAT = r"质疑|疑问|问题|发现|待办|query|queries|issue|finding|条|它|他|她|这|那|p\d|\d";
}

/// Whether `text` ends inside a negation: what follows belongs to it (`不用` before `再质控`).
pub(super) fn leaves_negation_open(text: &str) -> bool {
    let last = NEGATION
        .captures_iter(text)
        .filter_map(|hit| hit.name("neg").or(hit.name("not")).or(hit.name("end")))
        .last();
    last.is_some_and(|word| {
        let rest = text.get(word.end()..).unwrap_or_default();
        !CHECK.is_match(rest) && !WRITE.is_match(rest) && !OTHER_VERB.is_match(rest)
    })
}

/// Whether a clause forbids what the next one says: 不要在没有我同意的情况下，质控P001.
pub(super) fn forbids_what_follows(clause: &str) -> bool {
    FORBIDS.is_match(clause) && leaves_negation_open(clause)
}

/// The text without negations and the words that look like one.
pub(super) fn without_negations(text: &str) -> String {
    NEGATION.replace_all(text, "").into_owned()
}

/// A check or a change, wanted or taken back, and where in the clause names stop being wanted.
pub(super) fn command(clause: &str, about_patient: bool) -> (Option<Cue>, Option<usize>) {
    // Each wanted deed: where it stands, and whether it writes.
    let mut wanted: Vec<(usize, bool)> = Vec::new();
    for hit in CHECK.find_iter(clause) {
        if is_deed(clause, hit.start(), hit.end()) {
            wanted.push((hit.start(), false));
        }
    }
    for hit in WRITE.find_iter(clause) {
        if is_change(clause, hit.start(), hit.end(), about_patient) {
            wanted.push((hit.start(), true));
        }
    }
    let mut taken_back = false;
    let mut cut: Option<usize> = None;
    for negation in NEGATION.captures_iter(clause) {
        let rest_of = |end: usize| clause.get(end..).unwrap_or_default();
        if let Some(state) = negation.name("state") {
            wanted.retain(|(at, _)| *at < state.start());
            continue;
        }
        let strong_word = negation.name("neg").or(negation.name("not"));
        let (word, strong) = match (strong_word, negation.name("end")) {
            (Some(word), _) => (word, true),
            (None, Some(word)) => (word, false),
            (None, None) => continue,
        };
        let rest = rest_of(word.end());
        let later = wanted
            .iter()
            .map(|(at, _)| *at)
            .find(|at| *at >= word.start());
        let governs = later.is_some_and(|at| {
            let gap = clause.get(word.end()..at).unwrap_or_default();
            strong || !OTHER_OBJECT.is_match(gap)
        });
        let before = wanted.len();
        if governs {
            wanted.retain(|(at, _)| *at < word.start());
            cut = cut.or(Some(word.start()));
        } else if later.is_some() {
            continue;
        } else if NAME_AFTER.is_match(rest) {
            cut = cut.or(Some(word.start()));
        } else if NOTHING_MORE.is_match(rest) || strong && head(rest, 8) == rest {
            wanted.clear();
        }
        taken_back |= wanted.len() < before
            || strong && CHECK.is_match(clause) && !ABOUT_CHECK.is_match(clause)
            || strong && NEGATED_VERB.is_match(rest.trim());
    }
    wanted.sort_unstable();
    match wanted.first() {
        None if taken_back => (Some(Cue::Negated), None),
        Some((_, true)) => (Some(Cue::Write), cut),
        Some((_, false)) if !ABOUT_CHECK.is_match(clause) => (Some(Cue::Check), cut),
        _ => (None, cut),
    }
}

/// Whether a check word is a deed here, not a thing (`检查结果`) nor a question about a state.
fn is_deed(clause: &str, start: usize, end: usize) -> bool {
    let word = clause.get(start..end).unwrap_or_default();
    let so_far = clause.get(..start).unwrap_or_default();
    let before = tail(so_far, 8);
    let after = head(clause.get(end..).unwrap_or_default(), 10);
    match word {
        "入排" => !STATE_BEFORE.is_match(before) && !STATE_AFTER.is_match(after),
        "检查" | "核查" | "核对" | "校验" | "复核" | "审核" | "审查" => {
            if LEAD.is_match(so_far) {
                return !THING_AFTER_INITIAL.is_match(after);
            }
            !(word == "检查" && (EXAM_BEFORE.is_match(before) || EXAM_AFTER.is_match(after))
                || THING_AFTER.is_match(after))
        }
        _ => !THING_AFTER.is_match(after),
    }
}

/// Whether a writing word is a wish here, not a thing done (`录入了`) nor a thing (`修改记录`).
fn is_change(clause: &str, start: usize, end: usize, about_patient: bool) -> bool {
    let word = clause.get(start..end).unwrap_or_default();
    let before = tail(clause.get(..start).unwrap_or_default(), 10);
    let rest = clause.get(end..).unwrap_or_default();
    let after = head(rest, 4);
    if DONE_AFTER.is_match(after) || DONE_BEFORE.is_match(before) {
        return false;
    }
    if word.is_ascii() {
        return WISH_BEFORE.is_match(before) && (about_patient || WISH_OBJECT.is_match(rest));
    }
    match word {
        "关闭" | "关掉" | "撤回" | "撤销" => about_patient || CLOSE_WHAT.is_match(clause),
        "设置" | "更新" | "填写" | "标记为" | "标记成" | "去掉" | "补一下" | "补上" | "补个" => {
            about_patient || WISH_OBJECT.is_match(rest) || rest.contains(['为', '成'])
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_pattern_compiles() {
        super::compile_all();
    }
}
