"""What a PyTorch cross-encoder need not compute, and how its weights lie best for the CPU: the same answers, sooner."""

from __future__ import annotations

from typing import Any

FIRST_TOKEN_MODELS = frozenset(
    ("bert", "camembert", "deberta", "deberta-v2", "electra", "ernie", "roberta", "xlm-roberta")
)
"""``model_type`` of those that classify by the first token of their last layer alone."""
LEAST_PACKED = 100_000
"""Numbers in the weights of a layer that is worth it: the call itself takes longer than torch's own."""


def keep_first_token(model: Any) -> bool:
    """Lets only the first token past the attention of the last layer, as nothing else is read behind it.

    Three quarters of that layer's work is left out: 12 % of that of a model of six layers, 6 % of one of twelve.

    Args:
        model: of transformers, for the classification of sequences.

    Returns:
        Whether that can be done: not for a model of another make, or of a single layer, behind which DeBERTa may still
        look at neighbours.
    """
    if model.config.model_type not in FIRST_TOKEN_MODELS:
        return False
    layers = model.base_model.encoder.layer
    if len(layers) < 2:
        return False
    # What adds the attention's outcome to the layer's input: both are pairs × tokens × size.
    layers[-1].attention.output.register_forward_pre_hook(_first_tokens)
    return True


def _first_tokens(_module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(values[:, :1] for values in inputs)


def pack_weights(model: Any, torch: Any, *, dtype: Any) -> int:
    """Lays the weights of large linear layers out anew, as oneDNN multiplies them fastest on this CPU.

    PyTorch's own compiler calls the same two operators, but they are no part of its documented interface: where they
    are missing, nothing is done.

    Args:
        model: with weights of float32.
        torch: the library.
        dtype: of the numbers that are multiplied. Sums, and all that lies between these layers, stay in float32.

    Returns:
        How many layers that are.
    """
    operators = torch.ops.mkldnn
    if not (hasattr(operators, "_reorder_linear_weight") and hasattr(operators, "_linear_pointwise")):
        return 0

    class Packed(torch.nn.Module):  # type: ignore[misc]  # torch is imported when a model is opened
        """A linear layer; its weight has the type of the other's, which some models ask for."""

        def __init__(self, linear: Any) -> None:
            super().__init__()
            self.weight = operators._reorder_linear_weight(linear.weight.detach().to(dtype), None)
            self.bias = None if linear.bias is None else linear.bias.detach().to(dtype)

        def forward(self, values: Any) -> Any:
            found = operators._linear_pointwise(values.to(dtype), self.weight, self.bias, "none", [], "")
            return found.to(values.dtype)

    places = [
        (owner, name)
        for owner in model.modules()
        for name, layer in owner.named_children()
        if type(layer) is torch.nn.Linear and layer.weight.numel() >= LEAST_PACKED
    ]
    with torch.inference_mode():
        # One at a time, so that no more than one layer's weights are there twice.
        for owner, name in places:
            setattr(owner, name, Packed(getattr(owner, name)))
    return len(places)
