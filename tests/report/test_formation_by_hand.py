"""The picture of a job under a person's hands: mouse, wheel and keys in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from phalanx.model.trace import Traces
from phalanx.report.formation import render_formation
from tests.study.label.browser import CHROMIUM, Browser

from ..made_traces import made
from .test_formation import report_on

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")
_NAMED = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, "Escape": 27}
_READY = "document.documentElement.dataset.ready !== undefined"


class Hands(Browser):
    """The browser with a mouse, and keys that have a name."""

    def key(self, name: str) -> None:
        common = {"key": name, "windowsVirtualKeyCode": _NAMED[name]}
        self.call("Input.dispatchKeyEvent", type="rawKeyDown", **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def click_on(self, element: str) -> None:
        box = f"document.getElementById({element!r}).getBoundingClientRect()"
        self.click(self.ask(f"{box}.left + {box}.width / 2"), self.ask(f"{box}.top + {box}.height / 2"))

    @property
    def view(self) -> dict[str, float]:
        """What part of the picture is shown: its first slot and row, and the size of a cell. After a redraw."""
        self.until("!pending")
        return dict(self.call("Runtime.evaluate", expression="({...view})", returnByValue=True)["result"]["value"])

    def cell(self, rank: int, slot: int) -> tuple[float, float]:
        """The middle of a cell on the screen."""
        self.until("!pending")
        row = f"shown.findIndex((row) => row.rank === {rank})"
        x = self.ask(f"canvas.getBoundingClientRect().left + GUTTER + ({slot} + 0.5 - view.x) * view.sx")
        y = self.ask(f"canvas.getBoundingClientRect().top + RULER + ({row} + 0.5 - view.y) * view.sy")
        return x, y

    def facts(self, place: str) -> dict[str, str]:
        """Names and values, held below the picture or beside the pointer."""
        pairs = (
            f"[...document.querySelectorAll('{place} dt, {place} b')]"
            ".map((one) => [one.textContent.trim(), one.nextSibling.textContent])"
        )
        value = self.call("Runtime.evaluate", expression=pairs, returnByValue=True)["result"]["value"]
        return {str(name): str(text) for name, text in value}


@pytest.fixture(scope="module")
def traces() -> Traces:
    return made("host-stall")


@pytest.fixture(scope="module")
def hands(tmp_path_factory: pytest.TempPathFactory, traces: Traces) -> Iterator[Hands]:
    folder = tmp_path_factory.mktemp("formation")
    page = folder / "page.html"
    page.write_text(render_formation(traces, report_on((12,))), encoding="utf-8")
    with Hands(folder / "profile") as browser:
        browser.call("Emulation.setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)
        browser.open(page.as_uri(), _READY)
        yield browser


@pytest.fixture
def page(hands: Hands) -> Hands:
    """The page as it opens: at the end, nothing held."""
    hands.key("Escape")
    hands.ask("byId('order').value = 'rank'; sortRows(); view.y = 0; theEnd()")
    return hands


def test_arrows_move_and_signs_zoom(page: Hands) -> None:
    page.press("f")
    whole = page.view
    page.press("+")
    near = page.view
    assert near["sx"] > whole["sx"]
    page.key("ArrowRight")
    right = page.view
    assert right["x"] > near["x"]
    page.key("ArrowLeft")
    assert page.view["x"] == pytest.approx(near["x"], abs=0.01)
    page.press("-")
    assert page.view["sx"] == pytest.approx(whole["sx"], rel=0.01)


def test_keys_go_to_the_start_the_end_and_the_culprit(page: Hands) -> None:
    page.key("Home")
    assert page.view["x"] == 0
    page.press("e")
    assert page.view["x"] > 0, "the end of a long job does not fit beside its start"
    page.press("c")
    page.until("found === 12")
    page.press("f")
    assert page.view["x"] == 0


def test_a_rank_is_found_by_typing_its_number(page: Hands) -> None:
    page.press("/")
    page.until("document.activeElement.id === 'rank'")
    page.press("1", "3", "Enter")
    page.until("found === 13")
    page.key("Escape")
    page.until("found === -1 && document.activeElement.id !== 'rank'")
    page.ask("byId('rank').value = ''")


def test_a_click_holds_what_the_pointer_is_over(page: Hands, traces: Traces) -> None:
    wait = traces.calls.filter((pl.col("rank") == 13) & (pl.col("state") == 1)).row(0, named=True)
    slot = int(page.ask("shown.find((row) => row.rank === 13).waits"))
    page.mouse("mouseMoved", *page.cell(13, slot))
    page.until("!tip.hidden")
    beside = page.facts("#tip")
    assert (beside["rank"], beside["number"]) == ("13 (suffered from it)", str(wait["seq"]))
    page.click(*page.cell(13, slot))
    page.until("!byId('pinned').hidden")
    held = page.facts("#pinned")
    assert (held["number"], held["at"]) == (str(wait["seq"]), wait["place"])
    page.mouse("mouseMoved", *page.cell(3, slot - 5))
    assert page.facts("#pinned") == held, "what is held stays while the pointer goes on"
    page.key("Escape")
    page.until("byId('pinned').hidden")


def test_dragging_moves_the_picture_with_the_pointer_and_holds_nothing(page: Hands) -> None:
    before = page.view
    x, y = page.cell(5, int(before["x"]) + 40)
    page.mouse("mouseMoved", x, y)
    page.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
    for step in (30, 60, 90):
        page.mouse("mouseMoved", x + step, y, button="left", buttons=1)
    page.mouse("mouseReleased", x + 90, y, button="left", clickCount=1)
    assert page.view["x"] == pytest.approx(before["x"] - 90 / before["sx"], abs=0.05)
    assert page.ask("byId('pinned').hidden") is True


def test_the_wheel_zooms_around_the_pointer(page: Hands) -> None:
    before = page.view
    slot = int(before["x"]) + 40
    x, y = page.cell(5, slot)
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
    page.until(f"view.sx > {before['sx'] * 1.2}")
    assert page.cell(5, slot)[0] == pytest.approx(x, abs=3), "what is under the pointer stays there"


def test_buttons_and_the_order_of_rows(page: Hands) -> None:
    page.click_on("fit")
    assert page.view["x"] == 0
    page.click_on("in")
    assert page.view["sx"] > 0
    page.click_on("culprit")
    page.until("found === 12")
    page.ask("byId('order').value = 'broken'; byId('order').dispatchEvent(new Event('change'))")
    page.until("shown[0].rank === 12")
    assert page.ask("document.documentElement.dataset.failed") is None
