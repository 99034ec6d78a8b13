#!/usr/bin/env python3
"""Counts what the four skills of the sample study must find, sharing no code with the program.

    python3 demo/expected.py            writes tests/data/demo_expected.json
    python3 demo/expected.py --check    fails when the file is out of date

Each rule is written down here a second time, in words of Python, over demo/study/records.csv. A place is
`record`, or `record#instance` on a row of a repeating form. Standard library only.
"""

import csv
import json
import sys
from collections import defaultdict
from datetime import date, timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDS = HERE / "study" / "records.csv"
OUT = HERE.parent / "tests" / "data" / "demo_expected.json"

SEQUENCE = [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13]
# Visit: planned day with baseline as day 1, days early or late allowed.
WINDOWS = {4: (14, 5), 5: (28, 5), 7: (42, 7), 8: (56, 7), 9: (84, 7), 10: (112, 7), 11: (140, 7),
           12: (168, 7), 13: (182, 7)}
PASS, FAIL, UNKNOWN = "pass", "fail", "not_evaluable"


def span(text):
    """First and last day a written date may mean."""
    if len(text) == 10:
        day = date.fromisoformat(text)
        return day, day
    if len(text) == 7:
        year, month = int(text[:4]), int(text[5:])
        following = date(year + month // 12, month % 12 + 1, 1)
        return date(year, month, 1), following - timedelta(days=1)
    assert len(text) == 4, text
    return date(int(text), 1, 1), date(int(text), 12, 31)


def not_later(first, second):
    """Is `first` on or before `second`? Partial dates answer only if every completion agrees."""
    if not first or not second:
        return UNKNOWN
    (first_lo, first_hi), (second_lo, second_hi) = span(first), span(second)
    if first_hi <= second_lo:
        return PASS
    if first_lo > second_hi:
        return FAIL
    return UNKNOWN


def verdict(holds):
    return PASS if holds else FAIL


def check_subject(base):
    enrolled = base["screen_result"] == "1"
    age = int(base["age"])
    yield "IE-001", verdict(not enrolled or age >= 50)
    yield "IE-002", verdict(not enrolled or age <= 85)
    yield "IE-003", verdict(base["sex"] in ("1", "2"))
    yield "ETH-002", not_later(base["icf_date"], base["v1_date"])
    yield "ETH-003", verdict(age >= 18)
    if enrolled:  # the enrollment form of a screen failure was never opened
        yield "ETH-001", not_later(base["icf_date"], base["enroll_date"])

    visited = {n: date.fromisoformat(base[f"v{n}_date"]) for n in SEQUENCE if base[f"v{n}_done"] == "1"}
    for n in SEQUENCE:
        assert (base[f"v{n}_done"] == "1") == bool(base[f"v{n}_date"])
    if 3 in visited:
        yield "IE-004", verdict((visited[3] - visited[1]).days <= 28)
        for n, (day, width) in WINDOWS.items():
            if n in visited:
                late = (visited[n] - visited[3]).days + 1 - day
                yield f"VW-{n:02}", verdict(-width <= late <= width)
    for before, after in zip(SEQUENCE, SEQUENCE[1:]):
        if before in visited and after in visited:
            yield f"VO-{after:02}", verdict(visited[before] < visited[after])


def check_ae(ae, base):
    yield "AE-001", not_later(base["icf_date"], ae["aestdtc"])
    yield "AE-002", not_later(base["first_dose_date"], ae["aestdtc"])
    if ae["aeongoing"] == "0":
        yield "AE-003", not_later(ae["aestdtc"], ae["aeendtc"])
    criteria = ("aesdth", "aeslife", "aeshosp", "aesdisab", "aescong", "aescan", "aesod")
    yield "AE-004", verdict(ae["aeser"] == "1" or not any(ae[name] == "1" for name in criteria))
    yield "AE-005", verdict(ae["aeout"] != "3" or ae["aesdth"] == "1")
    yield "AE-006", verdict(ae["aerel"] != "")


def check_ex(ex, base):
    yield "EX-001", not_later(ex["exstdtc"], ex["exendtc"])
    yield "EX-002", not_later(base["first_dose_date"], ex["exstdtc"])
    allowed = {"0": {0}, "1": {54}, "2": {54, 81}}[base["arm"]]
    yield "EX-003", verdict(float(ex["exdose"]) in allowed)


def check_mh(mh, base):
    yield "MH-001", PASS if not mh["mhstdtc"] else not_later(mh["mhstdtc"], base["icf_date"])


SKILLS = {"IE": "eligibility", "AE": "ae_dates", "EX": "ae_dates", "MH": "ae_dates", "VO": "visit_window",
          "VW": "visit_window", "ETH": "ethics"}


def findings():
    with open(RECORDS, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    bases = {row["record_id"]: row for row in rows if not row["redcap_repeat_instance"]}
    found = defaultdict(lambda: {"checked": 0, FAIL: [], UNKNOWN: []})
    for row in rows:
        base, place = bases[row["record_id"]], row["record_id"]
        form = row["redcap_repeat_instrument"]
        if form:
            place += "#" + row["redcap_repeat_instance"]
        check = {"": lambda r, _: check_subject(r), "ae": check_ae, "ex": check_ex, "mh": check_mh,
                 "other_visits": lambda *_: ()}[form]
        for rule, outcome in check(row, base):
            found[rule]["checked"] += 1
            if outcome != PASS:
                found[rule][outcome].append(place)
    return len(bases), found


def main():
    subjects, found = findings()
    rules = {
        rule: {"skill": SKILLS[rule.split("-")[0]], "checked": found[rule]["checked"],
               FAIL: sorted(found[rule][FAIL]), UNKNOWN: sorted(found[rule][UNKNOWN])}
        for rule in sorted(found)
    }
    skills = defaultdict(int)
    for rule in rules.values():
        skills[rule["skill"]] += len(rule[FAIL]) + len(rule[UNKNOWN])
    text = json.dumps({"subjects": subjects, "findings": sum(skills.values()),
                       "by_skill": dict(sorted(skills.items())), "rules": rules}, indent=1) + "\n"
    for rule, counts in rules.items():
        print(f"{rule:8} {counts['skill']:13} checked {counts['checked']:5}  fail {len(counts[FAIL]):4}"
              f"  not evaluable {len(counts[UNKNOWN]):3}")
    print(f"{subjects} subjects, {sum(skills.values())} findings, {dict(skills)}")
    if "--check" in sys.argv:
        if not OUT.exists() or OUT.read_text("utf-8") != text:
            sys.exit(f"{OUT} is out of date; run python3 demo/expected.py")
    else:
        OUT.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
