"""Hypothesis draws the same examples in every run; ``make fuzz`` draws new ones, twenty times as many."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("fuzz", settings.get_profile("same"), derandomize=False, max_examples=2000, print_blob=True)
settings.load_profile("same")
