"""The functions of two vectors or two sets that a condition may use over two streams."""

from __future__ import annotations

from typing import Literal, get_args

VectorFunction = Literal["vector_l2_distance", "vector_inner_product", "vector_cosine_similarity"]
Function = VectorFunction | Literal["set_overlap", "set_inner"]
FUNCTIONS: dict[str, Function] = {name: name for name in get_args(VectorFunction)}
