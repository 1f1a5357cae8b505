"""ALFWorld's turns in verl-agent's prompts, for its full sentences."""

from rewardswap.envs.verl_agent import VerlAgentStyle

TASK = "Your task is to: "


class AlfworldPrompts(VerlAgentStyle):
    """verl-agent's style for ALFWorld; what was said without tags is cut to 30 characters."""

    introduction = "You act in a house by text commands."
    sent_characters = 30

    def task(self, first: str) -> str:
        """The sentence that ends the first observation."""
        return first.split(TASK, 1)[1]
