"""The layers of docs/design.md, held by parsing the imports."""

import ast
from pathlib import Path

import pytest

import pymc_pseudomarginal as pmpm

PACKAGE = Path(pmpm.__file__).parent
ROOT = PACKAGE.parent

# What each part may import of the package besides itself.
ALLOWED = {
    "numerics": set(),
    "linalg": {"numerics"},
    "approximations": {"linalg", "numerics"},
    "kernels": {"numerics"},
    "tuning": {"kernels", "numerics"},
    "reading": {"linalg", "model", "numerics"},
    "arguments": {"numerics"},
    "transitions": {"numerics"},
    "ops": {"arguments", "numerics"},
    "model": {"numerics"},
    "step_methods": {
        "approximations",
        "arguments",
        "kernels",
        "model",
        "numerics",
        "reading",
        "transitions",
        "tuning",
    },
    "estimate": {"arguments", "model", "numerics", "transitions"},
    "prediction": {"arguments", "model", "numerics"},
    "certificate": {
        "approximations",
        "arguments",
        "model",
        "numerics",
        "prediction",
        "reading",
        "transitions",
    },
    "fit": {"arguments", "model", "numerics"},
    "spread": {"arguments", "model", "numerics"},
    "datasets": set(),
    "scores": set(),
    "diagnostics": {"arguments"},
    "plots": {"arguments", "diagnostics", "scores"},
    "classifier": {"model", "prediction", "step_methods"},
    "__init__": {
        "certificate",
        "classifier",
        "datasets",
        "estimate",
        "fit",
        "model",
        "ops",
        "plots",
        "prediction",
        "reading",
        "scores",
        "spread",
        "step_methods",
    },
}
# Parts that must work without PyMC and PyTensor.
FRAMEWORK_FREE = {
    "approximations",
    "arguments",
    "kernels",
    "linalg",
    "numerics",
    "transitions",
    "tuning",
}
FRAMEWORKS = {"pymc", "pytensor", "arviz", "xarray"}


def part_of(path):
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == PACKAGE.name:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module


MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way_only(path):
    part = part_of(path)
    for name in imported_modules(path):
        root, *rest = name.split(".")
        if root == PACKAGE.name and rest:
            assert rest[0] == part or rest[0] in ALLOWED[part], f"{part} imports {name}"
        if part in FRAMEWORK_FREE:
            assert root not in FRAMEWORKS, f"{part} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_are_short(path):
    source = path.read_text()
    assert len(source.splitlines()) <= 320
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            body = [n for n in node.body if not isinstance(getattr(n, "value", None), ast.Constant)]
            length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert length <= 48, f"{node.name} has {length} lines"


def test_public_names_are_these():
    assert pmpm.__all__ == [
        "ApproximateMarginalMH",
        "CapacityScores",
        "CentredMH",
        "Certificate",
        "EllipticalSlice",
        "GPClassifier",
        "LatentGaussianModel",
        "LatentHMC",
        "MarginalEstimate",
        "MarginalFit",
        "PseudoMarginal",
        "PseudoMarginalHMC",
        "PseudoMarginalMH",
        "PseudoMarginalStep",
        "SurrogateMH",
        "UnsupportedModelError",
        "WhitenedMH",
        "capacity_scores",
        "certify",
        "datasets",
        "estimate_log_marginal",
        "estimator_spread",
        "fit_marginal",
        "ops",
        "plots",
        "predict",
        "predict_approximately",
        "read_model",
    ]
    for name in pmpm.__all__:
        assert getattr(pmpm, name).__doc__


def test_the_package_is_typed_and_versioned():
    assert (PACKAGE / "py.typed").exists()
    assert f"version: {pmpm.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {pmpm.__version__}" in (ROOT / "CHANGELOG.md").read_text()
