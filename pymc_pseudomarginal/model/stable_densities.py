"""Log densities that stay finite, with their derivatives, wherever f goes.

PyMC computes a probability and then its logarithm; the probability rounds to 0 or 1
from about |f| = 8 (probit) or 37 (logit), and derivatives of the logarithm are NaN.
Here the logarithm is taken before, for the families in which that matters. Each
function returns log p(y_j|eta_j) elementwise, or None if the graph has another form.
"""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.censored import CensoredRV
from pymc.distributions.dist_math import binomln, factln
from pytensor.tensor.random.basic import (
    BernoulliRV,
    BinomialRV,
    CategoricalRV,
    NegBinomialRV,
    NormalRV,
)
from pytensor.tensor.variable import TensorVariable

from pymc_pseudomarginal.model.graph import (
    below_layout,
    core_op,
    distribution_parameters,
    same_computation,
    same_layout,
    scalar_op_name,
)
from pymc_pseudomarginal.model.links import (
    log_argument,
    logit_argument,
    ordered_arguments,
    probit_argument,
)

# Where PyMC takes the negative binomial for a Poisson distribution.
_POISSON_ALPHA = 1e10
_LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)


def stable_log_density(rv: TensorVariable, value: TensorVariable) -> TensorVariable | None:
    """Log p(value) of an observed variable, in a stable form where one is known."""
    for op_type, density in FAMILIES.items():
        if isinstance(core_op(rv), op_type):
            return density(value, *distribution_parameters(rv))
    return None


def _bernoulli(y, p):
    log_cdf, eta = _link(p)
    if eta is None:
        return None
    # One logarithm per element, of the probability of what was seen.
    log_density = log_cdf(pt.switch(pt.eq(y, 1), eta, -eta))
    return pt.switch(pt.or_(pt.eq(y, 0), pt.eq(y, 1)), log_density, -np.inf)


def _binomial(y, n, p):
    log_cdf, eta = _link(p)
    if eta is None:
        return None
    log_density = binomln(n, y) + y * log_cdf(eta) + (n - y) * log_cdf(-eta)
    return pt.switch(pt.or_(pt.lt(y, 0), pt.gt(y, n)), -np.inf, log_density)


def _link(p):
    """(log F, eta) of a probit or logit probability p = F(eta), else (None, None)."""
    if (eta := probit_argument(p)) is not None:
        return log_phi, eta
    if (eta := logit_argument(p)) is not None:
        return log_sigmoid, eta
    return None, None


def _negative_binomial(y, n, p):
    excess = _log_mean_over_alpha(p)
    if excess is None:
        return None
    log_density = binomln(y + n - 1, y) + y * log_sigmoid(excess) + n * log_sigmoid(-excess)
    log_mu = excess + pt.log(n)
    poisson = y * log_mu - pt.exp(log_mu) - factln(y)
    return pt.switch(
        pt.lt(y, 0), -np.inf, pt.switch(pt.gt(n, _POISSON_ALPHA), poisson, log_density)
    )


def _log_mean_over_alpha(p):
    """log(mu / alpha) for p = alpha / (mu + alpha), as either version of PyMC writes it."""
    if (eta := logit_argument(p)) is not None:
        return -eta
    base, layout = below_layout(p)
    if scalar_op_name(base) != "TrueDiv" or scalar_op_name(base.owner.inputs[1]) != "Add":
        return None
    alpha, total = base.owner.inputs
    terms = total.owner.inputs
    if len(terms) != 2 or not same_computation(alpha, terms[1]):
        return None
    return same_layout(log_argument(terms[0]) - pt.log(alpha), layout)


def _ordered(y, p):
    """Categories between cut-points: F(c_y - eta) - F(c_{y-1} - eta)."""
    arguments = ordered_arguments(p)
    if arguments is None:
        return None
    eta, cutpoints, sigma = arguments
    last = cutpoints.shape[-1]
    scale = 1.0 if sigma is None else sigma
    upper = (_pick(cutpoints, pt.clip(y, 0, last - 1)) - eta) / scale
    lower = (_pick(cutpoints, pt.clip(y - 1, 0, last - 1)) - eta) / scale
    at_end = pt.or_(pt.eq(y, 0), pt.eq(y, last))
    # The unused branch gets harmless bounds: its derivatives must not be NaN.
    inside = (_log_sigmoid_interval if sigma is None else _log_phi_interval)(
        pt.switch(at_end, upper - 1.0, lower), upper
    )
    log_cdf = log_sigmoid if sigma is None else log_phi
    log_density = pt.switch(
        pt.eq(y, 0), log_cdf(upper), pt.switch(pt.eq(y, last), log_cdf(-lower), inside)
    )
    return pt.switch(pt.or_(pt.lt(y, 0), pt.gt(y, last)), -np.inf, log_density)


def _censored(y, base, lower, upper):
    """A normal variable that is seen only between two bounds."""
    if not isinstance(core_op(base), NormalRV):
        return None
    mu, sigma = base.owner.op.dist_params(base.owner)
    z = (y - mu) / sigma
    inside = -0.5 * z**2 - pt.log(sigma) - _LOG_ROOT_2PI
    log_density = pt.switch(
        pt.eq(y, lower), log_phi(z), pt.switch(pt.eq(y, upper), log_phi(-z), inside)
    )
    return pt.switch(pt.or_(pt.lt(y, lower), pt.gt(y, upper)), -np.inf, log_density)


def _pick(cutpoints, k):
    """The k-th cut-point: of all observations, or of each its own."""
    k = pt.cast(k, "int64")
    if cutpoints.ndim == 1:
        return cutpoints[k]
    return pt.take_along_axis(cutpoints, k[..., None], axis=-1).squeeze(-1)


def log_phi(z: TensorVariable) -> TensorVariable:
    """Log of the standard normal distribution function."""
    # Each branch sees only arguments that it can digest, so that no derivative is NaN.
    in_tail = pt.lt(z, -1.0)
    left, right = pt.switch(in_tail, z, -1.0), pt.switch(in_tail, -1.0, z)
    return pt.switch(
        in_tail,
        pt.log(0.5 * pt.erfcx(-left / np.sqrt(2.0))) - 0.5 * left**2,
        pt.log1p(-0.5 * pt.erfc(right / np.sqrt(2.0))),
    )


def log_sigmoid(z: TensorVariable) -> TensorVariable:
    """log(1 / (1 + exp(-z)))."""
    return -pt.softplus(-z)


def _log_phi_interval(a, b):
    """log(Phi(b) - Phi(a)) for a < b, on the side where log Phi keeps its digits."""
    right = pt.gt(a, -b)
    a, b = pt.switch(right, -b, a), pt.switch(right, -a, b)
    log_b = log_phi(b)
    return log_b + pt.log1mexp(log_phi(a) - log_b)


def _log_sigmoid_interval(a, b):
    """log(S(b) - S(a)) for a < b, by S(b) - S(a) = S(b) S(-a) (1 - exp(a - b))."""
    return log_sigmoid(b) + log_sigmoid(-a) + pt.log1mexp(a - b)


FAMILIES = {
    BernoulliRV: _bernoulli,
    BinomialRV: _binomial,
    NegBinomialRV: _negative_binomial,
    CategoricalRV: _ordered,
    CensoredRV: _censored,
}
