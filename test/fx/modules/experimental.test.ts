// mergeMatmul and the tracking of dynamism; PyTorch's experimental.merge_matmul, experimental._dynamism and fx/test_dynamism.py.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { operator, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { Linear, Module, Parameter } from 'tensorfx/nn'
import { ShapeProp } from 'tensorfx/fx/passes'
import {
  cloneAndConvertToMeta,
  mergeMatmul,
  moduleToNestedDict,
  normalizeSourceName,
  splitResultTensors,
  trackDynamismAcrossExamples,
} from 'tensorfx/fx/experimental'
import { detInput } from '../../helpers/deterministic.ts'
import { checkOutput } from '../samples/harness.ts'
import type { GoldenOutput } from '../samples/golden.ts'
import { X, Y, describeGolden, expectText, resultOf } from './golden.ts'

interface Merged {
  readonly before: string
  readonly after: string
  readonly matmuls: [number, number]
  readonly value: unknown
}

const traceOf = (model: Module): GraphModule => symbolicTrace(model) as GraphModule

const count = (gm: GraphModule): number => gm.graph.findNodes({ op: 'call_function', target: torch.matmul }).length

/** The outputs are as in a golden, which has lists for tuples. */
function checkAll(value: unknown, golden: unknown): void {
  if (!Array.isArray(golden)) return checkOutput(value, golden as GoldenOutput)
  expect((value as unknown[]).length).toBe(golden.length)
  for (const [i, item] of golden.entries()) checkAll((value as unknown[])[i], item)
}

/** Merges and compares with the golden. */
function agrees(model: Module, inputs: readonly Tensor[], golden: Merged): void {
  const before = traceOf(model)
  expectText(before, golden.before)
  const after = mergeMatmul(model)
  expectText(after, golden.after)
  expect([count(before), count(after)]).toEqual(golden.matmuls)
  checkAll(after.call(...inputs), golden.value)
}

/** A model that reads right operands, r1 and r2, or rhs if there is one, where it uses them. */
class Operands extends Module {
  readonly count: number

  constructor(...shapes: readonly (readonly number[])[]) {
    super()
    this.count = shapes.length
    for (const [i, shape] of shapes.entries()) this.registerParameter(this.nameOf(i), new Parameter(detInput(shape, 3 + i)))
  }

  nameOf(i: number): string {
    return this.count === 1 ? 'rhs' : `r${i + 1}`
  }

  /** The product with an operand. */
  times(x: Tensor, i = 0): Tensor {
    return torch.matmul(x, this.operand(i))
  }

  operand(i: number): Tensor {
    return Reflect.get(this, this.nameOf(i)) as Tensor
  }

  override forward(x: Tensor, y: Tensor): unknown {
    return Array.from({ length: this.count }, (_, i) => [this.times(x, i), this.times(y, i)]).flat()
  }
}

const { matmul } = torch
const [x2, y5] = [detInput([2, 3], 1), detInput([5, 3], 2)]

class Crossed extends Operands {
  override forward(x: Tensor, y: Tensor): unknown {
    return [this.times(x, 0), this.times(y, 1)]
  }
}

class Dependent extends Operands {
  override forward(x: Tensor): unknown {
    const a = this.times(x)
    return operator.add(a, this.times(torch.relu(a)))
  }
}

class Three extends Operands {
  override forward(x: Tensor, y: Tensor, z?: Tensor): unknown {
    const a = this.times(torch.sin(x))
    const b = torch.relu(this.times(y))
    const c = this.times(operator.add(z, 1) as Tensor)
    return operator.add(operator.add(a.sum(), b.sum()), c.sum())
  }
}

class Unseen extends Operands {
  override forward(x: Tensor, y: Tensor): unknown {
    return [operator.matmul(x, this.operand(0)), y.matmul(this.operand(0))]
  }
}

class FarAway extends Operands {
  override forward(x: Tensor, y: Tensor): unknown {
    const a = this.times(x)
    let z = y
    for (let i = 0; i < 7; i++) z = torch.relu(z)
    return [a, this.times(z)]
  }
}

describeGolden('merge_matmul', {
  two_share_right_operand: (golden) => {
    agrees(new Operands([3, 4]), [x2, y5], resultOf(golden))
  },
  different_right_operands: (golden) => {
    agrees(new Crossed([3, 4], [3, 4]), [x2, y5], resultOf(golden))
  },
  dependent_are_not_merged: (golden) => {
    agrees(new Dependent([3, 3]), [x2], resultOf(golden))
  },
  three_with_ops_between: (golden) => {
    agrees(new Three([3, 4]), [x2, y5, detInput([1, 3], 5)], resultOf(golden))
  },
  placeholder_on_the_right: (golden) => {
    class A extends Module {
      override forward(x: Tensor, y: Tensor, w: Tensor): Tensor[] {
        return [matmul(x, w), matmul(y, w)]
      }
    }
    agrees(new A(), [x2, y5, detInput([3, 2], 4)], resultOf(golden))
  },
  operator_form_is_not_seen: (golden) => {
    agrees(new Unseen([3, 4]), [x2, y5], resultOf(golden))
  },
  'search_is_conservative (difference: any-depth)': (golden) => {
    const { before, matmuls, value } = resultOf<Merged>(golden)
    const model = new FarAway([3, 3])
    expectText(traceOf(model), before)
    const after = mergeMatmul(model)
    expect([matmuls[1], count(after)]).toEqual([2, 1])
    checkAll(after.call(x2, detInput([2, 3], 2)), value)
  },
  split_results: (golden) => {
    const parts = splitResultTensors(torch.zeros([7, 3]), [torch.zeros([2, 1]), torch.zeros([5, 9])]) as Tensor[]
    expect(parts.map((part) => part.shape)).toEqual(golden.result)
  },
})

/** The merged model computes what the model does. */
function keepsResults(model: Module): GraphModule {
  const merged = mergeMatmul(model)
  merged.graph.lint()
  const want = traceOf(model).call(x2, y5) as Tensor[]
  const got = merged.call(x2, y5) as Tensor[]
  expect(got.length).toBe(want.length)
  for (const [i, value] of got.entries()) expect(torch.allclose(value, want[i] as Tensor)).toBe(true)
  return merged
}

describe('mergeMatmul', () => {
  it('test_merge_matmuls: every group is merged (difference: any-depth)', () => {
    expect(count(keepsResults(new Operands([3, 4], [3, 2])))).toBe(2)
  })

  it('groups that need each other’s results are not both merged', () => {
    class Entangled extends Operands {
      override forward(x: Tensor, y: Tensor): unknown {
        const [a1, b2] = [this.times(x, 0), this.times(y, 1)]
        return [this.times(b2, 0), this.times(a1, 1)]
      }
    }
    expect(count(keepsResults(new Entangled([3, 3], [3, 3])))).toBe(3)
  })

  it('left operands that are known not to be matrices stay, and a merged graph can be traced again', () => {
    const vectors = traceOf(new Operands([3, 4]))
    new ShapeProp(vectors).propagate(detInput([3], 1), detInput([3], 2))
    expect(count(mergeMatmul(vectors))).toBe(2)
    const again = symbolicTrace(mergeMatmul(new Operands([3, 4])))
    expect(again.graph.findNodes({ op: 'call_function', target: splitResultTensors }).length).toBe(1)
    expect(() => splitResultTensors(3, [])).toThrow('splitResultTensors: result must be a tensor, got number.')
  })
})

class WithBuffer extends Module {
  l: Linear = new Linear(2, 1)
  k = 3
  override name = 'n'
  flag = true
  constructor() {
    super()
    this.registerBuffer('buf', torch.zeros([2]))
  }
  override forward(): never {
    throw new Error('only its attributes are used')
  }
}

class Sized extends Module {
  n: number
  l: Linear
  constructor(n: number) {
    super()
    this.n = n
    this.l = new Linear(n, 1)
  }
  override forward(): never {
    throw new Error('only its attributes are used')
  }
}

/** Paths of PyTorch with the names that attributes have here. */
const ourPath = (path: string): string => path.replace('in_features', 'inFeatures').replace('out_features', 'outFeatures')

describeGolden('_dynamism', {
  source_names: (golden) => {
    expect(["L['x']", 'L.self.weight', "L['self'].a.b_1[0].c", 'x'].map(normalizeSourceName)).toEqual(golden.result)
  },
  varying_dims: (golden) => {
    const z = (...shape: number[]): Tensor => torch.zeros(shape)
    const examples = [
      { x: z(2, 3), n: 1, l: [z(4)] },
      { x: z(5, 3), n: 1, l: [z(4)] },
      { x: z(7, 3), n: 2, l: [z(6)] },
    ]
    expect(trackDynamismAcrossExamples(examples)).toEqual(golden.result)
  },
  one_example: (golden) => {
    expect(trackDynamismAcrossExamples([{ x: torch.zeros([2, 3]), s: 'ignored', b: true, f: 1.5 }])).toEqual(golden.result)
  },
  'module_as_dict (difference: camel-case)': (golden) => {
    const shape = (v: unknown): unknown => {
      if (typeof v !== 'object' || v === null) return v
      return 'shape' in v ? v.shape : Object.fromEntries(Object.entries(v).map(([key, item]) => [key, shape(item)]))
    }
    const theirs = JSON.parse(ourPath(ourPath(JSON.stringify(golden.result)))) as unknown
    expect(shape(moduleToNestedDict(new WithBuffer()))).toEqual(theirs)
  },
  module_self_is_tracked: (golden) => {
    const { self } = resultOf<{ self: Record<string, boolean[]> }>(golden)
    const theirs = Object.fromEntries(Object.entries(self).map(([path, flags]) => [ourPath(path), flags]))
    expect(trackDynamismAcrossExamples([{ self: new Sized(2) }, { self: new Sized(3) }])).toEqual({ self: theirs })
  },
  'meta_copies (difference: no-meta-device)': (golden) => {
    const [, shape, one, , text] = resultOf<[string, number[], number, string, string]>(golden)
    const copy = cloneAndConvertToMeta({ a: X, b: [1, Y], c: 's' })
    const described = { shape, dtype: 'float32', strides: [4, 1], requiresGrad: false }
    expect(copy).toEqual({ a: described, b: [one, described], c: text })
  },
  nothing_given: (golden) => {
    expect(trackDynamismAcrossExamples([])).toEqual(golden.result)
  },
})

describe('fx/test_dynamism.py', () => {
  const one = (shape: readonly number[]): Tensor => torch.ones(shape)

  it('test_dynamic_tensor: the dimensions that differ', () => {
    const examples = [
      [3, 2],
      [3, 2],
      [4, 2],
    ].map((shape) => ({ x: one(shape) }))
    expect(trackDynamismAcrossExamples(examples)).toEqual({ x: { "L['x']": [true, false] } })
  })

  it('test_dynamic_tensor_deeply_nested: the paths of tensors in objects and arrays', () => {
    const examples = [3, 5].map((n) => ({ x: { a: { b: [{ c: one([1, n]) }, one([n])] } } }))
    expect(trackDynamismAcrossExamples(examples)).toEqual({ x: { "L['x']['a']['b'][0]['c']": [false, true], "L['x']['a']['b'][1]": [true] } })
  })

  it('test_mixed_dynamism: numbers and tensors, and ranks that grow', () => {
    const examples = [
      { a: one([1]), b: 2, c: 'text', d: 3 },
      { a: one([1, 4]), b: 4, c: 'other', d: 3 },
      { a: one([2, 5]), b: 2, c: 'text', d: 3 },
    ]
    expect(trackDynamismAcrossExamples(examples)).toEqual({ a: { "L['a']": [true, true] }, b: { "L['b']": [true] }, d: { "L['d']": [false] } })
  })

  it('test_nn_module: sizes of parameters and attributes of modules', () => {
    const found = trackDynamismAcrossExamples([
      { self: new Sized(2), x: one([2]) },
      { self: new Sized(4), x: one([4]) },
    ])
    expect(found['x']).toEqual({ "L['x']": [true] })
    expect(found['self']?.["L['self']['_modules']['l']['_parameters']['weight']"]).toEqual([false, true])
    expect(found['self']?.["L['self']['n']"]).toEqual([true])
    expect(found['self']?.["L['self']['_modules']['l']['outFeatures']"]).toEqual([false])
  })
})
