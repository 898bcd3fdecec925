// The MetaTracer: shapes of everything are known, so that programs may branch on them.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorMode, fakeLike, withMode } from 'tensorfx/dispatch'
import { GraphModule, isProxy, symbolicTrace } from 'tensorfx/fx'
import { MetaTracer } from 'tensorfx/fx/experimental'
import type { Proxied } from 'tensorfx/fx'
import * as nn from 'tensorfx/nn'
import { detInit, detInput } from '../helpers/deterministic.ts'

const { ones, tensor } = torch

const values = (t: unknown): number[] => Array.from((t as Tensor).contiguous().toTypedArray(), Number)
const run = (m: GraphModule, ...args: readonly unknown[]): unknown => (m.forward as (...a: readonly unknown[]) => unknown)(...args)
const steps = (m: GraphModule): string[] => [...m.graph.nodes].map((n) => n.name)

class Model extends nn.Module {
  readonly fc = new nn.Linear(4, 16)
  readonly norm = new nn.LayerNorm(16)
  override forward(x: Tensor): Tensor {
    const h = this.fc.call(x)
    const y = this.norm.call(h.add(torch.arange(h.shape.at(-1) as number)))
    return (y.shape[0] as number) < 30 ? torch.relu(y) : torch.sigmoid(y)
  }
}

describe('MetaTracer', () => {
  it.each([15, 35])('test_meta_tracer: conditions on sizes take the branch of the given shape (%i rows)', (rows) => {
    const model = detInit(new Model())
    const x = detInput([rows, 4], 1)
    const gm = symbolicTrace(model, { tracer: new MetaTracer({ metaArgs: { x } }) })
    expect(steps(gm).at(-2)).toBe(rows < 30 ? 'relu' : 'sigmoid')
    expect(values(run(gm, x))).toEqual(values(model.call(x)))
    gm.graph.lint()
  })

  it('fake tensors do as well, and nothing is computed', () => {
    const model = detInit(new Model())
    const fake = withMode(new FakeTensorMode(), () => fakeLike(ones([15, 4])))
    const tracer = new MetaTracer({ metaArgs: { x: fake }, within: (compute) => withMode(new FakeTensorMode(), compute) })
    const gm = symbolicTrace(model, { tracer })
    expect(steps(gm).at(-2)).toBe('relu')
    expect(gm.graph.outputNode().prev?.meta['val']).toEqual({ shape: [15, 16], dtype: 'float32', strides: [16, 1] })
  })

  it('sizes are numbers, strict comparisons of them are right, and leave no nodes', () => {
    const f = (x: Tensor): Tensor => {
      if (x.size(1) !== 3) throw new Error('three columns, please')
      return x.dim() === 2 && x.numel === 6 && x.dtype === 'float32' ? x.neg() : x
    }
    expect(steps(symbolicTrace(f, { tracer: new MetaTracer({ metaArgs: { x: ones([2, 3]) } }) }))).toEqual(['x', 'neg', 'output'])
    expect(() => symbolicTrace(f, { tracer: new MetaTracer({ metaArgs: { x: ones([2, 4]) } }) })).toThrow('three columns, please')
  })

  it('arrays of known length are iterated and counted', () => {
    const gm = symbolicTrace(
      (x: Tensor) => {
        const rows = x.chunk(3)
        let sum = torch.zeros([1])
        for (const row of rows) sum = sum.add(row)
        return sum.mul(rows.length)
      },
      { tracer: new MetaTracer({ metaArgs: { x: ones([3]) } }) },
    )
    expect(steps(gm).filter((n) => n.startsWith('getitem'))).toHaveLength(3)
    expect(values(run(gm, tensor([1, 2, 3])))).toEqual([18])
  })

  it('a parameter without a value is traced as ever', () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => x.add(y).mul(x.shape[0] as number), { tracer: new MetaTracer({ metaArgs: { x: ones([4]) } }) })
    expect(String(gm.graph)).toContain('call_method[target=mul](args = (%add, 4), kwargs = {})')
    expect(() =>
      symbolicTrace((x: Tensor, y: Tensor) => x.add(y.shape[0] as number).mul((y as unknown as Tensor[]).length), {
        tracer: new MetaTracer({ metaArgs: { x: ones([4]) } }),
      }),
    ).toThrow("'length' is not supported")
  })

  it('values are still not to be read, and metaOf gives what ran along', () => {
    expect(() => symbolicTrace((x: Tensor) => x.sum().item(), { tracer: new MetaTracer({ metaArgs: { x: ones([4]) } }) })).toThrow(
      'item() asks for the value',
    )
    const tracer = new MetaTracer({ metaArgs: { x: ones([4]) } })
    const seen: unknown[] = []
    tracer.trace((x: Tensor) => {
      const y = x.view([2, 2])
      seen.push(isProxy(y), (tracer.metaOf(y as unknown as Proxied) as Tensor).shape)
      return y
    })
    expect(seen).toEqual([true, [2, 2]])
  })

  it('shapes that do not fit are an error of the trace, at the user’s line', () => {
    expect(() => symbolicTrace((x: Tensor) => x.matmul(ones([5, 5])), { tracer: new MetaTracer({ metaArgs: { x: ones([2, 3]) } }) })).toThrow(
      /Could not compute metadata for call_method target matmul: [\s\S]*metaTracer\.test\.ts/,
    )
  })

  it('modules compute with their own tensors while a trace is running', () => {
    const model = detInit(new nn.Sequential(new nn.Linear(4, 3), new nn.BatchNorm1d(3))).eval()
    const gm = symbolicTrace(model, { tracer: new MetaTracer({ metaArgs: { input: ones([2, 4]) } }) })
    expect([...gm.graph.nodes].map((n) => (n.meta['val'] as { shape: number[] } | undefined)?.shape)).toEqual([[2, 4], [2, 3], [2, 3], undefined])
  })

  it('without metaArgs says how to give them', () => {
    expect(() => new MetaTracer(undefined as never)).toThrow(/MetaTracer: options\.metaArgs must be an object/)
  })
})
