// What people try in their first hours, and what is then said or done.
import { describe, expect, test } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph } from 'tensorfx/fx'
import { readSafetensors, writeSafetensors } from 'tensorfx/interop'

describe('a module', () => {
  class Block extends nn.Module {
    LayerNorm = new nn.LayerNorm(2)
    A_log = new nn.Parameter(torch.zeros([2]))
    D = new nn.Parameter(torch.ones([2]))
    outProj = new nn.Linear(2, 2)

    forward(x: Tensor): Tensor {
      return this.outProj(this.LayerNorm(x)).mul(this.D)
    }
  }

  /** A table that is used on both sides, as T5's. */
  class Shared extends nn.Module {
    shared = new nn.Embedding(3, 2)
    encoder = new nn.Sequential(this.shared)
    lmHead = new nn.Linear(2, 3, { bias: false })

    constructor() {
      super()
      this.lmHead.weight = this.shared.weight
    }

    forward(ids: Tensor): Tensor {
      return this.lmHead(this.encoder(ids))
    }
  }

  test('has PyTorch’s names for what is in camel case, and the program’s for the rest', () => {
    expect([...new Block().stateDict({ names: 'pytorch' }).keys()].toSorted()).toEqual(
      ['A_log', 'D', 'LayerNorm.bias', 'LayerNorm.weight', 'out_proj.bias', 'out_proj.weight'].toSorted(),
    )
    const [from, to] = [new Block(), new Block()]
    torch.noGrad(() => from.D.fill_(5))
    to.loadStateDict(from.stateDict({ names: 'pytorch' }))
    expect(to.D.toArray()).toEqual([5, 5])
  })

  test('that is there under two names is in the state dict under both; the first is enough to load it', () => {
    const [from, to] = [new Shared(), new Shared()]
    expect([...from.stateDict().keys()]).toEqual(['shared.weight', 'encoder.0.weight', 'lmHead.weight'])
    expect([...from.parameters()]).toHaveLength(1)
    to.loadStateDict(from.stateDict())
    expect(to.lmHead.weight.toArray()).toEqual(from.lmHead.weight.toArray())
    const again = new Shared()
    expect(again.loadStateDict({ 'shared.weight': from.shared.weight }).missingKeys).toEqual([])
    expect(again.lmHead.weight.toArray()).toEqual(from.lmHead.weight.toArray())
    expect(() => again.loadStateDict({})).toThrow('Missing key(s) in stateDict: "shared.weight", "encoder.0.weight", "lmHead.weight"')
  })

  test('that contains itself has a state dict', () => {
    const block = new Block()
    Reflect.set(block.outProj, 'self', block)
    expect([...block.stateDict().keys()]).toHaveLength(6)
  })

  test('writes its state dict to a file', () => {
    const block = new Block()
    expect(readSafetensors(writeSafetensors(block.stateDict())).tensors.get('D')?.toArray()).toEqual([1, 1])
  })

  test.each(['registerBuffer', 'registerParameter', 'addModule'] as const)('refuses %s of a name that its class has: forward', (method) => {
    const block = new Block()
    const value = method === 'addModule' ? new Block() : method === 'registerParameter' ? new nn.Parameter(torch.ones([1])) : torch.ones([1])
    expect(() => Reflect.apply(block[method], block, ['forward', value])).toThrow(
      `${method}: argument 'name' must be a name without dots that no Module has already, got 'forward'`,
    )
    expect(block(torch.ones([1, 2])).shape).toEqual([1, 2])
  })

  test('takes no plain tensor for a parameter, in TypeScript', () => {
    const linear = new nn.Linear(2, 2)
    // @ts-expect-error: a Parameter is needed; the layer would have nothing to train.
    linear.weight = torch.zeros([2, 2])
    linear.weight = new nn.Parameter(torch.zeros([2, 2]))
    expect([...linear.namedParameters()].map(([name]) => name)).toEqual(['bias', 'weight'].toSorted().toReversed())
  })
})

describe('compile', () => {
  test('takes parameters without types for tensors', () => {
    const double = compile((x) => x.mul(2))
    const y: Tensor = double(torch.ones([1]))
    const scaled = compile((x: Tensor, by: number) => x.mul(by))
    expect([y.item(), scaled(y, 3).item()]).toEqual([2, 6])
  })

  test('with skipReplay sees the mode of children', () => {
    class Net extends nn.Module {
      layers = new nn.Sequential(new nn.Dropout(1))
      forward(x: Tensor): Tensor {
        return this.layers(x)
      }
    }
    const net = new Net()
    const fast = compile(net, { skipReplay: true })
    const x = torch.ones([2])
    for (let i = 0; i < 3; i++) expect(fast(x).toArray()).toEqual([0, 0])
    net.layers.eval()
    for (let i = 0; i < 3; i++) expect(fast(x).toArray()).toEqual([1, 1])
    net.layers.train()
    expect(fast(x).toArray()).toEqual([0, 0])
  })

  test('takes a value that contains itself, as the function does', () => {
    interface Tree {
      x: Tensor
      self?: Tree
    }
    const tree: Tree = { x: torch.ones([2]) }
    tree.self = tree
    const fast = compile((given: Tree) => given.self?.x.mul(2) ?? given.x)
    expect(fast(tree).toArray()).toEqual([2, 2])
    tree.x = torch.tensor([3, 4])
    expect(fast(tree).toArray()).toEqual([6, 8])
    const same = compile((given: Tree) => ({ ...given, x: given.x.add(1) }))
    expect(same(tree).x.toArray()).toEqual([4, 5])
  })
})

describe('an error', () => {
  const two = torch.ones([2, 2])

  test.each([
    [() => torch.softmax(two, 4), 'torch.softmax: dim 4 is out of range for a tensor of 2 dimensions; expected -2 to 1.'],
    [() => torch.std(two, 5), 'torch.std: dim 5 is out of range for a tensor of 2 dimensions; expected -2 to 1.'],
    [
      () => torch.hstack([two, torch.ones([3, 3])]),
      'torch.hstack: tensors[0] has shape [2, 2] but tensors[1] has [3, 3]; all sizes but that of dimension 1 must agree.',
    ],
    [
      () => torch.stack([torch.ones([2]), torch.ones([3])]),
      'torch.stack: tensors[0] has shape [2] but tensors[1] has [3]; all tensors must have one shape. torch.cat joins others.',
    ],
  ])('names the operator that was called: %s', (run, message) => {
    const error = thrownBy(run)
    expect(error.message).toBe(message)
    expect(error.stack?.split('\n')[0]).toBe(`ShapeError: ${message}`)
    expect(thrownBy(compile(run)).message).toBe(message)
  })

  test('names it for tensors that require gradients, and for its caller’s caller', () => {
    const message = 'torch.softmax: dim 4 is out of range for a tensor of 2 dimensions; expected -2 to 1.'
    expect(thrownBy(() => torch.softmax(torch.ones([2, 2]).requiresGrad_(), 4)).message).toBe(message)
    const outer = 'torch.nn.functional.softmin: dim 4 is out of range for a tensor of 2 dimensions; expected -2 to 1.'
    expect(thrownBy(() => torch.nn.functional.softmin(two, 4)).message).toBe(outer)
  })

  test('says that await is missing', () => {
    const later: unknown = Promise.resolve(two)
    expect(thrownBy(() => Reflect.apply(torch.add, null, [later, 1])).message).toBe(
      "torch.add: argument 'self' must be a Tensor, got a Promise (write await before it).",
    )
    const linear = new nn.Linear(2, 2)
    expect(thrownBy(() => Reflect.apply(linear.loadStateDict, linear, [later])).message).toBe(
      "loadStateDict: argument 'state' must be a Map or an object from string to Tensor, as stateDict() returns it, got a Promise (write await before it).",
    )
  })
})

/** The error that `run` throws. */
function thrownBy(run: () => unknown): Error {
  try {
    run()
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('nothing was thrown')
}

describe('a graph', () => {
  test('takes PyTorch’s last positional arguments', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const node = graph.callFunction(torch.relu, [x], {}, null, 'activated')
    const random = graph.callFunction(torch.randLike, [x])
    const output = graph.output(node)
    expect(node.name).toBe('activated')
    expect([random.isImpure(), random.isImpure(true), random.isImpure(false), x.isImpure(false)]).toEqual([true, true, false, true])
    const copy = new Graph()
    const found = copy.graphCopy(graph, new Map(), true)
    expect(Array.isArray(found) && found[1] === output).toBe(true)
    expect(Array.isArray(found) ? String(found[0]) : '').toBe('activated')
    expect(String(new Graph().graphCopy(graph, new Map()))).toBe('activated')
  })

  test('says whether it had dead code', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    graph.callFunction(torch.relu, [x])
    graph.output(x)
    expect(graph.eliminateDeadCode()).toBe(true)
    expect(graph.eliminateDeadCode()).toBe(false)
  })
})
