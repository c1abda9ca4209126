"""Pages to annotate: what they hold, and what people do there."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.formats.reading import input_files
from spacy_weakner.corpus.formats.writing import write_corpus
from spacy_weakner.corpus.weak import get_id, weak_sources
from spacy_weakner.errors import WeaknerError

from ...chromium import CONTROL, SHIFT, Page, find_chromium
from ...util import doc_from_row
from .util import NLP, ents

FAMILY = "👩\u200d👩\u200d👧"
HOSTILE = '</script><script>hacked = 1</script><img src="x" onerror="hacked = 1"><!-- Bob\u2028&amp; left'


def question(text, *spans, **more):
    """A row with suggestions, given by the words that they cover."""
    weak = [[text.index(words), text.index(words) + len(words), *label] for words, *label in spans]
    return {"text": text, "weak_ents": {"suggested": weak}, **more}


ODD = [
    question(f"Hello 😊, I am {FAMILY} Zoe\u0308 Smith 🇩🇪", ("Zoe\u0308 Smith", "PER", 0.9, "Q1"), id="d1.2"),
    question("Z\u0323\u0307a met e\u0301 in 𝔓aris", ("Z\u0323\u0307a", "PER"), ("𝔓aris", "LOC")),
    question("זוהר לוי פגש את Bob בירושלים", ("זוהר לוי", "PER"), ("Bob", "PER")),
    question("محمد صلاح في القاهرة", ("القاهرة", "LOC")),
    question("Anna  met\n\nBob", ("Anna", "PER"), ("Bob", "PER")),
    question(HOSTILE, ("Bob", "<b>hacked</b>")),
    question("東京都は大きい", ("東京都は大きい", "LOC")),
    question("Nothing here"),
    question("\ufeff"),  # which is no white space for Python, as it is for JavaScript's `trim`
]
PLAIN = [
    question("Anna met Bob in New York", ("Anna", "PER"), ("Bob in", "PER")),
    question("Eva left"),
    question("Yes"),
]


def write(folder, rows, name="next.html", **settings):
    write_corpus(folder / name, [doc_from_row(row, NLP) for row in rows], **settings)
    return folder / name


class Scripts(HTMLParser):
    """The scripts of a page, and the attributes of all its elements."""

    def __init__(self, path):
        super().__init__()
        self.script, self.scripts, self.attributes = None, {}, []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]
        self.script = dict(attrs).get("id", "code") if tag == "script" else None

    def handle_endtag(self, tag):
        self.script = None

    def handle_data(self, data):
        if self.script is not None:
            self.scripts[self.script] = self.scripts.get(self.script, "") + data


def test_it_holds_rows_and_labels(tmp_path):
    page = Scripts(write(tmp_path, ODD, labels=["ORG", "</script>"]))
    assert set(page.scripts) == {"known-labels", "rows", "code"}
    assert json.loads(page.scripts["known-labels"]) == ["</script>", "ORG"]
    rows = json.loads(page.scripts["rows"])
    assert [row["text"] for row in rows] == [row["text"] for row in ODD]
    first = rows[0]["spans"][0]
    assert rows[0]["text"][first["start"] : first["end"]] == "Zoe\u0308 Smith"
    assert (first["score"], first["kb_id"], rows[0]["id"]) == (0.9, "Q1", "d1.2")
    assert all("answer" not in row for row in rows)


def test_it_loads_nothing_and_runs_only_its_script(tmp_path):
    path = write(tmp_path, ODD, name="<b>&.html")
    page = Scripts(path)
    assert not [found for found in page.attributes if found[1] in ("src", "href", "action") or found[1][:2] == "on"]
    (policy,) = (value for _, name, value in page.attributes if name == "content" and "default-src" in value)
    code = b64encode(sha256(page.scripts["code"].encode()).digest()).decode()
    assert "default-src 'none'" in policy and f"script-src 'sha256-{code}'" in policy
    assert not re.search(r"https?:|innerHTML|insertAdjacent|document\.write|eval\(", page.scripts["code"])
    assert "<title>&lt;b&gt;&amp;</title>" in path.read_text(encoding="utf-8")
    assert len(page.scripts["code"].splitlines()) <= 400


def test_gold_is_shown_to_be_reviewed(tmp_path):
    rows = [
        {"text": "Anna met Bob", "ents": [[0, 4, "PER"]], "weak_ents": {"list": [[9, 12, "ORG"]]}},
        {"text": "Nothing", "ents": [], "weak_ents": {"list": [[0, 7, "ORG"]]}},
        {"text": "Anna met Bob", "ents": [[0, 4, "PER"]], "complete": False, "wrong": [[9, 12, "LOC"]]},
        {"text": "Anna met", "ents": [[0, 4, "PER"]], "weak": True},
    ]
    written = write_corpus(tmp_path / "a.html", [doc_from_row(row, NLP) for row in rows])
    found = json.loads(Scripts(tmp_path / "a.html").scripts["rows"])
    spans = [[(span["start"], span["end"], span["label"]) for span in row["spans"]] for row in found]
    assert spans == [[(0, 4, "PER")], [], [(0, 4, "PER")], [(0, 4, "PER")]]
    assert not any("answer" in row for row in found)
    assert written.lost == {"missing tokens": 2, "weak spans": 2, "wrong spans": 1}


def test_a_page_is_not_read(tmp_path):
    with pytest.raises(WeaknerError, match="Save"):
        input_files(write(tmp_path, PLAIN))


def test_documents_stay_together_in_prodigy(tmp_path):
    rows = [{"id": "d1.2", "text": "Anna met Bob", "ents": [[0, 4, "PER"]]}, {"text": "Eva left", "ents": []}]
    write_corpus(tmp_path / "a.jsonl", [doc_from_row(row, NLP) for row in rows], "prodigy")
    convert(tmp_path / "a.jsonl", tmp_path / "a.spacy")
    assert [get_id(doc) for doc in read_docs(tmp_path / "a.spacy", NLP.vocab)] == ["d1.2", None]


# In a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if find_chromium() is None:
        pytest.skip("needs Chromium")
    with Page(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens a page of rows, as if for the first time."""

    def open_(rows=PLAIN, **settings):
        browser.forget()
        browser.open(write(tmp_path, rows, **settings))
        return browser

    yield open_
    assert not browser.errors()


def save(page):
    return page.download(lambda: page.press("s", modifiers=CONTROL))


def gold(path, **settings):
    report = convert(path, path.with_suffix(".spacy"), overwrite=True, **settings)
    docs = list(read_docs(path.with_suffix(".spacy"), NLP.vocab))
    assert not report.weak and not report.unknown and not any(map(weak_sources, docs))
    return docs


browsers = pytest.mark.slow


@browsers
def test_texts_and_offsets_are_exact(opened):
    page = opened(ODD)
    page.press(*["Enter"] * len(ODD))
    path = save(page)
    assert path.name == "next-answers.jsonl"
    rows = list(map(json.loads, path.read_text(encoding="utf-8").rstrip().split("\n")))
    assert [row["text"] for row in rows] == [row["text"] for row in ODD]
    for row, odd in zip(rows, ODD, strict=True):
        expected = [(*mark[:3], odd["text"][slice(*mark[:2])]) for mark in odd["weak_ents"]["suggested"]]
        assert [(span["start"], span["end"], span["label"], span["text"]) for span in row["spans"]] == expected
    docs = gold(path, lang="xx")
    assert [ents(doc) for doc in docs] == [
        [(odd["text"][start:end], label) for start, end, label, *_ in odd["weak_ents"]["suggested"]] for odd in ODD
    ]
    assert [doc.text for doc in docs] == [row["text"] for row in ODD]
    assert get_id(docs[0]) == "d1.2" and docs[0].ents[0].kb_id_ == "Q1"


@browsers
def test_nothing_of_a_text_is_run(opened):
    page = opened(ODD)
    texts = []
    for _ in ODD:
        texts.append(page.run("document.getElementById('text').textContent"))
        page.press("PageDown")
    assert page.run("document.images.length") == 0 and page.run("typeof hacked") == "undefined"
    assert HOSTILE.split("Bob")[0] in texts[5] and "<b>hacked</b>" in page.text("labels")


@browsers
def test_marks_by_keyboard(opened):
    page = opened(labels=["CITY"])
    assert page.text("labels").split() == ["CITY", "1", "PER", "2"]
    page.press("ArrowRight", "ArrowRight", "1")  # changes the label of "Bob in"
    page.press("End")
    page.press("ArrowLeft", modifiers=SHIFT)
    page.press("1", "Enter")
    page.press("2", "Delete", "Enter")
    page.press("2", "Enter")
    assert page.text("count") == "3 accepted, 0 skipped, 0 remaining of 3"
    first, second, third = gold(save(page))
    assert ents(first) == [("Anna", "PER"), ("Bob in", "CITY"), ("New York", "CITY")]
    assert ents(second) == [] and ents(third) == [("Yes", "PER")]


@browsers
def test_marks_with_the_mouse_at_token_borders(opened):
    page = opened()
    page.drag("#word-5", "#word-4")  # from the middle of one word to the middle of another, backwards
    page.click("#labels button")
    page.click("#word-2")
    page.click("#remove")
    page.click("#accept")
    page.click("#skip")
    assert page.text("count") == "1 accepted, 1 skipped, 1 remaining of 3"
    page.click("#new")
    page.insert("3/ORG 😊")
    page.press("Enter", "2", "Enter")
    first, third = gold(page.download(lambda: page.click("#save")))
    assert ents(first) == [("Anna", "PER"), ("New York", "PER")]
    assert ents(third) == [("Yes", "3/ORG 😊")]


@browsers
def test_a_label_replaces_what_it_overlaps(opened):
    page = opened()
    page.drag("#word-0", "#word-2")
    page.press("1", "Enter", "s", "s")
    (doc,) = gold(save(page))
    assert ents(doc) == [("Anna met Bob", "PER")]


@browsers
def test_a_held_key_answers_one_sentence(opened):
    page = opened()
    page.press("Enter", "s", repeats=3)
    assert page.text("count") == "1 accepted, 1 skipped, 1 remaining of 3"
    page.press("u", repeats=3)
    assert page.text("count") == "1 accepted, 0 skipped, 2 remaining of 3"
    page.run("document.getElementById('accept').focus()")
    page.press("Enter", repeats=3)  # presses the button
    assert page.text("count") == "2 accepted, 0 skipped, 1 remaining of 3"


@browsers
def test_undo(opened):
    page = opened()
    page.press("Delete", "Enter", "s")
    assert page.text("place").startswith("Sentence 3 of 3")
    page.press("u")
    page.press("z", modifiers=CONTROL)
    assert page.text("place") == "Sentence 1 of 3: not answered"
    assert page.run("document.querySelectorAll('.entity').length") == 1
    page.press("u")
    assert page.run("document.querySelectorAll('.entity').length") == 2
    page.press("u")
    assert page.text("count") == "0 accepted, 0 skipped, 3 remaining of 3"
    page.press("s", modifiers=CONTROL)
    assert "Nothing" in page.text("status")


@browsers
def test_a_closed_page_loses_nothing(opened, tmp_path):
    page = opened()
    page.press("Delete", "Enter", "s")
    page.press("1")  # not accepted yet
    for _ in range(20):  # on a busy machine, Chromium may show only a moment later what was stored
        page.open(tmp_path / "next.html")
        if not page.text("count").startswith("0 accepted"):
            break
    assert page.text("count") == "1 accepted, 1 skipped, 1 remaining of 3"
    assert page.text("place") == "Sentence 3 of 3: not answered"
    page.press("Enter")
    assert [ents(doc) for doc in gold(save(page))] == [[("Bob in", "PER")], [("Yes", "PER")]]
    # Another page does not take them over.
    page.open(write(tmp_path, [*PLAIN, question("More")]))
    assert page.text("count") == "0 accepted, 0 skipped, 4 remaining of 4"


@browsers
def test_a_browser_that_keeps_nothing_is_said_to(opened):
    page = opened()
    page.run("Storage.prototype.setItem = () => { throw new Error('full') }")
    assert page.run("document.getElementById('warning').hidden")
    page.press("Enter")
    assert "save" in page.text("warning")
    assert len(gold(save(page))) == 1


@browsers
def test_arrows_follow_the_direction_of_the_text(opened):
    page = opened(ODD[2:4])
    head = "[...document.querySelectorAll('.word')].findIndex((word) => word.matches('.head'))"
    page.press("ArrowLeft", "ArrowLeft", "ArrowRight")
    assert page.run("getComputedStyle(document.getElementById('text')).direction") == "rtl"
    assert page.run(head) == 1
    page.press("End", "Home", "ArrowRight")
    assert page.run(head) == 0


@browsers
def test_labels_after_the_ninth_have_letters(opened):
    page = opened(labels=[f"L{i:02}" for i in range(40)])
    keys = page.text("labels").split()[1::2]
    assert keys[:12] == [*"123456789abc"] and not {"s", "u"} & {*keys}
    page.press("r", "Enter", "s", "s")
    (doc,) = gold(save(page))
    assert ents(doc)[0] == ("Anna", "L26")


@browsers
def test_keyboards_of_other_scripts(opened):
    page = opened()
    page.press("ы", place="KeyS")
    page.press("&", place="Digit1")
    assert page.run("document.querySelectorAll('.entity').length") == 1
    page.press("я", place="KeyZ", modifiers=CONTROL)
    page.press("г", place="KeyU")
    assert page.text("count") == "0 accepted, 0 skipped, 3 remaining of 3"


@browsers
def test_all_is_reached_by_keyboard_and_seen(opened):
    page = opened()
    names, focused = [], "(({id, textContent}) => id || textContent.trim())(document.activeElement)"
    page.run("document.body.tabIndex = -1; document.body.focus()")
    for _ in range(12):
        page.press("Tab")
        names.append(page.run(focused))
        assert page.run("getComputedStyle(document.activeElement).outlineStyle") != "none", names
    assert names[:2] == ["text", "PER 1"] and {"new", "Add label", "accept", "remove", "skip", "save"} <= {*names}
    while page.run(focused) != "skip":
        page.press("Tab")
    page.press("Enter")  # presses the button
    assert page.text("count").startswith("0 accepted, 1 skipped")
    options = "[...document.querySelectorAll('[role=option]')].map((word) => word.getAttribute('aria-selected'))"
    assert page.run(options) == ["true", "false"]
    assert page.run("document.getElementById('text').getAttribute('aria-activedescendant')") == "word-0"


@browsers
def test_it_fits_a_narrow_screen(opened):
    long = question("Donaudampfschifffahrt" * 8 + " ran", ("Donaudampfschifffahrt" * 8, "L" * 60))
    page = opened([*ODD, long], name=f"{'long' * 30}.html")
    page.call("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
    try:
        for _ in range(len(ODD) + 1):
            assert page.run("document.documentElement.scrollWidth") <= 400, page.text("text")
            page.press("PageDown")
    finally:
        page.call("Emulation.setDeviceMetricsOverride", width=1000, height=800, deviceScaleFactor=1, mobile=False)
