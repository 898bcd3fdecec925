// Small models, what they are trained with, and how far two runs of them are apart.
import { nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { Module } from 'tensorfx/nn'
// @ts-expect-error -- written in JavaScript
import { GPT } from '../../../examples/gpt/model.mjs'
// @ts-expect-error -- written in JavaScript
import { ResNet18 } from '../../../examples/resnet18/model.mjs'
// @ts-expect-error -- written in JavaScript
import { UNet } from '../../../examples/unet/model.mjs'

const F = nn.functional
export const NOISE = 3e-7
export const OPTIMIZERS = { SGD: optim.SGD, Adam: optim.Adam }

type Model = Module & { forward(x: Tensor): Tensor }

export interface Case {
  readonly make: () => Model
  readonly x: () => Tensor
  readonly y: () => Tensor
  readonly loss: (result: Tensor, y: Tensor) => Tensor
  /** Dispatches of a forward pass. */
  readonly dispatches: number
}

export const cases: Readonly<Record<string, Case>> = {
  'ResNet-18': {
    make: () => new ResNet18({ width: 16, classes: 10 }) as Model,
    x: () => torch.randn([2, 3, 32, 32]),
    y: () => torch.tensor([1, 2], { dtype: 'int64' }),
    loss: (result, y) => F.crossEntropy(result, y),
    dispatches: 42,
  },
  GPT: {
    make: () => new GPT({ vocabulary: 40, context: 32, width: 64, heads: 4, layers: 2 }) as Model,
    x: () => torch.randint(0, 40, [2, 16]),
    y: () => torch.randint(0, 40, [2, 16]),
    loss: (result, y) => F.crossEntropy(result.view(-1, 40), y.view(-1)),
    dispatches: 35,
  },
  UNet: {
    make: () => new UNet(8) as Model,
    x: () => torch.randn([2, 1, 16, 16]),
    y: () => torch.randn([2, 1, 16, 16]),
    loss: (result, y) => F.mseLoss(result, y),
    dispatches: 65,
  },
}

/** A model and its data, always the same. With `noise` the input, or where that is integers the first parameter, is changed by that part of its largest value. */
export function prepared({ make, x, y }: Case, noise: number): { model: Model; input: Tensor; target: Tensor } {
  torch.manualSeed(0)
  const [model, target, input] = [make(), y(), x()]
  const changed = (value: Tensor): Tensor => value.add(torch.randn(value.shape).mul(noise).mul(value.abs().max()))
  const [first] = model.parameters()
  if (noise === 0) return { model, input, target }
  if (input.dtype === torch.float32) return { model, input: changed(input), target }
  torch.noGrad(() => first?.copy_(changed(first)))
  return { model, input, target }
}

/** The largest difference of a tensor, relative to its largest value; of all tensors the worst. */
export function worst(got: readonly Tensor[], want: readonly Tensor[]): number {
  return Math.max(
    ...want.map((wanted, i) => {
      const error = got[i]?.sub(wanted).abs().max().item() ?? NaN
      return Number.isNaN(error) ? Infinity : Number(error) / Math.max(Number(wanted.abs().max().item()), 1e-30)
    }),
  )
}
