"""The stages of CoFEE through the command line: links, picking, what is picked, types, gold."""

from pathlib import Path

import pytest
import spacy

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.relabel.pick import pick

from ..test_cli_train import spacy_cli
from ..util import SENTENCES, make_doc, weights

pytestmark = pytest.mark.slow

CONFIGS = Path(__file__).parent.parent.parent / "configs"
NLP = spacy.blank("xx")
QUERIES = '{"PER": "Which people?", "LOC": "Which places?"}'


def train(folder, stage, **settings):
    """Train a stage for a few updates; its last pipeline."""
    values = {
        "nlp.lang": "xx",
        "training.max_steps": 8,
        "training.eval_frequency": 4,
        "components.mrc_ner.model.encoder.tok2vec.width": 32,
        "components.mrc_ner.model.encoder.tok2vec.embed_size": 200,
        "components.mrc_ner.model.encoder.tok2vec.depth": 1,
        **settings,
    }
    options = [part for key, value in values.items() for part in (f"--{key}", value)]
    spacy_cli("train", CONFIGS / f"cofee.{stage}.cfg", "--output", folder / stage, *options, cwd=folder)
    return folder / stage / "model-last"


@pytest.mark.slow
def test_one_after_the_other(tmp_path):
    (tmp_path / "q.json").write_text(QUERIES)
    links = [make_doc(NLP, text, [(start, end, "Entity") for start, end, _ in gold]) for text, gold in SENTENCES]
    terms = [make_doc(NLP, text, gold[:1]) for text, gold in SENTENCES]
    for doc in (*links, *terms):
        weak.set_weak(doc)
    gold = [make_doc(NLP, text, own) for text, own in SENTENCES]
    for name, docs in (("links", links), ("terms", terms), ("gold", gold)):
        write_docs(tmp_path / f"{name}.spacy", docs * 4)
    with_queries = {"paths.queries": tmp_path / "q.json", "paths.dev": tmp_path / "gold.spacy"}
    spans = train(tmp_path, "spans", **{"paths.train": tmp_path / "links.spacy"})
    every_other = {**with_queries, "training.before_update.interval": 2}
    picking = train(
        tmp_path, "picking", **every_other, **{"paths.train": tmp_path / "terms.spacy", "paths.initial": spans}
    )
    # Every token begins and ends an entity for sure enough.
    report = pick(tmp_path / "terms.spacy", tmp_path / "picked.spacy", picking, threshold=0.0)
    assert report.docs == 4 * len(SENTENCES) and sum(report.picked.values()) > 0
    assert all(weak.is_weak(doc) for doc in read_docs(tmp_path / "picked.spacy", NLP.vocab))
    typing = train(
        tmp_path,
        "typing",
        **every_other,
        **{"paths.train": tmp_path / "picked.spacy", "paths.initial": picking, "components.mrc_ner.typing.n_types": 2},
    )
    unchanged = {"training.optimizer.learn_rate": 0.0, "components.mrc_ner.head_learn_rate": 0.0}
    final = train(
        tmp_path,
        "finetune",
        **with_queries,
        **unchanged,
        **{"paths.train": tmp_path / "gold.spacy", "paths.initial": typing},
    )
    for part in ("tok2vec", "head"):
        before, after = (weights(spacy.load(path).get_pipe("mrc_ner").model.get_ref(part)) for path in (typing, final))
        assert all((one == other).all() for one, other in zip(before, after, strict=True)), "it begins where types end"
