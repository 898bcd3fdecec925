// The default dtype promotes integers, so it belongs to a graph: code that was compiled under one is not used under another.
import { afterEach, describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction } from '../../src/entries/aot.ts'
import { agree, times } from './against.ts'

afterEach(() => torch.setDefaultDtype('float32'))

describe.each(['eager', 'inductor'])('on the backend %s', (backend) => {
  it('a default dtype that changes between calls', () =>
    agree(backend, (c) => {
      const f = c((x: Tensor) => [x.mul(0.5), torch.ones([2])])
      return times(4, (i) => {
        torch.setDefaultDtype(i % 2 === 0 ? 'float32' : 'float64')
        return f(torch.tensor([1, 2]).long())
      })
    }))

  it('a default dtype that changes inside the function, before the graph ends', () =>
    agree(backend, (c) => {
      const f = c((x: Tensor) => {
        const early = x.mul(0.5)
        torch.setDefaultDtype('float64')
        const late = x.mul(0.25)
        torch.setDefaultDtype('float32')
        return [early, late, x.div(3)]
      })
      return times(2, (i) => f(torch.tensor([i, 2]).long()))
    }))

  it('a value that is read later, under another default dtype', () =>
    agree(backend, (c) => {
      const kept: Tensor[] = []
      const f = c((x: Tensor) => {
        const half = x.long().mul(0.5)
        kept.push(half)
        return half.add(1)
      })
      return times(2, () => {
        torch.setDefaultDtype('float64')
        const result = f(torch.tensor([3, 4]))
        torch.setDefaultDtype('float32')
        return [result, kept.at(-1)]
      })
    }))
})

it('aotFunction traces again, and skipReplay captures again, under another default dtype', () => {
  const f = (x: Tensor): Tensor => x.mul(0.5)
  for (const g of [
    compile(f, { skipReplay: true }),
    aotFunction(f, {
      fwCompiler:
        (gm) =>
        (...inputs) =>
          [gm.forward(...inputs)].flat(),
    }),
  ]) {
    const dtypes = (['float32', 'float64', 'float32'] as const).map((dtype) => {
      torch.setDefaultDtype(dtype)
      return g(torch.tensor([1, 2]).long()).dtype
    })
    expect(dtypes).toEqual(['float32', 'float64', 'float32'])
  }
})

it('a backward is compiled and run under the default dtype of its forward', () => {
  const seen: string[] = []
  const f = aotFunction((x: Tensor) => x.mul(0.5), {
    fwCompiler: (gm) => {
      seen.push(torch.getDefaultDtype())
      return (...inputs) => {
        seen.push(torch.getDefaultDtype())
        return [gm.forward(...inputs)].flat()
      }
    },
  })
  torch.setDefaultDtype('float64')
  const loss = f(torch.tensor([1, 2]).requiresGrad_()).sum()
  torch.setDefaultDtype('float32')
  loss.backward()
  expect(seen).toEqual(['float64', 'float64', 'float64', 'float64'])
})
