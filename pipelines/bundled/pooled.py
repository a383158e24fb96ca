"""The bundled NLI model: the bi-encoder's layers over both texts, and a head that compares their mean vectors.

The bi-encoder was trained to mean something by the mean of its token vectors, not by its first token, so that the head
begins with what it knows: with few pairs this learns more (docs/models.md). Import this module inside functions: it
loads torch.
"""

from typing import Any

import torch
from transformers import BertModel, BertPreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class PooledPairClassifier(BertPreTrainedModel):
    """BERT, then [u, v, |u - v|, u * v] of the two texts' mean vectors, a layer, and the classes (Conneau 2017).

    `config.pair_width` is the layer's width. The texts are told apart by their token types.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.bert = BertModel(config, add_pooling_layer=False)
        width = int(config.pair_width)
        self.compare = torch.nn.Linear(4 * int(config.hidden_size), width)
        self.dropout = torch.nn.Dropout(config.hidden_dropout_prob)
        self.classifier = torch.nn.Linear(width, int(config.num_labels or 3))
        self.post_init()

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor, **_: Any
    ) -> SequenceClassifierOutput:
        """Return logits [pairs, labels]."""
        tokens = self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state
        first = _mean(tokens, attention_mask * (token_type_ids == 0))
        second = _mean(tokens, attention_mask * (token_type_ids == 1))
        both = torch.cat([first, second, (first - second).abs(), first * second], dim=1)
        hidden = torch.nn.functional.gelu(self.compare(both))
        return SequenceClassifierOutput(logits=self.classifier(self.dropout(hidden)))


def _mean(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the mean of the masked tokens, [pairs, dimensions]; zeros where there are none."""
    weights = mask.unsqueeze(2).to(tokens.dtype)
    return (tokens * weights).sum(1) / weights.sum(1).clamp(min=1)
