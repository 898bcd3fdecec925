// Hooks of modules: full backward hooks and those of state dicts.
import { describe, expect, test, vi } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const values = (t: unknown): number[] => Array.from((t as Tensor).detach().contiguous().toTypedArray(), Number)

describe('hooks', () => {
  test('full backward hooks see and may replace the gradients of arguments', () => {
    const layer = new nn.Linear(2, 1)
    const seen: unknown[] = []
    const handle = layer.registerFullBackwardHook((_, gradInput, gradOutput) => {
      seen.push(
        gradInput.map((g) => g?.shape),
        gradOutput.map((g) => g?.shape),
      )
      return gradInput.map((g) => g?.mul(0) ?? null)
    })
    const x = torch.ones([3, 2]).requiresGrad_()
    layer(x).sum().backward()
    expect(seen).toEqual([[[3, 2]], [[3, 1]]])
    expect(values(x.grad?.abs())).toEqual([0, 0, 0, 0, 0, 0])
    expect(values(layer.bias?.grad)).toEqual([3])
    handle.remove()
    layer(x).sum().backward()
    expect(seen).toHaveLength(2)
  })

  test('full backward hooks run with a gradInput of null when no argument requires grad, and warn once', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
    try {
      const layer = new nn.Linear(2, 1)
      const seen: unknown[] = []
      const handle = layer.registerFullBackwardHook((module, gradInput, gradOutput) => {
        seen.push([module === layer, gradInput, gradOutput.map((g) => g?.toArray())])
      })
      layer(torch.ones([2, 2]))
        .sum()
        .backward()
      layer(torch.ones([2, 2]))
        .mul(2)
        .sum()
        .backward()
      expect(seen).toEqual([
        [true, [null], [[[1], [1]]]],
        [true, [null], [[[2], [2]]]],
      ])
      expect(warn).toHaveBeenCalledTimes(1)
      expect(String(warn.mock.calls[0]?.[0])).toContain('since no inputs require gradients')
      expect(values(layer.bias?.grad)).toEqual([6])
      // Nothing requires grad: there is no backward to hear of.
      torch.noGrad(() => layer(torch.ones([2, 2])))
      expect(seen).toHaveLength(2)
      handle.remove()
      layer.registerFullBackwardHook(() => [torch.ones([2, 2])])
      expect(() =>
        layer(torch.ones([2, 2]))
          .sum()
          .backward(),
      ).toThrow(/must return nothing, or null for each gradient/)
    } finally {
      warn.mockRestore()
    }
  })

  test('a full backward hook of an embedding hears of the gradient of its result', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
    try {
      const layer = new nn.Embedding(4, 2)
      const seen: unknown[] = []
      layer.registerFullBackwardHook((_, gradInput, gradOutput) => {
        seen.push(gradInput, gradOutput[0]?.shape)
      })
      layer(torch.tensor([1, 3], { dtype: 'int64' }))
        .sum()
        .backward()
      expect(seen).toEqual([[null], [2, 2]])
    } finally {
      warn.mockRestore()
    }
  })

  test('state-dict hooks may rename, and hear the result', () => {
    const net = new nn.Sequential(new nn.Linear(2, 1))
    const heard: unknown[] = []
    const layer = net.at(0)
    layer.registerStateDictPostHook((_, state, prefix) => {
      const value = state.get(`${prefix}weight`)
      if (value !== undefined) state.set(`${prefix}kernel`, value)
      state.delete(`${prefix}weight`)
    })
    layer.registerLoadStateDictPreHook((_, state, prefix) => {
      const value = state.get(`${prefix}kernel`)
      if (value !== undefined) state.set(`${prefix}weight`, value)
      state.delete(`${prefix}kernel`)
    })
    layer.registerLoadStateDictPostHook((_, result) => heard.push(result))
    const state = net.stateDict()
    expect([...state.keys()]).toEqual(['0.bias', '0.kernel'])
    net.loadStateDict(state)
    expect([heard, [...state.keys()]]).toEqual([[{ missingKeys: [], unexpectedKeys: [] }], ['0.bias', '0.kernel']])
  })
})
