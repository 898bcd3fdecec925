// grad, vjp, jvp, Jacobians and Hessians against each other and against formulas; checkpoint, gradcheck, anomaly mode; and their errors.
import { describe, expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { checkpoint, detectAnomaly, functional, Function, gradcheck, gradgradcheck } from 'tensorfx/autograd'
import type { FunctionContext } from 'tensorfx/autograd'
import { grad, gradAndValue, hessian, jacfwd, jacrev, jvp, linearize, vjp } from 'tensorfx/func'

const values = (t: unknown): number[] => Array.from((t as Tensor).detach().contiguous().toTypedArray(), Number)
const x = torch.tensor([1, 2, 3])
const cube = (a: Tensor): Tensor => a.pow(3).sum()

describe('grad', () => {
  test('leaves its argument alone, and its result has no history', () => {
    const g = grad(cube)(x)
    expect(values(g)).toEqual([3, 12, 27])
    expect([g.requiresGrad, x.requiresGrad, x.grad]).toEqual([false, false, null])
  })

  test('can be applied again', () => {
    const second = grad((a: Tensor) => grad(cube)(a).sum())
    expect(values(second(x))).toEqual([6, 12, 18])
    expect(values(grad((a: Tensor) => second(a).sum())(x))).toEqual([6, 6, 6])
  })

  test('passes gradients on to an argument that requires grad, and to parameters of others', () => {
    const leaf = torch.tensor([1, 2, 3]).requiresGrad_()
    const weight = torch.tensor(2).requiresGrad_()
    grad((a: Tensor) => a.pow(3).mul(weight).sum())(leaf)
      .sum()
      .backward()
    expect([values(leaf.grad), values(weight.grad)]).toEqual([[12, 24, 36], [42]])
  })

  test('is not recorded inside noGrad, and is computed all the same', () => {
    const leaf = torch.tensor([1, 2, 3]).requiresGrad_()
    const g = torch.noGrad(() => grad(cube)(leaf))
    expect([values(g), g.requiresGrad]).toEqual([[3, 12, 27], false])
  })

  test('of nested arguments, of several, with others', () => {
    const named = grad(({ a, b }: { a: Tensor; b: Tensor }) => a.mul(b).sum())({ a: x, b: x.mul(2) })
    expect([values(named.a), values(named.b)]).toEqual([
      [2, 4, 6],
      [1, 2, 3],
    ])
    const both = grad((a: Tensor, b: Tensor) => a.mul(b).sum(), { argnums: [0, -1] })(x, x.mul(2))
    expect(both.map(values)).toEqual([
      [2, 4, 6],
      [1, 2, 3],
    ])
    const [g, aux] = grad((a: Tensor) => [cube(a), a.mul(10)] as const, { hasAux: true })(x)
    expect([values(g), values(aux)]).toEqual([
      [3, 12, 27],
      [10, 20, 30],
    ])
    const [g2, value] = gradAndValue(cube)(x)
    expect([values(g2), values(value)]).toEqual([[3, 12, 27], [36]])
  })

  test('is zero for an argument that does not matter', () => {
    expect(values(grad((a: Tensor, b: Tensor) => b.sum().add(a.sum().mul(0)))(x, x))).toEqual([0, 0, 0])
    expect(values(grad((_: Tensor, b: Tensor) => b.sum())(x, x))).toEqual([0, 0, 0])
  })
})

test('vjp, jvp and linearize agree with the Jacobian', () => {
  const w = torch.tensor([
    [1, 2, 3],
    [4, 5, 6],
  ])
  const f = (a: Tensor): Tensor => w.matmul(a).tanh()
  const at = x.mul(0.1)
  const jacobian = jacrev(f)(at) as Tensor
  expect(jacobian.shape).toEqual([2, 3])
  values(jacfwd(f)(at)).forEach((v, i) => expect(v).toBeCloseTo(values(jacobian)[i] ?? NaN, 5))
  const [y, pullback] = vjp(f, at)
  const u = torch.tensor([1, -2])
  values(pullback(u)).forEach((v, i) => expect(v).toBeCloseTo(values(u.matmul(jacobian))[i] ?? NaN, 5))
  const v = torch.tensor([1, 0.5, -1])
  const [y2, forward] = jvp(f, [at], [v])
  values(forward).forEach((d, i) => expect(d).toBeCloseTo(values(jacobian.matmul(v))[i] ?? NaN, 5))
  expect(values(y2)).toEqual(values(y))
  const [, pushforward] = linearize(f, at)
  expect(values(pushforward(v))).toEqual(values(forward))
  expect(pushforward(v).requiresGrad).toBe(false)
})

test('the Hessian of a quadratic form is its matrix, and of a cube diagonal', () => {
  const m = torch.tensor([
    [2, 1, 0],
    [1, 3, -1],
    [0, -1, 4],
  ])
  expect(values(hessian((a: Tensor) => a.dot(m.matmul(a)).mul(0.5))(x))).toEqual(values(m))
  expect(values(hessian(cube)(x))).toEqual([6, 0, 0, 0, 12, 0, 0, 0, 18])
})

test('Jacobians of nested results and arguments', () => {
  const found = jacrev((a: Tensor, b: Tensor) => ({ sum: a.sum(), product: a.mul(b) }), { argnums: [0, 1] })(x, x) as {
    sum: Tensor[]
    product: Tensor[]
  }
  expect([found.sum.map(values), found.product.map((t) => t.shape)]).toEqual([
    [
      [1, 1, 1],
      [0, 0, 0],
    ],
    [
      [3, 3],
      [3, 3],
    ],
  ])
})

describe('torch.autograd.functional', () => {
  test('products with second derivatives agree with the Hessian', () => {
    const v = torch.tensor([1, -1, 2])
    const [value, product] = functional.hvp(cube, x, v)
    expect([values(value), values(product)]).toEqual([[36], [6, -12, 36]])
    expect(values(functional.vhp(cube, x, v)[1])).toEqual([6, -12, 36])
  })

  test('results have a history only with createGraph', () => {
    const leaf = torch.tensor([1, 2, 3]).requiresGrad_()
    const f = (a: Tensor): Tensor => a.pow(2)
    expect((functional.jacobian(f, leaf) as Tensor).requiresGrad).toBe(false)
    const recorded = functional.jacobian(f, leaf, { createGraph: true }) as Tensor
    recorded.sum().backward()
    expect(values(leaf.grad)).toEqual([2, 2, 2])
  })
})

describe('checkpoint', () => {
  test('computes again in backward, with the same random numbers, and reaches parameters', () => {
    const layer = new nn.Linear(3, 3)
    const input = torch.randn([2, 3]).requiresGrad_()
    let calls = 0
    const block = (a: Tensor): Tensor => {
      calls++
      return torch.nn.functional.dropout(layer(a).tanh(), 0.5)
    }
    torch.manualSeed(1)
    const plain = block(input)
    plain.square().sum().backward()
    const expected = [values(plain), values(input.grad), values(layer.weight.grad), values(layer.bias?.grad)]
    input.grad = null
    layer.zeroGrad()
    calls = 0
    torch.manualSeed(1)
    const out = checkpoint(block, input)
    expect(calls).toBe(1)
    torch.rand([7])
    out.square().sum().backward()
    expect(calls).toBe(2)
    expect([values(out), values(input.grad), values(layer.weight.grad), values(layer.bias?.grad)]).toEqual(expected)
  })

  test('passes values on without recording', () => {
    expect(checkpoint((a: Tensor, k: number) => a.mul(k), x, 2).toArray()).toEqual([2, 4, 6])
  })
})

/** A function whose backward is wrong. */
class Wrong extends Function {
  static override forward(_ctx: FunctionContext, a: Tensor): Tensor {
    return a.square()
  }
  static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
    return g
  }
}

describe('gradcheck', () => {
  const input = torch.tensor([0.3, -0.7], { dtype: 'float64', requiresGrad: true })

  test('accepts right derivatives, first and second, and finds wrong ones', () => {
    expect(gradcheck((a) => [a.sin(), a.mul(2)], [input])).toBe(true)
    expect(gradgradcheck((a) => a.sin().mul(a), [input])).toBe(true)
    expect(() => gradcheck((a) => Wrong.apply(a), [input])).toThrow(
      /gradcheck: the gradient of output 0 for input 0 \(shape \[2\]\) is wrong at element 0/,
    )
    expect(gradcheck((a) => Wrong.apply(a), [input], { raiseException: false })).toBe(false)
  })

  test('wants float64 inputs that require grad', () => {
    expect(() => gradcheck((a) => a, [torch.ones([2])])).toThrow('no input requires grad')
    expect(() => gradcheck((a) => a, [torch.ones([2]).requiresGrad_()])).toThrow(
      'inputs must be float64 (or complex128), in which differences are exact enough, got float32',
    )
  })
})

describe('anomaly mode', () => {
  test('names the line of the forward pass where NaN comes from', () => {
    const leaf = torch.tensor([0]).requiresGrad_()
    const run = (): void => leaf.sqrt().mul(0).sum().backward()
    expect(() => detectAnomaly(run)).toThrow(
      /Function 'SqrtBackward0' returned nan values in its 0th output\. The forward call was:\n[^]*derivatives\.test\.ts/,
    )
    leaf.grad = null
    expect(run).not.toThrow()
  })

  test('names the line of an error in backward', () => {
    const leaf = torch.tensor([1]).requiresGrad_()
    expect(() =>
      detectAnomaly(() => {
        const y = leaf.mul(2)
        const z = y.mul(y)
        torch.noGrad(() => y.add_(1))
        z.sum().backward()
      }),
    ).toThrow(/backward of MulBackward0 failed: [^]*modified in place[^]*derivatives\.test\.ts/)
  })
})

test.each([
  [() => grad((a: Tensor) => a)(x), 'grad: fn must return a tensor of one element, got shape [3].'],
  [() => grad(cube, { argnums: 1 })(x), "grad: option 'argnums' must name arguments by position, got 1 for 1 argument(s)."],
  [() => grad(cube)(torch.tensor([1, 2], { dtype: 'int64' })), 'only floating-point and complex tensors have derivatives, got int64'],
  [() => grad(cube)(3 as never), 'grad: the argument must be a Tensor, or arrays and objects of tensors, got 3.'],
  [() => grad(cube, { hasAux: true })(x), 'with hasAux, fn must return [result, others]'],
  [() => jvp(cube, [x], [torch.ones([2])]), 'jvp: the tangents must have the structure and shapes [3], got [2].'],
  [() => jvp(cube, x as never, x as never), 'jvp: primals and tangents must be arrays'],
  [() => vjp((a: Tensor) => a, x)[1](torch.ones([2])), 'vjp: the gradient must have the structure and shapes [3], got [2].'],
])('a wrong argument is an error that says what is right: case %#', (run, message) => expect(run).toThrow(message))

describe('results require grad only if an argument, or what fn reads, does', () => {
  const leaves = (value: unknown): readonly Tensor[] => (Array.isArray(value) ? value.flatMap(leaves) : [value as Tensor])
  const flags = (value: unknown): readonly boolean[] => leaves(value).map((t) => t.requiresGrad)
  const square = (a: Tensor): Tensor => a.pow(3)
  const withOther = (a: Tensor): readonly [Tensor, Tensor] => [a.pow(3), a.mul(2)]

  test('jacrev, jacfwd and hessian, with others passed on', () => {
    expect(flags(jacrev(square)(x))).toEqual([false])
    expect(flags(jacfwd(square)(x))).toEqual([false])
    expect(flags(hessian(cube)(x))).toEqual([false])
    expect(flags(jacrev(withOther, { hasAux: true })(x))).toEqual([false, false])
    expect(flags(jacfwd(withOther, { hasAux: true })(x))).toEqual([false, false])
  })

  test('vjp, jvp, linearize and grad', () => {
    const [y, pullback] = vjp(square, x)
    expect(flags([y, pullback(torch.onesLike(y))])).toEqual([false, false])
    expect(flags(jvp(square, [x], [torch.onesLike(x)]))).toEqual([false, false])
    const [z, pushforward] = linearize(square, x)
    expect(flags([z, pushforward(torch.onesLike(x))])).toEqual([false, false])
    expect(flags(grad(cube)(x))).toEqual([false])
  })

  test('the tape stays for arguments and closures that require grad', () => {
    const w = torch.tensor([1, 2, 3], { requiresGrad: true })
    for (const jacobian of [
      jacrev((a: Tensor) => a.pow(3))(w),
      jacfwd((a: Tensor) => a.pow(3))(w),
      jacrev((a: Tensor) => a.mul(w).mul(w).mul(w))(x.sign()),
      jacfwd((a: Tensor) => a.mul(w).mul(w).mul(w))(x.sign()),
    ]) {
      expect(flags(jacobian)).toEqual([true])
      w.grad = null
      ;(jacobian as Tensor).sum().backward()
      // Of 3 w² in the first two, of w³ in the others.
      expect([
        [6, 12, 18],
        [3, 12, 27],
      ]).toContainEqual(values(w.grad))
    }
  })
})
