"""A real Firefox, driven by its own protocol: Marionette, lengths and JSON over a socket.

Playwright asks of a Firefox what the one that Debian ships does not answer.
"""

import base64
import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

PREFERENCES = {
    "marionette.port": 0,  # any free one, which Firefox then writes into its profile
    "layout.css.prefers-color-scheme.content-override": 1,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}
ARGUMENTS = ["--headless", "--no-remote", "--marionette", "--remote-allow-system-access"]
LIGHT, DARK = 1, 0
# Errors and warnings of the site's own scripts, as the browser's console lists them.
COMPLAINTS = """return Services.console.getMessageArray()
    .filter(message => message instanceof Ci.nsIScriptError && !message.isFromPrivateWindow)
    .filter(message => message.sourceName.startsWith(arguments[0]))
    .filter(message => /javascript|chrome javascript/.test(message.category))
    .map(message => `${message.sourceName}:${message.lineNumber} ${message.errorMessage}`);"""


def find_firefox() -> str | None:
    """Where Firefox is: $FIREFOX, or one of its names on the path."""
    names = ("firefox-esr", "firefox")
    return os.environ.get("FIREFOX") or next(filter(None, map(shutil.which, names)), None)


class Firefox:
    """One window.

    Args:
        executable: where the browser is.
        profile: an empty folder.
    """

    def __init__(self, executable: str, profile: Path):
        lines = [
            f'user_pref("{name}", {json.dumps(value)});' for name, value in PREFERENCES.items()
        ]
        (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
        command = [executable, *ARGUMENTS, "--profile", profile]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.connection = socket.create_connection(("127.0.0.1", self.port(profile)))
        self.stream = self.connection.makefile("rb")
        self.receive()  # its greeting
        self.count = 0
        self.ask("WebDriver:NewSession", capabilities={})
        self.ask("WebDriver:SetTimeouts", script=20 * 60 * 1000, pageLoad=20 * 60 * 1000)

    def port(self, profile: Path) -> int:
        """Wait until the browser listens."""
        place = profile / "MarionetteActivePort"
        while not (place.exists() and place.read_text()):
            if self.process.poll() is not None:
                raise RuntimeError(f"Firefox ended with status {self.process.returncode}")
            time.sleep(0.1)
        return int(place.read_text())

    def receive(self):
        """Read one message."""
        length = b""
        while not length.endswith(b":"):
            length += self.stream.read(1)
        return json.loads(self.stream.read(int(length[:-1])))

    def ask(self, command, **parameters):
        """Send a command and wait for its answer.

        Raises:
            RuntimeError: the browser refuses, or a script has failed.
        """
        self.count += 1
        message = json.dumps([0, self.count, command, parameters]).encode()
        self.connection.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self.receive()
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        return result.get("value") if isinstance(result, dict) and "value" in result else result

    def open(self, url):
        """Open a page whose cells are ready to be run."""
        self.ask("WebDriver:Navigate", url=url)
        self.until("document.documentElement.dataset.live === 'ready'")

    def run(self, script, *arguments):
        """Run the body of an async function in the page; gives what it returns."""
        whole = (
            "const finish = arguments[arguments.length - 1];"
            f"(async (...given) => {{ {script} }})(...arguments)"
            ".then(finish, (error) => finish({failed: String(error)}));"
        )
        result = self.ask("WebDriver:ExecuteAsyncScript", script=whole, args=list(arguments))
        if isinstance(result, dict) and "failed" in result:
            raise RuntimeError(result["failed"])
        return result

    def until(self, condition):
        """Wait until this is true in the page."""
        self.run(f"while (!({condition})) await new Promise((resolve) => setTimeout(resolve, 50));")

    def click(self, selector):
        """Press what a selector finds, where a reader would."""
        found = self.ask("WebDriver:FindElement", using="css selector", value=selector)
        self.ask("WebDriver:ElementClick", id=next(iter(found.values())))

    def in_browser(self, script, *arguments):
        """Run a script that may do what only the browser may."""
        self.ask("Marionette:SetContext", value="chrome")
        try:
            return self.ask("WebDriver:ExecuteScript", script=script, args=list(arguments))
        finally:
            self.ask("Marionette:SetContext", value="content")

    def prefer(self, scheme):
        """Let the reader like it light or dark."""
        name = "layout.css.prefers-color-scheme.content-override"
        self.in_browser("Services.prefs.setIntPref(...arguments)", name, scheme)

    def complaints(self, site):
        """List the errors of a site's scripts."""
        return self.in_browser(COMPLAINTS, site)

    def screenshot(self, path):
        """Take a picture of what is seen."""
        picture = self.ask("WebDriver:TakeScreenshot", full=False)
        Path(path).write_bytes(base64.b64decode(picture))

    def close(self):
        """End the browser."""
        self.stream.close()
        self.connection.close()
        self.process.terminate()
        self.process.wait()
