"""What is written is read back; what cannot be said is counted."""

import json
import re

import pytest
from spacy.tokens import Span

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.formats.names import FORMATS, OUTPUTS
from spacy_weakner.corpus.formats.reading import Reading, file_format, read_corpus
from spacy_weakner.corpus.formats.writing import DECLARED, write_corpus
from spacy_weakner.corpus.jsonl import row_from_doc
from spacy_weakner.errors import WeaknerError

from ...util import doc_from_row, iob
from .util import NLP, ents, group, said

# Pages are not read; see `test_page`.
READ_BACK = [name for name in OUTPUTS if FORMATS[name].inputs]
HELLO = "Hello 😊, my name is John Smith."
GOLD = [
    {"text": HELLO, "ents": [[20, 30, "PER"]]},
    {"text": "Nothing here.", "ents": []},
    {"text": "Zoe\u0308 likes Paris", "ents": [[0, 4, "PER"], [11, 16, "LOC"]]},
]
PARTIAL = {"text": "Anna met Bob in Paris", "ents": [[0, 4, "PER"]], "complete": False, "wrong": [[16, 21, "PER"]]}
MISSING = {"text": "Anna met Bob", "ents": [[0, 4, "PER"]], "missing": [[9, 12]]}
WEAK = {
    "text": HELLO,
    "weak_ents": {"list": [[20, 24, "PER", 0.25], [20, 30, "PER", 0.75]], "model": [[6, 7, "X"]]},
}

SUGGESTED = {"text": HELLO, "suggested": [[6, 7, "X", 0.5, "7|8"]]}


def docs(*rows):
    return [doc_from_row(row, NLP) for row in rows]


def there_and_back(tmp_path, name, *rows, suffix=None):
    path = tmp_path / f"a{suffix or FORMATS[name].outputs[0]}"
    path.parent.mkdir(exist_ok=True)
    written = write_corpus(path, docs(*rows), name)
    assert not [p for p in tmp_path.iterdir() if p != path]
    return list(read_corpus(path, NLP, format=name)), written


@pytest.mark.parametrize("name, suffix", [(name, suffix) for name in READ_BACK for suffix in FORMATS[name].outputs])
def test_gold(tmp_path, name, suffix):
    found, written = there_and_back(tmp_path, name, *GOLD, suffix=suffix)
    assert [(ents(doc), iob(doc)) for doc in found] == [(ents(doc), iob(doc)) for doc in docs(*GOLD)]
    assert written.docs == 3 and not written.lost
    told = {"gliner", "label-studio", "doccano", "prodigy"} & {name}
    assert not told or file_format(tmp_path / f"a{suffix}") == name


@pytest.mark.parametrize(
    "row, names, tags, group_name, spans",
    [
        (PARTIAL, ["jsonl", "spacy", "prodigy"], "B----", weak.WRONG_GROUP, [("Paris", "PER")]),
        (MISSING, ["jsonl", "spacy", "conll", "huggingface"], "BO-", "", []),
        (WEAK, ["jsonl", "spacy"], "---------", "weak:model", [("😊", "X")]),
        (SUGGESTED, ["jsonl", "spacy", "label-studio", "prodigy"], "---------", weak.SUGGESTED_GROUP, [("😊", "X")]),
    ],
)
def test_what_is_partly_known(tmp_path, row, names, tags, group_name, spans):
    for name in names:
        (doc,), written = there_and_back(tmp_path / name, name, row)
        assert said(doc) == said(*docs(row)) and not written.lost
        assert (iob(doc), group(doc, group_name)) == (tags, spans)


HOSTILE = "a\nb 😊 <x>" * 20
IDS = [
    {"text": HELLO, "ents": [[6, 7, "X", "Q1|Q2"], [20, 24, "PER"], [25, 30, "PER", HOSTILE]]},
    {**WEAK, "weak_ents": {"list": [[20, 24, "PER", 0.25, "7|8"]], "model": [[6, 7, "X", HOSTILE]]}},
]


@pytest.mark.parametrize("name", READ_BACK)
def test_ids(tmp_path, name):
    if "ids" not in FORMATS[name].holds:
        _, written = there_and_back(tmp_path, name, IDS[0])
        assert written.lost == {"ids of entities": 2}
        return
    found, _ = there_and_back(tmp_path, name, *IDS)
    assert [ent.kb_id_ for ent in found[0].ents] == ["Q1|Q2", "", HOSTILE]
    spans = [span for group in found[1].spans.values() for span in group]
    assert sorted(span.kb_id_ for span in spans) == ["7", HOSTILE]
    assert ("7", "8") in {ids for group in found[1].spans for ids in weak.group_ids(found[1], group).values()}


def test_label_studio_joins_the_ids_of_annotators(tmp_path):
    results = [
        [{"id": "r", "value": {"start": 0, "end": 4, "labels": ["PER"]}}]
        + [{"id": "r", "from_name": "kb_id", "type": "textarea", "value": {"text": texts}} for texts in texts_of]
        for texts_of in ([["Q1"]], ["Q2"], [])
    ]
    annotations = [{"completed_by": i, "result": result} for i, result in enumerate(results)]
    (tmp_path / "a.json").write_text(json.dumps([{"data": {"text": "Anna left"}, "annotations": annotations}]))
    (doc,) = read_corpus(tmp_path / "a.json", NLP)
    assert [ent.kb_id_ for ent in doc.ents] == ["Q1|Q2"]


@pytest.mark.parametrize(
    "name, lost",
    [
        ("conll", {"weak spans": 3, "wrong spans": 1, "categories": 1}),
        ("doccano", {"weak spans": 3, "wrong spans": 1, "categories": 1, "missing tokens": 4 + 1 + 9}),
        ("gliner", {"weak spans": 3, "wrong spans": 1, "categories": 1, "missing tokens": 4 + 1 + 9}),
        ("huggingface", {"weak spans": 3, "wrong spans": 1, "categories": 1}),
        ("label-studio", {"wrong spans": 1, "categories": 1, "missing tokens": 4 + 1}),
        ("prodigy", {"weak spans": 1, "categories": 1, "tokens known to be outside of entities, in sentences with "
                     "missing tokens": 1}),
        ("jsonl", {}),
        ("spacy", {}),
    ],
)  # fmt: skip
def test_what_is_lost_is_counted(tmp_path, name, lost):
    rows = [PARTIAL, MISSING, {**WEAK, "cats": {"X": 1.0}}]
    _, written = there_and_back(tmp_path, name, *rows)
    assert written.lost == lost


@pytest.mark.parametrize(
    "name, lost",
    [
        ("conll", ["ids", "meta", "words", "declared"]),
        ("gliner", ["ids", "meta", "words", "declared"]),
        ("prodigy", ["words", "declared"]),
        ("doccano", ["meta", "words", "declared"]),
        ("huggingface", ["meta", "words", "declared"]),
        ("label-studio", ["words", "declared"]),
        ("html", ["words", "declared"]),
        ("jsonl", ["words", "declared"]),
        ("spacy", []),
    ],
)
@pytest.mark.parametrize("declared", [{"reliability": 0.8}, {"terms": "FORM"}])
def test_what_is_known_of_documents_and_sources_is_counted(tmp_path, name, lost, declared):
    (doc,) = docs({"id": "a", "text": "Anna left", "ents": [], "meta": {"why": "x"}})
    weak.set_source(doc, "list", [], **declared)
    weak.set_augmented(doc, ["Eva", "left"])
    written = write_corpus(tmp_path / f"a{FORMATS[name].outputs[0]}", [doc], name).lost
    kinds = {"ids of documents": "ids", "'meta' of documents": "meta", DECLARED: "declared"}
    kinds["documents with words replaced by 'augment'"] = "words"
    assert {kinds[what] for what in written} == {*lost}


def test_the_unit_of_confidences_is_lost_in_rows(tmp_path):
    (doc,) = docs({"text": "Anna left", "ents": [[0, 4, "PER"]], "weak": True})
    weak.set_confidence(doc, 0.8, "token")
    lost = {"documents with the unit of their confidence": 1}
    assert write_corpus(tmp_path / "a.jsonl", [doc]).lost == lost and not write_corpus(tmp_path / "a.spacy", [doc]).lost


def test_a_wrong_span_without_a_label_is_lost_where_spans_have_labels(tmp_path):
    (doc,) = docs({"text": "Anna left", "ents": [], "complete": False, "wrong": [[0, 4, ""], [5, 9, "PER"]]})
    assert write_corpus(tmp_path / "a.jsonl", [doc], "prodigy").lost["wrong spans"] == 1
    (found,) = read_corpus(tmp_path / "a.jsonl", NLP, format="prodigy")
    assert group(found, weak.WRONG_GROUP) == [("left", "PER")]


@pytest.mark.parametrize("name", ["conll", "huggingface"])
def test_what_cannot_be_written_is_named(tmp_path, name):
    (doc,) = docs({"text": "Anna left", "ents": [[0, 4, "P\nQ"]]})
    path = tmp_path / f"a{FORMATS[name].outputs[0]}"
    with pytest.raises(WeaknerError, match=re.escape(str(path))):
        write_corpus(path, [doc], name)
    assert not path.exists()


def test_an_object_on_one_long_line_is_no_row(tmp_path):
    rows = [{"text": "Anna left " * 20, "ents": []}] * 6000
    (tmp_path / "a.json").write_text(json.dumps({"data": rows}))
    assert (tmp_path / "a.json").stat().st_size > 2**20
    assert len(list(read_corpus(tmp_path / "a.json", NLP))) == len(rows)


def test_label_studio_counts_utf16_and_says_scores(tmp_path):
    there_and_back(tmp_path, "label-studio", WEAK, GOLD[0])
    first, second = json.loads((tmp_path / "a.json").read_text())
    assert "annotations" not in first and "predictions" not in second
    (prediction, _) = first["predictions"]
    assert (prediction["model_version"], prediction["score"]) == ("list", 0.25)
    assert prediction["result"][1]["value"] == {"start": 21, "end": 31, "text": "John Smith", "labels": ["PER"]}


def test_weak_entities_are_no_gold_elsewhere(tmp_path):
    (doc,) = docs({"text": "Anna left", "ents": [[0, 4, "PER"]], "weak": True})
    write_corpus(tmp_path / "a.json", [doc], "label-studio")
    (found,) = read_corpus(tmp_path / "a.json", NLP)
    assert not found.ents and group(found, "suggested") == [("Anna", "PER")]
    weak.set_source(doc, "weak", [(1, 2, "LOC")])
    write_corpus(tmp_path / "a.json", [doc], "label-studio")
    (found,) = read_corpus(tmp_path / "a.json", NLP)
    assert group(found, "suggested") == [("left", "LOC"), ("Anna", "PER")]
    weak.remove_group(doc, "weak:weak")
    write_corpus(tmp_path / "a.jsonl", [doc], "prodigy")
    (found,) = read_corpus(tmp_path / "a.jsonl", NLP, format="prodigy")
    assert not found.ents and group(found, "suggested") == [("Anna", "PER")]
    assert write_corpus(tmp_path / "b.jsonl", [doc], "doccano").lost
    (doc,) = docs({"text": "Anna left", "ents": [[0, 4, "PER"]], "weak": True, "wrong": [[5, 9, "PER"]]})
    assert write_corpus(tmp_path / "a.jsonl", [doc], "prodigy").lost == {"weak spans": 1}


def test_prodigy_gets_its_tokens(tmp_path):
    there_and_back(tmp_path, "prodigy", GOLD[0])
    row = json.loads((tmp_path / "a.jsonl").read_text())
    (span,) = row["spans"]
    last = row["tokens"][span["token_end"]]
    assert (last["text"], last["end"], row["answer"]) == ("Smith", 30, "accept")


@pytest.mark.parametrize("broken", ["a.jsonl", "a.json", "a.conll"])
def test_whole_or_absent(tmp_path, broken):
    def stream():
        yield from docs(*GOLD)
        raise WeaknerError("no")

    with pytest.raises(WeaknerError, match="no"):
        write_corpus(tmp_path / broken, stream(), "gliner" if broken == "a.json" else None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words, label",
    [
        (["a"], "A\tB"),
        (["a"], "A\nB"),
        (["a"], " A"),
        (["a"], "A "),
        (["a"], "A\u00a0"),
        (["a"], "A\0"),
        (["a"], "A,B-C"),
        (["a"], "A|O"),
        (["-DOCSTART-"], None),
        (["\ufeff"], None),
        (["\ufeffAnna"], None),
        (["b", "\0"], None),
    ],
)
def test_columns_refuse_what_could_not_be_read_back(tmp_path, words, label):
    (doc,) = docs({"tokens": words, "ents": []})
    if label is not None:
        doc.ents = [Span(doc, 0, 1, label=label)]
    with pytest.raises(WeaknerError, match=r"WK746.*a\.conll.*read back") as error:
        write_corpus(tmp_path / "a.conll", [doc])
    assert not list(tmp_path.iterdir()) and len(str(error.value).splitlines()) == 1


def test_odd_but_readable_columns(tmp_path):
    (doc,) = docs({"tokens": ["#", "-", "O", "B-X", "?"], "ents": [[0, 2, "A b-c:d"], [4, 5, "-"]]})
    (found,), _ = there_and_back(tmp_path, "conll", row_from_doc(doc))
    assert said(found) == said(doc)


def test_chosen_columns(tmp_path):
    (tmp_path / "a.conll").write_text("1 Anna NNP B-PER _\n2 left VBD O _\n\n")
    (doc,) = read_corpus(tmp_path / "a.conll", NLP, Reading(columns=(-4, -2)))
    assert ents(doc) == [("Anna", "PER")]
    for columns, expected in (((2, 9), "line 1.*no column 9"), ((0, 1), "WK005.*'columns'")):
        with pytest.raises(WeaknerError, match=expected):
            list(read_corpus(tmp_path / "a.conll", NLP, Reading(columns=columns)))


def test_labels_that_no_tag_can_hold_are_refused(tmp_path):
    output = tmp_path / "out.jsonl"
    with pytest.raises(WeaknerError, match="as a tag"):
        write_corpus(output, docs({"tokens": ["Anna"], "ents": [[0, 1, "P\r\nER"]]}), "huggingface")
    assert not output.exists()
