// FxGraphDrawer against the drawings that PyTorch made of the samples, from PyTorch's own nodes and shapes.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, symbolicTrace } from 'tensorfx/fx'
import { FxGraphDrawer, ShapeProp } from 'tensorfx/fx/passes'
import { renderSvg } from 'tensorfx/fx/viewer'
import { targetText } from '../../../../src/fx/graph/node.ts'
import { samples } from '../../samples/all.ts'
import { goldenGraph, readGolden } from '../../samples/golden.ts'
import type { GoldenMeta } from '../../samples/golden.ts'
import { traced } from '../../samples/harness.ts'

interface TorchMeta {
  readonly shape: readonly number[]
  readonly dtype: string
  readonly stride: readonly number[]
  readonly requires_grad: boolean
}

/** PyTorch's notes in our form, dtypes as they are. */
function meta(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (!('dtype' in value)) return Array.isArray(value) ? value.map(meta) : Object.fromEntries(Object.entries(value).map(([k, v]) => [k, meta(v)]))
  const { shape, dtype, stride, requires_grad } = value as TorchMeta
  return { shape, dtype: dtype.replace('torch.', ''), strides: stride, requiresGrad: requires_grad }
}

/** PyTorch's drawing as ours should be: classes by their public names, functions by their qualified ones, fields and buffers that our layers have. */
function ours(dot: string): string {
  return dot
    .replaceAll(/torch\.nn\.modules\.\w+\.(\w+)/g, 'torch.nn.$1')
    .replaceAll('target=_operator.', 'target=operator.')
    .replaceAll(/\\n(padding_mode|output_padding|return_indices|max_norm|norm_type|scale_grad_by_freq|sparse): (\([^)]*\)|[^\\|]*)/g, '')
    .replaceAll(/\.(running_mean|running_var|num_batches_tracked)(?=")/g, (name) => name.replaceAll(/_(\w)/g, (_, c: string) => c.toUpperCase()))
}

/** A function that only has a name. */
const called = (name: string): (() => void) => Object.defineProperty(() => {}, 'name', { value: name })

const drawn = samples.filter((sample) => typeof readGolden(sample.golden).dot === 'string')

describe('FxGraphDrawer', () => {
  it('has drawings of many samples to compare with', () => expect(drawn.length).toBeGreaterThan(8))

  it.each(drawn)('draws $golden as PyTorch does (difference: home-of-classes) (difference: drawn-fields)', (sample) => {
    const golden = readGolden(sample.golden)
    const root = sample.make()
    const gm = new GraphModule(root instanceof nn.Module ? root : traced(sample), goldenGraph(golden.nodes))
    const notes = new Map((golden.shape_prop as readonly GoldenMeta[]).map((m) => [m.name, meta(m.tensor_meta)]))
    for (const node of gm.graph.nodes) {
      node.meta['tensor_meta'] = notes.get(node.name) ?? null
      if (typeof node.target === 'function') node.target = called(targetText(node.target).replace('golden.', ''))
    }
    const name = /^digraph "?([^\s"]+)/.exec(golden.dot as string)?.[1] as string
    expect(new FxGraphDrawer(gm, name).getDotGraph()).toBe(ours(golden.dot as string))
  })

  it('draws nodes whose value is a number without a line for it (difference: drawer-skips-numbers)', () => {
    const gm = symbolicTrace((x) => x.mul(x.size(0)))
    new ShapeProp(gm).propagate(torch.ones([2, 3]))
    expect(new FxGraphDrawer(gm, 'g').getDotGraph()).toContain(
      'size [label="{name=%size|op_code=call_method\\n|target=size\\n|args=(0,)|num_users=1\\n}"',
    )
  })

  it('leaves out what it is told to', () => {
    class Net extends nn.Module {
      fc = new nn.Linear(2, 2)
      override forward(x: Tensor): Tensor {
        return this.fc.call(x).add(this.fc.weight)
      }
    }
    const gm = symbolicTrace(new Net())
    const all = new FxGraphDrawer(gm, 'net').getDotGraph()
    expect(all).toContain('fc_weight')
    expect(all).toContain('"fc.bias" -> fc')
    const less = new FxGraphDrawer(gm, 'net', { ignoreGetattr: true, ignoreParametersAndBuffers: true }).getDotGraph()
    expect(less).not.toMatch(/fc_weight|fc\.bias/)
    expect(new FxGraphDrawer(gm, 'net', { skipNodeNamesInArgs: false }).getDotGraph()).toContain('args=(\\l%fc,\\n%fc_weight,\\n)\\l')
    expect(new FxGraphDrawer(gm, 'net', { parseStackTrace: true }).getDotGraph()).toMatch(/\|file=dot\/graphDrawer\.test\.ts:\d+ return this\.fc/)
  })

  it('draws the GraphModules that a graph calls apart, by path', () => {
    const inner = symbolicTrace((x) => torch.relu(x))
    class Outer extends nn.Module {
      inner = inner
      override forward(x: Tensor): Tensor {
        return this.inner.call(x) as Tensor
      }
    }
    const gm = new GraphModule(new Outer(), symbolicTrace((x) => x).graph)
    gm.addSubmodule('inner', inner)
    const [x] = gm.graph.nodes
    gm.graph.insertingAfter(x ?? null, () => gm.graph.callModule('inner', [x ?? null]))
    const drawer = new FxGraphDrawer(gm, 'outer')
    expect([...drawer.getAllDotGraphs().keys()]).toEqual(['outer', 'outer_inner'])
    expect(drawer.getDotGraph('inner')).toContain('target=torch.relu')
    expect(() => drawer.getSubmodDotGraph('other')).toThrow("FxGraphDrawer: 'other' is not a GraphModule that the graph calls")
  })

  it('becomes a picture', async () => {
    const svg = await renderSvg(
      new FxGraphDrawer(
        symbolicTrace((x) => torch.relu(x)),
        'g',
      ).getDotGraph(),
    )
    expect(svg.startsWith('<svg')).toBe(true)
    expect(svg).toContain('torch.relu')
  })
})
