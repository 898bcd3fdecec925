// deepCopy of any module, and the warning about layers in arrays.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { MockInstance } from 'vitest'
import { nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const { tensor } = torch

const values = (t: Tensor): unknown => t.toArray()

class Tied extends nn.Module {
  readonly first = new nn.Linear(2, 2)
  readonly second = new nn.Linear(2, 2)
  readonly stats = new Map<string, unknown>([['seen', [1, 2]]])
  declare readonly scale: Tensor
  constructor() {
    super()
    this.second.weight = this.first.weight
    this.registerBuffer('scale', tensor([3, 3]), { persistent: false })
    this.registerForwardHook((_module, _args, output) => (output as Tensor).mul(this.scale))
    this.first.weight.requiresGrad = false
  }
  override forward(x: Tensor): Tensor {
    return this.second(this.first(x))
  }
}

const x = tensor([[1, -2]])

describe('deepCopy', () => {
  it('is a module of the same class that computes the same with its own tensors', () => {
    const model = new Tied().eval()
    const copy = model.deepCopy()
    expect([copy instanceof Tied, copy.training, copy.first === model.first, copy.first.weight === model.first.weight]).toEqual([
      true,
      false,
      false,
      false,
    ])
    const before = values(model(x))
    expect(values(copy(x))).toEqual(before)
    torch.noGrad(() => copy.first.weight.mul_(0))
    expect(values(model(x))).toEqual(before)
    expect(values(copy(x))).not.toEqual(before)
  })

  it('keeps what is shared, parameters, buffers, hooks and requiresGrad', () => {
    const model = new Tied()
    const copy = model.deepCopy()
    expect(copy.second.weight).toBe(copy.first.weight)
    expect(copy.first.weight.requiresGrad).toBe(false)
    expect([...copy.namedBuffers()].map(([name]) => name)).toEqual(['scale'])
    expect([...copy.stateDict().keys()]).toEqual([...model.stateDict().keys()])
    expect(copy.scale).not.toBe(model.scale)
    expect(copy.stats.get('seen')).toEqual([1, 2])
    expect(copy.stats.get('seen')).not.toBe(model.stats.get('seen'))
    // The methods that look names up work on copies, too.
    expect(copy.getParameter('first.weight')).toBe(copy.first.weight)
  })

  it('shares the tensors if asked to', () => {
    const model = new Tied()
    const copy = model.deepCopy({ shareTensors: true })
    expect([copy.first === model.first, copy.first.weight === model.first.weight, copy.scale === model.scale]).toEqual([false, true, true])
  })

  it('copies modules that contain themselves', () => {
    class Ring extends nn.Module {
      readonly fc = new nn.Linear(1, 1)
      readonly parts: unknown[] = [this]
      override forward(t: Tensor): Tensor {
        return this.fc(t)
      }
    }
    const copy = new Ring().deepCopy()
    expect(copy.parts[0]).toBe(copy)
  })
})

describe('layers in an array', () => {
  let warn: MockInstance<typeof console.warn>
  beforeEach(() => {
    warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
  })
  afterEach(() => {
    warn.mockRestore()
  })

  it('are warned about once, with the fix, and are not found', () => {
    class Stack extends nn.Module {
      readonly head = new nn.Linear(1, 1)
      readonly layers = [new nn.Linear(1, 1), new nn.Linear(1, 1)]
      override forward(t: Tensor): Tensor {
        return this.layers.reduce((value, layer) => layer(value), this.head(t))
      }
    }
    const model = new Stack()
    expect([...model.namedParameters()].map(([name]) => name)).toEqual(['head.weight', 'head.bias'])
    expect(new optim.SGD(model.parameters(), { lr: 0.1 })).toBeDefined()
    void new Stack().stateDict()
    expect(warn.mock.calls).toEqual([
      [
        'Stack.layers is an array of modules, whose parameters are neither trained nor saved, because arrays are not searched. Use nn.ModuleList: this.layers = new nn.ModuleList([…]).',
      ],
    ])
  })

  it('are fine if they are also properties; parameters likewise', () => {
    class Listed extends nn.Module {
      readonly a = new nn.Linear(1, 1)
      readonly scale = new nn.Parameter(tensor([1]))
      readonly all = [this.a]
      readonly scales = [this.scale]
      override forward(t: Tensor): Tensor {
        return this.a(t)
      }
    }
    void new Listed().stateDict()
    expect(warn).not.toHaveBeenCalled()
  })

  it('parameters in an array are warned about', () => {
    class Scales extends nn.Module {
      readonly scales = [new nn.Parameter(tensor([1]))]
      override forward(t: Tensor): Tensor {
        return t
      }
    }
    expect([...new Scales().parameters()]).toEqual([])
    expect(String(warn.mock.calls[0]?.[0])).toMatch(
      /^Scales\.scales is an array of parameters, which are neither trained nor saved.*registerParameter\.$/,
    )
  })
})
