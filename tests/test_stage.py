"""Settings of prompts, from the environment's value to the prompts that are played."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from rewardswap.env_config.alfworld import Alfworld
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.env_config.webshop import WebShop
from rewardswap.models.loading import model_folder
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.formats import TagFormat, TextFormat
from rewardswap.rollout.window import WindowContext
from rewardswap.stage import Stage, make_stage

SMALL: dict[str, Any] = {"generated_games": 20, "evaluation_tasks": 5}


def stage_of(env: EnvironmentConfig, model: Path | None = None) -> Stage:
    folder = str(model or model_folder("base-agent"))
    return make_stage(env, folder, device="cpu", temperature=1.0, action_tokens=None)


def test_a_chats_settings_reach_its_context() -> None:
    plain = stage_of(Alfworld(**SMALL)).context
    assert isinstance(plain, ChatContext)
    assert plain.thinking == "template" and isinstance(plain.format, TextFormat)
    chosen = stage_of(Alfworld(thinking="stripped", action_format="tags", **SMALL)).context
    assert isinstance(chosen, ChatContext)
    assert (chosen.thinking, chosen.format) == ("stripped", TagFormat())
    forbidden = stage_of(Alfworld(thinking="forbidden", action_format="tags", **SMALL)).context
    assert isinstance(forbidden, ChatContext)
    assert forbidden.format == TagFormat(thinking=False)


@pytest.mark.parametrize("settings", [{}, {"window": 5}], ids=str)
def test_the_window_reaches_its_context(settings: dict[str, int]) -> None:
    env = WebShop(products=60, evaluation_tasks=2, mode="text", prompt="verl_agent", **settings)
    context = stage_of(env).context
    assert isinstance(context, WindowContext)
    assert context.window == settings.get("window", 2)


def test_what_a_template_does_to_a_chat_is_a_remark_of_the_panel(tmp_path: Path) -> None:
    said = "The chat template rewrites its history: every turn is a row of its own."
    assert said not in stage_of(Alfworld(**SMALL)).panel.remarks
    folder = tmp_path / "forgetful"
    shutil.copytree(model_folder("base-agent"), folder)
    template = folder / "chat_template.jinja"
    template.write_text(template.read_text().replace("in messages", "in messages[-2:]"))
    assert said in stage_of(Alfworld(**SMALL), folder).panel.remarks
