// State dicts: what they hold, and what loading one refuses.
import { describe, expect, test } from 'vitest'
import { ArgumentError, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { LoadStateError } from '../../src/module/index.ts'

const { tensor } = torch

class Layer extends nn.Module {
  readonly weight = new nn.Parameter(tensor([[1, 2]]))
  constructor() {
    super()
    this.registerBuffer('mean', tensor([3]))
    this.registerBuffer('scratch', tensor([4]), { persistent: false })
  }
  override forward(x: Tensor): Tensor {
    return x
  }
}
class Net extends nn.Module {
  readonly layer = new Layer()
  readonly bias = new nn.Parameter(tensor([5]))
  override forward(x: Tensor): Tensor {
    return x
  }
}
const contents = (net: nn.Module): Record<string, unknown> =>
  Object.fromEntries([...net.stateDict()].map(([key, value]) => [key, value instanceof torch.Tensor ? value.toArray() : value]))
const fresh = { bias: [5], 'layer.weight': [[1, 2]], 'layer.mean': [3] }

test('a state dict has the parameters and persistent buffers themselves', () => {
  const net = new Net()
  expect(contents(net)).toEqual(fresh)
  expect([...net.stateDict().keys()]).toEqual(['bias', 'layer.weight', 'layer.mean'])
  expect(net.stateDict().get('bias')).toBe(net.bias)
})

describe('loadStateDict', () => {
  test('copies the values into the tensors that are there, from a Map or an object', () => {
    const net = new Net()
    const { bias } = net
    net.loadStateDict({ bias: tensor([6]), 'layer.weight': tensor([[7, 8]]), 'layer.mean': tensor([9]) })
    expect(contents(net)).toEqual({ bias: [6], 'layer.weight': [[7, 8]], 'layer.mean': [9] })
    expect(net.bias).toBe(bias)
    net.loadStateDict(new Net().stateDict())
    expect(contents(net)).toEqual(fresh)
  })

  test('names all that is missing, unexpected or of another shape, and then loads nothing', () => {
    const net = new Net()
    let error: unknown
    try {
      net.loadStateDict({ bias: tensor([6]), a: tensor([1]), b: tensor([1]) })
    } catch (e) {
      error = e
    }
    expect(error).toBeInstanceOf(LoadStateError)
    expect(error).toHaveProperty('code', 'TFX_LOAD_STATE')
    expect(error).toHaveProperty(
      'message',
      expect.stringContaining(
        'Error(s) in loading stateDict for Net:\n\tMissing key(s) in stateDict: "layer.weight", "layer.mean".\n\tUnexpected key(s) in stateDict: "a", "b".',
      ),
    )
    expect(() => net.loadStateDict({ bias: tensor([6]), 'layer.weight': tensor([[1], [2]]), 'layer.mean': tensor([1, 2]) })).toThrow(
      new LoadStateError('Net', [
        'size mismatch for layer.weight: copying a param with shape [2, 1] from the state dict, the shape in the current model is [1, 2]. Transposed it fits: write value.t().',
        'size mismatch for layer.mean: copying a param with shape [2] from the state dict, the shape in the current model is [1].',
      ]),
    )
    expect(() => net.loadStateDict({ ...Object.fromEntries(net.stateDict()), extra: tensor([1]) })).toThrow(
      /:\n\tUnexpected key\(s\) in stateDict: "extra"\./,
    )
    expect(() => net.loadStateDict({ bias: tensor([6]), 'layer.weight': tensor([[7, 8]]) })).toThrow(
      /:\n\tMissing key\(s\) in stateDict: "layer\.mean"\./,
    )
    expect(contents(net)).toEqual(fresh)
  })

  test('strict: false takes what is there, but no other shapes', () => {
    const net = new Net()
    net.loadStateDict({ bias: tensor([6]), other: tensor([1]) }, { strict: false })
    expect(contents(net)).toEqual({ ...fresh, bias: [6] })
    expect(() => net.loadStateDict({ bias: tensor([6, 7]) }, { strict: false })).toThrow(LoadStateError)
    expect(() => net.loadStateDict({ bias: tensor([6]) }, {})).toThrow(LoadStateError)
  })

  test('a tensor that cannot be written to is an error', () => {
    const net = new Net()
    const { bias } = net
    const frozen = new Proxy(bias, { has: (target, key) => key !== 'copyFrom' && Reflect.has(target, key) })
    Object.assign(net, { bias: frozen })
    expect(() => net.loadStateDict(new Net().stateDict())).toThrow(
      new ArgumentError("loadStateDict: 'bias' cannot be loaded, because the tensor has no method copyFrom."),
    )
  })
})
