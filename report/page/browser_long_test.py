# SPDX-License-Identifier: Apache-2.0
"""Pages in a browser: no error, sorting, filter, keys, tips, single events, the time to open.

Chromium is driven by its driver (WebDriver over loopback). Skipped where they are missing, and left
out under sanitizers, which would not look at the browser.
"""

import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

DUET = os.environ["DUET"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of WebDriver's references
FLAGS = """--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run
    --disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1300,1000
    --force-color-profile=srgb""".split()

if not shutil.which("chromedriver") or not shutil.which("chromium"):
    print("no chromium with its driver")
    sys.exit(77)


class Browser:
    """One session of WebDriver."""

    def __init__(self, folder):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       text=True)
        port = None
        while port is None:
            line = self.driver.stdout.readline()
            assert line, "chromedriver does not start"
            port = re.search(r"started successfully on port (\d+)", line)
        self.base = f"http://127.0.0.1:{port[1]}"
        options = {"args": [*FLAGS, f"--user-data-dir={folder}/profile"],
                   "binary": shutil.which("chromium")}
        session = self.post("/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.base += f"/session/{session['sessionId']}"

    def post(self, path, body):
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error

    def close(self):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(urllib.request.Request(self.base, method="DELETE"), timeout=20)
        self.driver.terminate()
        self.driver.wait()

    def run(self, script, *args):
        """Returns the value of a function's body; the page is drawn by then."""
        wait = ("const done = arguments[arguments.length - 1], args = arguments;"
                "const run = () => done((function () {%s}).apply(null, args));"
                "requestAnimationFrame(() => requestAnimationFrame(run));")
        return self.post("/execute/async", {"script": wait % script, "args": args})

    def open(self, path, fragment=""):
        """Opens a page, which must not complain nor ask for anything."""
        self.post("/url", {"url": "about:blank"})
        self.post("/url", {"url": pathlib.Path(path).as_uri() + fragment})
        self.run("return 0;")
        self.check_quiet()

    def check_quiet(self):
        log = [one for one in self.post("/se/log", {"type": "browser"}) if one["level"] != "DEBUG"]
        assert not log, log
        assert self.run("return performance.getEntriesByType('resource').length;") == 0

    def devtools(self, command, **params):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": params})

    def find(self, selector):
        return self.post("/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.post(f"/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        self.post(f"/element/{self.find(selector)}/value", {"text": text})

    def point(self, selector, x, y, to=None, twice=False):
        """Moves the pointer to a place of an element, counted from its top left corner; drags it
        from there to another x, or clicks twice."""
        at = self.run("const e = document.querySelector(arguments[0]); e.scrollIntoView({block:"
                      "'center'}); const b = e.getBoundingClientRect(); return [b.left, b.top];",
                      selector)
        where = {"x": round(at[0] + x), "y": round(at[1] + y), "origin": "viewport", "duration": 0}
        acts = [{"type": "pointerMove", **where}]
        down, up = ({"type": f"pointer{way}", "button": 0} for way in ("Down", "Up"))
        if to is not None:
            acts += [down, {"type": "pointerMove", **where, "x": round(at[0] + to)}, up]
        if twice:
            acts += [down, up, down, up]
        self.post("/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
             "actions": acts}]})
        self.run("return 0;")

    @staticmethod
    def until(condition):
        """Waits for things that the browser does when it has time."""
        while not condition():
            time.sleep(0.05)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent;", selector)

    def texts(self, selector):
        return self.run("return Array.from(document.querySelectorAll(arguments[0]),"
                        "one => one.textContent);", selector)

    def says(self, pattern):
        """True if the tip, or its absence (""), matches."""
        tip = self.tip() or ""
        assert re.fullmatch(pattern, tip), (pattern, tip)

    def tip(self):
        return self.run("const tip = document.getElementById('tip');"
                        "return tip.style.display === 'block' ? tip.textContent : null;")

    def picture(self, selector="canvas"):
        return self.run("return document.querySelector(arguments[0]).toDataURL();", selector)

    def save(self, name):
        """Keeps a picture of the window where DUET_SCREENSHOTS says."""
        folder = os.environ.get("DUET_SCREENSHOTS")
        if folder:
            shot = self.devtools("Page.captureScreenshot", captureBeyondViewport=True)["data"]
            pathlib.Path(folder, name + ".png").write_bytes(base64.b64decode(shot))


def duet(folder, *words, status=0):
    done = subprocess.run([DUET, *words], cwd=folder, capture_output=True, text=True,
                          check=False)
    assert done.returncode == status, done.stderr
    return done.stdout


def simulate(folder, *words):
    duet(folder, "simulate", "cholesky", "--platform", "idgraf", "--tile", "960", "--cpus", "4",
         "--gpus", "8", "--quiet", *words)


def check_narrow(browser, name):
    """Checks that nothing sticks out on a narrow screen."""
    browser.devtools("Emulation.setDeviceMetricsOverride", width=390, height=844,
                     deviceScaleFactor=2, mobile=True)
    browser.run("return 0;")
    assert browser.run("return document.documentElement.scrollWidth;") <= 390
    browser.save(name + "-narrow")
    browser.devtools("Emulation.clearDeviceMetricsOverride")


def check_fits(browser, name, canvas="canvas"):
    """Checks a narrow screen, and that the page is dark in the dark."""
    check_narrow(browser, name)
    browser.devtools("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": "dark"}])
    colour = "return getComputedStyle(document.body).backgroundColor;"
    browser.until(lambda: browser.run(colour) == "rgb(15, 18, 22)")
    dark = browser.picture(canvas)
    browser.save(name + "-dark")
    browser.devtools("Emulation.setEmulatedMedia", features=[])
    browser.until(lambda: browser.picture(canvas) != dark)  # its axis and names, too
    browser.check_quiet()


def test_report(browser, folder):
    simulate(folder, "--n", "9600", "--policy", "ws,heft,eager", "--set-arch", "--html", "a.html")
    browser.open(folder + "/a.html")
    browser.save("report")
    assert browser.text("h1") == "cholesky on idgraf"
    assert browser.run("return document.title;") == "cholesky on idgraf"
    column = "table.sortable td:nth-child(2)"
    given = browser.texts(column)
    browser.click("table.sortable th:nth-child(2) button")
    assert browser.texts(column) == sorted(given, key=float)
    browser.click("table.sortable th:nth-child(2) button")
    assert browser.texts(column) == sorted(given, key=float, reverse=True)
    browser.click("table.sortable th:first-child button")
    assert browser.texts("table.sortable td:first-child") == ["eager", "heft", "ws"]
    assert len(browser.texts("canvas")) == 3
    assert browser.texts(".note") == ["", "", ""]  # each bar has a pixel of its own
    browser.point("canvas", 70, 8)
    browser.says(r"cpu0: dpotrf, task 1\nfrom [\d.]+ µs, for 33\.\d+ ms")
    browser.point("canvas", 30, 8)
    browser.says("")
    browser.point("rect[data-tip]", 2, 2)
    browser.says(r"dpotrf: \d+ tasks?, .* ms")
    check_keys(browser)
    check_fits(browser, "report")


def check_keys(browser):
    """Zoomed and moved by keys, all timelines together; and back to what was there."""
    others = "figure:last-of-type canvas"
    whole, other = browser.picture(), browser.picture(others)
    seen = {whole}
    for key in ["+", "+", "\ue014", "\ue012"]:  # arrows to the right and left
        browser.type("canvas", key)
        seen.add(browser.picture())
    assert len(seen) >= 4
    browser.type("canvas", "++")
    assert browser.picture(others) != other
    browser.type("canvas", "0")
    assert browser.picture() == whole and browser.picture(others) == other
    browser.click("[data-zoom='2']")
    assert browser.picture() != whole
    browser.click("[data-zoom='0']")
    assert browser.picture() == whole


def count_of(browser, colour):
    """Pixels in rows of the first timeline that have a colour."""
    return browser.run(
        "const c = document.querySelector('canvas'), copy = new OffscreenCanvas(c.width, 280)"
        ".getContext('2d', {willReadFrequently: true}); copy.drawImage(c, 0, 0);"
        "const d = copy.getImageData(0, 0, c.width, 280).data; let n = 0;"
        "for (let i = 0; i < d.length; i += 4)"
        "  n += arguments[0].every((part, k) => d[i + k] === part);"
        "return n;", colour)


def test_timeline(browser, folder):
    """Dragging zooms; the path, a search, reasons of gaps, and curves."""
    simulate(folder, "--n", "9600", "--policy", "heft", "--link", "pcie=1GB/s", "--html", "t.html")
    browser.open(folder + "/t.html")
    whole = browser.picture()
    width = browser.run("return document.querySelector('canvas').clientWidth;") - 76
    browser.point("canvas", 64 + width / 2, 100, to=64 + width / 4)
    zoomed = browser.picture()
    assert zoomed != whole
    end, *shown = re.findall(r"([\d.]+) ms", browser.text(".shown"))[::-1]
    span, to, begin = (float(number) / float(end) for number in shown)
    assert (round(begin, 2), round(to, 2), round(span, 2)) == (0.25, 0.5, 0.25)
    browser.point("canvas", 100, 100, to=102)  # no selection
    assert browser.picture() == zoomed
    browser.point("canvas", 300, 100, twice=True)
    assert browser.picture() == whole and browser.text(".shown") == ""
    browser.type("canvas", "+\ue00c")  # Escape
    assert browser.picture() == whole

    line = [31, 35, 40]  # --text: the path's
    assert browser.run("return document.querySelector('[data-path]').ariaPressed;") == "true"
    drawn = count_of(browser, line)
    browser.click("[data-path]")
    assert count_of(browser, line) < drawn / 4  # names are left
    browser.click("[data-path]")
    assert browser.picture() == whole

    trsm, gemm = [242, 142, 43], [176, 122, 161]
    drawn = count_of(browser, gemm)
    assert drawn > 0 and count_of(browser, trsm) > 0
    browser.type(".find", "GEMM")
    assert count_of(browser, gemm) >= drawn and count_of(browser, trsm) == 0
    assert re.fullmatch(r"120 tasks, \d+\.\d ms in all", browser.text(".found"))
    browser.save("search")
    browser.click("[data-find=dgemm]")  # it was found, so this ends the search
    assert browser.text(".found") == "" and browser.picture() == whole
    browser.click("[data-find='copy to host']")
    assert re.fullmatch(r"\d+ copies, [\d.]+ ms in all", browser.text(".found"))
    browser.type(".find", "\ue003" * 20 + "13\ue007")  # Backspace, Enter
    assert re.fullmatch(r"gpu\d: dgemm, task 13, from .*", browser.text(".found"))
    browser.says("")
    assert re.fullmatch(r"1\d\d\.\d+ ms to 2\d\d\.\d+ ms: .*", browser.text(".shown"))
    browser.type(".find", "\ue003" * 2)
    browser.type("canvas", "0")
    assert browser.picture() == whole

    browser.point("canvas", 290, 114)  # on gpu2
    browser.says(r"gpu2: waits from 1[\d.]+ ms, [\d.]+ ms\n"
                 r"(?s:.*)[\d.]+ ms for the link from another GPU to gpu2(?s:.*)")
    browser.point("canvas", 1000, 30)
    browser.says(r"cpu1: waits from [\d.]+ ms, [\d.]+ ms\n[\d.]+ ms no task of its own is ready, "
                 r"others are: the policy's choice\n[\d.]+ ms no task is ready .*, after its last")
    below = browser.run("return document.querySelector('canvas').clientHeight;")
    for strip, pattern in (("ready tasks", r"\n\d+"), ("bytes on their way", r"(\n\S+: \S+ .?B)+"),
                           ("memory in use", r"(\ngpu\d: [\d.]+ MB)+")):
        browser.point("canvas", 400, below - 24 - 76 * 3 + 40)
        browser.says(rf"{strip}, 2\d\d\.\d+ ms{pattern}")
        below += 76
    check_fits(browser, "timeline")


def test_plan(browser, folder):
    """The plan of a schedule stands below what each worker ran, is searched with it, and said."""
    duet(folder, "simulate", "cholesky", "--platform", "idgraf", "--n", "1920", "--tile", "480",
         "--cpus", "2", "--gpus", "1", "--policy", "heft", "--schedule-out", "plan.json")
    plan = json.loads(pathlib.Path(folder, "plan.json").read_text(encoding="utf-8"))
    del plan["end_s"]
    pathlib.Path(folder, "dateless.json").write_text(json.dumps(plan), encoding="utf-8")
    duet(folder, "simulate", "cholesky", "--platform", "idgraf", "--n", "1920", "--tile", "480",
         "--cpus", "2", "--gpus", "1", "--policy", "plan.json,plan.json:slack=0,dateless.json",
         "--noise", "--html", "plan.html")
    browser.open(folder + "/plan.html")
    browser.save("plan")
    exact, helped = browser.texts("figure p")  # and nothing of one without dates
    assert re.fullmatch(r"Planned makespan 33\.8\d ms, that of the run 34\.\d+ ms "
                        r"\(\+\d\.\d\d %\); task \d+ began latest, 2\.\d+ ms after its "
                        r"planned date", exact), exact
    assert re.search(r"; \d+ of 20 tasks ran on another worker than planned; task", helped), helped
    width = browser.run("return (document.querySelector('canvas').clientWidth - 76) /"
                        "Math.max(...extra.recordings.map(one => one.end_s));")
    browser.point("canvas", 64 + 0.032 * width, 8)
    browser.says(r"cpu0: dpotrf, task 20\nfrom 3\d\.\d+ ms, for 4\.\d+ ms\n"
                 r"planned on cpu0 from 29\.\d+ ms, for 4\.\d+ ms\nbegan 1\.\d+ ms late")
    browser.point("canvas", 64 + 0.032 * width, 26)
    browser.says(r"plan of cpu0: dpotrf, task 20\nfrom 29\.\d+ ms, for 4\.\d+ ms\n"
                 r"ran on cpu0 from 3\d\.\d+ ms, for 4\.\d+ ms\nbegan 1\.\d+ ms late")
    browser.point("canvas", 64 + 0.008 * width, 26)  # nothing is planned, and nobody says why
    browser.says("")
    potrf, drawn = [78, 121, 167], count_of(browser, [78, 121, 167])
    browser.type(".find", "dpotrf")
    assert count_of(browser, potrf) >= drawn > 0
    browser.type(".find", "\ue003" * 6 + "20")
    assert re.fullmatch(r"cpu0: dpotrf, task 20, from .*, planned on cpu0 from .*, began .* late",
                        browser.texts(".found")[0])
    assert 0 < count_of(browser, potrf) < drawn / 2
    check_fits(browser, "plan")


def test_interval(browser, folder):
    simulate(folder, "--n", "4800", "--policy", "ws,heft", "--interval", "run", "--html", "i.html")
    browser.open(folder + "/i.html")
    browser.save("interval")
    assert "90 % of laterruns, s" in browser.texts("th"), browser.texts("th")
    assert browser.run("return document.querySelectorAll('svg .whisker').length;") == 2
    assert "100.0 % measured (ws)" in browser.text("header"), browser.text("header")


def test_large(browser, folder):
    """A page of 88,560 tasks says how many it draws together, and has each event."""
    simulate(folder, "--n", "76800", "--policy", "heft", "--html", "large.html")
    began = time.monotonic()
    browser.open(folder + "/large.html")
    size = os.path.getsize(folder + "/large.html") / 1e6
    print(f"88,560 tasks, {size:.1f} MB: opened and drawn in {time.monotonic() - began:.2f} s")
    browser.save("large")
    note = re.match(r"([\d,]+) of ([\d,]+) bars are too thin", browser.text(".note"))
    thin, bars = (int(number.replace(",", "")) for number in note.groups())
    assert 88560 < thin < bars
    browser.point("canvas", 300, 80)  # on gpu0
    browser.says(r"gpu0: \w+ and others, \d+ tasks\n.*, all in one pixel")
    began = time.monotonic()
    browser.type("canvas", "+" * 7)
    browser.run("return 0;")
    print(f"zoomed 7 times in {time.monotonic() - began:.2f} s")
    browser.point("canvas", 300, 80)
    browser.says(r"gpu0: \w+, task \d+\nfrom [\d.]+ s, for [3-8]\.\d+ ms")
    browser.type("canvas", "++")
    assert browser.text(".note") == ""
    browser.check_quiet()


def test_comparison(browser, folder):
    for policy in "ws", "heft":
        simulate(folder, "--n", "28800", "--policy", policy, "--trace", policy + ".json")
    duet(folder, "compare", "ws.json", "heft.json", "--html", "compare.html")
    browser.open(folder + "/compare.html")
    browser.save("comparison")
    assert browser.texts("details.case[open] table.parts tr.sum td")[0] == "sum"
    check_fits(browser, "comparison")


def test_explanation(browser, folder):
    simulate(folder, "--n", "9600", "--policy", "heft", "--link", "pcie=1GB/s", "--trace", "e.json")
    duet(folder, "explain", "e.json", "--quiet", "--interval", "run", "--html", "e.html")
    browser.open(folder + "/e.html")
    browser.save("explanation")
    assert re.fullmatch(r"Why cholesky on idgraf takes 8\d\d\.\d ms", browser.text("h1"))
    assert "for that" in browser.text(".lead")
    assert "links twice as fast" in browser.texts("td:first-child")[:4]
    assert any("in 90 of 100 cases" in text for text in browser.texts(".hint"))
    shares = browser.run("return Array.from(document.querySelectorAll('section:nth-of-type(2) "
                         "table')[1].rows[2].cells, cell => parseFloat(cell.textContent) || 0);")
    assert 99.5 < sum(shares[1:]) < 100.5, shares
    check_fits(browser, "explanation")


def take_extra(folder):
    """Data that the first page has beside the report, changed, makes a page again."""
    page = pathlib.Path(folder, "a.html").read_text(encoding="utf-8")
    begin = page.index('id="extra">') + len('id="extra">')
    end = page.index("</script>", begin)

    def make(name, extra):
        path = pathlib.Path(folder, name)
        path.write_text(page[:begin] + json.dumps(extra) + page[end:], encoding="utf-8")
        return path

    return json.loads(page[begin:end]), make


def test_many(browser, folder):
    """Of 10,000 rows those in sight are drawn; scrolling shows others."""
    extra, make = take_extra(folder)
    one = extra["recordings"][0]
    rows, workers = one["rows"][:4], one["workers"][:4]
    one["rows"] = [{**rows[i % 4], "name": f"w{i}", "lane": 0} for i in range(10000)]
    one["workers"] = [{**workers[i % 4], "name": f"w{i}"} for i in range(10000)]
    del extra["recordings"][1:], one["path"]
    browser.open(make("many.html", extra))
    assert browser.run("return document.querySelector('canvas').height;") < 1000
    assert browser.text(".note") == "34 of 10,000 rows are seen: scroll"
    assert len(browser.texts("svg text")) < 500  # bars of workers: means of some
    browser.point("canvas", 70, 8)
    browser.says(r"w0: (?s:.*)")
    first = browser.picture()
    browser.run("document.querySelector('.rows').scrollTop = 18 * 9000;")
    browser.until(lambda: browser.picture() != first)
    browser.point("canvas", 70, 8)
    browser.says(r"w(8999|9000): (?s:.*)")
    browser.run("""addEventListener('pointermove', () => { // while it is dragged
        const tops = ['.pick', 'canvas'].map(
            one => document.querySelector(one).getBoundingClientRect().top);
        document.body.dataset.shift = tops[0] - tops[1]; });""")
    browser.point("canvas", 100, 8, to=300)
    assert browser.run("return document.body.dataset.shift;") == "0"
    browser.save("many")
    browser.check_quiet()


def test_merged(browser, folder):
    """Bars that were merged already when the page was written are pale, and the page says so."""
    extra, make = take_extra(folder)
    for row in extra["recordings"][0]["rows"]:
        row["counts"] = [3] * len(row["starts"])
    extra["recordings"][0]["merged_s"] = 0.01
    browser.open(make("merged.html", extra))
    browser.save("merged")
    assert re.fullmatch(r"pale bars are several: [\d,]+ of all events, those below 10.00 ms, "
                        r"are merged in this page", browser.texts(".note")[0])
    assert browser.texts(".note")[1] == ""
    browser.point("canvas", 70, 8)
    browser.says(r"cpu0: dpotrf and others, 3 tasks\nfrom [\d.]+ µs, for 33\.\d+ ms")


def test_validation(browser, folder):
    duet(folder, "validate", "cholesky", "lu", "--emulate", "idgraf", "--scale", "0.02", "--n",
         "3840", "--tile", "960", "--cpus", "2", "--gpus", "2", "--policy", "ws,heft",
         "--platform", "idgraf", "--reps", "2", "--rounds", "2", "--quiet", "--keep-disturbed",
         "--html", "b.html")
    browser.open(folder + "/b.html")
    browser.save("validation")
    rows = "table.cases tbody tr:not([hidden])"
    assert len(browser.texts(rows)) == 4
    browser.type("#filter", "lu heft")
    assert len(browser.texts(rows)) == 1 and browser.text("#filtered") == "1 of 4 cases"
    assert len(browser.texts(".mark:not(.off)")) == 2  # in both plots
    assert len(browser.texts("details.case:not([hidden])")) == 1
    browser.open(folder + "/b.html")
    for _ in range(2):
        browser.click("table.cases th:nth-child(9) button")
    errors = [abs(float(text.rstrip(" %"))) for text in browser.texts("td.error")]
    assert errors == sorted(errors, reverse=True)
    browser.point(".mark", 4, 4)
    browser.says(r"\w+, n 3840, tile 960, .*\npredicted .* ms, measured .* ms: .* %")
    browser.click(rows)
    opened = browser.run("return document.querySelector('details.case[open]').dataset.case;")
    assert opened == browser.run("return document.querySelector(arguments[0]).dataset.case;", rows)
    canvas = "details.case[open] canvas"
    whole = browser.picture(canvas)
    browser.type(canvas, "+")
    assert browser.picture(canvas) != whole
    browser.open(folder + "/b.html", "#case-2")
    assert browser.run("return document.querySelector('details.case[open]').dataset.case;") == "2"
    browser.save("case")
    check_fits(browser, "validation", canvas)


def choose(browser, key, value):
    """Chooses by the visible name, and lets the page draw."""
    browser.run("const one = document.querySelector(`[data-key='${arguments[0]}']`);"
                "one.value = Array.from(one.options).find(o => o.text === arguments[1]).value;"
                "one.dispatchEvent(new Event('change', {bubbles: true}));", key, value)


def test_study(browser, folder):
    """The page draws what was chosen, equal to the data base."""
    page = ["study", "cholesky", "--platform", "idgraf", "--n", "1920,3840", "--tile", "480,960",
            "--gpus", "1..3", "--cpus", "0..2", "--link", "pcie=1x,2x", "--policy", "ws,heft,dmda",
            "--noise", "--reps", "3", "--out", "s.db", "--html", "s.html", "--quiet"]
    text = duet(folder, *page, status=1)  # without CPUs there is no result
    runs = sqlite3.connect(folder + "/s.db")
    browser.open(folder + "/s.html")
    browser.save("study")
    assert browser.text("h1") == "cholesky on idgraf"
    rows = "table.sortable tbody tr"
    assert len(browser.texts(rows)) == 24 and "216 runs: kernel dpotrf is " in browser.text("main")
    browser.click("table.sortable th:nth-child(7) button")
    spans = [float(one) for one in browser.run("return Array.from(document.querySelectorAll("
             "'table.sortable td:nth-child(7)'), one => one.dataset.value);")]
    assert spans == sorted(spans) and len(spans) == 24
    # lines: a mark for each number of GPUs and policy, the best over all else at this n
    best = ("SELECT gpus, min(mean) FROM (SELECT avg(makespan_s) mean, * FROM runs WHERE error IS"
            " NULL AND n = %d %s GROUP BY gpus, cpus, tile, link_pcie, policy) GROUP BY gpus")
    lines = "[data-chart='0'] .mark"
    for size, which, tips in ((3840, "policy = 'heft'", 3), (1920, "policy = 'ws'", 3),
                              (1920, "policy = 'ws' AND tile = 960 AND link_pcie = '1x'", 3)):
        choose(browser, "fixed 0", str(size))
        if "tile" in which:
            choose(browser, "fixed 4", "960")
            choose(browser, "fixed 3", "1x")
        name = which.split("'")[1]
        own = [tip for tip in browser.run("return Array.from(document.querySelectorAll(arguments["
               "0]), one => one.dataset.tip);", lines) if f"policy {name}\n" in tip]
        said = [re.search(r"makespan ([\d.]+) ms", tip)[1] for tip in own]
        assert len(said) == tips
        for text_s, (_, span_s) in zip(said, runs.execute(best % (size, "AND " + which))):
            assert abs(float(text_s) / 1e3 / span_s - 1) < 1e-3, (said, which)
    # the front: less makespan for each GPU more
    front, least = [], float("inf")
    for gpus, span_s in runs.execute(best % (1920, "AND tile = 960 AND link_pcie = '1x'")):
        if span_s < least:
            front.append(str(gpus))
        least = min(least, span_s)
    assert browser.texts("#front td:nth-child(2)") == front
    assert len(browser.texts("[data-chart='4'] .mark:not(.beaten)")) == len(front)
    choose(browser, "measure", "share of the bound")
    assert browser.texts("[data-chart='0'] text")[-10:].count("gpus") == 1
    assert len(browser.texts("[data-chart='1'] rect.cell")) == 6
    choose(browser, "winners", "policy")
    assert set(browser.texts("[data-chart='1'] .over")) <= {"ws", "heft", "dmda"}
    # efficiency begins at 1, with the fewest GPUs
    assert browser.run("return document.querySelector(\"[data-chart='3'] .mark\").dataset.tip;") \
        .endswith("\nefficiency 1.00")
    # the ranking is that of the text, best first; other settings can be compared, too
    ranks = browser.texts("[data-chart='5'] text.small")
    assert all(re.search(rf"{name} {rank}\b", text) for name, rank in
               (re.fullmatch(r"(\D+)([\d.]+)", one).groups() for one in ranks[1:])), ranks
    choose(browser, "ranking", "tile")
    assert browser.text("#ranking").startswith("Mean ranks of tile over 72 cases")
    assert "no independent sample" in browser.text("#ranking")
    browser.point("[data-chart='1'] rect.cell", 5, 5)
    browser.says(r"n 1920, cpus \d, gpus 1, link_pcie \dx, tile \d+, policy .*\n"
                 r"makespan [\d.]+ ms, speed [\d.]+ GFlop/s, share of the bound [\d.]+ %")
    assert browser.run("""let bad = '';  // whatever is chosen, all is drawn with numbers
        document.querySelectorAll('select').forEach(one => {
          Array.from(one.options).reverse().forEach(option => {
            one.value = option.value;
            one.dispatchEvent(new Event('change', {bubbles: true}));
            if (/NaN|Infinity|undefined/.test(document.getElementById('page').innerHTML))
              bad += one.dataset.key + ' ' + option.text;
          });
        });
        return bad;""") == ""
    browser.check_quiet()
    check_narrow(browser, "study")


def test_small_studies(browser, folder):
    """Pages of one cell, of none, and of nodes in place of GPUs."""
    one = ["study", "cholesky", "--platform", "idgraf", "--n", "1920", "--policy", "ws", "--quiet"]
    duet(folder, *one, "--tile", "960", "--gpus", "1", "--out", "one.db", "--html", "one.html")
    browser.open(folder + "/one.html")
    assert len(browser.texts("table.sortable tbody tr")) == 1
    assert not browser.texts("select") and not browser.texts("[data-chart]")
    subprocess.run([DUET, *one, "--tile", "7,9", "--cpus", "0", "--out", "no.db"], cwd=folder,
                   capture_output=True, check=False)
    duet(folder, "study", "--show", "--out", "no.db", "--html", "no.html")
    browser.open(folder + "/no.html")
    assert "No run has a result." in browser.text("main")
    assert "Without a result: " in browser.text("main")
    duet(folder, *one, "--tile", "480", "--gpus", "1,2", "--nodes", "1..4*2", "--network",
         "switch:100Gbps,1us", "--out", "nodes.db", "--html", "nodes.html")
    browser.open(folder + "/nodes.html")
    assert "Relative to 1 node, each with" in browser.text("main").replace("\n", " ")
    tips = browser.run("return Array.from(document.querySelectorAll(\"[data-chart='3'] .mark\"), "
                       "one => one.dataset.tip);")
    assert len(tips) == 6 and tips[0].endswith("\nefficiency 1.00"), tips
    browser.check_quiet()


def main():
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(folder)
        try:
            test_report(browser, folder)
            test_timeline(browser, folder)
            test_explanation(browser, folder)
            test_many(browser, folder)
            test_merged(browser, folder)
            test_plan(browser, folder)
            test_interval(browser, folder)
            test_large(browser, folder)
            test_comparison(browser, folder)
            test_validation(browser, folder)
            test_study(browser, folder)
            test_small_studies(browser, folder)
        finally:
            browser.close()


main()
