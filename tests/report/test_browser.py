"""The page in a real browser: slider, search, download, sorting, map, narrow screens, themes and print."""

from __future__ import annotations

import base64
import csv
import re
from typing import Any

import numpy as np
import pytest

from exmlds.report import page

pytestmark = pytest.mark.slow

NARROW = 375  # CSS pixels, the width of a small telephone


def rows_of(browser: Any, column: int) -> list[str]:
    """The cells of a column of the table of all labels."""
    return browser.run(
        "[...document.querySelectorAll('#all-labels tbody tr')]"
        f".map((row) => row.cells[{column}].textContent)"
    )


def test_the_slider_says_what_a_threshold_means(browser: Any, embedded: Any) -> None:
    browser.open(page.rendered(embedded.report))
    curve = embedded.report.over_threshold
    said = "document.getElementById('meaning').textContent"
    at_own = browser.run(said)
    assert at_own.startswith(f"At {curve.thresholds[curve.own]:.3g}: ")
    assert at_own in re.sub("<[^>]*>", "", page.rendered(embedded.report).decode())
    before = browser.run("document.querySelector('.marker').getAttribute('transform')")
    browser.run("document.getElementById('level').focus()")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
        browser.press(key)
    i = curve.own + 3
    precision, recall = curve.precision(i), curve.recall(i)
    right, found = (np.floor(100 * share + 0.5).astype(int) for share in (precision, recall))
    expected = (
        f"At {curve.thresholds[i]:.3g}: {right} of 100 assigned labels are right, "
        f"{found} of 100 right labels are found."
    )
    assert browser.run(said) == expected
    assert browser.run("document.getElementById('level').getAttribute('aria-valuetext')") == expected
    values = browser.run(
        "[...document.querySelectorAll('#threshold dl dd')].map((value) => value.textContent)"
    )
    shares = [f"{100 * share:.1f}" for share in (precision, recall, curve.f1(i))]
    assert values == [*shares, f"{curve.assigned[i] / 150:.2f}"]
    assert browser.run("document.querySelector('.marker').getAttribute('transform')") != before
    browser.run("document.getElementById('own-level').click()")
    assert browser.run(said) == at_own


def test_labels_are_searched_sorted_and_turned(browser: Any, embedded: Any) -> None:
    browser.open(page.rendered(embedded.report))
    counts = embedded.report.label_counts
    status = "document.querySelector('#all-labels .pager output').textContent"
    assert rows_of(browser, 0) == counts.names[:20]
    assert browser.run(status) == "1–20 of 37 labels"
    browser.run("document.querySelector('[data-turn=\"1\"]').click()")
    assert rows_of(browser, 0) == counts.names[20:]
    assert browser.run(status) == "21–37 of 37 labels"
    assert browser.run("document.querySelector('[data-turn=\"1\"]').disabled")
    browser.run("document.querySelector('#all-labels th:nth-child(7) button').click()")
    assert rows_of(browser, 6) == [str(rows) for rows in sorted(counts.training, reverse=True)[:20]]
    browser.run("document.getElementById('label-search').focus()")
    browser.type("MUSIC")
    assert rows_of(browser, 0) == ["music"]
    assert browser.run(status) == "1–1 of 1 labels, found among 37"
    browser.type("x")
    assert rows_of(browser, 0) == []
    assert browser.run(status) == "No label matches"


def test_all_labels_are_downloaded(browser: Any, embedded: Any, tmp_path: Any) -> None:
    browser.open(page.rendered(embedded.report))
    browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.run("document.getElementById('label-search').focus()")
    browser.type("music")  # the file has all labels nevertheless
    browser.run("document.querySelector('.download').click()")
    file = tmp_path / "labels.csv"
    browser.until(lambda: file.exists() and file.stat().st_size)
    with file.open(encoding="utf-8-sig", newline="") as opened:
        lines = list(csv.DictReader(opened))
    found = [
        (
            line["label"],
            *(int(line[name]) for name in ("training_rows", "test_rows", "assigned", "found")),
            *(float(line[name]) if line[name] else None for name in ("precision", "recall", "f1")),
        )
        for line in lines
    ]
    assert found == list(embedded.report.label_counts.rows())


def test_nothing_is_cut_on_a_narrow_screen(browser: Any, embedded: Any, wicked: Any) -> None:
    for report in (embedded.report, wicked):
        browser.open(page.rendered(report), width=NARROW)
        assert browser.run("document.documentElement.scrollWidth") <= NARROW
        cut = "[...document.querySelectorAll('.scroll, th, td, dd, dt, p, h1, h2, h3, li')]"
        cut += ".filter((part) => part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 1)"
        assert browser.run(f"{cut}.map((part) => part.textContent.slice(0, 80))") == []


# The text of an element if the last part of its URI is on more than one line, or outside of the element.
BROKEN = """
((element) => {
  const node = [...element.childNodes].filter((child) => child.nodeType === Node.TEXT_NODE).at(-1);
  const range = document.createRange();
  range.selectNodeContents(node);
  const text = range.getClientRects(), box = element.getBoundingClientRect();
  return text.length > 1 || text[0].right > box.right + 1 ? [element.textContent] : [];
})
"""
OVERLAPPING = """
(() => {
  const boxes = [...document.querySelectorAll(".map text")].map((word) => word.getBoundingClientRect());
  return boxes.filter((a, i) => boxes.some((b, j) => j < i && a.left < b.right && b.left < a.right
    && a.top + 3 < b.bottom && b.top + 3 < a.bottom)).length;
})()
"""


@pytest.mark.parametrize("width", [1280, NARROW])
def test_uris_are_broken_at_slashes(browser: Any, uris: Any, width: int) -> None:
    browser.open(page.rendered(uris), width=width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    for part in ("#labels tbody th", "#confused tbody th", "#confused td.name", ".matches button"):
        if part == ".matches button":
            browser.run("document.getElementById('search').focus()")
            browser.type("yso")
        found = f"[...document.querySelectorAll('{part}')]"
        assert browser.run(f"{found}.length") > 5
        assert browser.run(f"{found}.flatMap({BROKEN})") == [], part
    drawn = browser.run("[...document.querySelectorAll('.map text')].map((word) => word.textContent)")
    assert len(set(drawn)) == len(drawn) > 5
    assert all(re.fullmatch(r"p\d{5}", name) for name in drawn)
    assert browser.run(OVERLAPPING) == 0


def test_printing_breaks_pages_between_parts(browser: Any, embedded: Any) -> None:
    browser.open(page.rendered(embedded.report), fragment="#theme=dark")
    browser.media("print")
    style = "getComputedStyle(document.querySelector('{}')).{}"
    for part in ("#labels", "#measures", "#map"):
        assert browser.run(style.format(part, "breakBefore")) == "page"
    for part in ("figure", "tr", ".examples > li", "#all-labels", ".figures > div"):
        assert browser.run(style.format(part, "breakInside")) == "avoid"
    for part in ("nav", ".tools", "#theme"):
        assert browser.run(style.format(part, "display")) == "none"
    assert browser.run("getComputedStyle(document.documentElement).colorScheme") == "light"
    pdf = base64.b64decode(browser.send("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF")
    assert 5 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12


def test_light_and_dark(browser: Any, embedded: Any) -> None:
    html = page.rendered(embedded.report)
    for fragment, prefers_dark, dark in (
        ("", False, False),
        ("", True, True),
        ("#theme=dark", False, True),
        ("#theme=light", True, False),
    ):
        browser.open(html, fragment=fragment, dark=prefers_dark)
        colour = browser.run("getComputedStyle(document.documentElement).backgroundColor")
        assert (int(re.findall(r"\d+", colour)[0]) < 60) == dark, (fragment, prefers_dark)


def test_the_page_says_the_same_without_scripts(browser: Any, embedded: Any) -> None:
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page.rendered(embedded.report))
        shown = browser.run("document.body.innerText")
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)
    assert "The first label is right for" in shown
    assert "of 100 assigned labels are right" in shown
    assert "The first 20 are shown." in shown
    assert "The map needs JavaScript" in shown
    assert "Download CSV" not in shown


def test_the_map_is_drawn_and_searched(browser: Any, embedded: Any) -> None:
    browser.open(page.rendered(embedded.report))
    assert browser.run("document.querySelector('.map svg').dataset.drawn") == "37"
    assert "37 labels drawn" in browser.run("document.getElementById('map').innerText")
    browser.open(page.rendered(embedded.report), fragment="#search=MUSIC")
    shown = browser.run("document.getElementById('map').innerText")
    assert "1 of 37 labels match" in shown
    assert browser.run("document.querySelector('.matches button').textContent") == "music"
    assert browser.run("document.querySelectorAll('circle.hit').length") == 1


def test_names_do_no_harm_in_a_browser(browser: Any, wicked: Any) -> None:
    browser.open(page.rendered(wicked), fragment="#search=script")
    assert "4 of 5 labels match" in browser.run("document.getElementById('map').innerText")
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert r"\x07 a bell, \u202eand back\u202c" in browser.run(
        "document.querySelector('#all-labels').innerText"
    )


def test_columns_are_sorted_and_the_map_is_moved(browser: Any, embedded: Any) -> None:
    browser.open(page.rendered(embedded.report))
    state = browser.run("""(() => {
      const head = document.querySelector("#labels th:nth-child(6) button");
      const column = () => [...document.querySelectorAll("#labels table")[0].tBodies[0].rows]
        .map((row) => +row.cells[5].dataset.v);
      const sorted = [];
      for (let i = 0; i < 2; i++) { head.click(); sorted.push(column()); }
      const dots = [...document.querySelectorAll(".map circle")];
      const spread = () => Math.max(...dots.map((dot) => +dot.getAttribute("cx")))
        - Math.min(...dots.map((dot) => +dot.getAttribute("cx")));
      const wide = [spread()], zoom = (name) => document.querySelector(`[data-zoom=${name}]`).click();
      zoom("in"); wide.push(spread());
      zoom("all"); wide.push(spread());
      const svg = document.querySelector(".map svg"), box = svg.getBoundingClientRect();
      const at = (x, y) => ({ clientX: box.left + x, clientY: box.top + y, bubbles: true, cancelable: true });
      const over = dots[0], [x, y] = [+over.getAttribute("cx"), +over.getAttribute("cy")];
      svg.dispatchEvent(new WheelEvent("wheel", { ...at(x, y), deltaY: -400 })); wide.push(spread());
      svg.dispatchEvent(new PointerEvent("pointermove", at(x + 1, y)));
      svg.dispatchEvent(new PointerEvent("pointermove", at(x, y)));
      const tooltip = document.querySelector(".tooltip").textContent;
      svg.dispatchEvent(new WheelEvent("wheel", { ...at(x, y), deltaY: -400 })); wide.push(spread());
      return { sorted, wide, tooltip };
    })()""")
    lines = sorted(line.training for line in embedded.report.labels.best)
    assert state["sorted"] == [lines[::-1], lines]
    start, closer, back, scrolled, wheeled = state["wide"]
    assert closer == pytest.approx(1.5 * start, rel=0.01)
    assert back == scrolled == start  # scrolling the page over the map does not zoom
    assert wheeled == pytest.approx(start * np.exp(0.64), rel=0.01)
    drawn = embedded.report.label_map
    assert state["tooltip"].startswith(f"{drawn.names[0]}{drawn.training[0]} training rows")
