"""verl-agent's prompts: one per turn, with the latest turns and what can be done now.

Structure, facts and the reading of an action are verl-agent's; the wording is ours.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from rewardswap.envs.base import Observation

VERL_AGENT = "verl_agent"
"""The style's name in a world's `prompt_styles`."""

REQUEST = """\
It is your turn. First reason about what to do, step by step, inside <think> </think> tags.
Then choose one of these actions and write it inside <action> </action> tags."""

CHINESE = re.compile("[\u4e00-\u9fff]")


class VerlAgentStyle(ABC):
    """The part that worlds have in common."""

    introduction: str
    """Says what world it is."""
    sent_characters: int
    """Where a tag of the action is missing, so many last characters of what was said are sent."""
    most_characters: int | None = None

    @abstractmethod
    def task(self, first: str) -> str:
        """What is to be done, from the text of the first observation."""

    def shown(self, observation: str, task: str) -> str:
        """How an observation stands in a prompt."""
        return observation

    def prompt(
        self, first: str, history: Sequence[tuple[str, str]], taken: int, now: Observation
    ) -> str:
        """What the agent reads in a turn; without `history` it is worded as if it were the first.

        The task is told where the present observation does not tell it.
        """
        task = self.task(first)
        shown = self.shown(now.text, task)
        parts = [self.introduction]
        if task not in shown:
            parts.append(f"Your task is to: {task}")
        if history:
            latest = f"the latest {len(history)} observations and actions"
            parts.append(f"Steps taken so far: {taken}; {latest}:")
            start = taken - len(history) + 1
            for number, (observation, action) in enumerate(history, start):
                seen = self.shown(observation, task)
                parts.append(f"[Observation {number}: '{seen}', Action {number}: '{action}']")
            parts.append(f"This is step {taken + 1}.")
        actions = "\n".join(f"'{action}'" for action in now.admissible if action != "help")
        parts += [f"Observation: {shown}", f"Actions that you can take now:\n{actions}", REQUEST]
        return "\n".join(parts)

    def action(self, said: str) -> tuple[str, bool]:
        """The text between the first <action> and </action>, lower case, and whether it is in form.

        It is in form only with both tags around it, both <think> tags (case-sensitive) and no
        Chinese character; without both action tags the last `sent_characters` are sent.
        """
        lowered = said.lower()
        start, end = lowered.find("<action>"), lowered.find("</action>")
        if start == -1 or end == -1:
            return lowered[-self.sent_characters :], False
        thinks = "<think>" in said and "</think>" in said
        action = lowered[start + len("<action>") : end].strip()
        return action, thinks and CHINESE.search(said) is None
