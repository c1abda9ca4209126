"""The demo corpus: deterministic, valid, without leaks, and with the difficulties that it promises."""

import csv
import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import spacy

from .util import contents

pytestmark = pytest.mark.slow

DEMO = Path(__file__).resolve().parent.parent / "assets" / "demo"
NAMES = ("gold", "dev", "test", "text-gold")
LANGUAGES = ("en", "de", "fr")
SMALL = ("--train", "60", "--gold", "10", "--dev", "10", "--test", "20")


def load_script():
    """Import the script by its path, since assets/ is no package."""
    spec = importlib.util.spec_from_file_location("demo_make_corpus", DEMO / "make_corpus.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


make_corpus = load_script()


def run(out, *args):
    command = [sys.executable, str(DEMO / "make_corpus.py"), str(out), *args]
    return subprocess.run(command, capture_output=True, text=True)


def read(folder, name):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf8").splitlines()]


def read_entries(folder):
    with (folder / "terms.csv").open(encoding="utf8", newline="") as file_:
        reader = csv.DictReader(file_)
        assert reader.fieldnames == ["label", "term", "id"]
        return [(row["label"], row["term"]) for row in reader]


def read_terms(folder):
    return [(label, term.lower()) for label, term in read_entries(folder)]


def language_of(row):
    first = row["id"].split("-")[0]
    return first if first in LANGUAGES else "en"


def mentions(rows):
    """Label and lower-case surface of each entity."""
    for row in rows:
        for start, end, label in row["ents"]:
            yield label, " ".join(row["tokens"][start:end]).lower()


def match(tokens, terms):
    """Match terms in lower case, longest first, then leftmost."""
    lower, spans, used = [token.lower() for token in tokens], set(), set()
    for size in range(max(len(term.split()) for term in terms), 0, -1):
        for start in range(len(lower) - size + 1):
            label = terms.get(" ".join(lower[start : start + size]))
            if label and not used & {*range(start, start + size)}:
                used |= {*range(start, start + size)}
                spans.add((start, start + size, label))
    return spans


def share_of_same_tokens(language, rows):
    """Share of the rows that spaCy splits as they are split."""
    own = spacy.blank(language).tokenizer
    return sum([token.text for token in own(" ".join(row["tokens"]))] == row["tokens"] for row in rows) / len(rows)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The corpus in its default sizes, of another seed."""
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    done = run(out, "--seed", "1")
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def joint(tmp_path_factory):
    """The corpus of all languages in its default sizes, English as target."""
    out = tmp_path_factory.mktemp("joint")
    done = run(out, "--languages", "en,de,fr")
    assert done.returncode == 0, done.stderr
    return out


def test_files(corpus, joint):
    names = {"gold.jsonl", "target.jsonl", "dev.jsonl", "test.jsonl", "text.jsonl", "text-gold.jsonl", "terms.csv"}
    for folder, n in ((corpus, 1), (joint, 3)):
        assert {path.name for path in folder.iterdir()} == names | {"pages.wiki"}
        sizes = {name: len(read(folder, name)) for name in (*NAMES, "target", "text")}
        many = {"gold": 100 * n, "text": 2900 * n, "text-gold": 2900 * n}
        assert sizes == {"target": 100, "dev": 200, "test": 800, **many}
        text, gold = read(folder, "text"), read(folder, "text-gold")
        assert all(set(row) == {"id", "tokens", "cats"} for row in text)
        assert text == [{key: value for key, value in row.items() if key != "ents"} for row in gold]
        ids = [row["id"] for name in NAMES for row in read(folder, name)]
        assert len(set(ids)) == len(ids)
        assert read(folder, "target") == read(folder, "gold")[:100]
        assert [language_of(row) for row in gold] == [language for language in LANGUAGES[:n] for _ in range(2900)]


def test_same_seed_same_bytes(tmp_path):
    for name, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        assert run(tmp_path / name, "--seed", seed, *SMALL).returncode == 0
    a, b, c = (contents(tmp_path / name) for name in "abc")
    assert a == b and not any(a[name] == c[name] for name in a)


@pytest.mark.parametrize(
    "options, words",
    [
        (("--train", "10", "--gold", "11"), "--gold"),
        (("--languages", "en,nl"), "--languages 'nl' de en fr"),
        (("--languages", ""), "--languages de en fr"),
        (("--languages", "de,en,de"), "--languages 'de' twice"),
    ],
)
def test_wrong_options(tmp_path, options, words):
    done = run(tmp_path / "out", *options)
    assert done.returncode == 2 and all(word in done.stderr for word in words.split())
    assert not (tmp_path / "out").exists()


def test_gold_is_valid(corpus, joint):
    # A project of several languages has one tokenizer for all: that of "xx", or of its target language.
    for folder, languages in ((corpus, ["en"]), (joint, ["xx", *LANGUAGES])):
        rows, labels = [row for name in NAMES for row in read(folder, name)], set()
        for row in rows:
            end_before = 0
            for start, end, label in sorted(row["ents"]):
                assert end_before <= start < end <= len(row["tokens"])
                end_before = end
                labels.add(label)
            assert all(token and not token.isspace() for token in row["tokens"])
        assert labels == set(make_corpus.LABELS)
        assert all(share_of_same_tokens(name, rows[::20]) >= 0.995 for name in languages)
    text = (corpus / "pages.wiki").read_text(encoding="utf8")
    n_links = text.count("[[")
    assert len(text.strip().split("\n\n")) == 1000 and n_links == text.count("]]")
    assert 1500 < n_links < 3500


def test_term_list(corpus):
    rows, terms = read(corpus, "test"), read_terms(corpus)
    gold = list(mentions(rows))
    assert 0.4 <= sum(mention in set(terms) for mention in gold) / len(gold) <= 0.6
    labels = {}
    for label, term in terms:
        labels.setdefault(term, label)
    spans = [match(row["tokens"], labels) for row in rows]
    right = [found & {tuple(ent) for ent in row["ents"]} for found, row in zip(spans, rows, strict=True)]
    assert 0.8 <= sum(map(len, right)) / sum(map(len, spans)) <= 0.95
    assert {label for label, _ in terms} == set(make_corpus.LABELS)


def test_unseen_brands_and_languages_do_not_leak(corpus, joint):
    held_out = {word.term.lower() for word in make_corpus.load_world().words["BRAND"] if word.held_out}
    terms = {term for _, term in read_terms(corpus)}
    in_gold = {surface for label, surface in mentions(read(corpus, "gold")) if label == "BRAND"}
    in_test = [surface for label, surface in mentions(read(corpus, "test")) if label == "BRAND"]
    unseen = [surface for surface in in_test if surface not in terms and surface not in in_gold]
    assert len(unseen) / len(in_test) >= 0.15
    assert len(held_out & set(in_test)) >= 10
    for folder in (corpus, joint):
        keys = [" ".join(row["tokens"]).lower() for name in NAMES for row in read(folder, name)]
        assert len(set(keys)) == len(keys)
        train = {surface for name in ("gold", "text-gold") for _, surface in mentions(read(folder, name))}
        assert not held_out & (train | {term for _, term in read_terms(folder)})


@pytest.mark.parametrize(
    "languages, expected",
    [
        ("en", "e18e4f91968db846a8776d7201f8a509cad09aa9950e6a41afa404174354bf5b"),
        ("en,de,fr", "262fa0cbb99cff3e7f0b3c04d10f9043c3ab3749f386f4bf37889b2d2a2ede0c"),
    ],
)
def test_default_is_unchanged(joint, tmp_path, languages, expected):
    """Published results are of these bytes."""
    folder = joint
    if languages == "en":
        folder = tmp_path
        assert run(folder).returncode == 0
    digest = hashlib.sha256()
    for name in ("dev.jsonl", "gold.jsonl", "terms.csv", "test.jsonl", "text-gold.jsonl", "text.jsonl"):
        digest.update((folder / name).read_bytes())
    assert digest.hexdigest() == expected


def test_languages_are_independent(tmp_path):
    """Each language alone, and the target of two orders."""
    for name in (*LANGUAGES, "en,de,fr", "fr,de"):
        assert run(tmp_path / name, *SMALL, "--languages", name).returncode == 0
    for name in ("en,de,fr", "fr,de"):
        parts = [tmp_path / language for language in name.split(",")]
        for file_ in ("target", "dev", "test"):
            assert read(tmp_path / name, file_) == read(parts[0], file_)
        for file_ in ("gold", "text", "text-gold"):
            # Rows that are not of the target have their language in their ids.
            rows = [
                {**row, "id": row["id"].removeprefix(f"{language_of(row)}-")} for row in read(tmp_path / name, file_)
            ]
            assert rows == [row for part in parts for row in read(part, file_)]
        entries = [entry for part in parts for entry in read_entries(part)]
        assert read_entries(tmp_path / name) == list(dict.fromkeys(entries))
