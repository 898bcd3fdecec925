// Dropout as a layer.
import { Module } from '../module/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { dropout } from './functional.ts'
import { markLeaf } from './leaf.ts'
import { checkNumber, readOptions } from './options.ts'
import type { Trailing } from './options.ts'
import { py, pyFloat } from './repr.ts'

/** In training, zeroes elements with probability `p` (0.5) and scales the others by 1 / (1 - p). PyTorch's `nn.Dropout`. */
export class Dropout extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['p', 'inplace']
  readonly p: number
  readonly inplace: boolean

  constructor(...options: Trailing<[p: number, inplace: boolean], { readonly p?: number; readonly inplace?: boolean }>) {
    super()
    const { p, inplace } = readOptions('nn.Dropout', { p: 0.5, inplace: false }, options)
    checkNumber('nn.Dropout', 'p', p, 'a probability between 0 and 1', (v) => v >= 0 && v <= 1)
    this.p = p
    this.inplace = inplace
  }

  override forward(input: Tensor): Tensor {
    return dropout(input, { p: this.p, training: this.training, inplace: this.inplace })
  }

  override extraRepr(): string {
    return `p=${pyFloat(this.p)}, inplace=${py(this.inplace)}`
  }
}

markLeaf(Dropout)
