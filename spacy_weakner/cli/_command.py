"""Makes commands from public functions: the signature gives the parameters, the docstring the help texts.

Parameters before `*` in the signature become arguments, keyword-only parameters become options; the help text of a
parameter is its line in the docstring. So nothing is declared twice, and the Python API has the same parameters.
"""

import copy
import inspect
import re
from collections import Counter, abc
from pydoc import locate
from types import MappingProxyType, SimpleNamespace
from typing import (
    Annotated,
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import typer
from typer.core import TyperCommand

from ._util import HELP, SEED_RANGE, reporting, reports

R = TypeVar("R")
_FIELD = re.compile(r"(\w+(?:, \w+)*)(?: \(.+?\))?: (.*)")
_DEFAULT = re.compile(r"[;.] None(?:: | is )(.+?)(?=\. |\.?$)")
# What to do where several values are natural, by the name of the option.
_SEVERAL = {
    **dict.fromkeys(("text", "gold", "dev", "test"), "Put the files into a folder, and give that."),
    **dict.fromkeys(("terms", "pipeline"), "Declare each of them in a file of sources (--sources)."),
    "term_label": "Give each list a column 'label', or declare each in a file of sources (--sources).",
}
_ELSEWHERE = re.compile(r"See `([\w.]+)`.*|.*as for `\w+`.*")


def command(
    app: typer.Typer,
    function: Callable[..., R],
    name: Optional[str] = None,
    *,
    settings: Mapping[Any, Iterable[str]] = MappingProxyType({}),
    before: Callable[[Any], None] = lambda given: None,
    writes: Sequence[str] = (),
    without: Sequence[str] = (),
    hidden: bool = False,
    **declared: Any,
) -> Callable[[Callable[[R, Any], None]], Callable[[R, Any], None]]:
    """Make a command from a function. The result decorates the function that shows what the command returns.

    app (typer.Typer): The application that gets the command.
    function (Callable[..., R]): A function with a docstring in the form of this package.
    name (Optional[str]): Name of the command; None: that of the function.
    settings (Mapping[type, Iterable[str]]): Further options: names of fields, by the class that declares them. The
        function takes them as `**settings`.
    before (Callable[[Any], None]): Called before the function with all parsed values (`given.input_path`, and
        typer's `given.ctx`), to check or change them.
    writes (Sequence[str]): Parameters that are files of reports; see `reports`.
    without (Sequence[str]): Parameters that are no options: they keep their defaults.
    hidden (bool): Leave it out of `--help`.
    **declared (Any): Types such as `Annotated[str, typer.Option("--name")]` that replace those of parameters, or
        declare options that the function does not have. Other values are passed to the function unchanged.
    RETURNS (Callable): Decorates a function that takes the result and all parsed values, and returns it unchanged.
    """
    fixed = {key: value for key, value in declared.items() if get_origin(value) is not Annotated}
    declared = {key: value for key, value in declared.items() if key not in fixed}
    taken = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    if any(p.name == "progress" for p in taken):
        fixed["progress"] = True
    taken = [p for p in taken if p.name not in fixed and p.name not in without]
    hints, help_ = get_type_hints(function), parameter_docs(function)
    for owner, names in settings.items():
        fields, types = inspect.signature(owner).parameters, get_type_hints(owner)
        for name_ in (name_ for name_ in names if name_ not in without):
            taken.append(fields[name_].replace(kind=inspect.Parameter.KEYWORD_ONLY))
            hints[name_], help_[name_] = types[name_], parameter_docs(owner)[name_]
    options = [_option(p, declared.pop(p.name, hints[p.name]), help_.get(p.name, "")) for p in taken]
    options += [_extra_option(key, type_) for key, type_ in declared.items()]
    defaults = {p.name: p.default for p in taken}

    def decorate(show: Callable[[R, Any], None]) -> Callable[[R, Any], None]:
        def run(**options: Any) -> None:
            given = SimpleNamespace(**options)
            with reporting():
                before(given)
                passed = {name: getattr(given, name) for name in defaults}
                # For a list that is not given, typer passes None; the function expects its own, empty default.
                passed = {name: value for name, value in passed.items() if value is not None or defaults[name] is None}
                with reports(given, *writes):
                    show(call(function, {**passed, **fixed}), given)

        # The help has only the first paragraph, without a last sentence that introduces a list or formula.
        text = inspect.cleandoc(function.__doc__ or "").split("\n\n")[0].replace("`", "")
        run.__doc__ = re.sub(r"[^.]*:$", "", text).strip()
        # Arguments come first, and required parameters before optional ones.
        options.sort(key=lambda option: (_is_option(option), option.default is not option.empty))
        context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        run.__annotations__ = {option.name: option.annotation for option in (context, *options)}
        run.__signature__ = inspect.Signature([context, *options])  # type: ignore[attr-defined]
        summary = first_sentence(run.__doc__)
        app.command(name or function.__name__, cls=Command, hidden=hidden, short_help=summary)(run)
        return show

    return decorate


class Command(TyperCommand):
    """A command that refuses repeated options: of several values of one option, only the last would count."""

    def parse_args(self, ctx: Any, args: List[str]) -> List[str]:
        given: Counter[Any] = Counter(self.make_parser(ctx).parse_args([*args])[2])
        for option, n in given.items():
            if n > 1 and option.param_type_name == "option" and not (option.multiple or option.is_eager):
                cure = _SEVERAL.get(str(option.name), "")
                raise typer.BadParameter(f"It is given {n} times, but has one value. {cure}".strip(), ctx, option)
        return super().parse_args(ctx, args)


def call(function: Callable[..., R], given: Mapping[str, Any]) -> R:
    """Call the function of a command; tests replace this step."""
    return function(**given)


def first_sentence(text: str) -> str:
    """Return the first sentence of a help text."""
    return re.split(r"(?<=\.)(?<! al\.) ", " ".join(text.split()))[0]


def parameter_docs(owner: Any) -> Dict[str, str]:
    """Return the description of each parameter in a docstring, on one line; "See ..." is not followed."""
    found: Dict[str, str] = {}
    names: List[str] = []
    owners = reversed(inspect.getmro(owner)) if inspect.isclass(owner) else [owner]
    for line in "\n\n".join(inspect.cleandoc(documented.__doc__ or "") for documented in owners).splitlines():
        field = _FIELD.fullmatch(line)
        if field is not None:
            names = field[1].split(", ")
            found.update(dict.fromkeys(names, field[2]))
        elif names and line.startswith("    "):
            found.update({name: f"{found[name]} {line.strip()}" for name in names})
        else:
            names = []
    return found


def _option(parameter: inspect.Parameter, hint: Any, help_: str) -> inspect.Parameter:
    elsewhere = _ELSEWHERE.fullmatch(help_)
    if elsewhere is not None and parameter.name in HELP and get_origin(hint) is not Annotated:
        help_ = HELP[parameter.name]
    elif elsewhere is not None and elsewhere[1]:
        help_ = parameter_docs(locate(f"spacy_weakner.{elsewhere[1]}"))[parameter.name]
    type_, info = get_args(hint) if get_origin(hint) is Annotated else (_simple_type(hint), None)
    info = copy.copy(info)  # several parameters may share it
    is_option = parameter.kind is parameter.KEYWORD_ONLY or isinstance(info, typer.models.OptionInfo)
    if info is None:
        flag = [f"--{parameter.name.replace('_', '-')}"] if type_ is bool and parameter.default is False else []
        info = typer.Option(*flag) if is_option else typer.Argument()
    if info.help is None:
        info.help = _DEFAULT.sub(r" (default: \1)", help_.replace("`", "")).rstrip(".")
    if parameter.name == "seed":
        info.min, info.max = SEED_RANGE
    default = parameter.default
    if is_option and get_origin(type_) is list:
        info.help += " (repeatable)"
        type_, default = Optional[type_], None
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[type_, info]
    )


def _extra_option(name: str, type_: Any) -> inspect.Parameter:
    default = False if get_args(type_)[0] is bool else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=type_)


def _is_option(parameter: inspect.Parameter) -> bool:
    return isinstance(get_args(parameter.annotation)[1], typer.models.OptionInfo)


def _simple_type(hint: Any) -> Any:
    """Return the type to parse on the command line, given the type that the function takes."""
    members = [member for member in get_args(hint) if member is not type(None)]
    if get_origin(hint) is Union:
        simple = str if str in members else _simple_type(members[0])
        return Optional[simple] if type(None) in get_args(hint) else simple
    if get_origin(hint) in (abc.Sequence, list) or (get_origin(hint) is tuple and members[-1] is ...):
        return List[_simple_type(members[0])]  # type: ignore[misc]
    return str if get_origin(hint) is Literal else hint
