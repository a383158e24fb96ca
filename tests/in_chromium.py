"""A real Chromium for the tests of one file."""

import os
from collections.abc import Iterator

import browser as browsers
import pytest
from playwright.sync_api import Browser, Error, sync_playwright


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        try:
            browser = browsers.launch(playwright)
        except Error as error:
            why = f"no Chromium ({str(error).splitlines()[0]}): name one in {browsers.VARIABLE}"
            pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
        yield browser
        browser.close()
