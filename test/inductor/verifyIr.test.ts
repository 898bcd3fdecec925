// The specification of inductor's IR: each rule, on a program that breaks it.
import { describe, expect, it } from 'vitest'
import { constant } from 'tensorfx/kernels'
import { InternalError } from '../../src/errors/index.ts'
import { groupOf } from '../../src/inductor/groups.ts'
import type { Access, Buffer, ExternNode, IrGraph, IrNode, PointwiseNode, ReductionNode, TemplateNode } from '../../src/inductor/ir.ts'
import { withoutDeadNodes } from '../../src/inductor/ir.ts'
import { verifyGroups, verifyIr } from '../../src/inductor/verifyIr.ts'
import { cumsum, opOf } from '../../src/ops/index.ts'

const buffer = (name: string, shape: readonly number[], input = -1): Buffer => ({
  name,
  shape,
  dtype: 'float32',
  numel: shape.reduce((a, b) => a * b, 1),
  input,
  producer: null,
})

const pointwise = (out: Buffer, reads: readonly Access[], iter: readonly number[] = out.shape): PointwiseNode => ({
  kind: 'pointwise',
  origin: out.name,
  op: 'neg',
  out,
  iter,
  reads,
  scalars: [],
  compute: () => constant('float32', 0),
  usesIndices: false,
  expensive: false,
})

const reduction = (out: Buffer, read: Access, iter: readonly number[], reduced: readonly boolean[]): ReductionNode => ({
  kind: 'reduction',
  origin: out.name,
  op: 'sum',
  out,
  iter,
  reduced,
  reads: [read],
  dtype: 'float32',
  combine: 'add',
  map: (x) => x,
  finish: (acc) => acc,
})

/** A program that returns the last node's result; each node is its results' producer. */
function programOf(inputs: readonly Buffer[], nodes: readonly IrNode[], returned: Access & { shape: readonly number[] }): IrGraph {
  for (const node of nodes) for (const out of node.kind === 'extern' ? node.outs : [node.out]) out.producer = node
  return { inputs, nodes, outputs: [{ kind: 'view', view: { ...returned, dtype: 'float32' } }], rewritten: [], draws: 0 }
}

const x = buffer('in0', [2, 3], 0)
const whole = (of: Buffer): Access & { shape: readonly number[] } => ({
  buffer: of,
  shape: of.shape,
  strides: of.shape.map((_, i) => of.shape.slice(i + 1).reduce((a, b) => a * b, 1)),
  offset: 0,
})

const breaks = (graph: IrGraph, rule: string | RegExp): void => {
  expect(() => verifyIr(graph)).toThrow(InternalError)
  expect(() => verifyIr(graph)).toThrow(rule)
}

describe('a program', () => {
  const a = (): Buffer => buffer('a', [2, 3])
  const b = (): Buffer => buffer('b', [2, 3])

  it('that keeps the rules passes', () => {
    const [one, two] = [a(), b()]
    const sum = buffer('sum', [3])
    const nodes = [pointwise(one, [whole(x)]), pointwise(two, [whole(one)]), reduction(sum, whole(two), [2, 3], [true, false])]
    expect(() => verifyIr(programOf([x], nodes, whole(sum)))).not.toThrow()
    expect(() =>
      verifyIr({
        inputs: [null],
        nodes: [],
        rewritten: [],
        draws: 0,
        outputs: [
          { kind: 'value', value: 1 },
          { kind: 'scalarInput', input: { placeholder: 0 } },
        ],
      }),
    ).not.toThrow()
  })

  it('reads only what is there', () => {
    const [one, two] = [a(), b()]
    breaks(
      programOf([x], [pointwise(one, [whole(two)]), pointwise(two, [whole(x)])], whole(two)),
      /node a .*it reads b, which is neither an input nor computed earlier/,
    )
    breaks(programOf([], [pointwise(two, [whole(x)])], whole(two)), 'it reads in0')
    breaks(programOf([x], [], whole(a())), 'output 0: a is neither an input nor computed')
  })

  it('writes each buffer once, and the buffer knows who does', () => {
    const one = a()
    breaks(programOf([x], [pointwise(one, [whole(x)]), pointwise(one, [whole(x)])], whole(one)), 'a has another producer')
    const graph = programOf([x], [pointwise(x, [])], whole(x))
    breaks(graph, 'it writes in0, which already exists')
    x.producer = null
    const wrong = { ...a(), numel: 7 }
    breaks(programOf([x], [pointwise(wrong, [whole(x)])], whole(wrong)), 'a of shape [2, 3] claims to have 7 elements')
  })

  it('computes as many values as its results have', () => {
    const one = a()
    breaks(programOf([x], [pointwise(one, [whole(x)], [3])], whole(one)), 'an access to in0 has 2 strides over 1 dimensions')
    breaks(programOf([x], [pointwise(one, [{ ...whole(x), strides: [1] }], [3])], whole(one)), 'it computes 3 values for 6 elements')
    const sum = buffer('sum', [2])
    breaks(programOf([x], [reduction(sum, whole(x), [2, 3], [true, false])], whole(sum)), 'it computes 3 values for 2 elements')
    breaks(programOf([x], [reduction(sum, whole(x), [2, 3], [false])], whole(sum)), 'it has 2 dimensions, but says whether they are reduced for 1')
    const template: TemplateNode = {
      kind: 'template',
      origin: 'a',
      op: 'mm',
      out: one,
      iter: [2, 4],
      depth: 1,
      reads: [],
      template: 'mine',
      fuses: true,
      sum: null,
      emit: () => {
        throw new Error('unused')
      },
    }
    breaks(programOf([x], [template], whole(one)), /template mine over \[2, 4\]: its loops run 8 times for 6 elements/)
  })

  it('views a buffer as what it is', () => {
    const [one, half] = [a(), { ...b(), dtype: 'float16' as const }]
    breaks(
      programOf([x], [pointwise(one, [whole(x)]), pointwise(half, [whole(one)])], whole(half)),
      'output 0: it views b, which is float16, as float32',
    )
    const view = { ...whole(half), dtype: 'int64' as const }
    const out = buffer('out', [2, 3])
    const def = opOf(cumsum)
    if (def === undefined) throw new Error('torch.cumsum is an operator')
    const extern: ExternNode = {
      kind: 'extern',
      reason: '',
      origin: 'out',
      op: 'cumsum',
      def: def,
      args: [{ kind: 'view', view }],
      outs: [out],
      reads: [view],
    }
    breaks(programOf([x], [pointwise(half, [whole(x)]), extern], whole(out)), /node out .*it views b, which is float16, as int64/)
  })

  it('accumulates half precisions in float32', () => {
    const sum = buffer('sum', [3])
    const over = (dtype: ReductionNode['dtype']): IrGraph =>
      programOf([x], [{ ...reduction(sum, whole(x), [2, 3], [true, false]), dtype }], whole(sum))
    breaks(over('float16'), 'it accumulates in float16; accumulate in float32 and cast the result')
    breaks(over('bfloat16'), 'it accumulates in bfloat16; accumulate in float32')
    for (const dtype of ['int8', 'int64', 'float32', 'float64'] as const) expect(() => verifyIr(over(dtype))).not.toThrow()
  })

  it('stays inside the buffers that it computes', () => {
    const [one, two] = [a(), b()]
    const reading = (access: Partial<Access>): IrGraph =>
      programOf([x], [pointwise(one, [whole(x)]), pointwise(two, [{ ...whole(one), ...access }])], whole(two))
    expect(() => verifyIr(reading({ strides: [-3, 1], offset: 3 }))).not.toThrow()
    breaks(reading({ offset: 1 }), 'it accesses elements 1 to 6 of a, which has 6')
    breaks(reading({ strides: [-3, 1] }), 'it accesses elements -3 to 2 of a')
    breaks(programOf([x], [pointwise(one, [whole(x)])], { ...whole(one), offset: 2 }), 'output 0: it accesses elements 2 to 7 of a')
    // An input may be a window of a larger storage.
    expect(() => verifyIr(programOf([x], [pointwise(one, [{ ...whole(x), offset: 40 }])], whole(one)))).not.toThrow()
  })

  it('looks into the arguments of eager kernels', () => {
    const [one, two] = [a(), b()]
    const def = opOf(cumsum)
    if (def === undefined) throw new Error('cumsum is an operator')
    const view = { ...whole(one), dtype: 'float32' as const, offset: 3 }
    const node: ExternNode = {
      kind: 'extern',
      reason: '',
      origin: 'b',
      op: 'cumsum',
      def,
      args: [{ kind: 'list', items: [{ kind: 'view', view }] }],
      outs: [two],
      reads: [view],
    }
    breaks(programOf([x], [pointwise(one, [whole(x)]), node], whole(two)), 'it accesses elements 3 to 8 of a')
  })
})

describe('groups', () => {
  const [one, two] = [buffer('a', [2, 3]), buffer('b', [2, 3])]
  const first = pointwise(one, [whole(x)])
  const second = pointwise(two, [whole(one)])
  const graph = programOf([x], [first, second], whole(two))
  const [g1, g2] = [groupOf(first), groupOf(second)]
  const breaksGroups = (groups: Parameters<typeof verifyGroups>[1], rule: string): void => {
    expect(() => verifyGroups(graph, groups)).toThrow(rule)
  }

  it('have each node once, after what it reads', () => {
    expect(() => verifyGroups(graph, [g1, g2])).not.toThrow()
    breaksGroups([g2, g1], 'its group runs before a is computed')
    breaksGroups([g1, g2, g2], 'it is in two groups')
    breaksGroups([g1], 'node b float32[2, 3] = neg: pointwise over [2, 3]; reads a(3, 1): it is in no group')
    const stranger = pointwise(buffer('c', [1]), [])
    breaksGroups([g1, g2, groupOf(stranger)], 'it has nodes that are not in the program')
  })
})

describe('dead nodes', () => {
  it('are those that no output needs; what writes to its inputs stays', () => {
    const [used, dead, also] = [buffer('a', [2, 3]), buffer('b', [2, 3]), buffer('c', [2, 3])]
    const nodes = [pointwise(used, [whole(x)]), pointwise(dead, [whole(used)]), pointwise(also, [whole(used)])]
    const graph = programOf([x], nodes, whole(also))
    expect(withoutDeadNodes(graph).nodes).toEqual([nodes[0], nodes[2]])
    expect(withoutDeadNodes({ ...graph, outputs: [] }).nodes).toEqual([])
    const def = opOf(cumsum)
    if (def === undefined) throw new Error('cumsum is an operator')
    const extern = (tags: ReadonlySet<'mutates'>): ExternNode => ({
      kind: 'extern',
      reason: '',
      origin: 'd',
      op: 'x',
      def: { ...def, tags },
      args: [],
      outs: [],
      reads: [],
    })
    const [writes, reads] = [extern(new Set(['mutates'])), extern(new Set())]
    expect(withoutDeadNodes({ ...graph, nodes: [...nodes, writes, reads] }).nodes).toEqual([nodes[0], nodes[2], writes])
  })
})
