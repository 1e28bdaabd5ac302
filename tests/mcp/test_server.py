"""The server, asked by the official client over standard input and output."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from mcp import ClientSession, StdioServerParameters, stdio_client
from tests.model.test_report_json import CRASH


def ask(use: Callable[[ClientSession], Awaitable[Any]]) -> Any:
    async def talk() -> Any:
        server = StdioServerParameters(command=sys.executable, args=["-m", "phalanx", "mcp"])
        with anyio.fail_after(120):
            async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                return await use(session)

    return anyio.run(talk)


def answers(*calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What the tools answer, in one conversation."""

    async def use(session: ClientSession) -> list[dict[str, Any]]:
        return [json.loads((await session.call_tool(name, given)).content[0].text) for name, given in calls]  # type: ignore[union-attr]

    found: list[dict[str, Any]] = ask(use)
    return found


def test_the_tools_that_only_look_say_so() -> None:
    async def use(session: ClientSession) -> Any:
        return (await session.list_tools()).tools

    tools = {tool.name: tool for tool in ask(use)}
    assert set(tools) == {"diagnose", "attach", "check", "verify", "explain"}
    for name, tool in tools.items():
        assert tool.annotations.read_only_hint is (name != "verify"), name
        assert tool.annotations.open_world_hint is False
        assert tool.description


def test_a_conversation(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(CRASH + "".join(f"[rank{n}]: KeyError: {'x' * 5000}\n" for n in range(2, 500)))
    diagnosed, missing, explained, unknown = answers(
        ("diagnose", {"paths": [str(log)]}),
        ("diagnose", {"paths": [str(tmp_path / "gone")]}),
        ("explain", {"code": "hng001"}),
        ("explain", {"code": "XYZ999"}),
    )
    assert "KeyError" in diagnosed["said"]
    assert 1 in diagnosed["findings"][0]["culprit_ranks"]
    assert len(json.dumps(diagnosed)) < 32_000, "an answer is bounded whatever the log holds"
    assert "gone" in missing["error"]
    assert explained["text"].startswith("# HNG001: ")
    assert "XYZ999" in unknown["error"]
