// Names that do not exist: which are explained, and which stay undefined because anybody may ask for them.
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { Tensor, UnknownNameError, nn, optim, torch } from 'tensorfx'
import { nearest } from '../../src/protocol/index.ts'

const model = new nn.Linear(2, 3)
const guided: Readonly<Record<string, object>> = {
  torch,
  'torch.nn': torch.nn,
  'torch.optim': torch.optim,
  'nn.functional': nn.functional,
  tensor: torch.ones([2]),
  parameter: model.weight,
  module: model,
  optimizer: new optim.SGD(model.parameters()),
}
const read = (object: object | undefined, name: PropertyKey): unknown => Reflect.get(Object(object), name)

describe('nearest', () => {
  const names = ['zeros', 'zerosLike', 'add', 'add_', 'mean', 'softmax', 'logSoftmax']
  it.each([
    ['zeros_like', 'zerosLike'],
    ['zeroslike', 'zerosLike'],
    ['zeross', 'zeros'],
    ['maen', 'mean'],
    ['ADD', 'add'],
    ['softmx', 'softmax'],
    ['log_softmx', 'logSoftmax'],
    ['mul', null],
    ['ad', null],
    ['men', null],
    ['svd', null],
    ['zeroed', null],
  ])('%s: %s', (name, near) => expect(nearest(name, names)).toBe(near))

  it('prefers what differs least', () => expect(nearest('adds', ['add_', 'ands', 'adds'])).toBe('adds'))
})

describe('names of PyTorch', () => {
  it.each([
    ['torch', 'zeros_like', 'torch.zeros_like is torch.zerosLike here'],
    ['torch', 'manual_seed', 'torch.manual_seed is torch.manualSeed here'],
    ['torch', 'zeross', 'did you mean torch.zeros?'],
    ['torch', 'fx', "import { fx } from 'tensorfx'"],
    ['torch.nn', 'linear', 'did you mean torch.nn.Linear?'],
    ['torch.optim', 'Sgd', 'did you mean torch.optim.SGD?'],
    ['nn.functional', 'conv_2d', 'nn.functional.conv_2d is nn.functional.conv2d here'],
    ['tensor', 'masked_fill', 'x.masked_fill is x.maskedFill here'],
    ['tensor', 'requires_grad', 'x.requires_grad is x.requiresGrad here'],
    ['tensor', 'length', 'x.shape[0]'],
    ['parameter', 'grad_fn', 'x.grad_fn is x.gradFn here'],
    ['module', 'load_state_dict', 'module.load_state_dict is module.loadStateDict here'],
    ['optimizer', 'param_groups', 'optimizer.param_groups is optimizer.paramGroups here'],
  ])('%s.%s', (owner, name, message) => {
    expect(() => read(guided[owner], name)).toThrow(UnknownNameError)
    expect(() => read(guided[owner], name)).toThrow(message)
  })

  it('are explained when they are set, too', () => {
    const x = torch.ones([2])
    expect(() => Object.assign(x, { requires_grad: true })).toThrow('x.requires_grad is x.requiresGrad here')
    expect(() => Object.assign(new optim.SGD(model.parameters()), { lr: 1 })).toThrow('optimizer.paramGroups[0].lr')
  })
})

describe('other names', () => {
  // Promises, JSON, Node, vitest, jest, React and Vue look for these on any object.
  const probes = `then catch finally toJSON inspect nodeType nodeName tagName asymmetricMatch $$typeof @@__IMMUTABLE_ITERABLE__@@ @@__IMMUTABLE_RECORD__@@
    __v_isRef __v_raw __v_skip _isVue _owner _store calls mock mockName getMockName next return throw default __esModule name message stack cause key ref props type
    displayName hasAttribute getAttribute jquery ownerDocument window global splice callee isMockFunction _isMockFunction label forEach map type tag id uid meta`
  const names = probes.split(/\s+/)
  it.each(Object.keys(guided))('%s: what tools look for on any object is undefined', (owner) => {
    for (const name of names) {
      // torch.stack, torch.map, x.type and x.toJSON exist.
      const isThere = owner === 'torch' ? ['stack', 'map'].includes(name) : name === 'type' && guided[owner] instanceof Tensor
      const value = isThere ? undefined : read(guided[owner], name)
      expect([name, typeof value]).toEqual([name, name === 'toJSON' && value !== undefined ? 'function' : 'undefined'])
    }
    expect(read(guided[owner], Symbol('any'))).toBeUndefined()
    expect(read(guided[owner], 'constructor')).toBeDefined()
  })

  it('they are still objects', () =>
    expect(Object.values(guided).map((object) => object instanceof Object)).toEqual(Object.values(guided).map(() => true)))

  it('tensors and modules can be awaited, inspected, compared and turned into text', async () => {
    const x = torch.tensor([1, 2])
    expect(await x).toBe(x)
    expect(await model).toBe(model)
    expect(inspect({ x })).toBe('{ x: tensor([1., 2.]) }')
    expect({ x, model }).toEqual({ x, model })
    expect(`${String(model)}`).toBe('Linear(in_features=2, out_features=3, bias=True)')
  })

  it('modules and tensors can have properties of their own, whatever they resemble', () => {
    class Net extends nn.Module {
      buffer: unknown = null
      eval_ = 1
      override forward(): number {
        return this.eval_
      }
    }
    const net: object = new Net()
    expect(read(net, 'paramters')).toBeUndefined()
    Object.assign(net, { state_dict: 1, cuda: 2 })
    expect([read(net, 'state_dict'), read(net, 'cuda')]).toEqual([1, 2])
    expect(Object.assign(torch.ones([1]), { label: 'a' })).toMatchObject({ label: 'a' })
  })

  it('a ModuleDict may have keys that are names of PyTorch', () => {
    expect([...new nn.ModuleDict({ cuda: new nn.ReLU(), cpu: new nn.ReLU() }).keys()]).toEqual(['cuda', 'cpu'])
  })
})

describe('in the REPL', () => {
  it('torch and an operator are one line each', () => {
    expect(inspect(torch)).toMatch(/^torch \{ \d+ operators, tensor, .*nn, .*optim, .*bool, .* \}$/)
    expect(inspect(torch.relu)).toBe('[torch.relu: relu(Tensor self) -> Tensor]')
    expect(inspect(nn.functional)).not.toContain('derivative')
  })
})
