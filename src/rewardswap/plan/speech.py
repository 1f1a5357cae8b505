"""How an action is said in a run's form, for actions that no model says."""

import json

from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.rollout.prompting import CHAT


def form_of(env: EnvironmentConfig) -> str:
    """The form of actions in force: text, tags or tools; a style of a world has its tags."""
    return env.action_format if env.prompt == CHAT else "tags"


def thinks_in(env: EnvironmentConfig) -> bool:
    """Whether the form of actions asks for thinking."""
    return form_of(env) == "tags" and (env.prompt != CHAT or env.thinking != "forbidden")


def spoken(action: str, env: EnvironmentConfig, thought: str = "ok") -> str:
    """`action` as an agent would say it, behind a short thought where the form asks for one."""
    form = form_of(env)
    if form == "tools":
        return json.dumps({"name": "act", "arguments": {"action": action}}, ensure_ascii=False)
    if form == "text":
        return action
    said = f"<action>{action}</action>"
    return f"<think>{thought}</think>{said}" if thinks_in(env) else said
