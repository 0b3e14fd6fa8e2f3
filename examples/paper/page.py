"""The page of the documentation, made of stored results."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from examples.benchmarks.tables import table
from examples.paper import claims
from examples.paper.experiments import Outcome

INTRODUCTION = (
    "Every table and figure of Filippone & Girolami, *Pseudo-Marginal Bayesian Inference for "
    "Gaussian Processes* (IEEE Transactions on Pattern Analysis and Machine Intelligence 36(11), "
    "2014), run again with this package. A script wrote this page from the results stored beside "
    "it; only the numbers headed *paper* are typed in. The paper's claims are put as quantities "
    "that are positive if the claim is true: it *holds*, or *does not hold*, where the estimate is "
    f"{claims.DECISIVE:g} standard errors or more from zero, and is *undecided* otherwise. "
    "Among so many a few verdicts will be wrong by chance."
)


def page(outcomes: Sequence[Outcome], images: str) -> str:
    """The page.

    Parameters
    ----------
    outcomes : sequence of Outcome
        What to show, in this order.
    images : str
        The folder of the pictures, as seen from the page.
    """
    sections = [_section(outcome, images) for outcome in outcomes]
    return "\n\n".join(
        [
            "# The paper, run again",
            _wrapped(INTRODUCTION),
            _summary(outcomes),
            _disagreements(outcomes),
            *sections,
            _again(outcomes),
        ]
    )


def save_pictures(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Draw all figures into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes:
        figures = outcome.experiment.draw(outcome.settings, outcome.file.results())
        for file, figure in zip(_files(outcome, figures), figures.values(), strict=True):
            figure.savefig(folder / file, dpi=110)


def _section(outcome: Outcome, images: str) -> str:
    experiment, settings, results = outcome.experiment, outcome.settings, outcome.file.results()
    figures = experiment.draw(settings, results)
    pictures = [
        f"![{caption}]({images}/{file})"
        for file, caption in zip(_files(outcome, figures), figures, strict=True)
    ]
    found = experiment.claims(settings, results)
    return "\n\n".join(
        [
            f"## {experiment.TITLE}",
            _wrapped(_effort(outcome)),
            _wrapped_paragraphs(experiment.report(settings, results)),
            *pictures,
            *([claims.as_markdown(found)] if found else []),
        ]
    )


def _files(outcome: Outcome, figures: dict) -> list[str]:
    stem = outcome.name.replace("-", "_")
    if len(figures) == 1:
        return [f"{stem}.png"]
    return [f"{stem}_{number}.png" for number in range(1, len(figures) + 1)]


def _effort(outcome: Outcome) -> str:
    lines = outcome.file.lines.values()
    minutes = sum(line.seconds for line in lines) / 60.0
    left = outcome.unfinished()
    unfinished = f"; {left} more had not been run" if left else ""
    return (
        f"Scale *{outcome.scale}*: {len(outcome.file.lines)} tasks, {minutes:.1f} minutes on one "
        f"core{unfinished}."
    )


def _summary(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for outcome in outcomes:
        found = outcome.experiment.claims(outcome.settings, outcome.file.results())
        count = Counter(claim.verdict for claim in found)
        if found:
            verdicts = ("holds", "undecided", "does not hold")
            counts = [str(count[verdict]) for verdict in verdicts]
            rows.append([outcome.experiment.TITLE, outcome.scale, *counts])
    return table(["claims", "scale", "hold", "undecided", "do not hold"], rows)


def _disagreements(outcomes: Sequence[Outcome]) -> str:
    """The claims that do not hold, in a list."""
    found = [
        f"- {outcome.experiment.TITLE.split(':')[0]}: *{claim.text}*; {claim.quantity}: "
        f"{claim.estimate:.3g} ± {claim.error:.2g}."
        for outcome in outcomes
        for claim in outcome.experiment.claims(outcome.settings, outcome.file.results())
        if claim.verdict == "does not hold"
    ]
    if not found:
        return "No claim was found not to hold."
    return "What does not hold here:\n\n" + "\n".join(found)


def _again(outcomes: Sequence[Outcome]) -> str:
    versions = {
        ", ".join(f"{package} {number}" for package, number in versions.items())
        for outcome in outcomes
        for versions in outcome.file.versions
    }
    scales = list(dict.fromkeys(outcome.scale for outcome in outcomes))
    listed = "\n".join(
        f"python -m examples.paper run all --scale {scale} --results docs/paper "
        "--output docs/paper.md"
        for scale in scales
    )
    return (
        "## Running it again\n\nFrom the root of the repository, after `pip install -e "
        '".[examples]"`:\n\n'
        f"```bash\n{listed}\n```\n\n"
        + _wrapped(
            "Tasks that are stored already are not run again; with another folder for `--results` "
            "all are. `--scheduler ADDRESS` runs them on a Dask cluster. Every task has a seed of "
            "its own, which is stored with its result. The results shown here were computed with "
            f"{'; and '.join(sorted(versions))}."
        )
        + "\n"
    )


def _wrapped_paragraphs(markdown: str) -> str:
    """Paragraphs wrapped, tables as they are."""
    blocks = markdown.split("\n\n")
    return "\n\n".join(block if block.startswith("|") else _wrapped(block) for block in blocks)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, width=120, break_long_words=False, break_on_hyphens=False)
