"""Every Python block of the README runs, and what the documents show is what comes out."""

import doctest
import inspect
import re
from pathlib import Path

import pymc as pm
import pytest

import pymc_pseudomarginal as pmpm

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S)


def test_the_readme_example_runs(monkeypatch, capsys):
    (example,) = blocks(README, "python")
    assert len(example.strip().splitlines()) <= 10  # as its heading says
    full_sample = pm.sample
    monkeypatch.setattr(
        pm,
        "sample",
        lambda **kwargs: full_sample(
            50, tune=50, chains=2, cores=1, random_seed=1, progressbar=False, **kwargs
        ),
    )
    namespace = {}
    exec(example, namespace)
    printed = capsys.readouterr().out
    assert "r_hat" in printed
    assert "sigma" in printed
    assert f"```\n{pmpm.read_model(namespace['model'])!r}\n```" in README


@pytest.mark.parametrize(
    "document", ["README.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_lead_somewhere(document):
    path = ROOT / document
    for target in re.findall(r"\]\(([^)#\s]+)\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_signatures_in_the_api_page_are_the_real_ones():
    text = "".join((ROOT / "docs" / name).read_text() for name in ("api.md", "plots.md"))
    text = re.sub(r"\s+", " ", text)
    for function, owner in (
        *((getattr(pmpm, name), "pmpm") for name in pmpm.step_methods.__all__),
        (pmpm.read_model, "pmpm"),
        (pmpm.estimate_log_marginal, "pmpm"),
        (pmpm.estimator_spread, "pmpm"),
        (pmpm.fit_marginal, "pmpm"),
        (pmpm.certify, "pmpm"),
        (pmpm.predict, "pmpm"),
        (pmpm.predict_approximately, "pmpm"),
        (pmpm.GPClassifier, "pmpm"),
        (pmpm.capacity_scores, "pmpm"),
        (pmpm.datasets.load, "pmpm.datasets"),
        (pmpm.ops.approximate_log_marginal, "pmpm.ops"),
        (pmpm.ops.importance_log_marginal, "pmpm.ops"),
        *((getattr(pmpm.plots, name), "pmpm.plots") for name in pmpm.plots.__all__),
    ):
        parameters = inspect.signature(function).parameters.values()
        # rng and blocked are PyMC's, not the user's.
        shown = [p for p in parameters if p.name not in ("rng", "blocked")]
        names = []
        for p in shown:
            if p.kind is p.KEYWORD_ONLY and "*" not in names:
                names.append("*")
            default = "" if p.default is p.empty else f"={p.default!r}".replace("'", '"')
            names.append(f"{p.name}{default}")
        assert f"{owner}.{function.__name__}({', '.join(names)})" in text


def test_the_example_of_read_model_prints_what_it_says():
    (example,) = doctest.DocTestFinder().find(pmpm.read_model, "read_model", module=False)
    assert doctest.DocTestRunner().run(example).failed == 0
