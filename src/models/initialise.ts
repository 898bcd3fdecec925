// Initial values for training from the start: normal weights, biases of zero, as the transformers of PyTorch's libraries draw them.
import type { Module } from '../module/index.ts'
import { normal_, zeros_ } from '../nn/init.ts'
import { Conv1d, Conv2d, Embedding, Linear } from '../nn/index.ts'

/** Draws the weights of linear layers, convolutions and embeddings with a standard deviation; biases are zero. Padding stays zero. */
export function initialise(model: Module, std: number): void {
  model.apply((layer) => {
    if (layer instanceof Embedding) {
      normal_(layer.weight, 0, std)
      if (layer.paddingIdx !== null) zeros_(layer.weight.detach().select(0, layer.paddingIdx))
    } else if (layer instanceof Linear || layer instanceof Conv1d || layer instanceof Conv2d) {
      normal_(layer.weight, 0, std)
      if (layer.bias !== null) zeros_(layer.bias)
    }
  })
}
