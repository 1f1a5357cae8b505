"""A talk in which shorter answers are worth more: siblings of any model differ."""

from typing import Any, ClassVar

QUESTIONS = ("What do you see from a window?", "And what do you hear there?")


class ShortAnswers:
    """Two questions about a place that the seed draws; the fewer letters, the better."""

    turn_limit: ClassVar[int] = len(QUESTIONS)
    instructions: ClassVar[str] = " ".join(
        [
            "You are a guest in an old house by the sea, and somebody asks you what is around you.",
            "Say at once what is asked, in your own words and in as few of them as you can.",
            "Do not explain your answer, do not ask anything, and do not repeat the question.",
            "Nobody minds whether it is true, as long as it could be seen or heard there.",
            "An answer of one word is the best of all; a sentence is longer than anybody needs.",
            "Names of animals, of plants, of tools, of noises and of people are good answers.",
            "You are asked twice, and both answers count alike.",
            "When you have answered twice the talk is over, and your answers are weighed.",
        ]
    )
    """Longer than a block of vLLM's cache on a CPU, which holds 128 tokens."""

    def reset(self, seed: int) -> tuple[str, dict[str, Any]]:
        """The first question."""
        self.worth: list[float] = []
        self.room = seed % 100
        return f"You are in room {self.room}. {QUESTIONS[0]}", {"progress": 0.0}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The next question; the last reward is the outcome."""
        self.worth.append(1 / (2 + len(action) / 20))
        over = len(self.worth) == len(QUESTIONS)
        worth = sum(self.worth) / len(QUESTIONS)
        text = "That is all." if over else QUESTIONS[len(self.worth)]
        return text, worth if over else 0.0, over, False, {"progress": worth}
