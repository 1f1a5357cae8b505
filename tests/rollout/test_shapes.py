"""Weights of another model are refused before an engine loads any."""

from pathlib import Path

import pytest

from made import small_llama
from rewardswap.rollout.shapes import refuse_other_shapes, shapes_in

MODEL = {"a": (2, 3), "lm_head.weight": (3,)}


def test_shapes_are_those_of_the_weights(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no safetensors files"):
        shapes_in(tmp_path)
    small_llama().save_pretrained(tmp_path)
    expected = {name: tuple(value.shape) for name, value in small_llama().state_dict().items()}
    assert shapes_in(tmp_path) == expected


def test_all_weights_and_no_others() -> None:
    refuse_other_shapes(dict(MODEL), MODEL, tied=False)
    for tied in (False, True):
        with pytest.raises(ValueError, match="'a' is missing"):
            refuse_other_shapes({"lm_head.weight": (3,)}, MODEL, tied=tied)
        with pytest.raises(ValueError, match="'b' is not one of the model's"):
            refuse_other_shapes({**MODEL, "b": (1,)}, MODEL, tied=tied)
        with pytest.raises(ValueError, match=r"'a' has the shape \[3, 2\], not \[2, 3\]"):
            refuse_other_shapes({**MODEL, "a": (3, 2)}, MODEL, tied=tied)


def test_a_tied_head_may_be_given_or_left_out() -> None:
    without = {"a": (2, 3)}
    refuse_other_shapes(without, MODEL, tied=True)
    refuse_other_shapes(MODEL, without, tied=True)
    with pytest.raises(ValueError, match=r"'lm_head\.weight' is missing"):
        refuse_other_shapes(without, MODEL, tied=False)
