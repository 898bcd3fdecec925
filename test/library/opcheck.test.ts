// opcheck finds each way in which an operator can be wrong, and says which test, which sample and what differed.
import { describe, expect, expectTypeOf, it, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { OpCheckError, customOp, defineOp, opcheck } from 'tensorfx/library'
import type { OpCheckTest } from 'tensorfx/library'

const { tensor } = torch
const doubles = (values: readonly number[]): Tensor => tensor([...values], { dtype: 'float64' })
const leaf = (...values: readonly number[]): Tensor => doubles(values).requiresGrad_()

const schema = '(Tensor x) -> Tensor'
const forward = (x: Tensor): Tensor => x.mul(x)
const fake = (x: Tensor): Tensor => torch.emptyLike(x)

const tests: readonly OpCheckTest[] = [
  'test_schema',
  'test_autograd_registration',
  'test_faketensor',
  'test_gradient',
  'test_tracing',
  'test_aot_dispatch_static',
]

describe('an operator that is right', () => {
  const square = customOp('opcheck::square', { schema, forward, fake, backward: ({ inputs: { x } }, g) => ({ x: g.mul(x).mul(2) }) })

  it('passes all tests, on samples with and without gradients, float32, transposed, empty', () => {
    const transposed = doubles([1, 2, 3, 4, 5, 6]).reshape([2, 3]).t()
    const report = opcheck(square, [[leaf(1, -2)], [tensor([1.5, 2])], [tensor([1.5, 2]).requiresGrad_()], [transposed], [torch.zeros([0, 2])]])
    expect(report).toEqual(Object.fromEntries(tests.map((name) => [name, 'SUCCESS'])))
  })

  it('runs the tests that are asked for', () => {
    expect(opcheck(square, [[leaf(1)]], { testUtils: 'test_schema' })).toEqual({ test_schema: 'SUCCESS' })
    expect(Object.keys(opcheck(square, [[leaf(1)]], { testUtils: ['test_gradient', 'test_faketensor'] }))).toEqual([
      'test_gradient',
      'test_faketensor',
    ])
  })

  it('does not change the samples', () => {
    const out = doubles([1])
    const into = customOp('opcheck::into', {
      schema: '(Tensor(a!) out, Tensor x) -> Tensor',
      forward: (target, x) => {
        target.add_(x)
        return x.mul(3)
      },
      fake: (_, x) => torch.emptyLike(x),
    })
    expect(new Set(Object.values(opcheck(into, [[out, doubles([2])]])))).toEqual(new Set(['SUCCESS']))
    expect(out.toArray()).toEqual([1])
  })

  it('types the samples', () => {
    expectTypeOf(square).parameter(0).toEqualTypeOf<Tensor>()
    // @ts-expect-error the argument is a tensor
    expect(() => opcheck(square, [[1]])).toThrow("argument 'x' must be a Tensor, got 1.")
  })
})

let calls = 0

describe('an operator that is wrong', () => {
  test.each([
    {
      what: 'it writes to an argument that is not declared as written',
      name: 'test_schema',
      op: () => customOp('opcheck::writes', { schema, forward: (x) => x.add_(1).mul(2), fake }),
      sample: doubles([1, 2]),
      why: 'Argument x is not defined as mutable but was mutated',
    },
    {
      what: 'it returns its argument',
      name: 'test_schema',
      op: () => customOp('opcheck::alias', { schema, forward: (x) => x, fake }),
      sample: doubles([1, 2]),
      why: 'The output of this custom operator (1) must not also be an input',
    },
    {
      what: 'its kernel returns its argument',
      name: 'test_schema',
      op: () => defineOp('opcheck::kernel_alias', { schema, meta: (x) => ({ shape: x.shape, dtype: x.dtype }), kernel: (x) => x }),
      sample: doubles([1, 2]),
      why: 'Argument x is not defined to alias output but was aliasing',
    },
    {
      what: 'it has no backward',
      name: 'test_autograd_registration',
      op: () => customOp('opcheck::no_backward', { schema, forward, fake }),
      sample: leaf(1, 2),
      why: 'no autograd formula was registered, but an argument of the sample requires grad',
    },
    {
      what: 'its gradient has another shape',
      name: 'test_autograd_registration',
      op: () => customOp('opcheck::gradient_shape', { schema, forward, fake, backward: () => ({ x: torch.ones([3], { dtype: 'float64' }) }) }),
      sample: leaf(1, 2),
      why: 'ShapeError: ',
    },
    {
      what: 'its backward names another argument',
      name: 'test_autograd_registration',
      op: () => customOp('opcheck::gradient_name', { schema, forward, fake, backward: (_, g) => ({ x: null, y: g }) }),
      sample: leaf(1, 2),
      why: "it returned a gradient for 'y', which is not a tensor argument",
    },
    {
      what: 'its fake function gives another shape',
      name: 'test_faketensor',
      op: () => customOp('opcheck::fake_shape', { schema, forward, fake: () => torch.empty([3], { dtype: 'float64' }) }),
      sample: doubles([1, 2]),
      why: 'Shapes [3] and [2] are not equal: result 0 of the fake function and of forward',
    },
    {
      what: 'its fake function gives another dtype',
      name: 'test_faketensor',
      op: () => customOp('opcheck::fake_dtype', { schema, forward, fake: (x) => torch.empty(x.shape) }),
      sample: doubles([1, 2]),
      why: 'Dtypes float32 and float64 are not equal: result 0 of the fake function and of forward',
    },
    {
      what: 'its kernel returns other strides than its meta says',
      name: 'test_faketensor',
      op: () =>
        defineOp('opcheck::strides', {
          schema,
          meta: () => ({ shape: [2, 3], dtype: 'float64' }),
          kernel: () => torch.ones([3, 2], { dtype: 'float64' }).t(),
        }),
      sample: doubles([1, 2]),
      why: 'Strides [3, 1] and [1, 2] are not equal',
    },
    {
      what: 'its fake function looks at data',
      name: 'test_faketensor',
      op: () => customOp('opcheck::fake_reads', { schema, forward, fake: (x) => torch.empty([Number(x.sum().item())]) }),
      sample: doubles([1, 2]),
      why: 'Error: ',
    },
    {
      what: 'it has no fake function',
      name: 'test_faketensor',
      op: () => customOp('opcheck::no_fake', { schema, forward }),
      sample: doubles([1, 2]),
      why: 'There was no fake impl registered for torch.ops.opcheck.no_fake.',
    },
    {
      what: 'its gradient is wrong by a factor',
      name: 'test_gradient',
      op: () => customOp('opcheck::gradient', { schema, forward, fake, backward: ({ inputs: { x } }, g) => ({ x: g.mul(x) }) }),
      sample: leaf(1, 2),
      why: 'the gradient of tensor 0 is ',
    },
    {
      what: 'it forgets a gradient',
      name: 'test_gradient',
      op: () => customOp('opcheck::forgets', { schema, forward, fake, backward: () => ({}) }),
      sample: leaf(1, 2),
      why: 'the gradient of tensor 0 is 0 at element 0, finite differences give ',
    },
    {
      what: 'it computes something else at each call',
      name: 'test_tracing',
      op: () => customOp('opcheck::state', { schema, forward: (x) => x.add(calls++), fake }),
      sample: doubles([1, 2]),
      why: 'the symbolically traced graph: result 0: element 0 is ',
    },
    {
      what: 'its backward depends on grad mode',
      name: 'test_aot_dispatch_static',
      op: () =>
        customOp('opcheck::compiled', { schema, forward: (x) => x.mul(2), fake, backward: (_, g) => ({ x: g.isFake ? g.mul(3) : g.mul(2) }) }),
      sample: leaf(1, 2),
      why: "compiled with 'aot_eager': gradient 0: element 0 is 3 instead of 2",
    },
  ] as const)('$what', ({ name, op, sample, why }) => {
    const operator = op()
    const failure = ((): unknown => {
      try {
        return Reflect.apply(opcheck, null, [operator, [[sample]]])
      } catch (error) {
        return error
      }
    })()
    if (!(failure instanceof OpCheckError)) throw new Error(`expected an OpCheckError, got ${JSON.stringify(failure)}`)
    expect([failure.test, failure.sample, failure.code]).toEqual([name, 0, 'TFX_OPCHECK'])
    const grads = sample.requiresGrad ? ' that requires grad' : ''
    expect(failure.message).toContain(`opcheck(torch.ops.opcheck.${operator.op.name}, ...): ${name} failed on sample 0 (x: float64[2]${grads}): `)
    expect(failure.message).toContain(why)
  })

  it('is found on the sample on which it is wrong (difference: opcheck-samples); without raiseException the report has the error', () => {
    const sometimes = customOp('opcheck::sometimes', {
      schema: '(Tensor x, int n) -> Tensor',
      forward: (x, n) => x.mul(n),
      fake: (x, n) => (n > 2 ? torch.empty([n]) : torch.emptyLike(x)),
    })
    const report = opcheck(
      sometimes,
      [
        [doubles([1]), 1],
        [doubles([1]), 2],
        [doubles([1]), 3],
      ],
      { raiseException: false },
    )
    const failure = report.test_faketensor
    if (!(failure instanceof OpCheckError)) throw new Error('test_faketensor should fail')
    expect(failure.sample).toBe(2)
    expect(failure.message).toContain('failed on sample 2 (x: float64[1], n: 3): Shapes [3] and [1] are not equal')
    expect(report.test_schema).toBe('SUCCESS')
  })

  it('an error that the operator throws is the cause', () => {
    const error = new RangeError('too large')
    const throws = customOp('opcheck::throws', {
      schema,
      forward: () => {
        throw error
      },
    })
    const report = opcheck(throws, [[doubles([1])]], { raiseException: false, testUtils: 'test_schema' })
    expect(report.test_schema).toMatchObject({ cause: error, message: expect.stringContaining('RangeError: too large') })
  })
})

describe('arguments', () => {
  const square = defineOp('opcheck::plain_square', { schema, decompose: (x) => x.mul(x) })

  test.each([
    [[torch.relu.bind(null), [[1]]], 'opcheck: the first argument must be an operator'],
    [[square, []], 'opcheck: the samples must be a list of lists of arguments'],
    [[square, [doubles([1])]], 'opcheck: the samples must be a list of lists of arguments'],
    [[square, [[doubles([1])]], { testUtils: 'test_shape' }], "opcheck: there is no test 'test_shape' for testUtils; the tests are test_schema,"],
    [
      [square, [[doubles([1])]], { rtoll: 1 }],
      "opcheck: unknown option 'rtoll'; did you mean 'rtol'? Known are testUtils, raiseException, atol, rtol.",
    ],
  ])('that are wrong: %#', (args, message) => {
    expect(() => Reflect.apply(opcheck, null, args)).toThrow(message)
  })

  it('tolerances', () => {
    const drifting = customOp('opcheck::drifting', { schema, forward: (x) => x.add(calls++ * 1e-3), fake })
    expect(opcheck(drifting, [[doubles([1])]], { testUtils: 'test_tracing', atol: 10 })).toEqual({ test_tracing: 'SUCCESS' })
    expect(() => opcheck(drifting, [[doubles([1])]], { testUtils: 'test_tracing' })).toThrow('test_tracing failed on sample 0')
  })
})
