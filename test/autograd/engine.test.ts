// The engine and the tape: what backward() does, apart from the derivatives of single operators (those are in test/ops).
import { describe, expect, it } from 'vitest'
import { AutogradError, enableGrad, inferenceMode, isGradEnabled, noGrad, setGradEnabled, torch } from 'tensorfx'
import type { FunctionContext, Tensor } from 'tensorfx'
import { attachGradNode } from '../../src/autograd/index.ts'

const { tensor } = torch
const { Function, grad } = torch.autograd

const leaf = (values: number | number[]): Tensor => tensor(values).requiresGrad_()
const values = (t: Tensor | null): unknown => t?.toArray()

describe('backward', () => {
  it('computes the gradients of a small expression', () => {
    const x = leaf([1, 2, 3])
    const w = leaf([4, 5, 6])
    x.mul(w).sum().backward()
    expect(values(x.grad)).toEqual([4, 5, 6])
    expect(values(w.grad)).toEqual([1, 2, 3])
  })

  it('sums gradients back over broadcast dimensions', () => {
    const x = leaf([1, 2, 3])
    const b = leaf(1)
    x.add(b).mul(2).sum().backward()
    expect(values(b.grad)).toBe(6)
    expect(b.grad?.shape).toEqual([])
  })

  it('adds the gradients of several uses of one tensor', () => {
    const x = leaf([2])
    x.mul(x).add(x).sum().backward()
    expect(values(x.grad)).toEqual([5])
  })

  it('accumulates over several backward passes, in place', () => {
    const x = leaf([1, 2])
    x.mul(2).sum().backward()
    const first = x.grad
    x.mul(3).sum().backward()
    expect(values(x.grad)).toEqual([5, 5])
    expect(x.grad).toBe(first)
  })

  it('gives two leaves gradients of their own, even where the derivative hands out one tensor', () => {
    const x = leaf([1, 2])
    const y = leaf([3, 4])
    x.add(y).sum().backward()
    noGrad(() => x.grad?.mul_(10))
    expect(values(x.grad)).toEqual([10, 10])
    expect(values(y.grad)).toEqual([1, 1])
  })

  it('does not keep the gradient that the caller passed in', () => {
    const x = leaf([1, 2])
    const g = tensor([1, 1])
    x.backward(g)
    noGrad(() => x.grad?.mul_(5))
    expect(values(g)).toEqual([1, 1])
  })

  it('needs a gradient for more than one element, and checks its shape', () => {
    const x = leaf([1, 2])
    expect(() => x.mul(2).backward()).toThrow(/shape \[2\] must be given/)
    expect(() => x.mul(2).backward(tensor([1, 2, 3]))).toThrow(/shape \[3\].*shape \[2\]/)
    x.mul(2).backward(tensor([1, 10]))
    expect(values(x.grad)).toEqual([2, 20])
  })

  it('says when nothing requires grad', () => {
    expect(() => tensor([1]).sum().backward()).toThrow(AutogradError)
    expect(() => tensor([1]).sum().backward()).toThrow(/does not require grad/)
  })

  it('frees what was saved: a second walk is an error, unless the graph is retained', () => {
    const x = leaf([3])
    const y = x.mul(x).sum()
    y.backward({ retainGraph: true })
    y.backward()
    expect(values(x.grad)).toEqual([12])
    expect(() => y.backward()).toThrow(/retainGraph/)
  })

  it('restricts itself to the inputs asked for', () => {
    const x = leaf([1])
    const y = leaf([2])
    x.mul(y)
      .sum()
      .backward({ inputs: [y] })
    expect(x.grad).toBeNull()
    expect(values(y.grad)).toEqual([1])
  })

  it('rejects unknown options', () => {
    expect(() =>
      leaf([1])
        .sum()
        .backward({ keepGraph: true } as never),
    ).toThrow(/unknown option 'keepGraph'/)
  })

  it('walks a chain of 100,000 nodes', () => {
    const x = leaf([1])
    let y: Tensor = x
    for (let i = 0; i < 100_000; i++) y = y.add(1)
    y.sum().backward()
    expect(values(x.grad)).toEqual([1])
  })

  it('walks a wide graph where every node has two users', () => {
    const x = leaf([1])
    let y: Tensor = x
    for (let i = 0; i < 20; i++) y = y.add(y)
    y.sum().backward()
    expect(values(x.grad)).toEqual([2 ** 20])
  })

  it('lets no gradient through integers and detached tensors', () => {
    const x = leaf([1.5, 2.5])
    expect(x.detach().requiresGrad).toBe(false)
    expect(x.to('int32').requiresGrad).toBe(false)
    x.mul(x.detach()).sum().backward()
    expect(values(x.grad)).toEqual([1.5, 2.5])
  })

  it('flows through views', () => {
    const x = leaf([1, 2, 3, 4])
    x.view([2, 2]).t().select(0, 1).mul(10).sum().backward()
    expect(values(x.grad)).toEqual([0, 10, 0, 10])
  })
})

describe('grad', () => {
  it('returns gradients without touching .grad', () => {
    const x = leaf([2])
    const [g] = grad(x.mul(x).sum(), [x])
    expect(values(g ?? null)).toEqual([4])
    expect(x.grad).toBeNull()
  })

  it('differentiates twice, and three times, a polynomial', () => {
    const x = leaf([2])
    const y = x.mul(x).mul(x).sum()
    const [first] = grad(y, [x], { createGraph: true })
    expect(values(first ?? null)).toEqual([12])
    const [second] = grad((first as Tensor).sum(), [x], { createGraph: true })
    expect(values(second ?? null)).toEqual([12])
    const [third] = grad((second as Tensor).sum(), [x])
    expect(values(third ?? null)).toEqual([6])
  })

  it('gives the gradient of a tensor in the middle of the graph', () => {
    const x = leaf([2])
    const middle = x.mul(3)
    const [g] = grad(middle.mul(middle).sum(), [middle])
    expect(values(g ?? null)).toEqual([12])
  })

  it('reports unused inputs, or gives null', () => {
    const x = leaf([2])
    const other = leaf([3])
    expect(() => grad(x.sum(), [other])).toThrow(/allowUnused/)
    expect(grad(x.sum(), [other], { allowUnused: true })).toEqual([null])
  })
})

describe('grad modes', () => {
  it('noGrad records nothing, enableGrad inside it does', () => {
    const x = leaf([1])
    expect(noGrad(() => x.mul(2)).requiresGrad).toBe(false)
    expect(noGrad(() => enableGrad(() => x.mul(2))).requiresGrad).toBe(true)
  })

  it('ends when the function throws, and when the guard is disposed', () => {
    expect(() =>
      noGrad(() => {
        throw new Error('inside')
      }),
    ).toThrow('inside')
    expect(isGradEnabled()).toBe(true)
    {
      using _scope = noGrad()
      expect(isGradEnabled()).toBe(false)
      {
        using _inner = enableGrad()
        expect(isGradEnabled()).toBe(true)
      }
      expect(isGradEnabled()).toBe(false)
    }
    expect(isGradEnabled()).toBe(true)
    // As in PyTorch, the call alone does nothing: the mode begins where `using` keeps what ends it.
    for (const bare of [noGrad, inferenceMode]) bare()
    expect(isGradEnabled()).toBe(true)
    expect(leaf([1]).mul(2).requiresGrad).toBe(true)
    expect(isGradEnabled()).toBe(true)
    const guard = setGradEnabled(false)
    expect(isGradEnabled()).toBe(false)
    guard[Symbol.dispose]()
    expect(isGradEnabled()).toBe(true)
  })
})

describe('in-place operators', () => {
  it('refuse a leaf that requires grad, outside noGrad', () => {
    const x = leaf([1])
    expect(() => x.add_(1)).toThrow(/leaf that requires grad/)
    noGrad(() => x.add_(1))
    expect(values(x)).toEqual([2])
  })

  it('give the tensor a new history', () => {
    const x = leaf([1, 2])
    const y = x.mul(3)
    y.add_(1).relu_()
    y.mul(y).sum().backward()
    // d/dx (3x + 1)^2 = 6 (3x + 1)
    expect(values(x.grad)).toEqual([24, 42])
  })

  it('are noticed when they overwrite what backward needs', () => {
    const x = leaf([1, 2])
    const y = x.exp()
    const z = y.mul(y)
    y.add_(1)
    expect(() => z.sum().backward()).toThrow(/modified in place/)
  })

  it('do no harm where backward needs only the shape', () => {
    const x = leaf([1, 2])
    const y = x.add(1)
    const z = y.add(2)
    y.mul_(10)
    z.sum().backward()
    expect(values(x.grad)).toEqual([1, 1])
  })

  it('give older views the new history, too, as PyTorch does', () => {
    const w = leaf([1, 2, 3, 4])
    const base = w.mul(1)
    const view = base.view([2, 2])
    const [first, second] = view.unbind()
    const column = view.T.select(0, 1)
    base.mul_(3)
    // Once at the start of a backward, once as an argument, and once more after the next write.
    first?.backward(tensor([10, 20]), { retainGraph: true })
    expect(values(w.grad)).toEqual([30, 60, 0, 0])
    w.grad = null
    const early = column.mul(2).sum()
    base.add_(base.detach()).mul_(5)
    early.add(second?.sum() ?? 0).backward()
    expect(values(w.grad)).toEqual([0, 6, 15, 15 + 6])
  })

  it('leave views alone that were cut from the history', () => {
    const w = leaf([1, 2])
    const base = w.mul(1)
    const cut = base.detach().requiresGrad_()
    const view = cut.view([2, 1])
    base.mul_(3)
    view.sum().backward()
    expect(values(cut.grad)).toEqual([1, 1])
    expect(w.grad).toBe(null)
  })
})

describe('hooks', () => {
  it('see and replace gradients, and can be removed', () => {
    const x = leaf([1, 2])
    const seen: unknown[] = []
    const handle = x.registerHook((g) => {
      seen.push(values(g))
      return g.mul(10)
    })
    x.mul(2).sum().backward()
    expect(seen).toEqual([[2, 2]])
    expect(values(x.grad)).toEqual([20, 20])
    handle.remove()
    x.grad = null
    x.mul(2).sum().backward()
    expect(values(x.grad)).toEqual([2, 2])
  })

  it('work on tensors that are no leaves, and retainGrad keeps their gradient', () => {
    const x = leaf([1, 2])
    const y = x.mul(2)
    y.retainGrad()
    y.registerHook((g) => g.mul(0))
    y.mul(y).sum().backward()
    expect(values(y.grad)).toEqual([4, 8])
    expect(values(x.grad)).toEqual([0, 0])
  })
})

describe('custom functions', () => {
  class Cube extends Function {
    static override forward(ctx: FunctionContext, x: Tensor): Tensor {
      ctx.saveForBackward(x)
      return x.mul(x).mul(x)
    }

    static override backward(ctx: FunctionContext, g: Tensor): Tensor {
      const [x] = ctx.savedTensors as [Tensor]
      return x.mul(x).mul(3).mul(g)
    }
  }

  it('run their own backward', () => {
    const x = leaf([2])
    const y = Cube.apply(x)
    expect(values(y)).toEqual([8])
    expect(y.gradFn?.name).toBe('CubeBackward')
    y.sum().backward()
    expect(values(x.grad)).toEqual([12])
  })

  it('may be differentiated twice', () => {
    const x = leaf([2])
    const [g] = grad(Cube.apply(x).sum(), [x], { createGraph: true })
    const [gg] = grad((g as Tensor).sum(), [x])
    expect(values(gg ?? null)).toEqual([12])
  })

  it('are told when the number of gradients is wrong', () => {
    const x = leaf([2])
    const y = noGrad(() => x.mul(2))
    attachGradNode([y], [x], () => [])
    expect(() => y.sum().backward()).toThrow(/must return 1 gradients/)
  })
})

describe('attachGradNode', () => {
  it('gives outputs a history, with null for outputs that do not contribute', () => {
    const x = leaf([1, 2])
    const a = noGrad(() => x.mul(2))
    const b = noGrad(() => x.mul(3))
    let seen: unknown
    attachGradNode([a, b], [x], ([ga, gb]) => {
      seen = [ga === null, gb === null]
      return [(ga as Tensor).mul(2)]
    })
    a.sum().backward()
    expect(seen).toEqual([false, true])
    expect(values(x.grad)).toEqual([2, 2])
  })
})
