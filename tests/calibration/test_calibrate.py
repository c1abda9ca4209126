"""`calibrate` with a pipeline that predicts what the test wants, and several fits together."""

import json
from itertools import count

import numpy
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_weakner.calibration.calibrate import calibrate
from spacy_weakner.calibration.seen import remember
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import bare_copy, read_docs, write_docs
from spacy_weakner.errors import WeaknerError

from ..cli.util import invoke
from ..ent_combiner.util import borders
from ..util import SENTENCES, crf_pipeline, make_doc, make_examples, train

NLP = spacy.blank("xx")


class Scorer:
    """Finds an entity of label A or B at every word like "A0.93", with this score, unless it is too low. "AX" has no
    score."""

    labels = ("A", "B", "C")

    def __init__(self):
        self.thresholds = {}

    def __call__(self, doc):
        ents = []
        for token in doc:
            if token.text[0] in "AB":
                score = None if token.text[1:] == "X" else float(token.text[1:])
                if score is not None and score < self.thresholds.get(token.text[0], 0.0):
                    continue
                ents.append(Span(doc, token.i, token.i + 1, token.text[0]))
                ents[-1]._.weakner_score = score
        doc.ents = ents
        return doc

    def set_thresholds(self, thresholds):
        self.thresholds = dict(thresholds)

    def to_disk(self, path, exclude=()):
        path.mkdir()
        (path / "thresholds.json").write_text(json.dumps(self.thresholds))

    def from_disk(self, path, exclude=()):
        self.thresholds = json.loads((path / "thresholds.json").read_text())


@Language.factory("conformal_scorer")
def make_scorer(nlp: Language, name: str) -> Scorer:
    return Scorer()


@pytest.fixture
def fit(tmp_path):
    """Fits thresholds, each time to another output."""
    names = count()

    def fit_thresholds(model, gold, **settings):
        settings = {"strict": True, **settings}
        return calibrate(model, gold, tmp_path / f"fitted-{next(names)}", fit=["threshold"], **settings).thresholds

    return fit_thresholds


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    nlp = spacy.blank("xx")
    nlp.add_pipe("conformal_scorer")
    path = tmp_path_factory.mktemp("model") / "scorer"
    nlp.to_disk(path)
    return path


@pytest.fixture
def gold(tmp_path):
    """Of label A the upper 60 are right, of B every other one."""
    docs = [make_doc(NLP, f"A{0.99 - i / 1000:.3f} o", [(0, 1, "A")] if i < 60 else []) for i in range(90)]
    docs += [make_doc(NLP, f"B{0.99 - i / 1000:.3f}", [(0, 1, "B")] if i % 2 else []) for i in range(60)]
    # Unknown, weak, empty, without a score, and a label that is never found.
    docs += [make_doc(NLP, "A0.999", missing=[0]), make_doc(NLP, "A0.999"), Doc(NLP.vocab), make_doc(NLP, "AX x")]
    weak.set_weak(docs[151])
    docs.append(make_doc(NLP, "x", [(0, 1, "D")]))
    write_docs(tmp_path / "gold.spacy", docs)
    return tmp_path / "gold.spacy"


def test_thresholds_of_a_pipeline(fit, model, gold):
    report = fit(model, gold, precision=0.9, delta=0.1)
    assert (report.docs, report.left_out, report.unscored) == (152, 3, 1)
    a, b, d = (report.labels[label] for label in "ABD")
    assert (a.entities, a.right, a.pooled) == (90, 60, False)
    # 60 of 62 are convincing, and 60 of 63 are not.
    assert a.threshold == pytest.approx(0.99 - (a.kept - 1) / 1000, abs=2e-6) and a.kept == 62 and a.bound >= 0.9
    assert b.threshold is None and b.kept == 0 and b.precision is None
    assert d == report.others and d.pooled and d.threshold is None
    assert fit(model, gold, precision=0.1).labels["B"].kept == 60
    assert fit(model, gold, precision=0.9, delta=0.001).labels["A"].threshold is None
    assert fit(model, gold, precision=0.9, min_entities=91).labels["A"].pooled


def test_a_label_keeps_the_best_threshold_there_is(fit, model, gold):
    report = fit(model, gold, precision=0.9, strict=False)
    a, b = report.labels["A"], report.labels["B"]
    assert a == fit(model, gold, precision=0.9).labels["A"] and a.guaranteed
    assert not b.guaranteed and b.kept == 60 and b.bound < 0.9


def test_gold_in_other_formats(fit, model, gold, tmp_path):
    convert(gold, tmp_path / "gold.jsonl")
    assert fit(model, tmp_path / "gold.jsonl", precision=0.9).labels["A"].kept == 62


@pytest.mark.parametrize("path, seen", [("folder", 2), ("lost.spacy", 0), ("empty", 0)])
def test_corpora_that_are_folders_are_read_and_others_told(tmp_path, model, path, seen):
    docs = [make_doc(NLP, f"A0.9 in sentence number {i} .", [(0, 1, "A")]) for i in range(9)]
    for name in ("folder", "empty"):
        (tmp_path / name).mkdir()
    write_docs(tmp_path / "folder" / "a.spacy", docs[:2])
    write_docs(tmp_path / "gold.spacy", docs)
    nlp = spacy.load(model)
    nlp.config["paths"]["train"] = str(tmp_path / path)
    nlp.to_disk(tmp_path / "model")
    how = {"fit": ["threshold"], "precision": 0.5}
    report = calibrate(tmp_path / "model", tmp_path / "gold.spacy", tmp_path / "out", **how)
    assert report.seen == seen and [*report.unknown] == [f"paths.train = {tmp_path / path}"] * (not seen)
    if seen:  # short sentences may be from there too
        write_docs(tmp_path / "gold.spacy", [*docs[:2], *[make_doc(NLP, "A0.9 x", [(0, 1, "A")])] * 50])
        with pytest.raises(WeaknerError, match=r"WK728.* 52 of the 52 documents"):
            calibrate(tmp_path / "model", tmp_path / "gold.spacy", tmp_path / "out2", **how)


@pytest.mark.parametrize("known", ["trained", "chosen", "train", "dev"])
def test_sentences_that_it_was_trained_or_chosen_on_are_left_out(tmp_path, fit, model, known):
    """In its metadata, or in a corpus of its config that still exists; also as part of a longer text."""
    texts = [f"A0.9 in sentence number {i} ." for i in range(9)]
    docs = [make_doc(NLP, text, [(0, 1, "A")]) for text in texts]
    nlp = spacy.load(model)
    write_docs(tmp_path / "known.spacy", docs[:2])
    for name in ("train", "dev"):
        nlp.config["paths"][name] = str(tmp_path / "known.spacy") if known == name else None
    nlp.to_disk(tmp_path / "model")
    if known in ("trained", "chosen"):
        remember(tmp_path / "model", *((docs[:2], ()) if known == "trained" else ((), docs[:2])))
    rows = [
        {"text": f"{texts[5]} {texts[1]}", "ents": [[0, 4, "A"]]},
        *({"text": text, "ents": [[0, 4, "A"]]} for text in texts[2:]),
    ]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_docs(tmp_path / "gold.spacy", docs)
    for name, seen in (("gold.spacy", 2), ("gold.jsonl", 1)):
        report = calibrate(
            tmp_path / "model", tmp_path / name, tmp_path / "out", fit=["threshold"], precision=0.5, overwrite=True
        )
        assert (report.seen, report.thresholds.docs) == (seen, 7)
    # The guarantee decides whether the others are enough: 22 entities for 0.9, 4 for 0.5.
    for n, precision in ((0, 0.5), (3, 0.5), (7, 0.9)):
        write_docs(tmp_path / "gold.spacy", docs[: 2 + n])
        with pytest.raises(WeaknerError, match=rf"WK728.* 2 of the {2 + n} documents"):
            fit(tmp_path / "model", tmp_path / "gold.spacy", precision=precision)
    write_docs(tmp_path / "gold.spacy", docs[:6])
    assert fit(tmp_path / "model", tmp_path / "gold.spacy", precision=0.5).labels["A"].kept == 4
    # Short sentences are the same by chance.
    short = make_doc(NLP, "A0.9 x", [(0, 1, "A")])
    nlp.config["paths"]["train"] = nlp.config["paths"]["dev"] = None
    nlp.to_disk(tmp_path / "model2")
    remember(tmp_path / "model2", [short])
    write_docs(tmp_path / "gold.spacy", [short] * 50)
    assert fit(tmp_path / "model2", tmp_path / "gold.spacy", precision=0.5).docs == 50


def test_the_output_has_the_thresholds(tmp_path, model, gold):
    strict = {"fit": ["threshold"], "strict": True}
    report = calibrate(model, gold, tmp_path / "copy", precision=0.9, **strict).thresholds
    nlp = spacy.load(tmp_path / "copy")
    assert nlp.get_pipe("conformal_scorer").thresholds == {"A": report.labels["A"].threshold, "B": 1.0, "C": 1.0}
    assert [ent.text for ent in nlp("A0.98 A0.5 B0.99").ents] == ["A0.98"]
    assert len(spacy.load(model)("A0.98 A0.5 B0.99").ents) == 3
    with pytest.raises(WeaknerError, match="WK304"):
        calibrate(model, gold, model, fit=["threshold"], overwrite=True)
    # Former thresholds hide nothing from the new ones.
    again = calibrate(tmp_path / "copy", gold, tmp_path / "again", precision=0.9, **strict).thresholds
    assert again == report
    calibrate(model, gold, tmp_path / "copy", fit=["threshold"], precision=0.1)
    assert spacy.load(tmp_path / "copy").get_pipe("conformal_scorer").thresholds["B"] < 1.0
    # Only files of an earlier calibration are replaced.
    (tmp_path / "copy" / "own").mkdir()
    (tmp_path / "copy" / "own" / "thesis.txt").touch()
    with pytest.raises(WeaknerError, match="WK300"):
        calibrate(model, gold, tmp_path / "copy", fit=["threshold"], overwrite=True)
    assert (tmp_path / "copy" / "own" / "thesis.txt").exists()


@Language.component("conformal_list")
def list_candidates(doc: Doc) -> Doc:
    """Writes what `Scorer` would find to a span group."""
    found = [(token.i, token.i + 1, "A", float(token.text[1:])) for token in doc if token.text[0] == "A"]
    weak.set_group(doc, "pred:list", [entity[:3] for entity in found], [entity[3] for entity in found])
    return doc


def test_the_combiner_takes_thresholds(tmp_path):
    rng = numpy.random.default_rng(0)

    def draw(n):
        scores = [(score, rng.random() < score) for score in rng.random(n)]
        return [make_doc(NLP, f"A{score:.3f} o", [(0, 1, "A")] if right else []) for score, right in scores]

    nlp = spacy.blank("xx")
    nlp.add_pipe("conformal_list")
    nlp.add_pipe("ent_combiner").fit([list_candidates(doc) for doc in draw(100)])
    nlp.to_disk(tmp_path / "model")
    write_docs(tmp_path / "gold.spacy", draw(300))
    args = (tmp_path / "model", tmp_path / "gold.spacy", tmp_path / "copy")
    report = calibrate(*args, fit=["threshold"], precision=0.75).thresholds
    copy, found = spacy.load(tmp_path / "copy"), report.labels["A"]
    assert copy.get_pipe("ent_combiner").thresholds == {"A": found.threshold}
    # What is kept of the gold is what was counted.
    docs = [bare_copy(doc, copy.vocab) for doc in read_docs(tmp_path / "gold.spacy", NLP.vocab)]
    kept = [ent for doc in copy.pipe(docs) for ent in doc.ents]
    assert len(kept) == found.kept < found.entities
    assert min(ent._.weakner_score for ent in kept) >= found.threshold


def test_the_combiner_reads_the_sources_of_the_gold(tmp_path, fit):
    nlp = spacy.blank("en")
    nlp.add_pipe("ent_combiner").fit(borders(60))
    nlp.to_disk(tmp_path / "model")
    write_docs(tmp_path / "gold.spacy", borders(100, seed=1))
    assert fit(tmp_path / "model", tmp_path / "gold.spacy", precision=0.75).labels["D"].kept == 100


def test_a_head_takes_thresholds(tmp_path):
    """And each of the fits gets half of the documents."""
    nlp = crf_pipeline(scores=True)
    train(nlp, make_examples(nlp), steps=60)
    nlp.to_disk(tmp_path / "model")
    docs = [make_doc(NLP, f"{text} {i}", entities) for i in range(6) for text, entities in SENTENCES]
    write_docs(tmp_path / "gold.spacy", docs)
    fits = ["threshold", "temperature", "bias"]
    args = (tmp_path / "model", tmp_path / "gold.spacy", tmp_path / "out")
    report = calibrate(*args, fit=fits, precision=0.5, min_entities=0)
    assert report.docs == report.thresholds.docs == len(docs) / 2
    loaded = spacy.load(tmp_path / "out")
    head = loaded.get_pipe("crf_ner")
    assert (head.bias, head.temperature) == pytest.approx((report.bias.value, report.temperature.value))
    found = {label: threshold.threshold for label, threshold in report.thresholds.labels.items()}
    assert head.thresholds == pytest.approx({label: 1.0 if value is None else value for label, value in found.items()})
    assert all(ent._.weakner_score >= head.thresholds[ent.label_] for text, _ in SENTENCES for ent in loaded(text).ents)
    head.set_thresholds({})
    head.set_bias(0.0)
    text = SENTENCES[0][0]
    assert {ent.label_ for ent in loaded(text).ents} == {"PER", "LOC"}
    head.set_thresholds({"PER": 1.0})
    assert {ent.label_ for ent in loaded(text).ents} == {"LOC"}
    with pytest.raises(WeaknerError, match=r"WK003.*NOBODY"):
        head.set_thresholds({"NOBODY": 0.5})
    with pytest.raises(WeaknerError, match=r"WK005"):
        head.set_thresholds({"PER": 1.5})
    head.cfg["thresholds"] = {"PER": "x"}
    loaded.to_disk(tmp_path / "damaged")
    with pytest.raises(WeaknerError, match="WK800"):
        spacy.load(tmp_path / "damaged")


def test_one_document_is_too_little_for_two_fits(tmp_path, trained_path):
    write_docs(tmp_path / "gold.spacy", [make_doc(NLP, *SENTENCES[0])])
    with pytest.raises(WeaknerError, match="WK361"):
        calibrate(trained_path, tmp_path / "gold.spacy", tmp_path / "out", fit=["bias", "threshold"])


def test_the_command(tmp_path, model, gold):
    result = invoke("calibrate", model, gold, tmp_path / "out", "--fit", "threshold", "--precision", 0.9)
    assert result.exit_code == 0, result.output
    assert "certain to be this precise: B, D" in result.output and "too few entities" in result.output
    assert (tmp_path / "out" / "meta.json").exists()


def test_what_cannot_be_used(tmp_path, fit, model, gold):
    for settings, code in (
        ({"precision": 1.0}, "WK005"),
        ({"delta": 0.3}, "WK005"),
        ({"min_entities": -1}, "WK005"),
    ):
        with pytest.raises(WeaknerError, match=code):
            fit(model, gold, **settings)
    for names in ([], ["treshold"]):
        with pytest.raises(WeaknerError, match=r"WK\d+.*fit"):
            calibrate(model, gold, tmp_path / "out", fit=names)
    blank = spacy.blank("xx")
    blank.add_pipe("entity_ruler").add_patterns([{"label": "A", "pattern": "o"}])
    blank.to_disk(tmp_path / "blank")
    with pytest.raises(WeaknerError, match=r"WK341.*entity_ruler"):
        fit(tmp_path / "blank", gold)
    silent = spacy.blank("xx")
    silent.add_pipe("conformal_scorer")
    silent.add_pipe("entity_ruler").add_patterns([{"label": "A", "pattern": "o"}])
    silent.get_pipe("entity_ruler").overwrite = True
    write_docs(tmp_path / "o.spacy", [make_doc(NLP, "o o", [(0, 1, "A")])])
    silent.to_disk(tmp_path / "silent")
    with pytest.raises(WeaknerError, match="WK727"):
        fit(tmp_path / "silent", tmp_path / "o.spacy")
    write_docs(tmp_path / "none.spacy", [make_doc(NLP, "a", annotated=False)])
    with pytest.raises(WeaknerError, match="WK407"):
        fit(model, tmp_path / "none.spacy")
