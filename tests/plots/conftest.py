import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    """No figure outlives its test."""
    from matplotlib import pyplot

    pyplot.close("all")
    yield
    pyplot.close("all")
