"""The record of what scores were made with, which all files of scores contain."""

import platform
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from spacy.util import get_package_version

from ..code_version import code_version
from ..files import existing, parse_json, reading_made
from ..runtime.hashes import hash_settings
from ..runtime.receipts import Receipt
from .config import SEEDS, flat_config
from .inputs import Inputs
from .training import RECEIPT

_PACKAGES = ("spacy", "thinc", "numpy", "torch", "transformers", "cupy")


def with_provenance(
    rows: Sequence[Mapping[str, Any]],
    candidates: Mapping[str, Path],
    *,
    test: Optional[Path] = None,
    variables: Optional[Path] = None,
) -> Dict[str, Any]:
    """Return the contents of a file of scores: the rows, each with what its candidate was trained with, and what all of
    them have in common.

    rows (Sequence[Mapping[str, Any]]): Scores with the "name" of their candidate.
    candidates (Mapping[str, Path]): Pipelines and corpora by name.
    test (Optional[Path]): The test set.
    variables (Optional[Path]): JSON file of the workflow's variables.
    RETURNS (Dict[str, Any]): JSON-compatible.
    """
    inputs = Inputs()
    made: Dict[str, Any] = {
        "code": code_version(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: found for name in _PACKAGES if (found := get_package_version(name))},
        "test": test and inputs.contents(Path(test)),
        **read_variables(variables),
    }
    return {"made": made, "scores": [{**row, "training": _training(candidates[row["name"]], inputs)} for row in rows]}


def read_variables(path: Optional[Path]) -> Dict[str, Any]:
    """Read the record of a workflow's variables, which are None where they are unknown; without one, there are none."""
    if path is None:
        return {"workflow": None, "variables": {}, "changed": []}
    with reading_made(path, "run", "weasel"):
        record = parse_json(existing(path).read_bytes())
        variables = record["variables"]
        known = None if variables is None else dict(variables)
        return {"workflow": record["workflow"], "variables": known, "changed": list(record["changed"])}


def completion_rules(scores: Mapping[str, Any]) -> List[str]:
    """Return remarks on the rules by which corpora that the candidates were trained on were completed."""
    every = [corpus for row in scores["scores"] for corpus in row["training"]["corpora"].values()]
    rules = {corpus["path"]: ", ".join(corpus["rules"]) for corpus in every if corpus.get("rules")}
    return [f"{path} was completed with the rule: {rule}" for path, rule in rules.items()]


def _training(path: Path, inputs: Inputs) -> Dict[str, Any]:
    if not (path / "config.cfg").is_file():
        return {"seed": None, "config": None, "corpora": {"labels": inputs.contents(path)}}
    values = flat_config(path / "config.cfg", {})
    receipt = Receipt.read(path.parent / RECEIPT) or Receipt({})
    # Runs that differ only in their seed and in their files have the same hash.
    settings = {k: repr(v) for k, v in values.items() if k not in SEEDS and not k.startswith("paths.")}
    # As they were when it was trained, if that is known.
    corpora = receipt.report.get("corpora") or inputs.of_paths(values)
    return {
        "seed": next((values[key] for key in SEEDS if isinstance(values.get(key), int)), None),
        "config": hash_settings(settings),
        "corpora": corpora,
        "cpu_seconds": receipt.report.get("cpu_seconds"),
        "device": receipt.report.get("device"),
    }
