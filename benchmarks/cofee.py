"""CoFEE: entity spans from links, labels from a term list, types from clusters, and gold last.

    python benchmarks/cofee.py --data DIR [--dataset conll03] [--encoder cnn|bilstm|FOLDER|NAME] [--seeds 0,1,2]
        [--cross-encoder] [--methods match,mrc,wo_fet_esi,wo_fet,full] [--train 2000] [--strong 0]

`--data` holds a folder per data set with train, dev and test as JSONL (perhaps gzipped), where train has gold and weak
labels, and for the first stage a folder wiki-anchors, with weak.jsonl. Of the gold, 300 sentences of dev choose the
checkpoint of each training but the first; `supervised` and `pretrained` are trained on `--strong` sentences of train.
`labels` is the first two stages without picking. Names of further methods: `full_k5` and `wo_fet_delta0.3` have another
value of one setting, `wo_fet_union` keeps the weak labels, and `full_anew` begins the types anew at every renewal;
`wo_esi` has all stages but the first. `mrc_longer` learns the labels for as long as others learn labels and picks, and
those that end in `_early` pick from half of one training on.
`tagger*` is `token_ner`, which has no questions, in the place of the reader: on the weak labels (`tagger`), then on
what it says itself (`tagger_wo_fet_esi`), with the links before (`tagger_spans_labels`, `tagger_wo_fet`), on gold
(`tagger_supervised`), on gold after all that (`tagger_pretrained`).
With `--cross-encoder` a Transformer reads the text anew with each question, as in the paper.
`match` is the weak labels themselves: on test, or on train where test has none.
Rows go to docs/evidence/cofee.jsonl as runs end, and docs/evidence/cofee.md is written anew at the end.
"""

import json
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Tuple

from common import Cost, count, encoder_name, find, sample
from experiment import MATCH, TOKENIZER, Experiment, add_encoder, load_weights, main, options, parse
from spacy.util import dot_to_object
from spacy.vocab import Vocab

from spacy_weakner.configs import make_config
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.relabel.pick import pick

PICKING = "components.mrc_ner.relabel"
MAX_STEPS = "training.max_steps"
TYPING = "components.mrc_ner.typing"
ENCODER = "components.mrc_ner.model.encoder"
READER = f"{ENCODER}.tok2vec"
# A Transformer that reads the text anew with each question.
CROSS_ENCODER = dot_to_object(make_config("mrc_ner.cross_encoder", "transformer"), ENCODER)
QUERIES = {
    "conll03": {
        "PER": "Which persons are named?",
        "ORG": "Which organizations are named, such as companies, agencies, parties or teams?",
        "LOC": "Which places are named, such as countries, cities, regions or rivers?",
        "MISC": "What else is named, such as nationalities, events, languages or works?",
    },
    "ecommerce-zh": {"PROD": "有哪些产品？", "BRAN": "有哪些品牌？"},
}


class Method(NamedTuple):
    """How a row comes about.

    stage (str): The last one: "labels", "picking", "typing" or "finetune".
    anchors (bool): Whether it begins with the links.
    picking, typing (Dict[str, Any]): Settings of these stages.
    early (bool): Whether it does not learn the labels first, but picks from half of the training on.
    longer (bool): Whether it learns the labels for as long as others learn labels and picks.
    """

    stage: str
    anchors: bool = True
    picking: Dict[str, Any] = {}
    typing: Dict[str, Any] = {}
    early: bool = False
    longer: bool = False


METHODS = {
    "mrc": Method("labels", anchors=False),
    "mrc_longer": Method("labels", anchors=False, longer=True),
    "wo_fet_esi": Method("picking", anchors=False),
    "labels": Method("labels"),
    "wo_fet": Method("picking"),
    "wo_esi": Method("typing", anchors=False),
    "full": Method("typing"),
    "wo_fet_union": Method("picking", picking={f"{PICKING}.union": True}),
    "full_anew": Method("typing", typing={f"{TYPING}.realign": False}),
    "pretrained": Method("finetune"),
}
for name in ("wo_fet_esi", "wo_fet", "full"):
    METHODS[f"{name}_early"] = METHODS[name]._replace(early=True)
for value in ("0.03", "0.3", "0.5"):
    METHODS[f"wo_fet_delta{value}"] = Method("picking", picking={f"{PICKING}.threshold": float(value)})
for value in ("5", "20", "40"):
    METHODS[f"full_k{value}"] = Method("typing", typing={f"{TYPING}.n_types": int(value)})


# The package no longer pairs each start with the nearest end.
NEAREST = ("mrc_nearest", "wo_fet_esi_nearest")


class Tagger(NamedTuple):
    """The same without questions: stages of `token_ner`, by configs of other methods.

    corpus (str): "anchors", "weak" or "gold".
    after (Optional[str]): The row that it goes on from.
    part (str): What it takes from there.
    self_training (bool): Whether it learns from itself, all tags; or else the labels.
    """

    corpus: str
    after: Optional[str] = None
    part: str = "all"
    self_training: bool = False


TAGGERS = {
    "tagger": Tagger("weak"),
    "tagger_wo_fet_esi": Tagger("weak", "tagger", self_training=True),
    "tagger_spans": Tagger("anchors"),
    "tagger_spans_labels": Tagger("weak", "tagger_spans", "encoder"),
    "tagger_wo_fet": Tagger("weak", "tagger_spans_labels", self_training=True),
    "tagger_supervised": Tagger("gold"),
    "tagger_pretrained": Tagger("gold", "tagger_wo_fet"),
}
ON_GOLD = ("supervised", "pretrained", "tagger_supervised", "tagger_pretrained")


class Cofee(Experiment):
    """CoFEE, and the parts of it."""

    benchmark = "cofee"
    retired = NEAREST
    # The tagger of links has no labels to be scored by.
    methods = (MATCH, *METHODS, *NEAREST, "supervised", *(name for name in TAGGERS if name != "tagger_spans"))
    tables = ("dataset", "encoder", "strong")
    corpora_in = "{dataset}-{train}"
    models_in = "{encoder}-{steps}-{picking_steps}-{typing_steps}-{eval_frequency}"

    @staticmethod
    def on_train(row: Dict[str, Any]) -> bool:
        """RETURNS (bool): Whether a row was scored on train: CoNLL-2003 has weak labels there only."""
        return bool(row["method"] == MATCH and row["dataset"] == "conll03")

    def sizes(self, name: str) -> Tuple[int, int]:
        """RETURNS (Tuple[int, int]): Number of gold and of weakly labeled sentences of a method."""
        strong = count(self.gold()) if name in ON_GOLD else 0
        return strong, 0 if name.endswith("supervised") else count(self.corpus("weak"))

    def with_encoder(self, tok2vec: str) -> Dict[str, Any]:
        """The encoder, which a reader asks its questions in one of two ways."""
        crossed = {ENCODER: CROSS_ENCODER} if self.arguments.cross_encoder and tok2vec == READER else {}
        return {**super().with_encoder(tok2vec), **crossed}

    def labeled(self) -> Optional[Path]:
        """RETURNS (Optional[Path]): The split that is scored, if it has weak labels, or else train."""
        split, labeled = self.corpus(self.split), self.corpus(f"weak-{self.split}")
        if any(key.startswith("weak:") for doc in read_docs(split, Vocab()) for key in doc.spans):
            aggregate(split, labeled, unmatched="outside")
            return labeled
        return None if self.arguments.dev else self.corpus("weak")

    def gold(self) -> Path:
        """The gold sentences."""
        path = self.corpus(f"gold{self.arguments.strong}")
        if not path.exists():
            write_docs(path, sample(self.corpus("gold"), self.arguments.strong, self.seed)[0])
        return path

    def train(self, name: str) -> Tuple[Path, Cost]:
        """Train a method, and what it needs.

        name (str): The method.
        RETURNS (Tuple[Path, Cost]): The pipeline, and what all that it needs took.
        """
        if name in TAGGERS:
            return self.tagger(name)
        if name == "supervised":
            return self.fit_on(self.gold(), "mrc_ner", f"supervised{self.arguments.strong}", {})
        method = METHODS[name]
        if method.stage == "labels":
            return self.labels(method)
        model, cost = self.picking(method)
        if method.stage == "picking":
            return model, cost
        picked = model.parent.parent / "picked.spacy"
        threshold = method.picking.get(f"{PICKING}.threshold", 0.1)
        print(pick(self.corpus("weak"), picked, model, threshold=threshold), flush=True)
        types = "full" if method.stage == "finetune" else name
        folder = picked.parent.name
        steps = self.steps(self.arguments.typing_steps)
        settings = {**steps, **method.typing, "paths.initial": str(model)}
        model, more = self.fit_on(picked, "cofee.typing", f"{folder}/{types}", settings)
        if method.stage != "finetune":
            return model, cost + more
        settings = {**steps, "paths.initial": str(model)}
        finetuned = f"pretrained{self.arguments.strong}"
        model, last = self.fit_on(self.gold(), "cofee.finetune", finetuned, settings)
        return model, cost + more + last

    def labels(self, method: Method) -> Tuple[Path, Cost]:
        """The second stage without picking, and the first if the method has it."""
        steps = self.arguments.steps + method.longer * self.arguments.picking_steps
        settings = self.steps(steps)
        folder = f"labels-{steps}"
        if not method.anchors:
            return self.fit_on(self.corpus("weak"), "mrc_ner", folder, settings)
        spans, before = self.spans()
        settings["paths.initial"] = str(spans)
        model, cost = self.fit_on(self.corpus("weak"), "cofee.labels", f"spans-{folder}", settings)
        return model, before + cost

    def spans(self) -> Tuple[Path, Cost]:
        """The first stage."""
        settings = {**self.with_encoder(READER), "paths.train": str(self.anchors())}
        return self.fit("cofee.spans", "anchors", None, settings, "model-last")

    def picking(self, method: Method) -> Tuple[Path, Cost]:
        """All stages until labels are picked."""
        # The first method with these settings has the name of what is trained with them.
        alike = (name for name, own in METHODS.items() if own == method._replace(stage="picking", typing={}))
        folder = f"{next(alike)}/picking"
        first = self.spans() if method.anchors else None
        if not method.early:
            first = self.labels(method)
        steps = self.arguments.steps if method.early else self.arguments.picking_steps
        settings: Dict[str, Any] = {**self.steps(steps), **method.picking, f"{PICKING}.at_start": not method.early}
        settings["training.before_update.interval"] = max(1, steps // 2)
        settings.update({"initialize.after_init": None} if first is None else {"paths.initial": str(first[0])})
        model, cost = self.fit_on(self.corpus("weak"), "cofee.picking", folder, settings)
        return model, cost + (Cost() if first is None else first[1])

    def tagger(self, name: str) -> Tuple[Path, Cost]:
        """Train a tagger, and what it goes on from."""
        stage, before, steps = TAGGERS[name], Cost(), self.arguments.steps
        settings = {**self.with_encoder("components.token_ner.model.tok2vec"), "training.patience": 0}
        corpora = {"anchors": self.anchors, "weak": lambda: self.corpus("weak"), "gold": self.gold}
        corpus = corpora[stage.corpus]()
        if stage.after is not None:
            first, before = self.tagger(stage.after)
            settings["initialize.after_init"] = load_weights(first, {"token_ner": [stage.part]})
            steps = steps if stage.part == "encoder" else self.arguments.typing_steps
        config = "token_ner"
        if stage.self_training:
            config = "roster.self_training"
            settings["components.token_ner.objective.include_outside"] = True
        if stage.corpus == "anchors":
            settings["paths.dev"] = str(corpus)
        folder = f"{name}{self.arguments.strong}" if stage.corpus == "gold" else name
        product = "model-last" if stage.corpus == "anchors" else "model-best"
        model, cost = self.fit(config, folder, corpus, {**self.steps(steps), **settings}, product)
        return model, before + cost

    def fit_on(self, corpus: Path, config: str, name: str, settings: Dict[str, Any]) -> Tuple[Path, Cost]:
        """A training with questions, on a corpus; the pipeline is the best one on dev."""
        own = {"paths.queries": str(self.folder / "queries.json"), "training.patience": 0}
        return self.fit(config, name, corpus, {**self.with_encoder(READER), **own, **settings})

    def settings(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): What all trainings share but for the seed."""
        return {**super().settings(), **self.steps(self.arguments.steps), "nlp.lang": "xx"}

    def steps(self, n: int) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): Settings of a training with so many updates."""
        return {MAX_STEPS: n, "training.eval_frequency": min(n, self.arguments.eval_frequency)}

    def anchors(self) -> Path:
        """The links of a wiki, in sentences with four or more of them."""
        path = self.arguments.work / "anchors.spacy"
        if not path.exists():
            everything = path.with_name("all-anchors.spacy")
            data = find(self.arguments.data / "wiki-anchors", "weak")
            convert(data, everything, lang="xx", tokenizer=TOKENIZER, source="weak", overwrite=True)
            labeled = path.with_name("labeled-anchors.spacy")
            aggregate(everything, labeled, unmatched="outside")
            docs = [doc for doc in read_docs(labeled, Vocab()) if len(doc.ents) > 3]
            for doc in docs:
                doc.set_ents([type(ent)(doc, ent.start, ent.end, label="Entity") for ent in doc.ents])
            write_docs(path, docs)
        return path

    def make_corpora(self) -> None:
        """Make the corpora of this seed."""
        how = {"lang": "xx", "source": "weak"}
        self.converted("test", self.corpus("test"), **how)
        self.make_dev(**how)
        everything = self.converted("train", self.corpus("all-train"), **how)
        write_docs(self.corpus("gold"), sample(everything, self.arguments.train, self.seed)[0])
        aggregate(self.corpus("gold"), self.corpus("weak"), unmatched="outside")
        path = self.data / "queries.json"
        queries = json.loads(path.read_text(encoding="utf-8")) if path.exists() else QUERIES[self.arguments.dataset]
        (self.folder / "queries.json").write_text(json.dumps(queries, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    parser = options(Cofee, __doc__, dataset="conll03", methods="match,mrc,wo_fet_esi,wo_fet,full", steps=600)
    add_encoder(parser)
    parser.add_argument("--train", type=int, default=2000, help="training sentences; 0: all")
    parser.add_argument("--strong", type=int, default=0, help="gold sentences of `supervised` and `pretrained`")
    parser.add_argument("--picking-steps", type=int, default=300, help="updates of the second half of the second stage")
    parser.add_argument("--typing-steps", type=int, default=300, help="updates of the third stage, and of the last")
    parser.add_argument("--eval-frequency", type=int, default=100)
    parser.add_argument("--cross-encoder", action="store_true", help="a Transformer reads the text with each question")
    arguments = parse(parser)
    if arguments.cross_encoder:
        arguments.label = f"{arguments.label or encoder_name(arguments.encoder)}-cross-encoder"
    main(Cofee, arguments)
