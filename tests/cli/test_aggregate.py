import pytest
from typer.testing import CliRunner

from spacy_weakner.cli.app import app
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs

from ..aggregation.docs import NLP, make_doc


@pytest.fixture
def corpus(tmp_path):
    groups = {"terms": [(0, 2, "CITY")], "llm": [(0, 2, "CITY"), (3, 4, "CITY")], "model": [(0, 2, "CITY")]}
    docs = [make_doc(f"New York{i} is big", groups, [(0, 2, "CITY")], ["llm", "model"]) for i in range(20)]
    write_docs(tmp_path / "in.spacy", docs)
    return tmp_path


def invoke(corpus, *args):
    args = ("aggregate", corpus / "in.spacy", corpus / "out.spacy", *args)
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.mark.parametrize(
    "method, options, how",
    [
        ("label_model", [], "iterations on 20 documents"),
        ("weighted", ["--gold", "gold.spacy"], "the gold of 20 documents"),
    ],
)
def test_table_of_sources(corpus, monkeypatch, method, options, how):
    monkeypatch.chdir(corpus)
    write_docs(corpus / "gold.spacy", read_docs(corpus / "in.spacy", NLP.vocab))
    result = invoke(corpus, "--method", method, *options, "--soft")
    assert result.exit_code == 0, result.output
    assert how in " ".join(result.output.split())
    rows = [line.split() for line in result.output.splitlines()]
    assert {row[0] for row in rows if row[1:2] == ["CITY"]} == {"terms", "llm", "model"}
    assert all(weak.get_soft_labels(doc) is not None for doc in read_docs(corpus / "out.spacy", NLP.vocab))


def test_label_model_of_few_sources(corpus):
    few = (
        "needs at least three sources with independent errors to estimate which of them are reliable, but it has only 2"
    )

    def output(*args):
        result = invoke(corpus, "--method", *args)
        assert result.exit_code == 0, result.output
        return " ".join(result.output.split())

    assert few in output("label_model", "--source", "terms", "--source", "llm")
    assert few not in output("label_model")
    assert few not in output("majority", "--source", "terms", "--source", "llm")


def test_fitted_on_other_text(corpus):
    write_docs(corpus / "text.spacy", read_docs(corpus / "in.spacy", NLP.vocab))
    docs = list(read_docs(corpus / "in.spacy", NLP.vocab))
    for doc in docs:
        del doc.spans["weak:llm"]
        weak.set_source(doc, "terms", [(3, 4, "SIZE")])
    write_docs(corpus / "in.spacy", docs)
    args = ("--method", "label_model", "--fit-on", corpus / "text.spacy")
    result = invoke(corpus, *args)
    assert result.exit_code == 0, result.output
    (named,) = (line for line in result.output.splitlines() if "each source" in line)
    assert "terms 20" in named and "llm 0" in named
    assert "Sources without answers for this corpus: llm (0 of 20 documents)" in " ".join(result.output.split())
    # What was written is removed whole.
    args = ("--method", "label_model", "--fit-on", corpus / "text.spacy", "--if-answered")
    result = invoke(corpus, *args)
    assert result.exit_code == 0 and "not kept" in result.output and not list(corpus.glob("out.*"))


def test_a_corpus_without_any_answers(corpus):
    """Labels that the text alone brings along, while test has none."""
    assert invoke(corpus).exit_code == 0
    docs = list(read_docs(corpus / "in.spacy", NLP.vocab))
    for doc in docs:
        doc.spans.clear()
    write_docs(corpus / "in.spacy", docs)
    assert "WK301" in invoke(corpus).stderr and (corpus / "out.spacy").exists()
    for _ in range(2):
        result = invoke(corpus, "--if-answered")
        assert result.exit_code == 0 and "not kept" in result.output and not list(corpus.glob("out.*"))


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("output, message", [("in.spacy", "WK304"), ("other", "WK300"), ("gold.spacy", "WK300")])
def test_only_its_own_files_are_removed(corpus, output, message, labels):
    bare = [make_doc("New York is big", {"llm": []}) for _ in range(20)]
    write_docs(corpus / "text.spacy", read_docs(corpus / "in.spacy", NLP.vocab))
    (corpus / "other").mkdir()
    for doc in bare:
        if not labels:
            doc.spans.clear()
    for name in ("in.spacy", "gold.spacy", "other/precious.spacy"):
        write_docs(corpus / name, bare)
    before = {path: path.read_bytes() for path in corpus.rglob("*.spacy")}
    args = ("aggregate", corpus / "in.spacy", corpus / output, "--if-answered", "--method", "label_model")
    result = CliRunner().invoke(app, [str(arg) for arg in (*args, "--fit-on", corpus / "text.spacy")])
    assert message in result.stderr
    assert {path: path.read_bytes() for path in corpus.rglob("*.spacy")} == before


def test_an_output_folder_is_emptied(corpus):
    args = ["aggregate", str(corpus / "in.spacy"), str(corpus / "out"), "--if-answered"]
    assert CliRunner().invoke(app, args).exit_code == 0 and [*read_docs(corpus / "out", NLP.vocab)]
    (corpus / "out" / ".unfinished").touch()
    write_docs(corpus / "in.spacy", [make_doc("New York is big", {})])
    assert CliRunner().invoke(app, args).exit_code == 0 and not [*(corpus / "out").iterdir()]
