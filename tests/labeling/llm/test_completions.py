import json
import time

import pytest

from spacy_weakner.labeling.llm.completions import parse_completion

TEXT = "Anna met 2,4-dinitrophenol and [x] Bob"
ANNA, BOB = {"text": "Anna", "label": "PER"}, {"text": "Bob", "label": "PER"}
DNP = {"text": "2,4-dinitrophenol", "label": "CHEM"}


def parse(answer):
    found = parse_completion(answer if isinstance(answer, str) else json.dumps(answer), ["PER", "CHEM"])
    return None if found is None else found.mentions


@pytest.mark.parametrize(
    "answer, expected",
    [
        # JSON alone
        ([ANNA, BOB], [ANNA, BOB]),
        ({"entities": [ANNA]}, [ANNA]),
        ([{"mention": "Anna", "type": "per"}], [ANNA]),
        ([{"entity": "Anna", "category": " Per "}], [ANNA]),
        ([{"word": "Anna", "entity": "PER", "start": 7, "end": 9}], [ANNA]),
        (ANNA, [ANNA]),
        ({"PER": ["Anna", "Bob"], "CHEM": None}, [ANNA, BOB]),
        ([], []),
        ({"PER": [], "CHEM": []}, []),
        # fenced, in prose, after thoughts, an object a line
        (f"```json\n{json.dumps([ANNA])}\n```", [ANNA]),
        (f"Sure [1]! The names are:\n```\n{json.dumps([ANNA])}\n```\nBye.", [ANNA]),
        (f"Perhaps {json.dumps([BOB])}? No: {json.dumps({'entities': [ANNA]})}", [ANNA]),
        (f"PER: {json.dumps([ANNA])} CHEM: {json.dumps([DNP])}", [ANNA, DNP]),
        (f"PER: {json.dumps([ANNA])} CHEM: {json.dumps([DNP])}. So: {json.dumps([ANNA, DNP])}", [ANNA, DNP]),
        (f"Perhaps {json.dumps([ANNA])}? No: {json.dumps([{**ANNA, 'label': 'CHEM'}])}", [{**ANNA, "label": "CHEM"}]),
        (f"Perhaps {json.dumps([{**BOB, 'label': 'per'}])}? No: {json.dumps([ANNA])}", [ANNA]),
        (f"None would be []. Here: {json.dumps([ANNA])}", [ANNA]),
        (f"Here: {json.dumps([ANNA])}. None would be {json.dumps({'entities': []})}.", None),
        (f"<think>{json.dumps([BOB])}</think>[]", []),
        (f"{json.dumps(ANNA)}\n{json.dumps(BOB)}\n", [ANNA, BOB]),
        ('{"PER": ["Anna"]}\n{"PER": ["Bob"]}', [ANNA, BOB]),
        (f"[{json.dumps(ANNA)}]\n[]\n[{json.dumps(BOB)}]", [ANNA, BOB]),
        # no answers
        ("", None),
        (f'{{"entities": [{json.dumps(ANNA)}, {{"text": "Bob" "label": "PER"}}]}}', None),
        (f'{{"entities": [{json.dumps(ANNA)},]}}', None),
        ("<think>[Anna](PER) perhaps, or", None),
        ("[Anna](PER) met <PER>Bob</PER>", None),
        (TEXT, None),
        ("I cannot help with that.", None),
        (json.dumps([ANNA, BOB])[:-20], None),
        ('{"entities": [], "why": "because', None),
        ({"error": "no"}, None),
        ("null", None),
        (f"The text is: {TEXT}", None),
    ],
)  # fmt: skip
def test_forms_of_answers(answer, expected):
    assert parse(answer) == expected


def test_what_is_no_label_is_kept_apart():
    found = parse_completion('[["Anna", "PER"], ["Bob", "DOG"], {"text": "", "label": "PER"}, 7]', ["PER"])
    assert found.mentions == [ANNA] and found.others == [["Bob", "DOG"], ["", "PER"], ["", ""]]


@pytest.mark.parametrize(
    "answer",
    ["[" * 100_000, "{}" * 50_000 + "x", "[1] " * 30_000, "<PER>" * 20_000, "](PER)" * 20_000, "9" * 10_000]
    + ["```" + "\n" * 20_000 + "x"],
)
def test_hostile_answers_take_no_time(answer):
    before = time.process_time()
    parse(answer)
    assert time.process_time() - before < 2
