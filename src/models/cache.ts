// What a model that writes token by token keeps of the tokens so far: keys and values of attention, states of recurrent layers.
import { cat } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** Keys, values and states of the tokens so far, for models whose `forward` takes a `cache`. One cache serves one batch of texts. */
export class DecodingCache {
  /** How many tokens the model has read. */
  length = 0
  readonly #layers = new Map<object, Map<string, Tensor>>()

  /** What a layer has put here under a name; null at the first call. The batch is its first dimension. */
  get(layer: object, name: string): Tensor | null {
    return this.#layers.get(layer)?.get(name) ?? null
  }

  /** Puts a tensor here for the next call; returns it. */
  set(layer: object, name: string, value: Tensor): Tensor {
    const own = this.#layers.get(layer) ?? new Map<string, Tensor>()
    own.set(name, value)
    this.#layers.set(layer, own)
    return value
  }

  /** What the layer has put here with `value` after it, in dimension 2; keeps that for the next call. */
  extend(layer: object, name: string, value: Tensor): Tensor {
    const before = this.get(layer, name)
    return this.set(layer, name, before === null ? value : cat([before, value], 2))
  }

  /** What `make` computes at the first call, such as the keys of an encoder's states. */
  once(layer: object, name: string, make: () => Tensor): Tensor {
    return this.get(layer, name) ?? this.set(layer, name, make())
  }

  /** Keeps the rows `rows`, int64 [n], of the batch, in that order: what a search with beams does after each token. */
  reorder(rows: Tensor): void {
    for (const own of this.#layers.values()) for (const [name, value] of own) own.set(name, value.indexSelect(0, rows))
  }
}
