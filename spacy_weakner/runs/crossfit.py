"""Trains on all but a fold of the gold, for every fold: predictions on gold that no model was trained on."""

import json
from pathlib import Path
from typing import Any, List, Mapping, NamedTuple, Optional

from spacy.vocab import Vocab

from ..corpus.docbin import read_docs, write_docs
from ..errors import Errors, WeaknerError, check_range
from ..files import check_output, write_text
from ..runtime.hashes import hash_file
from ..runtime.lock import holding
from .config_values import flat_config, resolved_config
from .folds import INDEX
from .groups import learnable, split_folds
from .training import BEST, LAST
from .trainings import Training, check_trainings, train_all


class Fold(NamedTuple):
    """One fold.

    model (Path): The pipeline that was trained without it.
    corpus (Path): The fold.
    docs (int): Its sentences.
    skipped (bool): Whether the pipeline was there already.
    """

    model: Path
    corpus: Path
    docs: int
    skipped: bool


@holding("output")
def crossfit(
    config: Path,
    gold: Path,
    output: Path,
    *,
    folds: int = 5,
    dev: Optional[Path] = None,
    overrides: Optional[Mapping[str, Any]] = None,
    seed: int = 0,
    processes: int = 1,
    gpu_id: int = -1,
    ray: Optional[str] = None,
    progress: bool = False,
) -> List[Fold]:
    """Split gold into folds, by document where identifiers tell, and train a pipeline for each on all the others.

    Where there is too little gold to set a part aside, `calibrate` learns from these folds together. They have to be as
    unknown to the pipelines as new text, so no checkpoint is chosen by them: without `dev` it is the last one.

    config (Path): Config of the training; it trains on `paths.train` and on nothing else.
    gold (Path): A `.spacy` file or a folder of them.
    output (Path): Folder; for every fold it gets `fold-<n>.spacy`, the rest of the gold, and the pipelines.
    folds (int): Number of folds.
    dev (Optional[Path]): Other gold, to choose a checkpoint by.
    overrides (Optional[Mapping[str, Any]]): Values of the config by dotted name.
    seed (int): Seed of the split, which depends on identifiers and texts, not on their order.
    processes (int): How many are trained at a time, see `train_all`.
    gpu_id (int): -1 is the CPU.
    ray (Optional[str]): Address of a Ray cluster that trains them, see `train_all`.
    progress (bool): Show how far it has come.
    RETURNS (List[Fold]): The folds.
    RAISES (WeaknerError): If there are fewer sentences than folds, only one of them has labels, the config trains on
        other files, or a training fails.
    """
    gold, output = Path(gold), Path(output)
    _check_config(config, gold, overrides or {})
    check_range("folds", folds, 2, None)
    check_trainings(processes, ray)
    check_output([gold, *([] if dev is None else [Path(dev)])], [output])
    docs = [doc for doc in read_docs(gold, Vocab()) if len(doc)]
    if len(docs) < folds:
        raise WeaknerError(Errors.WK361.format(path=gold, docs=len(docs), folds=folds))
    parts = split_folds(docs, folds, seed)
    if len(parts) < folds:
        raise WeaknerError(Errors.WK361.format(path=gold, docs=len(parts), folds=folds))
    if not learnable(parts):
        raise WeaknerError(Errors.WK693.format(path=gold))
    # Until all is done there are no folds: pipelines and corpora of two runs do not belong together.
    (output / INDEX).unlink(missing_ok=True)
    trainings = []
    for n, part in enumerate(parts, start=1):
        held_out, rest = output / f"fold-{n}.spacy", output / f"rest-{n}.spacy"
        write_docs(held_out, part.held_out)
        write_docs(rest, part.rest)
        paths = {"paths.train": str(rest), "paths.dev": str(rest if dev is None else dev)}
        if dev is None:
            # The end of the training may not be chosen by what it is trained on, either.
            paths["training.patience"] = 0  # type: ignore[assignment]
        trainings.append(Training(config, output / f"model-{n}", {**paths, **(overrides or {})}))
    members = train_all(trainings, processes=processes, gpu_id=gpu_id, ray=ray, desc="crossfit", progress=progress)
    result, rows = [], []
    for n, (part, member) in enumerate(zip(parts, members, strict=True), start=1):
        held_out = output / f"fold-{n}.spacy"
        fold = Fold(member.output / (LAST if dev is None else BEST), held_out, len(part.held_out), member.skipped)
        result.append(fold)
        model = fold.model.relative_to(output).as_posix()
        hashes = {"corpus_hash": hash_file(held_out), "made_from": member.made_from}
        rows.append({"model": model, "corpus": held_out.name, **hashes})
    write_text(output / INDEX, json.dumps(rows, indent=2) + "\n")
    return result


def _reads(key: str, value: object, gold: Path) -> bool:
    """Whether a value of the config is the path of the gold, of a file in it, or of a corpus that it lies in."""
    path = Path(value).resolve() if isinstance(value, (str, Path)) and value else None
    is_corpus = key.endswith(".path")  # with what stands for its variables
    return path is not None and (path == gold or gold in path.parents or (is_corpus and path in gold.parents))


def _check_config(config: Path, gold: Path, overrides: Mapping[str, Any]) -> None:
    # Gold that the training gets by another way would not be held out.
    values = flat_config(config, overrides)
    reads = any(isinstance(value, str) and "${paths.train}" in value for value in values.values())
    # Both are set for every fold.
    replaced = {"paths.train", "paths.dev"} - {*overrides}
    others = {key: value for key, value in resolved_config(config, overrides).items() if key not in replaced}
    if not reads or "paths.train" in overrides or any(_reads(*item, gold.resolve()) for item in others.items()):
        raise WeaknerError(Errors.WK364.format(config=config))
