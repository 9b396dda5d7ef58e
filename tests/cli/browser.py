"""Drives headless Chromium for the tests of HTML pages: reads what is shown, clicks and types, and collects
error messages and requests outside the folder."""

import json
import shutil
import time
from pathlib import Path
from urllib.parse import quote

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")


def require():
    """Skips the test if no browser can be driven."""
    pytest.importorskip("selenium", reason="python3-selenium is not installed")
    if not CHROMIUM or not DRIVER:
        pytest.skip("chromium and chromium-driver are not installed")


class Browser:
    """A browser window that shows the pages of one folder."""

    def __init__(self, profile):
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
        options = Options()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                         "--disable-dev-shm-usage", "--no-first-run",
                         "--disable-background-networking", f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options,
                                       service=Service(DRIVER, log_output=str(profile / "log")))
        self.folder = None

    def open(self, folder, view="", width=1280, height=800, dark=False):
        """Loads index.html at a view such as "#/map" in a window of the given size."""
        self.folder = Path(folder).resolve()
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.get("about:blank")
        self.logs()
        self.driver.get("file://" + quote(str(self.folder)) + "/index.html" + view)
        self.wait("return document.querySelector('main h1') !== null")

    def go(self, view):
        """Navigates to another view of the loaded page."""
        self.run("location.hash = arguments[0]", view)
        self.wait("return App.shownView === arguments[0] || "
                  "document.getElementById('picture').open", view)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition, *arguments, seconds=10):
        """Waits until the script returns a true value, and returns that value."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(condition, *arguments)
            if value:
                return value
            assert time.monotonic() < end, condition
            time.sleep(0.02)

    def find(self, selector):
        """The visible elements that match a CSS selector."""
        from selenium.webdriver.common.by import By
        return [e for e in self.driver.find_elements(By.CSS_SELECTOR, selector) if e.is_displayed()]

    def press(self, *keys):
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys
        for key in keys:
            ActionChains(self.driver).send_keys(getattr(Keys, key, key)).perform()

    def focused(self):
        return self.driver.switch_to.active_element

    def shot(self, path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        time.sleep(0.3)
        self.driver.save_screenshot(str(path))

    def logs(self):
        """The messages logged and the URLs requested since the last call."""
        complaints = [entry["message"] for entry in self.driver.get_log("browser")]
        asked = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        return complaints, asked

    def check(self):
        """Asserts that nothing was logged since open() and that nothing outside the folder was requested."""
        complaints, asked = self.logs()
        assert complaints == []
        inside = "file://" + quote(str(self.folder)) + "/"
        assert asked, "nothing was loaded"
        assert [url for url in asked if not url.startswith((inside, "data:"))] == []

    def close(self):
        self.driver.quit()
