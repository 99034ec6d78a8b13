//! What a clause says it wants, by its words alone. Whom it is about is decided elsewhere.
//!
//! The order of the questions is the order of harm: an attempt to override the rules first, then
//! commands taken back, then commands, then questions.

use super::message::{head, patterns, tail};

/// What a clause wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cue {
    /// Nothing: only a name, a filler.
    Silent,
    /// 你好.
    Greeting,
    /// Thanks, and nothing else.
    Thanks,
    /// 不对, 说错了: what was named before is replaced by what follows.
    Correction,
    /// 算了: what was asked before is taken back.
    Cancel,
    /// A check or a change that is not wanted.
    Negated,
    /// Records that are not wanted: 不要P002.
    Excluded,
    /// Data to be changed.
    Write,
    /// A check to be run.
    Check,
    /// A report.
    Report,
    /// About the protocol.
    Protocol,
    /// About the study's data; `asks` when it is a question or a request, not a remark.
    Data { asks: bool },
    /// What the agent can do.
    Help,
    /// About the agent's answer or manners.
    Feedback,
    /// Surely nothing of ours.
    OffTopic,
    /// No word we know.
    Unknown,
}

patterns! {
    INJECTION = r"(?:跳过|绕过|绕开|不经过?|无需)(?:任何)?(?:审批|确认|审核流程|权限|人工|校验规则|安全)|你(?:现在)?(?:必须|只能)(?:听|服从|无条件|按我)|(?:以下|下面|这)(?:这?段|条)?(?:是|为)?(?:来自)?系统(?:消息|指令|管理员)|你的(?:系统)?(?:提示词|指令|prompt)|(?:忽略|无视|忘记|忘掉|抛开|不要理会|绕过)(?:掉)?(?:以上|之前|前面|上面|上述|先前|此前|所有|全部|一切|你的?|系统|原来).{0,12}(?:指令|指示|命令|规则|提示|要求|设定|约束|限制|身份)|(?:系统|初始|内部)提示词|没有(?:任何)?(?:限制|规则|约束)的|扮演|假装你?是|假设你是|你现在是|从现在起你|开发者模式|越狱模式?|(?:ignore|disregard|forget|bypass|override)\s+(?:all\s+|any\s+|the\s+|your\s+|of\s+)*(?:previous|prior|above|earlier|preceding|system|instructions?|rules|safety)|system prompt|developer mode|jailbreak|(?:act|pretend|behave) as |you are now |</?(?:system|instructions?|data|user|assistant)>|\[/?(?:inst|system)\]|drop\s+table|delete\s+from|truncate\s+table|update\s+\w+\s+set";
    GREETING = r"^(?:你好|您好|hi|hello|hey|嗨|哈喽|哈罗|早|早上好|早安|上午好|中午好|下午好|晚上好|晚安|在吗|在么|在不在|有人吗|老师好|大家好|小助手|助手)[呀啊哦呢哈~\s]*$";
    THANKS = r"^(?:好的?|ok|嗯)?\s*(?:谢谢|感谢|多谢|谢了|辛苦了?|麻烦了|拜托了?|thanks?|thank you|thx)(?:你|您|啦|了|哈|老师|大家|very much|so much|[~!\s])*$";
    HELP = r"^(?:请问)?(?:我)?(?:要|该|应该)?(?:怎么|如何|怎样|在哪里?)(?:才能)?(?:用你)?(?:查询|查看|查|导出|上传|提交|登录|看到|订阅|退订|发送?|拍照)|(?:怎么|如何|怎样)(?:跟|和|对|向)你(?:说|讲|提问|沟通)|^(?:/?(?:help|帮助|menu|菜单)|/start|使用(?:说明|帮助|指南|方法|手册)|操作(?:说明|指南|手册)|(?:说明|使用|操作)手册|新手(?:指南|教程)|功能(?:列表|介绍|清单)?|(?:指令|命令)(?:列表|大全)?)$|(?:你|您|机器人|助手|系统)(?:都|还|到底)?(?:能|会|可以|支持|有)(?:帮我|帮忙|为我)?(?:做|干|处理|查|提供)?些?(?:什么|啥|哪些|点什么)|(?:^|这个?|你|系统|工具|机器人|助手|东西|功能)(?:要|该|应该|到底)?(?:怎么|如何|怎样)(?:用|使用|操作)|有(?:什么|哪些)(?:功能|命令|指令|用法)|你是(?:谁|什么|干嘛|做什么|干什么)|what can you do|who are you|how (?:do|can|to|should) (?:i |we )?use|(?:怎么|如何|怎样|咋)(?:样)?(?:才能)?(?:去|来|发起|启动|开始|提交|做|进行|跑|让你|使用)?.{0,6}(?:质控|核查|校验|qc)|(?:怎么|如何|怎样|咋)(?:样)?(?:才能)?(?:去|来)?(?:修改|更改|录入|更正|删除|关闭|补录|填写|更新)|(?:质控|qc)是(?:个)?(?:什么|啥|做什么|干嘛)|(?:什么|啥)(?:是|叫)(?:质控|qc)|质控(?:什么|啥)意思|(?:给|发)?(?:我)?(?:看看|看下|看一下|需要)?(?:一下)?(?:使用说明|帮助文档|帮助信息)";
    FEEDBACK = r"👍|👎|(?:回答|答案|回复|解释|总结|结果)(?:对我)?(?:都|也|还|很|挺|非常|真|太)*(?:有|没有?)(?:很大|什么|多大)?(?:帮助|用处|用)|^(?:请|麻烦)?(?:别|不要|少|不用)(?:再|老|总|半夜|大半夜|周末)*(?:给我)?(?:再)?(?:发|推送?|通知|提醒|打扰)|^(?:这个?|刚才的?|上面的?|你的?)?(?:回答|答案|结果|回复)?(?:还|很|挺|非常|真|太|都|完全|特别|比较)?(?:有用|没用|没有用|无用|有帮助|没帮助|没有帮助|不错|很好|好评|差评|赞|点赞|棒|满意|不满意|差劲|垃圾)(?:了|啊|的|哦|!|~)*$|(?:回答|回复|答|说|讲|写|理解|搞|弄|算|识别|解释)(?:得|的|到)?(?:也|都|还|很|挺|完全|有点|太|不太|非常|真)*(?:不对|不准|不好|有误|有问题|不错|很好|好|清楚|清晰|太长|太短|太慢|啰嗦|错了?|对)(?:[了啊的哦嘛]|$)|(?:回答|答案|回复)(?:不对|错|有误|不准|太|不错|很好|没用|有用)|(?:你|这个?|刚才|刚刚|上面|上一条).{0,6}(?:答|说|搞|弄|理解|算)错|不是(?:这个|我的|那个)意思|答非所问|太(?:啰嗦|罗嗦|长了|短了|慢了|复杂了|难用了?|好了|棒了)|(?:以后|今后|周末|晚上|夜里|节假日|假期|下班后|休息时间|白天|工作日|上班).{0,10}(?:别|不要|不用|勿|少|只|再)(?:再|给我)?.{0,6}(?:发|推送?|通知|提醒|打扰|消息)|(?:回答|回复|消息|说话|答复|内容|语气).{0,8}(?:简短|简洁|简单|详细|短|长|精简|客气|正式)(?:一?(?:点|些)|$)|(?:说|讲|答|写)(?:得)?(?:简短|简洁|简单|详细|短)一?(?:点|些)|以后(?:请)?(?:叫我|称呼我|用英文|用中文|都用|只发|每)|(?:good|bad|wrong|useless|useful|helpful|great|nice|poor) ?(?:bot|answer|job|reply|response)?!?$|not (?:helpful|useful|right|correct)|很(?:清楚|明白|详细|及时|准确)$|(?:体验|用起来)(?:不错|很好|很差|太差)";
    /// Beside a patient's name, blame is for the agent only when it says so.
    TO_THE_AGENT = r"👍|👎|回答|回复|答案|你|您|以后|答得|说得";
    CANCEL = r"^(?:那|还是|先|就)*(?:算了|不用了?|不要了?|不必了?|取消|别了|停|停止|停下|撤回|撤销|等等|等一下|等下|先等等|免了|不做了?|不查了?|不质控了?|不弄了|作罢|暂停|先不做|先不了|先不要|不需要了?|stop|cancel|never ?mind|not now|forget it)(?:算了|吧|了|啦|哈|先|不用了?)*$";
    CORRECTION = r"^(?:哦|啊|呃|哎)?(?:不对|不是|错了|搞错了?|说错了?|打错了?|写错了?|弄错了?|发错了?|输错了?|口误|更正一下|应该是|我是说|sorry|i mean)(?:[吧了啊,\s]*(?:应该)?是?)*$";
    /// Words that look like a negation and are none.
    NEGATION = r"(?P<not>不(?:对|给|把|将)\s*(?:患者|病人|受试者|编号|[a-z0-9他她这那该全所]))|(?P<safe>性别|类别|级别|区别|个别|分别|鉴别|特别|识别|判别|差别|别的|别人|能不能|可不可以|可不可|要不要|是不是|对不对|会不会|行不行|好不好|需不需要|有没有|不良|不符|不合|不一致|不全|不明|不同(?:的|于)|不足|不对|不是|不错|不过|不好意思|不止|不仅|不只|不但|不管|不论|不然|不用?(?:那么|太|这么)?着?急|(?:千万)?(?:别|不要|不能|不可|切勿|勿|don'?t |do not )(?:再|给我)?(?:忘记?|漏掉?|落下|遗漏|错过|耽误|forget|miss)|没问题|未来|无论)|(?P<neg>不要|不用|不必|不需要?|不须|无需|无须|毋须|不再|暂不|先不|暂时不|没必要|没有必要|没(?:有)?(?:让|叫|说|要|想|打算)|不(?:想|希望|打算|同意|许|准)|甭|勿|莫要|休要|算了|免了|别|don't|(?-u:\b)(?:dont|do not|doesn'?t|does not|won'?t|shouldn'?t|should not|must not|mustn'?t|no need|not|never|without)(?-u:\b)|不(?:质控|质检|检查|核查|核对|校验|进行|qc|check|跑|查|核|做|改|修改|录|删|动|弄|看))|(?P<end>不得|不能|不可以?|不宜|不去|禁止|停止|终止|暂停|中止|取消|拒绝|避免|跳过|略过|免除|放弃|推迟|暂缓|作废|撤销|停掉|(?-u:\b)(?:cannot|can'?t|stop|skip|cancel|avoid|abort)(?-u:\b))|(?P<state>(?:没有?|未|无)(?:质控|质检|检查|核查|核对|校验|跑|查|做|改|修改|录|删|动))";
    /// Between a stop word and a deed: what is stopped is something else (停止用药).
    OTHER_OBJECT = r"用药|治疗|给药|服药|试验|研究|标准|随访|合并|使用|入组|标签";
    /// A record right after a negation: 不要P002.
    NAME_AFTER = r"^\s*(?:患者|病人|受试者|编号|id)?\s*[:=]?\s*[a-z]{0,6}[-_]?\d";
    NOTHING_MORE = r"^(?:吧|了|掉|啦|先|一下|它|算了|再说|\s)*$";
    /// A question beside a command taken back.
    ASKS_BESIDE = r"告诉我|看看|看一下|看下|是多少|有几个|有多少";
    /// Before a verb that opens a command.
    LEAD = r"(?:^|请|帮我|帮忙|麻烦|再|先|去|来|给我|重新|你|您|[他她它]|ta|患者|病人|受试者|进行|做|开始|立即|马上|现在|赶紧|都|全部|逐一|一起|也|可以|能|要|想|老师|[a-z0-9]|\s)$";
    /// Before an English verb that wishes a change.
    WISH_BEFORE = r"(?:^|please|pls|you|to|and|then|just|,)\s*$";
    WISH_OBJECT = r"年龄|性别|体重|身高|日期|时间|数据|字段|记录|患者|病人|受试者|质疑|(?-u:\b)(?:to|all|pending|query|queries|record|data|value|age|sex|weight|date|writes?)(?-u:\b)";
    /// A verb that a bare negation takes back: 不用查.
    NEGATED_VERB = r"^(?:再|去|先|急着|着急|给(?:我|他|她)|帮(?:我|忙)|对.{1,12}?)*(?:查|做|跑|弄|动|检|核|管|改|录|删|质|填|写|发|qc|check|run|change|delete)|^$|^(?:吧|了|啦|先|吧了)+$";
    OTHER_VERB = r"查|看|告诉|问|说|发|生成|总结|导出|列|急|管";
    FORBIDS = r"(?:不要|不用|别|不能|勿|不得|不许|禁止|不可|don'?t|do not|never)\s*(?:在|未经|没有?|没经|除非|当|等|趁|随便|擅自|without|unless|if)|^(?:请|先|千万|一定)?(?:不要|别|勿|don'?t|do not)(?:给|对|把|让)?$";
    CHECK = r"质控|审核|审查|查验|排查|质空|质孔|置控|治控|只控|执控|质检|核查|核对|校验|检查|复核|稽核|入排|(?:查|过|跑|做|扫|核|检|走)(?:一|1|上|个)(?:遍|次|轮)|跑(?:一下|下)?(?:所有|全部)?(?:的)?(?:规则|逻辑)|(?-u:\b)(?:qc|check(?:ing)?|validate|verify|validation|quality control)(?-u:\b|(?:\d))|(?-u:\bqc)";
    /// After a check word: it is a thing, not a deed.
    THING_AFTER = r"^\s*(?:results?|reports?|status|passed|history|findings)|^(?:的)?(?:结果|报告|记录|状态|情况|进度|历史|规则|结论|日志|意见|总结|计划|流程|手册|员|老师|团队|发现|通过|不通过|没通过|未通过|没过|过了|过没|过吗|过的|了(?:吗|没|么|几|多少)|了的|完(?:了|成|毕|没)|没(?:有)?$|是(?:什么|啥|不是)|什么(?:时候|意思)|意思|次数|频率|率|要多久|多久|几次|失败|标准)";
    THING_AFTER_INITIAL = r"^(?:的)?(?:结果|报告|单|所见|费|员|老师|规则|进度|历史|记录|通过|没通过|不通过|过了|过没|过吗|了(?:吗|没|么|几)|是(?:什么|啥)|什么(?:时候|意思)|要多久|多久|完(?:了|没)|次数)";
    /// Before 检查: an examination of the body, or one that was done.
    EXAM_BEFORE = r"(?:体格|体|影像学?|ct|mri|pet|b超|超声|心电图?|实验室|血液?|尿液?|常规|病理|骨扫描|妇科|眼科|神经系统?|身体|辅助|内镜|胃镜|做过|做了|做完|哪些|什么|的|几次|有|完成|预约|安排|复查|门诊|住院)$";
    EXAM_AFTER = r"^(?:可以|需要|要|能|应|日期|时间|项目|项|值|指标|室|数据)";
    /// Before 入排: a question about a state.
    STATE_BEFORE = r"(?:符合|满足|是否|通过|达到|违反|不|没)$";
    STATE_AFTER = r"^(?:的)?(?:有没有|有无|有什么|有问题|对不对|是否|能不能|标准|条件|状态|情况|结果|失败|通过|符合|是|吗|呢|了)";
    /// A question about a check, not the wish for one.
    ABOUT_CHECK = r"为什么|为啥|为何|怎么(?:没|不|还|又)|多久|多长时间|要不要|需不需要|需要.{0,14}吗|是否需要|要.{0,10}(?:质控|检查)吗|上次|上回|上一次|最近一次的?(?:质控|检查)|谁(?:做|来|负责|质|检|核)?|几次|多少|是否(?:已|通过|做过|完成)|有没有(?:做|被|进行|通过)?过?(?:质控|质检|核查|校验|检查|核对)|(?:质控|质检|核查|校验|检查|核对|qc)(?:过|完|好)(?:了)?(?:吗|没有|没|么|$)|什么时候|何时|还没|已经|已(?:质控|检查|核查)|未(?:质控|检查|核查)|没(?:质控|检查|核查)|(?:质控|质检|核查|检查)(?:出|发现)(?:了|过)?(?:哪些|什么|几|多少|的)|(?:质控|检查|核查)(?:哪些|什么)|哪些.{0,10}(?:质控|核查)|介绍|解释|区别|正在(?:质控|检查)";
    WRITE = r"修改|撤掉|去掉|移除|划掉|补(?:一下|上|一条|充一下|个|进去)|更改|改(?:成|为|到|一下|下|正|掉|回)|更正|更新|变更|纠正|订正|录入|录一下|录下|补录|填写|填入|填上|补填|填成|填为|写入|写成|写到|新增[一1]|新建|添加|[加添][一1][条个次]|删除|删掉|删了?(?:吧|$)|删[一这那]|清空|抹掉|作废|撤销|撤回|关闭|关掉|设(?:为|成|置)|置为|标记?(?:为|成)|批准|审批通过|同意(?:写入|修改)|把.{1,24}(?:改|换成|填|设[为成]|删|标记|置为|关掉|关闭|关了|录入|补录)|(?-u:\b)(?:change|update|set|delete|remove|insert|add|edit|modify|overwrite|enter|close|approve)(?-u:\b)";
    /// After a writing word: it was done, or it is a thing.
    DONE_AFTER = r"^(?:了|过|好了|完|的|人|时间|日期|记录|情况|进度|历史|频率|者|权限|痕迹|没|吗)";
    /// Before a writing word: a question, or something not done.
    DONE_BEFORE = r"(?:谁|什么时候|何时|有没有|是否|已经?|哪些|哪几|未|没|没有|尚未|还没|最近|被|几次|次|上次|上周|本周|刚|昨天|数据|any|last|been|was|were|latest|recent|recently)$";
    /// `close`, `关闭` of something that is no data.
    CLOSE_WHAT = r"质疑|疑问|问题|发现|待办|query|queries|issue|finding|条|它|他|她|这|那|p\d|\d";
    REPORT = r"周报|月报|季报|日报|年报|简报|快报|周总结|月总结|(?:weekly|monthly|quarterly|daily|progress|status) (?:report|summary|update)|(?:进展|进度|总结|工作|项目|阶段|月度|季度|年度|年终|每周|每月|研究)报告|(?:本|这个?|上个?|上一|最近一|过去一|近一|今|昨|当)(?:周|月|星期|季度|天|日)(?:的)?(?:项目|研究|试验|整体|工作|入组|数据|质控)?(?:的)?(?:进展|情况|总结|汇总|概况|小结|怎么样|如何|动态|工作|发生了什么|有什么(?:进展|变化|新|大事))|(?:总结|汇总|概述|小结|归纳|汇报)(?:一下|下|报告)?.{0,12}(?:进展|情况|工作|项目|研究|本周|上周|这周|本月|上个?月)|(?:项目|研究|试验)(?:的)?(?:目前|现在|整体|总体|当前|最新|近期)*(?:的)?(?:进展|概况|总结|小结|进度|情况)|(?:目前|现在|整体|总体|最新|近期)(?:的)?(?:进展|概况|进度)";
    PEOPLE = r"哪[些几](?:个|位|名|例)?的?(?:患者|病人|受试者|人|病例|中心)|(?:患者|病人|受试者|病例|中心|人)(?:有|都有|是)(?:哪|几|多少|谁)|几(?:个|例|位|名)(?:患者|病人|受试者|人)?|多少(?:例|人|个|位|名|条)|名单|列出|列一下|清单|统计|最近入组|(?:患者|病人|受试者)是谁";
    PROTOCOL = r"方案(?:里|中|上|对|规定|要求|允许|是|怎么|有|版本|号|编号|摘要|设计|的|,|$|[^偏违外依])|入排(?:标准|条件)|(?:入选|纳入|排除|入组|剔除|脱落|退出|终止|停药|停止)(?:标准|条件|准则)|纳排|访视窗|窗口期|时间窗|访视(?:计划|安排|时间表|日程|流程)|流程图|(?:主要|次要|探索性|复合|替代)?(?:研究|疗效)?终点|研究(?:目的|设计|假设|周期|背景|分组|药物是|人群)|样本量|盲法|揭盲|设盲|随机(?:化|比例|方法|分层)|分层因素|洗脱|(?:给药|用药|治疗)(?:方案|剂量|方式|途径|频率|周期)|用法用量|剂量(?:调整|减量|降低|递增|限制|是)|调整剂量|(?:要|该|应该?)(?:怎么|如何|怎样)(?:处理|调整|给药|用药|随访)|怎么减量|减量(?:标准|规则|原则)|减几档|禁用|禁忌|(?:允许|禁止|可以|能否|能不能|能)(?:同时|联合|合并)?(?:使用|合用|联用|服用)|疗效(?:评价|评估)(?:标准|方法)|评价标准|(?-u:\b)(?:dlt|protocol|inclusion criteria|exclusion criteria|endpoints?|washout|sample size|randomi[sz]ation)(?-u:\b)|随访(?:期|周期|计划|时长|频率)?(?:要|需要|应|是)?(?:持续|做|随)?(?:多久|多长|几次|多少次|几年|几个月|几周)|(?:多久|多长时间|几周|几天)(?:随访|访视|评估|给药|采血|复查|做)一?次?|(?:筛选期?|基线|v\d+|访视\d+|入组前|给药前|随访期|治疗期)(?:访视)?(?:时|都|里)?(?:需要|要|应该?|必须)(?:做|完成|采集|检查)|(?:sae|严重不良事件|susar|aesi|妊娠事件).{0,12}(?:上报|报告|多长|多久|时限|几小时|几天|流程)|(?:知情同意|icf)书?.{0,6}(?:要求|版本是|怎么签|谁签)|允许.{0,6}(?:几天|多少天|误差|偏差)|gcp|指导原则";
    PROTOCOL_WORD = r"方案(?:里|中|上|对|规定|要求|允许|怎么|是否)|按照?方案|protocol";
    /// A question about what is allowed, due or prescribed, about nobody in particular.
    RULE = r"(?:可以|可否|能否|能不能|不?能|需要|必须|应该?|应当|要不要|允许|不得|禁止|要求)(?:提前|推迟|延后|延迟|同时|继续|再次|重新|再)?.{0,10}(?:入组|参加|使用|用|服用|吃|合并|终止|退出|停药|减量|提前|推迟|延后|补|做|采集|采血|随访|筛选|怀孕|避孕|住院|揭盲|几天|多久|多长时间|几次)|(?:提前|推迟|延后|之前|前|后)(?:多久|几天|多长时间|几周|几小时)|(?:怎么|如何|怎样)(?:处理|保存|储存|存放|判断|判定|定义|评估|评价|分级|给药|服用|上报|报告|随机|揭盲|计算|回收|补做|补服|记录)|(?:流程|定义|标准|要求|规定|依据)(?:是)?(?:什么|怎样|怎么|如何)|(?:哪些|什么)(?:情况|条件|药物?|检查|人群).{0,10}(?:需要|必须|应|要|可以|能|不能|禁|算|属于)";
    /// Words that make it a question about how things stand, not about the rule.
    NOW = r"了(?:吗|没|么|多少|几)|目前|现在|最近|本周|上周|本月|上个?月|今天|昨天|已经|还没|没有?做|未做|漏(?:填|做|录|了)";
    POINTS_AT_PROTOCOL = r"^(?:研究|试验)?方案(?:里|中|上)?(?:是|有)?(?:怎么|如何|什么|有没有|有无)?(?:说|规定|写|要求|定义)?(?:的|了|吗|呢)*$";
    OFF_TOPIC = r"天气|下雨|气温|下雪|台风|雾霾|空气质量|股票|股市|股价|a股|基金|彩票|写(?:一|个|篇|首|段)*(?:诗|歌|作文|小说|文案|情书|请假条|代码|程序|脚本|论文|邮件|祝福|演讲)|诗歌|作诗|(?:讲|说)(?:一?个)?(?:笑话|故事|段子)|笑话|电影|电视剧|综艺|音乐|唱(?:首)?歌|游戏|足球|篮球|世界杯|欧冠|奥运|nba|比赛|食堂|外卖|火锅|烧烤|餐厅|饭店|奶茶|咖啡|好吃|吃(?:什么|啥|点啥)(?:好)?$|吃饭|菜谱|做饭|怎么做.{0,6}(?:菜|肉|鱼|饭)|红烧|旅游|旅行|景点|机票|高铁|火车票|航班|酒店|打车|地铁|公交|停车|快递|包裹|翻译|汇率|人民币|美元|房价|房租|新闻|总统|首相|明星|八卦|星座|算命|生肖|运势|(?-u:\b)(?:python|javascript|java|c\+\+|golang|excel|ppt|word|photoshop|weather|jokes?|poem|stocks?|movies?|songs?|recipes?|news|translate|football|basketball|restaurants?|bitcoin|capital of|birthday)(?-u:\b)|爬虫|编程|算法题|圣诞|春节|生日|礼物|减肥|健身|护肤|化妆|理财|比特币|贷款|恋爱|女朋友|男朋友|相亲|结婚|老婆|老公|作业|高考|考研|考公|会议室|请假|年假|工资|奖金|报销|打印机|wifi|密码|手机(?:号)?(?:买|推荐|怎么)|买(?:什么|哪)|推荐(?:一|个|几|下|点)|多少钱|首都|世界上|历史上|宇宙|地球|月亮|几点了|星期几|今天(?:是)?几号|你(?:几岁|多大|叫什么|喜欢|爱|是男|是女|有感情|吃了)|无聊|陪我聊|聊聊天|聊天|\d+\s*[加减乘除+*x×÷/-]\s*\d+\s*(?:等于|=|是)|等于(?:几|多少)|解(?:一下)?(?:这个)?(?:方程|数学)";
    MEDICAL_ADVICE = r"(?:儿子|女儿|孩子|宝宝|小孩|老婆|老公|爸|妈|父亲|母亲|爷爷|奶奶|外婆|外公|家人|朋友|同事|邻居).{0,8}(?:疼|痛|感冒|失眠|咳嗽|不舒服|发烧|过敏|拉肚子|头晕|生病)|我(?:最近|今天|昨天|昨晚|老是?|总是?|有点|好像|妈|爸|奶奶|爷爷|孩子|朋友|家人|老婆|老公|也)*.{0,6}(?:疼|痛|感冒|失眠|咳嗽|不舒服|发烧|过敏|拉肚子|头晕)|吃(?:点|些)?(?:什么|啥)药|怎么(?:治|预防)|如何(?:治疗|预防)|能治好吗|挂号|哪个医院|偏方|能活多久";
    STUDY = r"患者|病人|受试者|病例|入组|入排|访视|超窗|不良事件|不良反应|(?-u:\b)(?:sae|ae|aes|icf|susar|crf|ecrf|edc|redcap|subjects?|patients?|enrol\w*|visits?|queries)(?-u:\b)|质疑|质控|方案偏离|方案违背|知情|脱落|随访|锁库|监查|稽查";
    DATA = r"筛选|退出|出组|在组|随机|研究|试验|项目|中心|年龄|性别|男女|女性|男性|男的|女的|身高|体重|bmi|血压|心率|脉搏|体温|发烧|发热|咳嗽|腹泻|恶心|呕吐|皮疹|乏力|疼痛|血红蛋白|白细胞|中性粒|血小板|肌酐|转氨酶|胆红素|血糖|血脂|尿蛋白|(?-u:\b)(?:alt|ast|wbc|hgb|hb|plt|cr|egfr|ecog|kps|bmi|ct|mri|query|record|records|adverse|data|site|sites|age|sex|weight|dose|lab|labs|deviations?|how many|consent|safety|enrollment|dropouts?|screen\w*)(?-u:\b)|合并用药|用药|给药|服药|停药|剂量|药物|病史|既往|诊断|化验|检验|检查|指标|血常规|生化|尿常规|肝功|肾功|心电图|影像|肿瘤|疗效|缓解|进展|死亡|生存|住院|妊娠|怀孕|表单|数据|缺失|漏填|空缺|录入|伦理|签署|签字|偏离|违背|终点|方案|平均|中位|比例|分布|趋势|人数|例数|进度|完成率|核查|校验|待办|待处理|未关闭|超标|异常|高血压|糖尿病|过敏|毒性|依从|回收|采血|样本|标本|严重|随访|到期|谁";
    /// The trial's own things, beyond its data.
    TRIAL = r"治疗|研究药|试验药|药物|服药|漏服|入组|抑制剂|激素|疫苗|手术|放疗|化疗|避孕|妊娠|样本|采血|知情";
    ASKS = r"吗|呢|么|多少|几(?:个|例|位|名|条|次|岁|分|级|天|周|月|年|号|点|家|项|种|人)|谁|哪|什么|啥|怎么|咋|如何|有没有|是否|是不是|能否|多大|多高|多重|多久|多长|(?:^|[^检监核稽抽筛复])查|看(?:看|下|一下|一眼)|列|统计|告诉|给我|显示|展示|导出|汇总|对比|比较|找(?:出|到|一下|下)|搜|帮我|帮忙|请|情况|名单|(?-u:\b)(?:how|what|which|who|when|where|is|are|does|did|list|show|count|tell|find|any)(?-u:\b)";
    FILLER = r"(?:这个?|那个?|这位|患者|病人|受试者|病例|的|请|麻烦|帮我|帮忙|帮|老师|吧|啊|呢|呀|哦|哈|嘛|啦|了|吗|一下|谢谢|和|与|及|跟|还有|以及|我想|我要|想|要|另外|然后|接着|顺便|再|先|也|都|就|是|对|给|把|将|关于|编号|嗯|好的?|行|那么|那|外|以外|之外|除了?|(?-u:\b)(?:id|ok|pls|please|subject|patient|record|for|the|and|of|to|on|with)(?-u:\b)|[[:punct:]\s、，。·~—「」『』“”《》【】（）]|\p{Emoji_Presentation})+";
}

/// Whether the message tries to override the rules the agent works by. Such a message is refused whole.
pub(super) fn is_injection(plain: &str) -> bool {
    INJECTION.is_match(plain)
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

/// Whether a clause only points a question at the protocol: 方案怎么说.
pub(super) fn points_at_protocol(text: &str) -> bool {
    POINTS_AT_PROTOCOL.is_match(text.trim())
}

/// Whether nothing but fillers is left of a text from which names and references were taken out.
pub(super) fn is_filler(text: &str) -> bool {
    FILLER.replace_all(text, "").trim().is_empty()
}

/// Reads one clause. `bare` is the clause without record ids and references; `asked` when it ended
/// with a question mark; `about_patient` when it names or refers to one. The second answer is the byte of
/// the clause from which on named records are not wanted.
pub(super) fn read(
    clause: &str,
    bare: &str,
    asked: bool,
    about_patient: bool,
) -> (Cue, Option<usize>) {
    let text = bare.trim();
    let only = |cue| (cue, None);
    if GREETING.is_match(text) {
        return only(Cue::Greeting);
    }
    if THANKS.is_match(text) {
        return only(Cue::Thanks);
    }
    if CANCEL.is_match(text) && !about_patient {
        return only(Cue::Cancel);
    }
    if CORRECTION.is_match(text) {
        return only(Cue::Correction);
    }
    if HELP.is_match(text) {
        return only(Cue::Help);
    }
    if FEEDBACK.is_match(text) && (!about_patient || TO_THE_AGENT.is_match(text)) {
        return only(Cue::Feedback);
    }
    if is_filler(text) {
        return only(Cue::Silent);
    }
    if about_patient && is_filler(&NEGATION.replace_all(text, "")) {
        return only(Cue::Excluded);
    }
    let asks = asked || ASKS.is_match(text);
    match command(clause, about_patient) {
        (Some(Cue::Negated), _) if ASKS_BESIDE.is_match(text) => {
            return only(Cue::Data { asks: true });
        }
        (Some(cue), cut) => return (cue, cut),
        (None, _) => {}
    }
    only(question(text, asks, about_patient))
}

/// What a clause that commands nothing is about.
fn question(text: &str, asks: bool, about_patient: bool) -> Cue {
    let study = about_patient || STUDY.is_match(text);
    if !study && (MEDICAL_ADVICE.is_match(text) || OFF_TOPIC.is_match(text)) {
        return Cue::OffTopic;
    }
    let people = PEOPLE.is_match(text);
    if !about_patient && !people && REPORT.is_match(text) {
        return Cue::Report;
    }
    let protocol = if about_patient || people {
        PROTOCOL_WORD.is_match(text)
    } else {
        PROTOCOL.is_match(text)
            || RULE.is_match(text)
                && !NOW.is_match(text)
                && (study || TRIAL.is_match(text) || DATA.is_match(text))
    };
    if protocol {
        return Cue::Protocol;
    }
    if study || people || DATA.is_match(text) {
        return Cue::Data { asks };
    }
    Cue::Unknown
}

/// A check or a change, wanted or taken back, and where in the clause names stop being wanted.
fn command(clause: &str, about_patient: bool) -> (Option<Cue>, Option<usize>) {
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
        "更新" | "填写" | "标记为" | "标记成" | "去掉" | "补一下" | "补上" | "补个" => {
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
