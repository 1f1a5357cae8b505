"""The viewer of trajectories in a real browser: by keys alone, on a phone, in the dark, hostile."""

import json
from pathlib import Path

import pytest
from reported import token_trajectory, write_lines

from browser import CHROMIUM, Browser, Page
from rewardswap.report import write_report

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

COUNT = "document.querySelector('[data-part=count]').textContent"
OPEN = "document.querySelector('[data-part=open]').textContent"
LIST = "document.querySelector('[data-part=list]')"


@pytest.fixture
def url(run_folder: Path) -> str:
    """A page with 14 evaluated trajectories and 12 of training: t4 and t8 solved, odd replayed."""
    kept = [
        token_trajectory(
            n, replayed=n % 2 == 1, success=n in (4, 8), family="two" if n == 5 else "heat"
        )
        for n in range(12)
    ]
    write_lines(run_folder / "trajectories/train.jsonl", kept)
    return write_report(run_folder).resolve().as_uri()


def select(page: Page, name: str, value: str) -> None:
    page.run(
        f"(() => {{ const f = document.querySelector('[data-filter={name}]');"
        f"f.value = {json.dumps(value)}; f.dispatchEvent(new Event('input')); }})()"
    )


def test_the_page_opens_without_a_complaint_and_shows_the_first_with_numbers_of_tokens(
    browser: Browser, url: str
) -> None:
    page = browser.open(url)
    assert page.run(COUNT) == "26 of 26"
    assert "the end of 0" in page.run(OPEN)
    assert page.run("document.querySelectorAll('.token').length") > 0
    assert page.complaints() == []


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"family": "two"}, 1 + 4),  # t5, and a3 and b1 before and after
        ({"outcome": "solved"}, 2 + 2 + 4),  # c1 and d1 before, a1, a2, a3 and d1 after
        ({"phase": "after"}, 7),
        ({"phase": "learn"}, 12),
        ({"kind": "replayed"}, 6),
        ({"kind": "fresh", "outcome": "solved"}, 2),
        ({"kind": "evaluated"}, 14),
        ({"words": "THE END OF 11"}, 1),
        ({"words": "nothing of this kind"}, 0),
    ],
)
def test_filters(browser: Browser, url: str, filters: dict[str, str], count: int) -> None:
    page = browser.open(url)
    for name, value in filters.items():
        select(page, name, value)
    assert page.run(COUNT) == f"{count} of 26"
    assert page.run(f"{LIST}.querySelectorAll('li:not([hidden])').length") == count
    if not count:
        assert page.run(OPEN) == "No trajectory fits these filters."


def test_keys_alone_reach_everything(browser: Browser, url: str) -> None:
    page = browser.open(url)
    reached = []
    for _ in range(60):
        page.key("Tab")
        reached.append(page.run("document.activeElement.dataset.part || ''"))
        if reached[-1] == "list":
            break
    assert reached[-1] == "list" and "search" in reached
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.run(outline) == "solid"
    chosen = f"document.getElementById({LIST}.getAttribute('aria-activedescendant'))"
    for key, count, place in (("Home", 1, 0), ("ArrowDown", 2, 2), ("j", 6, 8), ("k", 1, 7)):
        page.key(key, count)
        assert page.run(f"[...{LIST}.children].indexOf({chosen})") == place, key
        assert page.run(f"{chosen}.getAttribute('aria-selected')") == "true"
    assert page.run(f"{LIST}.querySelectorAll('[aria-selected=true]').length") == 1
    page.key("End")
    assert "end: after of d1, solved" in page.run(OPEN)
    page.key("Enter")
    assert page.run("document.activeElement.dataset.part") == "open"
    page.key("k")
    assert "end: after of c1, failed" in page.run(OPEN)
    page.key("/")
    for letter in "end of 3":
        page.key(letter)
    assert page.run(COUNT) == "1 of 26"
    assert "the end of 3" in page.run(OPEN)
    page.key("Escape")
    assert page.run("document.activeElement.dataset.part") == "list"


def test_keys_of_the_list_work_where_nothing_has_the_focus(browser: Browser, url: str) -> None:
    page = browser.open(url)
    assert page.run("document.activeElement === document.body")
    page.key("j", 2)
    assert page.run("document.activeElement.dataset.part") == "list"
    chosen = f"document.getElementById({LIST}.getAttribute('aria-activedescendant'))"
    assert page.run(f"[...{LIST}.children].indexOf({chosen})") == 7 + 2
    page = browser.open(url)
    page.key("/")
    assert page.run("document.activeElement.dataset.part") == "search"
    page.key("j")
    assert page.run("document.activeElement.value") == "j"


def colours(page: Page) -> list[list[str]]:
    """Of each token its side and how much of the colour it has."""
    found: list[list[str]] = page.run(
        "[...document.querySelectorAll('.token')].map((t) => "
        "[t.className.replace('token', '').trim(), t.style.getPropertyValue('--much')])"
    )
    return found


def test_tokens_are_coloured_by_what_is_chosen(browser: Browser, url: str) -> None:
    page = browser.open(url)
    select(page, "kind", "replayed")
    # advantages .5 and -1: half and all of the colour
    assert colours(page) == [["plus", "23%"], ["minus", "45%"]] * 2
    assert "full colour at ±1.00" in page.run(OPEN)
    page.run("document.querySelector('[name=colour][value=gap]').click()")
    # gaps: -.75 + .5 = -.25, and -.125 + .25 = .125
    assert colours(page) == [["minus", "45%"], ["plus", "23%"]] * 2
    assert "full colour at ±0.250" in page.run(OPEN)
    page.run("document.querySelector('[name=colour][value=\"\"]').click()")
    assert colours(page) == [["", ""]] * 4
    assert "mask 1" in page.run(OPEN)
    page.run("document.querySelector('.numbers summary').click()")
    page.run("new Promise((done) => setTimeout(done, 50))")
    assert page.run("document.querySelector('.numbers tbody tr').innerText") == (
        '"go"\t−0.5000\t−0.7500\t−0.2500\t+0.5000'
    )


def test_a_turn_says_all_that_is_known_of_it(browser: Browser, url: str) -> None:
    page = browser.open(url)
    select(page, "words", "the end of 5")
    said = page.run("document.querySelector('[data-part=open]').innerText")
    for words in (
        "two: failed", "task t5, episode 0 · 2 turns · out of turns · outcome 0",
        "replayed in phase learn, update 5 · policy version 5", "+0.25 in total",
        "the sink 5 . <act>", "go to sink <end>", "process +0.50", "process −0.25",
        "not admitted", "the end of 5",
    ):  # fmt: skip
        assert words in said, words
    label = page.run("document.querySelector('.bars svg').getAttribute('aria-label')")
    assert label == "Process reward of each turn: +0.50, −0.25."
    assert page.run("[...document.querySelectorAll('.bars rect')].map((r) => [r.classList[0], "
                    "+r.getAttribute('height')])") == [["plus", 19], ["minus", 9.5]]  # fmt: skip


def test_it_fits_a_phone(browser: Browser, url: str) -> None:
    page = browser.open(url, width=360, height=780)
    assert page.run("document.documentElement.scrollWidth") == 360
    below = "document.querySelector('[data-part=open]').getBoundingClientRect().top"
    assert page.run(f"{below} > {LIST}.getBoundingClientRect().bottom")
    page.run(f"{LIST}.children[9].click()")
    assert 0 <= page.run(below) < 40  # who taps sees what was opened


def contrast(page: Page, selector: str) -> float:
    """WCAG's contrast of a text and the first background behind it that is not transparent."""
    ratio: float = page.run(
        "(() => { let node = document.querySelector('" + selector + "');"
        "const rgb = (c) => { const x = document.createElement('canvas').getContext('2d');"
        "x.fillStyle = c; x.fillRect(0, 0, 1, 1); return [...x.getImageData(0, 0, 1, 1).data]; };"
        "const light = (c) => rgb(c).slice(0, 3).map((v) => v / 255).map((v) => v <= .04045 ? "
        "v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((s, v, i) => "
        "s + v * [.2126, .7152, .0722][i], 0);"
        "const ink = light(getComputedStyle(node).color);"
        "while (rgb(getComputedStyle(node).backgroundColor)[3] < 255) node = node.parentElement;"
        "const paper = light(getComputedStyle(node).backgroundColor);"
        "return (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05); })()"
    )
    return ratio


@pytest.mark.parametrize("dark", [False, True])
def test_it_can_be_read_in_light_and_in_the_dark(browser: Browser, url: str, dark: bool) -> None:
    page = browser.open(url, dark=dark)
    select(page, "kind", "replayed")
    paper = page.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(21, 23, 26)" if dark else "rgb(251, 250, 247)")
    for selector in (
        ".panes li b", ".panes li small", ".panes article .observation", ".token.minus",
        ".panes article .reward.minus", ".panes .mark", ".scale", ".filters label",
    ):  # fmt: skip
        assert contrast(page, selector) >= 4.5, selector


def test_printed_it_has_the_open_trajectory_and_no_list(browser: Browser, url: str) -> None:
    page = browser.open(url)
    page.call("Emulation.setEmulatedMedia", media="print")
    shown = "getComputedStyle({}).display"
    assert page.run(shown.format(LIST)) == "none"
    assert page.run("document.querySelector('[data-part=open]').scrollHeight <= "
                    "document.querySelector('[data-part=open]').clientHeight + 1")  # fmt: skip


def test_without_script_the_page_reads_and_says_so(browser: Browser, url: str) -> None:
    page = browser.open("about:blank")
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.go(url)
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    said = page.run("document.body.innerText")
    assert "The viewer of all 26 trajectories needs JavaScript" in said
    assert "start: before of a1, failed" in said
    assert page.run("document.getElementById('viewer').hidden")


HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<!--<script>]]>\u2028&lt;b&gt;\x1b[2J\u202e"
)


def test_no_text_of_a_trajectory_is_obeyed(browser: Browser, run_folder: Path) -> None:
    played = token_trajectory(1)
    for name in ("task", "family", "stop", "final_observation"):
        played[name] = HOSTILE
    for turn in played["turns"]:
        turn |= {n: HOSTILE for n in ("observation", "action", "context")}
        turn["pieces"] = [HOSTILE, HOSTILE]
    plain = token_trajectory(2)
    plain["turns"] = [{"observation": HOSTILE, "action": HOSTILE}]
    write_lines(run_folder / "trajectories/train.jsonl", [played, plain])
    page = browser.open(write_report(run_folder).resolve().as_uri())
    select(page, "phase", "learn")
    for _ in range(2):
        assert "<script>document.title='owned'</script>" in page.run(OPEN)
        page.run("document.querySelector('.numbers summary')?.click()")
        page.run(f"{LIST}.focus()")
        page.key("j")
    page.run("new Promise((done) => setTimeout(done, 200))")
    assert page.run("document.title").startswith("kitchen-rspo")
    assert page.run("document.querySelectorAll('#viewer :is(script, img, b > *)').length") == 0
    assert page.run("document.scripts.length") == 2
    assert page.complaints() == []


def test_a_run_cut_in_the_middle_of_a_trajectory_opens(browser: Browser, run_folder: Path) -> None:
    path = run_folder / "trajectories/train.jsonl"
    write_lines(path, [token_trajectory(n) for n in range(3)])
    path.write_bytes(path.read_bytes()[:-200])
    for name in ("summary.json", "evaluation-after.json", "trajectories/after.jsonl"):
        (run_folder / name).unlink()
    page = browser.open(write_report(run_folder).resolve().as_uri())
    assert page.run(COUNT) == "9 of 9"
    assert "train.jsonl is cut in the middle of its last line (line 3)" in page.run(
        "document.getElementById('notes').textContent"
    )
    assert page.complaints() == []
