"""The golden list of what this package registers: everything is looked up, made from a config, and called."""

import json
from importlib.metadata import distribution

import numpy
import pytest
import spacy
from spacy.util import registry
from spacy.vectors import Vectors
from thinc.api import ConfigValidationError

from spacy_weakner.abbreviations.component import Abbreviations
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.crf.kernel import CRFParameters
from spacy_weakner.crf_ner.component import CRFNer
from spacy_weakner.crf_ner.likelihood import CRFTarget
from spacy_weakner.ent_combiner.component import EntCombiner
from spacy_weakner.gazetteer_ruler.binding import BindingTerms
from spacy_weakner.gazetteer_ruler.component import GazetteerRuler
from spacy_weakner.gazetteer_ruler.name_sentencizer import NameSentencizer
from spacy_weakner.mrc_ner.boundaries import Relabeler
from spacy_weakner.mrc_ner.component import MRCNer
from spacy_weakner.mrc_ner.entity_types import EntityTyping
from spacy_weakner.sentence_category.component import SentenceCategory
from spacy_weakner.span_ner.component import SpanNer
from spacy_weakner.term_linker.component import TermLinker
from spacy_weakner.token_ner.component import TokenNer
from spacy_weakner.token_ner.objective import Objective
from spacy_weakner.ty import TrainingProgress

from .util import TOK2VEC, make_doc

GOLDEN = {
    "architectures": "AttentionEncoder BiLSTMEncoder CRFTagger ConditionedEncoder FrozenOnnx FrozenTok2Vec "
    "FrozenTransformer IndicatorFeatures OnnxEncoder PieceVectors StaticPieces StoredVectors MRCExtractor "
    "QueryContextEncoder SentenceCategory SourceFeatures SpanClassifier TokenClassifier TransformerEncoder",
    "augmenters": "CaseCopies",
    "callbacks": "Callbacks DropVectors LBFGS LoadWeights MatmulPrecision ReduceOnPlateau TrainingClock",
    "losses": "CRFNegativeLogLikelihood CategoricalCrossentropy GeneralizedCrossEntropy KLDivergence MeanAbsoluteError "
    "MeanSquaredError NoiseAwareCRF PartialCRF SoftLabelCRF TokenwiseLoss",
    "misc": "AllNegatives FineTyping HardLabels NoiseRobustLearning SelfPicking SelfTraining SoftLabels "
    "UniformNegativeSampler WeightedNegativeSampler",
    "readers": "Corpus JsonlCorpus Queries StrongWeakCorpus TermList",
    "scorers": "category_scorer",
    "tokenizers": "WordTokenizer",
}
COMPONENTS = {
    "abbreviations": Abbreviations,
    "binding_terms": BindingTerms,
    "crf_ner": CRFNer,
    "ent_combiner": EntCombiner,
    "gazetteer_ruler": GazetteerRuler,
    "mrc_ner": MRCNer,
    "name_sentencizer": NameSentencizer,
    "sentence_category": SentenceCategory,
    "span_ner": SpanNer,
    "term_linker": TermLinker,
    "token_ner": TokenNer,
}
NLP = spacy.blank("xx")


def make(registered_as, name, /, **arguments):
    return registry.resolve({"made": {f"@{registered_as}": name, **arguments}})["made"]


def test_golden_list():
    names = {(kind, f"spacy_weakner.{name}.v1") for kind, names in GOLDEN.items() for name in names.split()}
    names |= {("factories", name) for name in COMPONENTS} | {("cli", "weakner")}
    entries = [entry for entry in distribution("spacy_weakner").entry_points if entry.group != "console_scripts"]
    assert {(entry.group.partition("_")[2], entry.name) for entry in entries} == names
    for entry in entries:
        assert entry.group.startswith("thinc_" if entry.group.endswith("losses") else "spacy_")
        assert callable(entry.load()), entry.name
        if "." in entry.name:
            assert callable(registry.get(entry.group.partition("_")[2], entry.name)), entry.name


# Most names are those of the classes themselves: configs see the signature of `__init__`


@pytest.mark.parametrize(
    "kind, name, settings, message",
    [
        ("losses", "PartialCRF", {"negative_rate": "much"}, "made -> negative_rate.*'much' is not <class 'float'>"),
        ("losses", "PartialCRF", {"rate": 0.5}, "unexpected argument: 'rate'"),
        ("losses", "TokenwiseLoss", {}, "missing required argument: 'loss'"),
        ("misc", "FineTyping", {"_clusters": None}, "unexpected argument: '_clusters'"),
        ("misc", "SelfTraining", {"_counts": {}}, "unexpected argument: '_counts'"),
        ("misc", "SelfPicking", {"max_width": "wide"}, "made -> max_width"),
        ("callbacks", "TrainingClock", {"total_steps": "many"}, "made -> total_steps"),
        ("callbacks", "LoadWeights", {"path": "a", "parts": []}, "unexpected argument: 'parts'"),
        ("readers", "JsonlCorpus", {"path": "a", "limit": "few"}, "made -> limit.*'few' is not <class 'int'>"),
    ],
)
def test_settings_that_configs_refuse(kind, name, settings, message):
    with pytest.raises(ConfigValidationError, match=message):
        make(kind, f"spacy_weakner.{name}.v1", **settings)


def test_configs_are_filled_with_the_defaults():
    block = {"@misc": "spacy_weakner.FineTyping.v1"}
    filled = registry.fill({"made": block})["made"]
    assert filled == {**block, "n_types": 10, "gamma": 0.9, "realign": True, "max_entities": 50_000, "seed": 0}


# Each made with real arguments and called once


def test_source_votes():
    block = {"@architectures": "spacy_weakner.SourceFeatures.v1", "sources": ["terms"], "strength": 2.0, "dropout": 0.5}
    model = make("architectures", "spacy_weakner.CRFTagger.v1", tok2vec=TOK2VEC, source_features=block)
    settings = model.get_ref("source_features").attrs["settings"]
    assert (settings.sources, settings.strength, settings.dropout) == (["terms"], 2.0, 0.5)


def test_onnx_encoder():
    pytest.importorskip("onnxruntime")
    settings = {"pooling": "first", "max_length": 30, "stride": 5}
    model = make("architectures", "spacy_weakner.OnnxEncoder.v1", width=16, **settings)
    assert model.get_dim("nO") == 16 and model.to_bytes()


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("CRFNegativeLogLikelihood", {}),
        ("PartialCRF", {}),
        ("SoftLabelCRF", {}),
        ("SoftLabelCRF", {"negative_rate": 0.5}),
        ("NoiseAwareCRF", {}),
        ("CRFNegativeLogLikelihood", {"weak_weight": 0.5}),
        ("PartialCRF", {"negative_rate": 0.5, "weak_weight": 0.5}),
        ("NoiseAwareCRF", {"level": "token", "strong_weight": 0.9}),
    ],
)
def test_losses(name, arguments):
    loss = make("losses", f"spacy_weakner.{name}.v1", **arguments)
    parameters = CRFParameters(numpy.zeros(3), numpy.zeros((3, 3)), numpy.zeros(3))
    result = loss(parameters, [numpy.zeros((2, 3), dtype="float32")], [CRFTarget(numpy.asarray([0, 1]))])
    assert result.loss >= 2 * numpy.log(3) - 1e-9
    assert {key: getattr(loss, key) for key in arguments} == arguments


@pytest.mark.parametrize(
    "name, arguments, expected",
    [
        ("CategoricalCrossentropy", {}, numpy.log(2)),
        ("GeneralizedCrossEntropy", {}, 0.549183),
        ("GeneralizedCrossEntropy", {"q": 1.0}, 0.5),
        ("KLDivergence", {}, numpy.log(2)),
        ("MeanAbsoluteError", {}, 0.5),
        ("MeanSquaredError", {}, 0.5),
    ],
)
def test_losses_on_probabilities(name, arguments, expected):
    block = {"@losses": f"spacy_weakner.{name}.v1", **arguments}
    loss = registry.resolve({"it": block})["it"]
    values, _ = loss(numpy.log([[0.5, 0.5]]), numpy.asarray([[1.0, 0.0]]))
    assert values.tolist() == pytest.approx([expected], abs=1e-6)
    tokenwise = make("losses", "spacy_weakner.TokenwiseLoss.v1", loss=block, weak_weight=0.5)
    assert (tokenwise.loss, tokenwise.weak_weight) == (loss, 0.5)


ROBUST = {"drop_outside": 0.1, "threshold": 0.2, "minority": 0.3, "seed": 4}


@pytest.mark.parametrize(
    "name, kind, arguments",
    [
        ("HardLabels", Objective, {"loss": {"@losses": "spacy_weakner.MeanAbsoluteError.v1"}}),
        ("SoftLabels", Objective, {}),
        ("NoiseRobustLearning", Objective, {"loss": {"@losses": "spacy_weakner.GeneralizedCrossEntropy.v1"}, **ROBUST}),
        ("SelfTraining", Objective, {"threshold": 0.1, "include_outside": True}),
        ("SelfPicking", Relabeler, {"threshold": 0.2, "union": True, "max_width": 3}),
        ("FineTyping", EntityTyping, {"n_types": 3, "gamma": 0.5, "realign": False, "max_entities": 100, "seed": 4}),
    ],
)
def test_objectives_and_stages_of_cofee(name, kind, arguments):
    made = make("misc", f"spacy_weakner.{name}.v1", **arguments)
    settings = {key: value for key, value in arguments.items() if key != "loss"}
    assert isinstance(made, kind) and {key: getattr(made, key) for key in settings} == settings


WEIGHTED = {"ratio": 1.0, "exponent": 4.0, "n_epochs": 10.0, "include_outside": True, "exclude": 0.25}


@pytest.mark.parametrize(
    "name, arguments, size",
    [
        ("AllNegatives", {}, 15),
        ("UniformNegativeSampler", {}, 2),
        ("UniformNegativeSampler", {"ratio": 0.7, "exclude": 0.5}, 4),
        ("WeightedNegativeSampler", {}, 2),
        ("WeightedNegativeSampler", WEIGHTED, 5),
    ],
)
def test_samplers(name, arguments, size):
    sampler = make("misc", f"spacy_weakner.{name}.v1", **arguments)
    drawn = sampler(15, 5, numpy.log(numpy.full((15, 2), 0.5)), TrainingProgress(0, 0, 0.5))
    assert len({*drawn.tolist()}) == size
    assert {key: getattr(sampler, key) for key in arguments} == arguments


def test_readers(tmp_path):
    write_docs(tmp_path / "a.spacy", [make_doc(NLP, "a b"), make_doc(NLP, "c")])
    (tmp_path / "a.jsonl").write_text(json.dumps({"tokens": ["a"], "ents": []}) + "\n")
    reader = make("readers", "spacy_weakner.Corpus.v1", path=str(tmp_path / "a.spacy"), limit=1, max_length=5)
    assert [example.reference.text for example in reader(NLP)] == ["a b"]
    block = {"@readers": "spacy_weakner.JsonlCorpus.v1", "path": str(tmp_path / "a.jsonl"), "limit": 5}
    assert len(list(registry.resolve({"it": block})["it"](NLP))) == 1
    name = "spacy_weakner.StrongWeakCorpus.v1"
    assert len(list(make("readers", name, strong=block, weak=block)(NLP))) == 2
    assert list(make("readers", name, strong=block, weak=block, strong_share=0.5, seed=3)(NLP))
    assert make("readers", "spacy_weakner.Queries.v1", queries={"PER": "people"}) == {"PER": "people"}
    # The clock reads one.
    nlp = spacy.blank("xx")
    recorder = nlp.add_pipe("clock_recorder")
    clock = "spacy_weakner.TrainingClock.v1"
    make("callbacks", clock, total_steps=4, interval=1, corpus=block)(nlp, {"step": 1, "epoch": 0})
    make("callbacks", clock, total_epochs=4)(nlp, {"step": 1, "epoch": 2})
    assert [tick.progress for tick in recorder.ticks] == [0.25, 0.5]
    assert len(recorder.renewals) == 1


def test_reduce_on_plateau():
    settings = {"score": "cats_score", "factor": 0.25, "patience": 1, "min_rate": 0.01}
    plateau = make("callbacks", "spacy_weakner.ReduceOnPlateau.v1", **settings)
    assert {key: getattr(plateau, key) for key in settings} == settings
    plateau(spacy.blank("xx"), {"step": 0, "epoch": 0})


def test_drop_vectors():
    callback = make("callbacks", "spacy_weakner.DropVectors.v1")
    for reads in (True, False):
        nlp = spacy.blank("xx")
        nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=numpy.ones((1, 2), dtype="float32"), keys=["a"])
        embed = {"@architectures": "spacy.MultiHashEmbed.v2", "width": 8, "attrs": ["ORTH"], "rows": [10]}
        encode = {"@architectures": "spacy.MaxoutWindowEncoder.v2", "width": 8, "depth": 1, "window_size": 1}
        tok2vec = {"embed": {**embed, "include_static_vectors": reads}, "encode": {**encode, "maxout_pieces": 2}}
        nlp.add_pipe("tok2vec", config={"model": {"@architectures": "spacy.Tok2Vec.v2", **tok2vec}})
        assert callback(nlp) is nlp and nlp.vocab.has_vector("a") is reads
