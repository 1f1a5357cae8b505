"""What of a run differs from its recipe, by the recorded settings alone."""

from collections.abc import Mapping
from typing import Any

from rewardswap.configuration import Run
from rewardswap.env_config import model_of
from rewardswap.recipes import RECIPES
from rewardswap.settings import as_toml, named_environment, named_method

APART = ("seed", "output", "recipe", "checkpoint", "record", "track")
"""Settings that two runs of one arm may differ in."""
OF_MODELS = ("policy.action_tokens", "env.wording", "env.mode")
"""Settings that the model decides where a recipe leaves them open."""


def settings_changed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted key to value of what differs from the recipe's own run; empty for other recipes.

    `settings` are those of a run folder, where open settings are decided: what an environment or a
    model decides by itself is no change. Another method or environment is compared with its
    defaults.
    """
    recipe = RECIPES.get(str(settings.get("recipe")))
    if recipe is None:
        return {}
    own = _own(recipe(), settings)
    found = _flat({name: value for name, value in settings.items() if name not in APART})
    opened = {key for key in OF_MODELS if own.get(key) == "none"}
    return {
        key: value
        for key, value in found.items()
        if key in own and key not in opened and value != own[key]
    }


def _own(run: Run, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's settings, with the defaults of the method and the environment in use."""
    own = _flat(as_toml(run))
    method, env = settings["method"]["name"], settings["env"]["name"]
    kind = run.env if env == own["env.name"] else named_environment(env)()
    used = Run("", loop="on_policy", env=kind.decided("short"))
    own |= _section(used, "env")
    own["policy.model"] = model_of(kind, run.policy.model)
    for key in OF_MODELS:
        if key.startswith("env.") and getattr(kind, key.removeprefix("env."), 0) is None:
            own[key] = "none"
    if method != own["method.name"]:
        own |= _section(Run("", loop="on_policy", method=named_method(method)()), "method")
    return own


def _section(run: Run, name: str) -> dict[str, Any]:
    """One section's settings, but not which method or environment it is."""
    settings = _flat({name: as_toml(run)[name]})
    del settings[f"{name}.name"]
    return settings


def _flat(settings: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{above}{name}.")
        else:
            flat[f"{above}{name}"] = value
    return flat
