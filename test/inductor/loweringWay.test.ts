// The operator table says of `compile` what the lowering does: both follow one rule.
import { expect, it } from 'vitest'
import { torch } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { operatorRows } from '../../src/cli/operatorTable.ts'
import { lower } from '../../src/inductor/lowering.ts'

const x = torch.rand([1, 2, 4, 4])
const compiled = new Map(operatorRows(() => '').map((row) => [row.torchName, row.compiled]))
const calls: readonly (readonly [name: string, call: (t: typeof x) => unknown, kind: string, says: string])[] = [
  ['torch.relu', (t) => torch.relu(t), 'pointwise', 'fused'],
  ['torch.sum', (t) => t.sum(), 'reduction', 'fused'],
  ['torch.cumsum', (t) => torch.cumsum(t, 0), 'extern', 'eager kernel'],
  ['torch.ops.tensorfx.full', () => torch.full([3], 2), 'pointwise', 'fused'],
  ['torch.ops.tensorfx.range', () => torch.ops.tensorfx.range(5, 0, 2, 'int32'), 'pointwise', 'fused'],
  ['torch.ops.tensorfx.resample', (t) => torch.ops.tensorfx.resample(t, [3], [8], 'linear', [0.5], false, false), 'extern', 'eager kernel'],
  ['torch.ops.tensorfx.block_attention', (t) => torch.ops.tensorfx.blockAttention(t, t, t, null, false, 0.5)[0], 'extern', 'eager kernel'],
]

it.each(calls)('%s', (name, call, kind, says) => {
  const { nodes } = lower(makeFx(call)(x), [{ shape: [...x.shape], dtype: 'float32', strides: [...x.strides] }])
  expect([nodes.map((node) => node.kind), compiled.get(name)]).toEqual([[kind], says])
})
