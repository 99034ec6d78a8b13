#!/usr/bin/env python3
"""Turns the SDTM domains of the CDISC pilot study into a REDCap-shaped export.

    python3 demo/build.py SDTM_DIR

SDTM_DIR holds dm.csv, ae.csv, ex.csv, mh.csv, sv.csv. Writes demo/study/ and demo/planted.json. Deterministic: the same input
gives the same bytes. Standard library only.
"""

import csv
import hashlib
import json
import sys
from datetime import date, timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
STUDY = HERE / "study"

SYNTHETIC = "SYNTHETIC 合成数据：来源研究没有知情同意日期 / the source study has no consent date"
# How many synthetic consent dates are deliberately wrong.
AFTER_ENROLLMENT = 6
AFTER_SCREENING = 4

# Clinic visits of the pilot's schedule: SDTM VISITNUM, label. Everything else goes to `other_visits`.
VISITS = [
    ("1", "筛选1 / Screening 1"),
    ("2", "筛选2 / Screening 2"),
    ("3", "基线 / Baseline"),
    ("4", "第2周 / Week 2"),
    ("5", "第4周 / Week 4"),
    ("7", "第6周 / Week 6"),
    ("8", "第8周 / Week 8"),
    ("9", "第12周 / Week 12"),
    ("10", "第16周 / Week 16"),
    ("11", "第20周 / Week 20"),
    ("12", "第24周 / Week 24"),
    ("13", "第26周 / Week 26"),
]

CODES = {
    "sex": {"M": "1", "F": "2"},
    "race": {"WHITE": "1", "BLACK OR AFRICAN AMERICAN": "2", "ASIAN": "3",
             "AMERICAN INDIAN OR ALASKA NATIVE": "4"},
    "ethnic": {"HISPANIC OR LATINO": "1", "NOT HISPANIC OR LATINO": "2"},
    "arm": {"Pbo": "0", "Xan_Lo": "1", "Xan_Hi": "2"},
    "aesev": {"MILD": "1", "MODERATE": "2", "SEVERE": "3"},
    "aerel": {"": "", "NONE": "0", "REMOTE": "1", "POSSIBLE": "2", "PROBABLE": "3"},
    "aeout": {"RECOVERED/RESOLVED": "1", "NOT RECOVERED/NOT RESOLVED": "2", "FATAL": "3"},
    "extrt": {"PLACEBO": "0", "XANOMELINE": "1"},
    "mhcat": {"PRIMARY DIAGNOSIS": "1", "SIGNIFICANT PRE-EXISTING CONDITION": "2",
              "HISTORICAL DIAGNOSIS": "3"},
    "yn": {"Y": "1", "N": "0"},
}

METADATA_KEYS = [
    "field_name", "form_name", "section_header", "field_type", "field_label",
    "select_choices_or_calculations", "field_note", "text_validation_type_or_show_slider_number",
    "text_validation_min", "text_validation_max", "identifier", "branching_logic", "required_field",
    "custom_alignment", "question_number", "matrix_group_name", "matrix_ranking", "field_annotation",
]


def field(name, form, label, kind="text", choices="", valid="", note="", low="", high="",
          branch="", required=False):
    row = dict.fromkeys(METADATA_KEYS, "")
    row.update(
        field_name=name, form_name=form, field_label=label, field_type=kind,
        select_choices_or_calculations=choices, text_validation_type_or_show_slider_number=valid,
        field_note=note, text_validation_min=low, text_validation_max=high, branching_logic=branch,
        required_field="y" if required else "",
    )
    return row


def dictionary():
    partial = "可为部分日期 YYYY 或 YYYY-MM / may be partial"
    fields = [
        field("record_id", "demographics", "受试者编号 / Subject id", required=True),
        field("icf_date", "demographics", "知情同意日期（合成） / Informed consent date (SYNTHETIC)",
              valid="date_ymd", note=SYNTHETIC, required=True),
        field("age", "demographics", "年龄（岁） / Age (years)", valid="integer", low="18", high="100",
              required=True),
        field("sex", "demographics", "性别 / Sex", "radio", "1, 男 Male | 2, 女 Female", required=True),
        field("race", "demographics", "人种 / Race", "radio",
              "1, 白人 White | 2, 黑人 Black or African American | 3, 亚洲人 Asian | "
              "4, 美洲原住民 American Indian or Alaska Native"),
        field("ethnic", "demographics", "族裔 / Ethnicity", "radio",
              "1, 西班牙裔 Hispanic or Latino | 2, 非西班牙裔 Not Hispanic or Latino"),
        field("screen_result", "demographics", "筛选结果 / Screening result", "radio",
              "1, 入组 Enrolled | 0, 筛选失败 Screen failure", required=True),
        field("enroll_date", "enrollment", "入组日期 / Enrollment date", valid="date_ymd", required=True),
        field("arm", "enrollment", "治疗组 / Treatment arm", "radio",
              "0, 安慰剂 Placebo | 1, 低剂量 Xanomeline low dose | 2, 高剂量 Xanomeline high dose",
              required=True),
        field("first_dose_date", "enrollment", "首次给药日期 / First dose date", valid="date_ymd",
              required=True),
        field("last_dose_date", "enrollment", "末次给药日期 / Last dose date", valid="date_ymd"),
        field("death", "enrollment", "是否死亡 / Death", "yesno"),
        field("death_date", "enrollment", "死亡日期 / Date of death", valid="date_ymd",
              branch="[death] = '1'"),
    ]
    for number, label in VISITS:
        fields.append(field(f"v{number}_done", "visits", f"{label}：是否进行 / performed", "yesno",
                            required=True))
        fields.append(field(f"v{number}_date", "visits", f"{label}：日期 / date", valid="date_ymd",
                            branch=f"[v{number}_done] = '1'", required=True))
    fields += [
        field("aeterm", "ae", "不良事件名称 / Adverse event term", required=True),
        field("aedecod", "ae", "首选术语 / Preferred term"),
        field("aesoc", "ae", "系统器官分类 / System organ class"),
        field("aestdtc", "ae", "开始日期 / Start date", valid="date_ymd", note=partial, required=True),
        field("aeongoing", "ae", "是否仍在持续 / Ongoing", "yesno",
              note="由来源的结束日期是否为空得出 / derived: the source has no end date"),
        field("aeendtc", "ae", "结束日期 / End date", valid="date_ymd", note=partial,
              branch="[aeongoing] = '0'"),
        field("aesev", "ae", "严重程度 / Severity", "radio", "1, 轻度 Mild | 2, 中度 Moderate | 3, 重度 Severe",
              required=True),
        field("aeser", "ae", "是否SAE / Serious event", "yesno", required=True),
        field("aesdth", "ae", "导致死亡 / Results in death", "yesno"),
        field("aeslife", "ae", "危及生命 / Life threatening", "yesno"),
        field("aeshosp", "ae", "住院或延长住院 / Hospitalisation", "yesno"),
        field("aesdisab", "ae", "致残 / Disability", "yesno"),
        field("aescong", "ae", "先天异常 / Congenital anomaly", "yesno"),
        field("aescan", "ae", "癌症 / Cancer", "yesno"),
        field("aesod", "ae", "用药过量 / Overdose", "yesno"),
        field("aerel", "ae", "与研究药物的关系 / Causality", "radio",
              "0, 无关 None | 1, 可能无关 Remote | 2, 可能相关 Possible | 3, 很可能相关 Probable", required=True),
        field("aeout", "ae", "转归 / Outcome", "radio",
              "1, 痊愈 Recovered | 2, 未痊愈 Not recovered | 3, 死亡 Fatal", required=True),
        field("extrt", "ex", "给药 / Treatment", "radio", "0, 安慰剂 Placebo | 1, 呫诺美林 Xanomeline"),
        field("exdose", "ex", "剂量（mg/天） / Dose (mg per day)", valid="number", low="0", high="81",
              required=True),
        field("exstdtc", "ex", "给药开始日期 / Dosing start", valid="date_ymd", required=True),
        field("exendtc", "ex", "给药结束日期 / Dosing end", valid="date_ymd"),
        field("mhterm", "mh", "病史 / Medical history term", required=True),
        field("mhdecod", "mh", "首选术语 / Preferred term"),
        field("mhcat", "mh", "类别 / Category", "radio",
              "1, 主要诊断 Primary diagnosis | 2, 重要合并症 Significant pre-existing condition | "
              "3, 既往诊断 Historical diagnosis"),
        field("mhstdtc", "mh", "起病日期 / Onset date", valid="date_ymd", note=partial),
        field("ov_name", "other_visits", "其他访视 / Other visit", required=True),
        field("ov_num", "other_visits", "访视编号 / Visit number", valid="number"),
        field("ov_date", "other_visits", "访视日期 / Visit date", valid="date_ymd", required=True),
    ]
    return fields


def number(text):
    """SDTM numbers came through XPT as floats: 3.0 is visit 3, 8.1 stays 8.1."""
    return str(int(float(text))) if float(text).is_integer() else text


def spread(subject, modulus):
    """A number under `modulus` that depends on nothing but the subject id."""
    return int.from_bytes(hashlib.sha256(subject.encode()).digest()[:8], "big") % modulus


def consent_dates(dm, scheduled):
    """Up to three days before the first screening visit; a documented handful too late."""
    dates, planted = {}, {"after_enrollment": [], "after_screening": []}
    enrolled = sorted((row["USUBJID"] for row in dm if row["RFSTDTC"]),
                      key=lambda subject: hashlib.sha256(subject.encode()).hexdigest())
    enroll = {row["USUBJID"]: row["RFSTDTC"] for row in dm}
    for row in dm:
        subject = row["USUBJID"]
        screening = date.fromisoformat(scheduled[subject]["1"])
        dates[subject] = screening - timedelta(days=spread(subject, 4))
    for subject in enrolled[:AFTER_ENROLLMENT]:
        dates[subject] = date.fromisoformat(enroll[subject]) + timedelta(days=1 + spread(subject, 10))
        planted["after_enrollment"].append(subject)
    for subject in enrolled[AFTER_ENROLLMENT:AFTER_ENROLLMENT + AFTER_SCREENING]:
        dates[subject] = date.fromisoformat(scheduled[subject]["1"]) + timedelta(days=1 + spread(subject, 2))
        assert dates[subject] <= date.fromisoformat(enroll[subject])
        planted["after_screening"].append(subject)
    return dates, planted


def by_subject(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row["USUBJID"], []).append(row)
    return groups


def records(source, fields):
    dm = read(source, "dm")
    ae, ex, mh = (by_subject(read(source, name)) for name in ("ae", "ex", "mh"))
    clinic = {number for number, _ in VISITS}
    scheduled, others = {}, {}
    for row in read(source, "sv"):
        num = number(row["VISITNUM"])
        if num in clinic:
            assert scheduled.setdefault(row["USUBJID"], {}).setdefault(num, row["SVSTDTC"]) == row["SVSTDTC"]
        else:
            others.setdefault(row["USUBJID"], []).append((row["SVSTDTC"], float(num), row["VISIT"], num))
    consent, planted = consent_dates(dm, scheduled)

    forms = list(dict.fromkeys(f["form_name"] for f in fields))
    header = ["record_id", "redcap_repeat_instrument", "redcap_repeat_instance", "redcap_data_access_group"]
    for form in forms:
        header += [f["field_name"] for f in fields if f["form_name"] == form and f["field_name"] != "record_id"]
        header.append(f"{form}_complete")
    out = []

    def add(subject, site, form, instance, values):
        row = dict.fromkeys(header, "")
        row.update(record_id=subject, redcap_data_access_group=site, redcap_repeat_instrument=form,
                   redcap_repeat_instance=instance, **values)
        out.append(row)

    for row in sorted(dm, key=lambda row: row["USUBJID"]):
        subject, site = row["USUBJID"], f"site_{row['SITEID']}"
        is_enrolled = bool(row["RFSTDTC"])
        assert is_enrolled == (row["ARMCD"] != "Scrnfail")
        base = {
            "icf_date": consent[subject].isoformat(),
            "age": number(row["AGE"]),
            "sex": CODES["sex"][row["SEX"]],
            "race": CODES["race"][row["RACE"]],
            "ethnic": CODES["ethnic"][row["ETHNIC"]],
            "screen_result": "1" if is_enrolled else "0",
            "demographics_complete": "2",
            "visits_complete": "2",
        }
        for num, _ in VISITS:
            when = scheduled[subject].get(num, "")
            base[f"v{num}_done"], base[f"v{num}_date"] = ("1" if when else "0"), when
        if is_enrolled:  # of a screen failure this form was never opened
            base.update(
                enroll_date=row["RFSTDTC"], arm=CODES["arm"][row["ARMCD"]],
                first_dose_date=row["RFXSTDTC"], last_dose_date=row["RFXENDTC"],
                death="1" if row["DTHFL"] == "Y" else "0", death_date=row["DTHDTC"],
                enrollment_complete="2",
            )
        add(subject, site, "", "", base)
        for event in sorted(ae.get(subject, []), key=lambda e: float(e["AESEQ"])):
            add(subject, site, "ae", number(event["AESEQ"]), {
                "aeterm": event["AETERM"], "aedecod": event["AEDECOD"], "aesoc": event["AESOC"],
                "aestdtc": event["AESTDTC"], "aeendtc": event["AEENDTC"],
                "aeongoing": "0" if event["AEENDTC"] else "1",
                **{name: CODES[name][event[name.upper()]] for name in ("aesev", "aerel", "aeout")},
                **{name: CODES["yn"][event[name.upper()]] for name in (
                    "aeser", "aesdth", "aeslife", "aeshosp", "aesdisab", "aescong", "aescan", "aesod")},
                "ae_complete": "2",
            })
        for dose in sorted(ex.get(subject, []), key=lambda d: float(d["EXSEQ"])):
            add(subject, site, "ex", number(dose["EXSEQ"]), {
                "extrt": CODES["extrt"][dose["EXTRT"]], "exdose": number(dose["EXDOSE"]),
                "exstdtc": dose["EXSTDTC"], "exendtc": dose["EXENDTC"], "ex_complete": "2",
            })
        for history in sorted(mh.get(subject, []), key=lambda h: float(h["MHSEQ"])):
            add(subject, site, "mh", number(history["MHSEQ"]), {
                "mhterm": history["MHTERM"], "mhdecod": history["MHDECOD"],
                "mhcat": CODES["mhcat"][history["MHCAT"]], "mhstdtc": history["MHSTDTC"],
                "mh_complete": "2",
            })
        for at, (when, _, name, num) in enumerate(sorted(others.get(subject, [])), start=1):
            add(subject, site, "other_visits", str(at), {
                "ov_name": name, "ov_num": num, "ov_date": when, "other_visits_complete": "2",
            })
    return header, out, planted


def read(source, name):
    with open(source / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(name, header, rows):
    with open(STUDY / name, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source = Path(sys.argv[1])
    STUDY.mkdir(exist_ok=True)
    fields = dictionary()
    header, rows, planted = records(source, fields)
    write("metadata.csv", METADATA_KEYS, fields)
    write("records.csv", header, rows)
    write("repeating.csv", ["event_name", "form_name", "custom_form_label"],
          [{"form_name": form} for form in ("ae", "ex", "mh", "other_visits")])
    project = {
        "project_title": "示例研究：呫诺美林透皮贴治疗阿尔茨海默病（CDISC 试点研究）",
        "is_longitudinal": 0,
        "has_repeating_instruments_or_events": 1,
        "record_autonumbering_enabled": 0,
        "secondary_unique_field": "",
        "missing_data_codes": "",
        "project_notes": "CDISC pilot study; consent dates are SYNTHETIC",
    }
    (STUDY / "project.json").write_text(json.dumps(project, ensure_ascii=False, indent=2) + "\n", "utf-8")
    (HERE / "planted.json").write_text(json.dumps(planted, indent=2) + "\n", "utf-8")
    print(f"{len({row['record_id'] for row in rows})} subjects, {len(rows)} rows, {len(header)} columns")


if __name__ == "__main__":
    main()
