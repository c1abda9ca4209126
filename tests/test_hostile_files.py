"""No file makes a traceback: what is wrong with it is said on one line."""

import json

import pytest
import spacy
import srsly

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.jsonl import parse_row
from spacy_weakner.corpus.weak import set_source
from spacy_weakner.errors import LONGEST, WeaknerError
from spacy_weakner.files import expand_home, parse_json
from spacy_weakner.gazetteer_ruler.terms import iter_terms, make_term_list
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.labeling.sources import read_sources
from spacy_weakner.mrc_ner.queries import make_queries
from spacy_weakner.pipelines import load_pipeline
from spacy_weakner.runs.train import read_folds
from spacy_weakner.runtime.receipts import Receipt

pytestmark = pytest.mark.slow

DEEP, LONG, HALF = "[" * 100_000, "1" * 5000, '{"a": "\\ud800"}'


# Messages


def test_messages_are_one_line_and_short():
    message = str(WeaknerError("a\nb\u2028c\x85d\x1b[2Je\u202ef\ud800" + "x" * 9999 + "end"))
    assert message.startswith("a\\nb\\u2028c\\x85d\\x1b[2Je\\u202ef\\ud800x") and message.endswith("xend")
    assert len(message) < LONGEST and message.isprintable() and " [...] " in message
    assert str(WeaknerError(message)) == message
    assert str(WeaknerError("é 😊 漢字 e\u0301 \u200d")) == "é 😊 漢字 e\u0301 \u200d"


# JSON


@pytest.mark.parametrize(
    "text, reason",
    [
        (DEEP, "too deeply"),
        (LONG, "digits"),
        (f'{{"a": {LONG[:400]}}}', "digits"),  # which no float can hold
        (HALF, "surrogate"),
        ("{", "Expecting"),
        (b"\xff", "UTF-8"),
    ],
)
def test_json_has_one_kind_of_error(text, reason):
    with pytest.raises(json.JSONDecodeError, match=reason):
        parse_json(text)
    assert parse_json('{"a": "\\ud83d\\ude0a"}') == {"a": "😊"}
    assert parse_json(json.dumps([LONG, 2**64])) == [LONG, 2**64]


@pytest.mark.parametrize("text", [DEEP, '{"a": ' + LONG + "}", HALF])
def test_json_files(tmp_path, text):
    for name in ("a.jsonl", "q.json", "folds.json"):
        (tmp_path / name).write_text(text)
    readers = [lambda: parse_row(text), lambda: list(iter_terms(make_term_list(tmp_path / "a.jsonl"), "x", "X"))]
    for read in [*readers, lambda: make_queries(tmp_path / "q.json"), lambda: read_folds(tmp_path)]:
        with pytest.raises(WeaknerError):
            read()
    (tmp_path / "receipt.json").write_text(text)
    assert Receipt.read(tmp_path / "receipt.json") == Receipt({})


# Other files


@pytest.mark.parametrize(
    "report",
    [{"docs_in": "x"}, {"no": 1}, {"entities": [1]}, {"entities": {"PER": "x"}}, {"docs": None}, {"docs": [1]}],
)
def test_a_shard_with_a_bad_receipt_is_made_again(tmp_path, gold, report):
    aggregate(gold, tmp_path / "out.spacy")
    receipt = tmp_path / "out.spacy.json"
    right = receipt.read_text()
    data = json.loads(right)
    receipt.write_text(json.dumps({**data, "report": {**data["report"], **report}}))
    again = aggregate(gold, tmp_path / "out.spacy")
    assert (again.written, again.skipped) == (1, 0) and receipt.read_text() == right


@pytest.fixture()
def gold(tmp_path):
    doc = spacy.blank("xx")("Anna came .")
    doc.set_ents([doc.char_span(0, 4, "PER")], default="outside")
    set_source(doc, "a", [(0, 1, "PER")])
    write_docs(tmp_path / "gold.spacy", [doc])
    return tmp_path / "gold.spacy"


def test_folders_of_users_that_do_not_exist(tmp_path):
    assert str(expand_home("~nobody-at-all/x")) == "~nobody-at-all/x"
    (tmp_path / "s.cfg").write_text('[sources.a]\nterms = "~nobody-at-all/x.csv"\n')
    with pytest.raises(WeaknerError, match="nobody-at-all"):
        read_sources(tmp_path / "s.cfg")


@pytest.mark.parametrize("cfg", [[], {}, {"attr": "\ud800"}])
def test_damaged_settings_of_a_stored_component(tmp_path, cfg):
    nlp = spacy.blank("xx")
    nlp.add_pipe("gazetteer_ruler").add_terms(["aspirin"], label="DRUG")
    nlp.to_disk(tmp_path / "nlp")
    (tmp_path / "nlp" / "gazetteer_ruler" / "cfg").write_text(json.dumps(cfg))
    with pytest.raises(WeaknerError, match=r"WK800.*gazetteer_ruler"):
        load_pipeline(tmp_path / "nlp")


DAMAGED = [b"", b"{", b"\xff\xfe", b"nothing", b'{"attr": "LOWER", "labels": ["A"]', b"[" * 100_000]


@pytest.mark.parametrize("data", DAMAGED)
def test_damaged_bytes_of_a_stored_gazetteer_ruler(tmp_path, data):
    nlp = spacy.blank("xx")
    ruler = nlp.add_pipe("gazetteer_ruler", name="drugs")
    ruler.add_terms(["aspirin"], label="DRUG")
    ruler.to_disk(tmp_path)
    (tmp_path / "cfg").write_bytes(data)
    with pytest.raises(WeaknerError, match=r"WK800.*'drugs'"):
        ruler.from_disk(tmp_path)
    stored = {**srsly.msgpack_loads(ruler.to_bytes()), "cfg": data}
    with pytest.raises(WeaknerError, match=r"WK800.*'drugs'"):
        ruler.from_bytes(srsly.msgpack_dumps(stored))


@pytest.mark.parametrize("data", [*DAMAGED, *map(srsly.msgpack_dumps, ([], {}, {"groups": 1}, "x"))])
def test_damaged_bytes_of_a_stored_combiner(tmp_path, data):
    combiner = spacy.blank("xx").add_pipe("ent_combiner", name="both")
    (tmp_path / "model").write_bytes(data)
    with pytest.raises(WeaknerError, match=r"WK800.*'both'"):
        combiner.from_disk(tmp_path)
    with pytest.raises(WeaknerError, match=r"WK800.*'both'"):
        combiner.from_bytes(srsly.msgpack_dumps({"model": data}))


@pytest.mark.parametrize("labels", ["AB", ["A"], ["A", "A"], [["A"], "B"], None, ["A", "B", "C"]])
def test_damaged_labels_of_a_stored_head(labels):
    from tests.util import HEADS, TOK2VEC

    config = {**HEADS["token_ner"], "model": {**HEADS["token_ner"]["model"], "tok2vec": TOK2VEC}}
    nlp = spacy.blank("xx")
    head = nlp.add_pipe("token_ner", config=config)
    for label in "AB":
        head.add_label(label)
    nlp.initialize()
    head.cfg["labels"] = labels
    with pytest.raises(WeaknerError, match=r"WK800.*token_ner"):
        spacy.blank("xx").add_pipe("token_ner", config=config).from_bytes(head.to_bytes())
