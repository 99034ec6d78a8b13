//! Generated people: rare surnames, identity cards with true check digits.

use rand::seq::IndexedRandom;

/// Rare ones, compound ones, and one that is also a word.
const SURNAMES: [&str; 16] = [
    "蔺", "郗", "禚", "亓官", "逄", "尉迟", "澹台", "乜", "仉", "佴", "羿", "禽", "缪", "皇甫",
    "高", "欧阳",
];
const GIVEN: [&str; 16] = [
    "燚", "翀赟", "懿轩", "珺瑶", "霈", "昶旭", "煜祺", "玥彤", "骁", "沛涵", "淼", "锴铭", "婧琪",
    "珩", "奕辰", "芷若",
];
const REGIONS: [&str; 5] = ["110105", "310115", "440305", "510104", "650102"];

/// One person.
#[derive(Debug, Clone)]
pub struct Person {
    pub name: String,
    pub card: String,
    pub phone: String,
    pub mrn: String,
    pub address: String,
    pub email: String,
    pub born: String,
}

impl Person {
    /// Somebody.
    pub fn generated() -> Self {
        let mut rng = rand::rng();
        let (year, month, day) = (
            rand::random_range(1930..2005),
            rand::random_range(1..13),
            rand::random_range(1..29),
        );
        let region = REGIONS.choose(&mut rng).unwrap();
        let sequence = rand::random_range(0..1000);
        let body = format!("{region}{year:04}{month:02}{day:02}{sequence:03}");
        let check = check_digit(&body);
        Self {
            name: format!(
                "{}{}",
                SURNAMES.choose(&mut rng).unwrap(),
                GIVEN.choose(&mut rng).unwrap()
            ),
            card: format!("{body}{check}"),
            phone: format!("13{}", rand::random_range(100_000_000..1_000_000_000)),
            mrn: format!("ZY{}", rand::random_range(1_000_000..10_000_000)),
            address: format!(
                "北京市海淀区知春路{}号院{}号楼{}室",
                rand::random_range(11..99),
                rand::random_range(1..30),
                rand::random_range(101..2999)
            ),
            email: format!(
                "p{}@hospital-mail.example.cn",
                rand::random_range(10_000..99_999)
            ),
            born: format!("{year:04}-{month:02}-{day:02}"),
        }
    }

    /// Some people.
    pub fn several(count: usize) -> Vec<Self> {
        (0..count).map(|_| Self::generated()).collect()
    }

    /// Everything nobody else may read.
    pub fn values(&self) -> [String; 9] {
        [
            self.name.clone(),
            self.card.clone(),
            self.phone.clone(),
            self.mrn.clone(),
            self.address.clone(),
            self.email.clone(),
            self.born.clone(),
            self.born.replace('-', "/"),
            "知春路".to_owned(),
        ]
    }

    /// As a nurse writes of somebody: dressed in several ways.
    pub fn note(&self) -> String {
        let wide: String = self
            .phone
            .chars()
            .map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap())
            .collect();
        let (first, last) = self
            .name
            .split_at(self.name.chars().next().unwrap().len_utf8());
        format!(
            "{name}自述胸闷。{first} {last}（住院号：{mrn}，身份证{card}）电话{wide}，{phone}，邮箱{email}，家住{address}，出生于{born}，生日{slash}。否认间质性肺炎。",
            name = self.name,
            mrn = self.mrn,
            card = self.card,
            phone = self.phone,
            email = self.email,
            address = self.address,
            born = self.born,
            slash = self.born.replace('-', "/"),
        )
    }
}

/// ISO 7064 MOD 11-2, written anew: a test that borrowed the program's would prove nothing.
fn check_digit(body: &str) -> char {
    let mut remainder = 0;
    for c in body.chars() {
        remainder = (remainder + c.to_digit(10).unwrap()) * 2 % 11;
    }
    match (12 - remainder) % 11 {
        10 => 'X',
        digit => char::from_digit(digit, 10).unwrap(),
    }
}

#[test]
fn generated_cards_have_true_check_digits() {
    assert_eq!(check_digit("11010519491231002"), 'X');
    assert_eq!(check_digit("44052418800101001"), '4');
}
