// A write to memory that several tensors of a segment share is part of the graph: a scatter into the tensor that covers the memory, and other views are taken anew.
import { describe, expect, it } from 'vitest'
import { compile, nn, noGrad, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { explain } from 'tensorfx/compile'
import { agree, times } from '../against.ts'

const matrix = (): Tensor => torch.arange(12, { dtype: 'float32' }).view(3, 4)

/** Compares three calls of a function of one tensor with eager ones, and counts the graph breaks. */
function breaksOf(backend: string, fn: (x: Tensor) => unknown, make = matrix): number {
  agree(backend, (c) => {
    const f = c(fn)
    return times(3, (i) => {
      const x = make().mul_(i + 1)
      return [f(x), x]
    })
  })
  return explain(fn)(make()).graphBreakCount
}

describe.each(['eager', 'inductor'])('on the backend %s', (backend) => {
  it.each<[string, (x: Tensor) => unknown]>([
    ['a row of a result', (x) => [x.mul(2)].map((h) => (h.select(0, 1).add_(1), h.sum(0)))],
    ['half of a dimension', (x) => [x.mul(2)].map((h) => (h.narrow(1, 2, 2).mul_(3), h))],
    ['the end of a dimension', (x) => [x.mul(2)].map((h) => (h.slice(1, -2).add_(3), h.mul(2)))],
    ['a view of a view', (x) => [x.mul(2)].map((h) => (h.t().select(0, 1).narrow(0, 1, 1).fill_(7), h))],
    ['a flat view', (x) => [x.mul(2)].map((h) => (h.view(-1).add_(1), h.add(1)))],
    ['a dimension more', (x) => [x.mul(2)].map((h) => (h.unsqueeze(0).squeeze(0).sub_(1), h))],
    ['a detached tensor', (x) => [x.mul(2)].map((h) => (h.detach().add_(1), h.mul(2)))],
    ['a row of an argument', (x) => (x.select(0, 0).copy_(x.sum(0)), x.mul(2))],
    ['rows one after the other', (x) => (times(3, (i) => x.select(0, i).mul_(i + 1)), x.sum())],
    ['a tensor with a view', (x) => [x.view(-1)].map((v) => (x.add_(1), v.mul(2)))],
    ['a tensor with a view of a view, read through it', (x) => [x.t().select(0, 2)].map((v) => (x.add_(1), x.mul_(2), [v.add(1), v]))],
    [
      'one view, read through another',
      (x) => [x.select(0, 1), x.t()].map((v, i, [row]) => (i === 0 ? v.add_(1) : [v.add(row?.sum() ?? 0), v.mul(2)])),
    ],
    ['several results of one view', (x) => [x.unbind()].map((rows) => (x.add_(1), rows.map((row) => row.mul(2))))],
    ['integers in a float row', (x) => (x.select(0, 0).copy_(torch.arange(4)), x)],
    ['a view that the call returns', (x) => [x.mul(2)].map((h) => [h.select(0, 1), h.add_(1)])],
  ])('%s is written in one graph', (_name, fn) => {
    expect(breaksOf(backend, fn)).toBe(0)
  })

  it.each<[string, (x: Tensor) => Tensor]>([
    ['every second column', (x) => x.slice(1, 0, null, 2)],
    ['columns in the middle', (x) => x.narrow(1, 1, 2)],
    ['a diagonal', (x) => torch.diagonal(x)],
  ])('%s ends the graph, since a scatter into it takes longer; with fullgraph it is part of it', (_name, view) => {
    const fn = (x: Tensor): Tensor => (view(x).add_(x.sum()), x.mul(2))
    expect(breaksOf(backend, fn)).toBe(1)
    const whole = compile(fn, { backend, fullgraph: true })
    for (let i = 0; i < 3; i++) {
      const [x, y] = [matrix(), matrix()]
      expect([whole(y).toArray(), y.toArray()]).toEqual([fn(x).toArray(), x.toArray()])
    }
  })

  it.each<[string, (x: Tensor) => unknown]>([
    ['a view written with another part of its memory', (x) => (x.select(0, 0).add_(x.select(0, 1)), x.mul(2))],
    ['a repeated element', (x) => (x.select(0, 0).select(0, 0).expand([1, 1]).add_(1), x.mul(2))],
    ['one of several results', (x) => (x.chunk(2)[0]?.add_(1), x.mul(2))],
    ['a tensor that is not contiguous', (x) => [x.t().select(0, 1)].map((v) => (v.add_(1), x.mul(2)))],
  ])('%s means the same, in however many graphs', (_name, fn) => {
    breaksOf(backend, fn, () => torch.arange(12, { dtype: 'float32' }).view(4, 3).t())
    breaksOf(backend, fn)
  })

  it('two arguments on one memory, of which a view is written, end the graph', () => {
    agree(backend, (c) => {
      const f = c((x: Tensor, y: Tensor) => {
        const before = y.mul(2)
        x.select(0, 0).add_(1)
        return [before, y.mul(2), x]
      })
      return times(3, () => {
        const x = torch.ones([2, 2])
        return f(x, x.view(-1))
      })
    })
  })

  it('an exception keeps the writes to views before it', () => {
    agree(backend, (c) => {
      const seen = torch.zeros([2, 2])
      const f = c((fail: boolean) => {
        const row = seen.select(0, 1)
        row.add_(1)
        if (fail) throw new RangeError('stop')
        row.mul_(2)
        return row.clone()
      })
      return times(4, (i) => {
        try {
          return [f(i % 2 === 0), seen]
        } catch (error) {
          return [error, seen.toArray()]
        }
      })
    })
  })

  it('a view from before the call sees writes to another view inside', () => {
    agree(backend, (c) => {
      const cache = torch.zeros([3, 2])
      const flat = cache.view(-1)
      const f = c((i: number) => {
        cache.select(0, i).copy_(torch.tensor([i, i + 1]))
        return [flat.toArray(), cache.sum()]
      })
      return times(3, (i) => [f(i), cache])
    })
  })

  it('a write after which a value is read, and the view written again', () => {
    agree(backend, (c) => {
      const f = c((x: Tensor) => {
        const row = x.select(0, 0)
        row.add_(1)
        const sum = x.sum().item()
        row.mul_(sum)
        return [sum, x.clone()]
      })
      return times(3, () => f(torch.ones([2, 2])))
    })
  })

  it('gradients flow through views of a buffer that was written', () => {
    agree(backend, (c) => {
      const w = torch.tensor([1, 2]).requiresGrad_()
      const buffer = torch.zeros([2, 2])
      const f = c((k: number) => {
        noGrad(() => buffer.select(0, 1).add_(k))
        return w.mul(buffer.t()).sum()
      })
      return times(3, (i) => {
        w.grad = null
        f(i).backward()
        return [w.grad, buffer]
      })
    })
  })

  it('a training step with a transposed weight', () => {
    agree(backend, (c) => {
      torch.manualSeed(1)
      const w = new nn.Parameter(torch.randn([3, 2]))
      const optimizer = new optim.SGD([w], { lr: 0.1, momentum: 0.9 })
      const f = c((x: Tensor) => {
        optimizer.zeroGrad()
        const loss = x.matmul(w.t()).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()
      })
      return times(4, (i) => [f(torch.ones([4, 2]).mul(i + 1)), w.detach().clone()])
    })
  })

  it('what was saved for a backward and overwritten through a view is an error', () => {
    agree(backend, (c) => {
      const w = torch.tensor([1, 2]).requiresGrad_()
      const f = c(() => {
        const h = w.mul(2)
        const loss = h.square().sum()
        noGrad(() => h.detach().select(0, 0).add_(1))
        loss.backward()
      })
      return times(2, () => {
        try {
          return f()
        } catch (error) {
          return error instanceof Error ? error.name : error
        }
      })
    })
  })
})

it('with skipReplay, a view of a written argument belongs to its own call', () => {
  const f = compile(
    (x: Tensor) => {
      const row = x.select(0, 0)
      row.add_(1)
      return row
    },
    { skipReplay: true },
  )
  const [a, b] = [torch.zeros([2, 2]), torch.ones([2, 2])]
  f(a)
  expect(f(b).toArray()).toEqual([2, 2])
  expect(a.toArray()).toEqual([
    [1, 1],
    [0, 0],
  ])
})

it('a write of a small part of a large memory ends the graph: a scatter would copy it all', () => {
  const report = explain((x: Tensor) => (x.select(0, 0).add_(1), x.sum()))
  expect(report(torch.ones([2, 4000])).breakReasons).toEqual([])
  expect(report(torch.ones([200, 100])).breakReasons.map(({ reason }) => reason)).toEqual([
    'an in-place operator on memory that several tensors share',
  ])
})

describe('inductor chooses by position for a scatter into', () => {
  const [x, row, columns] = [matrix(), torch.full([4], -1), torch.full([3, 2], -1)]
  it.each<[string, (t: Tensor) => Tensor]>([
    ['the first row', (t) => torch.selectScatter(t, row, 0, 0)],
    ['the last row', (t) => torch.selectScatter(t, row, -2, -1)],
    ['a column', (t) => torch.selectScatter(t, torch.full([3], -1), 1, 2)],
    ['the first half', (t) => torch.sliceScatter(t, columns, 1, 0, 2)],
    ['the last half', (t) => torch.sliceScatter(t, columns, -1, -2)],
    ['the half before a start that is too small', (t) => torch.sliceScatter(t, columns, 1, -9, 2)],
  ])('%s', (_name, fn) => {
    const around = (t: Tensor): Tensor => fn(t.mul(2)).add(1)
    const f = compile(around)
    for (const t of [x, x.neg()]) expect(f(t).toArray()).toEqual(around(t).toArray())
    expect(f.kernels().flatMap(({ ops }) => ops)).toContain('where')
  })

  it('one of unequal parts, which it leaves to the eager kernel', () => {
    const f = compile((t: Tensor) => torch.sliceScatter(t.mul(2), columns, 1, 1, 3))
    expect(f(x).toArray()).toEqual(torch.sliceScatter(x.mul(2), columns, 1, 1, 3).toArray())
    expect(f.kernels().flatMap(({ ops }) => ops)).not.toContain('where')
  })

  it('all of a dimension, which leaves nothing to choose', () => {
    const f = compile((t: Tensor) => torch.sliceScatter(t.mul(2), t.mul(3)).add(1))
    expect(f(x).toArray()).toEqual(x.mul(3).add(1).toArray())
    expect(f.kernels().length).toBe(1)
  })
})

it('a fraction that is copied into a view of booleans gives what it gives eagerly', () => {
  agree('inductor', (c) => {
    const f = c((x: Tensor) => x.select(0, 0).copy_(torch.tensor(0.5)))
    return times(2, () => {
      const x = torch.tensor([false, false])
      return [f(x), x]
    })
  })
})
