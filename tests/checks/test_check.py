"""All checks together: one that fails hides nothing, and the command says the same."""

import json
import re
import sys

import pytest

from spacy_weakner.checks import check as module
from spacy_weakner.checks.check import check as run_checks
from spacy_weakner.configs import render_config
from spacy_weakner.files import write_text

from ..cli.util import invoke as run_command
from .conftest import GOLD, found

WORDS = "spacy_weakner.WordTokenizer.v1"


def invoke(*args):
    return run_command("check", *args)


def test_all_problems_at_once(check):
    report = check(
        {"size": "cn"},
        gold=[*GOLD, "{"],
        test=GOLD,
        dev=[{"tokens": ["a"], "ents": []}],
        terms=["label,term", "DRUGS,-"],
        text=["The patient took it"] * 500,
    )
    text = " ".join(found(report, "error"))
    for expected in ("--size cn: [WK005]", "not JSON", "test is the same as gold", "no entity", "'DRUGS'"):
        assert expected in text
    levels = [finding.level for finding in report.findings]
    assert levels == sorted(levels, key=("error", "warning", "info").index)


@pytest.mark.parametrize("error", [ZeroDivisionError, MemoryError, KeyError, PermissionError])
def test_what_cannot_be_read_hides_nothing_and_a_fault_of_a_check_is_not_blamed_on_files(check, monkeypatch, error):
    def fail(*args):
        raise error(13, "Permission denied")

    monkeypatch.setattr(module, "check_tokens", fail)
    if error is PermissionError:
        (first, second) = found(check(gold=GOLD, test=GOLD), "error")
        assert "Permission denied" in first and "test is the same as gold" in second
    else:
        with pytest.raises(error):
            check(gold=GOLD, test=GOLD)


def test_a_span_group_of_files_without_any(check):
    (error,) = found(check({"spans_key": "sc"}, gold=GOLD), "error")
    assert error.startswith("--spans-key sc: None of gold, dev and test is a .spacy file") and error.endswith(
        "this option."
    )


def test_the_command(write, tmp_path):
    gold, terms = write("gold.jsonl", GOLD), write("terms.csv", ["label,term", "DRUGS,aspirin", "PER,Anna"])
    result = invoke("--gold", gold, "--terms", terms, "--dev", "", "--test", "null", "--output", tmp_path / "f.json")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert any(line.endswith(f"--terms {terms}") for line in lines)
    assert (
        "  The label 'DRUGS' (1 term) does not occur in gold; the nearest label there is 'DRUG' (60 entities)." in lines
    )
    assert "Errors: 1, warnings: 0" in result.output
    assert ["DRUG", "60", "-"] in [line.split() for line in lines]
    saved = json.loads((tmp_path / "f.json").read_text())
    assert [finding["level"] for finding in saved["findings"]] == ["error", "info"]
    assert saved["labels"] == {"gold": {"PER": 60, "DRUG": 60}, "terms": {"DRUGS": 1, "PER": 1}}


def test_the_command_without_errors(write):
    result = invoke("--gold", write("gold.jsonl", GOLD), "--size", "linear")
    assert result.exit_code == 0 and "No errors; warnings: 0" in result.output


def test_the_output_is_no_input(write):
    gold = write("gold.jsonl", GOLD)
    assert "WK304" in invoke("--gold", gold, "--output", gold).stderr


def test_nothing_to_check_is_an_error(tmp_path):
    assert invoke().exit_code == 1 and "nothing to check" in invoke().output
    assert invoke("--gold", "", "--terms", "null").exit_code == 1
    assert invoke("--size", "linear").exit_code == 0


def test_every_option_is_passed_on(monkeypatch):
    seen = {}

    def stop(*args):
        given = dict(sys._getframe(1).f_locals)
        seen.update(given.pop("settings"), **given)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "check_choice", stop)  # which `check` calls first
    options = "--text a --terms b --sources c --gold d --dev e --test f --lang de --tokenizer t --size gpu --gpu-id 0 "
    options += "--transformer m --misaligned drop --spans-key sc --configs g --term-label L --term-columns id=i "
    options += "--synonyms-separator ; --sentences lines --abbreviations wg."
    assert invoke(*options.split(), "--columns", "2", "3").exit_code == 130
    assert seen.pop("columns") == (2, 3)
    assert (
        " ".join(f"--{key.replace('_', '-')} {seen[key.replace('-', '_')]}" for key in re.findall(r"--(\S+)", options))
        == options
    )
    assert seen.pop("normalize_labels") is False and len(seen) == len(options.split()) / 2


def test_sentences_are_those_of_the_project(tmp_path):
    (tmp_path / "gold.jsonl").write_text('{"text": "Komplikation wg. Aszites. Alles gut.", "ents": []}\n')
    for given, n in [({}, 3), ({"abbreviations": "wg."}, 2), ({"sentences": "lines"}, 1)]:
        report = run_checks(gold=tmp_path / "gold.jsonl", lang="xx", **given)
        assert any(f"in its {n} sentence" in finding.message for finding in report.findings), (given, report.findings)


@pytest.fixture
def about_configs(tmp_path):
    """Checks the configs of a project: one of a size."""

    def about_configs(made_for, **settings):
        write_text(tmp_path / "linear" / "crf_ner.cfg", render_config("crf_ner", made_for, lang="de"))
        given = {"lang": "de", "size": "linear", "tokenizer": "spacy.Tokenizer.v1", "configs": tmp_path, **settings}
        return [f for f in run_checks(**given).findings if f.where.startswith("--conf")]

    return about_configs


def test_configs_have_to_fit(about_configs, tmp_path):
    # Those of a folder that is not there are made later.
    assert not about_configs("linear", configs=tmp_path / "none") and not about_configs("linear")
    for changed, told in (({"lang": "en"}, "language is 'de'"), ({"tokenizer": WORDS}, "WordTokenizer")):
        (found,) = about_configs("linear", **changed)
        assert told in found.message and "init config crf_ner" in found.cure and "--overwrite" in found.cure
    (found,) = about_configs("linear", size="gpu", tokenizer=None)
    assert found.level == "error" and "no configs of the size 'gpu'" in found.message
    assert "init project" in found.cure and "--size gpu" in found.cure
    # Each folder has those of one size, whatever the size of the project is.
    (tmp_path / "gpu").mkdir()
    for size in ("linear", "gpu"):
        (found,) = about_configs("linear-static", size=size)
        assert "vectors of word pieces" in found.message and "--size linear" in found.cure
