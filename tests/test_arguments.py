"""Bad arguments are refused at once, with a message that says what was found."""

import numpy as np
import pymc as pm
import pytest
from models import gp_probit

from pymc_pseudomarginal import EllipticalSlice, PseudoMarginalMH, estimate_log_marginal


@pytest.fixture(scope="module")
def model():
    return gp_probit(d=2, ard=True)


@pytest.mark.parametrize(
    ("use", "argument", "value"),
    [
        (PseudoMarginalMH, "approximation", "Laplace"),
        (PseudoMarginalMH, "approximation", None),
        (PseudoMarginalMH, "n_importance", 0),
        (PseudoMarginalMH, "n_importance", 1.5),
        (PseudoMarginalMH, "n_importance", True),
        (PseudoMarginalMH, "n_importance", "16"),
        (PseudoMarginalMH, "target_accept", 0),
        (PseudoMarginalMH, "target_accept", 1),
        (PseudoMarginalMH, "target_accept", np.nan),
        (PseudoMarginalMH, "target_accept", "0.3"),
        (PseudoMarginalMH, "latent_moves", -1),
        (PseudoMarginalMH, "latent_moves", 0.5),
        (EllipticalSlice, "moves", 0),
        (EllipticalSlice, "moves", 2.5),
        (estimate_log_marginal, "approximation", "vb"),
        (estimate_log_marginal, "n_importance", 0),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_bad_value_is_named_with_its_argument(model, use, argument, value):
    with pytest.raises(ValueError, match=argument) as error:
        use(**{argument: value}, model=model)
    assert repr(value) in str(error.value)


@pytest.mark.parametrize("step", [PseudoMarginalMH, EllipticalSlice], ids=lambda f: f.__name__)
def test_an_unknown_variable_is_named(model, step):
    with pytest.raises(ValueError, match=r"'tau' is not a free variable.*ls, sigma"):
        step(vars=["tau"], model=model)


def test_the_elliptical_slice_moves_the_latent_only(model):
    with pytest.raises(ValueError, match="moves the latent 'f', not 'ls'"):
        EllipticalSlice(vars=[model["ls"]], model=model)


@pytest.mark.parametrize("latent", ["f", "f_rotated_"])
def test_pseudo_marginal_needs_a_hyper_parameter(model, latent):
    with pytest.raises(ValueError, match=r"no hyper-parameter to move.*EllipticalSlice for 'f'"):
        PseudoMarginalMH(vars=[model[latent]], model=model)


def test_pseudo_marginal_refuses_variables_that_it_cannot_move(model):
    with pytest.raises(ValueError, match="'y'"):
        PseudoMarginalMH(vars=["ls", "sigma", "y"], model=model)


def test_a_retained_estimate_needs_all_hyper_parameters(model):
    with pytest.raises(ValueError, match=r"refresh=False.*sigma"):
        PseudoMarginalMH(vars=["ls"], refresh=False, model=model)


@pytest.mark.parametrize(
    ("given", "moved"),
    [
        (None, ["ls_log__", "sigma_log__", "f_rotated_"]),
        ("ls", ["ls_log__", "f_rotated_"]),
        (["sigma", "ls"], ["ls_log__", "sigma_log__", "f_rotated_"]),
        (["f", "ls_log__"], ["ls_log__", "f_rotated_"]),
        (["sigma", "f_rotated_"], ["sigma_log__", "f_rotated_"]),
    ],
    ids=str,
)
def test_variables_may_be_given_by_name(model, given, moved):
    assert [value.name for value in PseudoMarginalMH(given, model=model).vars] == moved


def test_variables_may_be_given_as_they_are(model):
    steps = [
        PseudoMarginalMH(vars=[model["ls"]], model=model),
        PseudoMarginalMH(vars=[model.rvs_to_values[model["ls"]]], model=model),
        PseudoMarginalMH(vars=model["ls"], model=model),
    ]
    assert all([v.name for v in step.vars] == ["ls_log__", "f_rotated_"] for step in steps)


def test_whole_numbers_of_numpy_are_whole_numbers(model):
    with model:
        step = PseudoMarginalMH(n_importance=np.int64(4), latent_moves=np.int32(0))
    assert (step.n_importance, step.latent_moves) == (4, 0)
    assert isinstance(step, pm.step_methods.arraystep.BlockedStep)
