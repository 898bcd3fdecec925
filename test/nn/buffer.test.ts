// nn.Buffer makes a property a buffer, as registerBuffer does.
import { describe, expect, it } from 'vitest'
import { fx, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

class Counting extends nn.Module {
  steps: Tensor = new nn.Buffer(torch.zeros([1]))
  scratch: Tensor = new nn.Buffer(torch.ones([2]), { persistent: false })
  override forward(x: Tensor): Tensor {
    return x.add(this.steps)
  }
}

describe('nn.Buffer', () => {
  it('is a buffer of the module, persistent unless it is told otherwise', () => {
    const module = new Counting()
    expect([...module.namedBuffers()].map(([name]) => name)).toEqual(['steps', 'scratch'])
    expect([...module.stateDict().keys()]).toEqual(['steps'])
    expect([...module.parameters()]).toEqual([])
    expect(module.steps instanceof nn.Buffer).toBe(true)
    expect(torch.ones([1]) instanceof nn.Buffer).toBe(false)
  })

  it('stays one when it is assigned another tensor, loaded, copied and traced', () => {
    const module = new Counting()
    expect(module(torch.zeros([1])).item()).toBe(0)
    module.steps = torch.tensor([3])
    expect([...module.stateDict().keys()]).toEqual(['steps'])
    const copy = module.deepCopy()
    copy.loadStateDict({ steps: torch.tensor([5]) })
    expect([module(torch.zeros([1])).item(), copy(torch.zeros([1])).item()]).toEqual([3, 5])
    expect([...new Counting().deepCopy().namedBuffers()].map(([name]) => name)).toEqual(['steps', 'scratch'])
    const gm = fx.symbolicTrace(copy)
    expect(gm(torch.zeros([1])).item()).toBe(5)
    expect([...gm.namedBuffers()].map(([name]) => name)).toContain('steps')
  })

  it('shares the memory of its data, without its history', () => {
    const data = torch.zeros([1]).requiresGrad_()
    const buffer = new nn.Buffer(data.mul(1))
    expect(buffer.requiresGrad).toBe(false)
    expect(() => Reflect.construct(nn.Buffer, [3])).toThrow('nn.Buffer')
  })
})
