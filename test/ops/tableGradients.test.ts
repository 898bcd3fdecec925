// Gradients against finite differences for every differentiable operator of the table: inputs are made from the schema, or given here where the schema
// does not say enough. An operator that is in neither list fails the last test.
import { describe, expect, it } from 'vitest'
import { allOps, tensor } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { OpDef } from '../../src/dispatch/index.ts'
import { gradcheck, gradgradcheck, sample } from './gradcheck.ts'

type Args = readonly unknown[]
const x = (): Tensor => sample([2, 3], 1)
const positive = (): Tensor => sample([2, 3], 2, 0.3, 2)
const condition = (): Tensor =>
  tensor([
    [true, false, true],
    [false, true, true],
  ])
const index = (): Tensor => tensor(Int32Array.from([0, 2, 1, 0])).view([2, 2])

/** Arguments of operators whose schema does not say enough; several where an operator has several ways. */
const given: Record<string, readonly Args[]> = {
  'torch.where': [[condition(), x(), sample([3], 5)]],
  'torch.clamp': [
    [x(), -0.5, 0.7],
    [x(), null, 0.2],
  ],
  'torch.add': [
    [x(), sample([3], 5), { alpha: 2.5 }],
    [x(), 3],
  ],
  'torch.sub': [[x(), sample([2, 1], 5), { alpha: 2.5 }]],
  'torch.div': [
    [x(), positive()],
    [x(), sample([], 3, 0.5, 1)],
    [x(), 2],
  ],
  'torch.pow': [
    [positive(), x()],
    [x(), 3],
    [positive(), 0.5],
  ],
  'torch.remainder': [[x(), 0.7]],
  'torch.lerp': [
    [x(), sample([2, 3], 4), 0.3],
    [x(), sample([2, 3], 4), sample([3], 8)],
  ],
  'torch.addcmul': [[x(), sample([3], 4), sample([2, 1], 7), { value: 0.5 }]],
  'torch.addcdiv': [[x(), sample([2, 3], 4), positive(), { value: 0.5 }]],
  'torch.log': [[positive()]],
  'torch.log1p': [[positive()]],
  'torch.sqrt': [[positive()]],
  'torch.rsqrt': [[positive()]],
  'torch.ops.tensorfx.to_copy': [[x(), 'float64']],
  'torch.ops.tensorfx.fill': [[x(), 2]],
  'torch.ops.tensorfx.threshold_backward': [[x(), sample([2, 3], 6), 0]],
  'torch.nn.functional.gelu': [[x()], [x(), { approximate: 'tanh' }]],
  'torch.cat': [[[x(), sample([1, 3], 4)], 0]],
  'torch.sum': [[x()], [x(), [1], true], [x(), [0]]],
  'torch.prod': [[x(), [1]]],
  'torch.mean': [[x()], [x(), [0], true]],
  'torch.amax': [[x(), [1]], [x()]],
  'torch.amin': [[x(), [0], true]],
  'torch.cumsum': [[x(), 1]],
  'torch.softmax': [
    [x(), 1],
    [x(), 0],
  ],
  'torch.log_softmax': [[x(), 1]],
  'torch.topk': [[x(), 2]],
  'torch.Tensor.view': [[x(), [3, 2]]],
  'torch.permute': [[x(), [1, 0]]],
  'torch.transpose': [[x(), 0, 1]],
  'torch.unsqueeze': [[x(), 1]],
  'torch.squeeze': [[sample([2, 1, 3], 3), 1], [sample([2, 1, 3], 3)]],
  'torch.Tensor.expand': [
    [sample([2, 1], 3), [2, 3]],
    [sample([3], 3), [2, 3]],
  ],
  'torch.select': [[x(), 1, 2]],
  'torch.Tensor.slice': [
    [x(), 1, 1],
    [x(), 1, 0, 3, 2],
  ],
  'torch.ops.tensorfx.slice_backward': [[sample([2, 2], 3), [2, 3], 1, 0, 3, 2]],
  'torch.ops.tensorfx.select_backward': [[sample([3], 3), [2, 3], 0, 1]],
  'torch.gather': [[x(), 1, index()]],
  'torch.scatter_add': [[x(), 1, index(), sample([2, 2], 9)]],
}

/** Tested in nnGradients.test.ts. */
const elsewhere =
  /^torch\.(mm|bmm|nn\.functional\.(linear|embedding|avg_pool2d)|ops\.tensorfx\.(native_|convolution|embedding_|nll_|max_pool2d|avg_pool2d))/

function argumentsFor(op: OpDef): readonly Args[] | null {
  const known = given[op.qualname]
  if (known !== undefined) return known
  const required = op.schema.args.filter((a) => !a.hasDefault)
  // Nothing to differentiate: random primitives are functions of numbers.
  if (!op.schema.args.some((a) => a.type.base === 'Tensor')) return []
  if (op.pointwise === null || required.some((a) => a.type.base !== 'Tensor' || a.type.list)) return null
  return [required.map((_, i) => sample([2, 3], 11 + i))]
}

const differentiable = allOps().filter((op) => op.derivative !== null && !elsewhere.test(op.qualname))

/** The call as a function of its floating tensors. */
function asFunction(op: OpDef, args: Args): { fn: (...tensors: Tensor[]) => Tensor | readonly Tensor[]; inputs: Tensor[] } {
  const isInput = (a: unknown): a is Tensor => typeof a === 'object' && a !== null && (a as Tensor).dtype === 'float64'
  const inputs = args.flat().filter(isInput)
  const fn = (...tensors: Tensor[]): Tensor | readonly Tensor[] => {
    let next = 0
    const fill = (a: unknown): unknown => (isInput(a) ? tensors[next++] : Array.isArray(a) ? a.map(fill) : a)
    return op.fn(...args.map(fill)) as Tensor | readonly Tensor[]
  }
  return { fn, inputs }
}

describe('gradients of the operator table agree with finite differences', () => {
  for (const op of differentiable) {
    for (const [i, args] of (argumentsFor(op) ?? []).entries()) {
      it(`${op.qualname}${i === 0 ? '' : ` (${i + 1})`}`, () => {
        const { fn, inputs } = asFunction(op, args)
        gradcheck(fn, inputs, 2e-6)
      })
    }
  }
})

describe('second derivatives agree with finite differences', () => {
  const smooth = [
    'mul',
    'div',
    'pow',
    'exp',
    'log',
    'sqrt',
    'rsqrt',
    'reciprocal',
    'sin',
    'cos',
    'tanh',
    'sigmoid',
    'erf',
    'square',
    'softmax',
    'log_softmax',
    'silu',
  ]
  for (const op of differentiable.filter((o) => smooth.includes(o.name))) {
    it(op.qualname, () => {
      const { fn, inputs } = asFunction(op, (argumentsFor(op) as readonly Args[])[0] as Args)
      gradgradcheck(fn, inputs, 2e-5)
    })
  }
})

describe('the table', () => {
  it('has arguments for every differentiable operator', () => {
    expect(differentiable.filter((op) => argumentsFor(op) === null).map((op) => op.qualname)).toEqual([])
  })
})
