"""Hypothesis draws the same examples in every run; ``make fuzz`` draws new ones, twenty times as many."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.argument_cache import parse_faster

settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("fuzz", settings.get_profile("same"), derandomize=False, max_examples=2000, print_blob=True)
settings.load_profile("same")
parse_faster()
_GC_THRESHOLDS = (100_000, 20, 100)  # little of what tests make is in cycles


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keeps the garbage collector from what collection imports, which stays until the end: searching it again and again
    takes a quarter of the time of collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)


def pytest_unconfigure() -> None:
    """Lets the interpreter free what was kept from the garbage collector; extensions report it as leaked otherwise."""
    gc.unfreeze()


@pytest.fixture(scope="module")
def module_in_this_process() -> Iterator[None]:
    """Does the chunks of all jobs of a module here, where what they make is only what its tests begin with."""
    from tests.support.demo_datasets import chunks_in_this_process  # brings Beam

    with chunks_in_this_process():
        yield
