// fuse against PyTorch's: the graph, the folded parameters and the outputs (fuse_conv_bn), and what it leaves alone.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import { fuse } from 'tensorfx/fx/experimental'
import { detInit, detInput } from '../helpers/deterministic.ts'
import { expectGraph, readExtra } from './golden.ts'
import type { GoldenGraph } from './golden.ts'
import { checkOutput } from './samples/harness.ts'
import type { GoldenTensor } from './samples/golden.ts'
import { camelCase } from '../../src/protocol/index.ts'

interface Golden {
  readonly before: GoldenGraph
  readonly after: GoldenGraph
  readonly eager: GoldenTensor
  readonly fused_out: GoldenTensor
  readonly params: Readonly<Record<string, GoldenTensor>>
  readonly fused_params: Readonly<Record<string, GoldenTensor>>
}

class Net extends nn.Module {
  conv1 = new nn.Conv2d(3, 4, 3, { bias: false })
  bn1 = new nn.BatchNorm2d(4)
  conv2 = new nn.Conv2d(4, 4, 1)
  nested = new nn.Sequential(new nn.BatchNorm2d(4), new nn.Conv2d(4, 2, 1), new nn.BatchNorm2d(2))
  lin = new nn.Linear(2, 2)
  override forward(x: Tensor): Tensor {
    return this.nested.call(this.conv2.call(this.bn1.call(this.conv1.call(x))))
  }
}

describe('fuse', () => {
  const golden = readExtra<Golden>('fuse_conv_bn')
  const model = detInit(new Net()).eval()
  const x = detInput([1, 3, 6, 6], 9)

  it('test_conv_bn_fusion: PyTorch’s graph, parameters and outputs', () => {
    expectGraph(symbolicTrace(model), golden.before)
    checkOutput(model.call(x), golden.eager)
    const fused = fuse(model)
    expectGraph(fused, golden.after)
    checkOutput(fused.call(x), golden.fused_out)
    const state = fused.stateDict()
    expect([...state.keys()].toSorted()).toEqual(Object.keys(golden.fused_params).map(camelCase).toSorted())
    for (const [name, value] of Object.entries(golden.fused_params)) checkOutput(state.get(camelCase(name)), value)
    // The model keeps its own.
    const before = model.stateDict()
    for (const [name, value] of Object.entries(golden.params))
      if (!name.endsWith('num_batches_tracked')) checkOutput(before.get(camelCase(name)), value)
  })

  it('test_conv_bn_fusion_not_running_state: a norm of each batch stays', () => {
    class Batchwise extends nn.Module {
      conv = new nn.Conv2d(32, 64, 3, { stride: 2 })
      bn = new nn.BatchNorm2d(64, { eps: 1e-5, momentum: 0.1, affine: true, trackRunningStats: false })
      override forward(y: Tensor): Tensor {
        return this.bn.call(this.conv.call(y))
      }
    }
    const batchwise = new Batchwise().eval()
    const fused = fuse(batchwise)
    expect(String(fused.graph)).toBe(String(symbolicTrace(batchwise).graph))
    const y = torch.randn([1, 32, 50, 50])
    expect(torch.allclose(fused.call(y), batchwise.call(y))).toBe(true)
  })

  it('test_conv_bn_fusion_mixed_dtype: parameters keep the dtype of the layer', () => {
    class Mixed extends nn.Module {
      conv = new nn.Conv2d(3, 16, 3, { bias: false })
      bn = new nn.BatchNorm2d(16, { eps: 0.001 })
      override forward(y: Tensor): Tensor {
        return this.bn.call(this.conv.call(y))
      }
    }
    const mixed = detInit(new Mixed()).eval()
    const y = torch.randn([2, 3, 8, 8])
    const want = mixed.call(y)
    const { runningMean, runningVar } = mixed.bn
    mixed.bn.runningMean = runningMean?.double() ?? null
    mixed.bn.runningVar = runningVar?.double() ?? null
    const fused = fuse(mixed)
    expect([...fused.parameters()].map((p) => p.dtype)).toEqual(['float32', 'float32'])
    expect(torch.allclose(fused.call(y), want, { rtol: 1e-4, atol: 1e-5 })).toBe(true)
  })

  it.each([
    ['Conv1d', new nn.Conv1d(2, 4, 2, { groups: 2 }), new nn.BatchNorm1d(4), [2, 2, 5], 1],
    ['Conv3d', new nn.Conv3d(2, 4, 2, { padding: 1, paddingMode: 'replicate' }), new nn.BatchNorm3d(4), [2, 2, 3, 3, 3], 1],
    ['a linear layer whose norm is of another dimension, and stays,', new nn.Linear(2, 4), new nn.BatchNorm1d(3), [2, 3, 2], 2],
    ['ConvTranspose2d, which keeps its norm,', new nn.ConvTranspose2d(4, 4, 2, { groups: 2 }), new nn.BatchNorm2d(4), [2, 4, 3, 3], 2],
    ['ConvTranspose3d, which keeps its norm,', new nn.ConvTranspose3d(4, 4, 2), new nn.BatchNorm3d(4), [1, 4, 2, 2, 2], 2],
  ] as const)('%s computes the same', (_, layer, norm, shape, calls) => {
    const net = detInit(new nn.Sequential(layer, norm)).eval()
    const y = detInput(shape, 3)
    const fused = fuse(net)
    expect(fused.graph.findNodes({ op: 'call_module' })).toHaveLength(calls)
    expect(torch.allclose(fused.call(y), net.call(y), { rtol: 1e-4, atol: 1e-5 })).toBe(true)
  })

  it('a model in training mode is refused', () => {
    expect(() => fuse(detInit(new Net()).train())).toThrow('the model is in training mode')
  })
})
