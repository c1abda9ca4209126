"""Corpora of a project: what is given, what is split off, and what is said about it."""

import shutil

import pytest
from spacy.vocab import Vocab

from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.gold import missing_tokens
from spacy_weakner.corpus.language import CorpusLanguage, record_language
from spacy_weakner.errors import WeaknerError
from spacy_weakner.project import prepare as module
from spacy_weakner.project import splitting
from spacy_weakner.project.layout import Corpora, has_docs
from spacy_weakner.project.prepare import prepare, read_preparation
from spacy_weakner.project.splitting import MIN_FOR_TEST

from .util import gold_rows, write_rows

MIN_TO_SPLIT = 200


@pytest.fixture(autouse=True)
def little_to_split(monkeypatch):
    """Dev is split off sooner than it is for users, so that tests are short."""
    monkeypatch.setattr(splitting, "MIN_TO_SPLIT", MIN_TO_SPLIT)


@pytest.fixture
def files(tmp_path):
    rows = gold_rows(1000)
    return {
        "gold": write_rows(tmp_path / "gold.jsonl", rows[:30]),
        "much": write_rows(tmp_path / "much.jsonl", rows[:MIN_FOR_TEST]),
        "some": write_rows(tmp_path / "some.jsonl", rows[:MIN_TO_SPLIT]),
        "dev": write_rows(tmp_path / "dev.jsonl", rows[500:510]),
        "test": write_rows(tmp_path / "test.jsonl", rows[600:620]),
        "text": write_rows(tmp_path / "text.jsonl", [{"text": f"A text {i}."} for i in range(5)]),
    }


def texts(path):
    return [doc.text for doc in read_docs(path, Vocab())] if has_docs(path) else []


def counts(prepared):
    return prepared.gold, prepared.dev, prepared.test, prepared.text


def run(tmp_path, files, **given):
    named = {name: files[file_] for name, file_ in given.items()}
    prepared = prepare(tmp_path / "corpus", lang="xx", **named)
    corpora = Corpora(tmp_path / "corpus")
    found = tuple(len(texts(path)) for path in (corpora.gold, corpora.dev, corpora.test, corpora.text))
    assert found == counts(prepared) and read_preparation(corpora) == prepared
    gold, dev, test = (set(texts(path)) for path in (corpora.gold, corpora.dev, corpora.test))
    assert not gold & dev and not gold & test and not dev & test
    return prepared


@pytest.mark.parametrize(
    "given, wanted, chosen_by, said",
    [
        ({"gold": "gold", "dev": "dev", "test": "test"}, (30, 10, 20, 0), "dev", []),
        ({"gold": "gold", "dev": "dev"}, (30, 10, 0, 0), "dev", ["test was not given, and 30 gold"]),
        (
            {"gold": "gold"},
            (30, 0, 0, 0),
            "cross-validation",
            ["dev was not given, and 30 gold", "test was not given, and 30 gold"],
        ),
        ({"gold": "gold", "test": "test"}, (30, 0, 20, 0), "cross-validation", ["dev was not given, and"]),
        (
            {"gold": "some"},
            (160, 40, 0, 0),
            "dev",
            ["dev was not given: 40 sentences were split off the gold, sentence by sentence, seed 0", "test was not"],
        ),
        ({"gold": "much"}, (240, 80, 80, 0), "dev", ["dev was not given: 80", "test was not given: 80"]),
        ({"gold": "much", "dev": "dev"}, (320, 10, 80, 0), "dev", ["test was not given: 80"]),
        ({"gold": "much", "test": "test"}, (320, 80, 20, 0), "dev", ["dev was not given: 80"]),
        ({"text": "text"}, (0, 0, 0, 5), "nothing", []),
        ({"text": "text", "dev": "dev"}, (0, 10, 0, 5), "dev", []),
        ({"text": "text", "gold": "gold", "dev": "dev", "test": "test"}, (30, 10, 20, 5), "dev", []),
    ],
)
def test_given_split_or_missing(tmp_path, files, given, wanted, chosen_by, said):
    prepared = run(tmp_path, files, **given)
    assert counts(prepared) == wanted and prepared.chosen_by == chosen_by
    assert len(prepared.notes) == len(said)
    assert all(note.startswith(start) for note, start in zip(prepared.notes, said, strict=True))


def test_parts_that_cannot_be_split_off_have_no_corpus(tmp_path):
    # An empty corpus would stop whatever reads it.
    rows = gold_rows(MIN_FOR_TEST, [f"d.{i}" for i in range(MIN_FOR_TEST)])
    prepared = prepare(tmp_path / "corpus", gold=write_rows(tmp_path / "gold.jsonl", rows), lang="xx")
    assert counts(prepared) == (MIN_FOR_TEST, 0, 0, 0) and prepared.chosen_by == "cross-validation"
    corpora = Corpora(tmp_path / "corpus")
    assert len(prepared.notes) == 2 and not has_docs(corpora.dev) and not has_docs(corpora.test)


def test_nothing_of_an_earlier_run_is_left_but_files_of_others(tmp_path, files):
    mine = tmp_path / "corpus" / "text" / "notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    run(tmp_path, files, gold="much", text="text")
    corpora = Corpora(tmp_path / "corpus")
    for path in (corpora.gold_labeled, corpora.labels):
        path.write_text("old")
    run(tmp_path, files, gold="gold")
    assert not corpora.gold_labeled.exists() and not corpora.labels.exists()
    run(tmp_path, files, gold="gold", dev="dev", test="test", text="text")
    assert counts(run(tmp_path, files, text="text")) == (0, 0, 0, 5)
    assert mine.read_text() == "mine"


def test_sentences_without_annotation_are_left_out(tmp_path, files):
    rows = [*gold_rows(5), {"tokens": ["unknown"], "ents": None}, {"tokens": ["none"], "ents": []}]
    prepared = prepare(tmp_path / "corpus", gold=write_rows(tmp_path / "gold.jsonl", rows), lang="xx")
    assert prepared.gold == 6 and "gold: sentences without any annotation, left out: 1" in prepared.notes


def test_held_out_sentences_are_not_trained_on(tmp_path):
    short = {"tokens": ["Anna", "left"], "ents": [[0, 1, "PER"]]}
    paths = {
        name: write_rows(tmp_path / f"{name}.jsonl", [*rows, short])
        for name, rows in (("gold", gold_rows(9)), ("dev", gold_rows(6)), ("test", gold_rows(12)[-4:]))
    }
    prepared = prepare(tmp_path / "a", **paths, lang="xx")
    assert (prepared.gold, prepared.dev, prepared.test) == (3, 7, 5)  # a short sentence may occur by chance
    for name, n in (("dev", 6), ("test", 1)):
        assert f"gold: sentences that are also in {name}, left out: {n}" in prepared.notes
    same = write_rows(tmp_path / "same.jsonl", gold_rows(12)[-3:])
    with pytest.raises(WeaknerError, match=r"WK407.*same\.jsonl has no entity in sentences that are not also in test"):
        prepare(tmp_path / "b", gold=same, test=paths["test"], lang="xx")


def test_sentences_of_which_not_all_is_known_are_left_out(tmp_path):
    hole = {"tokens": ["Anna", "left"], "ents": [[0, 1, "PER"]], "missing": [[1, 2]]}
    rows, others = [*gold_rows(5), hole], gold_rows(MIN_FOR_TEST + 10)[-10:]
    path = write_rows(tmp_path / "gold.jsonl", rows)
    dev = write_rows(tmp_path / "dev.jsonl", [*others[:5], hole])
    test = write_rows(tmp_path / "test.jsonl", [*others[5:], hole])
    prepared = prepare(tmp_path / "a", gold=path, dev=dev, test=test, lang="xx")
    assert (prepared.gold, prepared.dev, prepared.test) == (6, 5, 5)  # what is compared on has no holes
    for name in ("dev", "test"):
        assert f"{name}: sentences with some tokens without annotation, left out: 1" in prepared.notes
        corpus = tmp_path / "a" / "annotated" / f"{name}.spacy"
        assert not any(missing_tokens(doc) for doc in read_docs(corpus, Vocab()))
    assert prepare(tmp_path / "b", gold=path, test=test, lang="xx").gold == 5
    # None of them comes into a test that is split off.
    more = write_rows(tmp_path / "more.jsonl", [*gold_rows(MIN_FOR_TEST), *rows[5:] * 100])
    prepared = prepare(tmp_path / "d", gold=more, dev=dev, lang="xx")
    assert prepared.test == MIN_FOR_TEST // 5 and prepared.gold == MIN_FOR_TEST - prepared.test + 100
    split_off = read_docs(tmp_path / "d" / "annotated" / "test.spacy", Vocab())
    assert not any(missing_tokens(doc) for doc in split_off)
    path = write_rows(tmp_path / "holes.jsonl", rows[5:])
    for given in ({"gold": path}, {"gold": tmp_path / "gold.jsonl", "dev": path}):
        with pytest.raises(WeaknerError, match=r"WK407.*holes\.jsonl has no sentence that is completely annotated"):
            prepare(tmp_path / "c", **given, lang="xx")


@pytest.mark.parametrize(
    "name, rows, others, message",
    [
        *[
            (name, [{"tokens": ["a"], "ents": []}] * 3, (other,), rf"WK407.*new\.jsonl .*3 sentences.*--{name}")
            for name in ("dev", "test")
            for other in ("gold", "text")
        ],
        *[
            ("gold", [row] * 3, (), r"WK407.*new\.jsonl .*3 sentences")
            for row in ({"tokens": ["a"], "ents": []}, {"tokens": ["a"], "ents": None}, {"text": "a b"})
        ],
        ("gold", [], (), r"WK101.*new\.jsonl"),
        # Nothing to learn from.
        *[(None, [], others, "WK680") for others in ((), ("dev",), ("test",))],
    ],
)
def test_unusable_corpora(tmp_path, files, name, rows, others, message):
    given = {} if name is None else {name: write_rows(tmp_path / "new.jsonl", rows)}
    with pytest.raises(WeaknerError, match=message):
        prepare(tmp_path / "corpus", lang="xx", **{other: files[other] for other in others}, **given)
    assert not (Corpora(tmp_path / "corpus").splits if given else tmp_path / "corpus").exists()


def test_an_interrupted_run_is_none(tmp_path, files, monkeypatch):
    run(tmp_path, files, gold="much")

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "split_gold", interrupt)
    with pytest.raises(KeyboardInterrupt):
        prepare(tmp_path / "corpus", gold=files["gold"], lang="xx")
    with pytest.raises(WeaknerError, match=r"WK100.*splits\.json.*prepare"):
        read_preparation(Corpora(tmp_path / "corpus"))


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"{}", b'{"gold": 1}', b"\xff\xfe"])
def test_damaged_splits(tmp_path, text):
    corpora = Corpora(tmp_path)
    corpora.splits.write_bytes(text)
    with pytest.raises(WeaknerError, match=r"WK206.*splits\.json.*'spacy weakner prepare'"):
        read_preparation(corpora)


@pytest.mark.parametrize("given", [{"gold": "nowhere.jsonl"}, {"test": "test.xyz"}, {"misaligned": "drp"}])
def test_a_typo_does_not_cost_the_corpora(tmp_path, files, given):
    run(tmp_path, files, gold="gold")
    corpora = Corpora(tmp_path / "corpus")
    before = corpora.gold.read_bytes(), read_preparation(corpora)
    (tmp_path / "test.xyz").touch()
    given = {name: value if name == "misaligned" else tmp_path / value for name, value in given.items()}
    with pytest.raises(WeaknerError):
        prepare(tmp_path / "corpus", lang="xx", **{"text": files["text"], **given})
    assert (corpora.gold.read_bytes(), read_preparation(corpora)) == before


@pytest.mark.parametrize(
    "name, place",
    [("gold", "annotated/gold"), ("dev", "annotated/dev"), ("gold", "gold-labeled")],
)
def test_an_input_is_no_output(tmp_path, files, name, place):
    run(tmp_path, files, gold="gold", dev="dev")
    given = tmp_path / "corpus" / f"{place}.spacy"
    if not given.exists():
        shutil.copy(tmp_path / "corpus" / "annotated" / "gold.spacy", given)
    before = given.read_bytes()
    with pytest.raises(WeaknerError, match="WK304"):
        prepare(tmp_path / "corpus", lang="xx", **{"gold": files["gold"], name: given})
    assert given.read_bytes() == before


@pytest.mark.parametrize("name", ["dev", "test"])
def test_files_of_another_language_are_refused(tmp_path, files, name):
    run(tmp_path, files, gold="gold", dev="dev")
    given = tmp_path / "other.spacy"
    shutil.copy(tmp_path / "corpus" / "annotated" / "gold.spacy", given)
    record_language(given, CorpusLanguage.make("de"))
    before = (tmp_path / "corpus" / "annotated" / "gold.spacy").read_bytes()
    with pytest.raises(WeaknerError, match=r"WK005.*lang"):
        prepare(tmp_path / "corpus", lang="xx", **{"gold": files["gold"], name: given})
    assert (tmp_path / "corpus" / "annotated" / "gold.spacy").read_bytes() == before
