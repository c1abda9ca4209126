"""Masked-language-model training with the `Trainer` of transformers. This module imports torch and transformers: import
it within a function."""

import json
import math
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional

import torch
from torch.nn.functional import cross_entropy
from transformers import DataCollatorForLanguageModeling, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer_callback import PrinterCallback

from ..encoders.transformer import MaskedLM, scores_at
from ..errors import Errors, WeaknerError
from ..progress import Progress
from .pieces import Pieces

if TYPE_CHECKING:
    Trainer = Any  # a decorator hides its attributes from mypy
else:
    from transformers import Trainer

# Seconds that other processes wait while the first one reads the corpus.
_PATIENCE_SECONDS = 24 * 3600
_IGNORED = -100
_STATE = "trainer_state.json"


class TrainedMaskedLM(NamedTuple):
    """The mean loss of the masked pieces of held-out sequences before and after training (None: there are none), the
    number of steps, the step from which the training was resumed, and its seconds."""

    loss_before: Optional[float]
    loss_after: Optional[float]
    steps: int
    resumed: int
    seconds: float


class Arguments(TrainingArguments):
    """Settings of a `Trainer` that uses one GPU, torch's current one. By default, a `Trainer` uses all visible GPUs and
    splits batches between them in one process, which is slower than torchrun with one process per GPU."""

    @property
    def device(self) -> Any:
        device = super().device
        return torch.device("cuda", torch.cuda.current_device()) if device.type == "cuda" else device

    @property
    def n_gpu(self) -> int:
        return min(1, super().n_gpu)


def make_arguments(
    folder: Path, *, gpu_id: int, mixed_precision: str, warmup: float = 0.0, **settings: Any
) -> Arguments:
    """Return the settings of the `Trainer`, whose checkpoints are written to a folder; `warmup` is a share of the
    steps. After this call, the processes of torchrun can wait for each other."""
    count = torch.cuda.device_count()
    if gpu_id >= count:
        raise WeaknerError(Errors.WK432.format(gpu_id=gpu_id, reason=f"the number of GPUs found by torch is {count}"))
    if mixed_precision == "bf16" and not torch.cuda.is_bf16_supported():
        expected = "fp16 or no, since this GPU does not support bf16"
        raise WeaknerError(Errors.WK005.format(setting="mixed_precision", value=mixed_precision, expected=expected))
    # The names of these settings depend on the version of transformers.
    names = Arguments.__dataclass_fields__
    settings["warmup_ratio" if "warmup_ratio" in names else "warmup_steps"] = warmup
    if "group_by_length" in names:
        settings["group_by_length"] = True
    else:
        settings["train_sampling_strategy"] = "group_by_length"
    # Accelerate reads this variable, which may still have the value of an earlier run.
    os.environ["ACCELERATE_MIXED_PRECISION"] = mixed_precision
    args = Arguments(
        output_dir=str(folder),
        use_cpu=gpu_id < 0,
        bf16=mixed_precision == "bf16",
        fp16=mixed_precision == "fp16",
        prediction_loss_only=True,
        remove_unused_columns=False,
        logging_steps=10,
        logging_nan_inf_filter=False,
        report_to="none",
        save_strategy="steps",
        log_level="error",
        log_level_replica="error",
        disable_tqdm=True,
        dataloader_pin_memory=gpu_id >= 0,
        ddp_timeout=_PATIENCE_SECONDS,
        **settings,
    )
    if gpu_id >= 0 and args.world_size == 1:
        torch.cuda.set_device(gpu_id)
    return args


def train_masked_lm(
    masked_lm: MaskedLM, sequences: Pieces, held_out: Pieces, args: Arguments, *, mask_rate: float, progress: bool
) -> TrainedMaskedLM:
    """Train a masked language model, resuming from the last checkpoint in the folder, if there is one."""
    checkpoint = last_checkpoint(Path(str(args.output_dir)))
    resumed = 0 if checkpoint is None else _step(checkpoint)
    collator = DataCollatorForLanguageModeling(masked_lm.tokenizer, mlm_probability=mask_rate)
    trainer = MaskedLMTrainer(model=masked_lm.model, args=args, train_dataset=sequences, data_collator=collator)
    trainer.remove_callback(PrinterCallback)
    watch = Watch(resumed, enabled=progress and args.process_index == 0)
    trainer.add_callback(watch)
    before = _loss(trainer, held_out)
    start = time.monotonic()
    try:
        set_seed(args.seed)
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    finally:
        watch.close()
    seconds = time.monotonic() - start
    return TrainedMaskedLM(before, _loss(trainer, held_out), trainer.state.global_step, resumed, seconds)


def last_checkpoint(folder: Path) -> Optional[Path]:
    """Return the last complete checkpoint. The state of a checkpoint is written last."""
    for found in sorted(folder.glob("checkpoint-*"), key=_step, reverse=True):
        try:
            json.loads((found / _STATE).read_bytes())
        except (OSError, ValueError):
            continue
        return found
    return None


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _loss(trainer: "Trainer", held_out: Pieces) -> Optional[float]:
    """Return the mean loss of the masked pieces of held-out sequences, which are always masked in the same way; None if
    there are none."""
    if not len(held_out):
        return None
    set_seed(trainer.args.seed)
    trainer.totals = 0.0
    trainer.evaluate(held_out)
    total, n = trainer.accelerator.reduce(trainer.totals).tolist()
    return total / n if n else None


class MaskedLMTrainer(Trainer):
    """A `Trainer` whose head computes only masked pieces. A batch without masked pieces has the loss 0. In evaluations,
    `totals` is the sum of the losses of all masked pieces, and their number."""

    totals: Any = 0.0

    def compute_loss(
        self, model: Any, inputs: Dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        inputs = dict(inputs)
        labels = inputs.pop("labels")
        chosen = labels != _IGNORED
        scores = scores_at(model, self.model.base_model, chosen, inputs)
        total, n = cross_entropy(scores.float(), labels[chosen], reduction="sum"), chosen.sum()
        if not model.training:
            self.totals = self.totals + torch.stack([total.detach(), n]).double()
        loss = total / n.clamp(min=1)
        return (loss, {}) if return_outputs else loss


class Watch(TrainerCallback):
    """A callback that shows progress, removes older checkpoints, and raises an error if the loss is not finite."""

    def __init__(self, resumed: int, enabled: bool) -> None:
        self.resumed, self.enabled = resumed, enabled
        self.bar: Optional[Progress[Any]] = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        total, initial = state.max_steps, self.resumed
        self.bar = Progress(total=total, initial=initial, desc="adapt", unit="step", enabled=self.enabled)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.bar is not None:
            self.bar.update()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # `save_total_limit` compares file times, and may take an unfinished checkpoint for the last one.
        if state.is_world_process_zero:
            for checkpoint in Path(str(args.output_dir)).glob("checkpoint-*"):
                if _step(checkpoint) != state.global_step:
                    shutil.rmtree(checkpoint)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        for name in ("loss", "train_loss", "eval_loss"):
            loss = kwargs["logs"].get(name)
            if loss is not None and not math.isfinite(loss):
                raise WeaknerError(Errors.WK006.format(name="adapt", loss=loss))
            if loss is not None and self.bar is not None:
                self.bar.note(loss=loss)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
