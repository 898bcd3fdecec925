// skipReplay: the caller's promise that a function is pure. Calls like an earlier one run its graph alone; all others run the function.
import { afterEach, describe, expect, it } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { reset, withConfig } from 'tensorfx/compile'
import { treeMap } from 'tensorfx/pytree'

afterEach(() => reset())

/** A function compiled with skipReplay, and how often it was run. */
function counted<A extends unknown[], R>(fn: (...args: A) => R, backend: string): { readonly f: (...args: A) => R; readonly runs: () => number } {
  let runs = 0
  const f = compile(
    (...args: A) => {
      runs++
      return fn(...args)
    },
    { backend, skipReplay: true },
  )
  return { f, runs: () => runs }
}

describe.each(['eager', 'inductor'])('on the backend %s', (backend) => {
  it('a pure function is run for two arguments, and later calls compute with their own', () => {
    const { f, runs } = counted((x: Tensor) => ({ y: x.mul(2).add(1), list: [x, 'text'] }), backend)
    for (let i = 0; i < 4; i++) {
      const x = torch.full([2], i)
      const { y, list } = f(x)
      expect(y.toArray()).toEqual([2 * i + 1, 2 * i + 1])
      expect(list[0]).toBe(x)
      expect(list[1]).toBe('text')
    }
    expect(runs()).toBe(2)
  })

  it('a number, a text or which tensors are the same is part of the call', () => {
    const { f, runs } = counted((x: Tensor, y: Tensor, how: string | number) => (x === y ? x.neg() : how === 'add' ? x.add(y) : x.mul(y)), backend)
    const [a, b] = [torch.full([1], 3), torch.full([1], 5)]
    for (let i = 0; i < 2; i++) {
      expect(f(a, b, 'add').item()).toBe(8)
      expect(f(a, b, 1).item()).toBe(15)
      expect(f(a, b, 'mul').item()).toBe(15)
      expect(f(a, a, 'add').item()).toBe(-3)
    }
    expect(runs()).toBe(4)
  })

  it('writes to arguments and to tensors from outside happen at every call', () => {
    const total = torch.zeros([2])
    const { f, runs } = counted((x: Tensor, v: Tensor) => {
      x.add_(v)
      total.add_(x)
    }, backend)
    const x = torch.zeros([2])
    for (let i = 1; i <= 6; i++) {
      f(x, torch.ones([2]))
      expect(x.toArray()).toEqual([i, i])
    }
    expect(total.toArray()).toEqual([21, 21])
    expect(runs()).toBeLessThan(6)
  })

  it('a write to memory that two arguments share runs the function', () => {
    const { f } = counted((x: Tensor, v: Tensor) => {
      x.add_(1)
      return v.mul(2)
    }, backend)
    for (let i = 0; i < 3; i++) expect(f(torch.ones([2]), torch.ones([2])).toArray()).toEqual([2, 2])
    const x = torch.ones([2])
    expect(f(x, x.view(2)).toArray()).toEqual([4, 4])
  })

  it('writes to tensors whose old data is not read happen at every call', () => {
    const total = torch.zeros([2])
    const { f } = counted((x: Tensor, v: Tensor) => {
      x.fill_(3)
      total.copy_(v)
    }, backend)
    for (let i = 1; i < 5; i++) {
      const x = torch.zeros([2])
      f(x, torch.full([2], i))
      expect([x.toArray(), total.toArray()]).toEqual([
        [3, 3],
        [i, i],
      ])
    }
  })

  it('a function that writes to tensors of its own is run twice, and each call gets new ones', () => {
    const { f, runs } = counted((x: Tensor) => {
      const sum = torch.zeros([2])
      sum.add_(x).mul_(2)
      return [sum, sum.add(1)] as const
    }, backend)
    const results = [1, 2, 3].map((i) => f(torch.full([2], i)))
    expect(results.map(([sum, more]) => [sum.toArray(), more.toArray()])).toEqual(
      [1, 2, 3].map((i) => [
        [2 * i, 2 * i],
        [2 * i + 1, 2 * i + 1],
      ]),
    )
    expect(runs()).toBe(2)
  })

  it('an argument that holds another tensor than before is another argument', () => {
    const { f } = counted((o: { a: Tensor; list: number[] }) => o.a.mul(o.list.length), backend)
    const o = { a: torch.ones([1]), list: [1] }
    expect(f(o).item()).toBe(1)
    o.a = torch.full([1], 5)
    expect(f(o).item()).toBe(5)
    o.list.push(2)
    expect(f(o).item()).toBe(10)
  })

  describe('an argument that the function also reads from a variable is told from one that it does not', () => {
    const [w, other] = [torch.full([2], 2), torch.full([2], 5)]
    /** Calls `fn` with each list of arguments in turn, and compares it with what it gives without compile. Returns how often it ran. */
    const follow = (fn: (...args: Tensor[]) => unknown, calls: readonly (readonly Tensor[])[]): number => {
      const { f, runs } = counted(fn, backend)
      const plain = (value: unknown): unknown => (value instanceof torch.Tensor ? value.toArray() : value)
      for (const args of calls) expect(treeMap(f(...args), plain), `call ${runs()}`).toEqual(treeMap(fn(...args), plain))
      return runs()
    }
    const fresh = (): Tensor => torch.full([2], 7).add(Math.random())

    it.each<[string, (x: Tensor, y: Tensor) => unknown]>([
      ['computed with', (x) => x.mul(w)],
      ['computed with alone', () => w.add(1)],
      ['returned', (x) => [x.neg(), w]],
      ['added to what was computed', (x) => other.mul(0).add(x).add(w)],
      ['one of two', (x, y) => x.mul(w).add(y)],
    ])('where it is %s', (_, fn) => {
      for (const first of [w, fresh(), other]) {
        const calls = [first, fresh(), w, fresh(), other, fresh(), fresh(), w].map((x) => [x, other])
        expect(follow(fn, calls)).toBeLessThan(calls.length)
      }
    })
  })

  it('a tensor from outside that requires grad from now on runs the function', () => {
    const w = torch.full([2], 3)
    const { f } = counted((x: Tensor) => x.mul(w), backend)
    expect(f(torch.ones([2])).requiresGrad).toBe(false)
    w.requiresGrad_()
    const result = f(torch.ones([2]))
    expect(result.requiresGrad).toBe(true)
    expect(result.toArray()).toEqual([3, 3])
  })

  it('as many answers are remembered as paths may be recorded', () => {
    withConfig({ recompileLimit: 2 }, () => {
      const { f, runs } = counted((x: Tensor, how: string) => (how === 'sin' ? x.sin() : how === 'cos' ? x.cos() : x.neg()), backend)
      const x = torch.ones([1])
      for (let i = 0; i < 3; i++) for (const how of ['sin', 'cos', 'neg'] as const) expect(f(x, how).item()).toBe(x[how]().item())
      expect(runs()).toBe(3)
    })
  })

  it('a branch on a value runs at every call', () => {
    const { f, runs } = counted((x: Tensor) => (x.sum().item() > 0 ? x.mul(2) : x.sub(1)), backend)
    for (const [given, expected] of [
      [1, 2],
      [-1, -2],
      [3, 6],
      [-5, -6],
    ] as const)
      expect(f(torch.tensor([given])).toArray()).toEqual([expected])
    expect(runs()).toBe(4)
  })

  it('views among the results share memory with the others', () => {
    const { f } = counted((x: Tensor) => {
      const y = x.mul(2)
      return [y, y.t()] as const
    }, backend)
    for (let i = 0; i < 3; i++) {
      const [y, t] = f(torch.full([2, 2], i))
      y.add_(1)
      expect(t.toArray()).toEqual([
        [2 * i + 1, 2 * i + 1],
        [2 * i + 1, 2 * i + 1],
      ])
    }
  })

  it('random numbers are drawn at every call', () => {
    const { f } = counted(() => torch.rand([4]), backend)
    torch.manualSeed(3)
    const expected = [1, 2, 3].map(() => torch.rand([4]).toArray())
    torch.manualSeed(3)
    expect([1, 2, 3].map(() => f().toArray())).toEqual(expected)
  })

  it('a tensor from outside is read anew at every call', () => {
    const box = { w: torch.ones([2]) }
    const { f, runs } = counted((x: Tensor) => x.mul(box.w), backend)
    expect(f(torch.full([2], 3)).toArray()).toEqual([3, 3])
    expect(f(torch.full([2], 4)).toArray()).toEqual([4, 4])
    expect(runs()).toBe(2)
    box.w.add_(1)
    expect(f(torch.full([2], 4)).toArray()).toEqual([8, 8])
    expect(runs()).toBe(2)
  })

  it('the mode of a module is part of the call, and so is the structure beside a plain argument', () => {
    const drop = new nn.Dropout(0.5)
    const fast = compile(drop, { backend, skipReplay: true })
    const x = torch.ones([64])
    drop.eval()
    for (let i = 0; i < 2; i++) expect((fast.call(x) as Tensor).toArray()).toEqual(x.toArray())
    drop.train()
    expect((fast.call(x) as Tensor).toArray()).not.toEqual(x.toArray())
    drop.eval()
    expect((fast.call(x) as Tensor).toArray()).toEqual(x.toArray())
    const f = compile((y: Tensor, o: { a?: Tensor; b?: Tensor }) => (o.a === undefined ? y.sub(o.b ?? y) : y.add(o.a)), { backend, skipReplay: true })
    for (let i = 0; i < 2; i++) {
      expect(f(torch.ones([1]), { a: torch.ones([1]) }).item()).toBe(2)
      expect(f(torch.ones([1]), { b: torch.ones([1]) }).item()).toBe(0)
    }
  })

  it('gradients outside of the function', () => {
    const w = torch.tensor([1, 2]).requiresGrad_()
    const { f, runs } = counted((x: Tensor) => w.mul(x).pow(2).sum(), backend)
    for (let i = 1; i < 5; i++) {
      w.grad = null
      f(torch.full([2], i)).backward()
      expect((w.grad as unknown as Tensor).toArray()).toEqual([2 * i * i, 4 * i * i])
    }
    expect(runs()).toBeLessThan(4)
  })
})
