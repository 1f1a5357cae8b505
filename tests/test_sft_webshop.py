"""The lessons of the generated shop: fresh shops, and an exam that no lesson was from."""

import re
from dataclasses import replace

import pytest

from rewardswap.sft import BaseAgentConfig, train_base_agent
from rewardswap.sft.webshop import WebShopLessons

SMALL = WebShopLessons(products=150, steps_per_shop=2, drill_steps=0)


@pytest.fixture(scope="module")
def tokenizer():
    return SMALL.tokenizer()


def words_of(episodes, tokenizer):
    return [tokenizer.decode(episode.ids) for episode in episodes]


def test_demonstrations_depend_on_seed_and_step_alone(tokenizer):
    first = SMALL.demonstrations(0, 3, 4, tokenizer)
    SMALL.demonstrations(5, 0, 2, tokenizer)
    assert SMALL.demonstrations(0, 3, 4, tokenizer) == first
    assert SMALL.demonstrations(0, 2, 4, tokenizer) != first
    assert SMALL.demonstrations(1, 3, 4, tokenizer) != first


def test_the_agents_tokens_are_its_actions(tokenizer):
    (episode,) = SMALL.demonstrations(0, 0, 1, tokenizer)
    said = [token for token, mine in zip(episode.ids, episode.by_agent, strict=True) if mine]
    for action in tokenizer.decode(said).split("<end>")[:-1]:
        assert action.strip().startswith(("search[", "click["))
        assert action.strip().endswith("]")


def seen(lessons, step, tokenizer):
    """Titles and asins of the products that the demonstrations of a step show."""
    texts = words_of(lessons.demonstrations(0, step, 6, tokenizer), tokenizer)
    return {card for text in texts for card in re.findall(r"([a-z -]+) \$\d+ (b0sw\d+)", text)}


def test_a_fresh_shop_opens_after_so_many_steps_and_none_is_the_exams(tokenizer):
    exam, tasks = SMALL.exam(0, 10)
    assert len(tasks) == 10
    shops = [seen(SMALL, step, tokenizer) for step in range(4)]
    assert shops[0] & shops[1]
    assert shops[2] & shops[3]
    assert not shops[1] & shops[2]
    products = exam.catalogue.products.values()
    titles = {(f" {product.name.lower()}", product.asin.lower()) for product in products}
    assert not titles & set.union(*shops)


def test_a_drill_says_random_tokens_twice(tokenizer):
    lessons = replace(SMALL, drill_steps=1)
    drills = lessons.demonstrations(0, 0, 2, tokenizer)
    assert len({tuple(drill.ids) for drill in drills}) == len(drills) == 4
    for episode in drills:
        assert episode.ids[:24] == episode.ids[24:]
        assert episode.by_agent == [False] * 24 + [True] * 24
    assert lessons.demonstrations(0, 1, 2, tokenizer) == SMALL.demonstrations(0, 1, 2, tokenizer)


def test_without_bad_habits_most_demonstrations_succeed(tokenizer):
    careful = replace(
        SMALL, highest_noise=0.0, forgetting=0.0, overspending=0.0, skipping=0.0, vagueness=0.0
    )
    won = [episode.success for episode in careful.demonstrations(0, 0, 40, tokenizer)]
    astray = [episode.success for episode in SMALL.demonstrations(0, 0, 40, tokenizer)]
    assert sum(won) > 34
    assert 8 < sum(astray) < 28


def test_an_agent_is_trained_and_examined(tmp_path):
    config = BaseAgentConfig(
        tmp_path / "agent",
        steps=2,
        episodes_per_step=2,
        checkpoint_every=2,
        evaluation_tasks=2,
        env=SMALL,
    )
    numbers = train_base_agent(config)
    assert numbers["step"] == 2
    assert 0.0 <= numbers["success"] <= numbers["task_score"] <= 1.0
    with pytest.raises(ValueError, match="made with env"):
        train_base_agent(replace(config, env=replace(SMALL, skipping=0.1)))
