"""The training loop of `adapt`. Unlike other stages it imports torch and transformers: import it in a function."""

import math
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional, Tuple

import numpy
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from transformers import TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from ..errors import Errors, WeaknerError
from ..progress import Progress
from .masking import HELD_OUT_EPOCH, IGNORED, MaskedPieces, Plan, Schedule
from .pieces import Pieces
from .runs import checkpoint_step, last_checkpoint

if TYPE_CHECKING:
    Trainer = Any  # a decorator hides its attributes from mypy
else:
    from transformers import Trainer

# Other processes wait while the first one reads the corpus.
_PATIENCE_SECONDS = 24 * 3600
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Trained(NamedTuple):
    """What came of it.

    before (Optional[float]): Mean loss of masked pieces of what was held out; None: nothing was.
    after (Optional[float]): The same after training.
    resumed (int): Step of the checkpoint that the training went on from.
    seconds (float): Time of training.
    """

    before: Optional[float]
    after: Optional[float]
    resumed: int
    seconds: float


class Arguments(TrainingArguments):
    """Settings of a `Trainer` that uses one GPU, the current one of torch. By default it takes all that it sees, and
    splits batches between them in one process; that is slower than the processes of torchrun, which have one each."""

    @property
    def device(self) -> Any:
        device = super().device
        return torch.device("cuda", torch.cuda.current_device()) if device.type == "cuda" else device

    @property
    def n_gpu(self) -> int:
        return min(1, super().n_gpu)


def make_arguments(folder: Path, *, gpu_id: int, mixed_precision: str, **settings: Any) -> Arguments:
    """Settings of the `Trainer`. From here on, the processes of torchrun can wait for each other.

    folder (Path): Where checkpoints go.
    gpu_id (int): The GPU; -1 is the CPU. With torchrun, each process takes one of its own.
    mixed_precision (str): "no", "bf16" or "fp16".
    settings (Any): Others of `TrainingArguments`.
    RETURNS (Arguments): The settings.
    RAISES (WeaknerError): If there is no such GPU, or it has no bf16.
    """
    if gpu_id >= torch.cuda.device_count():
        raise WeaknerError(Errors.WK357.format(gpu_id=gpu_id, count=torch.cuda.device_count()))
    if mixed_precision == "bf16" and not torch.cuda.is_bf16_supported():
        expected = "fp16 or no, since this GPU has no bf16"
        raise WeaknerError(Errors.WK005.format(setting="mixed_precision", value=mixed_precision, expected=expected))
    # Accelerate reads it from there, and would find that of an earlier run.
    os.environ["ACCELERATE_MIXED_PRECISION"] = mixed_precision
    args = Arguments(
        output_dir=str(folder),
        use_cpu=gpu_id < 0,
        bf16=mixed_precision == "bf16",
        fp16=mixed_precision == "fp16",
        dataloader_pin_memory=gpu_id >= 0,
        ddp_timeout=_PATIENCE_SECONDS,
        save_strategy="steps",
        logging_nan_inf_filter=False,
        log_level="error",
        log_level_replica="error",
        disable_tqdm=True,
        report_to="none",
        **settings,
    )
    if gpu_id >= 0 and args.world_size == 1:
        torch.cuda.set_device(gpu_id)
    return args


def train(
    model: Any,
    tokenizer: Any,
    pieces: Pieces,
    held_out: Pieces,
    plan: Plan,
    args: Arguments,
    progress: bool = False,
) -> Trained:
    """Train a masked language model, from its last checkpoint on if there is one.

    model (Any): The model, which is changed.
    tokenizer (Any): Its tokenizer.
    pieces (Pieces): What to train on.
    held_out (Pieces): What to measure the loss on.
    plan (Plan): How to train.
    args (Arguments): Settings of the `Trainer`.
    progress (bool): Show how far it has come.
    RETURNS (Trained): What came of it.
    RAISES (WeaknerError): If the loss is not a number.
    """
    args.max_steps = plan.steps
    args.per_device_train_batch_size = plan.batch_size
    args.logging_steps = max(1, min(50, plan.steps // 20))
    checkpoint = last_checkpoint(Path(str(args.output_dir)))
    resumed = 0 if checkpoint is None else checkpoint_step(checkpoint)
    watch = Watch(plan.steps, resumed, hidden=not progress or args.process_index > 0)
    trainer = MaskedLMTrainer(model, args, MaskedPieces(pieces, tokenizer, plan), watch)
    measured = MaskedPieces(held_out, tokenizer, plan)
    before = trainer.held_out_loss(measured)
    begin = time.monotonic()
    try:
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    finally:
        watch.close()
    seconds = time.monotonic() - begin
    return Trained(before, trainer.held_out_loss(measured), resumed, seconds)


class MaskedLMTrainer(Trainer):
    """A `Trainer` whose loss is the mean over all masked pieces of a step, in all processes. The head sees nothing but
    masked pieces: it costs as much as a small encoder, and its other predictions would not be looked at.

    model (Any): A masked language model. Its head must work piece by piece, as all those of transformers do.
    args (Arguments): Settings.
    masked (MaskedPieces): What to train on.
    callback (TrainerCallback): Is told of every step.
    """

    def __init__(self, model: Any, args: Arguments, masked: MaskedPieces, callback: TrainerCallback) -> None:
        super().__init__(model=model, args=args, train_dataset=masked, callbacks=[callback])
        self.remove_callback(PrinterCallback)
        self.masked = masked
        self.chosen: Any = None
        model.base_model.register_forward_hook(self._leave_chosen)

    def get_train_dataloader(self) -> DataLoader:
        """One batch per step: the share of this process."""
        args = self.args
        schedule = Schedule(self.masked.pieces.lengths, self.masked.plan, args.process_index, args.world_size)
        pin_memory = args.dataloader_pin_memory
        return DataLoader(
            self.masked,  # type: ignore[arg-type]
            batch_sampler=schedule,
            collate_fn=self._collate,
            pin_memory=pin_memory,
        )

    def compute_loss(
        self, model: Any, inputs: Dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Mean loss of the masked pieces of a batch."""
        total, n = self._total_loss(model, inputs)
        # The gradients of all processes are averaged.
        share = self.accelerator.reduce(n.float(), "mean")
        return total / share.clamp(min=1 / self.args.world_size)

    def held_out_loss(self, masked: MaskedPieces) -> Optional[float]:
        """Mean loss of masked pieces; their masks are always the same.

        masked (MaskedPieces): The sequences.
        RETURNS (Optional[float]): The loss; None without any masked piece.
        """
        args, size = self.args, masked.plan.batch_size
        order = numpy.argsort(-masked.pieces.lengths, kind="stable")
        total = torch.zeros(2, dtype=torch.float64, device=args.device)
        dtype = _DTYPES.get(self.accelerator.mixed_precision)
        self.model.eval()
        with torch.no_grad(), torch.autocast(args.device.type, dtype=dtype, enabled=dtype is not None):
            for start in range(args.process_index * size, len(order), args.world_size * size):
                items = [masked[HELD_OUT_EPOCH, int(i)] for i in order[start : start + size]]
                total += torch.stack(self._total_loss(self.model, self._prepare_inputs(self._collate(items))))
        loss, n = self.accelerator.reduce(total, "sum").tolist()
        return loss / n if n else None

    def _collate(self, items: Any) -> Dict[str, torch.Tensor]:
        return {name: torch.from_numpy(array) for name, array in self.masked.collate(items).items()}

    def _total_loss(self, model: Any, inputs: Dict[str, Any]) -> Tuple[torch.Tensor, torch.Tensor]:
        """Summed loss of the masked pieces, and their number."""
        self.chosen = inputs["labels"] != IGNORED
        output = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], return_dict=True)
        loss = cross_entropy(output.logits[0].float(), inputs["labels"][self.chosen], reduction="sum")
        return loss, self.chosen.sum()

    def _leave_chosen(self, encoder: Any, inputs: Any, output: Any) -> None:
        output.last_hidden_state = output.last_hidden_state[self.chosen].unsqueeze(0)


class Watch(TrainerCallback):
    """Shows a bar, refuses a loss that is not a number, and removes older checkpoints.

    steps (int): Number of steps.
    resumed (int): Step at which the training begins.
    hidden (bool): Show nothing.
    """

    def __init__(self, steps: int, resumed: int, hidden: bool) -> None:
        self.bar: Progress[Any] = Progress(total=steps, initial=resumed, desc="adapt", unit="step", enabled=not hidden)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.bar.update()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # `save_total_limit` takes one that was never finished for the last.
        if state.is_world_process_zero:
            for checkpoint in Path(args.output_dir).glob("checkpoint-*"):
                if checkpoint_step(checkpoint) != state.global_step:
                    shutil.rmtree(checkpoint)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs = kwargs["logs"]
        loss = logs["loss"] if "loss" in logs else logs["train_loss"]  # of the last steps, or at the end of all
        if not math.isfinite(loss):
            raise WeaknerError(Errors.WK006.format(name="adapt", loss=loss))
        self.bar.note(loss=loss)

    def close(self) -> None:
        """Remove the bar."""
        self.bar.close()
