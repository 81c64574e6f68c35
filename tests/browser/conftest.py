"""`make test-browser` runs these tests, and brings Chromium, Playwright and axe-core where they are missing.

Without Playwright, no file here is looked at.
"""

from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("playwright") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    from tests.browser.page_fixtures import (  # noqa: F401
        axe,
        browser,
        guarded_server,
        look,
        narrow_or_wide,
        opened,
        run_folder,
        server,
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need a browser."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
