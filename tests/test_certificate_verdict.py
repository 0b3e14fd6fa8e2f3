"""What `certify` says of figures made by hand: every rule, its remedy, and the report."""

import numpy as np
import pytest
import xarray as xr

from pymc_pseudomarginal.certificate import Certificate, Finding
from pymc_pseudomarginal.certificate.chains import convergence_figures
from pymc_pseudomarginal.certificate.importance_rules import find_problems
from pymc_pseudomarginal.certificate.verdict import _rhat_by_chance
from pymc_pseudomarginal.certificate.weights import tail_limit


@pytest.fixture
def fine():
    """Figures against which nothing speaks."""
    thetas, chains = np.ones(20), np.ones(4)
    return xr.Dataset(
        {
            "log_weight_sd": ("theta", thetas),
            "log_estimate_sd": ("theta", 0.3 * thetas),
            "pareto_k": ("theta", 0.4 * thetas),
            "bias": ("theta", -0.1 * thetas),
            "bias_error": ("theta", 0.01 * thetas),
            "bias_sd": 0.0,
            "bias_range": 0.0,
            "acceptance": ("chain", 0.25 * chains),
            "longest_run": ("chain", 20 * chains.astype(int)),
            "run_start": ("chain", 100 * np.arange(4)),
            "explained_run": 70.0,
            "proposals": ("chain", 1000 * chains.astype(int)),
            "failed": ("chain", np.zeros(4, dtype=int)),
            "rhat": ("hyperparameter", [1.002, 1.003]),
            "ess_bulk": ("hyperparameter", [500.0, 600.0]),
            "ess_tail": ("hyperparameter", [450.0, 550.0]),
            "latent_rhat": ("latent", [1.0, 1.001, np.nan]),
            "latent_ess_bulk": ("latent", [900.0, 800.0, np.nan]),
            "latent_ess_tail": ("latent", [700.0, 600.0, np.nan]),
        },
        coords={
            "hyperparameter": ["ls", "sigma"],
            "latent": ["f[0]", "f[1]", "f[2]"],
            "chain": [0, 1, 2, 3],
        },
        attrs={
            "step": "PseudoMarginalMH",
            "approximation": "laplace",
            "n_importance": 16,
            "annealing": 0,
            "samples": 1024,
            "draws": 1000,
            "latent": "f",
        },
    )


def changed(dataset, name, index, value):
    values = dataset[name].values.copy()
    values[index] = value
    return dataset.assign({name: (dataset[name].dims, values)})


@pytest.mark.parametrize(
    ("name", "index", "value", "what", "words"),
    [
        ("pareto_k", slice(0, 3), 0.8, "tail of the weights", "above 0.67 at 3 of 20"),
        ("log_estimate_sd", slice(0, 11), 2.0, "noise", "n_importance=64"),
        (
            "longest_run",
            2,
            71,
            "stuck chain",
            "for 71 draws in a row, from draw 200 on",
        ),
        ("acceptance", 0, 0.0, "stuck chain", "Chain 0 accepted none of 20 proposals"),
        ("failed", 1, 41, "failed proposals", "41 of 4000 proposals"),
        ("bias", 3, np.nan, "failed approximation", "at 1 of 20 posterior draws"),
        ("rhat", 0, 1.02, "R-hat", "R-hat of ls is 1.020"),
        ("latent_rhat", 1, 1.5, "R-hat", "R-hat of f[1] is 1.500"),
        ("ess_bulk", 1, 130.0, "effective sample size", "of sigma is 130, below 400"),
        ("latent_ess_bulk", 0, 4.0, "effective sample size", "about 100000."),
        (
            "ess_tail",
            0,
            200.0,
            "effective sample size",
            "The tail ESS of ls is 200, below 400",
        ),
        ("latent_ess_tail", 1, 100.0, "effective sample size", "tail ESS of f[1] is 100"),
    ],
)
def test_every_rule_finds_what_it_should(fine, name, index, value, what, words):
    assert find_problems(fine) == ()
    (finding,) = find_problems(changed(fine, name, index, value))
    assert finding.what == what
    assert words in str(finding)


def test_a_tail_at_few_thetas_or_of_weights_that_hardly_differ_is_let_pass(fine):
    assert find_problems(changed(fine, "pareto_k", slice(0, 2), 0.8)) == ()
    quiet = changed(fine, "log_estimate_sd", slice(None), 0.1)
    assert find_problems(changed(quiet, "pareto_k", slice(None), 0.9)) == ()


def test_remedies_are_not_those_in_use(fine):
    bad = changed(changed(fine, "pareto_k", slice(None), 2.0), "log_estimate_sd", 0, 0.3)
    (finding,) = find_problems(bad)
    assert 'approximation="ep" or annealing=16' in finding.remedy
    (finding,) = find_problems(bad.assign_attrs(approximation="ep", annealing=16))
    assert "approximation" not in finding.remedy
    assert "annealing=32" in finding.remedy
    (finding,) = find_problems(bad.assign_attrs(step="PseudoMarginalHMC"))
    assert 'approximation="ep" or PseudoMarginalMH(annealing=16)' in finding.remedy
    failed = changed(fine, "bias", 0, np.nan).assign_attrs(approximation="ep")
    assert 'approximation="laplace"' in find_problems(failed)[0].remedy
    # Of weights without a finite spread, a number of samples that is worth a try.
    endless = changed(fine, "log_estimate_sd", slice(None), np.inf)
    assert "n_importance=256" in find_problems(endless)[0].remedy


def test_where_the_weights_are_bad_more_draws_are_no_remedy(fine):
    bad = changed(changed(fine, "rhat", 0, 1.1), "ess_bulk", 0, 10.0)
    bad = changed(changed(bad, "log_estimate_sd", slice(None), 5.0), "longest_run", 0, 500)
    remedies = {finding.what: finding.remedy for finding in find_problems(bad)}
    assert remedies["R-hat"].startswith("Make the weights better first")
    assert remedies["effective sample size"].startswith("Make the weights better first")
    assert "tuning" not in remedies["stuck chain"]


def test_r_hat_that_chance_explains_asks_for_more_draws_alone(fine):
    # Eight halves of 62 effective draws: the largest of eight is below 1.026 with 99 %.
    (finding,) = find_problems(changed(fine, "rhat", 0, 1.015))
    assert "as chance gives it in one of 5 elements" in finding.problem
    assert finding.remedy == "Sample more draws per chain, about 2000."
    for unexplained in (
        changed(fine, "rhat", 0, 1.03),
        changed(changed(fine, "rhat", 0, 1.015), "ess_bulk", 0, 399.0),
    ):
        finding = find_problems(unexplained)[0]
        assert "the chains have not come together" in finding.problem


def test_chance_gives_an_r_hat_of_that_size():
    """Of mixed chains, the largest R-hat of all elements is above it in about 1 % of runs."""
    rng, runs, elements = np.random.default_rng(1), 100, 5
    found, limits = np.empty((2, runs))
    for i in range(runs):
        draws = rng.standard_normal((elements, 2, 200))
        values = convergence_figures(dict(enumerate(draws)), "hyperparameter", progressbar=False)
        dataset = xr.Dataset(values, {"hyperparameter": range(elements), "chain": [0, 1]})
        worst = int(dataset["rhat"].argmax("hyperparameter"))
        found[i], limits[i] = dataset["rhat"][worst], _rhat_by_chance(dataset, worst)
    assert (found > limits).sum() <= 5  # more than 5 of 100 have a probability of 6e-4
    assert (found > 1.0 + 0.4 * (limits - 1.0)).sum() > 10  # and it is not far too large


def test_one_chain_is_not_enough(fine):
    dataset = fine.isel(chain=[0])
    dataset["rhat"][:] = dataset["latent_rhat"][:] = np.nan
    assert [finding.what for finding in find_problems(dataset)] == ["single chain"]


def test_the_limit_of_the_shape_depends_on_the_sample():
    assert tail_limit(100) == pytest.approx(0.5)
    assert tail_limit(10**6) == 0.7


# The report


def test_report_of_a_run_that_passed(fine):
    text = str(Certificate(fine, ()))
    lines = text.splitlines()
    assert lines[:3] == [
        "Certificate: passed",
        "  4 × 1000 draws of PseudoMarginalMH, Laplace, n_importance=16",
        "  weights: 1024 at each of 20 posterior draws",
    ]
    assert lines[4].split() == ["smallest", "median", "largest"]
    table = {line[:36].strip(): line[36:].split() for line in lines[5:19]}
    assert table["R-hat of theta"] == ["1.002", "1.002", "1.003"]
    assert table["bulk ESS of f"] == ["800", "850", "900"]
    assert len({len(line) for line in lines[4:19]}) == 1  # the columns are aligned
    assert "varies by no more than its Monte Carlo error explains." in " ".join(text.split())
    varying = Certificate(fine.assign(bias_sd=0.25, bias_range=1.0), ())
    assert "approximation varies by 0.25 nats (sd; range 1)" in str(varying)
    assert lines[-1] == "Nothing speaks against these draws."


def test_report_of_a_run_that_did_not_pass(fine):
    finding = Finding("noise", "It is <loud>.", "Be quiet.")
    certificate = Certificate(fine.assign_attrs(annealing=4, approximation="ep"), (finding,))
    assert not certificate.passed
    assert repr(certificate).splitlines()[-3:] == [
        "What speaks against these draws:",
        "- noise: It is <loud>.",
        "  → Be quiet.",
    ]
    assert "draws of PseudoMarginalMH, EP, n_importance=16, 4 temperatures" in repr(certificate)
    html = certificate._repr_html_()
    assert html.startswith("<pre>Certificate: not passed")
    assert "&lt;loud&gt;" in html
