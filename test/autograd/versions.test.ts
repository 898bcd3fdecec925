// Versions and former layouts of saved tensors: writes to fake tensors count as writes to real ones, and a node goes on from the shape that its arguments had.
import { describe, expect, test } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import { isAsSaved, upcomingSeq } from '../../src/autograd/index.ts'
import { laidAt, versionOf } from '../../src/autograd/versions.ts'

const writes: Readonly<Record<string, (x: Tensor, view: Tensor) => unknown>> = {
  'the tensor': (x) => x.add_(1),
  'a view of it': (_, view) => view.add_(1),
  'a view of a view of it': (_, view) => view.view([1, -1]).select(0, 0).add_(1),
}

test.each(Object.entries(writes))('a tensor that was saved, and then %s written to, is refused', (_, write) => {
  const backward = (saves: (x: Tensor) => Tensor): void => {
    const x = torch.ones([3]).requiresGrad_().mul(2)
    const y = saves(x)
    write(x, x.narrow(0, 0, 2))
    y.sum().backward()
  }
  expect(() => backward((x) => x.sin())).toThrow(/sin: a tensor needed for its gradient has been modified in place/)
  // This gradient reads nothing.
  expect(() => backward((x) => x.neg())).not.toThrow()
})

test('a tensor that was written to before it was saved, or beside one that was, is as it was saved', () => {
  const w = torch.ones([3]).requiresGrad_()
  const [x, other] = [w.mul(2), w.mul(3)]
  x.add_(1)
  const y = x.sin()
  other.add_(1)
  expect(() => y.sum().backward()).not.toThrow()
})

test.each(Object.entries(writes))('fake tensors count writes to %s', (_, write) => {
  withMode(new FakeTensorMode(), () => {
    const [x, other] = [torch.ones([3]), torch.ones([3])]
    const view = x.narrow(0, 0, 2)
    const seq = upcomingSeq()
    for (let count = 1; count < 4; count++) {
      write(x, view)
      expect([x, view, view.select(0, 0), other].map(versionOf)).toEqual([count, count, count, 0])
      expect([isAsSaved(x, count, seq), isAsSaved(x, count - 1, seq)]).toEqual([true, false])
    }
  })
})

test('a fake view of a real tensor counts the writes to that', () => {
  const x = torch.ones([3])
  const view = Object.assign(torch.Tensor.fake(x), { viewBase: x })
  x.add_(1)
  expect([versionOf(x), versionOf(view)]).toEqual([1, 1])
})

describe('a tensor that gets other shapes in place', () => {
  test('has for each node the shape that it had then', () => {
    const w = torch.ones([2, 3]).requiresGrad_()
    const x = w.mul(1)
    const row = torch.tensor([1, 10, 100])
    const first = x.add(row)
    x.t_()
    const second = x.add(torch.tensor([1, 2]))
    x.unsqueeze_(0)
    const third = x.add(torch.zeros([4, 1, 1]))
    first
      .mul(row)
      .sum()
      .add(second.mul(torch.tensor([1000, 2000])).sum())
      .add(third.mul(10_000).sum())
      .backward()
    expect(w.grad?.toArray()).toEqual([
      [41_001, 41_010, 41_100],
      [42_001, 42_010, 42_100],
    ])
  })

  test('is named with the shape that it had', () => {
    const w = torch.ones([2, 3]).requiresGrad_()
    const x = w.mul(1)
    const y = x.sin()
    x.t_()
    expect(() => y.sum().backward()).toThrow(/of shape \[2, 3\]/)
  })

  test('may change so often that the oldest shapes are forgotten; younger nodes have theirs', () => {
    const w = torch.ones([2, 3]).requiresGrad_()
    const x = w.mul(1)
    for (let i = 0; i < 2001; i++) x.t_()
    const y = x.add(torch.ones([2]))
    for (let i = 0; i < 1023; i++) x.t_()
    y.sum().backward()
    expect(w.grad?.shape).toEqual([2, 3])
  })

  test('counts that as a write, and so do its views', () => {
    const x = torch.ones([2, 3])
    const view = x.select(0, 0)
    x.t_()
    x.unsqueeze_(0)
    expect([x, view].map(versionOf)).toEqual([2, 2])
  })

  test('is as it was saved for nodes that were made since, and for no earlier one', () => {
    const [x, other] = [torch.ones([2, 3]), torch.ones([2, 3])]
    /** The number of the next node, and then one is made. */
    const node = (): number => {
      const seq = upcomingSeq()
      torch.ones([1]).requiresGrad_().mul(1)
      return seq
    }
    const nodes = [node()]
    for (const change of [(): Tensor => x.t_(), (): Tensor => x.unsqueeze_(0), (): Tensor => x.transpose_(0, 2)]) {
      change()
      nodes.push(node())
    }
    expect(nodes.map((seq) => laidAt(x, seq).shape)).toEqual([
      [2, 3],
      [3, 2],
      [1, 3, 2],
      [2, 3, 1],
    ])
    expect(nodes.map((seq) => isAsSaved(x, 3, seq))).toEqual([false, false, false, true])
    expect(nodes.map((seq) => isAsSaved(x, 2, seq))).toEqual([false, false, false, false])
    expect(nodes.map((seq) => laidAt(other, seq))).toEqual([other, other, other, other])
    expect(laidAt(x, upcomingSeq())).toBe(x)
    // Another tensor has changed since.
    const last = node()
    other.t_()
    expect([laidAt(x, last), laidAt(other, last).shape]).toEqual([x, [2, 3]])
  })
})

describe('a tensor that was written to, of which a gradient without elements is made', () => {
  const F = nn.functional
  type Program = (x: Tensor, w: Tensor) => Tensor
  const programs: readonly (readonly [string, Program, readonly number[], readonly number[]])[] = [
    ['mul', (x, w) => x.mul(w), [0, 3], [3]],
    ['addcmul', (x, w) => torch.addcmul(w, x, w), [0, 3], [1]],
    ['lerp', (x, w) => torch.lerp(x, x, w), [0, 3], [3]],
    ['maximum', (x, w) => torch.maximum(x, w), [0, 3], [3]],
    ['mm', (x, w) => x.mm(w), [0, 3], [3, 4]],
    ['linear', (x, w) => F.linear(x, w), [0, 3], [4, 3]],
    ['conv1d', (x, w) => F.conv1d(x, w), [0, 2, 5], [2, 2, 3]],
    ['prelu', (x, w) => F.prelu(x, w), [0, 3], [3]],
  ]

  const isRefused = (f: Program, shapes: readonly (readonly number[])[]): boolean => {
    const [x, w] = shapes.map((shape) => torch.ones(shape).requiresGrad_())
    if (x === undefined || w === undefined) throw new RangeError('two shapes')
    const y = f(x, w)
    w.detach().add_(1)
    try {
      y.sum().backward()
      return false
    } catch (error) {
      expect(String(error)).toContain('modified in place')
      return true
    }
  }

  test.each(programs)('%s: it is refused as it is with elements, and compiled too', (_, f, empty, w) => {
    for (const run of [f, compile(f, { dynamic: false }), compile(f, { dynamic: true })])
      for (const shape of [empty.with(0, 2), empty]) expect([shape, isRefused(run, [shape, w])]).toEqual([shape, true])
  })

  test('a gradient that needs its shape only is not refused', () => {
    for (const shape of [
      [2, 3],
      [0, 3],
    ]) {
      expect(isRefused((x, w) => x.add(w), [shape, [3]])).toBe(false)
      expect(isRefused((x, w) => torch.cat([x, w]), [shape, shape])).toBe(false)
      expect(isRefused((x, w) => x.reshape([-1]).add(w.sum()), [shape, shape])).toBe(false)
    }
  })

  test('a derivative of a program may turn tensors around that are used elsewhere, compiled too', () => {
    let factor = torch.ones([2])
    const scaled = torch.library.customOp('versions::scaled', {
      schema: '(Tensor x, Tensor w) -> Tensor',
      forward: (x, w) => x.mul(w.sum()),
      fake: (x) => torch.emptyLike(x),
      backward: (_, g) => ({ x: g.mul(factor.t_()) }),
    })
    const gradient = (x: Tensor, w: Tensor): readonly unknown[] => {
      const y = scaled(x, w)
      const before = factor.mul(2)
      w.detach().add_(1)
      y.sum().backward()
      return [before, x.grad, factor.add(1)]
    }
    const results = [gradient, compile(gradient, { dynamic: true })].map((run) => {
      factor = torch.arange(6).reshape([3, 2]).float()
      return run(torch.ones([2, 3]).requiresGrad_(), torch.ones([3])).map(String)
    })
    expect(results[1]).toEqual(results[0])
  })
})
