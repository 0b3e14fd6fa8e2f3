"""The page of the documentation, made of stored results."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from examples.benchmarks.tables import table
from examples.paper.claims import DECISIVE, Claim, as_markdown
from examples.paper.experiments import Outcome

INTRODUCTION = (
    "Every table and figure of Filippone & Girolami, *Pseudo-Marginal Bayesian Inference for "
    "Gaussian Processes* (IEEE Transactions on Pattern Analysis and Machine Intelligence 36(11), "
    "2014), run again with this package. A script wrote this page from the results stored beside "
    "it; only the numbers headed *paper* are typed in. The paper's claims are put as quantities "
    "that are positive if the claim is true: it *holds*, or *does not hold*, where the estimate is "
    f"{DECISIVE:g} standard errors or more from zero, and is *undecided* otherwise. "
    "Among so many a few verdicts will be wrong by chance. Each section names its scale: *quick* "
    "takes 10 to 20 minutes on two cores for all experiments together, *paper* has the paper's own "
    "lengths, and *medium* lies between."
)


@dataclass(frozen=True)
class Section:
    """What the page has of one experiment.

    Attributes
    ----------
    outcome : Outcome
    report : str
    claims : list of Claim
    figures : dict
        Names of files -> (caption, figure).
    """

    outcome: Outcome
    report: str
    claims: list[Claim]
    figures: dict[str, tuple[str, Figure]]

    @classmethod
    def of(cls, outcome: Outcome) -> Section:
        """Of the results that are there."""
        experiment, known = outcome.experiment, (outcome.settings, outcome.file.results())
        figures = experiment.draw(*known)
        stem = outcome.name.replace("-", "_")
        numbers = [""] if len(figures) == 1 else [f"_{i}" for i in range(1, len(figures) + 1)]
        files = [f"{stem}{number}.png" for number in numbers]
        return cls(
            outcome,
            experiment.report(*known),
            experiment.claims(*known),
            dict(zip(files, figures.items(), strict=True)),
        )

    @property
    def title(self) -> str:
        """As in the paper, with its number."""
        return self.outcome.experiment.TITLE

    def as_markdown(self, images: str) -> str:
        """The section; `images` is the folder of the pictures."""
        pictures = [f"![{caption}]({images}/{file})" for file, (caption, _) in self.figures.items()]
        return "\n\n".join(
            [
                f"## {self.title}",
                _wrapped(_effort(self.outcome)),
                _wrapped_paragraphs(self.report),
                *pictures,
                *([as_markdown(self.claims)] if self.claims else []),
            ]
        )


def page(sections: Sequence[Section], images: str) -> str:
    """The page.

    Parameters
    ----------
    sections : sequence of Section
        In this order.
    images : str
        The folder of the pictures, as seen from the page.
    """
    return "\n\n".join(
        [
            "# The paper, run again",
            _wrapped(INTRODUCTION),
            _summary(sections),
            _disagreements(sections),
            *(section.as_markdown(images) for section in sections),
            _again([section.outcome for section in sections]),
        ]
    )


def save_pictures(sections: Sequence[Section], folder: Path) -> None:
    """Write all figures into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for section in sections:
        for file, (_, figure) in section.figures.items():
            figure.savefig(folder / file, dpi=110)


def _effort(outcome: Outcome) -> str:
    lines = outcome.file.lines.values()
    minutes = sum(line.seconds for line in lines) / 60.0
    left = outcome.unfinished()
    unfinished = f"; {left} more had not been run" if left else ""
    return (
        f"Scale *{outcome.scale}*: {len(outcome.file.lines)} tasks, {minutes:.1f} minutes on one "
        f"core{unfinished}."
    )


def _summary(sections: Sequence[Section]) -> str:
    rows = []
    for section in sections:
        count = Counter(claim.verdict for claim in section.claims)
        if section.claims:
            counts = [str(count[verdict]) for verdict in ("holds", "undecided", "does not hold")]
            rows.append([section.title, section.outcome.scale, *counts])
    return table(["claims", "scale", "hold", "undecided", "do not hold"], rows)


def _disagreements(sections: Sequence[Section]) -> str:
    """The claims that do not hold, in a list."""
    found = [
        f"- {section.title.split(':')[0]}: *{claim.text}*; {claim.quantity}: "
        f"{claim.estimate:.3g} ± {claim.error:.2g}."
        for section in sections
        for claim in section.claims
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
