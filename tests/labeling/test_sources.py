import json

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.label import label
from spacy_weakner.labeling.sources import read_sources

from ..cli.util import invoke

NLP = spacy.blank("xx")
TEXTS = ["Anna took ASA in Paris", "asa and ASPIRIN in paris", "mit MIT", "nothing"]
TERMS = [("DRUG", "aspirin"), ("DRUG", "ASA"), ("ORG", "MIT"), ("PREP", "MIT"), ("PREP", "in"), ("CITY", "Paris")]


@pytest.fixture
def folder(tmp_path):
    docs = [Doc(NLP.vocab, words=text.split()) for text in TEXTS]
    for doc in docs:
        doc.set_ents([Span(doc, 0, 1, label="GOLD")], default="outside")
        weak.set_group(doc, "weak:s", [(0, 1, "OLD")])
    write_docs(tmp_path / "in.spacy", docs)
    write_lines(tmp_path / "terms.jsonl", [{"label": a, "term": b} for a, b in TERMS])
    (tmp_path / "plain.txt").write_text("Paris\n")
    patterns = [{"label": "TOOK", "pattern": [{"LOWER": "took"}, {"IS_UPPER": True}]}, {"label": "P", "pattern": "MIT"}]
    write_lines(tmp_path / "patterns.jsonl", patterns)
    write_lines(tmp_path / "llm.jsonl", [{"text": TEXTS[0], "ents": [[0, 4, "PER", 0.9], [17, 22, "LOC", 0.2]]}])
    return tmp_path


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def save_pipeline(path, component, **config):
    """A pipeline that gives fixed answers, with scores."""
    nlp = spacy.blank("xx")
    nlp.add_pipe(component, config=config)
    nlp.to_disk(path)
    return str(path)


@spacy.Language.component("scored_ents")
def scored_ents(doc):
    doc.set_ents([Span(doc, 0, 1, label="PER"), *([Span(doc, 1, 2, label="X")] if len(doc) > 1 else [])])
    doc.ents[0]._.weakner_score = 0.25
    return doc


@spacy.Language.component("scored_spans")
def scored_spans(doc):
    weak.set_group(doc, "sc", [(0, len(doc), "ALL"), (0, 1, "PER")], [0.75, None])
    return doc


def run(folder, **settings):
    """Label with one source "s"; gives its spans and the report."""
    out = folder / f"out{len(list(folder.iterdir()))}.spacy"
    settings = {key: str(folder / v) if key in ("terms", "patterns", "file") else v for key, v in settings.items()}
    report = label(folder / "in.spacy", out, sources={"s": settings}, lang="xx")
    docs = list(read_docs(out, NLP.vocab))
    return [sorted(f"{ent[2]}:{doc[ent[0] : ent[1]].text}" for ent in entities(doc)) for doc in docs], report, docs


def entities(doc):
    return weak.group_entities(doc, "weak:s")


# What the keys do


def test_terms(folder):
    found, report, docs = run(folder, terms="terms.jsonl")
    assert found == [
        ["CITY:Paris", "DRUG:ASA", "PREP:in"],
        ["CITY:paris", "DRUG:ASPIRIN", "PREP:in"],
        ["ORG:MIT", "PREP:MIT"],
        [],
    ]
    assert report.sources[0].name == "s"
    assert report.sources[0].spans == {"CITY": 2, "DRUG": 2, "ORG": 1, "PREP": 3}
    assert weak.get_reliability(docs[0], "s") is None
    assert not weak.is_complete(docs[0], "s")


@pytest.mark.parametrize(
    "settings, number, expected",
    [
        ({"attr": "ORTH"}, 1, ["PREP:in"]),
        ({"acronym_length": 0}, 1, ["CITY:paris", "DRUG:ASPIRIN", "DRUG:asa", "PREP:in"]),
        ({"min_length": 3}, 0, ["CITY:Paris", "DRUG:ASA"]),
        ({"stop": ["In", "asa"]}, 0, ["CITY:Paris"]),
        ({"ambiguity": "first"}, 2, ["ORG:MIT"]),
        ({"ambiguity": "drop"}, 2, []),
        ({"labels": {"CITY": "LOC", "DRUG": "DRUG"}}, 0, ["DRUG:ASA", "LOC:Paris"]),
        ({"labels": {"ORG": "X", "PREP": "X"}}, 2, ["X:MIT"]),
        ({"terms": "plain.txt", "term_label": "PLACE"}, 0, ["PLACE:Paris"]),
    ],
)
def test_settings_of_terms(folder, settings, number, expected):
    assert run(folder, **{"terms": "terms.jsonl", **settings})[0][number] == expected


def test_several_lists_of_one_source(folder):
    (folder / "reviewed.csv").write_text("label,term,accept\nORG,MIT,no\nPER,Anna,yes\nPER,and,\n")
    declared = {"s": {"terms": [str(folder / "terms.jsonl"), str(folder / "reviewed.csv")]}}
    label(folder / "in.spacy", folder / "out.spacy", sources=declared, lang="xx")
    found = [weak.group_entities(doc, "weak:s") for doc in read_docs(folder / "out.spacy", NLP.vocab)]
    assert {(0, 1, "PER"), (2, 3, "DRUG"), (3, 4, "PREP"), (4, 5, "CITY")} == {*found[0]}
    assert {*found[2]} == {(1, 2, "PREP")}
    (folder / "reviewed.csv").write_text("label,term,accept\nORG,MIT,yes\n")
    label(folder / "in.spacy", folder / "out.spacy", sources=declared, lang="xx")  # made again
    third = list(read_docs(folder / "out.spacy", NLP.vocab))[2]
    assert {*weak.group_entities(third, "weak:s")} == {(1, 2, "PREP"), (1, 2, "ORG")}


@pytest.mark.parametrize("settings", [{"terms": "terms.jsonl"}, {"corpus": True}, {"file": "llm.jsonl"}])
def test_reliability_and_completeness(folder, settings):
    _, _, docs = run(folder, **settings, reliability=0.5)
    assert weak.get_reliability(docs[0], "s") == 0.5
    assert weak.is_complete(docs[0], "s") == ("file" in settings)
    for complete in (True, False):
        _, _, docs = run(folder, **settings, complete=complete)
        assert weak.is_complete(docs[0], "s") == complete


def test_patterns_of_rulers_see_no_gold(folder):
    found, _, docs = run(folder, patterns="patterns.jsonl")
    assert found == [["TOOK:took ASA"], [], ["P:MIT"], []]
    assert weak.doc_entities(docs[0]) == [(0, 1, "GOLD")]
    assert set(docs[0].spans) == {"weak:s"}
    assert run(folder, patterns="patterns.jsonl", attr="LOWER")[0][2] == ["P:MIT", "P:mit"]
    write_lines(folder / "gold.jsonl", [{"label": "LEAK", "pattern": [{"ENT_TYPE": "GOLD"}]}])
    assert run(folder, patterns="gold.jsonl")[0] == [[], [], [], []]


@pytest.mark.parametrize("id_", ["x", "", 5, None])
@pytest.mark.parametrize("pattern", ["MIT", [{"LOWER": "mit"}]])
def test_ids_of_patterns(folder, id_, pattern):
    write_lines(folder / "ids.jsonl", [{"label": "P", "id": id_, "pattern": pattern}])
    assert "P:MIT" in run(folder, patterns="ids.jsonl")[0][2]


def test_scores_of_pipelines(folder):
    pipeline = save_pipeline(folder / "ents", "scored_ents")
    _, _, docs = run(folder, pipeline=pipeline)
    assert entities(docs[0]) == [(0, 1, "PER"), (1, 2, "X")]
    assert weak.group_scores(docs[0], "weak:s") == [0.25, None]
    assert weak.is_complete(docs[0], "s")
    _, report, docs = run(folder, pipeline=pipeline, min_score=0.5, complete=False)
    assert entities(docs[0]) == [(1, 2, "X")]
    assert "scores" not in docs[0].spans["weak:s"].attrs
    assert report.sources[0].low_scores == 4
    assert not weak.is_complete(docs[0], "s")


def test_span_groups_of_pipelines(folder):
    pipeline = save_pipeline(folder / "spans", "scored_spans")
    _, _, docs = run(folder, pipeline=pipeline, spans_key="sc", labels={"ALL": "A", "PER": "P"})
    assert entities(docs[0]) == [(0, 1, "P"), (0, 5, "A")]
    assert weak.group_scores(docs[0], "weak:s") == [None, 0.75]


def test_misaligned_reaches_the_importer(folder):
    write_lines(folder / "cut.jsonl", [{"text": TEXTS[0], "ents": [[0, 6, "X"]]}])
    found, _, docs = run(folder, file="cut.jsonl")
    assert found[0] == [] and "weak:s" not in docs[1].spans  # not looked at, and the old group is gone
    assert run(folder, file="cut.jsonl", misaligned="expand")[0][0] == ["X:Anna took"]
    assert run(folder, file="cut.jsonl", misaligned="contract")[0][0] == ["X:Anna"]
    with pytest.raises(WeaknerError, match=r"WK103.*cut\.jsonl, line 1.*\[0, 6, \"X\"\]"):
        run(folder, file="cut.jsonl", misaligned="error")


def test_many_sources_in_one_pass(folder):
    pipeline = save_pipeline(folder / "ents", "scored_ents")
    (folder / "sub").mkdir()
    config = folder / "sub" / "sources.cfg"
    config.write_text(
        f"""
        # All kinds of sources.
        [vars]
        up = ".."

        [sources.drugs]
        # CSV/TSV/JSONL/txt
        terms = "../terms.jsonl"
        stop = ["in", "#1"]
        ambiguity = "drop"

        [sources.a model]
        pipeline = "{pipeline}"
        min_score = 0.1
        [sources.a model.labels]
        PER = "PERSON"

        [sources.rules]
        patterns = "${{vars.up}}/patterns.jsonl"
        complete = true
        [sources.llm]
        file = "../llm.jsonl"
        reliability = 0.25
        """.replace("        ", "")
    )
    report = label(folder / "in.spacy", folder / "out.spacy", sources=config, lang="xx")
    doc = next(read_docs(folder / "out.spacy", NLP.vocab))
    groups = {source: weak.group_entities(doc, f"weak:{source}") for source in weak.weak_sources(doc)}
    assert groups == {
        "s": [(0, 1, "OLD")],
        "drugs": [(2, 3, "DRUG"), (4, 5, "CITY")],
        "a model": [(0, 1, "PERSON")],
        "rules": [(1, 3, "TOOK")],
        "llm": [(0, 1, "PER"), (4, 5, "LOC")],
    }
    assert [source.name for source in report.sources] == ["drugs", "a model", "rules", "llm"]
    assert report.spans == {"CITY": 2, "DRUG": 2, "LOC": 1, "P": 1, "PER": 1, "PERSON": 4, "TOOK": 1}
    assert report.unmatched == 0
    assert weak.is_complete(doc, "rules") and weak.is_complete(doc, "a model")
    assert weak.get_reliability(doc, "llm") == 0.25


def test_changes_of_settings_and_contents_redo(folder):
    sources = {"s": {"terms": str(folder / "terms.jsonl")}, "l": {"file": str(folder / "llm.jsonl")}}

    def skipped():
        return label(folder / "in.spacy", folder / "out.spacy", sources=sources, lang="xx").skipped

    assert [skipped(), skipped()] == [0, 1]
    sources["s"]["reliability"] = 0.5
    assert [skipped(), skipped()] == [0, 1]
    with (folder / "llm.jsonl").open("a") as file_:
        file_.write("\n")
    assert [skipped(), skipped()] == [0, 1]
    (folder / "terms.jsonl").rename(folder / "moved.jsonl")
    sources["s"]["terms"] = folder / "moved.jsonl"
    assert skipped() == 1


# Errors


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "WK311.*declares no sources"),
        ("terms", r"WK307.*line\s+1"),
        ('[sources]\n[sources.s]\nterms = "t"\nterms = "f"', r"WK307.*line\s+4"),
        ('[source.s]\nterms = "t"', r"WK307"),
        ('[source]\nterms = "t"', r"WK307.*unknown section \[source\] \(did you mean 'sources'"),
        ('[sources.s]\nterms = "t"\n[sources.s]\nfile = "f"', r"WK307.*line\s+3.*'sources.s' already exists"),
        ('[sources.s]\nterms = "t"\nterms = "f"', r"WK307.*line\s+3.*option 'terms'"),
        ('[sources.s.labels]\nA = "B"\n[sources.s]\nterms = "t"', "WK307.*Change their order"),
        ('[sources.s]\nterms = "${vars.x}"', r"WK307.*vars\.x"),
        ('[sources]\nterms = "t"', r"WK308.*\[sources\.terms\]"),
        ('[sources.s]\nterm = "t"', r"WK308.*\[sources\.s\]: 'term' = \"t\".*did you mean 'terms'"),
        ("[sources.s]\nreliability = 0.5", "WK308.*'terms' = null.*exactly one of"),
        ('[sources.s]\nterms = "terms.jsonl"\nfile = "llm.jsonl"', "WK308.*'file'.*exactly one of"),
        ('[sources.s]\nterms = "term.jsonl"', r"WK308.*'terms'.*none at .*did you mean 'terms\.jsonl'"),
        ("[sources.s]\nterms = 3", "WK308.*'terms' = 3.*path in quotes"),
        ('[sources.s]\npipeline = "nowhere"', "WK308.*'pipeline'.*neither exists"),
        ('[sources.]\nterms = "terms.jsonl"', "WK308.*'source' = \"\".*a name"),
        ('[sources.s]\nterms = "terms.jsonl"\nreliabilty = 1', "WK308.*did you mean 'reliability'"),
        ('[sources.s]\nterms = "terms.jsonl"\n@readers = "x"', "WK308.*'@readers'"),
        ('[sources.s]\nterms = "terms.jsonl"\nspans_key = "x"', "WK308.*'spans_key'.*belongs to pipeline"),
        ('[sources.s]\nfile = "llm.jsonl"\nattr = "ORTH"', "WK308.*'attr'.*terms and patterns"),
        *(
            (f'[sources.s]\nterms = "terms.jsonl"\n{setting}', f"WK308.*'{setting.split()[0]}'")
            for setting in (
                "reliability = 0",
                "reliability = NaN",
                "complete = 1",
                "labels = {}",
                'labels = {"A": 1}',
                'attr = "LEMMA"',
                "acronym_length = 1.5",
                "min_length = 0",
                'stop = "all"',
                'ambiguity = "last"',
            )
        ),
        ('[sources.s]\nfile = "llm.jsonl"\nmisaligned = "keep"', "WK308.*'misaligned'.*drop, error"),
    ],
)
def test_errors_of_sources_files(folder, text, message):
    (folder / "sub").mkdir()
    (folder / "sources.cfg").write_text(text)
    with pytest.raises(WeaknerError, match=message) as error:
        read_sources(folder / "sources.cfg")
    assert "sources.cfg" in str(error.value)


def test_other_errors(folder):
    with pytest.raises(WeaknerError, match="WK100"):
        read_sources(folder / "none.cfg")
    with pytest.raises(WeaknerError, match="WK311"):
        read_sources({})
    for name in ("", " a", "a\tb", 3):
        with pytest.raises(WeaknerError, match=r"WK308.*'source'"):
            read_sources({name: {"terms": str(folder / "terms.jsonl")}})
    with pytest.raises(WeaknerError, match=r"WK308.*section"):
        read_sources({"s": "terms.jsonl"})
    sources = {"s": {"terms": str(folder / "terms.jsonl")}}
    for settings in ({"terms": "t"}, {"pipeline": "p"}):
        with pytest.raises(WeaknerError, match="WK303"):
            label(folder / "in.spacy", folder / "x", sources=sources, **settings)
    for setting, value in {"source": "s", "attr": "ORTH", "stop": ["a"], "reliability": 0.5}.items():
        with pytest.raises(WeaknerError, match=f"WK331.*'{setting}'"):
            label(folder / "in.spacy", folder / "x", sources=sources, **{setting: value})


@pytest.mark.parametrize(
    "row, message",
    [
        ("{", "column"),
        ("[]", "expected"),
        ('{"label": "", "pattern": "x"}', "expected"),
        ('{"label": "A"}', "the pattern must be"),
        ('{"label": "A", "pattern": []}', "the pattern must be"),
        ('{"label": "A", "pattern": [{"FOO": 1}]}', "FOO"),
        ('{"label": "A", "id": [], "pattern": "Bob"}', "id must be a string"),
        ('{"label": "A", "id": {"a": 1}, "pattern": "Bob"}', "id must be a string"),
        ('{"label": "A", "id": 1.5, "pattern": [{"LOWER": "bob"}]}', "id must be a string"),
        ('{"label": "A", "pattern": [{"POS": "NOUN"}]}', "E155.*span_ruler"),
        ('{"label": "A", "pattern": [{"LOWER": {"REGEX": "("}}]}', "unterminated"),
    ],
)
def test_errors_of_patterns(folder, row, message):
    (folder / "bad.jsonl").write_text(f'{{"label": "A", "pattern": "fine"}}\n{row}\n')
    with pytest.raises(WeaknerError, match=f"WK310.*bad.jsonl, line 2.*'s'.*{message}"):
        run(folder, patterns="bad.jsonl")
    (folder / "bad.jsonl").write_text("\n")
    with pytest.raises(WeaknerError, match=r"WK310.*no patterns"):
        run(folder, patterns="bad.jsonl")


# Labels that the corpus brings along


def test_labels_of_the_corpus(folder):
    docs = [Doc(NLP.vocab, words=["a", "b"]) for _ in range(3)]
    weak.set_source(docs[0], "own", [(0, 1, "X"), (0, 1, "Y"), (1, 2, "X")], [0.9, 0.9, 0.2])
    weak.set_source(docs[1], "own", [], reliability=0.4, complete=True, terms="LOWER")
    for doc in docs:
        weak.set_source(doc, "other", [(0, 2, "Z")])
    write_docs(folder / "own.spacy", docs)
    settings = {"corpus": True, "labels": {"X": "x"}, "min_score": 0.5}
    report = label(folder / "own.spacy", folder / "labeled.spacy", sources={"own": settings}, lang="xx")
    first, second, third = read_docs(folder / "labeled.spacy", NLP.vocab)
    assert [weak.weak_sources(doc) for doc in (first, second, third)] == [["other", "own"], ["other", "own"], ["other"]]
    assert weak.group_entities(first, "weak:own") == [(0, 1, "x")] and weak.group_scores(first, "weak:own") == [0.9]
    # What they said of themselves stays.
    assert weak.get_reliability(first, "own") is None and not weak.is_complete(first, "own")
    assert weak.get_reliability(second, "own") == 0.4 and weak.is_complete(second, "own")
    assert weak.terms_attr(second, "own") == "LOWER"
    (source,) = report.sources
    assert (source.docs_without_row, source.low_scores, dict(source.left_out)) == (1, 1, {"Y": 1})


def test_a_name_that_the_corpus_does_not_have_is_said(folder):
    (folder / "s.cfg").write_text("[sources.t]\ncorpus = true\n")
    paths = (folder / "in.spacy", folder / "out.spacy", "--sources", folder / "s.cfg")
    result = invoke("label", *paths, "--only-matched")
    assert result.exit_code == 0
    assert "named 't'; the corpus has labels of s" in " ".join((result.stdout + result.stderr).split())


@pytest.mark.parametrize("value", [False, "", "s", 1])
def test_labels_of_the_corpus_are_declared_by_true(value):
    with pytest.raises(WeaknerError, match=r"WK308.*expected true"):
        read_sources({"s": {"corpus": value}})
