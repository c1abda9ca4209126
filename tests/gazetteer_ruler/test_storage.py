"""A stored component: the files, what may be changed about them, and what is said if they are damaged."""

import copy
import json
import pickle
import shutil

import pytest
import spacy
import srsly

from spacy_weakner.corpus.weak import group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.component import GazetteerRuler
from spacy_weakner.gazetteer_ruler.terms import Term, read_terms

from .util import EXPECTED, TERMS, TEXTS, make_nlp, matches


def test_bytes_disk_and_deepcopy(tmp_path):
    nlp = make_nlp()
    ruler = nlp.get_pipe("gazetteer_ruler")
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    # As nlp.pipe(n_process=...) sends it where processes are not forked.
    sent = pickle.loads(pickle.dumps(loaded.get_pipe("gazetteer_ruler")))
    assert sent.match(nlp.make_doc(TEXTS[0])) == EXPECTED[0]
    for other in (loaded, make_nlp(terms=None).from_bytes(nlp.to_bytes()), copy.deepcopy(nlp), copy.deepcopy(loaded)):
        assert matches(other) == EXPECTED
        again = other.get_pipe("gazetteer_ruler")
        assert (again.labels, again.terms, again.to_bytes()) == (ruler.labels, TERMS, ruler.to_bytes())
        again.add_terms([Term("New", "nothing")], other)
        assert matches(other)[4] == [(0, 1, "New")]
    assert matches(nlp) == EXPECTED
    for load, stored_form in (("from_bytes", ruler.to_bytes()), ("from_disk", tmp_path / "gazetteer_ruler")):
        alone = getattr(GazetteerRuler(spacy.blank("de").vocab), load)(stored_form)
        # The tokens are stored, and not made anew by the other language's tokenizer.
        assert alone.match(spacy.blank("xx")(TEXTS[0])) == EXPECTED[0]
    assert make_nlp(terms=[*TERMS, *TERMS]).get_pipe("gazetteer_ruler").to_bytes() == ruler.to_bytes()


def test_stored_form_is_readable(tmp_path):
    make_nlp(terms=TERMS[-2:]).get_pipe("gazetteer_ruler").to_disk(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cfg", "terms.jsonl", "terms.safetensors"]
    rows = [json.loads(line) for line in (tmp_path / "terms.jsonl").read_text().splitlines()]
    assert rows == [{"label": "Disease", "term": "AIDS"}, {"label": "Measure", "term": "pH"}]
    assert json.loads((tmp_path / "cfg").read_text()) == {"attr": "FORM"}
    # As a term list.
    terms = [Term("品牌", 'a "quoted"\tterm'), Term("A", "w\u2028x\x85y\x0cz"), Term("A", "a", id="7", name="ä")]
    make_nlp(terms=terms).get_pipe("gazetteer_ruler").to_disk(tmp_path)
    assert list(read_terms(tmp_path / "terms.jsonl")) == terms


def test_many_ids(tmp_path):
    terms = [Term("A", f"term {n}", id=f"{n}") for n in range(3000)]
    terms += [Term("A", "term 7", id="x"), Term("A", "seven", id="7", name="Seven")]
    make_nlp(terms=terms).to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    doc = nlp("term 7, term 2999 and seven")
    spans = doc.spans["weak:gazetteer"]
    assert [span.kb_id_ for span in spans] == ["7", "2999", "7"]
    assert spans.attrs["ids"] == [["7", "x"], ["2999"], ["7"]]
    ruler = nlp.get_pipe("gazetteer_ruler")
    assert [ruler.preferred_name(name) for name in ("7", "x", "2999", "3000")] == ["Seven", "term 7", "term 2999", ""]


def test_settings_can_be_changed_at_load(tmp_path):
    make_nlp(stop=["aspirin"]).to_disk(tmp_path)

    def load(**settings):
        return spacy.load(tmp_path, config={"components": {"gazetteer_ruler": settings}})

    nlp = load(stop=[], acronym_length=0, source="mesh", min_length=3, reliability=0.5)
    # aspirin is back, aids matches in any case, pH is too short
    assert matches(nlp, TEXTS[:2], "weak:mesh") == [EXPECTED[0], [(1, 2, "Disease"), (3, 4, "Disease")]]
    assert nlp("aspirin").spans["weak:mesh"].attrs == {"reliability": 0.5}
    with pytest.raises(WeaknerError, match=r"WK020.*attr = FORM, but the config has attr = ORTH"):
        load(attr="ORTH")
    with pytest.raises(WeaknerError, match=r"WK204.*all 7 terms"):
        load(min_length=99)


@pytest.mark.parametrize("excluded", ["cfg", "terms"])
def test_exclude(tmp_path, excluded):
    ruler = make_nlp().get_pipe("gazetteer_ruler")
    ruler.to_disk(tmp_path, exclude=[excluded])
    assert excluded not in [path.stem for path in tmp_path.iterdir()]
    other = make_nlp(terms=[Term("X", "nothing")]).get_pipe("gazetteer_ruler")
    other.from_bytes(ruler.to_bytes(), exclude=[excluded])
    expected = {"cfg": TERMS, "terms": [Term("X", "nothing")]}
    assert other.terms == expected[excluded]
    assert other.from_bytes(ruler.to_bytes(exclude=[excluded])).terms == expected[excluded]


def stored(tmp_path, **settings):
    """The folder of a stored component, in a stored pipeline."""
    make_nlp(**settings).to_disk(tmp_path / "nlp")
    return tmp_path / "nlp" / "gazetteer_ruler"


def test_writing_over_its_own_folder(tmp_path):
    folder = stored(tmp_path)
    nlp = spacy.load(folder.parent)
    other = spacy.load(folder.parent)
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    nlp.to_disk(folder.parent)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == contents
    nlp.get_pipe("gazetteer_ruler").add_terms([Term("New", "nothing")], nlp)
    nlp.to_disk(folder.parent)
    expected = [
        [*doc, (0, 1, "New")] if text == "nothing here" else doc for doc, text in zip(EXPECTED, TEXTS, strict=True)
    ]
    assert matches(nlp) == matches(spacy.load(folder.parent)) == expected
    assert matches(other) == EXPECTED
    assert other.get_pipe("gazetteer_ruler").terms == TERMS


def test_folder_is_not_needed_after_loading(tmp_path):
    folder = stored(tmp_path)
    nlp = spacy.load(folder.parent)
    table = nlp.get_pipe("gazetteer_ruler")._table
    for array in (table.plain.edges.keys, table.plain.labels, table.exact.tokens.keys, table.columns.text.values):
        assert not array.flags.owndata and not array.flags.writeable
    docs = list(nlp.pipe(TEXTS, n_process=2, batch_size=2))
    assert [group_entities(doc, "weak:gazetteer") for doc in docs] == EXPECTED
    shutil.rmtree(folder.parent)
    ruler = nlp.get_pipe("gazetteer_ruler")
    assert matches(nlp) == EXPECTED
    assert ruler.terms == TERMS
    nlp.to_disk(tmp_path / "again")
    assert matches(spacy.load(tmp_path / "again")) == EXPECTED
    ruler.add_terms([Term("New", "nothing")], nlp)
    assert ruler.terms == [*TERMS, Term("New", "nothing")]
    make_nlp(terms=None).to_disk(tmp_path / "empty")
    assert spacy.load(tmp_path / "empty").get_pipe("gazetteer_ruler").terms == []


CHANGES = [
    {"acronym_length": 0},
    {"acronym_length": 3},
    {"stop": ["Heart Failure", "aids"]},
    {"min_length": 3},
    {"ambiguity": "first"},
    {"ambiguity": "drop"},
    {"acronym_length": 0, "stop": ["ph"], "min_length": 5, "ambiguity": "first"},
]


@pytest.mark.parametrize("changed", CHANGES)
def test_changed_settings_equal_a_fresh_initialization(tmp_path, changed):
    folder = stored(tmp_path)
    loaded = spacy.load(folder.parent, config={"components": {"gazetteer_ruler": changed}})
    fresh = make_nlp(**changed)
    texts = [*TEXTS, "aids AIDS ph heart failure"]
    assert matches(loaded, texts) == matches(fresh, texts) != matches(make_nlp(), texts)
    assert loaded.get_pipe("gazetteer_ruler").terms == TERMS
    # And back again, from what was written with the other settings
    fresh.to_disk(tmp_path / "other")
    default = {"acronym_length": 5, "stop": [], "min_length": 1, "ambiguity": "all"}
    back = spacy.load(tmp_path / "other", config={"components": {"gazetteer_ruler": default}})
    assert matches(back, texts) == matches(make_nlp(), texts)
    from_bytes = make_nlp(terms=None, **changed).from_bytes(make_nlp().to_bytes())
    assert matches(from_bytes, texts) == matches(fresh, texts)


def test_add_terms_after_loading(tmp_path):
    nlp = spacy.load(stored(tmp_path, terms=TERMS[:3]).parent)
    ruler = nlp.get_pipe("gazetteer_ruler")
    ruler.add_terms(TERMS[1:], nlp)
    assert ruler.terms == TERMS
    assert matches(nlp) == EXPECTED
    ruler.initialize(lambda: [], nlp=nlp)
    assert matches(nlp) == EXPECTED


def damage(name, change):
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


def flip(place):
    def change(data):
        changed = bytearray(data)
        changed[place] ^= 1
        return bytes(changed)

    return change


@pytest.mark.parametrize(
    "harm, message",
    [
        *[
            (
                damage("terms.jsonl", lambda data, pair=pair: data.replace(*pair, 1)),
                r"WK800.*not compiled from .*terms\.jsonl",
            )
            for pair in ((b"}\n", b"}\n\n"), (b"aspirin", b"Aspirin"), (b"AIDS", b"AIDs"), (b" ", b""))
        ],
        *[
            (lambda folder, name=name: (folder / name).unlink(), f"WK100.*{name}")
            for name in ("cfg", "terms.jsonl", "terms.safetensors")
        ],
        (shutil.rmtree, r"WK100.*gazetteer_ruler"),
        *[(damage("terms.safetensors", flip(place)), r"WK206.*terms\.safetensors") for place in (0, 10, 20, 500, -5)],
        *[
            (damage("cfg", lambda _, data=data: data), r"WK800.*gazetteer_ruler")
            for data in (b"{", b"\xff\xfe", b"[" * 2000, b"", b"null", b'{"labels": []}')
        ],
    ],
)
def test_damaged_folders(tmp_path, harm, message):
    folder = stored(tmp_path)
    harm(folder)

    def load_and_use_all():
        spacy.load(folder.parent).get_pipe("gazetteer_ruler").terms  # noqa: B018

    with pytest.raises(WeaknerError, match=message):
        load_and_use_all()


def test_failing_load_changes_nothing(tmp_path):
    folder = stored(tmp_path)
    ruler = make_nlp(terms=[Term("X", "nothing")]).get_pipe("gazetteer_ruler")
    (folder / "terms.safetensors").write_bytes(b"")
    with pytest.raises(WeaknerError, match="WK206"):
        ruler.from_disk(folder)
    data = make_nlp().get_pipe("gazetteer_ruler").to_bytes()
    settings = srsly.msgpack_dumps({**srsly.msgpack_loads(data), "cfg": b"null"})
    for broken in (data[: len(data) // 2], data.replace(b"data_offsets", b"data_offset_"), settings):
        with pytest.raises((WeaknerError, ValueError)):
            ruler.from_bytes(broken)
    assert ruler.terms == [Term("X", "nothing")]
    assert ruler.labels == ("X",)
