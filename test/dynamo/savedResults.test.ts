// Operators with several results: a backward may read results that the forward does not, whatever their size.
import { describe, expect, it } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { onEvent } from 'tensorfx/debug'

const layers = {
  BatchNorm1d: [(channels: number) => new nn.BatchNorm1d(channels), [2, 0, 3]],
  BatchNorm2d: [(channels: number) => new nn.BatchNorm2d(channels), [2, 0, 3, 3]],
  InstanceNorm2d: [(channels: number) => new nn.InstanceNorm2d(channels), [2, 0, 3, 3]],
  GroupNorm: [(channels: number) => new nn.GroupNorm(channels, channels), [2, 0, 3, 3]],
} as const

describe.each(Object.entries(layers))('the backward of %s is compiled', (_name, [make, shape]) => {
  it.each([1, 16, 17, 64])('with %d channels', (channels) => {
    const layer = make(channels)
    const x = torch.randn(shape.map((size) => (size === 0 ? channels : size))).requiresGrad_()
    const weights = torch.randn(x.sizes)
    const gradOf = (f: (x: Tensor) => Tensor): Tensor => torch.autograd.grad(f(x).mul(weights).sum(), [x])[0] as Tensor
    const joints: boolean[] = []
    using _listening = onEvent((event) => joints.push(event.ok), { kinds: ['joint'] })
    expect(
      torch.allclose(
        gradOf(compile((input: Tensor) => layer(input))),
        gradOf((input) => layer(input)),
        { atol: 1e-5 },
      ),
    ).toBe(true)
    expect(joints).toEqual([true])
  })
})
