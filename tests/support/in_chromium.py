"""A real Chromium for the tests of one file."""

import contextlib
import os
from collections.abc import Iterator

import browser as browsers
import pytest
from playwright.sync_api import Browser, Error, Locator, expect, sync_playwright

PATIENCE = 180_000
"""Milliseconds that a state is waited for: a slow and busy machine."""
expect.set_options(timeout=PATIENCE)


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


TRIES = 6
"""Streamlit loses what is pressed while it draws the page; a person presses again."""


def activate(control: Locator, opens: Locator | None = None) -> None:
    """Press a button or a link that a person could click, with the keyboard; again, until what it opens is there.

    A click is a press and a release at one place. Where the page moves between the two, as it does on a busy machine
    when a table above grows, the browser gives the click to what holds both, and the button does nothing.
    """
    for _ in range(TRIES if opens else 1):
        control.click(trial=True)
        control.press("Enter")
        if opens:
            with contextlib.suppress(AssertionError):
                expect(opens).to_be_visible(timeout=PATIENCE / TRIES)
                return
