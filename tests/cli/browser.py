"""Headless Chromium for tests of pages: what is shown, clicks and typing, and whether there were
error messages or requests outside of the folder."""

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
    """A window on one folder of pages."""

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
        """Loads index.html at a view ("#/map"), in a window of that size."""
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
        """Follows a link of the page's own."""
        self.run("location.hash = arguments[0]", view)
        self.wait("return App.shownView === arguments[0] || "
                  "document.getElementById('picture').open", view)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition, *arguments, seconds=10):
        """Until the script returns something true, which is returned."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(condition, *arguments)
            if value:
                return value
            assert time.monotonic() < end, condition
            time.sleep(0.02)

    def find(self, selector):
        """The visible elements that fit."""
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
        """What was logged since the last call: complaints, and addresses that were asked for."""
        complaints = [entry["message"] for entry in self.driver.get_log("browser")]
        asked = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        return complaints, asked

    def check(self):
        """No complaint since open(), and nothing asked for outside of the folder."""
        complaints, asked = self.logs()
        assert complaints == []
        inside = "file://" + quote(str(self.folder)) + "/"
        assert asked, "nothing was loaded at all"
        assert [url for url in asked if not url.startswith((inside, "data:"))] == []

    def close(self):
        self.driver.quit()
