"""Adapts an encoder to a domain: masked-language-model training on plain text (NEEDLE, stage I)."""

import math
import shutil
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Sequence, Union

from ..code_version import code_version
from ..corpus.counts import RowCounts
from ..corpus.formats.reading import input_files
from ..corpus.language import corpus_language
from ..encoders.transformer import encoder_key, load_masked_lm, max_pieces, quiet, save_encoder
from ..errors import Errors, WeaknerError, check_choice, check_range, require
from ..files import atomic_path, check_output
from ..runtime.hashes import hash_path, hash_settings
from ..runtime.lock import locked
from ..runtime.output import RECEIPT, finished, write_receipt
from ..runtime.receipts import Receipt
from ..scratch import resolved
from .pieces import cut_pieces
from .reading import stream_text

MAX_LENGTH = 256
# From Gururangan et al.: share of warm-up steps; weight decay of AdamW.
_WARMUP, _WEIGHT_DECAY = 0.06, 0.01
# Steps between checkpoints.
_SAVE_STEPS = 500
# The options that an output depends on.
_MADE_FROM = (
    *("max_length", "eval_share", "epochs", "max_steps", "batch_size", "learn_rate"),
    *("mask_rate", "train_head", "mixed_precision", "seed", "lang"),
)
MIXED_PRECISIONS = ("no", "bf16", "fp16")


class AdaptReport(NamedTuple):
    """The training data of an encoder, and the result of the training."""

    texts: int
    held_out: int  # texts held out to measure the loss
    words: int  # tokens of all texts
    pieces: int  # pieces of all texts
    split: int  # texts that were split because they were longer than the model's input
    steps: int
    loss_before: Optional[float]  # mean loss of masked pieces of the held-out texts; None: there are none
    loss_after: Optional[float]  # the same after training
    seconds: float  # training time of this run
    resumed: int  # step from which an earlier run was resumed; else 0
    new_head: bool  # whether the head was trained from scratch
    skipped: bool = False  # whether an earlier run had finished the training
    remarks: Sequence[str] = ()  # on what was read

    @property
    def perplexity_before(self) -> Optional[float]:
        return None if self.loss_before is None else math.exp(self.loss_before)

    @property
    def perplexity_after(self) -> Optional[float]:
        return None if self.loss_after is None else math.exp(self.loss_after)


def adapt(
    inputs: Sequence[Path],
    output_path: Path,
    model: Union[str, Path],
    *,
    max_length: Optional[int] = None,
    eval_share: float = 0.01,
    epochs: int = 1,
    max_steps: Optional[int] = None,
    batch_size: int = 32,
    learn_rate: float = 5e-5,
    mask_rate: float = 0.15,
    train_head: bool = False,
    mixed_precision: str = "no",
    gpu_id: int = -1,
    seed: int = 0,
    lang: Optional[str] = None,
    overwrite: bool = False,
    progress: bool = False,
) -> AdaptReport:
    """Continue the pre-training of a masked language model on text of the domain (Jiang et al. 2021, Section 3.1, after
    Gururangan et al. 2020). Labels are not used.

    Each Doc is a sequence of its own, as it will be for the tagger. Sequences of similar length share a batch, so that
    there is little padding. (Packing several into one sequence would save no more, and would train on texts that the
    model never meets again.) One epoch is the paper's choice; batch size, learning rate, mask rate and length are those
    of the authors' script, warm-up and weight decay those of Gururangan et al.

    The output is a Hugging Face folder with head and tokenizer, for `name` of `spacy_weakner.TransformerEncoder.v1`. It
    is written whole or not at all. During the training, checkpoints are stored beside it, in `<output>.work`: after an
    interrupt, the same call continues from the last one. A finished output is not made again.

    For several GPUs, start it with torchrun, here on four:

        torchrun --nproc-per-node 4 -m spacy_weakner encoder adapt text.jsonl.gz encoder --model roberta-base --gpu-id 0

    inputs (Sequence[Path]): Corpora in any format: files or folders; for a multilingual model, one per language.
    output_path (Path): Folder for the adapted encoder.
    model (Union[str, Path]): Encoder to start from: a Hugging Face folder or name, with weights as safetensors.
    max_length (Optional[int]): Pieces per sequence, special ones included; longer texts are split. None: 256, or the
        maximum of the model if it is lower.
    eval_share (float): Share of the texts held out to measure the loss before and after training. It is drawn by
        content, so that equal texts are all held out or all trained on.
    epochs (int): Number of passes over all texts.
    max_steps (Optional[int]): Number of steps; if given, `epochs` is ignored.
    batch_size (int): Texts per step, over all GPUs.
    learn_rate (float): Highest learning rate; it decays linearly to zero.
    mask_rate (float): Share of the pieces to predict. They are drawn again in each epoch.
    train_head (bool): If the checkpoint has no head for masked-language modeling, train a new one with the encoder.
    mixed_precision (str): "no", "bf16" or "fp16", on a GPU.
    gpu_id (int): The GPU; -1 is the CPU. If torchrun starts several processes (torchrun --nproc-per-node 4 -m
        spacy_weakner encoder adapt ... --gpu-id 0), each uses its own.
    seed (int): Seed of all draws.
    lang: See `convert`.
    overwrite (bool): Replace an output that was edited.
    progress (bool): Show progress.
    RETURNS (AdaptReport): What was done.
    RAISES (WeaknerError): For missing packages, invalid settings, missing, malformed or empty input, an encoder that
        cannot be loaded or has no head, an output with other contents, and if the loss is not finite.
    """
    options = {name: value for name, value in locals().items() if name in _MADE_FROM}
    _check_settings({**options, "gpu_id": gpu_id})
    require("transformers", "accelerate", extra="transformers")
    _check("inputs", inputs, len(inputs) > 0, "at least one corpus")
    # An empty path would be the current folder.
    _check("model", model, str(model) != "", "the folder or name of a Transformer (in a workflow: --vars.transformer)")
    inputs, output = [Path(path) for path in inputs], resolved(output_path)
    folder = Path(model) if Path(model).is_dir() else None
    files = [file_ for path in inputs for file_, _ in input_files(path)]
    made_from = {
        "stage": "adapt",
        "code": code_version(),
        "model": f"{model} {encoder_key(model)}" if folder is None else hash_path(folder.resolve()),
        "inputs": [hash_path(path) for path in inputs],
        **options,
    }
    # A training is never resumed from checkpoints of other settings.
    work = output.with_name(f"{output.name}.work") / hash_settings(made_from)[:16]
    check_output([*inputs, *files, *([folder] if folder else [])], [output, work.parent])
    from .trainer import last_checkpoint, make_arguments, train_masked_lm

    with ExitStack() as stack:
        stack.enter_context(quiet())
        args = make_arguments(
            work,
            gpu_id=gpu_id,
            mixed_precision=mixed_precision,
            num_train_epochs=epochs,
            max_steps=max_steps or -1,
            learning_rate=learn_rate,
            warmup=_WARMUP,
            weight_decay=_WEIGHT_DECAY,
            save_steps=_SAVE_STEPS,
            seed=seed,
        )
        args.per_device_train_batch_size = args.per_device_eval_batch_size = max(1, batch_size // args.world_size)
        is_main = args.process_index == 0
        # The other processes then find everything done.
        with args.main_process_first(local=False):
            if is_main:
                stack.enter_context(locked(output))
            receipt = finished(output, made_from, overwrite, folder=True)
            if receipt is not None:
                return AdaptReport(**receipt.report)._replace(skipped=True)
            earlier = Receipt.read(output / RECEIPT)
            others = [] if earlier is None else earlier.differences(made_from)
            if others and not overwrite:  # it may have taken hours
                what = "by another version of this package" if others == ["code"] else "from other inputs or settings"
                exists = f"was made {what} ({', '.join(others)})"
                raise WeaknerError(Errors.WK314.format(path=output, exists=exists))
            masked_lm = load_masked_lm(model, train_head=train_head, seed=seed)
            length = _sequence_length(max_length, masked_lm.tokenizer, max_pieces(masked_lm))
            if is_main:
                work.mkdir(parents=True, exist_ok=True)
                # Without a checkpoint, nothing needs to be kept.
                stack.callback(lambda: _remove_work(work) if last_checkpoint(work) is None else None)
        rows = RowCounts()
        readers = (stream_text(path, corpus_language(path, lang).blank(), rows) for path in inputs)
        how: Dict[str, Any] = {"max_length": length, "eval_share": eval_share, "seed": seed}
        sequences, held_out, counts = cut_pieces(
            chain.from_iterable(readers), masked_lm.tokenizer, **how, progress=progress and is_main
        )
        if not counts.texts + counts.held_out:
            raise WeaknerError(Errors.WK101.format(path=", ".join(map(str, inputs))))
        _check("eval_share", eval_share, counts.texts > 0, f"a lower share: all {counts.held_out} texts are held out")
        trained = train_masked_lm(masked_lm, sequences, held_out, args, mask_rate=mask_rate, progress=progress)
        report = AdaptReport(**vars(counts), **trained._asdict(), new_head=masked_lm.new_head, remarks=rows.remarks)
        if is_main:
            with atomic_path(output) as new:
                new.mkdir()
                save_encoder(masked_lm, model, new)
                write_receipt(new, made_from, report._asdict())
            _remove_work(work)
        args.distributed_state.wait_for_everyone()
    return report


def _remove_work(work: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    with suppress(OSError):
        work.parent.rmdir()  # unless other runs have left files


# Settings


def _check(setting: str, value: Any, fits: bool, expected: str) -> None:
    if not fits:
        raise WeaknerError(Errors.WK005.format(setting=setting, value=value, expected=expected))


def _check_settings(settings: Dict[str, Any]) -> None:
    for setting, least in (("epochs", 1), ("max_steps", 1), ("batch_size", 1), ("seed", 0)):
        if settings[setting] is not None:
            check_range(setting, settings[setting], least, None)
    _check("eval_share", settings["eval_share"], 0 <= settings["eval_share"] < 1, "0 or more, and less than 1")
    _check("mask_rate", settings["mask_rate"], 0 < settings["mask_rate"] < 1, "more than 0, and less than 1")
    _check("learn_rate", settings["learn_rate"], settings["learn_rate"] > 0, "more than 0")
    check_range("gpu_id", settings["gpu_id"], -1, None)
    precision = settings["mixed_precision"]
    check_choice("mixed_precision", precision, MIXED_PRECISIONS)
    _check("mixed_precision", precision, precision == "no" or settings["gpu_id"] >= 0, "'no' without a GPU (gpu_id)")


def _sequence_length(wanted: Optional[int], tokenizer: Any, limit: int) -> int:
    least = tokenizer.num_special_tokens_to_add() + 1
    length = min(MAX_LENGTH, limit) if wanted is None else wanted
    _check("max_length", wanted, least <= length <= limit, f"{least} to {limit}, the lengths that the model supports")
    return length
