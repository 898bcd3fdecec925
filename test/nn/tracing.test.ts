// Layers under fx and fake tensors: call_module nodes when they are leaves, PyTorch's functions when a tracer looks inside.
import { expect, test } from 'vitest'
import { noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorMode, fakeLike, withMode } from 'tensorfx/dispatch'
import { GraphModule, Tracer, symbolicTrace } from 'tensorfx/fx'
import { fuse } from 'tensorfx/fx/experimental'
import * as nn from 'tensorfx/nn'
import { detInit, detInput } from '../helpers/deterministic.ts'
import { samples } from '../helpers/models.ts'

const { ones } = torch

const values = (t: Tensor): number[] => Array.from(t.contiguous().toTypedArray(), Number)
const call = (m: nn.Module, ...args: readonly unknown[]): Tensor =>
  noGrad(() => (m.forward as (...a: unknown[]) => unknown).apply(m, [...args])) as Tensor

class NoLeaves extends Tracer {
  override isLeafModule(): boolean {
    return false
  }
}

test('a model of layers traces to call_module nodes and computes the same', () => {
  const { make, inputs } = samples.cnn
  const model = make()
  const traced = symbolicTrace(model)
  expect([...traced.graph.nodes].map((n) => `${n.op} ${typeof n.target === 'string' ? n.target : 'torch.flatten'}`)).toEqual([
    'placeholder x',
    'call_module conv1',
    'call_module bn1',
    'call_module relu',
    'call_module conv2',
    'call_module bn2',
    'call_module relu',
    'call_module pool',
    'call_function torch.flatten',
    'call_module fc',
    'output output',
  ])
  expect(values(call(traced, ...inputs()))).toEqual(values(call(model, ...inputs())))
})

test('a tracer without leaves sees the functions that PyTorch would show, and the result computes the same', () => {
  const model = detInit(
    new nn.Sequential(
      new nn.Conv2d(1, 4, 3, { padding: 1 }),
      new nn.BatchNorm2d(4),
      new nn.ReLU(),
      new nn.MaxPool2d(2),
      new nn.Dropout(0.1),
      new nn.AvgPool2d(2),
      new nn.GroupNorm(2, 4),
      new nn.AdaptiveAvgPool2d(1),
      new nn.Flatten(),
      new nn.LayerNorm(4),
      new nn.GELU(),
      new nn.Linear(4, 3),
      new nn.Softmax(-1),
    ),
  ).eval()
  const traced = new GraphModule(model, new NoLeaves().trace(model))
  const text = String(traced.graph)
  expect(text).toContain('call_function[target=torch.nn.functional.batch_norm]')
  expect(text).toContain('kwargs = {inplace: False}')
  expect(text).toContain('kwargs = {stride: 2, padding: 0, dilation: 1, ceil_mode: False, return_indices: False}')
  expect(text).toContain('kwargs = {p: 0.1, training: False, inplace: False}')
  expect(text).toContain('call_method[target=flatten]')
  const x = detInput([2, 1, 8, 8], 5)
  expect(values(call(traced, x))).toEqual(values(call(model, x)))
})

test('batch norm folds into a convolution', () => {
  const { make, inputs } = samples.cnn
  const model = make()
  const fused = fuse(model)
  expect(String(fused.graph)).not.toContain('bn1')
  const [a, b] = [values(call(model, ...inputs())), values(call(fused, ...inputs()))]
  a.forEach((v, i) => expect(b[i]).toBeCloseTo(v, 5))
})

test('models are built and run on fake tensors', () => {
  withMode(new FakeTensorMode(), () => {
    const model = new nn.Sequential(new nn.Conv2d(1, 4, 3), new nn.BatchNorm2d(4), new nn.Flatten(), new nn.Linear(4 * 36, 2))
    const out = model.call(fakeLike(ones([3, 1, 8, 8])))
    expect(out.shape).toEqual([3, 2])
    expect(out.isFake && [...model.parameters()].every((p) => p.isFake)).toBe(true)
  })
})

test('torch.nn and torch.optim are the modules of the subpaths', () => {
  expect(torch.nn.Linear).toBe(nn.Linear)
  expect(torch.nn.functional.relu).toBe(nn.F.relu)
  expect(typeof torch.optim.SGD).toBe('function')
})
