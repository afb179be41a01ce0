"""The report in a real browser: what is drawn, in which colours, at which width, and on paper."""

import shutil

import pytest
from support import report_summaries as given

from stallmark.report import write_report

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync", "--no-first-run"]


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: browser test skipped")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: browser test skipped")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory, brokerage_runs):
    folder = tmp_path_factory.mktemp("reports")
    made = {
        "pool": given.buffer_pool(),
        "ramp": given.user_ramp(),
        "devices": given.devices(transactions=4),
        "brokerage": brokerage_runs,
        "hostile": given.experiment([given.run([given.step(variant="<script>window.hurt=1</script>" * 4)])]),
    }
    return {name: write_report(one, folder / f"{name}.html").as_uri() for name, one in made.items()}


class Window:
    """A page that opens one report after the other: a new one would have to read all of Plotly again. `complaints` are
    errors in the console and requests for anything but the report itself."""

    def __init__(self, browser, scheme: str):
        self.complaints: list[str] = []
        self._expected = ""
        self._scheme = scheme
        self._page = page = browser.new_context(color_scheme=scheme).new_page()
        page.on("console", lambda m: self._complain(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: self._complain(str(e)))
        page.on("request", lambda r: self._complain(r.url) if r.url != self._expected else None)

    def _complain(self, words: str) -> None:
        self.complaints.append(words)

    def open(self, address: str, width: int):
        """As at the first visit: nothing of the report before is left."""
        self._expected = address
        self._page.emulate_media(media="screen", color_scheme=self._scheme)
        self._page.set_viewport_size({"width": width, "height": 900})
        self._page.goto(address)
        self._page.wait_for_function(
            "document.querySelectorAll('.chart').length == "
            "document.querySelectorAll('.chart .main-svg[viewBox]:first-child').length"
        )
        return self._page


@pytest.fixture(scope="module")
def windows(browser):
    return {scheme: Window(browser, scheme) for scheme in ("light", "dark")}


@pytest.fixture
def opened(windows, files):
    """Opens a report; fails on any error in the console and any request but the file itself."""
    yield lambda name, width=1280, scheme="light": windows[scheme].open(files[name], width)
    for window in windows.values():
        complaints, window.complaints = window.complaints, []
        assert not complaints


@pytest.mark.parametrize("name", ["pool", "ramp", "devices", "brokerage", "hostile"])
def test_every_figure_is_drawn_with_all_its_traces(opened, name):
    page = opened(name)
    counts = page.evaluate("""
        Object.entries(JSON.parse(document.getElementById("figures").textContent)).map(([id, figure]) => ({
            id,
            expected: figure.data.filter(t => t.y.some(v => v !== null)).length,
            drawn: document.getElementById(id).querySelectorAll(".scatterlayer .trace, .barlayer .trace").length,
            ink: [...document.getElementById(id).querySelectorAll(".trace path")]
                .filter(p => (p.getAttribute("d") || "").length > 5).length,
        }))""")
    assert len(counts) >= 9
    for one in counts:
        assert one["drawn"] == one["expected"], one
        assert one["ink"] >= one["expected"], one
    assert page.evaluate("window.hurt") is None


def test_points_stand_where_their_values_are(opened):
    """The topmost mark of the TPS chart is the fastest emulated step: what is drawn is the data."""
    page = opened("pool")
    heights = page.evaluate("""
        [...document.querySelectorAll("#chart-tps .subplot.xy .point")].map(p => p.getBoundingClientRect().y)""")
    tps = [s.tps for s in given.buffer_pool().steps if s.emulated]
    assert sorted(range(4), key=lambda i: -heights[i]) == sorted(range(4), key=lambda i: tps[i])


def test_dark_and_light_differ_everywhere_and_the_button_switches(opened):
    colours = """() => ["body", ".chart .xtick text", ".chart .gridlayer path", ".banner"].map(
        s => { const c = getComputedStyle(document.querySelector(s)); return c.backgroundColor + c.fill + c.stroke })"""
    light, dark = opened("pool").evaluate(colours), opened("pool", scheme="dark").evaluate(colours)
    assert all(a != b for a, b in zip(light, dark, strict=True))
    page = opened("pool")
    page.click("#theme")
    assert page.evaluate(colours) == dark
    page.click("#theme")
    assert page.evaluate(colours) == light


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(opened, scheme):
    """WCAG AA: 4.5:1 for text, on the page and in charts."""
    ratios = opened("pool", scheme=scheme).evaluate("""() => {
        const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        const light = colour => {
            canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
            const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(v => v / 255)
                .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const paper = light(getComputedStyle(document.body).backgroundColor);
        const of = (s, what) => {
            const ink = light(getComputedStyle(document.querySelector(s))[what]);
            return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
        };
        return [of("h1", "color"), of(".footnote", "color"), of(".device", "color"), of("a", "color"),
                of(".emulated", "color"), of(".chart .xtick text", "fill"), of(".chart .annotation text", "fill")];
    }""")
    assert min(ratios) >= 4.5, ratios


@pytest.mark.parametrize("name", ["pool", "ramp", "devices", "brokerage", "hostile"])
@pytest.mark.parametrize("width", [400, 768, 1280, 1920])
def test_nothing_overflows_sideways(opened, name, width):
    page = opened(name, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawn = page.evaluate("""[...document.querySelectorAll(".chart")].map(
        c => [c.querySelector(".main-svg").getBoundingClientRect().right, c.getBoundingClientRect().right])""")
    assert all(svg <= box + 1 for svg, box in drawn)


def test_every_chart_has_words_and_its_numbers_for_those_who_cannot_see_it(opened):
    page = opened("pool")
    named = page.evaluate("""[...document.querySelectorAll("figure")].map(f => ({
        label: f.querySelector(".chart").getAttribute("aria-label"), rows: f.querySelectorAll("details tbody tr").length
    }))""")
    assert all(len(one["label"]) > 30 and one["rows"] > 0 for one in named)


def test_on_paper_it_is_light_and_no_chart_is_cut(opened):
    page = opened("pool", scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 695, "height": 1000})
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_timeout(300)
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(26, 30, 34)"
    assert page.evaluate("getComputedStyle(document.querySelector('.buttons')).display") == "none"
    boxes = page.evaluate("""[...document.querySelectorAll(".chart")].map(c => {
        const svg = c.querySelector(".main-svg").getBoundingClientRect(), box = c.getBoundingClientRect();
        return [svg.width - box.width, svg.height - box.height, box.right - innerWidth];
    })""")
    assert all(abs(w) <= 1 and abs(h) <= 1 and over <= 0 for w, h, over in boxes), boxes
    assert len(page.pdf(prefer_css_page_size=True)) > 50_000
