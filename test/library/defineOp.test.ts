// torch.library.defineOp: operators in the loop IR, which compilers fuse. Expected values come from JavaScript's Math.
import { describe, expect, expectTypeOf, it, test } from 'vitest'
import { compile, fx, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { call, constant } from 'tensorfx/kernels'
import { opByName } from 'tensorfx/ops'
import { opcheck } from 'tensorfx/library'

const { defineOp } = torch.library
const { grad } = torch.autograd

const leaky = defineOp('definetest::my_leaky', {
  schema: '(Tensor x, Scalar slope=0.1) -> Tensor',
  pointwise: { promotion: 'promote', compute: (x, slope) => call('max', x, call('mul', x, slope)) },
  backward: ({ inputs: { x, slope } }, g) => ({ x: torch.where(x.gt(0), g, g.mul(slope)) }),
})

const largest = defineOp('definetest::sum_of_squares', {
  schema: '(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  reduction: { combine: 'add', dtype: (dtype) => dtype, map: (x) => call('mul', x, x) },
})

describe('a pointwise operator', () => {
  it('computes, by name and by position', () => {
    const x = torch.tensor([-2, 4], { dtype: 'float64' })
    expect(leaky(x).toArray()).toEqual([-0.2, 4])
    expect(leaky(x, 0.5).toArray()).toEqual([-1, 4])
    expect(leaky(x, { slope: 0.25 }).toArray()).toEqual([-0.5, 4])
    expect(torch.ops['definetest']?.['myLeaky']).toBe(leaky)
    expect(opByName('torch.ops.definetest.my_leaky')).toBe(leaky.op)
    expectTypeOf<Parameters<typeof leaky>>().toEqualTypeOf<[Tensor, { readonly slope?: number }?] | [Tensor, number, { readonly slope?: number }?]>()
  })

  it('is fused with its neighbours, forward and backward', () => {
    const x = torch.tensor([-2, 4], { dtype: 'float64' }).requiresGrad_()
    const compiled = compile((a: Tensor) => leaky(a.mul(2), 0.5).add(1))
    const result = compiled(x)
    expect(result.toArray()).toEqual([-1, 9])
    expect(compiled.kernels().map((kernel) => /^kernel (\w+)/.exec(kernel.text)?.[1])).toContain('fused_mul_my_leaky_add')
    expect(compiled.kernels().some((kernel) => kernel.kind === 'extern')).toBe(false)
    expect(grad(result.sum(), [x])[0]?.toArray()).toEqual([1, 2])
  })

  it('is recorded by symbolicTrace and makeFx', () => {
    const program = (a: Tensor): Tensor => leaky(a, 0.5)
    for (const gm of [fx.symbolicTrace(program), makeFx(program)(torch.ones([2]))]) {
      expect(gm.code).toMatch(/torch\.ops\.definetest\.myLeaky\(\w+, 0\.5\)/)
      expect(gm.call(torch.tensor([-2, 4])).toArray()).toEqual([-1, 4])
    }
  })

  it('passes opcheck', () => {
    const x = torch.tensor([-2, 4, 1.5], { dtype: 'float64' }).requiresGrad_()
    expect(new Set(Object.values(opcheck(leaky, [[x], [x, 0.5]])))).toEqual(new Set(['SUCCESS']))
  })
})

describe('other rules', () => {
  it('a reduction', () => {
    const x = torch.tensor([
      [1, 2],
      [3, 4],
    ])
    expect([largest(x).item(), largest(x, [1]).toArray(), largest(x, { dim: [0], keepdim: true }).toArray()]).toEqual([30, [5, 25], [[10, 20]]])
    expect(compile((a: Tensor) => largest(a.add(1), [1]).mul(2))(x).toArray()).toEqual([26, 82])
  })

  it('a kernel with meta, and a decomposition', () => {
    const halves = defineOp('definetest::halves', {
      schema: '(Tensor x) -> (Tensor, Tensor)',
      meta: (x) => [
        { shape: x.shape, dtype: x.dtype },
        { shape: [1], dtype: x.dtype },
      ],
      kernel: (x) => [x.mul(0.5), torch.ones([1], { dtype: x.dtype })],
    })
    const twice = defineOp('definetest::twice', { schema: '(Tensor x) -> Tensor', decompose: (x) => x.mul(2) })
    const compiled = compile((a: Tensor) => {
      const [half, one] = halves(twice(a))
      return half.add(one)
    })
    expect(compiled(torch.tensor([3, 5])).toArray()).toEqual([4, 6])
    expect(
      compiled
        .kernels()
        .filter((kernel) => kernel.kind === 'extern')
        .map((kernel) => kernel.text),
    ).toEqual(['torch.ops.definetest.halves'])
  })
})

test.each([
  [{ schema: '(Tensor x) -> Tensor' }, "'definetest::wrong' does not say how it is computed; give it pointwise, reduction, kernel, decompose."],
  [{ schema: '(Tensor x) -> Tensor', kernel: (x: Tensor) => x }, "'definetest::wrong' has a kernel but no meta"],
  [
    { schema: '(Tensor(a!) x) -> ()', kernel: () => [] },
    "'definetest::wrong' writes to an argument (wrong(Tensor(a!) x) -> ()); use torch.library.customOp",
  ],
  [
    { schema: '(Tensor x) -> Tensor', derivative: () => [] },
    "unknown option 'derivative' of 'definetest::wrong'; known are schema, tags, meta, pointwise,",
  ],
])('the options %j are an error', (options, message) => {
  expect(() => Reflect.apply(defineOp, null, ['definetest::wrong', options])).toThrow(message)
  expect(torch.ops['definetest']?.['wrong']).toBeUndefined()
})

test('a constant of the loop IR', () => {
  const shifted = defineOp('definetest::shifted', {
    schema: '(Tensor x) -> Tensor',
    pointwise: { promotion: 'promote', compute: (x) => call('add', x, constant(x.dtype, 3)) },
  })
  expect(shifted(torch.tensor([1])).toArray()).toEqual([4])
})
