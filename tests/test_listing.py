"""The card of a recipe: what it says is what the recipe does."""

import pytest

from rewardswap.cli import main
from rewardswap.configuration import Run
from rewardswap.described import WIDTH
from rewardswap.listing_commands import recipe_card
from rewardswap.methods.cards import cards
from rewardswap.recipes import RECIPES
from rewardswap.run_options import run_of
from rewardswap.settings import as_toml


@pytest.mark.parametrize("name", RECIPES)
def test_the_settings_of_a_card_make_the_recipe_out_of_the_defaults(name: str) -> None:
    card = recipe_card(RECIPES[name]())
    assert max(map(len, card.splitlines())) <= WIDTH
    words = [line.partition("  [")[0].split() for line in card.splitlines() if "  [" in line]
    made = run_of(Run(recipe=name), [word for pair in words for word in pair], "test")
    assert as_toml(made) == as_toml(RECIPES[name]())


def test_a_card_says_what_it_is_what_differs_and_how_it_is_started(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["recipes", "demo-grpo"])
    assert capsys.readouterr().out.splitlines() == [
        "demo-grpo",
        "  The base method of `demo` alone.",
        "",
        "method grpo, environment alfworld; what differs from the defaults:",
        "  --method.average trajectory  [token]",
        "  --loop on_policy  [rspo]",
        "  --budget 90  [150]",
        "  --policy.learning-rate 0.0003  [1e-06]",
        "  --policy.betas 0.9 0.95  [0.9 0.999]",
        "  --policy.minibatches 2  [1]",
        "  --batch.tasks 8  [16]",
        "  --batch.group-size 8  [16]",
        "",
        "start it:",
        "  rewardswap train demo-grpo",
    ]


def test_what_a_recipe_needs_is_in_how_it_is_started() -> None:
    for name, key in (("alfworld", "games"), ("webshop", "data")):
        card = recipe_card(RECIPES[f"{name}-rspo-grpo-1.5b"]())
        started = " ".join(card.partition("start it:")[2].split())
        wanted = f"train {name}-rspo-grpo-1.5b --policy.model FOLDER --env.{key} FOLDER"
        assert started == f"rewardswap {wanted}"


def test_all_recipes_are_listed_with_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    main(["recipes"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) < WIDTH
    assert [line for line in lines if line in RECIPES] == list(RECIPES)


def test_no_two_methods_are_listed_with_the_same_words() -> None:
    titles = [card.title for card in cards()]
    assert len(set(titles)) == len(titles)
