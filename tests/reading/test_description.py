"""What was understood, in words."""

import shelf_constructions
import shelf_likelihoods
import shelf_structures
from model_shelf import on_shelf, read_case


def test_description_of_a_model_with_everything():
    assert repr(read_case("measurement_error")).splitlines() == [
        "LatentGaussianModel",
        "  integrated out          a ~ Normal",
        "                          mx ~ Normal",
        "                          x (12,) ~ Normal",
        "  sampled (theta)         b ~ Normal",
        "                          sx ~ HalfNormal [log]",
        "                          s ~ HalfNormal [log]",
        "  observed                seen ~ Normal, 12 terms with one linear predictor each",
        "                          y ~ Normal, 12 terms with one linear predictor each",
        "  Gaussian, yet in theta  b: it is multiplied by a function of 'x', which has more "
        "elements in x",
    ]


def test_description_of_potentials_and_of_what_is_drawn_afterwards():
    text = repr(read_case("second_differences_as_potential"))
    assert "rough ~ Potential, Gaussian: part of the prior of x" in text
    text = repr(read_case("missing_responses"))
    assert "drawn afterwards        y_unobserved" in text
    text = repr(read_case("variable_of_theta_below_x"))
    assert "scale of theta, Gaussian: part of the prior of x" in text
    text = repr(read_case("location_and_scale"))
    assert "y ~ Normal, 12 terms with 2 linear predictors each" in text


def test_every_variable_is_named_once():
    for shelf in (shelf_structures, shelf_likelihoods, shelf_constructions):
        for name in on_shelf(shelf)[:3]:
            read = read_case(name)
            words = repr(read).split()
            for variable in set().union(*read.split().values()):
                assert variable in words
