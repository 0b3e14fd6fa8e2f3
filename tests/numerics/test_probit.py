import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import norm

from pymc_pseudomarginal.numerics.likelihoods import ProbitLikelihood
from pymc_pseudomarginal.numerics.likelihoods.probit import inverse_mills_ratio

GRID = np.array([-40.0, -30.0, -10.0, -3.0, -0.5, 0.0, 0.7, 4.0, 10.0, 30.0, 40.0])


def both_labels():
    f = np.concatenate([GRID, GRID])
    return f, ProbitLikelihood(np.repeat([1.0, -1.0], len(GRID)))


def test_log_density_is_that_of_the_normal_cdf_for_any_leading_shape():
    f, likelihood = both_labels()
    assert likelihood.log_density(f) == pytest.approx(log_ndtr(likelihood.signs * f).sum())
    assert likelihood.log_density(np.stack([f, f])).shape == (2,)


@pytest.mark.parametrize("z", [-1e5, -37.0, -30.0, -29.9, -8.0, -7.9, 0.0, 3.9, 4.1, 9.0, np.inf])
def test_log_density_has_the_digits_of_scipys(z):
    """Of one label, and of so many that their product would underflow."""
    for n in (1, 700):
        likelihood = ProbitLikelihood(np.ones(n))
        expected = n * log_ndtr(z)
        found = likelihood.log_density(np.full(n, z))
        # Of a Phi near to one no digits but those of the sum are lost.
        assert found == pytest.approx(expected, rel=1e-13 if z < 0.0 or z > 4.0 else 1e-11)


def test_log_density_of_what_is_no_number_is_none():
    likelihood = ProbitLikelihood(np.ones(3))
    assert np.isnan(likelihood.log_density(np.array([0.0, np.nan, 1.0])))
    assert likelihood.log_density(np.array([0.0, -np.inf, 1.0])) == -np.inf


def test_everything_is_finite_at_extreme_latents():
    f = np.array([-1e6, -200.0, 200.0, 1e6] * 2)
    likelihood = ProbitLikelihood(np.repeat([1.0, -1.0], 4))
    gradient, W = likelihood.derivatives(f)
    moments = likelihood.tilted_moments(f, np.full(8, 5.0))
    for values in (gradient, W, likelihood.third_derivative(f), *moments):
        assert np.isfinite(values).all()
    assert (W >= 0).all()
    assert (moments.variance > 0).all()


@pytest.mark.parametrize("z", [-1e4, -100.0, -8.0, 0.0, 5.0, 20.0])
def test_mills_ratio_has_full_relative_precision(z):
    # The continued fraction of the tail is accurate far to the left.
    expected = np.exp(norm.logpdf(z) - log_ndtr(z)) if z > -30 else -z + -1 / z - 2 / -(z**3)
    assert inverse_mills_ratio(np.array([z]))[0] == pytest.approx(expected, rel=1e-9)


def test_derivatives_agree_with_finite_differences():
    f, likelihood = both_labels()
    f = np.clip(f, -30.0, 30.0)
    step = 1e-4

    def gradient(f):
        return likelihood.derivatives(f)[0]

    def curvature(f):
        return likelihood.derivatives(f)[1]

    def log_density(f):
        return log_ndtr(likelihood.signs * f)

    for function, derivative in (
        (log_density, gradient(f)),
        (gradient, -curvature(f)),
        (lambda f: -curvature(f), likelihood.third_derivative(f)),
    ):
        difference = (function(f + step) - function(f - step)) / (2 * step)
        # Truncation is of order step², rounding of order eps · |function| / step.
        rounding = 1e-15 * np.abs(function(f)).max() / step
        assert difference == pytest.approx(derivative, rel=1e-6, abs=1e-7 + rounding)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize(("mean", "variance"), [(0.3, 1.5), (-4.0, 0.7), (2.0, 30.0)])
def test_tilted_moments_agree_with_quadrature(sign, mean, variance):
    def integral(power):
        def integrand(f):
            return f**power * norm.cdf(sign * f) * norm.pdf(f, mean, np.sqrt(variance))

        width = 12 * np.sqrt(variance)
        return quad(integrand, mean - width, mean + width, epsabs=1e-14, limit=400)[0]

    normaliser = integral(0)
    first, second = integral(1) / normaliser, integral(2) / normaliser
    moments = ProbitLikelihood(np.array([sign])).tilted_moments(
        np.array([mean]), np.array([variance])
    )
    assert moments.log_normaliser[0] == pytest.approx(np.log(normaliser), abs=1e-8)
    assert moments.mean[0] == pytest.approx(first, rel=1e-6)
    assert moments.variance[0] == pytest.approx(second - first**2, rel=1e-5)


def test_labels_other_than_0_and_1_are_refused():
    with pytest.raises(ValueError, match=r"0 or 1; found the values -1, 1\. Recode"):
        ProbitLikelihood.from_labels(np.array([-1, 1, 1]))
    with pytest.raises(ValueError, match="-1 or"):
        ProbitLikelihood(np.array([0.0, 1.0]))
