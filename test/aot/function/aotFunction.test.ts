// aotFunction beyond pure functions of tensors: tensors from outside, arguments that share memory, results that are arguments, gradients that cannot exist.
import { describe, expect, it } from 'vitest'
import { AutogradError, noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction } from 'tensorfx/aot'
import type { GraphModule } from 'tensorfx/fx'
import { snapshotOf } from '../snapshot.ts'

const run = (gm: GraphModule): ((...inputs: readonly unknown[]) => readonly unknown[]) => {
  return (...inputs) => {
    const result = gm.forward(...inputs)
    return Array.isArray(result) ? result : [result]
  }
}
const aot = <A extends readonly unknown[], R>(fn: (...args: A) => R): ((...args: A) => R) => aotFunction(fn, { fwCompiler: run })

describe('tensors from outside', () => {
  it('are inputs: new values of them are seen, gradients reach them, and writes to them happen', () => {
    const w = torch.tensor([1, 2]).requiresGrad_()
    const total = torch.zeros([2])
    const f = aot((x: Tensor) => {
      total.add_(x)
      return x.mul(w)
    })
    for (const factor of [1, 2]) {
      noGrad(() => w.copy_(torch.tensor([factor, 2 * factor])))
      w.grad = null
      const y = f(torch.tensor([3, 4]))
      y.sum().backward()
      expect(y.detach().toArray()).toEqual([3 * factor, 8 * factor])
      expect(snapshotOf(w.grad)).toBe('float32 [2] [3,4]')
    }
    expect(total.toArray()).toEqual([6, 8])
  })

  it('that the function makes are made anew at each call', () => {
    const f = aot((x: Tensor) => {
      const sum = torch.tensor([0, 0])
      return sum.add_(x)
    })
    const first = f(torch.ones([2]))
    first.add_(10)
    expect(f(torch.ones([2])).toArray()).toEqual([1, 1])
  })
})

describe('results', () => {
  it('that are arguments or views of them share their memory', () => {
    const f = aot((x: Tensor) => {
      x.select(0, 0).add_(1)
      return [x, x.t(), x.mul(2)] as const
    })
    for (let call = 0; call < 2; call++) {
      const x = torch.zeros([2, 2])
      const [same, turned] = f(x)
      expect(same).toBe(x)
      turned.select(1, 0).add_(5)
      expect(x.toArray()).toEqual([
        [6, 6],
        [0, 0],
      ])
    }
  })

  it('may hold other values', () => {
    expect(snapshotOf(aot((x: Tensor) => ({ y: x.add(1), n: 3, none: null }))(torch.ones([1])))).toEqual({ y: 'float32 [1] [2]', n: 3, none: null })
  })
})

describe('arguments that share memory', () => {
  const program = (x: Tensor, v: Tensor): Tensor => {
    x.add_(v)
    return v.mul(2)
  }
  it.each([
    ['a view', (x: Tensor) => x.view([-1])],
    ['the tensor itself', (x: Tensor) => x],
    ['a row, expanded', (x: Tensor) => x.select(0, 0).expand([2, 2])],
    ['a transposed view', (x: Tensor) => x.t()],
  ])('%s: writes to one are seen through the other', (_, view) => {
    const write = (x: Tensor, v: Tensor): Tensor => (v.ndim === 1 ? program(x.view([-1]), v) : program(x, v))
    const f = aot(write)
    for (let call = 0; call < 2; call++) {
      const [x, other] = [torch.arange(4).reshape([2, 2]), torch.arange(4).reshape([2, 2])]
      expect(snapshotOf([f(x, view(x)), x])).toEqual(snapshotOf([write(other, view(other)), other]))
    }
  })

  it('are told apart from arguments that do not', () => {
    const f = aot(program)
    const x = torch.ones([2])
    expect(f(x, torch.ones([2])).toArray()).toEqual([2, 2])
    expect(f(x, x).toArray()).toEqual([8, 8])
    expect(f(x, torch.ones([2])).toArray()).toEqual([2, 2])
  })

  it('are written as in eager mode where one of them is a leaf that requires grad, and the other a detached view', () => {
    for (const run of [(a: Tensor, b: Tensor) => b.add_(a.detach()), aot((a: Tensor, b: Tensor) => b.add_(a.detach()))]) {
      const x = torch.ones([2]).requiresGrad_()
      const b = x.detach().view([2, 1]).view([2])
      expect(run(x, b)).toBe(b)
      expect([x.toArray(), b.requiresGrad, x.isLeaf]).toEqual([[2, 2], false, true])
    }
  })
})

describe('gradients', () => {
  it('are null, not zeros, for what the differentiated results do not depend on', () => {
    const [a, b] = [torch.ones([2]).requiresGrad_(), torch.ones([2]).requiresGrad_()]
    const [y] = aot((p: Tensor, q: Tensor) => [p.mul(2), q.mul(3)] as const)(a, b)
    y.sum().backward()
    expect(snapshotOf([a.grad, b.grad])).toEqual(['float32 [2] [2,2]', null])
  })

  it('that cannot exist fail in the backward, with the error of eager', () => {
    const x = torch.tensor([5, 7]).requiresGrad_()
    const y = aot((t: Tensor) => torch.floorDivide(t, 2))(x)
    expect(y.detach().toArray()).toEqual([2, 3])
    expect(() => y.sum().backward()).toThrow(/torch.floor_divide: this operator has no derivative/)
    const overwritten = (t: Tensor): Tensor => {
      const s = t.detach().sin()
      const z = t.mul(s)
      s.add_(1)
      return z
    }
    expect(() => aot(overwritten)(x).sum().backward()).toThrow(AutogradError)
  })

  it('flow through a write to an argument that had none', () => {
    const w = torch.tensor([2, 3]).requiresGrad_()
    const f = aot((x: Tensor, v: Tensor) => {
      x.add_(v.mul(3))
    })
    const x = torch.ones([2])
    f(x, w)
    x.sum().backward()
    expect(snapshotOf(w.grad)).toBe('float32 [2] [3,3]')
  })
})

it('a backward that needs only the shape of an input may follow a write to it', () => {
  const f = aot((x: Tensor) => torch.nn.functional.avgPool2d(x.reshape([1, 1, 2, 2]), 2))
  const x = torch.tensor([1, 2, 3, 4]).requiresGrad_()
  const y = f(x)
  noGrad(() => x.mul_(2))
  y.sum().backward()
  expect(snapshotOf(x.grad)).toBe('float32 [4] [0.25,0.25,0.25,0.25]')
})

describe('a write to what the derivatives read is refused', () => {
  const refused = (f: (x: Tensor) => Tensor, write: (x: Tensor, y: Tensor) => void): void => {
    for (const g of [f, aot(f)]) {
      const x = torch.tensor([1, 3]).requiresGrad_()
      const y = g(x)
      noGrad(() => write(x, y))
      expect(() => y.sum().backward()).toThrow(/modified in place/)
    }
  }
  it('if it is a result, which the graph would recompute', () =>
    refused(
      (x) => x.sum().sqrt(),
      (_, y) => y.add_(1),
    ))
  it.each([
    ['as a whole', (w: Tensor) => w.clamp_(-1, 1)],
    ['through a view', (w: Tensor) => w.detach().clamp_(-1, 1)],
    ['through a view of a view', (w: Tensor) => w.view([2, 1]).select(0, 1).clamp_(-1, 1)],
  ])('if it is a tensor from outside that the function has written itself %s', (_, write) => {
    const w = torch.tensor([2, 5])
    refused(
      (x) => {
        const y = w.mul(x)
        noGrad(() => write(w))
        return y
      },
      () => {},
    )
  })
  it('if it is an argument that the function has written itself', () => {
    const state = torch.tensor([1, 2])
    refused(
      (x) => {
        state.add_(1)
        return x.mul(state)
      },
      () => state.mul_(2),
    )
  })
})

it('a view of what was overwritten afterwards has the gradient of its new contents', () => {
  const f = (x: Tensor): Tensor => {
    const y = x.mul(2)
    const view = y.T
    y.fill_(0)
    return view
  }
  for (const g of [f, aot(f)]) {
    const x = torch.tensor([1, 3]).requiresGrad_()
    g(x).sum().backward()
    expect(snapshotOf(x.grad)).toBe('float32 [2] [0,0]')
  }
})

it('constants are told apart: numbers and texts, zeros of either sign, and objects of a class, which may hold tensors', () => {
  class Box {
    readonly x: Tensor
    constructor(x: Tensor) {
      this.x = x
    }
  }
  const f = aot((x: Tensor, other: unknown) => (other instanceof Box ? x.add(other.x) : typeof other === 'string' ? x.mul(10) : x.div(Number(other))))
  const given = [2, '2', 0, -0, new Box(torch.tensor(5)), new Box(torch.tensor(7))]
  expect(given.map((other) => f(torch.tensor(1), other).item())).toEqual([0.5, 10, Infinity, -Infinity, 6, 8])
})

describe('what changes between two calls', () => {
  const gradOf = (f: (w: Tensor) => Tensor, w: Tensor): unknown => {
    w.grad = null
    f(w).sum().backward()
    return w.grad === null ? null : (w.grad as Tensor).toArray()
  }

  it('a call under noGrad leaves those after it their gradients, and the reverse', () => {
    const w = torch.tensor([1, 2], { requiresGrad: true })
    const f = (x: Tensor): Tensor => x.mul(x).add(torch.noGrad(() => x.mul(3)))
    for (const underNoGradFirst of [true, false]) {
      const g = aot(f)
      if (underNoGradFirst) expect(torch.noGrad(() => g(w)).requiresGrad).toBe(false)
      expect(gradOf(g, w)).toEqual([2, 4])
      expect(torch.noGrad(() => g(w)).requiresGrad).toBe(false)
      expect(gradOf(g, w)).toEqual([2, 4])
    }
  })

  it('a parameter from outside that is frozen, and unfrozen', () => {
    const outer = torch.tensor([5, 7], { requiresGrad: true })
    const w = torch.tensor([1, 2], { requiresGrad: true })
    const f = aot((x: Tensor) => x.mul(outer))
    outer.requiresGrad_(false)
    expect(gradOf(f, w)).toEqual([5, 7])
    expect(outer.grad).toBeNull()
    outer.requiresGrad_(true)
    expect(gradOf(f, w)).toEqual([5, 7])
    expect(outer.grad?.toArray()).toEqual([1, 2])
    outer.requiresGrad_(false)
    outer.grad = null
    expect(gradOf(f, w)).toEqual([5, 7])
    expect(outer.grad).toBeNull()
  })
})
