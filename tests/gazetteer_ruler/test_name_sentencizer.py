"""Sentences of texts with names that contain the end of a sentence."""

import pickle

import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_weakner.checks.check import check
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.language import CorpusLanguage
from spacy_weakner.corpus.weak import group_entities, set_spans
from spacy_weakner.labeling.label import label
from spacy_weakner.pipelines import add_sentences, blank_pipeline
from spacy_weakner.project.assembling import assemble, list_and_head, save
from spacy_weakner.project.combine import TrainedHead
from spacy_weakner.project.lists import make_lists, term_sources
from spacy_weakner.project.prepare import prepare

from ..util import TOK2VEC

NAMES = [
    "Yahoo! Inc.",
    "Guess? Europe",
    "E! Network",
    "Jeopardy! Productions",
    "Salmonella enterica subsp. enterica",
    "vit. D",
]


def make(names=NAMES, lang="en"):
    nlp = spacy.blank(lang)
    nlp.add_pipe("name_sentencizer").add_names(names, nlp)
    return nlp


def sentences(nlp, text):
    return [sentence.text for sentence in nlp(text).sents]


@pytest.mark.parametrize("name", [*NAMES, "YAHOO! Inc.", "yahoo!\n Inc.", "guess?  Europe"])
def test_names_stay_whole(name):
    nlp = make()
    assert sentences(nlp, f"I saw {name} here. You did? Yes") == [f"I saw {name} here.", "You did?", "Yes"]
    assert [len(list(doc.sents)) for doc in nlp.pipe([f"{name} ran. You", "", "We. You! They", name])] == [2, 0, 3, 1]


def test_only_names_with_the_end_of_a_sentence_are_kept():
    nlp = make(["Yahoo!", "St. Louis", "U.S. Army", "Yahoo! Inc.", "Yahoo! Inc.", "who?!", "C. elegans", "..."])
    assert nlp.get_pipe("name_sentencizer").names == ["Yahoo! Inc."]
    assert sentences(nlp, "I like Yahoo! Me too") == ["I like Yahoo!", "Me too"]


def test_longest_match_and_overlaps():
    nlp = make(["Yahoo! Inc.", "Inc. Now! Ltd", "Yahoo! Inc. Now? No"])
    assert sentences(nlp, "Yahoo! Inc. Now? No. Why") == ["Yahoo! Inc. Now? No.", "Why"]
    # No name: none ends inside another sentence.
    assert sentences(nlp, "Yahoo! Inn. Now") == ["Yahoo!", "Inn.", "Now"]


def test_entities_and_groups_of_a_doc_stay_whole():
    nlp = make([])
    doc = nlp.make_doc("Ask Who? Me and Oh! You. Why! Now")
    doc.ents = [Span(doc, 1, 4, "X")]
    set_spans(doc, "weak:x", [Span(doc, 5, 8, "X")], {})
    assert [sentence.text for sentence in nlp(doc).sents] == ["Ask Who? Me and Oh! You.", "Why!", "Now"]


def test_groups_of_others_are_split():
    nlp = make([])
    doc = nlp.make_doc("Anna came. Bob left. Eve ran.")
    doc.spans["paragraphs"] = [doc[:]]
    assert len(list(nlp(doc).sents)) == 3
    for group in ("gold", "weak:x", "pred:ner", "matched"):
        doc = nlp.make_doc("Anna came. Bob left. Eve ran.")
        set_spans(doc, group, [Span(doc, 1, 4, "X")], {})
        assert len(list(nlp(doc).sents)) == 2


@pytest.mark.parametrize(
    "name, inside, outside",
    [
        ("No. 5", "She wears No. 5 often.", "He said no. 5 people left."),
        ("Catch! 22", "She read Catch! 22 often.", "What a catch! 22 men ran."),
        ("The Go! Team", "She saw The Go! Team there.", "Here is the go! Team up."),
    ],
)
def test_names_of_stop_words_and_numbers_match_in_exact_case(tmp_path, name, inside, outside):
    nlp = make([name])
    nlp.to_disk(tmp_path)
    for each in (nlp, spacy.load(tmp_path)):
        assert (len(sentences(each, inside)), len(sentences(each, outside))) == (1, 2)


def test_entities_that_go_into_the_next_sentence_are_no_names(tmp_path, write):
    """Each entity of the gold is noted as a name, but not "Washington. The"."""
    rows = [
        '{"text": "In Washington. The end", "ents": [[3, 18, "LOC"]]}',
        '{"text": "At Guess? Europe we met. So", "ents": [[3, 16, "ORG"]]}',
    ]
    text = write("a.txt", "I like Washington. The sun shines. I like Guess? Europe too.")
    gold = write("g.jsonl", *rows)
    prepare(tmp_path / "corpus", gold=gold, text=text, lang="en")
    docs = [doc.text for doc in read_docs(tmp_path / "corpus" / "text", Vocab())]
    assert docs == ["I like Washington.", "The sun shines.", "I like Guess? Europe too."]
    nlp = spacy.blank("en")
    head = nlp.add_pipe("crf_ner", config={"model": {"tok2vec": TOK2VEC}})
    doc = nlp.make_doc("In Washington. The end")
    gold_doc = doc.copy()
    gold_doc.ents = [Span(gold_doc, 1, 4, "LOC")]
    nlp.initialize(lambda: [Example(doc, gold_doc)])
    assert head.divided_names == []
    (warning,) = [finding for finding in check(gold=gold, lang="en").findings if "stop word after" in finding.message]
    assert warning.level == "warning" and "Washington. The' (line 1)" in warning.message


CLINIC = "Pat. wg. Aszites (wg. Fieber) kam. Wg. Husten, z. B. nachts, ca. 3 Tage. Dr. Ott ging."


@pytest.mark.parametrize("tokenizer", [None, "spacy_weakner.WordTokenizer.v1"])
@pytest.mark.parametrize(
    "abbreviations, expected",
    [
        (
            "",
            [
                "Pat.",
                "wg.",
                "Aszites (wg.",
                "Fieber) kam.",
                "Wg.",
                "Husten, z. B. nachts, ca. 3 Tage.",
                "Dr. Ott ging.",
            ],
        ),
        ("wg.", ["Pat.", "wg. Aszites (wg. Fieber) kam.", "Wg. Husten, z. B. nachts, ca. 3 Tage.", "Dr. Ott ging."]),
        (
            "pat., kam., z. B.",
            ["Pat. wg.", "Aszites (wg.", "Fieber) kam. Wg.", "Husten, z. B. nachts, ca. 3 Tage.", "Dr. Ott ging."],
        ),
    ],
)
def test_abbreviations_do_not_end_sentences(tmp_path, tokenizer, abbreviations, expected):
    nlp = blank_pipeline("de", tokenizer)
    add_sentences(nlp, abbreviations=abbreviations)
    nlp.to_disk(tmp_path)
    for each in (nlp, spacy.load(tmp_path)):
        assert sentences(each, CLINIC) == expected


def test_abbreviations_of_several_words_and_in_another_case():
    nlp = blank_pipeline("xx")
    add_sentences(nlp, abbreviations="St. p.,Inc.,  u. v. a. m. ")
    assert sentences(nlp, "Er hat St. p. OP. St. Ot") == ["Er hat St. p. OP.", "St.", "Ot"]
    assert sentences(nlp, "Es gab u. v. a. m. und Inc. Co. An inc. Co") == [
        "Es gab u. v. a. m. und Inc. Co.",
        "An inc.",
        "Co",
    ]
    assert sentences(nlp, "Inc. Co! St.p. Ott St.\n p. OP") == ["Inc. Co!", "St.p.", "Ott St.\n p. OP"]


def test_lines_are_sentences():
    nlp = blank_pipeline("en")
    add_sentences(nlp, how="lines")
    assert sentences(nlp, "Anna left. She\n\nran\r\nfar. \n") == ["Anna left. She\n\n", "ran\r\n", "far. \n"]
    assert [len(list(doc.sents)) for doc in nlp.pipe(["", "a. b", "a\nb"])] == [0, 1, 2]


def test_storage(tmp_path):
    nlp, text = make(), "At Yahoo! Inc. now. Yes"
    nlp.to_disk(tmp_path)
    others = [spacy.load(tmp_path), make([]).from_bytes(nlp.to_bytes())]
    assert [sentences(other, text) for other in others] == [["At Yahoo! Inc. now.", "Yes"]] * 2
    pipe = pickle.loads(pickle.dumps(nlp.get_pipe("name_sentencizer")))
    assert pipe.names == NAMES and len(list(pipe(nlp.make_doc(text)).sents)) == 2
    empty = make([])
    empty.to_disk(tmp_path)
    assert len(sentences(spacy.load(tmp_path), text)) == 3


@pytest.fixture
def write(tmp_path):
    def write(name, *lines):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return tmp_path / name

    return write


@pytest.mark.parametrize("n", [1, 2])
def test_raw_text_that_is_labeled(tmp_path, write, n):
    terms = write("t.csv", "label,term", *(f"ORG,{name}" for name in NAMES))
    text = write("a.txt", *(f"Eve saw {name} now. It ran." for name in NAMES))
    again = write("b.txt", "Eve saw Yahoo! Inc. now.")
    report = label(text, tmp_path / "out", terms=terms, lang="en", exclude=[again], shard_size=2, workers=n)
    docs = list(read_docs(tmp_path / "out", Vocab()))
    assert (len(docs), report.excluded, report.spans.total()) == (2 * len(NAMES) - 1, 1, len(NAMES) - 1)
    found = [doc[a:b].text for doc in docs for a, b, _ in group_entities(doc, "weak:gazetteer")]
    assert found == NAMES[1:]


def test_raw_text_of_a_project(tmp_path, write):
    terms = write("t.csv", "label,term", "ORG,Yahoo! Inc.")
    row = '{"text": "At Guess? Europe we met. So", "ents": [[3, 16, "ORG"]]}'
    text = write("a.txt", "Eve saw Yahoo! Inc. and Guess? Europe now. It ran. E! Network")
    given = {"gold": write("g.jsonl", row), "text": text, "lang": "en"}
    sources = write("s.cfg", "[sources.orgs]", 'terms = "t.csv"')
    for options in ({"terms": terms}, {"sources": sources}):
        prepared = prepare(tmp_path / "corpus", **given, **options)
        assert (prepared.gold, prepared.text) == (2, 4)
        docs = read_docs(tmp_path / "corpus" / "text", Vocab())
        assert next(doc.text for doc in docs) == "Eve saw Yahoo! Inc. and Guess? Europe now."
    assert prepare(tmp_path / "corpus", **given).text == 5


def test_packaged_pipelines(tmp_path, write):
    """The list has one name, and the gold another one."""
    head = spacy.blank("en")
    head.add_pipe("crf_ner", config={"model": {"tok2vec": TOK2VEC}})
    pairs = [("Eve works for Guess? Europe now.", (14, 27)), ("Guess? Europe is large.", (0, 13))]
    examples = [Example.from_dict(head.make_doc(text), {"entities": [(*span, "ORG")]}) for text, span in pairs]
    optimizer = head.initialize(lambda: examples)
    for _ in range(60):
        head.update(examples, sgd=optimizer)
    head.to_disk(tmp_path / "head")
    sources = term_sources(write("t.csv", "label,term", "ORG,Yahoo! Inc."), None)
    language = CorpusLanguage.make("en")
    (made,) = make_lists(sources, tmp_path / "lists", language)
    lists, heads = {made.source: made.pipeline}, {"gold": tmp_path / "head"}
    text = "Eve works for {} now. It ran."
    paths = [
        list_and_head(lists, heads["gold"], tmp_path / "b", language),
        save(assemble(lists, heads, {}, language), tmp_path / "a", lists),
    ]
    for path in paths:
        nlp = spacy.load(path)
        docs = [nlp(text.format(name)) for name in ("Yahoo! Inc.", "Guess? Europe", "Oh! You")]
        assert [len(list(doc.sents)) for doc in docs] == [2, 2, 3]
        assert [ent.text for ent in docs[1].ents] == ["Guess? Europe"]
    # The comparison of candidates splits in the same way.
    doc = head.make_doc("At Guess? Europe and Yahoo! Inc. now.")
    set_spans(doc, "weak:gazetteer", [Span(doc, 5, 8, "ORG")], {})
    write_docs(tmp_path / "gold.spacy", [doc])
    predicted = TrainedHead("gold", "gold alone").predict(heads["gold"], tmp_path / "gold.spacy", language)
    assert [len(list(doc.sents)) for doc in predicted.docs] == [1]
    packaged = spacy.load(made.pipeline)
    add_sentences(packaged)
    doc = packaged("Eve works for Yahoo! Inc. now.")
    assert [ent.text for ent in doc.ents] == ["Yahoo! Inc."] and len(list(doc.sents)) == 1


def test_they_are_counted(write):
    gold = write("g.jsonl", '{"text": "At Guess? Europe we met. So", "ents": [[3, 16, "ORG"]]}')
    terms = write("t.csv", "label,term", "ORG,Yahoo! Inc.", "ORG,St. Louis")
    found = [
        finding for finding in check(gold=gold, terms=terms, lang="en").findings if "sentence inside" in finding.message
    ]
    assert [finding.message[:9] for finding in found] == ["1 entity ", "1 term wi"]
    assert "Guess? Europe" in found[0].message and "Yahoo! Inc." in found[1].message
