// The steps of fuzz:mutation. Each gets the program's tensors and `reach`, which notes a container that the program gave or got; it returns what is seen of it. Containers are
// read before they are returned, since they are changed afterwards.

const sizeOf = (random) => Array.from({ length: 1 + random.int(3) }, () => 1 + random.int(3))
const copyOf = (value) => (value instanceof Map ? [...value] : Array.isArray(value) ? [...value] : { ...value })
const permutation = (random, n) =>
  Array.from({ length: n }, (_, i) => [random.next(), i])
    .toSorted((a, b) => a[0] - b[0])
    .map(([, i]) => i)

/** Keeps a tensor, and returns it. */
function keep(env, tensor) {
  env.tensors.push(tensor)
  return tensor
}

export const steps = {
  creation({ api: { torch }, random, ...env }, reach) {
    const size = reach(sizeOf(random))
    const options = reach({ dtype: random.pick(['float32', 'float64', 'int64']) })
    return keep(env, random.pick([torch.zeros, torch.ones, torch.rand])(size, options.dtype === 'int64' ? {} : options))
  },
  values({ api: { torch }, random, ...env }, reach) {
    const rows = reach(Array.from({ length: 2 }, () => reach([random.int(9), random.int(9), 1])))
    return keep(env, torch.tensor(rows))
  },
  fromTypedArray({ api: { torch }, random, ...env }, reach) {
    return keep(env, torch.tensor(reach(Float32Array.from({ length: 4 }, () => random.int(9)))))
  },
  sizes({ random, tensors }, reach) {
    const x = random.pick(tensors)
    return [x.shape, x.strides, x.size(), x.stride()].map((list) => copyOf(reach(list)))
  },
  read({ random, tensors }, reach) {
    const x = random.pick(tensors)
    return [x.toArray(), x.toTypedArray(), x.toJSON()].map((value) => JSON.stringify(reach(value)))
  },
  reshape({ random, tensors }, reach) {
    const x = random.pick(tensors)
    return keep({ tensors }, x.reshape(reach(random.pick([[x.numel], [1, x.numel], [-1], [...x.shape, 1]]))))
  },
  likeAnother({ api: { torch }, random, tensors }, reach) {
    return keep({ tensors }, torch.ones(reach(random.pick(tensors).shape)).mul(2))
  },
  views({ random, tensors }, reach) {
    const x = random.pick(tensors)
    const made = random.pick([
      () => x.permute(reach(permutation(random, x.ndim))),
      () => x.unsqueeze(0).expand(reach([2, ...x.shape])),
      () => x.asStrided(reach([Math.min(2, x.numel)]), reach([1])),
      () => x.flip(reach([0])),
      () => x.movedim(reach([0]), reach([-1])),
    ])()
    return keep({ tensors }, made)
  },
  reductions({ random, tensors }, reach) {
    const x = random.pick(tensors)
    return keep({ tensors }, random.pick([x.sum, x.mean, x.amax]).call(x.to('float32'), reach([0]), reach({ keepdim: random.chance(0.5) })))
  },
  lists({ api: { torch }, random, tensors }, reach) {
    const x = random.pick(tensors)
    const parts = reach(torch.split(torch.cat(reach([x, x])), reach(x.shape[0] > 1 ? [x.shape[0], x.shape[0]] : [1, 1])))
    return [keep({ tensors }, torch.stack(reach([...parts]))), parts.length]
  },
  pad({ api: { torch }, random, tensors }, reach) {
    const x = random.pick(tensors)
    return keep({ tensors }, torch.nn.functional.pad(x, reach([1, 1])))
  },
  index({ api: { torch }, random, tensors }, reach) {
    const x = random.pick(tensors)
    return keep(
      { tensors },
      random.pick([() => torch.roll(x, reach([1]), reach([0])), () => torch.tile(x, reach([2])), () => x.index(reach([reach([0, 0])]))])(),
    )
  },
  backward({ api: { torch }, random }, reach) {
    const x = torch.ones([2, 3, 2]).requiresGrad_()
    const y = random.pick([
      () => x.permute(reach([2, 0, 1])).sum(reach([0, 2])),
      () =>
        x
          .reshape(reach([3, 4]))
          .flip(reach([0]))
          .mul(torch.arange(4)),
      () => torch.cat(reach([x, x.mul(2)])).mean(reach([1])),
      () => torch.nn.functional.pad(x, reach([1, 2])).pow(2),
    ])()
    return { later: later(arguments[0], 'backward', () => ((x.grad = null), y.sum().backward(reach({ retainGraph: true })), x.grad)) }
  },
  gradients({ api: { torch } }, reach) {
    const x = torch.ones([2]).requiresGrad_()
    const given = reach([x])
    return copyOf(reach(torch.autograd.grad(reach([x.mul(3).sum()]), given)))
  },
  compiled(env, reach) {
    const { api, random } = env
    const scale = random.int(5)
    const options = reach({ dynamic: false })
    const fn = api.compile(
      (given) => ({
        list: [given.list[0].reshape(reach([3, 2])), given.list[1].mul(scale)],
        map: { sum: given.named.x.sum([0]) },
      }),
      options,
    )
    const x = api.torch.arange(6).reshape(2, 3)
    const call = () => {
      const result = fn(reach({ list: reach([x, x.add(1)]), named: { x } }))
      const seen = [...result.list, result.map.sum]
      reach(result)
      return seen
    }
    later(env, 'compiled', call)
    return call()
  },
  compiledWrite(env, reach) {
    const { api } = env
    const fn = api.compile((x) => x.mul_(2).t())
    const call = () => {
      const x = api.torch.ones([2, 3])
      reach(x.shape)
      const y = fn(x)
      reach(y.shape)
      reach(y.strides)
      return [x, y]
    }
    later(env, 'compiledWrite', call)
    return call()
  },
  explained({ api }, reach) {
    const output = api.explain((x) => x.add(1).sum())(api.torch.ones([2]))
    return [reach({ ...output }).graphCount ?? output.graphCount]
  },
  traced(env, reach) {
    const { api, random } = env
    const dims = reach([0, 1])
    const gm = random.chance(0.5)
      ? api.symbolicTrace((x) => api.torch.relu(x).sum(dims).add(1))
      : api.makeFx(
          (x) =>
            x
              .permute(dims)
              .reshape(reach([6]))
              .mul(2),
          reach({}),
        )(api.torch.ones([2, 3]))
    const look = () => [gm.code, gm.graph.toString(), gm(api.torch.arange(6).reshape(2, 3)), [...gm.graph.nodes].length]
    const before = look()
    later(env, 'traced', look)
    reach(gm.graph.findNodes({ op: 'call_function' }))
    for (const node of gm.graph.nodes) {
      reach([...node.users])
      reach(node.allInputNodes)
      reach(node.args)
      reach(node.kwargs)
    }
    return before
  },
  builtGraph(env, reach) {
    const { api } = env
    const graph = new api.Graph()
    const x = graph.placeholder('x')
    const node = graph.callFunction(api.torch.sum, reach([x, reach([0])]), reach({ keepdim: true }))
    graph.output(reach([node]))
    reach(node.args)
    node.args = reach([x, reach([1])])
    const gm = new api.GraphModule(reach({}), graph)
    later(env, 'builtGraph', () => [gm.code, gm(api.torch.ones([2, 2]))])
    return gm.code
  },
  module(env, reach) {
    const { api, random } = env
    const { nn, torch } = api
    const [model, input] = random.pick([
      () => [new nn.Linear(3, 2, reach({ bias: true })), torch.ones([2, 3])],
      () => [new nn.Conv2d(1, 2, reach([2, 2]), reach({ padding: reach([1, 1]), stride: reach([1, 1]) })), torch.ones([1, 1, 3, 3])],
      () => [new nn.LayerNorm(reach([3])), torch.arange(6).reshape(2, 3).add(0.5)],
      () => [new nn.Sequential(...reach([new nn.Linear(3, 3), new nn.ReLU()])), torch.ones([2, 3])],
      () => [new nn.Unflatten(1, reach([3, 1])), torch.ones([2, 3])],
      () => [new nn.ConstantPad1d(reach([1, 2]), 5), torch.ones([2, 3])],
      () => [new nn.MaxPool2d(reach([2, 2]), reach({ stride: reach([1, 1]) })), torch.arange(9).reshape(1, 3, 3).add(0.5)],
    ])()
    const look = () => [model(input), [...model.stateDict()].map(([name, value]) => [name, value])]
    const before = look()
    later(env, 'module', look)
    reach(model.stateDict())
    reach([...model.namedParameters()])
    reach([...model.parameters()])
    reach([...model.namedModules()])
    return before
  },
  stateDict(env, reach) {
    const { api } = env
    const [from, to] = [new api.nn.Linear(2, 2), new api.nn.Linear(2, 2)]
    reach(to.loadStateDict(reach(from.stateDict())))
    later(env, 'stateDict', () => [to.weight, from.weight, [...to.stateDict().keys()]])
    return to.weight
  },
  optimizer(env, reach) {
    const { api, random } = env
    const layer = new api.nn.Linear(2, 2)
    const input = api.torch.ones([1, 2])
    const optimizer = random.pick([
      () => new api.optim.SGD(reach([...layer.parameters()]), reach({ lr: 0.1, momentum: 0.9 })),
      () => new api.optim.Adam(reach([reach({ params: reach([...layer.parameters()]), lr: 0.1 })]), reach({ betas: reach([0.8, 0.9]) })),
    ])()
    const step = () => {
      optimizer.zeroGrad()
      layer(input).sum().backward()
      optimizer.step()
      return [layer.weight, layer.bias]
    }
    step()
    const state = optimizer.stateDict()
    optimizer.loadStateDict(reach(state))
    reach(optimizer.stateDict())
    later(env, 'optimizer', step)
    return step()
  },
  files({ api: { interop, torch }, random, tensors }, reach) {
    const x = random.pick(tensors)
    const bytes = interop.writeSafetensors(reach([reach(['x', x])]), reach({ note: 'text' }))
    const file = interop.readSafetensors(bytes)
    const read = keep({ tensors }, file.tensors.get('x'))
    reach(file)
    reach(bytes)
    const message = x.transfer()
    const sent = keep({ tensors }, torch.fromTransfer(message))
    reach(message)
    reach(new Uint8Array(message.buffer))
    return [read, sent]
  },
  facts({ api: { torch } }, reach) {
    return [torch.finfo('float32'), torch.iinfo('int32')].map((info) => copyOf(reach(info)))
  },
  random({ api: { torch } }, reach) {
    const state = torch.getRngState()
    const first = torch.rand([2])
    torch.setRngState(state)
    reach(state)
    return [first, torch.rand([2])]
  },
  functional(env, reach) {
    const { api } = env
    const doubled = api.func.vmap((x, y) => x.mul(y), reach({ inDims: reach([0, 0]) }))
    const slope = api.func.grad((x, y) => x.mul(y).sum(), reach({ argnums: reach([0, 1]) }))
    const x = api.torch.arange(4).reshape(2, 2)
    const look = () => [doubled(x, x), [...reach(slope(x, x))]]
    later(env, 'functional', look)
    return look()
  },
  trees(env, reach) {
    const { api } = env
    const tree = { a: [1, { b: 2 }], c: 3 }
    const { leaves, spec } = api.treeFlatten(reach(tree))
    const seen = copyOf(leaves)
    reach(leaves)
    later(env, 'trees', () => JSON.stringify(api.treeUnflatten([1, 2, 3], spec)))
    return seen
  },
}

/** Notes what is looked at again after later steps. */
function later(env, what, look) {
  env.later.push([what, look])
  return what
}
