//! What a clause says it wants, by its words alone. Whom it is about is decided elsewhere.
//!
//! The order of the questions is the order of harm: an attempt to override the rules first, then
//! commands taken back, then commands, then questions.

use super::{
    command::{command, without_negations},
    message::patterns,
};

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
    INJECTION = r"(?x)
        (?:跳过|绕过|绕开|不经过?|无需)(?:任何)?(?:审批|确认|审核流程|权限|人工|校验规则|安全)
        |你(?:现在)?(?:必须|只能)(?:听|服从|无条件|按我)|(?:以下|下面|这)(?:这?段|条)?(?:是
        |为)?(?:来自)?系统(?:消息|指令|管理员)|你的(?:系统)?(?:提示词|指令|prompt)|(?:忽略|无视|忘记
        |忘掉|抛开|不要理会|绕过)(?:掉)?(?:以上|之前|前面|上面|上述|先前|此前|所有|全部|一切|你的?
        |系统|原来).{0,12}(?:指令|指示|命令|规则|提示|要求|设定|约束|限制|身份)|(?:系统|初始
        |内部)提示词|没有(?:任何)?(?:限制|规则|约束)的|扮演|假装你?是|假设你是|你现在是|从现在起你
        |开发者模式|越狱模式?|(?:ignore|disregard|forget|bypass|override)\s+(?:all\s+|any\s+|the\s+
        |your\s+|of\s+)*(?:previous|prior|above|earlier|preceding|system|instructions?|rules|safety)
        |system\ prompt|developer\ mode|jailbreak|(?:act|pretend|behave)\ as\ |you\ are\ now\ 
        |</?(?:system|instructions?|data|user|assistant)>|\[/?(?:inst|system)\]|drop\s+table
        |delete\s+from|truncate\s+table|update\s+\w+\s+set";
    GREETING = r"^(?:你好|您好|hi|hello|hey|嗨|哈喽|哈罗|早|早上好|早安|上午好|中午好|下午好|晚上好|晚安|在吗|在么|在不在|有人吗|老师好|大家好|小助手|助手)[呀啊哦呢哈~\s]*$";
    THANKS = r"(?x)
        ^(?:好的?|ok|嗯)?\s*(?:谢谢|感谢|多谢|谢了|辛苦了?|麻烦了|拜托了?|thanks?|thank\ you
        |thx)(?:你|您|啦|了|哈|老师|大家|very\ much|so\ much|[~!\s])*$";
    HELP = r"(?x)
        ^(?:请问)?(?:我)?(?:要|该|应该)?(?:怎么|如何|怎样|在哪里?)(?:才能)?(?:用你)?(?:查询|查看|查
        |导出|上传|提交|登录|看到|订阅|退订|发送?|拍照)|(?:怎么|如何|怎样)(?:跟|和|对|向)你(?:说|讲
        |提问|沟通)|^(?:/?(?:help|帮助|menu|菜单)|/start|使用(?:说明|帮助|指南|方法|手册)
        |操作(?:说明|指南|手册)|(?:说明|使用|操作)手册|新手(?:指南|教程)|功能(?:列表|介绍|清单)?
        |(?:指令|命令)(?:列表|大全)?)$|(?:你|您|机器人|助手|系统)(?:都|还|到底)?(?:能|会|可以|支持
        |有)(?:帮我|帮忙|为我)?(?:做|干|处理|查|提供)?些?(?:什么|啥|哪些|点什么)|(?:^|这个?|你|系统
        |工具|机器人|助手|东西|功能)(?:要|该|应该|到底)?(?:怎么|如何|怎样)(?:用|使用|操作)|有(?:什么
        |哪些)(?:功能|命令|指令|用法)|你是(?:谁|什么|干嘛|做什么|干什么)|what\ can\ you\ do
        |who\ are\ you|how\ (?:do|can|to|should)\ (?:i\ |we\ )?use|(?:怎么|如何|怎样
        |咋)(?:样)?(?:才能)?(?:去|来|发起|启动|开始|提交|做|进行|跑|让你|使用)?.{0,6}(?:质控|核查
        |校验|qc)|(?:怎么|如何|怎样|咋)(?:样)?(?:才能)?(?:去|来)?(?:修改|更改|录入|更正|删除|关闭
        |补录|填写|更新)|(?:质控|qc)是(?:个)?(?:什么|啥|做什么|干嘛)|(?:什么|啥)(?:是|叫)(?:质控|qc)
        |质控(?:什么|啥)意思|(?:给|发)?(?:我)?(?:看看|看下|看一下|需要)?(?:一下)?(?:使用说明
        |帮助文档|帮助信息)";
    FEEDBACK = r"(?x)
        👍|👎|(?:为什么|怎么|咋)(?:还)?(?:这么|那么|那样)(?:慢|卡|笨|久)|投诉|(?:系统|机器人|程序|软件)(?:又|是不是)?(?:坏|崩|出错|报错|有问题|卡)|没反应|(?:不|很|挺|真|太)好用|难用|(?:回答|答案|回复|解释|总结|结果)(?:对我)?(?:都|也|还|很|挺|非常|真|太)*(?:有
        |没有?)(?:很大|什么|多大)?(?:帮助|用处|用)|^(?:请|麻烦)?(?:别|不要|少|不用)(?:再|老|总|半夜
        |大半夜|周末)*(?:给我)?(?:再)?(?:发|推送?|通知|提醒|打扰)|^(?:这个?|刚才的?|上面的?
        |你的?)?(?:回答|答案|结果|回复)?(?:还|很|挺|非常|真|太|都|完全|特别|比较)?(?:有用|没用
        |没有用|无用|有帮助|没帮助|没有帮助|不错|很好|好评|差评|赞|点赞|棒|满意|不满意|差劲
        |垃圾)(?:了|啊|的|哦|!|~)*$|(?:回答|回复|答|说|讲|写|理解|搞|弄|算|识别|解释)(?:得|的
        |到)?(?:也|都|还|很|挺|完全|有点|太|不太|非常|真)*(?:不对|不准|不好|有误|有问题|不错|很好|好
        |清楚|清晰|太长|太短|太慢|啰嗦|错了?|对)(?:[了啊的哦嘛]|$)|(?:回答|答案|回复)(?:不对|错|有误
        |不准|太|不错|很好|没用|有用)|(?:你|这个?|刚才|刚刚|上面|上一条).{0,6}(?:答|说|搞|弄|理解
        |算)错|不是(?:这个|我的|那个)意思|答非所问|太(?:啰嗦|罗嗦|长了|短了|慢了|复杂了|难用了?|好了
        |棒了)|(?:以后|今后|周末|晚上|夜里|节假日|假期|下班后|休息时间|白天|工作日|上班).{0,10}(?:别
        |不要|不用|勿|少|只|再)(?:再|给我)?.{0,6}(?:发|推送?|通知|提醒|打扰|消息)|(?:回答|回复|消息
        |说话|答复|内容|语气).{0,8}(?:简短|简洁|简单|详细|短|长|精简|客气|正式)(?:一?(?:点|些)|$)
        |(?:说|讲|答|写)(?:得)?(?:简短|简洁|简单|详细|短)一?(?:点|些)|以后(?:请)?(?:叫我|称呼我
        |用英文|用中文|都用|只发|每)|(?:good|bad|wrong|useless|useful|helpful|great|nice
        |poor)\ ?(?:bot|answer|job|reply|response)?!?$|not\ (?:helpful|useful|right|correct)
        |很(?:清楚|明白|详细|及时|准确)$|(?:体验|用起来)(?:不错|很好|很差|太差)";
    /// Beside a patient's name, blame is for the agent only when it says so.
    TO_THE_AGENT = r"👍|👎|回答|回复|答案|你|您|以后|答得|说得";
    CANCEL = r"(?x)
        ^(?:那|还是|先|就)*(?:算了|不用了?|不要了?|不必了?|取消|别了|停|停止|停下|撤回|撤销|等等
        |等一下|等下|先等等|免了|不做了?|不查了?|不质控了?|不弄了|作罢|暂停|先不做|先不了|先不要
        |不需要了?|stop|cancel|never\ ?mind|not\ now|forget\ it)(?:算了|吧|了|啦|哈|先|不用了?)*$";
    CORRECTION = r"(?x)
        ^(?:哦|啊|呃|哎)?(?:不对|不是|错了|搞错了?|说错了?|打错了?|写错了?|弄错了?|发错了?|输错了?
        |口误|更正一下|应该是|我是说|sorry|i\ mean)(?:[吧了啊,\s]*(?:应该)?是?)*$";
    /// A question beside a command taken back.
    ASKS_BESIDE = r"告诉我|看看|看一下|看下|是多少|有几个|有多少";
    REPORT = r"(?x)
        周报|月报|季报|日报|年报|简报|快报|周总结|月总结|(?:weekly|monthly|quarterly|daily|progress
        |status)\ (?:report|summary|update)|(?:进展|进度|总结|工作|项目|阶段|月度|季度|年度|年终
        |每周|每月|研究)报告|(?:本|这个?|上个?|上一|最近一|过去一|近一|今|昨|当)(?:周|月|星期|季度
        |天|日)(?:的)?(?:项目|研究|试验|整体|工作|入组|数据|质控)?(?:的)?(?:进展|情况|总结|汇总|概况
        |小结|怎么样|如何|动态|工作|发生了什么|有什么(?:进展|变化|新|大事))|(?:总结|汇总|概述|小结
        |归纳|汇报)(?:一下|下|报告)?.{0,12}(?:进展|情况|工作|项目|研究|本周|上周|这周|本月|上个?月)
        |(?:项目|研究|试验)(?:的)?(?:目前|现在|整体|总体|当前|最新|近期)*(?:的)?(?:进展|概况|总结
        |小结|进度|情况)|(?:目前|现在|整体|总体|最新|近期)(?:的)?(?:进展|概况|进度)";
    PEOPLE = r"(?x)
        哪[些几](?:个|位|名|例)?的?(?:患者|病人|受试者|人|病例|中心)|(?:患者|病人|受试者|病例|中心
        |人)(?:有|都有|是)(?:哪|几|多少|谁)|几(?:个|例|位|名)(?:患者|病人|受试者|人)?|多少(?:例|人
        |个|位|名|条)|名单|列出|列一下|清单|统计|最近入组|(?:患者|病人|受试者)是谁";
    PROTOCOL = r"(?x)
        方案(?:里|中|上|对|规定|要求|允许|是|怎么|有|版本|号|编号|摘要|设计|的|,|$|[^偏违外依])
        |入排(?:标准|条件)|(?:入选|纳入|排除|入组|剔除|脱落|退出|终止|停药|停止)(?:标准|条件|准则)
        |纳排|访视窗|窗口期|时间窗|访视(?:计划|安排|时间表|日程|流程)|流程图|(?:主要|次要|探索性
        |复合|替代)?(?:研究|疗效)?终点|研究(?:目的|设计|假设|周期|背景|分组|药物是|人群)|样本量|盲法
        |揭盲|设盲|随机(?:化|比例|方法|分层)|分层因素|洗脱|(?:给药|用药|治疗)(?:方案|剂量|方式|途径
        |频率|周期)|用法用量|剂量(?:调整|减量|降低|递增|限制|是)|调整剂量|(?:要|该|应该?)(?:怎么
        |如何|怎样)(?:处理|调整|给药|用药|随访)|怎么减量|减量(?:标准|规则|原则)|减几档|禁用|禁忌
        |(?:允许|禁止|可以|能否|能不能|能)(?:同时|联合|合并)?(?:使用|合用|联用|服用)|疗效(?:评价
        |评估)(?:标准|方法)|评价标准|(?-u:\b)(?:dlt|protocol|inclusion\ criteria|exclusion\ criteria
        |endpoints?|washout|sample\ size|randomi[sz]ation)(?-u:\b)|随访(?:期|周期|计划|时长
        |频率)?(?:要|需要|应|是)?(?:持续|做|随)?(?:多久|多长|几次|多少次|几年|几个月|几周)|(?:多久
        |多长时间|几周|几天)(?:随访|访视|评估|给药|采血|复查|做)一?次?|(?:筛选期?|基线|v\d+|访视\d+
        |入组前|给药前|随访期|治疗期)(?:访视)?(?:时|都|里)?(?:需要|要|应该?|必须)(?:做|完成|采集
        |检查)|(?:sae|严重不良事件|susar|aesi|妊娠事件).{0,12}(?:上报|报告|多长|多久|时限|几小时
        |几天|流程)|(?:知情同意|icf)书?.{0,6}(?:要求|版本是|怎么签|谁签)|允许.{0,6}(?:几天|多少天
        |误差|偏差)|gcp|指导原则";
    PROTOCOL_WORD = r"方案(?:里|中|上|对|规定|要求|允许|怎么|是否)|按照?方案|protocol";
    /// A question about what is allowed, due or prescribed, about nobody in particular.
    RULE = r"(?x)
        (?:可以|可否|能否|能不能|不?能|需要|必须|应该?|应当|要不要|允许|不得|禁止|要求)(?:提前|推迟
        |延后|延迟|同时|继续|再次|重新|再)?.{0,10}(?:入组|参加|使用|用|服用|吃|合并|终止|退出|停药
        |减量|提前|推迟|延后|补|做|采集|采血|随访|筛选|怀孕|避孕|住院|揭盲|几天|多久|多长时间|几次)
        |(?:提前|推迟|延后|之前|前|后)(?:多久|几天|多长时间|几周|几小时)|(?:怎么|如何|怎样)(?:处理
        |保存|储存|存放|判断|判定|定义|评估|评价|分级|给药|服用|上报|报告|随机|揭盲|计算|回收|补做
        |补服|记录)|(?:流程|定义|标准|要求|规定|依据)(?:是)?(?:什么|怎样|怎么|如何)|(?:哪些
        |什么)(?:情况|条件|药物?|检查|人群).{0,10}(?:需要|必须|应|要|可以|能|不能|禁|算|属于)";
    /// Words that make it a question about how things stand, not about the rule.
    NOW = r"了(?:吗|没|么|多少|几)|目前|现在|最近|本周|上周|本月|上个?月|今天|昨天|已经|还没|没有?做|未做|漏(?:填|做|录|了)";
    POINTS_AT_PROTOCOL = r"^(?:研究|试验)?方案(?:里|中|上)?(?:是|有)?(?:怎么|如何|什么|有没有|有无)?(?:说|规定|写|要求|定义)?(?:的|了|吗|呢)*$";
    OFF_TOPIC = r"(?x)
        天气|下雨|气温|下雪|台风|雾霾|空气质量|股票|股市|股价|a股|基金|彩票|写(?:一|个|篇|首
        |段)*(?:诗|歌|作文|小说|文案|情书|请假条|代码|程序|脚本|论文|邮件|祝福|演讲)|诗歌|作诗|(?:讲
        |说)(?:一?个)?(?:笑话|故事|段子)|笑话|电影|电视剧|综艺|音乐|唱(?:首)?歌|游戏|足球|篮球
        |世界杯|欧冠|奥运|nba|比赛|食堂|外卖|火锅|烧烤|餐厅|饭店|奶茶|咖啡|好吃|吃(?:什么|啥
        |点啥)(?:好)?$|吃饭|菜谱|做饭|怎么做.{0,6}(?:菜|肉|鱼|饭)|红烧|旅游|旅行|景点|机票|高铁
        |火车票|航班|酒店|打车|地铁|公交|停车|快递|包裹|翻译|汇率|人民币|美元|房价|房租|新闻|总统
        |首相|明星|八卦|星座|算命|生肖|运势|(?-u:\b)(?:python|javascript|java|c\+\+|golang|excel|ppt
        |word|photoshop|weather|jokes?|poem|stocks?|movies?|songs?|recipes?|news|translate|football
        |basketball|restaurants?|bitcoin|capital\ of|birthday)(?-u:\b)|爬虫|编程|算法题|圣诞|春节
        |生日|礼物|减肥|健身|护肤|化妆|理财|比特币|贷款|恋爱|女朋友|男朋友|相亲|结婚|老婆|老公|作业
        |高考|考研|考公|会议室|请假|年假|工资|奖金|报销|打印机|wifi|密码|手机(?:号)?(?:买|推荐|怎么)
        |买(?:什么|哪)|推荐(?:一|个|几|下|点)|多少钱|首都|世界上|历史上|宇宙|地球|月亮|几点了|星期几
        |今天(?:是)?几号|你(?:几岁|多大|叫什么|喜欢|爱|是男|是女|有感情|吃了)|无聊|陪我聊|聊聊天
        |聊天|\d+\s*[加减乘除+*x×÷/-]\s*\d+\s*(?:等于|=|是)|等于(?:几|多少)
        |解(?:一下)?(?:这个)?(?:方程|数学)";
    MEDICAL_ADVICE = r"(?x)
        (?:儿子|女儿|孩子|宝宝|小孩|老婆|老公|爸|妈|父亲|母亲|爷爷|奶奶|外婆|外公|家人|朋友|同事
        |邻居).{0,8}(?:疼|痛|感冒|失眠|咳嗽|不舒服|发烧|过敏|拉肚子|头晕|生病)|我(?:最近|今天|昨天
        |昨晚|老是?|总是?|有点|好像|妈|爸|奶奶|爷爷|孩子|朋友|家人|老婆|老公|也)*.{0,6}(?:疼|痛|感冒
        |失眠|咳嗽|不舒服|发烧|过敏|拉肚子|头晕)|吃(?:点|些)?(?:什么|啥)药|怎么(?:治|预防)
        |如何(?:治疗|预防)|能治好吗|挂号|哪个医院|偏方|能活多久";
    STUDY = r"(?x)
        患者|病人|受试者|病例|入组|入排|访视|超窗|不良事件|不良反应|(?-u:\b)(?:sae|ae|aes|icf|susar
        |crf|ecrf|edc|redcap|subjects?|patients?|enrol\w*|visits?|queries)(?-u:\b)|质疑|质控
        |方案偏离|方案违背|知情|脱落|随访|锁库|监查|稽查";
    DATA = r"(?x)
        筛选|退出|出组|在组|随机|研究|试验|项目|中心|年龄|性别|男女|女性|男性|男的|女的|身高|体重
        |bmi|血压|心率|脉搏|体温|发烧|发热|咳嗽|腹泻|恶心|呕吐|皮疹|乏力|疼痛|血红蛋白|白细胞|中性粒
        |血小板|肌酐|转氨酶|胆红素|血糖|血脂|尿蛋白|(?-u:\b)(?:alt|ast|wbc|hgb|hb|plt|cr|egfr|ecog
        |kps|bmi|ct|mri|query|record|records|adverse|data|site|sites|age|sex|weight|dose|lab|labs
        |deviations?|how\ many|consent|safety|enrollment|dropouts?|screen\w*)(?-u:\b)|合并用药|用药
        |给药|服药|停药|剂量|药物|病史|既往|诊断|化验|检验|检查|指标|血常规|生化|尿常规|肝功|肾功
        |心电图|影像|肿瘤|疗效|缓解|进展|死亡|生存|住院|妊娠|怀孕|表单|数据|缺失|漏填|空缺|录入|伦理
        |签署|签字|偏离|违背|终点|方案|平均|中位|比例|分布|趋势|人数|例数|进度|完成率|核查|校验|待办
        |待处理|未关闭|超标|异常|高血压|糖尿病|过敏|毒性|依从|回收|采血|样本|标本|严重|随访|到期|谁";
    /// The trial's own things, beyond its data.
    TRIAL = r"治疗|研究药|试验药|药物|服药|漏服|入组|抑制剂|激素|疫苗|手术|放疗|化疗|避孕|妊娠|样本|采血|知情";
    ASKS = r"(?x)
        吗|呢|么|多少|几(?:个|例|位|名|条|次|岁|分|级|天|周|月|年|号|点|家|项|种|人)|谁|哪|什么|啥
        |怎么|咋|如何|有没有|是否|是不是|能否|多大|多高|多重|多久|多长|(?:^|[^检监核稽抽筛复])查
        |看(?:看|下|一下|一眼)|列|统计|告诉|给我|显示|展示|导出|汇总|对比|比较|找(?:出|到|一下|下)
        |搜|帮我|帮忙|请|情况|名单|(?-u:\b)(?:how|what|which|who|when|where|is|are|does|did|list
        |show|count|tell|find|any)(?-u:\b)";
    FILLER = r"(?x)
        (?:这个?|那个?|这位|患者|病人|受试者|病例|的|请|麻烦|帮我|帮忙|帮|老师|吧|啊|呢|呀|哦|哈|嘛
        |啦|了|吗|一下|谢谢|和|与|及|跟|还有|以及|我想|我要|想|要|另外|然后|接着|顺便|再|先|也|都|就
        |是|对|给|把|将|关于|编号|嗯|好的?|行|那么|那|外|以外|之外|除了?|(?-u:\b)(?:id|ok|pls|please
        |subject|patient|record|for|the|and|of|to|on|with)(?-u:\b)
        |[[:punct:]\s、，。·~—「」『』“”《》【】（）]|\p{Emoji_Presentation})+";
}

/// Whether the message tries to override the rules the agent works by. Such a message is refused whole.
pub(super) fn is_injection(plain: &str) -> bool {
    INJECTION.is_match(plain)
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
    if about_patient && is_filler(&without_negations(text)) {
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

#[cfg(test)]
mod tests {
    #[test]
    fn every_pattern_compiles() {
        super::compile_all();
    }
}
