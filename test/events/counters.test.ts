// counters: PyTorch's torch._dynamo.utils.counters, counted whether or not anyone listens.
import { beforeEach, describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { disable, withConfig } from 'tensorfx/compile'
import { counters } from 'tensorfx/debug'

const ones = (...shape: number[]): Tensor => torch.ones(shape)
beforeEach(() => counters.clear())

describe('counters', () => {
  it('count graphs, their operators, recorded calls, graph breaks and recompiles', () => {
    const f = compile((x: Tensor) => x.mul(x.sum().item()).add(1))
    f(ones(2))
    f(ones(2))
    expect({ ...counters.stats }).toEqual({ unique_graphs: 2, calls_captured: 3 })
    expect({ ...counters.frames }).toEqual({ total: 1, ok: 1 })
    expect({ ...counters.graph_break }).toEqual({ 'the value of a tensor is read (item(), toArray(), printing)': 1 })
    expect({ ...counters.recompiles }).toEqual({})
    f(ones(3))
    expect(counters.frames['total']).toBe(2)
    expect({ ...counters.recompiles }).toEqual({ 'arguments of other shapes, dtypes or structure: float32[3]': 1 })
  })

  it('count joint graphs, and those that cannot be', () => {
    const x = ones(2).requiresGrad_()
    compile((t: Tensor) => t.sin())(x)
    expect({ ...counters.aot_autograd }).toEqual({ total: 1, ok: 1 })
    const scaled = compile((t: Tensor, k: number) => t.mul(k))
    for (const k of [2, 3, 4]) scaled(x, k)
    expect(counters.aot_autograd['not_ok']).toBe(1)
  })

  it('count rewrites and eager kernels of inductor', () => {
    compile((t: Tensor) => torch.maxPool2d(t, 2))(ones(1, 1, 4, 4))
    expect(counters.inductor['pattern_matcher_count']).toBe(1)
    counters.clear()
    compile((t: Tensor) => t.sin())(ones(4))
    expect(Object.keys(counters.inductor)).toEqual([])
    compile((t: Tensor) => t.cumsum(0))(ones(4))
    expect(counters.inductor['extern_calls']).toBe(1)
  })

  it('count failures, limits, and calls that do not get to their end', () => {
    const failing = compile((t: Tensor) => torch.relu(t), { backend: 'relu_compile_error_TESTING_ONLY' })
    expect(() => failing(ones(2))).toThrow()
    expect({ ...counters.failures }).toEqual({ TFX_RELU_COMPILE: 1 })
    const f = compile((t: Tensor) => t.sin())
    withConfig({ recompileLimit: 0 }, () => [f(ones(2)), f(ones(3)), f(ones(3))])
    expect({ ...counters.limits }).toEqual({ recompileLimit: 2 })
    counters.clear()
    const throws = compile((t: Tensor) => {
      t.sum().item()
      throw new Error('mine')
    })
    expect(() => throws(ones(2))).toThrow('mine')
    expect({ ...counters.frames }).toEqual({ total: 1 })
  })

  it('name disabled functions', () => {
    const silenced = disable(function quiet(t: Tensor) {
      return t.mul(2)
    })
    compile((t: Tensor) => silenced(t).add(1))(ones(2))
    expect(counters.graph_break['call of a disabled function (quiet)']).toBe(1)
  })

  it('are plain data, without what was not counted', () => {
    expect(counters.stats['unique_graphs']).toBe(undefined)
    compile((t: Tensor) => t.sin())(ones(2))
    expect(JSON.stringify(counters.stats)).toBe('{"unique_graphs":1,"calls_captured":1}')
    expect(Object.keys(counters)).toEqual(['frames', 'stats', 'graph_break', 'recompiles', 'limits', 'failures', 'aot_autograd', 'inductor', 'clear'])
    const { stats } = counters
    counters.clear()
    expect(Object.keys(stats)).toEqual([])
    expect('toString' in stats).toBe(false)
  })
})
