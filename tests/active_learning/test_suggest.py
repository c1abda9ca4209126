import json
import re

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_weakner.active_learning.choosing import Sentence, SentencePool, choose_sentences
from spacy_weakner.active_learning.scoring import Model
from spacy_weakner.active_learning.suggest import suggest
from spacy_weakner.active_learning.uncertainty import Vote, spans_of_candidates, spans_of_tokens, spans_of_votes
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.entities import set_entities
from spacy_weakner.corpus.formats.reading import Reading, read_corpus
from spacy_weakner.corpus.language import CorpusLanguage, record_language
from spacy_weakner.corpus.weak import get_meta, group_entities, set_group, set_id, set_meta, set_source
from spacy_weakner.errors import WeaknerError

from ..cli.util import invoke
from ..ent_combiner.util import borders, without_gold
from ..relabel.test_clean import save_oracle, sure

NLP = spacy.blank("xx")
NAMES = ["Ann", "Bob", "Cid", "Dan", "Eva", "Fay", "Gus", "Hal", "Ida", "Jon", "Kim", "Lea"]


def make_doc(text, **sources):
    doc = Doc(NLP.vocab, words=text.split())
    for name, entities in sources.items():
        set_source(doc, name, entities)
    return doc


def with_candidates(text, candidates):
    doc = make_doc(text)
    set_group(doc, "pred:crf_ner", [entity for entity, _ in candidates], [score for _, score in candidates])
    return doc


def write(path, docs):
    write_docs(path, docs)
    record_language(path, CorpusLanguage.make("xx"))
    return path


def texts(path):
    return [doc.text.strip() for doc in read_docs(path, Vocab())]


@pytest.fixture
def uncertain(tmp_path):
    """Sentences with one candidate each, the first of them the least sure."""
    docs = [
        with_candidates(f"{name} {name.lower()}ish thing{i} went{i} home{i}", [((0, 1, "PER"), 0.5 + 0.04 * i)])
        for i, name in enumerate(NAMES)
    ]
    return write(tmp_path / "uncertain.spacy", docs)


# What is uncertain


def test_disagreement_beats_agreement(tmp_path):
    agreed = [make_doc(f"we saw {name} there", a=[(2, 3, "PER")], b=[(2, 3, "PER")]) for name in NAMES]
    disputed = make_doc("they know Oslo well", a=[(2, 3, "PER")], b=[(2, 3, "LOC")])
    corpus = write(tmp_path / "corpus.spacy", [*agreed, disputed])
    report = suggest(corpus, tmp_path / "next.spacy", n=1)
    assert texts(tmp_path / "next.spacy") == ["they know Oslo well"]
    assert report.sentences[0].why == "'Oslo': disagreement: a PER, b LOC"
    assert report.certain == 0


@pytest.mark.parametrize(
    "votes,uncertainties",
    [
        ([([(0, 1, "A")], True), ([(0, 1, "B")], True)], [0.5]),
        ([([(0, 1, "A")], True), ([], True)], [0.5]),
        ([([(0, 1, "A")], True), ([], False)], [0.2]),
        ([([(0, 2, "A")], True), ([(1, 3, "A")], True), ([(1, 3, "A")], True)], [1 / 3]),
        ([([(0, 1, "A")], True), ([(0, 1, "A")], True)], []),
        ([([(0, 1, "A")], True)], []),
        ([([], True), ([], True)], []),
    ],
)
def test_uncertainty_of_votes(votes, uncertainties):
    spans = spans_of_votes({str(i): Vote(*vote) for i, vote in enumerate(votes)})
    assert [span.uncertainty for span in spans] == pytest.approx(uncertainties)


def test_uncertainty_of_tokens():
    rows = numpy.array([[0.95, 0.05, 0.0], [0.3, 0.6, 0.1], [0.2, 0.0, 0.8], [1.0, 0.0, 0.0], [0.7, 0.1, 0.2]])
    first, second = spans_of_tokens(rows, ("O", "B-X", "I-X"))
    assert (first.start, first.end, first.label, first.why) == (1, 3, "X", "X 70 %")
    assert first.uncertainty == pytest.approx(0.4)
    assert (second.start, second.end, second.why) == (4, 5, "X 30 %, not predicted")
    assert second.uncertainty == pytest.approx(0.3)
    assert spans_of_tokens(rows[:0], ("O", "B-X")) == spans_of_tokens(rows, ("O",)) == []


def test_white_space_does_not_end_a_span(tmp_path):
    model = Model(save_oracle(tmp_path / "oracle", {"New": sure("B-LOC", 0.6), "York": sure("I-LOC", 0.6)}))
    docs = [Doc(NLP.vocab, words=words) for words in (["in", "New", "\n", "York", "\n"], ["\n"])]
    (span,), nothing = model.uncertain_spans(docs)
    assert (span.start, span.end, span.label) == (1, 4, "LOC") and not nothing
    # A blank line does.
    assert len(model.uncertain_spans([Doc(NLP.vocab, words=["New", "\n\n", "York"])])[0]) == 2


def test_candidates_that_overlap_are_one_span():
    candidates = [((0, 2, "X"), 0.5), ((1, 2, "Y"), 0.3), ((4, 5, "Y"), 0.2), ((6, 7, "Y"), None), ((8, 9, "X"), 0.01)]
    first, second = spans_of_candidates(candidates)
    assert (first.label, first.uncertainty, second.label, second.uncertainty) == pytest.approx(("X", 0.5, "Y", 0.2))
    assert second.why == "Y 20 %, not predicted"


# What is chosen


def sentence(text, score, *labels):
    words = tuple(text.split())
    by_label = {label: score / len(labels) for label in labels}
    return Sentence(text, words, (True,) * len(words), None, score, by_label, None, {})


def test_near_duplicates_are_left_out():
    found = choose_sentences(
        [
            sentence("Ann scored 21 of the 34 points in Oslo", 0.9, "X"),
            sentence("ann scored 25 of the 68 points in Oslo", 0.8, "X"),
            sentence("rain is expected tomorrow", 0.1, "X"),
        ],
        3,
    )
    assert [s.score for s in found.sentences] == [0.9, 0.1]
    assert found.near == 1


def test_every_label_has_a_share():
    common = [sentence(f"{a}x {a}y", 1.0 - i / 100, "COMMON") for i, a in enumerate(NAMES)]
    rare = [sentence(text, 0.01, "RARE") for text in ("seldom seen", "hardly ever")]
    chosen = choose_sentences([*common, *rare], 8).sentences
    assert sum("RARE" in s.by_label for s in chosen) == 2
    assert sum("COMMON" in s.by_label for s in chosen) == 6


def test_typical_sentences_come_before_strange_ones():
    strange = sentence("zq vx qj", 0.5, "X")
    typical = [sentence(f"the patient was given {name}", 0.5, "X") for name in NAMES]
    assert choose_sentences([strange, *typical], 1).sentences == [typical[0]]


@pytest.mark.parametrize("least", [4, 1000])
def test_a_pool_keeps_the_best_of_all_and_of_labels(monkeypatch, least):
    monkeypatch.setattr("spacy_weakner.active_learning.choosing._LEAST", least)
    pool = SentencePool(3, 1, seed=0)
    for i in range(50):
        pool.add(sentence(f"w{i}", i / 100, "COMMON"))
    pool.add(sentence("rare", 0.0, "RARE"))
    pool.add(sentence("w49", 0.49, "COMMON"))
    assert [s.key for s in pool.sentences()] == ["w49", "w48", "w47", "rare"]
    assert pool.copies == 1


# What is left out


def test_what_is_excluded_or_annotated_is_never_suggested(uncertain, tmp_path):
    gold = make_doc("Bob  bobish thing1 went1 HOME1".replace("  ", " "))
    set_entities(gold, [], [True] * len(gold))
    exclude = write(tmp_path / "gold.spacy", [gold])
    docs = [*read_docs(uncertain, NLP.vocab), gold, Doc(NLP.vocab), Doc(NLP.vocab, words=[" "])]
    corpus = write(tmp_path / "corpus.spacy", [*docs, docs[0]])
    report = suggest(corpus, tmp_path / "next.spacy", n=50, exclude=[exclude])
    assert len(report.sentences) == len(NAMES) - 1
    assert not [text for text in texts(tmp_path / "next.spacy") if text.startswith("Bob")]
    assert (report.read, report.empty, report.annotated, report.excluded, report.copies) == (16, 2, 1, 1, 1)
    with pytest.raises(WeaknerError, match=r"WK776.*12 of its 12 sentences"):
        suggest(uncertain, tmp_path / "none.jsonl", exclude=[uncertain])


@pytest.mark.parametrize("name", ["next.spacy", "next.jsonl"])
def test_what_a_row_says_beside_its_text_stays(tmp_path, name):
    doc = make_doc("they know Oslo well", a=[(2, 3, "PER")], b=[(2, 3, "LOC")])
    doc.cats = {"NEWS": 1.0}
    set_meta(doc, {"url": "http://x/0", "why": "an earlier reason"})
    suggest(write(tmp_path / "corpus.spacy", [doc]), tmp_path / name, n=1)
    (found,) = read_corpus(tmp_path / name, NLP, Reading(sentences=False))
    assert found.cats == {"NEWS": 1.0}
    assert get_meta(found)["url"] == "http://x/0" and get_meta(found)["why"] == "'Oslo': disagreement: a PER, b LOC"


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    docs = [with_candidates(f"{name} is{i} here{i}", [((0, 1, "PER"), 0.5)]) for i, name in enumerate(NAMES)]
    corpus = write(tmp_path / "a.spacy", docs)
    backwards = write(tmp_path / "b.spacy", docs[::-1])
    made = {}
    for name, path, seed in (("x", corpus, 0), ("y", backwards, 0), ("z", corpus, 1)):
        suggest(path, tmp_path / f"{name}.jsonl", n=4, seed=seed)
        made[name] = (tmp_path / f"{name}.jsonl").read_bytes()
    assert made["x"] == made["y"] != made["z"]


def test_a_combination_is_asked_and_not_what_it_combines(tmp_path):
    nlp = spacy.blank("en")  # as its Docs
    combiner = nlp.add_pipe("ent_combiner")
    combiner.fit(borders(80))
    nlp.to_disk(tmp_path / "model")
    docs = [without_gold(doc) for doc in borders(30, seed=1)]
    model = Model(tmp_path / "model")
    found = [span for spans in model.uncertain_spans(docs) for span in spans]
    expected = [span for scored in combiner.score_candidates(docs) for span in spans_of_candidates(scored)]
    assert found and [span[:3] for span in found] == [span[:3] for span in expected]
    assert [span.uncertainty for span in found] == pytest.approx([span.uncertainty for span in expected])


# What is written


def test_the_least_sure_come_first_and_are_no_gold(uncertain, tmp_path):
    report = suggest(uncertain, tmp_path / "next.jsonl", n=3)
    assert [s.score for s in report.sentences] == sorted((s.score for s in report.sentences), reverse=True)
    row, *others = map(json.loads, (tmp_path / "next.jsonl").read_text().splitlines())
    assert [found["tokens"][0] for found in (row, *others)] == NAMES[:3] and row["ents"] is None
    assert row["suggested"] == [[0, 1, "PER", 0.5]] and "weak_ents" not in row
    assert row["meta"] == {
        "score": pytest.approx(0.5 / 5**0.75, abs=0.001),
        "why": "'Ann': PER 50 %",
        "chosen_by": "suggest",
    }


def test_what_somebody_has_said_of_a_sentence_stays(tmp_path):
    starts = {"Ann": 0, "Ring": 1, "Bob": 3, "Cid": 5, "Dan": 7, "Eva": 9}
    doc = with_candidates(
        "Ann Ring saw Bob and Cid and Dan and Eva", [((i, i + 1, "PER"), 0.6) for i in starts.values()]
    )
    outside = [doc[starts["Dan"] : starts["Dan"] + 1]]
    doc.set_ents([Span(doc, 0, 2, "ORG", kb_id="Q1|Q2")], outside=outside, default="missing")
    set_group(doc, "wrong", [(3, 4, "PER"), (5, 6, "")])
    given = write(tmp_path / "in.spacy", [doc])
    report = suggest(given, tmp_path / "next.jsonl")
    (row,) = map(json.loads, (tmp_path / "next.jsonl").read_text().splitlines())
    suggested, wrong = [[0, 2, "ORG", "Q1|Q2"], [9, 10, "PER", 0.6]], [[3, 4, "PER"], [5, 6, ""]]
    assert (row["ents"], row["suggested"], row["wrong"]) == (None, suggested, wrong)
    assert report.partial == 1 and not report.lost
    # Prodigy's answers are of one kind.
    report = suggest(given, tmp_path / "tasks.jsonl", to="prodigy")
    (row,) = map(json.loads, (tmp_path / "tasks.jsonl").read_text().splitlines())
    assert [(span["label"], span["token_start"]) for span in row["spans"]] == [("ORG", 0), ("PER", 9)]
    assert row.get("answer") is None and report.lost["wrong spans"] == 2


@pytest.mark.parametrize("to", ["prodigy", "label-studio", "jsonl"])
def test_annotators_see_why(uncertain, tmp_path, to):
    output = tmp_path / ("next.json" if to == "label-studio" else "next.jsonl")
    report = suggest(uncertain, output, n=2, to=to)
    lines = output.read_text(encoding="utf-8")
    rows = json.loads(lines) if output.suffix == ".json" else list(map(json.loads, lines.splitlines()))
    assert len(rows) == 2 == len(report.sentences)
    assert all(row["meta"] and "annotations" not in row and row.get("answer") is None for row in rows)


def test_a_page_offers_the_labels_of_the_model_and_its_answers_are_gold(tmp_path):
    """The loop: suggest, annotate, convert."""
    nlp = spacy.blank("xx")
    patterns = [{"label": label, "pattern": term} for label, term in (("LOC", "Oslo"), ("RARE", "unicorn"))]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    nlp.to_disk(tmp_path / "rules")
    doc = make_doc("We left Oslo 😊", a=[(2, 3, "PER")], b=[])
    set_id(doc, "d1.1")
    corpus = write(tmp_path / "corpus.spacy", [doc])
    result = invoke("suggest", corpus, tmp_path / "next.html", "--model", tmp_path / "rules")
    assert result.exit_code == 0 and "next-answers.jsonl" in "".join(result.output.split())
    page = (tmp_path / "next.html").read_text(encoding="utf-8")
    known, rows = (json.loads(found) for found in re.findall('<script type="application/json".*?>(.*?)</', page, re.S))
    assert known == ["LOC", "PER", "RARE"]
    ((span,),) = [row["spans"] for row in rows]
    assert (span["start"], span["end"], span["label"]) == (8, 12, "LOC")
    answers = [{**row, "answer": "accept", "_view_id": "ner_manual"} for row in rows]
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in answers))
    convert(tmp_path / "answers.jsonl", tmp_path / "more.jsonl")
    (row,) = map(json.loads, (tmp_path / "more.jsonl").read_text(encoding="utf-8").splitlines())
    row.pop("spaces", None)
    assert row.pop("meta")["chosen_by"] == "suggest"
    assert row == {"id": "d1.1", "tokens": ["We", "left", "Oslo", "😊"], "ents": [[2, 3, "LOC"]]}


def test_without_probabilities_most_sources_annotate(tmp_path):
    doc = make_doc("New York State", a=[(0, 2, "LOC")], b=[(0, 2, "LOC")], c=[(1, 3, "ORG")])
    suggest(write(tmp_path / "corpus.spacy", [doc]), tmp_path / "next.spacy")
    (found,) = read_docs(tmp_path / "next.spacy", Vocab())
    assert group_entities(found, "suggested") == [(0, 2, "LOC")]
    assert not found.has_annotation("ENT_IOB")
    assert get_meta(found)["why"].startswith("'New York State': disagreement")


@pytest.mark.parametrize("has_model", [True, False])
def test_suggestions_have_the_ids_of_the_model_or_of_the_sources(tmp_path, has_model):
    nlp = spacy.blank("xx")
    ruler = nlp.add_pipe("gazetteer_ruler", config={"annotate_ents": True})
    ruler.add_terms([{"label": "LOC", "term": "Oslo", "id": "Q585"}])
    nlp.to_disk(tmp_path / "rules")
    doc = make_doc("We left Oslo", a=[])
    set_source(doc, "b", [(2, 3, "LOC")], ids={} if has_model else {(2, 3, "LOC"): ["Q585"]}, reliability=0.9)
    # Neither a source that is less reliable nor a group of other code.
    set_source(doc, "c", [(2, 3, "LOC")], ids={} if has_model else {(2, 3, "LOC"): ["Q1"]}, reliability=0.1)
    doc.spans["sc"] = [Span(doc, 2, 3, "LOC", kb_id="Q2")]
    corpus = write(tmp_path / "corpus.spacy", [doc])
    suggest(corpus, tmp_path / "next.jsonl", model=[tmp_path / "rules"] if has_model else [])
    (row,) = map(json.loads, (tmp_path / "next.jsonl").read_text().splitlines())
    assert row["suggested"] == [[2, 3, "LOC", "Q585"]]


@pytest.mark.parametrize("text", ["Ann is here\n", "Ann\n\nBob\n"])
def test_there_must_be_something_to_tell_by(text, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(text)
    with pytest.raises(WeaknerError, match="WK775"):
        suggest(path, tmp_path / "next.jsonl")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["text.txt"]


def test_one_shard_without_a_second_opinion_is_enough_to_go_on(tmp_path):
    write(tmp_path / "in" / "a.spacy", [make_doc("Ann is here", a=[(0, 1, "PER")])])
    write(tmp_path / "in" / "b.spacy", [make_doc("Bob went home", a=[(0, 1, "PER")], b=[])])
    assert suggest(tmp_path / "in", tmp_path / "next.jsonl", lang="xx").sentences[0].text == "Bob went home"


def test_pipelines_and_sources_on_the_command_line(tmp_path):
    """A pipeline without probabilities, which votes beside a term list."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "LOC", "pattern": "Oslo"}, {"label": "PER", "pattern": "Ann"}])
    nlp.to_disk(tmp_path / "rules")
    (tmp_path / "terms.csv").write_text("label,term\nPER,Oslo\nPER,Ann\n")
    (tmp_path / "sources.cfg").write_text('[sources.list]\nterms = "terms.csv"\n')
    (tmp_path / "text.txt").write_text("Ann is late.\nNobody left Oslo.\nIt rains.\n")
    command = ["suggest", tmp_path / "text.txt", tmp_path / "next.jsonl", "--n", 1]
    command += ["--model", tmp_path / "rules", "--sources", tmp_path / "sources.cfg"]
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    (row,) = map(json.loads, (tmp_path / "next.jsonl").read_text().splitlines())
    assert row["tokens"] == ["Nobody", "left", "Oslo", "."]
    assert row["suggested"] == [[2, 3, "LOC"]]
    assert row["meta"]["why"] == "'Oslo': disagreement: list PER, rules LOC"
    assert invoke(*command).exit_code == 0
    with (tmp_path / "next.jsonl").open("a") as annotated:
        annotated.write("\n")
    assert "WK314" in invoke(*command).stderr
