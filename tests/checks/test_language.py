import re

import pytest

from spacy_weakner.checks.language import check_language, scripts_of, stop_words

from .conftest import found

TEXTS = {
    "en": "The patient was given aspirin, and after that he did not have any of the symptoms that were seen before.",
    "de": "Der Patient hat nach der Einnahme von Aspirin eine Blutung und wurde in die Klinik gebracht.",
    "fr": "Le patient a été traité avec de l'aspirine et il ne souffre plus de la maladie dans les jours suivants.",
    "ru": "Пациент принимал аспирин и после этого он не имел тех симптомов, которые были у него раньше.",
    "zh": "患者接受阿司匹林治疗后出现胃出血的症状，医生建议停药。",
    "ja": "患者はアスピリンを服用した後、胃の出血がありましたので、医者に行きました。",
}


@pytest.mark.parametrize("lang", TEXTS)
def test_the_right_language(findings, lang):
    check_language([TEXTS[lang]] * 20, lang, "--text t", findings)
    assert not findings.sorted()


def test_double_encoding(check):
    rows = [{"text": text, "ents": []} for text in ("ZoÃ« MÃ¼ller", "Zoë", "Zo")]
    texts = ["ZoÃ« MÃ¼ller ran", "Zoë too", "It was 20 Â°C", "Zo"]
    report = check(gold=rows, text=texts, terms=["label,term,accept", "PER,ZoÃ« MÃ¼ller,yes", "PER,Zoë,yes"])
    warnings = [warning for warning in found(report, "warning") if "encoding" in warning]
    gold, terms, text = sorted(warnings)
    assert gold.startswith("--gold") and "1 text " in gold and "'ZoÃ«' is probably 'Zoë'" in gold
    assert text.startswith("--text") and "2 texts " in text
    assert terms.startswith("--terms") and "ZoÃ« MÃ¼ller" in terms


@pytest.mark.parametrize(
    "marked",
    [
        ["It is <i>here</i>.", "It is R&amp;D."],
        ["<PER>Anna</PER> ran", '<e type="x">Bob</e> ran'],
        ["[Anna](PER) ran", "See [here](https://x.org)."],
        ["<user> Cid ate (a).", "See [1] (or [2])"],
    ],
)
def test_markup(check, marked):
    rows = [{"text": text, "ents": []} for text in [*marked, *"abcdefgh"]]
    report = check(gold=rows, text=[*marked, *"ABCDEFGH"])
    told = [warning for warning in found(report, "warning") if "2 of 10 texts contain HTML" in warning]
    assert len(told) == (0 if "<user>" in marked[0] else 2)


@pytest.mark.parametrize(
    "text, lang, expected",
    [
        ("zh", "en", r"100 % of the letters are not used in 'en'; most are CJK"),
        ("ru", "en", "most are Cyrillic"),
        ("en", "zh", "most are Latin"),
        ("de", "en", r"stop words of 'en', but \d+ % are stop words of 'de'.*--lang de"),
        ("en", "fr", "--lang en"),
    ],
)
def test_another_language(findings, text, lang, expected):
    check_language([TEXTS[text]] * 20, lang, "--text t", findings)
    (warning,) = found(findings, "warning")
    assert re.search(f"Probably the wrong language.*{expected}", warning)


def test_titles_without_stop_words_are_no_other_language(findings):
    check_language(
        ["Nike Men Air Max Running Shoes Black Size", "Vintage Leather Sofa Brown"] * 50, "en", "t", findings
    )
    assert not findings.sorted()


@pytest.mark.parametrize("lang", ["xx", "qq"])
def test_languages_of_which_nothing_is_known(findings, lang):
    check_language([TEXTS["zh"]] * 20, lang, "t", findings)
    assert not findings.sorted() and not scripts_of(lang)


def test_a_few_letters_tell_nothing(findings):
    check_language(["Привет"], "en", "t", findings)
    assert not findings.sorted()


@pytest.mark.parametrize("lang", ["../../../evil", "/tmp", "en/../en", "", ".", "__pycache__", "nowhere"])
def test_nothing_runs_that_is_no_language_of_spacy(tmp_path, lang):
    (tmp_path / "stop_words.py").write_text("raise SystemExit('it ran')")
    for name in (lang, str(tmp_path)):
        assert stop_words(name) == frozenset()
