import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    """Small matrices gain nothing from threads, and threads change the rounding."""
    with threadpool_limits(1, user_api="blas"):
        yield
