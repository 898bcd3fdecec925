// Values that take the place of parameters, buffers and children (difference: plain-tensor-parameter).
import { describe, expect, test } from 'vitest'
import { nn, noGrad, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { functionalCall } from 'tensorfx/func'

class Net extends nn.Module {
  fc = new nn.Linear(2, 2)
  scale = new nn.Parameter(torch.ones([2]))
  mask = torch.ones([2])

  constructor() {
    super()
    this.registerBuffer('mean', torch.zeros([2]))
  }

  forward(x: Tensor): Tensor {
    return this.fc.call(x).mul(this.scale).mul(this.mask)
  }
}

const x = torch.ones([1, 2])
/** What JavaScript allows. */
const assign = (module: nn.Module, name: string, value: unknown): boolean => Reflect.set(module, name, value)

/** Whatever uses a module. */
const USES: Readonly<Record<string, (module: nn.Module) => unknown>> = {
  call: (module) => Reflect.apply(module.call, module, [x]),
  parameters: (module) => [...module.parameters()],
  'an optimizer': (module) => new optim.SGD(module.parameters()),
  stateDict: (module) => module.stateDict(),
  loadStateDict: (module) => module.loadStateDict({}, { strict: false }),
  train: (module) => module.train(),
}

describe.each(Object.entries(USES))('%s', (_, use) => {
  test('a tensor in place of a layer’s parameter is refused, with what to write', () => {
    const linear = new nn.Linear(2, 2)
    assign(linear, 'weight', torch.zeros([2, 2]))
    expect(() => use(linear)).toThrow(
      'Linear.weight must be a Parameter, or null, but was assigned a Tensor of shape [2, 2]. Write module.weight = new nn.Parameter(tensor), or copy the values: noGrad(() => module.weight.copy_(tensor)).',
    )
    assign(linear, 'weight', new nn.Parameter(torch.zeros([2, 2])))
    expect(() => use(linear)).not.toThrow()
  })

  test.each([
    ['scale', torch.zeros([2]), 'Net.scale must be a Parameter, or null, but was assigned a Tensor of shape [2]'],
    ['scale', [1, 2], 'Net.scale must be a Parameter, or null, but was assigned [1, 2]'],
    ['fc', (h: Tensor) => h, 'Net.fc must be a Module, or null, but was assigned a function. Write module.fc = new nn.Identity()'],
    ['mean', 3, 'Net.mean must be a buffer, a Tensor, or null, but was assigned 3. Write module.mean = torch.tensor(data)'],
  ])('so is another value in a program’s own module, once it was used: %s', (name, value, message) => {
    const net = new Net()
    net.train()
    const before: unknown = Reflect.get(net, name)
    assign(net, name, value)
    // A call looks at the first one only, since it has to be fast.
    if (use !== USES['call']) expect(() => use(net)).toThrow(message)
    assign(net, name, before)
    expect(() => use(net)).not.toThrow()
  })

  test('what may be there is accepted: null, other parameters, children and buffers, tensors that were never parameters', () => {
    const net = new Net()
    net.train()
    net.mask = torch.zeros([2])
    net.fc = new nn.Linear(2, 2)
    net.scale = new nn.Parameter(torch.zeros([2]))
    assign(net.fc, 'bias', null)
    assign(net, 'mean', torch.ones([2]))
    expect(() => use(net)).not.toThrow()
    expect([...net.stateDict().keys()].toSorted()).toEqual(['fc.weight', 'mean', 'scale'])
  })
})

test('functionalCall may put any tensor there, and a module may assign its buffers meanwhile', () => {
  class Counter extends Net {
    override forward(h: Tensor): Tensor {
      assign(this, 'mean', torch.tensor([5, 5]))
      return [...this.parameters()].length === 0 ? h : super.forward(h)
    }
  }
  for (const net of [new Net(), new Counter()]) {
    const state = { 'fc.weight': torch.zeros([2, 2]), 'fc.bias': torch.tensor([1, 2]), mean: torch.ones([2]) }
    const run = (): unknown => functionalCall(net, state, [x])
    expect(run()).toBeInstanceOf(torch.Tensor)
    expect(run()).toBeInstanceOf(torch.Tensor)
    expect([...net.parameters()]).toHaveLength(3)
    assign(net, 'scale', torch.ones([2]))
    expect(() => net.stateDict()).toThrow('Net.scale must be a Parameter'.replace('Net', net.constructor.name))
  }
})

test('the values of a parameter are changed in place', () => {
  const linear = new nn.Linear(2, 2)
  noGrad(() => linear.weight.copy_(torch.zeros([2, 2])))
  expect(linear.call(x).toArray()).toEqual([linear.bias?.toArray()])
})

test.each([
  ['registerBuffer', 'scale', torch.ones([1]), "registerBuffer: the module has 'scale' already, a Tensor of shape [2]. Choose another name"],
  ['registerBuffer', 'fc', torch.ones([1]), "registerBuffer: the module has 'fc' already, a Linear"],
  ['registerParameter', 'mean', new nn.Parameter(torch.ones([1])), "registerParameter: the module has 'mean' already"],
  ['registerParameter', 'p', torch.ones([1]), "'p' must be a Parameter or null, got a Tensor of shape [1]. Make one: new nn.Parameter(tensor)."],
  ['addModule', 'scale', new nn.ReLU(), "addModule: the module has 'scale' already"],
] as const)('%s refuses the name of something else: %s', (method, name, value, message) => {
  const net = new Net()
  expect(() => Reflect.apply(net[method], net, [name, value])).toThrow(message)
  expect([...net.stateDict().keys()].toSorted()).toEqual(['fc.bias', 'fc.weight', 'mean', 'scale'])
})
