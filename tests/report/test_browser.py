"""The report in a real browser: what is drawn, in which colours, at which width, and on paper."""

import csv

import pytest
from support import report_summaries as given
from support.browser import browser
from support.pages import write_comparison, write_report
from support.profiles import write_made_profile
from support.sizings import a_replay, write_sizing_of
from support.synthetic import Truth, make_run
from support.synthetic_queries import make_query_run
from support.traces import make_pools, make_traced
from support.waiting import TIMEOUT_S

from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.experiment import summarise
from stallmark.analysis.locality import characterise
from stallmark.record.reader import find_records
from stallmark.report.locality import locality_document
from stallmark.report.renderers import write_pages
from stallmark.sizing.demand import demand_of
from stallmark.sizing.document import sizing_document
from stallmark.sizing.summary import size

__all__ = ["browser"]

DRAWN = """() => "drawn" in document.documentElement.dataset && [...document.querySelectorAll(".chart")].every(
    c => c.closest("details:not([open])") || c.querySelector(".main-svg[viewBox]"))"""
OPEN = "() => document.querySelectorAll('details.evidence').forEach(d => d.open = true)"
FITS = """() => [...document.querySelectorAll(".chart")].every(c => c.querySelector(".main-svg")) &&
    [...document.querySelectorAll(".chart")].every(c => Math.abs(c.querySelector(".main-svg")
    .getBoundingClientRect().right - c.getBoundingClientRect().right) <= 1)"""
COLOURS = """() => ["body", ".chart .xtick text", ".chart .gridlayer path", ".banner"].map(
    s => { const c = getComputedStyle(document.querySelector(s)); return c.backgroundColor + c.fill + c.stroke })"""


@pytest.fixture(scope="module")
def files(tmp_path_factory, brokerage_runs):
    folder = tmp_path_factory.mktemp("reports")
    made = {
        "pool": given.buffer_pool(),
        "ramp": given.user_ramp(),
        "devices": given.devices(transactions=4),
        "brokerage": brokerage_runs,
        "hostile": given.experiment([given.run([given.step(variant="=<script>window.hurt=1</script>" * 4)])]),
    }
    pages = {name: write_report(one, folder / f"{name}.html").as_uri() for name, one in made.items()}
    for number, name in enumerate(("bare device, a long name", "b", "c", "d")):
        make_run(folder / name, Truth(variant=name, sequence=number, tps=40 * 9**number))
        make_query_run(folder / "queries" / name, variant=name, sequence=number)
        make_run(folder / "curve" / name, Truth(variant=name, sequence=number, pool_bytes=2 ** (24 + number)))
    curve = write_report(summarise(find_records([folder / "curve"])), folder / "curve.html")
    runs = summarise(find_records([folder / name for name in ("bare device, a long name", "b", "c", "d")]))
    compared = write_comparison(runs, compare_runs(runs.runs), folder / "comparison.html")
    queries = write_report(summarise(find_records([folder / "queries"])), folder / "queries.html")
    [sizing] = write_pages(sizing_document(sized(folder)), folder / "sizing.html")
    traced = {
        "locality": make_pools(folder / "locality"),
        "one pool": make_traced(folder / "one"),
        "short trace": make_traced(folder / "short", reads=9_000),
    }
    for name, made_runs in traced.items():
        document = locality_document(characterise(find_records([made_runs])))
        pages[name] = write_pages(document, folder / f"{name}.html")[0].as_uri()
    made = {"comparison": compared, "queries": queries, "sizing": sizing, "memory curve": curve}
    return pages | {name: page.as_uri() for name, page in made.items()}


def sized(folder):
    """Two candidates and the hardware of today: one name is long, one hostile, and the times of one lie far apart."""
    profile = write_made_profile(folder / "profile", 120)
    demand = demand_of(profile)
    names = ("a new array with a name that is long", "<script>window.hurt=1</script>")
    replays = (a_replay((1.5, 1.6)), a_replay((0.7, 0.75), light_ms=0.1))
    made = [
        write_sizing_of(folder / f"candidate {number}", demand, name, replay=replay, cost=9000.0)
        for number, (name, replay) in enumerate(zip(names, replays, strict=True))
    ]
    return size(profile, made, today=write_sizing_of(folder / "old", demand, "old", replay=(1.0, 1.1)))


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_context().new_page()
    page.set_default_timeout(TIMEOUT_S * 1000)
    return page


@pytest.fixture
def opened(page, files):
    """Opens a report; fails on any error in the console and any request but the file itself. It is one page for all:
    a new one would have to compile all of Plotly again. A test waits for functions: the page's security policy lets
    Playwright evaluate an expression once, and it evaluates one again for each look."""
    faults, allowed = [], []
    listeners = {
        "console": lambda m: faults.append(m.text) if m.type in ("error", "warning") else None,
        "pageerror": lambda e: faults.append(str(e)),
        "request": lambda r: faults.append(r.url) if r.url not in allowed and not r.url.startswith("blob:") else None,
    }
    for event, listener in listeners.items():
        page.on(event, listener)

    def open_it(name: str, width: int = 1280, scheme: str = "light"):
        allowed.append(files[name])
        page.emulate_media(media="screen", color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(files[name])
        page.wait_for_function(DRAWN)
        return page

    yield open_it
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    assert faults == []


UNREADABLE = """() => [...document.querySelectorAll(".chart, svg.picture")].flatMap(chart => {
    const frame = chart.getBoundingClientRect(), found = [];
    const words = [...chart.querySelectorAll("text")].map(e => [e.textContent.trim(), e.getBoundingClientRect()])
        .filter(([text, box]) => text && box.width && frame.width);
    words.forEach(([text, a], number) => {
        if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1) found.push("cut: " + text);
        for (const [other, b] of words.slice(number + 1)) {
            const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (across > 2 && down > 4) found.push(`${text} / ${other}`);
        }
    });
    return found.map(one => `${chart.id || "picture"} ${one}`);
})"""
COUNTS = """() => Object.entries(stallmark.figures).map(([id, figure]) => ({
    id,
    expected: figure.data.filter(t => t.y.some(v => v !== null)).length,
    drawn: document.getElementById(id).querySelectorAll(".scatterlayer .trace, .barlayer .trace").length,
    ink: [...document.getElementById(id).querySelectorAll(".trace path")]
        .filter(p => (p.getAttribute("d") || "").length > 5).length,
}))"""
NAMED = """() => [...document.querySelectorAll("figure")].map(f => ({
    label: f.querySelector(".chart, svg.picture").getAttribute("aria-label"),
    rows: f.querySelectorAll("details tbody tr").length
}))"""


@pytest.mark.parametrize(
    ("name", "figures"),
    [("pool", 9), ("ramp", 9), ("devices", 9), ("brokerage", 9), ("hostile", 9), ("comparison", 1), ("queries", 1),
     ("sizing", 1), ("locality", 5), ("one pool", 5), ("short trace", 5), ("memory curve", 1)],
)  # fmt: skip
def test_every_figure_is_drawn_whole_and_readable_at_every_width(opened, name, figures):
    page = opened(name, width=420)
    page.evaluate(OPEN)
    for width in (420, 768, 1920, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(FITS)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if name != "hostile":  # a name that is longer than any column is cut
            assert page.evaluate(UNREADABLE) == []
    counts = page.evaluate(COUNTS)
    assert len(counts) >= figures
    for one in counts:
        assert one["drawn"] == one["expected"], one
        assert one["ink"] >= one["expected"], one
    assert page.evaluate("window.hurt") is None
    named = page.evaluate(NAMED)
    assert all(len(one["label"]) > 30 and one["rows"] > 0 for one in named)  # for those who cannot see it


CURVE = ("#answer .answer", "#chart-pools", "#pool table", "#chart-flash")


@pytest.mark.parametrize(
    ("name", "parts", "within"),
    [
        ("sizing", ("#answer .answer", "#answer table", "#chart-latency", "#untested"), 900),
        ("locality", CURVE, 700),
        ("one pool", CURVE, 700),
    ],
)
def test_a_page_begins_with_its_answer(opened, name, parts, within):
    for width in (420, 1400):
        page = opened(name, width=width)
        tops = page.evaluate("parts => parts.map(s => document.querySelector(s).getBoundingClientRect().top)", parts)
        assert tops == sorted(tops) and tops[1] < within


def test_points_stand_where_their_values_are(opened):
    """The topmost mark of the TPS chart is the fastest emulated step: what is drawn is the data."""
    page = opened("pool")
    heights = page.evaluate("""
        [...document.querySelectorAll("#chart-tps .subplot.xy .point")].map(p => p.getBoundingClientRect().y)""")
    tps = [s.throughput.tps for s in given.buffer_pool().steps if s.emulated]
    assert sorted(range(4), key=lambda i: -heights[i]) == sorted(range(4), key=lambda i: tps[i])


CONTRAST = """() => {
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
            of(".emulation", "color"), of(".chart .xtick text", "fill"), of(".chart .annotation text", "fill")];
}"""


def test_light_and_dark_differ_and_have_contrast_and_on_paper_it_is_light_and_uncut(opened):
    """Contrast is WCAG AA: 4.5:1 for text, on the page and in charts."""
    page = opened("pool")
    light = page.evaluate(COLOURS)
    assert min(page.evaluate(CONTRAST)) >= 4.5
    page.click("#theme")
    dark = page.evaluate(COLOURS)
    assert all(a != b for a, b in zip(light, dark, strict=True))
    page.click("#theme")
    assert page.evaluate(COLOURS) == light
    page = opened("pool", scheme="dark")
    assert page.evaluate(COLOURS) == dark
    assert min(page.evaluate(CONTRAST)) >= 4.5

    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 695, "height": 1000})
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function("() => getComputedStyle(document.body).color == 'rgb(26, 30, 34)'")
    assert page.evaluate("getComputedStyle(document.querySelector('.buttons')).display") == "none"
    page.wait_for_function("""() => [...document.querySelectorAll(".chart")].every(c => {
        const svg = c.querySelector(".main-svg").getBoundingClientRect(), box = c.getBoundingClientRect();
        return Math.abs(svg.width - box.width) <= 1 && Math.abs(svg.height - box.height) <= 1
            && box.right <= innerWidth;
    })""")
    hidden = (
        "[...document.querySelectorAll('#cautions li, dl.marks div')].filter(e => !e.getBoundingClientRect().height)"
    )
    assert page.evaluate(f"{hidden}.length") == 0  # what must not be concluded, and what marks mean, is on paper too
    assert len(page.pdf(prefer_css_page_size=True)) > 50_000


def test_the_first_screen_holds_answer_picture_and_cautions_and_a_narrow_one_scrolls_no_page(opened):
    page = opened("pool", width=1400)
    bottom = "s => Math.max(...[...document.querySelectorAll(s)].map(e => e.getBoundingClientRect().bottom))"
    assert 100 < page.evaluate(bottom, "svg.picture") < page.evaluate(bottom, "#cautions") < 900
    assert page.evaluate("document.querySelector('.answer').getBoundingClientRect().bottom") < 300
    page = opened("pool", width=420)
    assert page.evaluate("document.documentElement.scrollWidth") == 420
    table = "getComputedStyle(document.querySelector('.scroll:has(.summary)'), '::before').content"
    page.wait_for_function(f"() => {table}.includes('scroll')")


TITLE_IS_WHOLE = """svg => {
    document.body.insertAdjacentHTML("beforeend", `<div id="saved">${svg}</div>`);
    const whole = document.querySelector("#saved svg").getBoundingClientRect();
    const [title, ...others] = document.querySelectorAll("#saved .gtitle, #saved .annotation-text");
    const place = title.getBoundingClientRect();
    const free = others.every(one => one.getBoundingClientRect().top >= place.bottom - 2);
    document.querySelector("#saved").remove();
    return place.top >= whole.top && place.right <= whole.right && free;
}"""


def test_every_chart_is_saved_as_svg_png_and_csv(opened):
    """A saved chart carries its title, and EMULATED, with it."""
    page, tables = opened("pool"), {}
    for chart in ("picture", "tps", "time-emulated"):
        saved = {}
        for kind in ("svg", "png", "csv"):
            with page.expect_download() as downloaded:
                page.click(f"#figure-{chart} [data-save={kind}]")
            assert downloaded.value.suggested_filename == f"{chart}.{kind}"
            saved[kind] = downloaded.value.path().read_bytes()
        assert saved["png"].startswith(b"\x89PNG") and len(saved["png"]) > 10_000
        assert b"<svg" in saved["svg"] and b"EMULATED" in saved["svg"]
        assert chart == "picture" or page.evaluate(TITLE_IS_WHOLE, saved["svg"].decode())
        header, *rows = csv.reader(saved["csv"].decode("utf-8-sig").splitlines())
        assert len(rows) >= 5 and all(len(row) == len(header) for row in rows)
        tables[chart] = {row[0]: row[1] for row in rows}
    assert (tables["tps"]["cap 100%"], tables["tps"]["cap 5%"]) == ("2968", "412")  # no thousands separators


def test_a_name_that_is_a_formula_is_none_in_a_saved_csv(opened):
    page = opened("hostile")
    with page.expect_download() as downloaded:
        page.click("#figure-picture [data-save=csv]")
    rows = list(csv.reader(downloaded.value.path().read_text("utf-8-sig").splitlines()))
    assert [row for row in rows if row[0].startswith("'=<script>")]


def test_a_link_into_the_folded_evidence_opens_it(opened):
    page = opened("pool")
    assert page.evaluate("document.querySelector('#transactions details').open") is False
    page.click("nav a[href='#transactions']")
    page.wait_for_function("() => document.querySelector('#transactions details').open")
    listed = page.evaluate("[...document.querySelectorAll('nav a')].map(a => a.getAttribute('href'))")
    assert {"#summary", "#findings", "#axis", "#time", "#environment"} <= set(listed)
    assert page.evaluate("ids => ids.every(id => document.querySelector(id))", listed)
