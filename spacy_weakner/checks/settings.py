"""Checks of settings and their requirements: extras, GPU, Transformer."""

import os
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Optional

from spacy.language import Language

from ..configs.recipes import FROZEN, FROZEN_TOK2VEC, SIZES
from ..errors import WeaknerError, check_choice
from ..files import expand_home, read_object
from ..pipelines import blank_pipeline, is_pipeline
from ..runs.config import TRANSFORMER, config_differences, flat_config
from ..runtime.devices import on_device
from .findings import Findings, listed

# Sizes that need the extra "transformers".
_ON_TRANSFORMERS = ("static", "linear-static", "frozen", "transformer", "gpu")
# Sizes whose Transformer is trained, if the text has weak labels.
_TRAINED = ("transformer", "gpu")
_NEW = "spacy weakner init project NEW_FOLDER"
_PRECISION = "initialize.before_init.precision"
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_CONFIG = "config.json"
_WEIGHTS = "*.safetensors"
# Encoders with more dimensions per token than this train badly at learning rates above that.
_WIDE, _FAST, _RATE = 512, 1e-4, "training.optimizer.learn_rate.initial_rate"


def check_pipeline(lang: str, tokenizer: Optional[str], findings: Findings) -> Language:
    """Create a pipeline to tokenize texts with."""
    nlp = None
    with findings.guard(f"--lang {lang}"):
        nlp = blank_pipeline(lang)
    if tokenizer is not None:
        with findings.guard(f"--tokenizer {tokenizer}"):
            nlp = blank_pipeline("xx" if nlp is None else lang, tokenizer)
    return blank_pipeline("xx") if nlp is None else nlp


def check_size(size: Optional[str], transformer: Optional[str], findings: Findings) -> None:
    """Check that the encoder exists and that its packages are installed."""
    if size is None:
        return
    with findings.guard(f"--size {size}"):
        check_choice("size", size, SIZES)
    is_own = size in _ON_TRANSFORMERS and (transformer is None or not is_pipeline(transformer))
    if is_own and find_spec("transformers") is None:
        message = "This encoder needs a package that is not installed: transformers."
        findings.error(f"--size {size}", message, 'pip install "spacy_weakner[transformers]", or --size linear.')


def check_configs(
    folder: Path,
    lang: str,
    tokenizer: Optional[str],
    size: Optional[str],
    transformer: Optional[str],
    findings: Findings,
) -> None:
    """Check that the configs of a project match its settings."""
    options = f"--lang {lang}" + (f" --tokenizer {tokenizer}" if tokenizer else "")
    uses_pipeline = transformer is not None and is_pipeline(transformer)
    # Without weak labels of the text, no Transformer is trained: all heads are on the frozen one.
    sizes = {size, FROZEN} if size in _TRAINED else {size}
    if size and folder.is_dir() and not any((folder / name).is_dir() for name in sizes if name):
        cure = f"For another size, make a new project: {_NEW} --size {size}"
        findings.error(f"--configs {folder}", f"The folder has no configs of the size '{size}'.", cure)
    width = _width(transformer, findings)
    for path in sorted(folder.glob("*/*.cfg")):
        where = f"--configs {path}"
        with findings.guard(where):
            made_for = path.parent.name
            values = flat_config(path, {})
            settings: Any = {"lang": lang, "tokenizer": tokenizer, "size": made_for, "transformer": transformer}
            if differences := config_differences(path, **settings):
                command = f"spacy weakner init config {path.stem} {shlex.quote(str(path))} --overwrite {options}"
                command += f" --size {FROZEN_TOK2VEC if uses_pipeline and made_for == FROZEN else made_for}"
                if transformer and TRANSFORMER in values:
                    command += f" --transformer {shlex.quote(transformer)}"
                if values.get(_PRECISION):
                    command += f" --precision {values[_PRECISION]}"
                was_pipeline = any("FrozenTok2Vec" in str(value) for value in values.values())
                if made_for == FROZEN and transformer and was_pipeline != uses_pipeline:
                    command = f"For this encoder, make a new project: {_NEW} --transformer {shlex.quote(transformer)}"
                findings.error(where, f"{listed(differences)}.", command)
            rate = values.get(_RATE)
            if made_for == "transformer" and width > _WIDE and isinstance(rate, float) and rate > _FAST:
                message = (
                    f"A learning rate of {rate:g} is for small Transformers; this one has vectors of width {width}."
                )
                findings.warning(where, message, f"Set initial_rate = 5e-5 in {path}.")


def _width(transformer: Optional[str], findings: Findings) -> int:
    """Return the number of dimensions per token of a Transformer in a folder; 0: unknown."""
    width = None
    described = expand_home(transformer or "") / _CONFIG
    if transformer is not None and described.is_file():
        with findings.guard(f"--transformer {transformer}"):
            found = read_object(described, "a config of Hugging Face")
            width = found.get("hidden_size") if isinstance(found, dict) else None
    return width if isinstance(width, int) else 0


def check_gpu(gpu_id: int, size: Optional[str], findings: Findings) -> None:
    """Check that the GPU exists, and that one is used where it is needed."""
    where = f"--gpu-id {gpu_id}"
    try:
        with on_device(gpu_id):
            pass
    except WeaknerError as error:
        cure = 'CuPy comes with: pip install "spacy_weakner[cuda12x]" (or cuda13x).' if "CuPy" in str(error) else ""
        findings.error(where, str(error), cure)
    if gpu_id < 0 and size == "gpu":
        findings.warning(where, "Training with the size 'gpu' on a CPU takes hours.", "--gpu-id 0, or another size.")


def check_transformer(name: Optional[str], size: Optional[str], findings: Findings) -> None:
    if name is None or size not in _ON_TRANSFORMERS:
        return
    where, path = f"--transformer {name}", expand_home(name)
    if is_pipeline(path if path.exists() else name):
        return
    if path.is_dir():
        absent = [what for what in (_CONFIG, _WEIGHTS) if not any(path.glob(what))]
        absent += [] if any(path.glob("*token*")) or any(path.glob("vocab*")) else ["a tokenizer"]
        if absent:
            message = f"The folder is not a Hugging Face Transformer that can be loaded: it lacks {listed(absent)}."
            cure = "Save the model (safe_serialization=True) and its tokenizer with save_pretrained."
            findings.error(where, message, cure)
        return
    if path.exists():
        cure = "Give the folder of a Transformer, or its name."
        findings.error(where, "This is a file, but a folder is needed.", cure)
        return
    looks_like_path = name[0] in "./~" or (len(path.parts) > 1 and path.parent.is_dir())
    if looks_like_path or _NAME.fullmatch(name) is None:
        findings.error(where, "There is no such folder.", "Correct the path, or give a name like 'distilroberta-base'.")
        return
    if model_folder(name) != path:
        return
    message = f"There is no folder '{name}' here, so the model of this name will be downloaded from Hugging Face."
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        findings.error(where, f"{message[:-1]}, but HF_HUB_OFFLINE is set.", "Give a folder, or unset HF_HUB_OFFLINE.")
    else:
        findings.info(where, message)


def model_folder(name: str) -> Path:
    """Return the folder of a Transformer: of its files in the cache, if this is the name of one there."""
    path = expand_home(name)
    cached = () if path.is_dir() else (_cache() / f"models--{name.replace('/', '--')}" / "snapshots").glob("*")
    return max(cached, key=lambda folder: folder.stat().st_mtime, default=path)


def _cache() -> Path:
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return expand_home(os.environ.get("HF_HUB_CACHE") or str(Path(home) / "hub"))
