"""The tokenizer of the generated shop's small agent."""

from collections.abc import Iterator

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rewardswap.envs.webshop.oracle import solve
from rewardswap.envs.webshop.synthetic import synthetic_catalogue, synthetic_products
from rewardswap.envs.webshop.vocabulary import DEPARTMENTS, OPTIONS
from rewardswap.envs.webshop.world import ShopWorld
from rewardswap.models.loading import model_folder
from rewardswap.models.shop_agent import build_tokenizer

FOLDER = model_folder("shop-agent")


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (
            "search[fast charging power banks]",
            ["search[", "fast charging", "power banks", "]"],
        ),
        ("click[b0sw012345]", ["click[", "b0sw01", "23", "45", "]"]),
        ("click[back to search]", ["click[", "back to search", "]"]),
        ("costs $7 $40 $137", None),
        (
            "price lower than $110",
            ["price lower than", "$11", "0"],
        ),
        (
            "page 1 of 5 ; b0sw000000 nordane slim hand wash wool hat $9",
            [
                *("page", "1", "of", "5", ";", "b0sw00", "00", "00"),
                *("nordane", "slim", "hand wash", "wool", "hat", "$", "9"),
            ],
        ),
    ],
)
def test_a_text_and_its_tokens(tokenizer, text, tokens):
    if tokens is None:
        assert tokenizer.tokenize(text)[1:] == ["$", "7", "$4", "0", "$13", "7"]
    else:
        assert tokenizer.tokenize(text) == tokens
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def pages_and_actions() -> Iterator[tuple[str, str]]:
    """Pages of oracles' visits with every action that they offer."""
    world = ShopWorld(synthetic_catalogue(seed=9, products=200), mode="short")
    environment = world.make()
    for task in world.tasks("train")[:60]:
        observation = environment.reset(task)
        goal = world.catalogue.goals[world.goal_number(task)]
        for action in solve(world.catalogue, goal):
            for offered in (action, *observation.admissible):
                if not offered.startswith("search[<"):
                    yield observation.text, offered
            observation = environment.step(action).observation


def test_every_action_comes_back_and_every_page_is_known(tokenizer):
    unknown = tokenizer.unk_token_id
    for page, action in set(pages_and_actions()):
        assert unknown not in tokenizer(page)["input_ids"], page
        ids = tokenizer(action)["input_ids"]
        assert unknown not in ids, action
        assert tokenizer.decode(ids, skip_special_tokens=True) == action


def test_every_word_of_the_vocabulary_is_known(tokenizer):
    kinds = [kind for department in DEPARTMENTS for kind in department.kinds]
    texts = [
        *(f"search[{kind.query}]" for kind in kinds),
        *(f"slim {kind.noun} $5" for kind in kinds),
        *(f"click[{value}]" for values in OPTIONS.values() for value in values),
        *(f"features : {' and '.join(d.attributes)}" for d in DEPARTMENTS),
    ]
    for text in texts:
        assert tokenizer.unk_token_id not in tokenizer(text)["input_ids"], text


def test_no_price_or_limit_has_more_dollars_than_the_words(tokenizer):
    prices = [
        float(str(product.record["pricing"]).removeprefix("$"))
        for product in synthetic_products(0, 5000)
    ]
    highest = max(kind.dollars[1] for d in DEPARTMENTS for kind in d.kinds) + 90 + 40
    assert max(prices) < highest
    assert tokenizer.unk_token_id not in tokenizer(f"price lower than ${highest}")["input_ids"]


def test_the_shipped_folder_loads_with_plain_transformers():
    shipped = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(FOLDER, local_files_only=True)
    text = "find me machine washable shirts with color : red , and price lower than $40 <act>"
    with torch.inference_mode():
        logits = model(input_ids=shipped(text, return_tensors="pt")["input_ids"]).logits
    assert logits.shape[-1] == len(shipped)
    assert shipped.decode(logits[0, -1].argmax()) == "search["
    assert model.config.observation_wording == "short"


def test_the_shipped_tokenizer_is_the_one_that_is_built(tokenizer):
    shipped = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    assert shipped.get_vocab() == tokenizer.get_vocab()
    assert shipped.chat_template == tokenizer.chat_template
    text = "page 1 of 5 ; nordane slim hand wash wool hat $9 b0sw000000 <act> click[b0sw000000]"
    ids = shipped(text)["input_ids"]
    assert ids == tokenizer(text)["input_ids"]
    assert shipped.decode(ids) == tokenizer.decode(ids)


def test_the_shipped_folder_is_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*")) <= 6_000_000
