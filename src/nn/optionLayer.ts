// Layers that are a function and its options: each option is a property.
import { Module } from '../module/index.ts'
import type { Reduction } from '../ops/index.ts'
import { checkArgument, checkCount } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { checkNumber, readOptions } from './options.ts'
import type { LayerFacts } from './layerFacts.ts'

/** A layer whose properties are its options. Subclasses declare them, and check those that may have a number for each dimension: `sizes`. */
export abstract class OptionLayer extends Module {
  /** @internal */
  declare static readonly layer: LayerFacts

  constructor(defaults: object, given: readonly unknown[], sizes: readonly string[] = []) {
    const where = new.target.layer.name
    super()
    const options = readOptions(where, defaults, given)
    for (const [name, value] of Object.entries(defaults))
      if (typeof value === 'number' && !sizes.includes(name))
        checkNumber(where, `option '${name}'`, Reflect.get(options, name), 'a number', () => true)
    Object.assign(this, options)
  }
}

/** Options of losses. */
export interface LossLayerOptions {
  /** 'mean' (default), 'sum', or 'none' for one value per element. */
  readonly reduction?: Reduction
}

/** The default reduction of losses. */
export const MEAN: Required<LossLayerOptions> = { reduction: 'mean' }

/** A loss. Its options `weight` and `posWeight`, tensors or null, are buffers; the others are properties. */
export abstract class LossLayer extends Module {
  /** @internal */
  declare static readonly layer: LayerFacts

  declare readonly reduction: Reduction

  constructor(defaults: object, given: readonly unknown[]) {
    const where = new.target.layer.name
    super()
    const { weight, posWeight, ...options }: WeightOptions = readOptions(where, defaults, given)
    const reduction: unknown = Reflect.get(options, 'reduction')
    checkArgument(reduction === undefined || typeof reduction === 'string', where, 'reduction', "a string: 'mean', 'sum' or 'none'", reduction)
    if (weight !== undefined) this.registerBuffer('weight', weight)
    if (posWeight !== undefined) this.registerBuffer('posWeight', posWeight)
    Object.assign(this, options)
  }
}

/** A loss whose only option is how it is reduced. */
export abstract class PlainLoss extends LossLayer {
  constructor(options: LossLayerOptions = {}) {
    checkCount(new.target.layer.name, arguments, 1)
    super(MEAN, [options])
  }
}

interface WeightOptions {
  readonly weight?: Tensor | null
  readonly posWeight?: Tensor | null
}
