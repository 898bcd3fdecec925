// A kept gradient is that of the tensor as it is, also after writes in place: it equals what torch.autograd.grad gives for the tensor.
import { describe, expect, test } from 'vitest'
import { noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compile } from 'tensorfx/compile'

interface Written {
  readonly x: Tensor
  readonly row: Tensor
  readonly w: Tensor
}

const writes: Readonly<Record<string, (written: Written) => unknown>> = {
  'no write': () => undefined,
  'a write': ({ x }) => x.mul_(5),
  'a write of another history': ({ x, w }) => x.copy_(w),
  'two writes': ({ x, w }) => x.mul_(5).add_(w),
  'a write to a view': ({ row }) => row.mul_(5),
  'a write to another view': ({ x, w }) => x.select(1, 0).copy_(w.select(0, 0)),
  'a write inside noGrad': ({ x }) => noGrad(() => x.mul_(5)),
  'a transposition in place': ({ x }) => x.t_(),
  'a transposition and a write': ({ x }) => x.t_().mul_(x.clone()),
}

const losses: Readonly<Record<string, (written: Written) => Tensor>> = {
  'the tensor': ({ x }) => x.clone().square().sum(),
  'the view': ({ row }) => row.clone().square().sum(),
  both: ({ x, row }) => x.clone().square().sum().add(row.clone().sin().sum()),
}

const starts = (): Written => {
  const w = torch
    .tensor([
      [1, 2],
      [3, 4],
    ])
    .requiresGrad_()
  const x = w.mul(2)
  return { w, x, row: x.select(0, 1) }
}

const arrayOf = (t: Tensor | null | undefined): unknown => t?.toArray() ?? null

describe.each(Object.entries(writes))('after %s', (_, write) => {
  test.each(Object.entries(losses))('and a loss of %s', (_name, lossOf) => {
    const run = (written: Written): Tensor => {
      write(written)
      return lossOf(written)
    }
    for (const way of [run, compile(run), compile(run, { backend: 'eager' })]) {
      const written = starts()
      written.x.retainGrad()
      written.row.retainGrad()
      const loss = way(written)
      const [x, row] = torch.autograd.grad(loss, [written.x, written.row], { retainGraph: true, allowUnused: true })
      // That has come past them, too.
      written.x.grad = written.row.grad = null
      loss.backward()
      expect([arrayOf(written.x.grad), arrayOf(written.row.grad)]).toEqual([arrayOf(x), arrayOf(row)])
    }
  })
})

test('a gradient that is kept inside of compiled code, and written to afterwards', () => {
  const run = (w: Tensor): readonly Tensor[] => {
    const x = w.mul(2)
    x.retainGrad()
    x.mul_(5)
    return [x, x.mul(7).sum()]
  }
  for (const way of [run, compile(run)]) {
    const [x, loss] = way(torch.tensor([1, 2]).requiresGrad_())
    loss?.backward()
    expect(x?.grad?.toArray()).toEqual([7, 7])
  }
})

test('a hook that was registered before a write sees the gradient of what was there before', () => {
  const seen: unknown[] = []
  const x = torch.tensor([1, 2]).requiresGrad_().mul(1)
  x.registerHook((grad) => void seen.push(grad.toArray()))
  x.retainGrad()
  x.mul_(5)
  x.sum().backward()
  expect([seen, x.grad?.toArray()]).toEqual([[[5, 5]], [1, 1]])
})
