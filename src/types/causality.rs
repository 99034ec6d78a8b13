//! Scales of causality between an adverse event and the study drug. Each study names its own; what one scale
//! says is never put into the words of another.

use serde::{Deserialize, Serialize};

/// The scale of a study: `safety.causality_scale` of its project file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Five levels, as many sponsors' case report forms have them.
    #[default]
    Five,
    /// Six levels of the Chinese guideline for ADR reports of 2018 (No. 131).
    Six,
    /// The categories of the WHO Uppsala Monitoring Centre.
    WhoUmc,
    /// Naranjo's ten questions, 1981. The score decides the level; it is added up here, not by a model.
    Naranjo,
}

/// One of Naranjo's questions, with what each answer counts.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// In Chinese.
    pub question: &'static str,
    /// Points of a yes and of a no; `不详` counts nothing.
    pub points: (i32, i32),
}

const fn item(question: &'static str, yes: i32, no: i32) -> Item {
    Item {
        question,
        points: (yes, no),
    }
}

/// Naranjo's questions in order.
pub const NARANJO: [Item; 10] = [
    item("此前是否有关于该反应的结论性报告", 1, 0),
    item("不良事件是否在使用可疑药物之后出现", 2, -1),
    item("停药或使用特异性拮抗剂后反应是否改善", 1, 0),
    item("重新用药后反应是否再次出现", 2, -1),
    item("是否有可单独引起该反应的其他原因", -1, 2),
    item("使用安慰剂后反应是否再次出现", -1, 1),
    item("血液或其他体液中药物浓度是否达到中毒水平", 1, 0),
    item("增加剂量时反应是否加重，或减少剂量时减轻", 1, 0),
    item("既往使用相同或类似药物是否有过类似反应", 1, 0),
    item("不良事件是否有客观证据证实", 1, 0),
];

impl Scale {
    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Five => "五级法",
            Self::Six => "六级法（2018 年第 131 号指南）",
            Self::WhoUmc => "WHO-UMC",
            Self::Naranjo => "Naranjo 评分",
        }
    }

    /// Its levels, in its own words, from the surest; an answer must be one of them, letter by letter.
    #[must_use]
    pub fn levels(self) -> &'static [&'static str] {
        match self {
            Self::Five => &["肯定相关", "可能相关", "可能无关", "肯定无关", "无法评估"],
            Self::Six => &["肯定", "很可能", "可能", "可能无关", "待评价", "无法评价"],
            Self::WhoUmc => &[
                "Certain",
                "Probable",
                "Possible",
                "Unlikely",
                "Conditional",
                "Unassessable",
            ],
            Self::Naranjo => &["肯定", "很可能", "可能", "可疑"],
        }
    }

    /// Whether a level of this scale says that nothing can be said (yet).
    #[must_use]
    pub fn is_open(self, level: &str) -> bool {
        matches!(
            (self, level),
            (Self::Five, "无法评估")
                | (Self::Six, "待评价" | "无法评价")
                | (Self::WhoUmc, "Conditional" | "Unassessable")
        )
    }

    /// The level a Naranjo score stands for.
    #[must_use]
    pub fn of_score(score: i32) -> &'static str {
        match score {
            9.. => "肯定",
            5..=8 => "很可能",
            1..=4 => "可能",
            _ => "可疑",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scores_of_naranjo_fall_on_his_levels() {
        let levels: Vec<&str> = [-4, 0, 1, 4, 5, 8, 9, 13].map(Scale::of_score).into();
        assert_eq!(
            levels,
            [
                "可疑",
                "可疑",
                "可能",
                "可能",
                "很可能",
                "很可能",
                "肯定",
                "肯定"
            ]
        );
        let most: i32 = NARANJO.iter().map(|q| q.points.0.max(q.points.1)).sum();
        let least: i32 = NARANJO
            .iter()
            .map(|q| q.points.0.min(q.points.1).min(0))
            .sum();
        assert_eq!((least, most), (-4, 13));
    }

    #[test]
    fn only_levels_of_the_scale_itself_can_be_open() {
        for scale in [Scale::Five, Scale::Six, Scale::WhoUmc, Scale::Naranjo] {
            for other in [Scale::Five, Scale::Six, Scale::WhoUmc, Scale::Naranjo] {
                for level in other
                    .levels()
                    .iter()
                    .filter(|l| !scale.levels().contains(l))
                {
                    assert!(!scale.is_open(level), "{scale:?} {level}");
                }
            }
        }
    }
}
