// The public surface for fuzz:arguments: the entries, samples whose methods are called, and what calls may change for others.

/** `load` imports an entry by its name. */
export async function loadSurface(load) {
  const names = [
    'tensorfx',
    'nn',
    'optim',
    'ops',
    'dispatch',
    'fx',
    'fx/passes',
    'fx/json',
    'fx/viewer',
    'fx/experimental',
    'compile',
    'library',
    'aot',
    'inductor',
    'interop',
    'debug',
    'kernels',
    'pytree',
  ]
  const entries = {}
  for (const name of names) entries[name.replace('/', '_')] = await load(name)
  const { torch, nn, fx } = entries.tensorfx
  const { FakeTensorMode, withMode } = entries.dispatch
  const traced = () => fx.symbolicTrace((x) => torch.relu(x).add(1))
  const samples = {
    x: () => torch.arange(6).view(2, 3),
    graph: () => traced().graph,
    node: () => [...traced().graph.nodes][1],
    graphModule: () => traced(),
    tracer: () => new fx.Tracer(),
    interpreter: () => new fx.Interpreter(traced()),
    transformer: () => new fx.Transformer(traced()),
    linear: () => new nn.Linear(3, 2),
    sequential: () => new nn.Sequential(new nn.Linear(3, 2), new nn.ReLU()),
    conv: () => new nn.Conv2d(1, 2, 3),
    sgd: () => new torch.optim.SGD(new nn.Linear(3, 2).parameters(), { lr: 0.1 }),
    generator: () => new entries.tensorfx.torch.Generator(),
    compiled: () => entries.tensorfx.compile((x) => x.add(1)),
  }
  const fake = () => withMode(new FakeTensorMode(), () => torch.ones([2, 3]))
  const reset = () => {
    torch.setDefaultDtype('float32')
    entries.tensorfx.setGradEnabled(true)
  }
  return { library: { entries, samples, fake }, reset }
}
