//! What is hidden wherever it stands, without the study knowing it.

use super::{redact, stranger};

/// Each text with what is shown of it.
#[test]
fn personal_data_is_found_by_its_look_or_by_the_words_beside_it() {
    let redactor = stranger();
    let lines = [
        // Identity cards: current, with X, lower case, full width, spaced, with dashes, before 1999.
        "身份证 11010519491231002X。",
        "身份证号：11010519491231002x",
        "１１０１０５１９４９１２３１００２Ｘ",
        "110105 19491231 002X",
        "110105-1949-1231-002X",
        "证件 1 1 0 1 0 5 1 9 4 9 1 2 3 1 0 0 2 X 已核对",
        "老证 110105491231002",
        "写错一位 110105194912310021",
        "港澳台居住证 810000199408230021",
        "香港身份证 A123456(7)",
        "护照 E12345678，另一本 EA1234567",
        "通行证：C12345678",
        // Telephones.
        "手机 13812345678",
        "手机138-1234-5678",
        "手机：138 1234 5678。",
        "+86 13812345678",
        "0086-138-1234-5678",
        "１３８１２３４５６７８",
        "138\u{200b}1234\u{200b}5678",
        "电话 010-62345678 转 801",
        "座机（0371）65891234",
        "联系电话：62345678",
        "微信号：zhang_san88，QQ：12345678",
        // E-mail.
        "邮箱 zhang.san+trial@mail.example.com.cn；",
        "ＺＳ@ｅｘａｍｐｌｅ．ｃｏｍ",
        // The hospital's numbers.
        "住院号：ZY0012345，病案号 884512，门诊号为 M-20230012",
        "就诊卡号=00012345678",
        "MRN: A1234567",
        // Birth.
        "出生日期：1968-05-12",
        "出生于1968年5月12日，入组 2026-03-02",
        "1968年5月出生",
        "DOB 12/05/1968",
        "生日1968.5.12",
        r#"{"出生日期":"1968-05-12"}"#,
        // Addresses.
        "家住北京市海淀区中关村南大街5号院3号楼2单元501室，退休。",
        "住址：浙江省杭州市西湖区文三路 100 号",
        "现住在幸福小区12栋",
        "河南省周口市西华县红花集镇李庄村",
        "在中山北路123号2栋501室",
        // Bank cards.
        "银行卡 6222021234567890128",
        "卡 6222 0212 3456 7890 128",
        // Names.
        "患者张三，男，58 岁。",
        "患者王建国因咳嗽入院。",
        "患者欧阳娜娜诉头晕",
        "姓名：赵一曼",
        "姓名：阿依古丽·买买提",
        "姓 名: 钱 学 森",
        "Name: John Smith",
        "请转告李秀英女士复诊",
        "我是陈小明，想问下 P001",
        "家属刘芳签字",
        "受试者尉迟恭于 2026-03-02 入组",
    ];
    let shown: Vec<String> = lines.iter().map(|line| redact(&redactor, line)).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_name_told_once_is_hidden_everywhere_else_too() {
    let text = "张三今日复诊。\n患者张三，男。\n张三于 3 月 2 日入组；张 三签字。";
    let shown = redact(&stranger(), text);
    assert!(
        !shown.contains("张三") && !shown.contains("张 三"),
        "{shown}"
    );
    assert_eq!(shown.matches("〔姓名1〕").count(), 3, "{shown}");
}
