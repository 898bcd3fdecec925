// What tells calls apart, and what a call may be: structures, empty tensors, async functions, code that compile is asked to leave alone.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { disable, graphBreak, isCompiling, reset } from 'tensorfx/compile'
import { agree, attempt, times } from './against.ts'

afterEach(() => reset())

describe.each(['eager', 'inductor'])('on the backend %s', (backend) => {
  it('skipReplay tells structures apart', () => {
    const f = compile((args: { a?: Tensor; b?: Tensor }) => (args.a === undefined ? (args.b as Tensor).mul(-1) : args.a.mul(2)), {
      backend,
      skipReplay: true,
    })
    const x = torch.ones([2])
    for (let i = 0; i < 2; i++) {
      expect(f({ a: x }).toArray()).toEqual([2, 2])
      expect(f({ b: x }).toArray()).toEqual([-1, -1])
    }
  })

  it.each([[[0]], [[2, 0]], [[0, 3]]])('tensors of shape %j', (shape) => {
    agree(backend, (c) => {
      const w = torch.zeros(shape).requiresGrad_()
      const f = c((x: Tensor) => {
        const y = x.mul(2).add(w).relu()
        return [y, y.sum(), torch.cat([y, x]), y.add(torch.ones([1]))] as const
      })
      return times(3, () => {
        w.grad = null
        const out = f(torch.zeros(shape))
        out[1].backward()
        return [...out, w.grad]
      })
    })
  })

  it('an async function is captured up to its first await', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const kept = torch.zeros([2])
    const f = compile(
      async (x: Tensor) => {
        const y = x.mul(2)
        const z = y.exp()
        kept.add_(1)
        await Promise.resolve()
        kept.add_(z)
        return y.add(z)
      },
      { backend },
    )
    for (let i = 0; i < 3; i++) {
      const x = torch.full([2], i)
      const promise = f(x)
      expect(kept.toArray()).not.toEqual([0, 0])
      x.zero_()
      const value = await promise
      expect(value.item === undefined).toBe(false)
      expect(torch.allclose(value, torch.full([2], 2 * i + Math.exp(2 * i)))).toBe(true)
    }
    expect(f.graphs()).toHaveLength(1)
    expect(warn).toHaveBeenCalledTimes(1)
    expect(warn.mock.calls[0]?.[0]).toMatch(/async/)
    warn.mockRestore()
  })

  it('graphBreak and isCompiling', () => {
    const f = compile(
      (x: Tensor) => {
        const seen = [isCompiling(), disable(() => isCompiling())(), disable(() => compile(() => isCompiling(), { backend })())()]
        const y = x.mul(2)
        graphBreak()
        return [y.add(1), seen] as const
      },
      { backend },
    )
    for (let i = 0; i < 2; i++) {
      const [y, seen] = f(torch.ones([1]))
      expect(y.item()).toBe(3)
      expect(seen).toEqual([true, false, true])
    }
    expect(isCompiling()).toBe(false)
    expect(f.graphs()).toHaveLength(2)
    graphBreak()
  })

  it('an index out of range is thrown at the call of the operator, with the writes before it', () => {
    agree(backend, (c) => {
      const count = torch.zeros([1])
      const table = torch.arange(8).reshape([4, 2])
      const f = c((indices: Tensor) => {
        count.add_(1)
        let rows: Tensor
        try {
          rows = torch.nn.functional.embedding(indices, table)
        } catch (error) {
          return error
        }
        count.add_(10)
        return rows.mul(2)
      })
      return [
        [1, 2],
        [1, 4],
        [3, 0],
        [-1, 0],
        [0, 0],
      ].map((list) => [f(torch.tensor(list, { dtype: 'int32' })), count.toArray()])
    })
  })

  it('classes that are cast first are checked at the call, too', () => {
    agree(backend, (c) => {
      const f = c((classes: Tensor) => attempt(() => torch.nn.functional.oneHot(classes.long(), 3)))
      return [
        [0, 2],
        [5, 0],
        [1, 1],
      ].map((list) => f(torch.tensor(list, { dtype: 'int32' })))
    })
  })

  it('an index that is computed in the graph and out of range: the writes before it are done', () => {
    agree(backend, (c) => {
      const count = torch.zeros([1])
      const table = torch.arange(8).reshape([4, 2])
      const f = c((x: Tensor) => {
        count.add_(1)
        const rows = torch.nn.functional.embedding(x.mul(2).to('int32'), table)
        return rows.mul(2)
      })
      return [
        [1, 1],
        [1, 2],
        [0, 1],
      ].map((list) => [attempt(() => f(torch.tensor(list))), count.toArray()])
    })
  })

  it.each<[string, (x: Tensor) => unknown, number, number]>([
    ['inv', (x) => torch.linalg.inv(x.expand([2, 2]).triu()), 2, 0],
    ['solve', (x) => torch.linalg.solve(x.expand([2, 2]).triu(), torch.ones([2])), 2, 0],
    ['cholesky', (x) => torch.linalg.cholesky(torch.eye(2).mul(x)), 4, -1],
    ['matrixPower', (x) => torch.linalg.matrixPower(x.expand([2, 2]).triu(), -2), 2, 0],
    ['poisson', (x) => torch.poisson(x), 0, -1],
    ['multinomial', (x) => torch.multinomial(torch.cat([x, torch.ones([1])]), 1), 0, -1],
    ['bincount', (x) => torch.bincount(x.long()), 1, -1],
    ['repeatInterleave', (x) => torch.repeatInterleave(torch.ones([1]), x.long()), 2, -1],
    ['gather', (x) => torch.ones([2]).gather(0, x.long()), 1, 2],
    ['an integer division', (x) => torch.ones([1]).int().floorDivide(x.int()), 1, 0],
  ])('data that %s rejects: the program can catch the error where it calls it, with the writes before it', (_, reject, good, bad) => {
    agree(backend, (c) => {
      const count = torch.zeros([1])
      const f = c((x: Tensor) => {
        count.add_(1)
        const result = attempt(() => reject(x.mul(1)))
        count.add_(result instanceof Error ? 100 : 10)
        return result
      })
      const throws = c((x: Tensor) => {
        count.add_(1)
        const result = reject(x)
        count.add_(10)
        return result
      })
      return [good, bad, good, bad].map((value) => {
        const x = torch.tensor([value])
        return [f(x), attempt(() => throws(x)), count.toArray()]
      })
    })
  })
})
