"""How many examples a property looks at, where the profile's own number would take too long."""

from hypothesis import settings

FAST = 200  # examples of a property in the profile `fast`
THOROUGH = 10 * FAST


def at_most(examples: int, because: str) -> settings:
    """So many examples in the profile `fast`, ten times as many in `thorough`; `because` says why no more."""
    assert because
    profile = settings.default
    assert profile is not None
    return settings(max_examples=max(1, examples * profile.max_examples // FAST))
