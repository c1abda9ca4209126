"""Joint labeling: entities from few labeled titles, and categories of many.

    python benchmarks/joint.py --data DIR [--dataset oa-mine|atis] [--gold 200] [--seeds 0,1,2]
        [--methods ner_only/none,joint/none,pretrained/learned,...] [--steps 700] [--pretrain-steps 400]
        [--vectors FOLDER | --encoder FOLDER|NAME]

`--data` holds a folder per data set with train, dev and test as JSONL (perhaps gzipped) that have entities and
categories. `--gold` train sentences keep their entities, drawn with the seed; the categories of all train sentences are
what encoders are pre-trained on. Labels with fewer than `--min-mentions` entities in train are left out everywhere.
A method is a training and an attention:

    ner_only/A    entities alone               A: none, soft, scaled, unscaled, learned, learned behind a gate, or
                                               annotated: learned, with the biases and the dropout of the configs
    joint/A       entities and categories of the same sentences
    pretrained/A  the same, from an encoder that has learned the categories of all train sentences
    predicted/A   the same, but only the sentences with entities have categories; those of the others are what a model
                  of these says

and these: `ner_only+dict` also trains on the other train sentences, labeled with a dictionary of the gold;
`wo_residual` and `wo_locked_dropout` are `pretrained/learned` without these parts of the attention.
The encoder is a bidirectional LSTM; `--vectors` is a folder of word vectors for it (`spacy init vectors`).
`--encoder` puts a Transformer in its place, for the methods without attention.
Rows go to docs/evidence/joint.jsonl as runs end, and docs/evidence/joint.md is written anew at the end.
"""

import json
import math
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from common import Cost, count, sample
from experiment import TOKENIZER, Experiment, add_encoder, load_weights, main, options, parse
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.configs import make_config
from spacy_weakner.corpus.docbin import bare_copy, read_docs, write_docs
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.labeling.label import label
from spacy_weakner.pipelines import load_pipeline

GATED, ANNOTATED = "gated", "annotated"
ATTENTIONS = ("none", "soft", "scaled", "unscaled", "learned", GATED, ANNOTATED)
ENCODER = "components.tok2vec.model"
CATEGORY = "sentence_category"
# Word vectors that stay as they are, as in the paper, and beside them only what tells "Black" from "black".
FIXED = {"attrs": ["SHAPE"], "rows": [500], "include_static_vectors": True}
BATCH = 32  # that of the configs


class Method(NamedTuple):
    """How a row comes about.

    joint (bool): Whether the last training has categories beside the entities.
    attention (str): "none" or a kind.
    pretrained (bool): Whether there is a first stage of categories alone.
    predicted (bool): Whether its categories are those of a model, but for the gold.
    dictionary (bool): Whether to train on dictionary labels too.
    settings (Dict[str, Any]): Of the last training.
    """

    joint: bool
    attention: str = "none"
    pretrained: bool = False
    predicted: bool = False
    dictionary: bool = False
    settings: Dict[str, Any] = {}


METHODS = {
    "ner_only+dict": Method(False, dictionary=True),
    **{f"ner_only/{attention}": Method(False, attention) for attention in ATTENTIONS},
    **{f"joint/{attention}": Method(True, attention) for attention in ATTENTIONS},
    **{f"pretrained/{attention}": Method(True, attention, pretrained=True) for attention in ATTENTIONS},
    **{f"predicted/{attention}": Method(True, attention, pretrained=True, predicted=True) for attention in ATTENTIONS},
    "wo_residual": Method(True, "learned", pretrained=True, settings={f"{ENCODER}.residual": False}),
    "wo_locked_dropout": Method(True, "learned", pretrained=True, settings={f"{ENCODER}.dropout": 0.0}),
}


class Joint(Experiment):
    """Entities alone or with categories, from an encoder that is new or has learned categories."""

    benchmark = "joint"
    methods = tuple(METHODS)
    tables = ("dataset", "encoder", "strong")
    corpora_in = "{dataset}/gold{gold}-{min_mentions}"
    models_in = "{encoder}-{steps}-{pretrain_steps}"

    @property
    def preset(self) -> str:
        """RETURNS (str): "quick" with a part of the gold, "full" with all."""
        return "quick" if self.arguments.gold else "full"

    def sizes(self, name: str) -> Tuple[int, int]:
        """RETURNS (Tuple[int, int]): Number of gold and of weakly labeled sentences of a method."""
        return count(self.corpus("gold")), count(self.corpus("dictionary")) if METHODS[name].dictionary else 0

    def read(self, name: str) -> List[Doc]:
        """The sentences of a corpus."""
        return list(read_docs(self.corpus(name), Vocab()))

    def train(self, name: str) -> Tuple[Path, Cost]:
        """Train a method, and what it needs.

        name (str): The method.
        RETURNS (Tuple[Path, Cost]): The pipeline, and what all that it needs took.
        """
        method, before, first = METHODS[name], Cost(), None
        if method.predicted:
            first, before = self.pretrain_on_predicted()
        elif method.pretrained:
            first, before = self.pretrain("pretrain", self.corpus("all"))
        config, settings = self.transformer(method, first) if self.size == "transformer" else self.bilstm(method, first)
        corpus = self.corpus("gold-and-dictionary" if method.dictionary else "gold")
        settings = {**settings, **method.settings}
        model, cost = self.fit(config, name.replace("/", "-"), corpus, settings, size=self.encoder_size)
        return model, before + cost

    def pretrain_on_predicted(self) -> Tuple[Path, Cost]:
        """The first stage, with categories that a model of the gold's has predicted."""
        model, before = self.pretrain("categories", self.corpus("gold"))
        corpus = model.parent / "predicted.spacy"
        if not corpus.exists():
            nlp, gold, rest = load_pipeline(model), self.read("gold"), self.read("rest")
            right = 0
            for doc, said in zip(rest, nlp.pipe(bare_copy(doc, nlp.vocab) for doc in rest), strict=True):
                best = max(said.cats, key=lambda name: said.cats[name])
                right += doc.cats.get(best) == 1.0
                doc.cats = {best: 1.0}
            print(f"    categories predicted: {100 * right / len(rest):.1f} % right", flush=True)
            for doc in gold:
                doc.set_ents([], default="missing")
            write_docs(corpus, [*gold, *rest])
        first, cost = self.pretrain("pretrain-predicted", corpus)
        return first, before + cost

    def pretrain(self, name: str, corpus: Path) -> Tuple[Path, Cost]:
        """The first stage, on categories alone."""
        epoch = math.ceil(count(corpus) / BATCH)
        settings = {"training.max_steps": self.arguments.pretrain_steps, "training.eval_frequency": epoch}
        settings.update(self.categories)
        config = "joint.pretrain"
        if self.size == "transformer":
            config = "joint.joint"
            settings.update({"nlp.pipeline": ["tok2vec", CATEGORY], "training.patience": 0})
            settings["training.score_weights.cats_score"] = 1.0
        elif self.arguments.vectors:
            settings.update({f"{ENCODER}.embed.{key}": value for key, value in FIXED.items()})
        return self.fit(config, name, corpus, settings, "model-last", self.encoder_size)

    def bilstm(self, method: Method, first: Optional[Path]) -> Tuple[str, Dict[str, Any]]:
        """Config and settings of the last training."""
        config = "joint.joint" if method.joint else "joint.ner"
        # The plateau counts in epochs of the gold, and comes to its end within 30 of them.
        epoch = math.ceil(count(self.corpus("gold")) / BATCH)
        settings: Dict[str, Any] = {"training.eval_frequency": epoch, "training.patience": 30 * epoch}
        settings.update({"training.max_epochs": 0, **(self.categories if method.joint else {})})
        embed = FIXED if self.arguments.vectors else {}
        if method.attention == "none":
            settings.update(without_attention(config, embed))
        else:
            settings[f"{ENCODER}.kind"] = "learned" if method.attention in (GATED, ANNOTATED) else method.attention
            settings[f"{ENCODER}.gate"] = method.attention == GATED
            if method.attention != ANNOTATED:
                settings.update({f"{ENCODER}.bias": False, f"{ENCODER}.weight_dropout": 0.0})
            settings.update({f"{ENCODER}.tok2vec.embed.{key}": value for key, value in embed.items()})
        if first is not None:
            settings["paths.initial"] = str(first)
        elif method.joint:
            settings["initialize.after_init"] = None
        return config, settings

    def transformer(self, method: Method, first: Optional[Path]) -> Tuple[str, Dict[str, Any]]:
        """The same with a Transformer."""
        eval_frequency = max(1, self.arguments.steps // 5)
        settings: Dict[str, Any] = {"training.eval_frequency": eval_frequency, "training.patience": 0}
        settings.update(self.categories)
        if not method.joint:
            settings["nlp.pipeline"] = ["tok2vec", "crf_ner"]
        if first is not None:
            settings["initialize.after_init"] = load_weights(first, {"tok2vec": ["all"]})
        return "joint.joint", settings

    @property
    def encoder_size(self) -> str:
        """RETURNS (str): Size of the encoder in the configs."""
        return "transformer" if self.size == "transformer" else "bilstm"

    @cached_property
    def categories(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): Whether sentences may have several categories, as some of ATIS have."""
        one_each = all(sum(doc.cats.values()) == 1.0 for name in ("all", "dev") for doc in self.read(name))
        return {f"components.{CATEGORY}.exclusive_classes": one_each}

    def settings(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): What all trainings share but for the seed."""
        vectors = {"paths.vectors": self.arguments.vectors} if self.arguments.vectors else {}
        encoder = self.with_encoder(ENCODER) if self.size == "transformer" else {}
        return {**super().settings(), **encoder, **vectors}

    def make_corpora(self) -> None:
        """Make the corpora of this seed."""
        whole = {split: self.converted(split, self.base / f"{split}.spacy") for split in ("train", "dev", "test")}
        known = frequent_labels(read_docs(whole["train"], Vocab()), self.arguments.min_mentions)
        for split, path in whole.items():
            docs = list(read_docs(path, Vocab()))
            for doc in docs:
                doc.set_ents([ent for ent in doc.ents if ent.label_ in known], default="outside")
            write_docs(self.corpus(split), docs)
        gold, rest = sample(self.corpus("train"), self.arguments.gold, self.seed)
        write_docs(self.corpus("gold"), gold)
        for doc in (*gold, *rest):
            doc.set_ents([], default="missing")
        write_docs(self.corpus("all"), [*gold, *rest])
        write_docs(self.corpus("rest"), rest)
        terms = {(ent.label_, ent.text) for doc in self.read("gold") for ent in doc.ents}
        terms_path = self.folder / "terms.jsonl"
        with terms_path.open("w", encoding="utf-8") as file_:
            file_.writelines(json.dumps({"label": name, "term": term}) + "\n" for name, term in sorted(terms))
        label(self.corpus("rest"), self.corpus("labeled"), terms=terms_path, tokenizer=TOKENIZER)
        aggregate(self.corpus("labeled"), self.corpus("dictionary"), unmatched="outside")
        write_docs(self.corpus("gold-and-dictionary"), [*self.read("gold"), *self.read("dictionary")])


def frequent_labels(docs: Iterable[Doc], least: int) -> Set[str]:
    """Labels with so many entities at least."""
    counts = Counter(ent.label_ for doc in docs for ent in doc.ents)
    return {name for name, count in counts.items() if count >= least}


def without_attention(config: str, embed: Dict[str, Any]) -> Dict[str, Any]:
    """Settings that take the attention out of a config: the encoder below, with these settings of its embeddings, takes
    its place."""
    components = make_config(config, "bilstm")["components"]
    below = components["tok2vec"]["model"]["tok2vec"]
    below["embed"].update(embed)
    listeners = [name for name in components if name != "tok2vec"]
    return {ENCODER: below, **{f"components.{name}.model.tok2vec.width": below["width"] for name in listeners}}


if __name__ == "__main__":
    parser = options(Joint, __doc__, dataset="oa-mine", methods=",".join(METHODS), steps=700)
    add_encoder(parser)
    parser.set_defaults(encoder="bilstm")
    parser.add_argument(
        "--vectors", help="folder of word vectors of the bilstm; its rows are bilstm-vectors, or --label"
    )
    parser.add_argument("--gold", type=int, default=200, help="train sentences with entities; 0: all")
    parser.add_argument("--min-mentions", type=int, default=100)
    parser.add_argument("--pretrain-steps", type=int, default=400, help="updates on categories alone")
    arguments = parse(parser)
    if arguments.encoder == "cnn" or (arguments.vectors and arguments.encoder != "bilstm"):
        raise SystemExit("--encoder is bilstm, with --vectors or without, or a Transformer")
    attentive = {name for name, method in METHODS.items() if method.attention != "none"}
    if arguments.encoder != "bilstm" and attentive & {*arguments.methods.split(",")}:
        raise SystemExit("a Transformer has attention of its own: --methods without attention")
    if arguments.vectors and not arguments.label:
        arguments.label = "bilstm-vectors"
    main(Joint, arguments)
