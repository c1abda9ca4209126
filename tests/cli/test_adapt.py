import inspect

import pytest
from typer.testing import CliRunner

from spacy_weakner.cli.app import app
from spacy_weakner.encoder_tools.adapt import AdaptReport, adapt

REPORT = AdaptReport(90, 10, 1000, 1300, 2, 60, 3.0, 2.0, 12.3, 20, True, True)


def invoke(*args):
    return CliRunner().invoke(app, ["encoder", "adapt", *map(str, args)])


def fake(monkeypatch, report=REPORT):
    seen = {}

    def adapt(inputs, output_path, model, **settings):
        seen.update(settings, inputs=[str(path) for path in inputs], output=str(output_path), model=model)
        return report

    monkeypatch.setattr("spacy_weakner.encoder_tools.adapt.adapt", adapt)
    return seen


OPTIONS = {
    "max_length": 64,
    "eval_share": 0.2,
    "epochs": 3,
    "max_steps": 7,
    "batch_size": 4,
    "learn_rate": 1e-4,
    "mask_rate": 0.3,
    "train_head": True,
    "mixed_precision": "bf16",
    "gpu_id": 1,
    "seed": 2,
    "save_steps": 9,
    "lang": "de",
}


def test_every_setting_is_an_option_and_passed_on(monkeypatch):
    settings = {name: p for name, p in inspect.signature(adapt).parameters.items() if p.kind is p.KEYWORD_ONLY}
    assert set(OPTIONS) | {"progress"} == set(settings)
    seen = fake(monkeypatch)
    args = []
    for name, value in OPTIONS.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            args.append(f"--{option}" if value else f"--no-{option}")
        else:
            args += [f"--{option}", value]
    assert invoke("a", "b", "out", "--model", "m", *args).exit_code == 0
    assert seen == {**OPTIONS, "inputs": ["a", "b"], "output": "out", "model": "m", "progress": True}
    # What is not given has the same default.
    assert invoke("a", "out", "--model", "m").exit_code == 0
    assert {name: seen[name] for name in OPTIONS} == {name: settings[name].default for name in OPTIONS}


def test_the_report_is_printed(monkeypatch):
    fake(monkeypatch)
    output = " ".join(invoke("a", "out", "--model", "m").output.split())
    for part in ("finished already", "90 texts", "10 texts; in all 1000 tokens, 1300 pieces", "split: 2"):
        assert part in output
    for part in ("60, from step 20 on, in 12 s", "from scratch", "3.000 before, 2.000 after (perplexity 20.1, 7.4)"):
        assert part in output


def test_without_held_out_texts_it_says_so(monkeypatch):
    fake(monkeypatch, REPORT._replace(loss_before=None, loss_after=None, resumed=0, skipped=False, new_head=False))
    output = invoke("a", "out", "--model", "m").output
    assert "the loss is unknown" in output and "already" not in output and "from step" not in output


def test_one_process_speaks_for_all(monkeypatch):
    fake(monkeypatch)
    monkeypatch.setenv("RANK", "1")
    assert invoke("a", "out", "--model", "m").output == ""


@pytest.mark.parametrize("args, message", [(["none.txt"], "WK100"), (["none.txt", "--batch-size", "0"], "WK005")])
def test_errors_are_one_line(tmp_path, args, message):
    pytest.importorskip("accelerate")
    result = invoke(tmp_path / args[0], tmp_path / "out", "--model", tmp_path, *args[1:])
    assert result.exit_code == 1 and message in result.stderr and len(result.stderr.splitlines()) == 1
