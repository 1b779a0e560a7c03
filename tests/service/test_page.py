"""The page of `exmlds serve` in a real browser, by real clicks and keys, against a real service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from exmlds.errors import DataWarning

from .conftest import Library, Running, fit, uri

pytestmark = pytest.mark.slow

CONTROL = 2  # the modifier of keys
NARROW = 360  # CSS pixels
HARM = "document.title = 'harm'"
WICKED_NAME = f'<img src=x onerror="{HARM}">'
WICKED_TEXT = f"<script>{HARM}</script> venom antidote poison </textarea><svg onload={HARM}>"
UNTAUGHT = "lighthouses"  # a concept without a training document
GREECE = "athens sparta homer temple myth column philosopher"

ROWS = "[...document.querySelectorAll('#rows li.row')].filter((row) => !row.hidden)"
NAMES = f"{ROWS}.map((row) => row.querySelector('bdi').textContent)"
ACCEPTED = "[...document.querySelectorAll('#accepted li')].map((item) => item.textContent)"
MARKED = "[...document.querySelectorAll('#marked mark')].map((mark) => mark.textContent)"
WHY = "document.querySelector('.why:not([hidden]) .evidence') !== null"
# Each visible text and its contrast with its background; marks are the background of the text above them.
CONTRASTS = """
(() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = channels(colour).map((c) => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((channels(colour)[3] ?? 1) === 1) return colour;
    }
  };
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (!text || !element.getClientRects().length || element.closest("#marked")) continue;
    found.push([contrast(getComputedStyle(element).color, behind(element)), text]);
  }
  const written = document.getElementById("text"), ink = getComputedStyle(written).color;
  found.push([contrast(ink, behind(written)), "the text"]);
  for (const mark of document.querySelectorAll("#marked mark")) {
    found.push([contrast(ink, getComputedStyle(mark).backgroundColor), mark.className]);
  }
  for (const field of document.querySelectorAll("[placeholder]")) {
    found.push([contrast(getComputedStyle(field, "::placeholder").color, behind(field)), field.placeholder]);
  }
  return found;
})()
"""


def text_of(selector: str) -> str:
    return f"document.querySelector({selector!r}).textContent"


def is_hidden(selector: str) -> str:
    return f"document.querySelector({selector!r}).hidden"


@pytest.fixture(scope="module")
def folder(books: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A growable model of books, and of a label that would break the page if it were read as HTML."""
    texts = [*books.texts, *(f"{WICKED_TEXT} {text}" for text in books.texts[:8])]
    labels = [*books.labels, *([WICKED_NAME] for _ in range(8))]
    path = tmp_path_factory.mktemp("page") / "books"
    with pytest.warns(DataWarning, match="not in the vocabulary"):
        model = fit(books._replace(texts=texts, labels=labels), growable=True)
    model.save(path)
    return path


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Running]:
    with Running(folder) as running:
        yield running


Open = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, service: Running) -> Open:
    """`opened(text)`: the page, with suggestions for a text if there is one."""

    def open_page(text: str = "", **options: Any) -> Any:
        browser.go(service.address, **{"width": 1280, **options})
        ready(browser)
        if text:
            suggest(browser, text)
        return browser

    return open_page


def ready(page: Any) -> None:
    page.wait("document.documentElement.dataset.ready !== undefined")


def suggest(page: Any, text: str) -> None:
    page.click("#text")
    page.type(text)
    page.press("Enter", CONTROL)
    page.wait(f"{text_of('#count')}.includes('reach')")
    page.press("Escape")  # leaves the text


def test_from_a_text_to_labels_that_are_copied(opened: Open) -> None:
    page = opened()
    assert page.run(text_of("#name")) == "books"
    assert re.fullmatch(r"\w+ · 39 labels · 258 documents", page.run(text_of("#facts")))
    page.click("#text")
    page.type(GREECE)
    page.click("#ask .main")
    page.wait(f"{ROWS}.length > 0")
    assert page.run(NAMES)[0] == "ancient greece"
    chance = page.run(text_of(".row .chance"))
    width = page.run("document.querySelector('.row .bar i').style.width")
    assert float(width.rstrip("%")) == pytest.approx(float(re.sub("[^0-9]", "", chance)), abs=1)
    page.click(".row .decide.accepted")
    assert page.run(ACCEPTED) == ["ancient greece"]
    page.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    page.click("#copy")
    page.wait(f"{text_of('#said')} === 'Copied 1 label, one a line.'")
    assert page.run("navigator.clipboard.readText()") == f"ancient greece\t{uri('ancient greece')}"
    page.click(".row .decide.accepted")  # again: undone
    assert page.run(ACCEPTED) == []
    assert page.complaints == []


def test_why_names_documents_words_and_evidence(opened: Open) -> None:
    page = opened(f"😀 {GREECE} 😀")
    page.click(".row .label")
    page.wait(WHY)
    assert page.run("document.querySelector('.row .label').ariaExpanded") == "true"
    titles = page.run("[...document.querySelectorAll('.why h3')].map((title) => title.textContent)")
    assert {"Training documents that voted", "Evidence, in log-odds", "Similar labels"} <= set(titles)
    assert page.run("document.querySelectorAll('.documents li .text').length") == 5
    assert "ancient greece" in page.run(text_of(".documents .chips"))
    # Offsets count code points, of which an emoji is one: the marks are whole words nevertheless.
    marked = page.run(MARKED)
    assert marked
    assert set(marked) <= set(GREECE.split())
    above = "document.querySelector('#text').getBoundingClientRect().top"
    assert page.run(f"document.querySelector('#marked').getBoundingClientRect().top === {above}")
    values = page.run("[...document.querySelectorAll('.evidence .number')].map((cell) => cell.textContent)")
    *parts, total = [float(value.replace("−", "-")) for value in values]
    assert sum(parts) == pytest.approx(total, abs=0.05)
    similar = page.run(text_of(".pill bdi"))
    page.click(".pill")
    assert page.run(ACCEPTED) == [similar]
    page.click(".row .label")
    assert page.run(MARKED) == []
    assert page.run(is_hidden(".why"))
    assert page.complaints == []


def test_marks_are_ranges_of_characters(opened: Open) -> None:
    page = opened()
    found = page.run("""import(location.origin + "/static/marks.js").then(({ inUnits, marked, passages }) => {
      const text = "😀 red 𝔵 redwood";
      const marks = inUnits(text, [
        { start: 2, end: 5, weight: 1, kind: "word" },
        { start: 8, end: 15, weight: -0.1, kind: "word" },
        { start: 8, end: 11, weight: 0.5, kind: "name" },
        { start: 15, end: 15, weight: 1, kind: "word" },
      ]);
      const shown = (nodes) => nodes.map((node) => [node.textContent, node.className ?? ""]);
      const long = `${"a ".repeat(99)}mark${" b".repeat(99)}`;
      const around = passages(long, [{ start: 198, end: 202, weight: 1, kind: "word" }]);
      const mark = (i) => ({ start: 2 * i, end: 2 * i + 1, weight: 1, kind: "word" });
      const many = Array.from({ length: 200_000 }, (_, i) => mark(i)), letters = "a ".repeat(many.length);
      const passage = passages(letters, many)[0].map((node) => node.textContent ?? node);
      const texts = around.map((nodes) => nodes.map((node) => node.textContent ?? node));
      return [shown(marked(text, marks)), texts, passage.join("").length, marked(letters, many).length];
    })""")
    assert found == [
        [
            *(["😀 ", ""], ["red", "word for strong"], [" 𝔵 ", ""]),
            *(["red", "name"], ["wood", "word against "]),
        ],
        [["… ", "a " * 29, "mark", " b" * 29, " …"]],
        *(401, 400_000),
    ]


def test_shares_never_read_as_none_or_all(opened: Open) -> None:
    page = opened()
    shares = [0, 0.0004, 0.0005, 0.0094, 0.0096, 0.5, 0.996, 1]
    shown = page.run(f"import(location.origin + '/static/dom.js').then((dom) => {shares}.map(dom.percent))")
    assert shown == ["0 %", "<0.1 %", "0.1 %", "0.9 %", "1 %", "50 %", ">99 %", "100 %"]


def test_keys_do_all_of_it(opened: Open) -> None:
    page = opened(GREECE)
    page.run("document.querySelector('#more')?.click()")
    names = page.run(NAMES)
    focused = "document.activeElement.closest('li.row')?.querySelector('bdi').textContent"
    for key, at in (("j", 0), ("j", 1), ("j", 2), ("k", 1), ("k", 0), ("k", 0)):
        page.press(key)
        assert page.run(focused) == names[at]
    page.press("a")
    assert page.run(ACCEPTED) == names[:1]
    assert page.run(text_of("#announcer")) == f"{names[0]}: accepted"
    page.press("a")
    assert page.run(ACCEPTED) == []
    page.press("r")
    assert page.run("document.querySelector('.row .rejected').ariaPressed") == "true"
    page.press("a")
    assert page.run("document.querySelector('.row .rejected').ariaPressed") == "false"
    for key in ("Enter", "e"):
        page.press(key)
        page.wait(WHY)
        page.press("Escape")
        assert page.run(is_hidden(".why"))
    page.press("/")
    assert page.run("document.activeElement.id") == "search"
    page.type("a/r?")  # what is typed into a field is no command
    assert page.run("document.activeElement.value") == "a/r?"
    assert page.run(ACCEPTED) == names[:1]
    page.press("Escape")
    page.press("?")
    assert page.run("document.querySelector('#help').open")
    page.press("j")
    assert page.run("document.querySelector('#help').contains(document.activeElement)")
    page.press("Escape")
    assert not page.run("document.querySelector('#help').open")
    page.press("t")
    assert page.run("document.activeElement.id") == "text"
    page.press("Escape")
    page.press("j")  # back to where it was
    assert page.run(focused) == names[0]
    page.click("#keys")
    page.click("#letters")
    page.press("Escape")
    page.press("j")
    page.press("j")
    page.press("r")
    assert page.run(ACCEPTED) == names[:1]  # single letters are off
    page.run("localStorage.clear()")


def test_the_threshold_hides_suggestions(opened: Open) -> None:
    page = opened(GREECE)
    own = page.run(text_of("#threshold-value"))
    above = len(page.run(NAMES))
    assert page.run(text_of("#count")) == f"{above} of 20 {'reaches' if above == 1 else 'reach'} {own}"
    page.click("#more")
    lower = page.run(text_of("#threshold-value"))
    assert len(page.run(NAMES)) >= above + 5
    assert lower != own
    page.run("document.querySelector('#threshold').focus()")
    page.press("ArrowRight")
    assert page.run(text_of("#threshold-value")) != lower
    assert page.run("document.querySelector('#threshold').ariaValueText") == page.run(
        text_of("#threshold-value")
    )
    page.click("#own-threshold")
    assert page.run(text_of("#threshold-value")) == own
    assert len(page.run(NAMES)) == above


def test_a_text_without_a_known_word_is_said_to_be_one(opened: Open) -> None:
    page = opened()
    page.click("#text")
    page.type("qqqq zzzz")
    page.press("Enter", CONTROL)
    page.wait(f"{text_of('#count')} === 'None: the model knows no word of this text.'")
    assert page.run(NAMES) == []
    hidden = [page.run(is_hidden(part)) for part in ("#nothing-yet", "#nothing-found", "#threshold-tools")]
    assert hidden == [True, False, True]
    page.click("#clear")
    hidden = [page.run(is_hidden(part)) for part in ("#nothing-yet", "#nothing-found", "#threshold-tools")]
    assert hidden == [False, True, True]


def test_a_missed_label_teaches_the_model(opened: Open) -> None:
    page = opened("orbit olive pigment trench server")
    assert UNTAUGHT not in page.run(NAMES)
    page.press("/")
    page.type("lightho")
    page.wait("document.querySelector('#found [role=option]') !== null")
    assert page.run("document.activeElement.getAttribute('aria-activedescendant')") == "found-0"
    assert page.run(text_of("#found bdi")) == UNTAUGHT
    page.press("Enter")
    assert page.run(ACCEPTED) == [UNTAUGHT]
    page.press("Escape")
    page.click("#rows .accepted .label")  # why: the model knows the label by its name only
    page.wait(f"{text_of('.row.accepted .why')}.includes('0 training documents have this label')")
    page.click("#add-document")
    page.wait(f"{text_of('#said')}.startsWith('Document ')")
    assert "259 documents" in page.run(text_of("#facts"))
    # The suggestions are new: the label is the first one, and the document is why.
    assert page.run(NAMES)[0] == UNTAUGHT
    page.press("j")
    page.press("e")
    page.wait(WHY)
    assert page.run(text_of(".documents .tag")) == "added here"
    page.press("Escape")
    page.click("#send-feedback")
    page.wait(f"{text_of('#said')} === 'The feedback is kept.'")
    assert page.run("document.querySelector('#send-feedback').disabled")
    page.click("#delete-feedback")
    page.wait(f"{text_of('#said')} === 'The feedback is deleted.'")
    page.click("#remove-document")
    page.wait(f"{text_of('#facts')}.includes('258 documents')")
    assert page.complaints == []


def test_an_id_that_is_taken_is_refused(opened: Open) -> None:
    page = opened(GREECE)
    page.press("j")
    page.press("a")
    page.click("#document-id")
    page.type("mine")
    page.run("['first', 'second'].forEach(() => document.querySelector('#add-document').click())")
    page.wait(f"{text_of('#said')} === 'Document mine is in the model.'")
    assert page.run(is_hidden("#problem"))  # a double click adds one document
    page.click("#clear")
    page.type(GREECE)
    page.press("Enter", CONTROL)
    page.wait(f"{ROWS}.length > 0")
    page.press("Escape")
    assert page.run(ACCEPTED) == []  # another text has no decisions yet
    page.press("j")
    page.press("a")
    page.click("#document-id")
    page.type("mine")
    page.press("Enter")
    page.wait(f"!{is_hidden('#problem')}")
    assert page.run(text_of("#problem-detail")) == "Give another id, or none."
    assert page.run(is_hidden("#problem-retry"))
    page.click("#problem-close")
    page.send(
        "Runtime.evaluate", expression="fetch('v1/documents/mine', {method: 'DELETE'})", awaitPromise=True
    )


def test_languages_name_the_labels(opened: Open) -> None:
    page = opened(GREECE)
    choices = "[...document.querySelectorAll('#language option')].map((option) => option.textContent)"
    assert sorted(page.run(choices)) == ["English", "Finnish"]
    page.run("document.querySelector('#language').focus()")
    page.press("f")
    page.wait(f"{NAMES}[0] === 'ancient greeceksi'")


def test_files_are_read_or_refused(opened: Open, tmp_path: Path) -> None:
    page = opened()
    files = {
        "greece.txt": GREECE.encode(),
        "page.pdf": b"%PDF",
        "latin.txt": "Perikl\u00e9s".encode("latin-1"),
        "long.txt": b"a" * 1_000_001,
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)

    def choose(name: str) -> None:
        found = page.send("Runtime.evaluate", expression="document.querySelector('#file')")["result"]
        page.send("DOM.setFileInputFiles", files=[str(tmp_path / name)], objectId=found["objectId"])

    choose("greece.txt")
    page.wait(f"{NAMES}[0] === 'ancient greece'")
    assert page.run("document.querySelector('#text').value") == GREECE
    assert page.run("document.querySelector('#document-id').value") == "greece"
    for name, problem in (
        ("page.pdf", "page.pdf is not a text file"),
        ("latin.txt", "latin.txt is not in UTF-8"),
        ("long.txt", "long.txt is too large"),
    ):
        choose(name)
        page.wait(f"{text_of('#problem-title')} === {problem!r}")
        assert page.run("document.querySelector('#text').value") == GREECE
    page.click("#clear")
    dropped = {"items": [], "files": [str(tmp_path / "greece.txt")], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        page.send("Input.dispatchDragEvent", type=kind, x=300, y=300, data=dropped)
    page.wait(f"{NAMES}[0] === 'ancient greece'")


def test_names_and_texts_do_no_harm(opened: Open) -> None:
    page = opened(WICKED_TEXT)
    page.run("document.querySelector('#text').value += ' \\ud800'")  # half of a pair, which a text may hold
    page.click("#ask .main")
    page.wait(f"{text_of('#count')}.includes('reach')")
    assert page.run(NAMES)[0] == WICKED_NAME
    page.press("j")
    page.press("a")
    page.press("e")
    page.wait(WHY)
    assert WICKED_TEXT in page.run(text_of(".documents .text"))
    page.press("/")
    page.type("<img")
    page.wait("document.querySelector('#found [role=option] bdi') !== null")
    assert page.run(text_of("#found bdi")) == WICKED_NAME
    page.press("Escape")
    page.click("#send-feedback")
    page.wait(f"{text_of('#said')} === 'The feedback is kept.'")
    page.click("#delete-feedback")
    page.wait(f"{text_of('#said')} === 'The feedback is deleted.'")
    assert page.run("document.querySelectorAll('img, svg, body script').length") == 0
    assert page.run("document.title") == "books · label suggestions"
    assert page.run(
        "performance.getEntriesByType('resource').every((one) => one.name.startsWith(location.origin))"
    )
    assert page.complaints == []  # no violation of the content security policy


def test_a_service_that_is_gone_is_said(opened: Open) -> None:
    page = opened(GREECE)
    offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.send("Network.enable")
    page.send("Network.emulateNetworkConditions", offline=True, **offline)
    try:
        page.click("#ask .main")
        page.wait(f"!{is_hidden('#problem')}")
    finally:
        page.send("Network.emulateNetworkConditions", offline=False, **offline)
    assert page.run(text_of("#problem-title")) == "The service does not answer"
    page.click("#problem-retry")
    page.wait(f"{is_hidden('#problem')}")
    assert page.run(NAMES)[0] == "ancient greece"


def test_a_token_is_asked_for_and_off_is_hidden(browser: Any, folder: Path) -> None:
    secret = "a-token-that-is-long-enough"
    environment = {"EXMLDS_READ_TOKEN": secret}
    with Running(folder, "--read-only", "--no-feedback", environment=environment) as service:
        browser.go(service.address, width=1280)
        browser.wait("document.querySelector('#token')?.open")
        browser.press("Escape")
        browser.wait(f"!{is_hidden('#problem')}")
        assert browser.run(is_hidden("#token-kept"))  # none was given
        browser.click("#problem-retry")
        for given in ("not-the-token-at-all", secret):
            browser.wait(
                "document.querySelector('#token')?.open && !document.querySelector('#token-value').value"
            )
            browser.type(given)
            browser.press("Enter")
        browser.wait(f"{text_of('#name')} === 'books'")
        assert browser.run("[sessionStorage.length, localStorage.length]") == [1, 0]
        assert not browser.run(is_hidden("#token-kept"))
        suggest(browser, GREECE)
        browser.press("j")
        browser.press("a")
        for control in ("#send-feedback", "#document-tools"):
            assert browser.run(is_hidden(control))
        browser.click("#forget-token")
        assert browser.run("sessionStorage.length") == 0


@pytest.mark.parametrize("dark", [False, True])
def test_the_text_has_contrast(opened: Open, dark: bool) -> None:
    page = opened(GREECE, dark=dark)
    page.press("j")
    page.press("r")
    page.press("j")
    page.press("a")
    page.press("e")
    page.wait(WHY)
    page.press("/")
    page.type("a")
    page.wait("document.querySelector('#found [role=option]') !== null")
    page.run("document.querySelector('#problem').hidden = false")
    found = page.run(CONTRASTS)
    assert len(found) > 100
    assert [one for one in found if one[0] < 4.5] == []
    background = page.run("getComputedStyle(document.documentElement).backgroundColor")
    assert (int(re.findall(r"\d+", background)[0]) < 60) == dark


def test_the_theme_is_chosen_and_kept(opened: Open) -> None:
    page = opened()
    dark = "getComputedStyle(document.documentElement).colorScheme"
    page.click("#theme")
    assert page.run(dark) == "dark"
    page = opened()
    assert page.run(dark) == "dark"
    assert page.run(text_of("#theme")) == "Light"
    page.click("#theme")
    assert page.run(dark) == "light"
    page.run("localStorage.clear()")


@pytest.mark.parametrize("width", [320, NARROW, 900])
def test_nothing_is_cut_on_a_narrow_screen(opened: Open, width: int) -> None:
    page = opened(GREECE, width=width)
    page.click(".row .label")
    page.wait(WHY)
    page.click(".row .decide.accepted")
    shown = page.run("document.querySelector('.in-text mark').checkVisibility()")
    assert shown == (width <= NARROW)  # where the text is not beside it
    assert page.run("document.documentElement.scrollWidth") <= width
    cut = "[...document.querySelectorAll('button, label, p, li, td, th, h1, h2, h3, bdi')]"
    cut += ".filter((part) => part.getBoundingClientRect().right > innerWidth + 1)"
    assert page.run(f"{cut}.map((part) => part.textContent.slice(0, 80))") == []
    small = "[...document.querySelectorAll('button')].map((button) => button.getBoundingClientRect())"
    assert page.run(f"{small}.filter((box) => box.height && box.height < 24).length") == 0


def test_controls_have_names(opened: Open) -> None:
    page = opened(GREECE)
    page.press("j")
    page.press("a")
    page.press("e")
    page.wait(WHY)
    page.press("/")
    page.type("a")
    page.wait("document.querySelector('#found [role=option]') !== null")
    page.send("Accessibility.enable")
    roles = {"button", "textbox", "combobox", "slider", "listbox", "option", "region", "list", "checkbox"}
    nodes = [node for node in page.send("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]
    shown = [
        (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if "role" in node
    ]
    controls = [(role, name) for role, name in shown if role in roles - {"list"}]
    assert {role for role, _ in controls} >= {"button", "textbox", "combobox", "slider", "option", "region"}
    assert [role for role, name in controls if not name.strip()] == []
    scores = [node["description"]["value"] for node in nodes if node.get("description")]
    assert page.run(text_of(".row .chance")) in scores  # a suggestion is read with its probability
    assert page.run("document.documentElement.lang") == "en"
