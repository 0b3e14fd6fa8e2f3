"""What cannot be read is refused by the name of the variable, with a remedy."""

import re

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import shelf_constructions  # noqa: F401
import shelf_look_alikes
from model_shelf import BINARY, COUNTS, GROUP, REAL, SHELF, N, X, on_shelf, read_case
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from pymc_pseudomarginal.model.errors import UnsupportedModelError
from pymc_pseudomarginal.reading import patterns, read_model


def refusal(build):
    with pm.Model() as model:
        build()
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(model)
    return str(caught.value)


def no_gaussian_variable():
    pm.Binomial("y", 10, pm.Beta("p", 1, 1), observed=COUNTS)


def heavy_tailed_walk():
    innovations, start = pm.StudentT.dist(nu=4), pm.Normal.dist(0, 1)
    walk = pm.RandomWalk("walk", innovation_dist=innovations, init_dist=start, steps=N - 1)
    pm.Poisson("y", pt.exp(walk), observed=COUNTS)


def jumping_likelihood():
    u = pm.Normal("u", shape=4)
    pm.Normal("y", pt.where(u > 0.2, 1.0, -1.0)[GROUP], observed=REAL)


def random_batches():
    xs, ys = pm.Minibatch(X, REAL, batch_size=3)
    pm.Normal("y", xs @ pm.Normal("b", shape=2), observed=ys, total_size=N)


def incomplete_vectors():
    y = np.ma.masked_array(X, mask=np.arange(2 * N).reshape(N, 2) % 7 == 0)
    pm.MvNormal("y", mu=X @ pm.Normal("b", shape=(2, 2)), cov=np.eye(2), observed=y)


def data_outside_of_the_support():
    pm.Gamma("y", alpha=2, beta=pt.exp(pm.Normal("a")), observed=-np.ones(3))


def density_that_nobody_wrote():
    random = lambda mu, rng, size: rng.normal(mu, 1, size)  # noqa: E731
    pm.CustomDist("y", pm.Normal("a"), random=random, observed=REAL)


class BlackBox(Op):
    """exp(value), of whose derivative nothing is known."""

    def make_node(self, value):
        return Apply(self, [value], [value.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.exp(inputs[0])


def op_without_a_gradient():
    pm.Poisson("y", BlackBox()(pm.Normal("a")), observed=2)


MESSAGES = {
    no_gaussian_variable: r"free variables: p\).* Expected a pm\.Normal",
    heavy_tailed_walk: r"No variable of the model is Gaussian .*walk",
    jumping_likelihood: r"'u' cannot, since the likelihood jumps",
    random_batches: r"'y' contains random numbers.*Register",
    incomplete_vectors: r"'y_observed' .*missing.*leave the incomplete ones out",
    data_outside_of_the_support: r"not finite at its initial point.*initval",
    density_that_nobody_wrote: r"no log density for .*_y'.*pm\.Potential",
    op_without_a_gradient: r"density of 'y' has no second derivative.*gradient",
}


@pytest.mark.parametrize("build", MESSAGES, ids=lambda build: build.__name__)
@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
def test_message_names_the_variable_and_a_remedy(build):
    assert_found(MESSAGES[build], refusal(build))


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("ranking", r"'skill' cannot, since one term of 'y' depends on 6 linear predictors"),
        ("partial_likelihood", r"'b' cannot, since one term of 'y' depends on \d+"),
        ("weights_that_sum_to_one", r"'f' cannot.*through one linear predictor, or a few"),
        ("discrete_change_point", r"'n' is discrete.*Marginalise"),
    ],
)
def test_message_about_a_look_alike(name, pattern):
    assert name in on_shelf(shelf_look_alikes)
    assert_found(pattern, refusal(SHELF[name].build))


def assert_found(pattern, message):
    assert re.search(pattern, message, re.DOTALL), message


def test_dense_dependence_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.setattr(patterns, "MAX_ENTRIES", 10)
    message = refusal(SHELF["two_index_arrays"].build)
    assert_found(r"dense matrix that is too large.*random walk, a field or a basis", message)


def test_data_that_depend_on_nothing_are_refused():
    def build():
        pm.Normal("a")
        pm.Bernoulli("y", 0.5, observed=BINARY)

    assert_found(r"No variable of the model is Gaussian", refusal(build))


@pytest.mark.parametrize(
    ("name", "variable", "reason"),
    [
        ("factor_analysis", "loading", "it is multiplied by a function of 'factor'"),
        ("measurement_error", "b", "it is multiplied by a function of 'x'"),
        ("jump_at_a_gaussian_time", "tau", "the same scalar in every term"),
    ],
)
def test_gaussian_variables_in_theta_are_told_why(name, variable, reason):
    read = read_case(name)
    left_out = read.structure.membership.left_out
    reasons = {read.structure.space.names[v]: why for v, why in left_out.items()}
    assert reason in reasons[variable]
