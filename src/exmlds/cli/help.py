"""The layout of --help: options in groups, and summaries that are not cut."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

GROUPS = {
    "Data": (
        *("text", "row", "rows", "file", "predictions", "labels", "train", "split", "one_based", "filter_"),
        *("text_column", "label_column", "label_separator", "id_column", "format"),
    ),
    "Model": (
        "method",
        "effort",
        "set_",
        "config",
        "seed",
        "time_budget",
        "vectorizer",
        "analyzer",
        "max_words",
        "field_weights",
        "vocabulary",
        "keep_rows",
        "growable",
    ),
    "Output": (
        *(
            "output",
            "output_format",
            "bom",
            "threshold",
            "k",
            "n",
            "label",
            "language",
            "allow",
            "deny",
            "similar",
            "search",
            "typical",
            "title",
        ),
        *("examples", "label_table", "intervals", "card", "feedback_file", "no_feedback", "as_json"),
    ),
    "Advanced": (
        *("label_cooccurrence", "observed", "complete_labels", "checkpoint", "propensity", "resamples"),
        *("encoding", "encoding_errors"),
    ),
}
# The words of Annif for commands and options that have other names here.
ANNIF_COMMANDS = {
    "suggest": "predict",
    "index": "predict",
    "eval": "evaluate",
    "hyperopt": "tune",
    "learn": "update",
    "run": "serve",
}
ANNIF_OPTIONS = {"--limit": "-k"}
OTHERS = "Options"
_GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}


class _GroupedOptions:
    """Write the options of a command in the groups above, in their order."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", *GROUPS, OTHERS)}
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            name, text = param.get_help_record(ctx) or ("", "")
            if param.param_type_name == "argument":
                rows["Arguments"].append((name.partition(" ")[0], text))  # without its type
            elif name:
                rows[_GROUP_OF.get(param.name, OTHERS)].append((name, text))
        for name, records in rows.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


class Command(_GroupedOptions, TyperCommand):
    """A command whose options are grouped."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = [argument.partition("=")[0] for argument in args]
        for option in ANNIF_OPTIONS.keys() & set(given):
            ctx.fail(f"No such option: {option}. Annif's {option} is {ANNIF_OPTIONS[option]} here.")
        ctx.allow_extra_args = True  # so that the message below says what to do
        others = super().parse_args(ctx, args)
        if others and not ctx.resilient_parsing:
            reads_data = "data" in (param.name for param in self.params)
            advice = "; DATA is one file, or a folder of documents" if reads_data else ""
            ctx.fail(f"Got unexpected arguments: {' '.join(others)}{advice}.")
        return others


class Group(_GroupedOptions, TyperGroup):
    """All commands, each with its whole summary."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in ANNIF_COMMANDS:
            ctx.fail(f"No such command {args[0]!r}. Annif's {args[0]} is `exmlds {ANNIF_COMMANDS[args[0]]}`.")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, found.get_short_help_str(1000)) for name, found in commands.items() if found]
            )
