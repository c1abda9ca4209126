import re
from base64 import b64decode
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import doc_entities, set_group, set_source
from spacy_weakner.errors import WeaknerError
from spacy_weakner.evaluation.examples import Example, WorstSentences, label_colors, render_example
from spacy_weakner.evaluation.report import ReportPage, Section, report

from ..util import make_doc

SCRIPT = "<script>alert(1)</script>"
# Breaks out of an attribute; closes what SVG and style are in; looks like mathematics to matplotlib, and like an
# identifier to who rewrites SVG.
ATTRIBUTE = '"\' onmouseover="alert(2)" id="x" href=\'#x\' url(#x)'
CLOSING = "--></style></svg></title>$\\frac{a}{$ & {{ 7 * 7 }} {% raw %}"
HOSTILE = (SCRIPT, ATTRIBUTE, CLOSING)
VOID = {"meta", "img"}


class Html(HTMLParser):
    """Elements, attributes and text of a page; fails on tags that do not match."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.elements, self.attributes, self.texts, self.open = [], [], [], []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes.extend((tag, name, value) for name, value in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes.extend((tag, name, value) for name, value in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def values(self, name):
        return [value for _, each, value in self.attributes if each == name]

    @property
    def text(self):
        return " ".join(data for tag, data in self.texts if tag != "style")


@pytest.fixture(scope="module")
def hostile(nlp, tmp_path_factory):
    """A corpus in which everything that a user can name is hostile."""
    path = tmp_path_factory.mktemp("hostile") / f"{ATTRIBUTE[:2]}&{{{{ 1 }}}}<b>.spacy"
    words = [*HOSTILE, "\x1b[31m", "中文", "end"]
    doc = Doc(nlp.vocab, words=words)
    doc.set_ents([Span(doc, i, i + 1, label) for i, label in enumerate(HOSTILE)], default="outside")
    for source in HOSTILE:
        entities = [(0, 1, SCRIPT), (0, 2, ATTRIBUTE), (1, 3, CLOSING), (3, 5, SCRIPT)]
        set_source(doc, source, entities, [0.9, 0.1, None, 0.5])
    set_group(doc, f"pred:{SCRIPT}", [(0, 1, SCRIPT)], [0.5])
    docs = [doc, make_doc(nlp, "fine"), Doc(nlp.vocab)]
    for other in docs[1:]:
        for source in HOSTILE:
            set_source(other, source, [])
    write_docs(path, docs)
    return path


@pytest.fixture(scope="module")
def hostile_page(hostile):
    output = hostile.parent / "report.html"
    candidates = {name: f"{hostile}#{name}" for name in HOSTILE}
    report(output, test=hostile, candidates=candidates, labels=hostile, title=SCRIPT, bootstrap=20)
    return output


@pytest.fixture
def corpus(nlp, tmp_path):
    docs = []
    for text, gold, weak in [
        ("Anna went to New York", [(0, 1, "PER"), (3, 5, "LOC")], [(0, 1, "PER"), (4, 5, "LOC")]),
        ("Rome is nice", [(0, 1, "LOC")], [(0, 1, "LOC")]),
        ("", [], []),
    ]:
        doc = make_doc(nlp, text, gold) if text else Doc(nlp.vocab)
        set_source(doc, "terms", weak)
        docs.append(doc)
    write_docs(tmp_path / "corpus.spacy", docs)
    return tmp_path / "corpus.spacy"


# Nothing hostile gets through


def test_hostile_text_appears_as_text(hostile_page):
    page = Html(hostile_page)
    assert "script" not in page.elements
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    whole = " ".join(page.text.split())
    for text in HOSTILE:
        assert " ".join(text.split())[:30] in whole
    titles = [data for tag, data in page.texts if tag in ("h1", "title")]
    assert titles.count(SCRIPT) == 2
    marks = [data.strip() for tag, data in page.texts if tag in ("mark", "span")]
    assert SCRIPT in marks  # as a token, and as a label
    assert "{{ 7 * 7 }}" in whole and "\x1b" not in whole


def test_only_known_elements_and_nothing_from_elsewhere(hostile_page):
    page, source = Html(hostile_page), hostile_page.read_text(encoding="utf-8")
    assert "<script" not in source and "</script" not in source and "<b>" not in source
    assert source.count("</style>") == 1
    known = (
        "html head meta title style body header h1 nav ul li a main section h2 p div table caption thead tr th tbody "
        "td bdi figure figcaption img details summary article h3 mark span br dl dt dd"
    )
    assert set(page.elements) <= set(known.split())
    assert all(value.startswith("#") for value in page.values("href"))
    assert page.values("srcset") == page.values("action") == []
    assert not re.search(r"https?://|@import|url\(", source.replace(" url(#x)", ""))
    images = page.values("src")
    assert images and all(value.startswith("data:image/svg+xml;base64,") for value in images)
    texts = [text for value in images for text in ElementTree.fromstring(b64decode(value.partition(",")[2])).itertext()]
    assert any(SCRIPT in text for text in texts)  # as text, not as an element


def test_identifiers_are_unique_and_links_lead_somewhere(hostile_page):
    page = Html(hostile_page)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {value[1:] for value in page.values("href")} <= set(ids)
    labels = [each for value in page.values("aria-labelledby") for each in value.split()]
    assert set(labels) <= set(ids)


# What is in it


def test_comparison_and_audit(corpus, tmp_path):
    candidates = {"terms": f"{corpus}#terms", "perfect": corpus}
    report(tmp_path / "r.html", test=corpus, candidates=candidates, labels=corpus, title="Mine")
    page = Html(tmp_path / "r.html")
    headings = [data for tag, data in page.texts if tag in ("h1", "h2")]
    scored = "Scores and errors of 'perfect'"
    assert headings == ["Mine", "Comparison of candidates", "Example sentences", scored, "Weak labels"]
    captions = [data for tag, data in page.texts if tag == "caption"]
    assert captions[0] == "Candidates" and "Sources" in captions
    # Of the best candidate, of the other one (folded away), of the weak labels.
    assert captions.count("Kinds of errors") == 3 and page.elements.count("details") == 1
    assert page.elements.count("img") == 1  # no scores, so no reliability
    assert page.elements.count("article") == 2  # the best candidate makes no errors
    report(tmp_path / "r.html", test=corpus, candidates=candidates, labels=corpus, title="Mine", selected="terms")
    page = Html(tmp_path / "r.html")
    assert [data for tag, data in page.texts if tag == "h3"] == [
        *("Sentence 1: 2 errors", "Sentence 2"),  # examples
        "Sentence 1: 2 errors",  # sentences with errors
    ]
    marks = [" ".join(data.split()) for tag, data in page.texts if tag in ("mark", "span") and data.strip()]
    # legend, gold, prediction
    assert marks[:2] == ["LOC", "PER"]
    assert marks[2:10] == ["Anna", "PER", "New York", "LOC ✗", "Anna", "PER", "York", "LOC ✗"]
    # No pair for a sentence without errors.
    assert marks[10:12] == ["Rome", "LOC"] and marks[12:14] == ["LOC", "PER"] and marks[14:] == marks[2:10]
    assert ("meta", "name", "viewport") in page.attributes


def test_ids_and_those_that_are_wrong(nlp, tmp_path):
    gold, labels = nlp.make_doc("aspirin cold"), nlp.make_doc("aspirin cold")
    gold.ents = [Span(gold, 0, 1, "DRUG", kb_id="C1"), Span(gold, 1, 2, "DISEASE", kb_id=f"D1|{SCRIPT}")]
    labels.ents = [Span(labels, 1, 2, "DISEASE", kb_id="C1")]
    write_docs(tmp_path / "gold.spacy", [gold])
    write_docs(tmp_path / "labels.spacy", [labels])
    pipeline = spacy.blank("xx")
    pipeline.add_pipe("gazetteer_ruler").add_terms([{"label": "DRUG", "term": "aspirins", "id": "C1", "name": SCRIPT}])
    pipeline.to_disk(tmp_path / "pipe")
    candidates = {"a": tmp_path / "labels.spacy", "list": tmp_path / "pipe"}
    report(tmp_path / "r.html", test=tmp_path / "gold.spacy", candidates=candidates, selected="list", bootstrap=0)
    page = Html(tmp_path / "r.html")
    text = " ".join(page.text.split())
    assert "script" not in page.elements and "DRUG ✗ C1" in text
    assert f"Preferred names of these ids Id Name C1 {SCRIPT}" in text
    assert (
        f"Most frequent wrong ids Candidate Phrase Label Id in gold Id entities a cold DISEASE {SCRIPT}|D1 C1 1" in text
    )


def test_the_answer_comes_first(corpus, tmp_path):
    def compose(parts):
        assert not parts.rows
        return ReportPage([("Best", SCRIPT)], [SCRIPT], [Section("Selection", "selection"), *parts.labels])

    report(tmp_path / "r.html", labels=corpus, compose=compose)
    page = Html(tmp_path / "r.html")
    assert page.elements.index("h1") < page.elements.index("dl") < page.elements.index("nav")
    assert [data for tag, data in page.texts if tag in ("dt", "dd")] == ["Best", SCRIPT]


def test_audit_alone(nlp, corpus, tmp_path):
    report(tmp_path / "r.html", labels=corpus)
    assert [data for tag, data in Html(tmp_path / "r.html").texts if tag == "h2"] == ["Weak labels"]
    doc = make_doc(nlp, "Anna went", annotated=False)
    set_source(doc, "terms", [(0, 1, "PER")])
    write_docs(tmp_path / "weak.spacy", [doc])
    report(tmp_path / "r.html", labels=tmp_path / "weak.spacy")
    page = Html(tmp_path / "r.html")
    assert "The corpus has no gold" in page.text and "img" not in page.elements


def test_calibration_of_several_pipelines_side_by_side(corpus, tmp_path, trained_path):
    nlp = spacy.load(trained_path, config={"components": {"crf_ner": {"scores": True}}})
    nlp.to_disk(tmp_path / "pipe")
    candidates = {"one": tmp_path / "pipe", "two": tmp_path / "pipe", "silent": trained_path}
    report(tmp_path / "r.html", test=corpus, candidates=candidates, bootstrap=0, examples=0)
    page = Html(tmp_path / "r.html")
    assert "95 %" not in page.text and "Sentences with errors" not in page.text
    (plot,) = [words for words in page.values("alt") if "calibration" in words]
    assert [part.partition(": expected")[0] for part in plot.split("; ")] == ["one", "two"]
    assert "Calibration of scores" in [data for tag, data in page.texts if tag == "caption"]
    assert "ECE" in [data for tag, data in page.texts if tag == "th"]


def test_same_input_same_bytes_whatever_the_settings_of_matplotlib(corpus, tmp_path):
    import matplotlib

    given = {"test": corpus, "candidates": {"terms": f"{corpus}#terms"}, "labels": corpus}
    report(tmp_path / "1.html", **given)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        report(tmp_path / "2.html", **given)
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / "1.html").read_bytes() == (tmp_path / "2.html").read_bytes()


# Bad input


def test_bad_input_is_refused_before_anything_is_written(corpus, tmp_path):
    output = tmp_path / "out" / "r.html"
    candidates = {"x": corpus}
    for message, settings in [
        ("WK411.*nothing to report", {}),
        ("WK005.*selected", {"test": corpus, "candidates": candidates, "selected": "none"}),
        ("WK411.*no test set", {"candidates": candidates, "labels": corpus}),
        ("WK401", {"test": corpus}),
        ("WK005.*examples", {"labels": corpus, "examples": -1}),
        ("WK005.*bootstrap", {"test": corpus, "candidates": candidates, "bootstrap": -1}),
        ("WK100.*nowhere", {"labels": tmp_path / "nowhere"}),
        ("WK100.*nowhere", {"test": corpus, "candidates": {"x": tmp_path / "nowhere"}}),
    ]:
        with pytest.raises(WeaknerError, match=message):
            report(output, **settings)
    assert not output.exists()


def test_output_is_no_folder_and_no_input(corpus, tmp_path):
    with pytest.raises(WeaknerError, match=r"WK109"):
        report(tmp_path, labels=corpus)
    before = corpus.read_bytes()
    with pytest.raises(WeaknerError, match=r"WK304"):
        report(corpus, labels=corpus)
    assert corpus.read_bytes() == before


# Examples


def test_worst_sentences_are_kept_the_first_ones_of_equals(nlp):
    worst = WorstSentences(2)
    docs = [make_doc(nlp, "a b c d", [(i, i + 1, "A") for i in range(n)]) for n in (1, 0, 3, 1, 3, 2)]
    for doc in docs:
        worst.add(doc, doc_entities(doc), [])
    assert [(each.number, each.errors) for each in worst.result()] == [(3, 3), (5, 3)]
    everything = WorstSentences(10)
    for doc in docs:
        everything.add(doc, doc_entities(doc), [])
    assert [each.number for each in everything.result()] == [3, 5, 6, 1, 4]


def test_labels_that_differ_in_case_differ_in_color():
    colors = label_colors(["per", "PER", "per"])
    assert len(set(colors.values())) == len(colors) == 2
    example = Example(1, 1, "a b", ((0, 1), (2, 3)), ((0, 1, "per"), (1, 2, "PER")), ())
    gold, predicted = render_example(example, colors)
    assert all(color in gold for color in colors.values())
    assert "mark" not in predicted


def test_spans_that_overlap_stand_below():
    example = Example(1, 2, "a b c", ((0, 1), (2, 3), (4, 5)), ((0, 1, "A"),), ((0, 1, "A"), (0, 2, "A"), (2, 3, "B")))
    _, predicted = render_example(example, label_colors("AB"))
    sentence, below = predicted.split("</div>")[:2]
    assert sentence.count("<mark") == 2 and below.count("<mark") == 1
    assert "right" in below and "✗" not in below
