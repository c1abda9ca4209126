"""The common settings of a project's trainings, and the trainings themselves."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ..corpus.language import CorpusLanguage
from ..errors import Errors, WeaknerError
from ..files import existing
from ..runs.config import config_differences
from ..runs.training import BEST, LAST, Trained, Training, train_all
from ..training.augmenting import CaseCopies
from .encoding import Encoded, encoder_config
from .layout import Corpora
from .rules import EVALUATIONS, FROZEN, LINEAR, LINEAR_STATIC, LINEAR_TEXTS, TRAINED, Settings, gold_size, weak_size

# Recipes: a head without features of lists, and one with the matches of the lists as features.
ALONE, WITH_LISTS = "crf_ner", "best.gold"
# Iterations of L-BFGS on thousands of sentences of text, after which F1 no longer changes.
TEXT_ITERATIONS = 50
_ITERATIONS = "initialize.after_init.max_iterations"
# Weight of a sentence with a teacher's labels beside one of gold (students.md).
TEXT_WEIGHT = 0.1
# The share of weakly labeled sentences that are repeated in other case is half of that of gold: with the same share,
# the head lost 2.6 points of F1 on text in its own case (CoNLL-2003, dev).
TEXT_COPIES = 0.5
NO_COPIES = CaseCopies(0.0, 0.0)


@dataclass(frozen=True)
class TrainingContext:
    """The common settings of a project's trainings; see `fit`."""

    corpora: Corpora
    models: Path  # folder of the trained pipelines
    configs: Path
    settings: Settings
    language: CorpusLanguage
    size: str = LINEAR
    seed: int = 0
    precision: Optional[float] = None  # of the combination
    processes: int = 1
    gpu_id: int = -1
    progress: bool = False
    lists: Tuple[str, ...] = ()  # sources whose matches are features of heads
    cases: CaseCopies = NO_COPIES  # makes copies of gold in other case, with the matches of the lists
    vectors: Optional[Path] = None  # vectors of the text's words, for linear heads
    embeds: Optional[str] = None  # the Transformer whose embeddings students read
    encoded: Optional[Encoded] = None  # the frozen Transformer of heads on gold, and its vectors of the gold
    say: Callable[[str], None] = lambda text: None

    def folder_of(self, candidate: str) -> Path:
        """Return the folder of a candidate that is made of other pipelines."""
        return self.models / candidate.replace(" ", "-")

    def config(self, recipe: str, size: str) -> Path:
        """Return the path of a recipe's config, after checking its language, tokenizer and size."""
        path = self.configs / config_name(recipe, size)
        file_ = shlex.quote(str(path))
        options = f"--lang {self.language.lang} --tokenizer {self.language.tokenizer} --size {size}"
        existing(path, f"or create it with 'spacy weakner init config {recipe} {file_} {options}'")
        found = config_differences(path, lang=self.language.lang, tokenizer=self.language.tokenizer, size=size)
        if found:
            raise WeaknerError(Errors.WK692.format(path=path, file=file_, differences="; ".join(found), recipe=recipe))
        return path

    def transformer(self, *, has_gold: bool) -> Optional[str]:
        """Return the folder or name of the Transformer of the heads, None for the encoder of a spaCy pipeline."""
        recipe, size = (ALONE, gold_size(self.size)) if has_gold else (weak_recipe(self.size), weak_size(self.size))
        name: Optional[str] = encoder_config(self.config(recipe, size)).get("name")
        return name

    def on_gold(
        self, gold: Path, output: Path, dev: Optional[Path] = None, *, size: str, with_lists: bool = False
    ) -> Training:
        """Plan the training of a head on gold alone or, with `with_lists`, of one with the lists' matches in both
        corpora as features."""
        overrides = _corpora(gold, dev)
        if not with_lists:
            return self._training(ALONE, size, output, {**overrides, **self._case_copies()})
        keys = ("components.crf_ner.model.source_features.sources", "corpora.train.sources", "corpora.dev.sources")
        sources = {key: list(self.lists) for key in keys}
        overrides = {**overrides, **sources, **self._case_copies(self.cases.lists)}
        return self._training(WITH_LISTS, size, output, overrides)

    @property
    def student_pieces(self) -> Path:
        """Return the folder of the embeddings that students read."""
        return self.models / "student-pieces"

    def of_student(self, corpus: Path, output: Path, *, has_gold: bool = True, has_missing: bool = False) -> Training:
        """Plan the training of a linear head on gold, if there is some, and labeled text in one corpus, with their
        copies. With `has_missing`, no missing token is taken as "O", since those of the text hardly ever are."""
        plain, with_lists = replace(self, cases=NO_COPIES), has_gold and bool(self.lists)
        training = plain.on_gold(corpus, output, size=student_size(self.embeds), with_lists=with_lists)
        more: Dict[str, Any] = {_ITERATIONS: TEXT_ITERATIONS}
        if self.embeds is not None:
            more["paths.pieces"] = str(self.student_pieces)
            more["components.crf_ner.model.tok2vec.window"] = 0  # with neighbors, it learned no more (students.md)
        if has_gold:
            more["components.crf_ner.loss.weak_weight"] = TEXT_WEIGHT
        if has_missing:
            more["components.crf_ner.loss.negative_rate"] = 0.0
        return training._replace(overrides={**training.overrides, **more})

    def on_weak(self, output: Path, dev: Optional[Path] = None) -> Training:
        """Plan the training of a head on the weak labels of the text alone."""
        overrides = _corpora(self.corpora.weak, dev)
        overrides.update(self._case_copies(share=TEXT_COPIES))
        overrides["components.crf_ner.loss.negative_rate"] = self.settings.negative_rate
        size = weak_size(self.size)
        if size not in TRAINED:
            overrides["corpora.train.limit"] = LINEAR_TEXTS
            overrides[_ITERATIONS] = TEXT_ITERATIONS
        return self._training(weak_recipe(self.size), size, output, overrides, once=dev is None)

    def train(self, trainings: Sequence[Training], desc: str = "fit 2/4: train") -> List[Trained]:
        """Train several pipelines at a time, and say their warnings; finished trainings are skipped."""
        results = train_all(trainings, processes=self.processes, gpu_id=self.gpu_id, desc=desc, progress=self.progress)
        for text in dict.fromkeys(text for result in results for text in result.warnings):
            self.say(text)
        return results

    def _case_copies(self, lists: Sequence[Path] = (), share: float = 1.0) -> Dict[str, Any]:
        shares = {case: share * value for case, value in self.cases.shares.items()}
        if not any(shares.values()):
            return {}
        settings = {"@augmenters": "spacy_weakner.CaseCopies.v1", **shares, "lists": [str(path) for path in lists]}
        return {"corpora.train.augmenter": settings}

    def _training(
        self, recipe: str, size: str, output: Path, overrides: Dict[str, Any], *, once: bool = False
    ) -> Training:
        overrides = {**overrides, "training.patience": 0, "system.seed": self.seed}
        if size in TRAINED:  # linear heads train until they converge
            steps = self.settings.text_steps
            overrides["training.max_steps"] = steps
            overrides["training.eval_frequency"] = steps if once else max(1, steps // EVALUATIONS)
        elif self.vectors is not None:
            overrides["initialize.vectors"] = str(self.vectors)
        if size == LINEAR_STATIC:
            overrides["paths.pieces"] = str(self.corpora.pieces)
        if size == FROZEN and self.encoded is not None:
            overrides["components.crf_ner.model.tok2vec"] = self.encoded.settings
        return Training(self.config(recipe, size), output, overrides)


def _corpora(train: Path, dev: Optional[Path]) -> Dict[str, Any]:
    # `spacy train` has to evaluate, but without dev the scores are not used.
    limit = {"corpora.dev.limit": 10} if dev is None else {}
    return {"paths.train": str(train), "paths.dev": str(dev or train), **limit}


def weak_recipe(size: str) -> str:
    """Return the recipe of the head on weak labels. A Transformer uses the one of the head on gold, without lists."""
    return WITH_LISTS if size in TRAINED else ALONE


def used_recipes(size: str, *, gold: bool, weak: bool, student: Optional[str]) -> Set[Tuple[str, str]]:
    """Return the recipes of the trainings of a project, each with its size, given whether there are gold and weak
    labels, and the size of the student, if one may be trained."""
    recipes = {(weak_recipe(size), weak_size(size))} if weak else set()
    if gold:
        recipes |= {(ALONE, gold_size(size)), (WITH_LISTS, gold_size(size))}
    if student is not None:
        recipes |= {(ALONE, student), *([(WITH_LISTS, student)] if gold else [])}
    return recipes


def student_size(transformer: Optional[str]) -> str:
    """Return the size of students: with the embeddings of their teacher's Transformer, if it has one."""
    return LINEAR if transformer is None else LINEAR_STATIC


def config_name(recipe: str, size: str) -> str:
    """Return the path of a recipe's config in the folder of configs."""
    return f"{size}/{recipe}.cfg"


def pipeline_of(training: Training) -> Path:
    """Return the resulting pipeline of a training: the best checkpoint if there is dev, else the last."""
    has_dev = training.overrides["paths.dev"] != training.overrides["paths.train"]
    return training.output / (BEST if has_dev else LAST)
